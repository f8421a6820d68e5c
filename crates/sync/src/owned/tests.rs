//! Sections seen from inside, so that a test knows that a thread waits and no proprietor runs.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use super::builder::Builder;
use super::proprietor::Pause;
use super::shared::Shared;
use super::*;
use crate::inside::{Inside, serves_as_proprietor};
use crate::lock::{Lock, LockPlace};
use crate::mailbox::Mailbox;
use crate::{LockKind, Queue, Wait};
use hearth_sys::threading::yield_now;

/// A section whose proprietor is not started.
fn section(
    way: Way,
    choose: impl FnOnce(Builder<Vec<u32>>) -> Builder<Vec<u32>>,
) -> Arc<Shared<Vec<u32>>> {
    let options = choose(Builder::new()).options;
    let shared = Shared::new(Vec::new(), options, way);
    shared.mailboxes();
    Arc::new(shared)
}

fn push(shared: &Shared<Vec<u32>>, value: u32) -> Result<usize, CallError> {
    shared.call(0, move |data| {
        data.push(value);
        data.len()
    })
}

fn post(shared: &Shared<Vec<u32>>, value: u32) {
    shared
        .post(0, move |data: &mut Vec<u32>| data.push(value))
        .unwrap();
}

fn places(shared: &Shared<Vec<u32>>) -> (LockPlace, Inside) {
    (
        LockPlace::new(),
        Inside::new(std::ptr::from_ref(shared).cast()),
    )
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        yield_now();
    }
}

/// The number of unanswered requests.
fn open_requests(shared: &Shared<Vec<u32>>) -> usize {
    let of = |mailbox: &Mailbox| (0..).take_while(|n| mailbox.ahead(*n).is_some()).count();
    shared.mailboxes().all().map(of).sum()
}

/// Panics when it is dropped, with another value of this type as payload.
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 > 0 {
            panic_any(Bomb(self.0 - 1));
        }
    }
}

fn post_bomb(shared: &Shared<Vec<u32>>) {
    shared
        .post(0, |_: &mut Vec<u32>| panic_any(Bomb(5)))
        .unwrap();
}

/// The panic payload of another thread's post harms neither the server nor other clients.
#[test]
fn a_payload_that_panics_harms_nobody_who_comes_by() {
    for queue in Queue::ALL {
        let shared = section(Way::Message, |builder| builder.queue(queue));
        thread::scope(|scope| {
            scope.spawn(|| {
                post_bomb(&shared);
                post(&shared, 1);
            });
        });
        shared.set_way(Way::Combine);
        assert!(push(&shared, 2).is_ok(), "{queue}");
        let mut data = shared.call(0, |data| data.clone()).unwrap();
        data.sort_unstable();
        assert_eq!(data, [1, 2], "{queue}");
        assert_eq!(shared.statistics().panics, 1);
    }
}

/// The same while the server has an open request of its own, with its closure on its stack.
#[test]
fn a_payload_that_panics_leaves_no_request_behind() {
    let shared = section(Way::Message, |builder| builder);
    let (begun, has_begun) = channel();
    let (open, gate) = channel();
    // Kept alive, so that no other thread gets its number.
    let (end, has_ended) = channel::<()>();
    thread::scope(|scope| {
        let posted = &shared;
        scope.spawn(move || {
            post_bomb(posted);
            post(posted, 1);
            let _ = has_ended.recv();
        });
        wait_until(|| open_requests(&shared) == 2);
        shared.set_way(Way::Lock);
        let shared = &shared;
        // Under the lock, so that it serves no request when it is dropped.
        scope.spawn(move || {
            shared.call(0, move |_| {
                begun.send(()).unwrap();
                gate.recv().unwrap();
            })
        });
        has_begun.recv().unwrap();
        shared.set_way(Way::Combine);
        let caller = scope.spawn(move || {
            let text = String::from("on the caller's stack");
            let large = [7u64; 20];
            catch_unwind(AssertUnwindSafe(|| {
                shared.call(0, |data| (data.len(), text.len() as u64 + large[3]))
            }))
        });
        wait_until(|| open_requests(shared) == 3);
        open.send(()).unwrap();
        let result = caller.join().unwrap();
        assert_eq!(result.ok(), Some(Ok((1, 28))));
        drop(end);
    });
    assert_eq!(shared.statistics().panics, 1);
}

/// A thread that has counted its handle as dropped may hold the shared state a moment longer.
#[test]
fn a_handle_that_is_about_to_go_does_not_keep_the_data() {
    let owned = Owned::new(String::from("data"));
    let shared = Arc::clone(&owned.shared);
    let other = thread::spawn(move || {
        wait_until(|| shared.front.handles.load(Ordering::Acquire) == 0);
        // A few more, as the other thread is about to look.
        (0..100).for_each(|_| yield_now());
        drop(shared);
    });
    assert_eq!(owned.into_inner().unwrap(), "data");
    other.join().unwrap();
}

/// The proprietor cannot wait for itself; the handle that it gets back still works.
#[test]
fn the_proprietor_does_not_get_the_data() {
    let owned = Owned::builder().mode(Mode::Message).build(5).unwrap();
    let last = owned.clone();
    let ((open, gate), (send, back)) = (channel(), channel());
    owned.post(move |_| {
        gate.recv().unwrap();
        send.send(last.into_inner()).unwrap();
    });
    drop(owned);
    open.send(()).unwrap();
    let last = back.recv().unwrap().unwrap_err();
    assert!(!last.is_closed());
    assert_eq!(last.call(|data| *data), 5);
    assert_eq!(last.into_inner().unwrap(), 5);
}

/// This includes calls accepted earlier, which waited while the section was poisoned.
#[test]
fn who_waits_while_the_section_is_poisoned_is_refused() {
    let shared = section(Way::Lock, |builder| builder.poison(true));
    let (begun, has_begun) = channel();
    let (open, gate) = channel::<()>();
    thread::scope(|scope| {
        let shared = &shared;
        let breaking = scope.spawn(move || {
            catch_unwind(AssertUnwindSafe(|| {
                shared.call(0, move |_| {
                    begun.send(()).unwrap();
                    gate.recv().unwrap();
                    panic!("broken");
                })
            }))
        });
        has_begun.recv().unwrap();
        let waiting = scope.spawn(move || push(shared, 1));
        wait_until(|| shared.is_wanted());
        open.send(()).unwrap();
        assert!(breaking.join().unwrap().is_err());
        assert_eq!(waiting.join().unwrap(), Err(CallError::Poisoned));
    });
}

/// A thread's own post is served before its call, and poisons the section for it in every way.
#[test]
fn an_earlier_post_that_panics_poisons_the_call_that_serves_it() {
    for way in [Way::Lock, Way::Combine] {
        let shared = section(Way::Message, |builder| builder.poison(true));
        post_bomb(&shared);
        shared.set_way(way);
        assert_eq!(push(&shared, 1), Err(CallError::Poisoned), "{way}");
    }
}

/// This holds however the proprietor waits, and however many callers wait when the way changes to
/// message.
#[test]
fn an_idle_proprietor_leaves_the_lock_to_who_waits() {
    for waiters in [1, 2] {
        let shared = section(Way::Lock, |builder| {
            builder.wait(Wait::spin()).proprietor_wait(Wait::spin())
        });
        let (place, inside) = places(&shared);
        // SAFETY: both live in this frame as long as the guard; this thread is not inside.
        let held = unsafe { shared.acquire_as_proprietor(&place, &inside) };
        thread::scope(|scope| {
            for value in 0..waiters {
                let shared = &shared;
                scope.spawn(move || push(shared, value).unwrap());
            }
            // All of them: a later caller asks by message, and no thread serves here.
            wait_until(|| shared.waiting() == waiters);
            shared.set_way(Way::Message);
            assert_eq!(proprietor::attend(&shared, &held, 0), Pause::Wanted);
            drop(held);
            wait_until(|| !shared.is_wanted());
        });
        shared.set_way(Way::Lock);
        assert_eq!(shared.call(0, |data| data.len()), Ok(waiters as usize));
    }
}

/// The proprietor has no part when callers wait for each other, and sleeps.
#[test]
fn the_proprietor_keeps_out_of_other_ways() {
    let shared = section(Way::Lock, |builder| builder);
    let (place, inside) = places(&shared);
    // SAFETY: both live in this frame as long as the guard; this thread is not inside.
    let held = unsafe { shared.acquire_as_proprietor(&place, &inside) };
    thread::scope(|scope| {
        scope.spawn(|| push(&shared, 1).unwrap());
        wait_until(|| shared.is_wanted());
        assert_eq!(proprietor::attend(&shared, &held, 0), Pause::Idle);
        drop(held);
    });
}

/// The proprietor counts neither as a caller that had to wait nor as a waiter to leave the lock to.
#[test]
fn the_proprietor_does_not_wait_for_itself() {
    let shared = section(Way::Message, |builder| builder.lock(LockKind::Ticket));
    let (place, inside) = places(&shared);
    // SAFETY: both live in this frame as long as the guard; this thread is not inside.
    let held = unsafe { shared.acquire_as_proprietor(&place, &inside) };
    thread::scope(|scope| {
        scope.spawn(|| proprietor::serve(&shared));
        wait_until(|| shared.back.lock.is_awaited(&place));
        assert!(!shared.is_wanted());
        drop(held);
        shared.front.control.fetch_or(CLOSED, Ordering::AcqRel);
        shared.wake_proprietor();
    });
    let statistics = shared.statistics();
    assert_eq!((statistics.contended, statistics.callers), (0, 0));
}

/// Another section may lie at the address of one that a thread served; any thread may serve it.
#[test]
fn who_was_a_proprietor_is_none_any_more() {
    let shared = section(Way::Message, |builder| builder);
    shared.front.control.fetch_or(CLOSED, Ordering::AcqRel);
    proprietor::serve(&shared);
    let (_, inside) = places(&shared);
    inside.enter();
    let serves = serves_as_proprietor();
    inside.leave();
    assert!(!serves);
}

/// This includes a thread that is ending, whose number belongs to another thread by then.
#[test]
fn a_thread_s_last_calls_come_after_its_posts() {
    /// Calls as it is dropped, and reports whether the thread had a number then.
    struct Last(Arc<Shared<Vec<u32>>>, std::sync::mpsc::Sender<bool>);

    impl Drop for Last {
        fn drop(&mut self) {
            let had_number = crate::thread::number().is_some();
            let _ = push(&self.0, 3);
            let _ = self.1.send(had_number);
        }
    }

    thread_local! {
        static EARLY: std::cell::OnceCell<Last> = const { std::cell::OnceCell::new() };
        static LATE: std::cell::OnceCell<Last> = const { std::cell::OnceCell::new() };
    }

    let sections = [(); 2].map(|()| section(Way::Message, |builder| builder.depth(2)));
    let (send, told) = channel();
    let (early, late) = (sections[0].clone(), sections[1].clone());
    thread::spawn(move || {
        // One is dropped before the number and one after it, whatever the order is.
        EARLY.with(|it| it.set(Last(early.clone(), send.clone())).is_ok());
        for shared in [&early, &late] {
            post(shared, 1);
            post(shared, 2);
            shared.set_way(Way::Lock);
        }
        LATE.with(|it| it.set(Last(late.clone(), send)).is_ok());
    });
    let mut had_number: Vec<bool> = told.iter().collect();
    had_number.sort_unstable();
    assert_eq!(had_number, [false, true]);
    for shared in sections {
        assert_eq!(shared.call(0, |data| data.clone()), Ok(vec![1, 2, 3]));
    }
}
