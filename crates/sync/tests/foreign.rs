//! Foreign code wherever a section runs it: destructors, wakers, panics. Whatever it does, no
//! thread waits forever, no memory is corrupted, and the section keeps serving.
//!
//! | where | run by | inside of the section |
//! |---|---|---|
//! | a closure, and its captures when it ends | the server | yes |
//! | captures of a refused closure | the refusing thread or the caller | if it was already sent |
//! | a result, and the payload of a call's panic | the caller | no |
//! | the payload of a post's panic | by message the server, otherwise the poster | by message |
//! | a waker, woken | the thread that answers | if a closure does |
//! | a waker, cloned and dropped | the thread that polls | no |
//! | the data, dropped | the proprietor, or the thread with the last handle | no |
//!
//! Inside, the section refuses calls as reentrant; everything else is allowed there.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use hearth_sync::{
    Administrator, Answer, CallError, Copying, Mode, Owned, Queue, Reply, RequestError, Wait,
};

const MODES: &[Mode] = if cfg!(miri) {
    &[Mode::Message]
} else {
    &Mode::ALL
};
const QUEUES: [Queue; 2] = [Queue::Lines, Queue::Ring(Copying::Single)];
/// Longer than any busy machine needs. Only a failing test takes this long.
const FOR_EVER: Duration = Duration::from_secs(120);

/// Runs work that may hang, and fails the test if it does.
fn ends<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, wait) = channel();
    let thread = thread::spawn(move || _ = done.send(work()));
    match wait.recv_timeout(FOR_EVER) {
        Ok(result) => result,
        Err(RecvTimeoutError::Disconnected) => {
            resume_unwind(thread.join().expect_err("it panicked"))
        }
        Err(RecvTimeoutError::Timeout) => panic!("it waits for ever"),
    }
}

/// Act of foreign code when it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Call,
    Post,
    Look,
    SetMode(Mode),
    GoIntoInner,
    CallAnother,
    MakeOne,
    Panic,
}

const ACTS: [Act; 11] = [
    Act::Call,
    Act::Post,
    Act::Look,
    Act::SetMode(Mode::Lock),
    Act::SetMode(Mode::Combine),
    Act::SetMode(Mode::Message),
    Act::SetMode(Mode::Auto),
    Act::GoIntoInner,
    Act::CallAnother,
    Act::MakeOne,
    Act::Panic,
];

/// Foreign code as a value: it acts when dropped, and reports the result of its call.
struct Foreign {
    act: Act,
    section: Owned<u64>,
    another: Owned<u64>,
    told: Sender<Result<(), CallError>>,
    has_acted: AtomicBool,
}

impl Foreign {
    /// Once.
    fn act(&self) {
        if self.has_acted.swap(true, Ordering::Relaxed) {
            return;
        }
        let section = &self.section;
        let told = match self.act {
            Act::Call => section.checked_call(|data| *data += 1),
            Act::Post => section.checked_post(|data| *data += 1),
            Act::Look => {
                section.statistics();
                section.explain();
                let _ = (section.mode(), section.is_closed(), section.is_poisoned());
                section.checked_call(|_| ())
            }
            Act::SetMode(mode) => {
                section.set_mode(mode).expect("a thread can be started");
                section.checked_call(|_| ())
            }
            Act::GoIntoInner => {
                assert!(section.clone().into_inner().is_err(), "there are others");
                section.checked_call(|_| ())
            }
            Act::CallAnother => self.another.checked_call(|data| *data += 1),
            Act::MakeOne => {
                let new = Owned::builder().mode(Mode::Message).build(0u64);
                let new = new.expect("a thread can be started");
                new.checked_call(|data| *data += 1)
            }
            Act::Panic => {
                let _ = self.told.send(Ok(()));
                panic!("others' code");
            }
        };
        let _ = self.told.send(told);
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.act();
    }
}

/// The places where the caller's code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CodeSite {
    Closure,
    Captured,
    CapturedLarge,
    PostedClosure,
    PostedCaptured,
    Result,
    PayloadOfCall,
    PayloadOfPost,
    RefusedAtOnce,
    RefusedWhenServed,
}

const PLACES: [CodeSite; 10] = [
    CodeSite::Closure,
    CodeSite::Captured,
    CodeSite::CapturedLarge,
    CodeSite::PostedClosure,
    CodeSite::PostedCaptured,
    CodeSite::Result,
    CodeSite::PayloadOfCall,
    CodeSite::PayloadOfPost,
    CodeSite::RefusedAtOnce,
    CodeSite::RefusedWhenServed,
];

impl CodeSite {
    /// Runs foreign code at this place. Panics are expected.
    fn visit(self, section: &Owned<u64>, foreign: Foreign) {
        match self {
            CodeSite::Closure => section.call(|_| foreign.act()),
            CodeSite::Captured => section.call(move |_| drop(foreign)),
            CodeSite::CapturedLarge => {
                let large = [1u64; 50];
                section.call(move |data| {
                    *data += large.iter().sum::<u64>();
                    drop(foreign);
                });
            }
            CodeSite::PostedClosure => section.post(move |_| foreign.act()),
            CodeSite::PostedCaptured => section.post(move |_| drop(foreign)),
            CodeSite::Result => drop(section.call(move |_| foreign)),
            CodeSite::PayloadOfCall => {
                let ended = catch_unwind(AssertUnwindSafe(|| {
                    section.call(move |_| panic_any(foreign));
                }));
                drop(ended.expect_err("it panics"));
            }
            CodeSite::PayloadOfPost => section.post(move |_| panic_any(foreign)),
            CodeSite::RefusedAtOnce => {
                section.close();
                assert!(section.checked_call(move |_| drop(foreign)).is_err());
            }
            CodeSite::RefusedWhenServed => {
                let (leave, left) = channel::<()>();
                if section.mode() == Mode::Message {
                    // Both are sent before the first is served.
                    section.post(move |_| _ = left.recv());
                }
                let poison = || section.checked_post(|_| panic!("poison"));
                let _ = catch_unwind(AssertUnwindSafe(poison));
                let _ = section.checked_post(move |_| drop(foreign));
                drop(leave);
            }
        }
    }

    fn ends_the_section(self, act: Act) -> bool {
        // The proprietor dies when a payload panics.
        self == CodeSite::RefusedAtOnce || self == CodeSite::PayloadOfPost && act == Act::Panic
    }
}

#[test]
fn others_code_may_do_anything_anywhere() {
    // Miri needs a second for each case.
    let (modes, queues, acts): (&[Mode], &[Queue], &[Act]) = if cfg!(miri) {
        (MODES, &QUEUES[..1], &[Act::Call, Act::Panic])
    } else {
        (MODES, &QUEUES, &ACTS)
    };
    for &mode in modes {
        for &queue in queues {
            for place in PLACES {
                for &act in acts {
                    ends(move || visit(mode, queue, place, act));
                }
            }
        }
    }
}

fn visit(mode: Mode, queue: Queue, place: CodeSite, act: Act) {
    let what = format!("{mode}, {queue}, {place:?}, {act:?}");
    let builder = || Owned::builder().mode(mode).queue(queue);
    let section = builder().poison(place == CodeSite::RefusedWhenServed);
    let section = section.build(0).expect("a thread can be started");
    let another = builder().build(0).expect("a thread can be started");
    let (told, tells) = channel();
    let foreign = Foreign {
        act,
        section: section.clone(),
        another,
        told,
        has_acted: AtomicBool::new(false),
    };
    let panicked = catch_unwind(AssertUnwindSafe(|| place.visit(&section, foreign)));
    // The payload may be foreign code, too.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(panicked)));
    // This call comes after the posts.
    let _ = section.checked_call(|_| ());
    check(&what, mode, place, act, &tells);
    section.clear_poison();
    let now = section.checked_call(|data| *data += 1);
    if !place.ends_the_section(act) {
        assert_eq!(now, Ok(()), "{what}");
    }
}

fn check(
    what: &str,
    mode: Mode,
    place: CodeSite,
    act: Act,
    tells: &Receiver<Result<(), CallError>>,
) {
    let told = tells
        .recv()
        .unwrap_or_else(|_| panic!("{what}: it did not run"));
    let is_inside = matches!(
        place,
        CodeSite::Closure
            | CodeSite::Captured
            | CodeSite::CapturedLarge
            | CodeSite::PostedClosure
            | CodeSite::PostedCaptured
    );
    // Under the lock and combining, the poster runs it.
    let is_inside = is_inside || place == CodeSite::PayloadOfPost && mode == Mode::Message;
    match act {
        Act::CallAnother | Act::MakeOne | Act::Panic => assert_eq!(told, Ok(()), "{what}"),
        _ if place == CodeSite::PayloadOfPost && mode == Mode::Auto => {}
        _ if is_inside => assert_eq!(told, Err(CallError::Reentrant), "{what}"),
        _ if place == CodeSite::RefusedAtOnce => {
            assert_eq!(told, Err(CallError::OwnerDied), "{what}");
        }
        _ if place == CodeSite::RefusedWhenServed => assert!(told.is_err(), "{what}: {told:?}"),
        _ => assert_eq!(told, Ok(()), "{what}"),
    }
}

/// A proprietor that dies leaves nothing behind that would abort the process.
#[test]
fn what_a_proprietor_dies_of_ends_with_it() {
    /// Panics when it is dropped, with another value of this type as payload.
    struct Bomb(u32);
    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 > 0 {
                panic_any(Bomb(self.0 - 1));
            }
        }
    }
    for is_taken in [true, false] {
        for queue in QUEUES {
            let section = Owned::builder().mode(Mode::Message).queue(queue);
            let section = section.build(0).expect("a thread can be started");
            section.post(|_| panic_any(Bomb(5)));
            while !section.is_closed() {
                thread::yield_now();
            }
            if is_taken {
                match catch_unwind(AssertUnwindSafe(|| section.into_inner().ok())) {
                    Ok(data) => assert_eq!(data, Some(0)),
                    Err(bomb) => {
                        std::mem::forget(bomb);
                        panic!("it goes off here");
                    }
                }
            }
        }
    }
}

// ---- wakers -------------------------------------------------------------------------------------

/// A waker that does something when it is woken, and something else when it is dropped.
struct Strange<W: Fn() + Send + Sync, D: Fn() + Send + Sync> {
    woken: W,
    dropped: D,
}

impl<W: Fn() + Send + Sync, D: Fn() + Send + Sync> Wake for Strange<W, D> {
    fn wake(self: Arc<Self>) {
        (self.woken)();
    }
}

impl<W: Fn() + Send + Sync, D: Fn() + Send + Sync> Drop for Strange<W, D> {
    fn drop(&mut self) {
        (self.dropped)();
    }
}

fn waker(
    woken: impl Fn() + Send + Sync + 'static,
    dropped: impl Fn() + Send + Sync + 'static,
) -> Waker {
    Waker::from(Arc::new(Strange { woken, dropped }))
}

fn poll<R>(answer: &mut Answer<R>, waker: &Waker) -> Poll<Result<R, hearth_sync::Unanswered>> {
    pin!(answer).poll(&mut Context::from_waker(waker))
}

/// A waker that, when dropped, answers the very request whose answer it was to announce.
#[test]
fn a_waker_that_is_replaced_may_answer() {
    for sends in [true, false] {
        ends(move || {
            let (reply, mut answer) = Reply::new(Wait::park());
            let reply = Mutex::new(Some(reply));
            let first = waker(
                || (),
                move || {
                    let reply = reply.lock().unwrap().take().expect("once");
                    if sends {
                        reply.send(5);
                    }
                },
            );
            assert_eq!(poll(&mut answer, &first), Poll::Pending);
            drop(first);
            let Poll::Ready(result) = poll(&mut answer, Waker::noop()) else {
                panic!("it is answered");
            };
            assert_eq!(result.ok(), sends.then_some(5));
        });
    }
}

#[test]
fn a_waker_that_panics_when_it_goes_harms_who_polls() {
    let (reply, mut answer) = Reply::new(Wait::park());
    let first = waker(|| (), || panic!("a waker"));
    assert_eq!(poll(&mut answer, &first), Poll::Pending);
    drop(first);
    let is_woken = Arc::new(AtomicBool::new(false));
    let tell = Arc::clone(&is_woken);
    let second = waker(move || tell.store(true, Ordering::Relaxed), || ());
    catch_unwind(AssertUnwindSafe(|| _ = poll(&mut answer, &second))).expect_err("it panics");
    reply.send(1);
    assert!(is_woken.load(Ordering::Relaxed));
    assert_eq!(poll(&mut answer, &second), Poll::Ready(Ok(1)));
}

/// Polls the task inside `wake`, as some executors do.
#[test]
fn a_waker_may_poll_at_once() {
    ends(|| {
        let (reply, answer) = Reply::new(Wait::park());
        let answer = Arc::new(Mutex::new(answer));
        let found = Arc::new(AtomicU32::new(0));
        let (again, tell) = (Arc::clone(&answer), Arc::clone(&found));
        let waker = waker(
            move || {
                if let Poll::Ready(Ok(value)) = poll(&mut again.lock().unwrap(), Waker::noop()) {
                    tell.store(value, Ordering::Relaxed);
                }
            },
            || (),
        );
        assert_eq!(poll(&mut answer.lock().unwrap(), &waker), Poll::Pending);
        reply.send(9);
        assert_eq!(found.load(Ordering::Relaxed), 9);
    });
}

#[test]
fn a_waker_that_panics_harms_nobody_who_answers() {
    for &mode in MODES {
        let section = Owned::builder().mode(mode).poison(true);
        let waiting = Administrator::build(section, Vec::<Reply<u32>>::new(), 0)
            .expect("a thread can be started");
        let ask = || {
            let mut answer = waiting
                .request_later(|waiting, reply| waiting.push(reply))
                .expect("it is open");
            let waker = waker(|| panic!("a waker"), || ());
            // Also before the closure has stored the reply.
            assert_eq!(poll(&mut answer, &waker), Poll::Pending);
            answer
        };
        let answers = [ask(), ask(), ask()];
        waiting
            .owned()
            .call(|waiting| waiting.drain(..).for_each(|reply| reply.send(4)));
        for answer in answers {
            assert_eq!(answer.wait(), Ok(4), "{mode}");
        }
        // Replies dropped while their closure unwinds: a second panic would abort the process.
        let answer = ask();
        let ended = catch_unwind(AssertUnwindSafe(|| {
            waiting.owned().call(|waiting| {
                let _replies = std::mem::take(waiting);
                panic_any("the closure's own");
            });
        }));
        let payload = ended.expect_err("it panics");
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"the closure's own"));
        assert!(answer.wait().is_err());
        waiting.owned().clear_poison();
        assert_eq!(waiting.request(|_, reply| reply.send(1)), Ok(1));
    }
}

#[test]
fn a_waker_that_calls_the_section_is_refused_inside() {
    for &mode in MODES {
        ends(move || {
            let waiting =
                Administrator::build(Owned::builder().mode(mode), Vec::<Reply<u32>>::new(), 0)
                    .expect("a thread can be started");
            let mut answer = waiting
                .request_later(|waiting, reply| waiting.push(reply))
                .expect("it is open");
            let (told, tells) = channel();
            let again = waiting.clone();
            let waker = waker(
                move || {
                    let refused = again.request(|_, reply: Reply<u32>| reply.send(1));
                    let _ = told.send(refused);
                },
                || (),
            );
            assert_eq!(poll(&mut answer, &waker), Poll::Pending);
            waiting
                .owned()
                .call(|waiting| waiting.drain(..).for_each(|reply| reply.send(4)));
            let refused = tells.recv().expect("it was woken");
            assert_eq!(refused, Err(RequestError::Refused(CallError::Reentrant)));
            assert_eq!(poll(&mut answer, &waker), Poll::Ready(Ok(4)));
        });
    }
}

// ---- forgotten values ---------------------------------------------------------------------------

#[test]
fn forgotten_handles_and_answers_leave_the_section_as_it_is() {
    for &mode in MODES {
        let section = Owned::builder().mode(mode).build(0u64).expect("it starts");
        std::mem::forget(section.clone());
        let section = section.into_inner().expect_err("the other is not gone");
        assert_eq!(section.call(|data| *data), 0);
        let (reply, answer) = Reply::new(Wait::park());
        std::mem::forget(answer);
        assert!(!reply.is_abandoned());
        reply.send(String::from("nobody takes it"));
        let (reply, mut answer) = Reply::<u32>::new(Wait::park());
        assert_eq!(poll(&mut answer, Waker::noop()), Poll::Pending);
        std::mem::forget(reply);
        assert_eq!(poll(&mut answer, Waker::noop()), Poll::Pending);
    }
}
