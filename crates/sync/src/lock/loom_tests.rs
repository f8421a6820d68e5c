//! Each lock under the model checker: its holder is alone and sees all earlier writes, and no
//! waiter sleeps forever.
//!
//! Waiters sleep after one look, so that every hand-over goes to a sleeper or races with one that
//! falls asleep. Places are never freed: a real one may be gone when its owner is woken, which the
//! checker's words do not allow.

use std::sync::Arc;

use super::*;
use hearth_atomics::Guarded;

/// A few more preemptions than the smallest number that shows a fault, and still fast.
const PREEMPTIONS: usize = 3;

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(model);
}

/// Each of `threads` takes the lock so many times, with `try_lock` first if `tries`.
fn excludes<L: Lock + 'static>(
    make: impl Fn() -> L + Sync + Send + 'static,
    threads: usize,
    rounds: u32,
    tries: bool,
) {
    check(move || {
        let shared = Arc::new((make(), Guarded::new(0u32)));
        let take = move |shared: &(L, Guarded<u32>)| {
            let (lock, count) = shared;
            for _ in 0..rounds {
                let place: &'static LockPlace = Box::leak(Box::default());
                // SAFETY: the place is never freed; the count is used under the lock only.
                unsafe {
                    if !(tries && lock.try_acquire(place)) {
                        lock.acquire(place, Wait::park());
                    }
                    count.with_mut(|count| *count += 1);
                    lock.release(place);
                }
            }
        };
        let others: Vec<_> = (1..threads as u32)
            .map(|number| {
                let shared = Arc::clone(&shared);
                loom::thread::spawn(move || {
                    crate::thread::MODELLED.with(|it| it.set(Some(number.min(1))));
                    take(&shared);
                })
            })
            .collect();
        take(&shared);
        for other in others {
            other.join().unwrap();
        }
        // SAFETY: all other threads have ended.
        let count = unsafe { shared.1.with_mut(|count| *count) };
        assert_eq!(count, threads as u32 * rounds);
    });
}

#[test]
fn loom_mutex() {
    excludes(Mutex::new, 2, 2, false);
    excludes(Mutex::new, 3, 1, true);
}

#[test]
fn loom_ticket() {
    excludes(Ticket::new, 2, 2, false);
    excludes(Ticket::new, 3, 1, true);
}

#[test]
fn loom_mcs() {
    excludes(Mcs::new, 2, 2, false);
    excludes(Mcs::new, 3, 1, true);
}

#[test]
fn loom_cohort() {
    let near = || Cohort::new(Groups::by_core(vec![0]));
    excludes(near, 2, 2, false);
    excludes(near, 3, 1, true);
}

/// Puts one thread in one group and the others in the next, so that the lock passes both within and
/// between groups.
#[test]
fn loom_cohort_of_two_groups() {
    let far = || Cohort::new(Groups::by_core(vec![0, 1]));
    excludes(far, 2, 2, false);
    excludes(far, 3, 1, true);
}
