//! Each lock with real threads: more threads than cores, and counts that are right only with
//! mutual exclusion.

use std::cell::UnsafeCell;

use super::*;

struct Counter<L> {
    lock: L,
    count: UnsafeCell<u64>,
}

// SAFETY: the count is used under the lock only, which these tests verify.
unsafe impl<L: Lock> Sync for Counter<L> {}

fn counts<L: Lock>(lock: L, wait: Wait, tries: bool) {
    const THREADS: u64 = 5;
    const EACH: u64 = if cfg!(miri) { 10 } else { 2_000 };
    let counter = Counter {
        lock,
        count: UnsafeCell::new(0),
    };
    let counter = &counter;
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(move || {
                for _ in 0..EACH {
                    let place = LockPlace::new();
                    // SAFETY: the place stays here until the lock is released.
                    unsafe {
                        if !(tries && counter.lock.try_acquire(&place)) {
                            counter.lock.acquire(&place, wait);
                        }
                        *counter.count.get() += 1;
                        counter.lock.release(&place);
                    }
                }
            });
        }
    });
    // SAFETY: all counting threads have ended.
    assert_eq!(unsafe { *counter.count.get() }, THREADS * EACH);
}

#[test]
fn every_lock_excludes_however_one_waits() {
    for wait in [Wait::park(), Wait::spin_then_park()] {
        for tries in [false, true] {
            for kind in LockKind::ALL {
                counts(AnyLock::new(kind), wait, tries);
            }
            counts(Cohort::new(Groups::by_core(vec![0, 1, 2, 3])), wait, tries);
        }
    }
}

#[test]
fn a_held_lock_is_not_had_by_trying() {
    for kind in LockKind::ALL {
        let lock = AnyLock::new(kind);
        let (mine, other) = (LockPlace::new(), LockPlace::new());
        // SAFETY: both places stay here.
        unsafe {
            assert!(lock.try_acquire(&mine), "{kind}");
            assert!(!lock.try_acquire(&other), "{kind}");
            lock.release(&mine);
            assert!(!lock.acquire(&other, Wait::park()), "{kind}");
            lock.release(&other);
        }
    }
}

#[test]
fn locks_are_known_by_their_names() {
    for kind in LockKind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    let error = "spin".parse::<LockKind>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no lock named 'spin'; choose one of: mutex, ticket, mcs, cohort"
    );
}

#[test]
fn groups_follow_the_nodes_of_a_machine() {
    let machine = hearth_sys::Fake::default()
        .file("/sys/devices/system/node/online", "0-2\n")
        .file("/sys/devices/system/node/node0/cpulist", "0-1\n")
        .file("/sys/devices/system/node/node1/cpulist", "\n")
        .file("/sys/devices/system/node/node2/cpulist", "2-3\n");
    assert_eq!(
        Groups::nodes_of(&machine),
        Groups::by_core(vec![0, 0, 1, 1])
    );
}

#[test]
fn groups_may_have_any_numbers() {
    let groups = Groups::by_core(vec![u32::MAX, 7, u32::MAX]);
    assert_eq!(groups.count(), 2);
    assert_eq!(groups, Groups::by_core(vec![1, 0, 1]));
    assert_eq!(Groups::by_core(Vec::new()).count(), 1);
    counts(Cohort::new(groups), Wait::park(), false);
}
