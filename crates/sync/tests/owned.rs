//! Sections in every mode: results, order, panics, ends, and nothing lost while the mode changes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use hearth_sync::{CallError, Copying, Drain, LockKind, Mode, Order, Owned, Queue, Wait, Way};

const MODES: [Mode; 3] = [Mode::Lock, Mode::Combine, Mode::Message];

fn section<T: Send + 'static>(mode: Mode, data: T) -> Owned<T> {
    Owned::builder()
        .mode(mode)
        .build(data)
        .expect("a thread can be started")
}

/// Runs `look` on the payload of a closure's panic.
fn panic_text(work: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(work)).expect_err("it panics");
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => (*payload.downcast::<&str>().expect("a text")).to_owned(),
    }
}

#[test]
fn small_and_large_closures_and_results_come_back() {
    for mode in MODES {
        let owned = section(mode, vec![1u64, 2, 3]);
        assert_eq!(owned.call(|data| data.len()), 3);
        let large = [7u64; 100];
        let back = owned.call(move |data| {
            data.extend_from_slice(&large);
            (data.clone(), large)
        });
        assert_eq!((back.0.len(), back.1), (103, large));
        let text = String::from("borrowed");
        assert_eq!(
            owned.call(|data| format!("{text} {}", data[0])),
            "borrowed 1"
        );
        assert_eq!(
            owned.batch((0..5).map(|n| move |data: &mut Vec<u64>| data[0] + n)),
            [1, 2, 3, 4, 5]
        );
        assert_eq!(owned.into_inner().unwrap().len(), 103);
    }
}

#[test]
fn one_thread_s_requests_keep_their_order_while_the_mode_changes() {
    const ROUNDS: u64 = 3_000;
    for depth in [1, 2, 16] {
        let owned = Owned::builder().depth(depth).build(vec![0u64; 4]).unwrap();
        let end = Arc::new(AtomicBool::new(false));
        let switcher = {
            let (owned, end) = (owned.clone(), Arc::clone(&end));
            thread::spawn(move || {
                for mode in MODES.iter().cycle() {
                    owned.set_mode(*mode).unwrap();
                    if end.load(Ordering::Relaxed) {
                        break;
                    }
                    thread::yield_now();
                }
            })
        };
        thread::scope(|scope| {
            for client in 0..4 {
                let owned = &owned;
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let step = move |data: &mut Vec<u64>| {
                            assert_eq!(data[client], round);
                            data[client] += 1;
                        };
                        if round % 3 == 0 {
                            owned.call(step);
                        } else {
                            owned.post(step);
                        }
                    }
                });
            }
        });
        end.store(true, Ordering::Relaxed);
        switcher.join().unwrap();
        assert_eq!(owned.statistics().panics, 0);
        assert_eq!(owned.into_inner().unwrap(), [ROUNDS; 4]);
    }
}

#[test]
fn every_lock_and_wait_serves_every_mode() {
    for lock in LockKind::ALL {
        for wait in [Wait::park(), Wait::spin_then_park()] {
            for mode in MODES {
                let owned = Owned::builder()
                    .mode(mode)
                    .lock(lock)
                    .wait(wait)
                    .proprietor_wait(wait)
                    .drain(Drain::One)
                    // Some of the threads get no line and take the lock.
                    .clients(3)
                    .build(0u64)
                    .unwrap();
                thread::scope(|scope| {
                    for _ in 0..5 {
                        scope.spawn(|| (0..300).for_each(|_| owned.call(|count| *count += 1)));
                    }
                });
                assert_eq!(owned.into_inner().unwrap(), 1500, "{lock} {mode}");
            }
        }
    }
}

#[test]
fn a_panic_harms_its_caller_only() {
    for mode in MODES {
        let owned = section(mode, 5);
        let text = panic_text(|| {
            owned.call(|data| {
                *data += 1;
                panic!("at {data}");
            })
        });
        assert_eq!(text, "at 6");
        assert_eq!(owned.call(|data| *data), 6);
        assert_eq!(owned.statistics().panics, 1);
        assert!(!owned.is_poisoned());
    }
}

#[test]
fn a_posted_panic_is_counted() {
    let owned = section(Mode::Message, 0);
    owned.post(|_| panic!("nobody waits"));
    owned.post(|data| *data = 1);
    assert_eq!(owned.call(|data| *data), 1);
    assert_eq!(owned.statistics().panics, 1);
}

#[test]
fn poison_is_for_who_asks_for_it() {
    for mode in MODES {
        let owned = Owned::builder().mode(mode).poison(true).build(1).unwrap();
        panic_text(|| owned.call(|_| panic!("broken")));
        assert_eq!(owned.checked_call(|data| *data), Err(CallError::Poisoned));
        assert!(panic_text(|| owned.call(|_| ())).contains("clear_poison"));
        owned.clear_poison();
        assert_eq!(owned.checked_call(|data| *data), Ok(1));
    }
}

/// A client that sees the panic may look at the data and clear the poison: the section is poisoned
/// by then, not later.
#[test]
fn poison_comes_before_its_panic() {
    let rounds = if cfg!(miri) { 10 } else { 1000 };
    for queue in [Queue::Lines, Queue::Ring(Copying::Zero)] {
        let owned = Owned::builder()
            .mode(Mode::Message)
            .queue(queue)
            .poison(true)
            .build(())
            .unwrap();
        for _ in 0..rounds {
            let panics = || owned.call(|()| std::panic::resume_unwind(Box::new(())));
            catch_unwind(AssertUnwindSafe(panics)).expect_err("it panics");
            assert!(owned.is_poisoned());
            owned.clear_poison();
            assert_eq!(owned.checked_call(|()| ()), Ok(()));
        }
    }
}

#[test]
fn nobody_waits_for_itself() {
    for mode in MODES {
        let (owned, other) = (section(mode, 1), section(mode, 2));
        let (again, inner) = (owned.clone(), other.clone());
        let (direct, posted, through) = owned.call(|_| {
            (
                again.checked_call(|data| *data),
                again.checked_post(|_| ()),
                inner.call(|data| *data),
            )
        });
        assert_eq!(direct, Err(CallError::Reentrant), "{mode}");
        assert_eq!(posted, Err(CallError::Reentrant), "{mode}");
        assert_eq!(through, 2);
        assert_eq!(owned.call(|_| again.statistics().way), owned.way());
    }
}

/// Its drop panics, and so ends the proprietor.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a payload that panics when it is dropped");
    }
}

#[test]
fn the_proprietor_s_death_is_noticed_by_all() {
    for (wait, queue, order) in [
        (Wait::park(), Queue::Lines, Order::Arrival),
        (Wait::spin_then_park(), Queue::Lines, Order::Key),
        (
            Wait::spin_then_park(),
            Queue::Ring(Copying::Single),
            Order::Arrival,
        ),
        (Wait::park(), Queue::Ring(Copying::Double), Order::Arrival),
    ] {
        let owned = Owned::builder()
            .mode(Mode::Message)
            .wait(wait)
            .queue(queue)
            .order(order)
            .depth(8)
            .build(0u64)
            .unwrap();
        let told = AtomicU64::new(0);
        thread::scope(|scope| {
            for client in 0..4 {
                let (owned, told) = (&owned, &told);
                scope.spawn(move || {
                    for round in 0.. {
                        if client == 0 && round == 50 {
                            let _ = owned.checked_post(|_| std::panic::panic_any(Bomb));
                        }
                        if let Err(error) = owned.checked_call(|count| *count += 1) {
                            assert_eq!(error, CallError::OwnerDied);
                            break;
                        }
                    }
                    told.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(told.into_inner(), 4);
        assert!(owned.is_closed());
        assert!(panic_text(|| owned.call(|_| ())).contains("has died"));
        assert!(owned.into_inner().unwrap() >= 50);
    }
}

#[test]
fn what_was_posted_is_done_before_the_end() {
    let done = Arc::new(AtomicU64::new(0));
    let owned = Owned::builder()
        .mode(Mode::Message)
        .depth(64)
        .build(Arc::clone(&done))
        .unwrap();
    for _ in 0..50 {
        owned.post(|done| {
            done.fetch_add(1, Ordering::Relaxed);
        });
    }
    owned.into_inner().unwrap();
    assert_eq!(done.load(Ordering::Relaxed), 50);
}

#[test]
fn the_last_handle_drops_the_data() {
    struct Tell(Option<std::sync::mpsc::Sender<Way>>, Way);
    impl Drop for Tell {
        fn drop(&mut self) {
            let _ = self.0.take().map(|sender| sender.send(self.1));
        }
    }
    for mode in MODES {
        let (sender, receiver) = std::sync::mpsc::channel();
        let owned = section(mode, Tell(Some(sender), Way::Lock));
        let other = owned.clone();
        owned.call(|_| ());
        drop(owned);
        assert!(receiver.try_recv().is_err());
        drop(other);
        assert_eq!(receiver.recv(), Ok(Way::Lock));
    }
}

#[test]
fn a_closed_section_lets_nobody_in() {
    for mode in MODES {
        let owned = section(mode, 1);
        owned.close();
        assert_eq!(owned.checked_call(|data| *data), Err(CallError::OwnerDied));
        assert_eq!(owned.checked_post(|_| ()), Err(CallError::OwnerDied));
        assert_eq!(owned.into_inner().unwrap(), 1);
    }
}

#[test]
fn other_handles_keep_the_data_from_being_taken() {
    let owned = section(Mode::Lock, 1);
    let other = owned.clone();
    let owned = owned.into_inner().unwrap_err();
    assert!(!owned.is_closed());
    drop(other);
    assert_eq!(owned.into_inner().unwrap(), 1);
}

#[test]
fn counts_tell_what_happened() {
    let owned = section(Mode::Lock, ());
    (0..640).for_each(|_| owned.call(|_| ()));
    owned.set_mode(Mode::Message).unwrap();
    (0..64).for_each(|_| owned.call(|_| ()));
    let statistics = owned.statistics();
    assert_eq!((statistics.calls, statistics.delegated), (704, 64));
    assert_eq!(statistics.samples, 11);
    assert_eq!(statistics.way, Way::Message);
    assert!(statistics.server_busy_percent().unwrap() <= 100.0);
}

#[test]
fn every_queue_carries_small_and_large() {
    for queue in Queue::ALL {
        for drain in [Drain::All, Drain::One] {
            let owned = Owned::builder()
                .mode(Mode::Message)
                .queue(queue)
                .drain(drain)
                .clients(4)
                .build(String::new())
                .unwrap();
            thread::scope(|scope| {
                for client in 0..3u8 {
                    let owned = &owned;
                    scope.spawn(move || {
                        let text = String::from(char::from(b'a' + client));
                        for round in 0..200usize {
                            let large = [client; 300];
                            let back = owned.call(move |data| {
                                data.push(char::from(b'a' + large[round]));
                                large
                            });
                            assert_eq!(back, large);
                            let text = text.clone();
                            owned.post(move |data| data.push_str(&text));
                        }
                    });
                }
            });
            let data = owned.into_inner().unwrap();
            for letter in ['a', 'b', 'c'] {
                assert_eq!(data.matches(letter).count(), 400, "{queue}");
            }
        }
    }
    assert_eq!("double-copy".parse(), Ok(Queue::Ring(Copying::Double)));
}

#[test]
fn keys_bring_together_what_belongs_together() {
    let owned = Owned::builder()
        .mode(Mode::Message)
        .order(Order::Key)
        .depth(16)
        .build(Vec::new())
        .unwrap();
    // The proprietor is kept busy until everything is posted, so that one round finds all of it.
    let gate = Arc::new(AtomicBool::new(false));
    let open = Arc::clone(&gate);
    owned.post(move |_| {
        while !open.load(Ordering::Acquire) {
            thread::yield_now();
        }
    });
    for (at, key) in [5, 1, 9, 1, 5].into_iter().enumerate() {
        owned.post_at(key, move |data: &mut Vec<(u64, usize)>| {
            data.push((key, at))
        });
    }
    owned.post(|data| data.push((0, 5)));
    owned.post_at(0, |data| data.push((0, 6)));
    gate.store(true, Ordering::Release);
    let found = owned.call(|data| data.clone());
    assert_eq!(
        found,
        [(1, 1), (1, 3), (5, 0), (5, 4), (9, 2), (0, 5), (0, 6)]
    );
}

#[test]
fn a_batch_by_key_returns_in_the_items_order() {
    for mode in MODES {
        let owned = section(mode, Vec::new());
        let results = owned.batch_by_key(
            [30, 10, 20],
            |item| *item,
            |seen: &mut Vec<i32>, item| {
                seen.push(item);
                item + 1
            },
        );
        assert_eq!(results, [31, 11, 21]);
        assert_eq!(owned.into_inner().unwrap(), [10, 20, 30]);
    }
}

/// Automatic mode gives right results during its trials and whatever they find.
#[test]
fn auto_loses_nothing_and_says_why() {
    let owned = section(Mode::Auto, 0u64);
    assert_eq!(owned.mode(), Mode::Auto);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for round in 0..40_000u64 {
                    if round % 8 == 0 {
                        owned.post(|count| *count += 1);
                    } else {
                        owned.call(|count| *count += 1);
                    }
                }
            });
        }
    });
    assert!(
        owned.explain().contains("as measured"),
        "{}",
        owned.explain()
    );
    owned.set_mode(Mode::Combine).unwrap();
    assert_eq!(owned.mode(), Mode::Combine);
    assert!(
        !owned.explain().contains("as measured"),
        "{}",
        owned.explain()
    );
    assert_eq!(owned.into_inner().unwrap(), 120_000);
}

#[test]
fn a_missing_core_is_explained() {
    let owned = Owned::builder()
        .mode(Mode::Message)
        .proprietor_core(1 << 20)
        .name("far")
        .build(0)
        .unwrap();
    owned.call(|count| *count += 1);
    let text = owned.explain();
    assert!(
        text.starts_with("far: by message to its proprietor"),
        "{text}"
    );
    assert!(text.contains("core 1048576 is not available"), "{text}");
}

#[test]
fn no_choice_is_too_large_and_no_name_wrong() {
    for queue in [Queue::Lines, Queue::Ring(Copying::Zero)] {
        let owned = Owned::builder()
            .mode(Mode::Message)
            .name("a\0b")
            .clients(usize::MAX)
            .depth(u32::MAX)
            .queue(queue)
            .build(1)
            .unwrap();
        let name = |_: &mut i32| thread::current().name().map(str::to_owned);
        assert_eq!(owned.call(name).as_deref(), Some("a"));
        assert_eq!(owned.into_inner().unwrap(), 1);
    }
}

/// More threads than lines: threads without a line wait for the lock, which a busy proprietor must
/// release.
#[test]
fn who_has_no_line_is_not_forgotten() {
    for lock in LockKind::ALL {
        let owned = Owned::builder()
            .mode(Mode::Message)
            .lock(lock)
            .clients(0)
            .build(0u64)
            .unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..200).for_each(|_| owned.call(|count| *count += 1)));
            }
        });
        assert_eq!(owned.into_inner().unwrap(), 800);
    }
}
