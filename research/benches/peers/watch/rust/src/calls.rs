//! Calls of a method that waits until its time is over, below itself to a depth, each timed. The
//! second half counts, after some that take no time of their own.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use fastrace::collector::Config;
use fastrace::prelude::{LocalSpan, Span, SpanContext};

use crate::Nowhere;

/// Runs `WAY CALLS WARM METHOD_NS DEPTH`: `plain` has no spans, `off` spans without a root,
/// `nowhere` a root for each call and a reporter that drops all. Returns figures as lines; none if
/// the words are wrong.
pub(crate) fn calls(words: &[String]) -> Option<String> {
    let [way, numbers @ ..] = words else {
        return None;
    };
    let numbers: Option<Vec<u32>> = numbers.iter().map(|word| word.parse().ok()).collect();
    let [calls, warm, method_ns, depth] = numbers?[..] else {
        return None;
    };
    let call: fn(u32, Duration) -> Duration = match way.as_str() {
        "plain" => plain,
        "off" => spanned,
        "nowhere" => {
            fastrace::set_reporter(Nowhere, Config::default());
            rooted
        }
        _ => return None,
    };
    for _ in 0..warm {
        black_box(call(depth, Duration::ZERO));
    }
    let method = Duration::from_nanos(method_ns.into());
    let mut times = vec![0; calls as usize];
    for time in &mut times {
        let begin = Instant::now();
        black_box(call(depth, method));
        *time = begin.elapsed().as_nanos() as u64;
    }
    let counted = &mut times[calls as usize / 2..];
    counted.sort_unstable();
    let mean = counted.iter().sum::<u64>() as f64 / counted.len().max(1) as f64;
    let mut said = format!("mean_ns {mean}\n");
    for (name, at) in [
        ("median_ns", counted.len() / 2),
        ("p99_ns", counted.len() * 99 / 100),
        ("longest_ns", counted.len().saturating_sub(1)),
    ] {
        let _ = writeln!(said, "{name} {}", counted.get(at)?);
    }
    fastrace::flush();
    Some(said)
}

/// The depth is hidden from the compiler, which would make a loop of it.
#[inline(never)]
fn plain(depth: u32, method: Duration) -> Duration {
    match depth {
        0 | 1 => wait(method),
        deeper => black_box(plain(black_box(deeper - 1), method)),
    }
}

#[inline(never)]
fn spanned(depth: u32, method: Duration) -> Duration {
    let _span = LocalSpan::enter_with_local_parent("method");
    match depth {
        0 | 1 => wait(method),
        deeper => black_box(spanned(black_box(deeper - 1), method)),
    }
}

fn rooted(depth: u32, method: Duration) -> Duration {
    let root = Span::root("root", SpanContext::random());
    let _guard = root.set_local_parent();
    spanned(depth, method)
}

#[inline(never)]
fn wait(method: Duration) -> Duration {
    let begin = Instant::now();
    loop {
        let gone = begin.elapsed();
        if gone >= method {
            return gone;
        }
    }
}
