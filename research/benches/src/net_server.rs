//! The server of `net`: the command `serve`, in a process of its own.
//!
//! A request has a fixed number of bytes; it costs a given number of rounds of a loop, and its
//! reply is as long. Rounds and not time: a thread that is kept from its core must not have worked
//! meanwhile.

use std::hint::black_box;
use std::io::{BufRead, Write as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hearth_net::{Input, Next, Output, Peer, Server, Service};

/// Bytes of a request, and of its reply.
pub(crate) const REQUEST: usize = 64;
/// Name of a server that chooses its mechanism.
pub(crate) const ANY: &str = "any";
/// Interval between counts of replies.
pub(crate) const SAMPLE: Duration = Duration::from_millis(10);
/// Requests of one connection that are served before others have their turn.
const AT_ONCE: usize = 32;

struct Working {
    rounds: u64,
}

impl Service for Working {
    type Worker = ();
    type Session = ();

    fn worker(&self, _: usize) {}

    fn open(&self, (): &mut (), _: &Peer) {}

    fn serve(&self, (): &mut (), (): &mut (), input: &mut Input<'_>, output: &mut Output) -> Next {
        for _ in 0..AT_ONCE {
            let Some(request) = input.bytes().get(..REQUEST) else {
                return Next::More;
            };
            work(self.rounds);
            output.write(request);
            input.consume(REQUEST);
        }
        Next::Again
    }
}

/// Runs `rounds` rounds of a multiplication and an addition, each of which waits for the one
/// before.
pub(crate) fn work(rounds: u64) {
    let mut value = black_box(rounds);
    for _ in 0..rounds {
        value = value.wrapping_mul(6364136223846793005).wrapping_add(1);
    }
    black_box(value);
}

/// Rounds for a microsecond on this machine without disturbance: by the fastest of many tries.
pub(crate) fn rounds_per_us() -> f64 {
    const ROUNDS: u64 = 100_000;
    let once = || {
        let begun = Instant::now();
        work(ROUNDS);
        begun.elapsed().as_secs_f64()
    };
    let least = (0..200).map(|_| once()).fold(f64::INFINITY, f64::min);
    ROUNDS as f64 / (least * 1e6)
}

/// Serves by `PATTERN MECHANISM THREADS ROUNDS`, prints its port, and ends with its input; then it
/// prints how many replies there were after each [`SAMPLE`], from the first on.
pub(crate) fn serve(words: &[String]) -> Result<String, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let [pattern, mechanism, threads, rounds] = words else {
        return Err("serve PATTERN MECHANISM THREADS ROUNDS".into());
    };
    let rounds = rounds.parse().map_err(|error| said(&error))?;
    let mut builder = Server::builder();
    if mechanism != ANY {
        builder = builder.mechanism(mechanism.parse().map_err(|error| said(&error))?);
    }
    let server = builder
        .pattern(pattern.parse().map_err(|error| said(&error))?)
        .threads(threads.parse().map_err(|error| said(&error))?)
        .tcp("127.0.0.1:0")
        .start(Working { rounds })
        .map_err(|error| said(&error))?;
    println!("{}", server.tcp_addresses()[0].port());
    std::io::stdout().flush().map_err(|error| said(&error))?;
    let samples = Mutex::new(Vec::new());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(SAMPLE);
                let replies = server.counters().written_bytes / REQUEST as u64;
                let mut samples = samples.lock().expect("nobody panics");
                if replies > 0 {
                    samples.push((Instant::now(), replies));
                }
            }
        });
        // The end of the input, or a line, or an error: over in any case.
        let _ = std::io::stdin().lock().read_line(&mut String::new());
        is_over.store(true, Ordering::Relaxed);
    });
    let samples = samples.into_inner().expect("nobody panics");
    let mut text = String::new();
    for (at, replies) in &samples {
        let ms = (*at - samples[0].0).as_secs_f64() * 1e3;
        text.push_str(&format!("{ms:.1} {replies}\n"));
    }
    Ok(text)
}
