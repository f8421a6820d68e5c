//! Threads for blocking calls: each job gets one at once, and idle threads are reused.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::{exits, runtime};
use crate::ground::sync::lock_std as lock;

/// Time that an idle thread stays: conversations between nodes come in bursts.
const LINGER: Duration = Duration::from_secs(2);

type Job = Box<dyn FnOnce() + Send>;

/// Process-wide: a thread that served one runtime may serve another next.
struct Helpers {
    jobs: VecDeque<Job>,
    /// Threads that wait for a job, including those about to take one of `jobs`.
    idle: usize,
}

static HELPERS: Mutex<Helpers> = Mutex::new(Helpers {
    jobs: VecDeque::new(),
    idle: 0,
});
static HANDED: Condvar = Condvar::new();

/// Runs a job that may block on a helper thread.
pub(crate) fn hand(job: impl FnOnce() + Send + 'static) {
    let runtime = runtime::handle();
    let job = move || {
        let _inside = runtime::enter(&runtime);
        job();
    };
    let mut helpers = lock(&HELPERS);
    helpers.jobs.push_back(Box::new(job));
    if helpers.idle >= helpers.jobs.len() {
        HANDED.notify_one();
        return;
    }
    // Counted at once: the next job needs a thread of its own.
    helpers.idle += 1;
    drop(helpers);
    let thread = std::thread::Builder::new().name("helper".to_owned());
    if let Err(error) = thread.spawn(live) {
        exits::unfit(&format!(
            "could not start a helper thread ({error}); raise ulimit -u"
        ));
    }
}

fn live() {
    let mut helpers = lock(&HELPERS);
    loop {
        if let Some(job) = helpers.jobs.pop_front() {
            helpers.idle -= 1;
            drop(helpers);
            job();
            helpers = lock(&HELPERS);
            helpers.idle += 1;
            continue;
        }
        let (locked, waited) = HANDED
            .wait_timeout(helpers, LINGER)
            .unwrap_or_else(PoisonError::into_inner);
        helpers = locked;
        if waited.timed_out() && helpers.jobs.is_empty() {
            helpers.idle -= 1;
            return;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::{Arc, Barrier};

    /// Jobs that wait for each other run at the same time.
    #[test]
    fn each_job_has_a_thread() {
        for _ in 0..20 {
            let barrier = Arc::new(Barrier::new(9));
            for _ in 0..8 {
                let barrier = Arc::clone(&barrier);
                hand(move || {
                    barrier.wait();
                });
            }
            barrier.wait();
        }
    }
}
