//! Runs of a plan: connect, fill, load, measure.

use std::io;
use std::sync::Barrier;
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use hearth_sys::Refused;
use hearth_sys::affinity::Pinned;
use hearth_sys::clock::{process_ns, steady_ns};
use thiserror::Error;

use crate::content::Content;
use crate::line::Line;
use crate::model::Model;
use crate::plan::{LoadPlan, Mistake, Pacing, Verify};
use crate::tally::{Tally, Times};
use crate::worker::{Shared, Window, Work, Worker};

/// Timeout of one connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);
/// Descriptors beyond connections: epoll sets, the standard ones, those of `/proc`.
const OTHER_FILES: u64 = 64;
/// Requests under way on a connection during the preload.
const FILL_OUTSTANDING: usize = 8;
/// Share of the time on a core above which a thread of the generator counts as saturated.
pub const BUSY: f64 = 0.95;

/// Reason why there is no result.
#[derive(Debug, Error)]
pub enum Failed {
    /// The plan cannot be carried out.
    #[error("{0}")]
    Plan(#[from] Mistake),
    /// The system refused something.
    #[error("{0}")]
    Refused(#[from] Refused),
    /// The server cannot be connected to.
    #[error("{}", failed_to_connect(.target, *.open, *.wanted, .error))]
    Connect {
        /// Address of the server.
        target: String,
        /// Number of connections that are open.
        open: usize,
        /// Number of connections wanted.
        wanted: usize,
        /// The system's error.
        error: io::Error,
    },
    /// The preload failed.
    #[error(
        "{missing} keys could not be written before the run: {why}; mend the server, or start \
         without with --no-preload"
    )]
    Fill {
        /// Number of keys not written.
        missing: u64,
        /// Broken connections and the server's answers, most frequent first.
        why: String,
    },
    /// The run was stopped.
    #[error("stopped before there was a result")]
    Stopped,
}

fn failed_to_connect(target: &str, open: usize, wanted: usize, error: &io::Error) -> String {
    match open {
        0 => format!(
            "cannot connect to {target}: {error}; is the server running there? \
             for example: memcached -p 11211"
        ),
        _ => format!(
            "cannot open connection {} of {wanted} to {target}: {error}; ask for fewer, or raise \
             the server's limit of connections (-c) or the system's (ulimit -n, \
             net.ipv4.ip_local_port_range)",
            open + 1
        ),
    }
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Pacing of the requests.
    pub pacing: Pacing,
    /// Length of the measurement, in seconds.
    pub seconds: f64,
    /// Everything that was counted.
    pub tally: Tally,
    /// CPU time of the watched process meanwhile, in nanoseconds.
    pub server_cpu_ns: Option<u64>,
}

impl Run {
    /// Replies a second.
    pub fn rate(&self) -> f64 {
        self.tally.replies.all() as f64 / self.seconds
    }

    /// Cores the generator used, on average.
    pub fn own_cores(&self) -> f64 {
        self.tally.own_cpu_ns as f64 / 1e9 / self.seconds
    }

    /// CPU time of the generator for each request, in nanoseconds.
    pub fn own_ns_per_request(&self) -> f64 {
        self.tally.own_cpu_ns as f64 / self.tally.replies.all().max(1) as f64
    }

    /// Cores the server used, on average, if it was watched.
    pub fn server_cores(&self) -> Option<f64> {
        Some(self.server_cpu_ns? as f64 / 1e9 / self.seconds)
    }

    /// CPU time of the server for each request, in nanoseconds, if it was watched.
    pub fn server_ns_per_request(&self) -> Option<f64> {
        Some(self.server_cpu_ns? as f64 / self.tally.replies.all().max(1) as f64)
    }

    /// Reasons why the result says more about the generator than about the server, if there are
    /// any.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let (own, all) = (&self.tally.own_slip, self.tally.latency());
        let (own_p99, p99) = (own.percentile(99.0), all.percentile(99.0));
        if self.tally.busiest > BUSY && !matches!(self.pacing, Pacing::Open { .. }) {
            doubts.push(format!(
                "a thread of the generator was on its core {:.0} % of the time: the generator may be \
                 the limit; more --threads on cores of their own would tell",
                self.tally.busiest * 100.0
            ));
        }
        if own_p99 * 5 > p99 && !own.is_empty() && own_p99 > 20_000 {
            doubts.push(format!(
                "the generator itself made one request in a hundred more than {} late, beside a p99 of \
                 {}: it had no core when it needed one; give it its own (--pin), more --threads, or a \
                 lower rate",
                crate::units::show_ns(own_p99 as f64),
                crate::units::show_ns(p99 as f64)
            ));
        }
        if let Pacing::Open { rate, .. } = self.pacing
            && self.rate() < 0.98 * rate
        {
            doubts.push(format!(
                "{:.1} % of the rate was answered in time: the server, or the connections, could not \
                 keep up, and latencies grow with the length of the run",
                self.rate() / rate * 100.0
            ));
        }
        doubts
    }
}

/// Carries out a plan, as often as wanted.
///
/// ```no_run
/// use cachet_load::{Generator, LoadPlan};
///
/// let generator = Generator::new(LoadPlan::new("127.0.0.1:11211".parse()?))?;
/// generator.fill()?;
/// let run = generator.run()?;
/// println!("{:.0} replies a second", run.rate());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Generator {
    plan: LoadPlan,
    content: Content,
    model: Option<Model>,
    stop: AtomicBool,
    /// Beginning of the last run's measurement; 0 before the first.
    counts_from_ns: AtomicU64,
}

impl Generator {
    /// A generator for a plan. Raises the limit of open descriptors if need be.
    ///
    /// # Errors
    /// The plan has a mistake, or the system allows too few descriptors.
    pub fn new(plan: LoadPlan) -> Result<Generator, Failed> {
        plan.check()?;
        hearth_sys::limits::allow_open_files(plan.connections as u64 + OTHER_FILES)?;
        let (_, value_most) = plan.value_sizes.bounds();
        let model = match plan.verify {
            Verify::Nothing => None,
            Verify::Values { may_evict } => {
                let mark = crate::random::mix(steady_ns() ^ u64::from(std::process::id())) as u32;
                Some(Model::new(plan.keys, mark, may_evict))
            }
        };
        Ok(Generator {
            content: Content::new(value_most),
            model,
            plan,
            stop: AtomicBool::new(false),
            counts_from_ns: AtomicU64::new(0),
        })
    }

    /// The plan.
    pub fn plan(&self) -> &LoadPlan {
        &self.plan
    }

    /// Stops the run under way and every later one; the result is what was counted until then.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Beginning of the measurement of the run under way, or of the last one, by
    /// [`hearth_sys::clock::steady_ns`]; none until all of its connections are open.
    pub fn counts_from(&self) -> Option<u64> {
        let ns = self.counts_from_ns.load(Ordering::Relaxed);
        (ns > 0).then_some(ns)
    }

    /// Was it stopped?
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Writes every key once. Returns how long that took and what was counted; a key that the
    /// server refused is among the errors and not among what was stored.
    ///
    /// # Errors
    /// No connection, or keys that the server did not answer for.
    pub fn fill(&self) -> Result<Run, Failed> {
        let keys = self.plan.keys;
        let threads = self.plan.threads as u64;
        let part = |number: u64| Work::Fill {
            next: keys * number / threads,
            end: keys * (number + 1) / threads,
            again: Vec::new(),
        };
        let plan = self.plan.clone();
        let outstanding = plan.outstanding.max(FILL_OUTSTANDING);
        let plan = plan.outstanding(outstanding);
        let (run, missing) = self.drive(&plan, Pacing::Closed, None, &part)?;
        if missing > 0 {
            if self.is_stopped() {
                return Err(Failed::Stopped);
            }
            let why = run.tally.broken.iter().chain(&run.tally.errors);
            let why: Vec<_> = why
                .map(|(text, times)| format!("{text} ({times})"))
                .collect();
            let why = match why.is_empty() {
                true => "the server does not answer".into(),
                false => why.join(", "),
            };
            return Err(Failed::Fill { missing, why });
        }
        Ok(run)
    }

    /// Runs the plan once: warm-up, measurement, waiting for the last replies.
    ///
    /// # Errors
    /// No connection.
    pub fn run(&self) -> Result<Run, Failed> {
        self.run_paced(self.plan.pacing)
    }

    /// Runs the plan with other pacing.
    ///
    /// # Errors
    /// No connection.
    pub fn run_paced(&self, pacing: Pacing) -> Result<Run, Failed> {
        if self.is_stopped() {
            return Err(Failed::Stopped);
        }
        let plan = &self.plan;
        let times = Some((plan.warm_up, plan.measure));
        let (run, _) = self.drive(plan, pacing, times, &|_| Work::Mix)?;
        Ok(run)
    }

    /// Starts the threads, each with its connections and its work, and waits for them. Without
    /// times the work decides when it is done. Returns also how much of the work is left.
    fn drive(
        &self,
        plan: &LoadPlan,
        pacing: Pacing,
        times: Option<(Duration, Duration)>,
        work: &(dyn Fn(u64) -> Work + Sync),
    ) -> Result<(Run, u64), Failed> {
        let shared = Shared {
            plan,
            content: &self.content,
            model: self.model.as_ref(),
            stop: &self.stop,
        };
        let (connected, started) = (
            Barrier::new(plan.threads + 1),
            Barrier::new(plan.threads + 1),
        );
        let window = OnceLock::new();
        let failed = Mutex::new(None);
        let result = Mutex::new((Tally::default(), 0));
        let mut server_cpu_ns = None;
        let begin_ns = steady_ns();
        self.counts_from_ns.store(0, Ordering::Relaxed);
        thread::scope(|scope| {
            for number in 0..plan.threads {
                let (connected, started) = (&connected, &started);
                let (window, failed, result) = (&window, &failed, &result);
                scope.spawn(move || {
                    let ready = prepare(shared, number, work(number as u64));
                    connected.wait();
                    started.wait();
                    let (_pinned, mut worker) = match ready {
                        Ok(ready) => ready,
                        Err(error) => {
                            *lock(failed) = Some(error);
                            return;
                        }
                    };
                    // Set before any thread could pass the barrier.
                    let Some(&window) = window.get() else { return };
                    worker.run(window, pacing, number);
                    let mut result = lock(result);
                    result.0.add(&worker.tally);
                    result.1 += worker.unfilled();
                });
            }
            connected.wait();
            let of_run = window_of(times);
            let _ = window.set(of_run);
            self.counts_from_ns
                .store(of_run.begin_ns, Ordering::Relaxed);
            started.wait();
            if let Some(&window) = window.get()
                && times.is_some()
            {
                server_cpu_ns = self.watch(plan.watched, window);
            }
        });
        if let Some(failed) = lock(&failed).take() {
            return Err(failed);
        }
        let (tally, left) = std::mem::take(&mut *lock(&result));
        let now = steady_ns();
        let seconds = match (times, window.get()) {
            // An interrupted measurement counts for as long as it lasted.
            (Some(_), Some(window)) if self.is_stopped() && now < window.end_ns => {
                now.saturating_sub(window.begin_ns).max(1) as f64 / 1e9
            }
            (Some((_, measure)), _) => measure.as_secs_f64(),
            (None, _) => (now - begin_ns) as f64 / 1e9,
        };
        let run = Run {
            pacing,
            seconds,
            tally,
            server_cpu_ns,
        };
        Ok((run, left))
    }

    /// CPU time of the process during the window.
    fn watch(&self, process: Option<u32>, window: Window) -> Option<u64> {
        let process = process?;
        self.sleep_until(window.begin_ns);
        let before = process_ns(process)?;
        self.sleep_until(window.end_ns);
        process_ns(process)?.checked_sub(before)
    }

    fn sleep_until(&self, ns: u64) {
        const STEP: Duration = Duration::from_millis(100);
        loop {
            let left = Duration::from_nanos(ns.saturating_sub(steady_ns()));
            if left.is_zero() || self.is_stopped() {
                return;
            }
            thread::sleep(left.min(STEP));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn window_of(times: Option<(Duration, Duration)>) -> Window {
    let start_ns = steady_ns();
    match times {
        None => Window {
            start_ns,
            begin_ns: 0,
            end_ns: u64::MAX,
        },
        Some((warm_up, measure)) => {
            let begin_ns = start_ns + warm_up.as_nanos() as u64;
            Window {
                start_ns,
                begin_ns,
                end_ns: begin_ns + measure.as_nanos() as u64,
            }
        }
    }
}

/// Binds the thread to its core, if it has one, and connects.
fn prepare(
    shared: Shared<'_>,
    number: usize,
    work: Work,
) -> Result<(Option<Pinned>, Worker<'_>), Failed> {
    let plan = shared.plan;
    let pinned = match plan.pins.is_empty() {
        true => None,
        false => Some(Pinned::to(plan.pins[number % plan.pins.len()])?),
    };
    let first = plan.connections * number / plan.threads;
    let after = plan.connections * (number + 1) / plan.threads;
    let connect_failed = |open: usize, error: io::Error| Failed::Connect {
        target: plan.target.to_string(),
        open,
        wanted: plan.connections,
        error,
    };
    let mut lines = Vec::with_capacity(after - first);
    for place in first..after {
        let stream = plan.target.connect(CONNECT_WITHIN);
        lines.push(Line::on(
            stream.map_err(|error| connect_failed(place, error))?,
        ));
    }
    let worker = Worker::new(shared, number, lines, work);
    let worker = worker.map_err(|error| connect_failed(after, error))?;
    Ok((pinned, worker))
}

/// Parses the name of a percentile, such as `p99` or `p99.9`.
///
/// # Errors
/// It is not such a name.
pub fn percentile_of(name: &str) -> Result<f64, String> {
    name.strip_prefix('p')
        .and_then(|number| number.parse::<f64>().ok())
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| format!("'{name}' is not a percentile; write for example p99 or p99.9"))
}

/// The percentiles reported everywhere.
pub const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// Those percentiles of times.
pub fn percentiles(times: &Times) -> Vec<(f64, u64)> {
    let of = |percent: f64| (percent, times.percentile(percent));
    PERCENTILES.into_iter().map(of).collect()
}
