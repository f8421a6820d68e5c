//! The protocol under every interleaving that the model checker can reach, on shrunken cases.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p hearth-runtime --release loom_`.
//!
//! Loom cannot see the components' own structs, which are C's plain memory (their writers hold a
//! claim, and `offer` checks the claim's ordering with a watched cell written beside them); the
//! thread carrier's parker; reuse of hubs. Workers are in `loom_workers.rs`.

use std::ffi::CStr;
use std::ptr;

use loom::thread;
use std::sync::Arc;

use super::rendezvous::{acknowledge, release_sender};
pub(crate) use super::rendezvous::{receive, send, settle};
use super::select::select;
pub(crate) use super::wiring::connect;
use super::{Channel, Direction, disconnect};
use crate::abi::{
    Arm, Component, ComponentType, Held, Kind, STOPPED, Site, Step, Type, Value, held_of,
};
use crate::exchange::carrier::{self, Worker};
use crate::exchange::component::request_stop;
use crate::ground::choices::Choices;
use crate::ground::planted_faults::faults;
use crate::seats::seat::{Identity, Seat, seat_of};

pub(crate) struct Static<T>(pub(crate) T);
// SAFETY: descriptors are never written.
unsafe impl<T> Sync for Static<T> {}

pub(crate) static INTEGER: Static<Type> = Static(Type {
    code: c"i".as_ptr(),
    kind: Kind::Integer,
    size: 4,
    flat: true,
    element: ptr::null(),
    field_count: 0,
    fields: ptr::null(),
    object_size: 0,
});

pub(crate) unsafe extern "C" fn never(_: *mut Component) -> Step {
    unreachable!("models call the protocol themselves")
}

/// A type of components without ports.
pub(super) const fn kind_of(
    name: &'static CStr,
    resume: unsafe extern "C" fn(*mut Component) -> Step,
) -> Static<ComponentType> {
    Static(ComponentType {
        name: name.as_ptr(),
        size: size_of::<Component>(),
        resume,
        destroy: None,
        trace: None,
        port_count: 0,
        ports: ptr::null(),
        service: false,
        declared: Site {
            file: ptr::null(),
            line: 0,
            column: 0,
            text: ptr::null(),
        },
        heap_bytes: 0,
        heap_largest: 0,
    })
}

static ACTOR: Static<ComponentType> = kind_of(c"Actor", never);

/// The head of a component's struct.
pub(crate) fn header(of: *const ComponentType, home: *const Worker) -> Component {
    Component {
        r#type: of,
        home: home.cast(),
        next: ptr::null_mut(),
        waits_at: ptr::null_mut(),
        waits_in: ptr::null(),
        received: Value::NOTHING,
        attention: 0.into(),
        raised: 0,
        arm: 0,
        stage: 0,
        passes_left: u32::MAX,
        waiting: 0,
        outcome: 0,
        destination: 0,
        heap: 0,
        history: 0,
    }
}

/// A component's block of memory; `component` begins with one.
#[repr(C)]
struct Body<C> {
    seat: Seat,
    component: C,
}

/// Makes a component.
pub(super) fn make<C>(id: u64, component: C) -> *mut Component {
    let identity = Identity {
        id,
        number: 1,
        service: false,
    };
    let body = Box::into_raw(Box::new(Body {
        seat: Seat::new(identity, Choices::root(None), 0),
        component,
    }));
    let _ = body.expose_provenance();
    // SAFETY: just made.
    unsafe { (&raw mut (*body).component).cast() }
}

/// Frees a component, unless the model has failed: its objects are unusable then.
///
/// # Safety
/// It was made from a `C`, and nothing uses it any more.
pub(super) unsafe fn free<C>(component: *mut Component) {
    if std::thread::panicking() {
        return;
    }
    // SAFETY: as the caller promises.
    unsafe {
        let seat = ptr::from_ref(seat_of(component)).cast_mut();
        drop(Box::from_raw(seat.cast::<Body<C>>()));
    }
}

/// A component whose thread is the model's.
struct Actor {
    component: *mut Component,
}

// SAFETY: one model thread acts for each actor; the others only ask it to stop.
unsafe impl Send for Actor {}
// SAFETY: as above.
unsafe impl Sync for Actor {}

impl Actor {
    fn new(id: u64) -> Arc<Actor> {
        let component = make(id, header(&raw const ACTOR.0, ptr::null()));
        Arc::new(Actor { component })
    }

    fn seat(&self) -> &Seat {
        // SAFETY: lives as long as the actor.
        unsafe { seat_of(self.component) }
    }

    /// Treats a step as a carrier does.
    fn carry(&self, step: Step) -> Step {
        if step != Step::Blocked {
            return step;
        }
        carrier::wait(self.seat());
        // SAFETY: woken, and this thread carries the actor.
        unsafe {
            settle(self.seat());
            match (*self.component).outcome {
                0 => Step::Done,
                2 => {
                    assert_ne!((*self.component).raised, 0);
                    Step::Raised
                }
                other => panic!("a blocked operation ended with outcome {other}"),
            }
        }
    }

    fn send(&self, channel: &Half, number: i32) -> Step {
        let value = Value::of_integer(number);
        // SAFETY: this thread acts for the actor.
        let step = unsafe { send(self.seat(), channel.get(), value, false, ptr::null()) };
        self.carry(step)
    }

    fn receive(&self, channel: &Half) -> Option<i32> {
        // SAFETY: this thread acts for the actor.
        let step = unsafe { receive(self.seat(), channel.get(), ptr::null()) };
        self.taken(step)
    }

    fn select(&self, channels: &[&Half]) -> Option<(u32, i32)> {
        let arms: Vec<Arm> = channels
            .iter()
            .map(|half| Arm {
                channel: half.0.cast(),
                acknowledge: false,
                site: ptr::null(),
            })
            .collect();
        // SAFETY: this thread acts for the actor.
        unsafe {
            let step = select(self.seat(), &arms, false, ptr::null());
            let number = self.taken(step)?;
            Some(((*self.component).arm, number))
        }
    }

    fn taken(&self, step: Step) -> Option<i32> {
        match self.carry(step) {
            // SAFETY: the actor is awake and has received.
            Step::Done => Some(unsafe { (*self.component).received.integer }),
            _ => None,
        }
    }

    fn acknowledge(&self, channel: &Half) -> Option<(i32, Held)> {
        // SAFETY: this thread acts for the actor.
        unsafe {
            let step = acknowledge(self.seat(), channel.get(), ptr::null());
            let number = self.taken(step)?;
            Some((number, held_of(self.component).read()))
        }
    }

    fn raised(&self) -> u32 {
        // SAFETY: the actor is awake.
        unsafe { (*self.component).raised }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // SAFETY: the last of the model's threads has let go of it.
        unsafe { free::<Component>(self.component) };
    }
}

/// A half-channel of the model.
pub(super) struct Half(pub(super) *mut Channel);
// SAFETY: half-channels are shared between threads by design.
unsafe impl Send for Half {}
// SAFETY: as above.
unsafe impl Sync for Half {}

impl Half {
    fn out() -> Arc<Half> {
        Arc::new(Half(Channel::new(
            &raw const INTEGER.0,
            Direction::Out,
            ptr::null(),
        )))
    }

    fn into() -> Arc<Half> {
        Arc::new(Half(Channel::new(
            &raw const INTEGER.0,
            Direction::In,
            ptr::null(),
        )))
    }

    /// Makes a half-channel of a worker.
    pub(super) fn at(direction: Direction, worker: &'static Worker) -> Arc<Half> {
        Arc::new(Half(Channel::new(&raw const INTEGER.0, direction, worker)))
    }

    pub(super) fn get(&self) -> &Channel {
        // SAFETY: alive as long as the half.
        unsafe { &*self.0 }
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        // SAFETY: the model's reference; peers may go in any order.
        unsafe { super::release(self.0) };
    }
}

pub(crate) fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // `LOOM_MAX_PREEMPTIONS` overrides it.
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.max_branches = 20_000;
    faults::heal();
    builder.check(model);
}

#[test]
fn loom_one_sender_one_receiver() {
    check(4, || {
        let (s, r) = (Actor::new(1), Actor::new(2));
        let (out, into) = (Half::out(), Half::into());
        connect(out.get(), into.get());
        let sender = {
            let (s, out) = (s.clone(), out.clone());
            thread::spawn(move || {
                assert_eq!(s.send(&out, 1), Step::Done);
                assert_eq!(s.send(&out, 2), Step::Done);
            })
        };
        assert_eq!(r.receive(&into), Some(1));
        assert_eq!(r.receive(&into), Some(2));
        sender.join().unwrap();
    });
}

#[test]
fn loom_two_senders_two_receivers() {
    check(2, || {
        let outs = [Half::out(), Half::out()];
        let ins = [Half::into(), Half::into()];
        for out in &outs {
            for into in &ins {
                connect(out.get(), into.get());
            }
        }
        let senders: Vec<_> = outs
            .iter()
            .enumerate()
            .map(|(index, out)| {
                let (s, out) = (Actor::new(1 + index as u64), out.clone());
                thread::spawn(move || assert_eq!(s.send(&out, 1 + index as i32), Step::Done))
            })
            .collect();
        let other = {
            let (r, into) = (Actor::new(3), ins[1].clone());
            thread::spawn(move || r.receive(&into).unwrap())
        };
        let r = Actor::new(4);
        let first = r.receive(&ins[0]).unwrap();
        let second = other.join().unwrap();
        for sender in senders {
            sender.join().unwrap();
        }
        assert_eq!(first + second, 3, "each value once");
        assert_ne!(first, second);
    });
}

/// One receiver selects twice over two hubs with a sender each.
fn select_over_two_hubs() {
    let outs = [Half::out(), Half::out()];
    let ins = [Half::into(), Half::into()];
    for (out, into) in outs.iter().zip(&ins) {
        connect(out.get(), into.get());
    }
    let senders: Vec<_> = outs
        .iter()
        .enumerate()
        .map(|(index, out)| {
            let (s, out) = (Actor::new(1 + index as u64), out.clone());
            thread::spawn(move || assert_eq!(s.send(&out, index as i32), Step::Done))
        })
        .collect();
    let r = Actor::new(3);
    let mut seen = [false; 2];
    for _ in 0..2 {
        let (arm, number) = r.select(&[&ins[0], &ins[1]]).unwrap();
        assert_eq!(arm, number as u32, "each arm gets its own sender's value");
        assert!(!seen[arm as usize], "a value came twice");
        seen[arm as usize] = true;
    }
    for sender in senders {
        sender.join().unwrap();
    }
}

#[test]
fn loom_select_over_two_hubs() {
    check(3, select_over_two_hubs);
}

#[test]
fn loom_two_selects_cross() {
    check(2, || {
        let outs = [Half::out(), Half::out()];
        // Each receiver has a half-channel at each sender, in opposite order.
        let ins: Vec<_> = (0..4).map(|_| Half::into()).collect();
        connect(outs[0].get(), ins[0].get());
        connect(outs[1].get(), ins[1].get());
        connect(outs[1].get(), ins[2].get());
        connect(outs[0].get(), ins[3].get());
        let senders: Vec<_> = outs
            .iter()
            .enumerate()
            .map(|(index, out)| {
                let (s, out) = (Actor::new(1 + index as u64), out.clone());
                thread::spawn(move || assert_eq!(s.send(&out, 1 + index as i32), Step::Done))
            })
            .collect();
        let other = {
            let (r, a, b) = (Actor::new(3), ins[2].clone(), ins[3].clone());
            thread::spawn(move || r.select(&[&a, &b]).unwrap().1)
        };
        let r = Actor::new(4);
        let first = r.select(&[&ins[0], &ins[1]]).unwrap().1;
        let second = other.join().unwrap();
        for sender in senders {
            sender.join().unwrap();
        }
        assert_eq!(first + second, 3);
        assert_ne!(first, second);
    });
}

#[test]
fn loom_disconnect_races() {
    check(3, || {
        let (s, r) = (Actor::new(1), Actor::new(2));
        let (out, into) = (Half::out(), Half::into());
        connect(out.get(), into.get());
        let sender = {
            let (s, out) = (s.clone(), out.clone());
            thread::spawn(move || assert_eq!(s.send(&out, 7), Step::Done))
        };
        let receiver = {
            let (r, into) = (r.clone(), into.clone());
            thread::spawn(move || assert_eq!(r.receive(&into), Some(7)))
        };
        disconnect(out.get());
        connect(into.get(), out.get());
        sender.join().unwrap();
        receiver.join().unwrap();
    });
}

#[test]
fn loom_a_third_party_connects_pending_ends() {
    check(3, || {
        let (s, r) = (Actor::new(1), Actor::new(2));
        let (out, into) = (Half::out(), Half::into());
        let sender = {
            let out = out.clone();
            thread::spawn(move || assert_eq!(s.send(&out, 7), Step::Done))
        };
        let receiver = {
            let into = into.clone();
            thread::spawn(move || assert_eq!(r.receive(&into), Some(7)))
        };
        connect(out.get(), into.get());
        sender.join().unwrap();
        receiver.join().unwrap();
    });
}

#[test]
fn loom_two_connects_merge_three_hubs() {
    check(2, || {
        let out = Half::out();
        let ins = [Half::into(), Half::into()];
        let s = Actor::new(1);
        let connectors: Vec<_> = ins
            .iter()
            .map(|into| {
                let (out, into) = (out.clone(), into.clone());
                thread::spawn(move || connect(out.get(), into.get()))
            })
            .collect();
        let receiver = {
            let (r, into) = (Actor::new(2), ins[0].clone());
            thread::spawn(move || r.receive(&into))
        };
        assert_eq!(s.send(&out, 7), Step::Done);
        for connector in connectors {
            connector.join().unwrap();
        }
        assert_eq!(receiver.join().unwrap(), Some(7));
    });
}

/// Both ends are asked to stop while they meet: they end alike.
fn stop_races() {
    let (s, r) = (Actor::new(1), Actor::new(2));
    let (out, into) = (Half::out(), Half::into());
    connect(out.get(), into.get());
    let sender = {
        let (s, out) = (s.clone(), out.clone());
        thread::spawn(move || s.send(&out, 7))
    };
    let receiver = {
        let (r, into) = (r.clone(), into.clone());
        thread::spawn(move || r.receive(&into))
    };
    request_stop(r.seat());
    request_stop(s.seat());
    let (sent, received) = (sender.join().unwrap(), receiver.join().unwrap());
    match received {
        Some(number) => assert_eq!((sent, number), (Step::Done, 7)),
        None => assert_eq!(
            (sent, s.raised(), r.raised()),
            (Step::Raised, STOPPED, STOPPED)
        ),
    }
}

#[test]
fn loom_stop_races() {
    check(3, stop_races);
}

#[test]
fn loom_stop_races_with_a_sender_won_and_given_back() {
    check(2, || {
        let outs = [Half::out(), Half::out()];
        let ins = [Half::into(), Half::into()];
        for (out, into) in outs.iter().zip(&ins) {
            connect(out.get(), into.get());
        }
        let actors = [Actor::new(1), Actor::new(2)];
        let senders: Vec<_> = outs
            .iter()
            .zip(&actors)
            .map(|(out, s)| {
                let (s, out) = (s.clone(), out.clone());
                thread::spawn(move || s.send(&out, 7))
            })
            .collect();
        let receiver = {
            let (r, a, b) = (Actor::new(3), ins[0].clone(), ins[1].clone());
            thread::spawn(move || r.select(&[&a, &b]).unwrap().0)
        };
        request_stop(actors[1].seat());
        // If the second has stopped unserved, the first is the receiver's.
        let arm = receiver.join().unwrap();
        request_stop(actors[0].seat());
        for (index, sender) in senders.into_iter().enumerate() {
            let expected = if index == arm as usize {
                Step::Done
            } else {
                Step::Raised
            };
            assert_eq!(sender.join().unwrap(), expected);
        }
    });
}

#[test]
fn loom_acknowledge_holds_until_released() {
    check(3, || {
        let (s, r) = (Actor::new(1), Actor::new(2));
        let (out, into) = (Half::out(), Half::into());
        connect(out.get(), into.get());
        let released = Arc::new(loom::sync::atomic::AtomicBool::new(false));
        let sender = {
            let (s, out, released) = (s.clone(), out.clone(), released.clone());
            thread::spawn(move || {
                assert_eq!(s.send(&out, 7), Step::Done);
                assert!(released.load(std::sync::atomic::Ordering::Relaxed));
            })
        };
        let (number, mut held) = r.acknowledge(&into).unwrap();
        assert_eq!(number, 7);
        released.store(true, std::sync::atomic::Ordering::Relaxed);
        // SAFETY: `held` came from this actor's acknowledge.
        unsafe { release_sender(&mut held, true) };
        sender.join().unwrap();
    });
}

/// A carrier that has just seen a component block still reads its part of the seat: a worker may
/// call it home, a select returns its scratch space. The thread that completes the wait leaves that
/// part alone.
#[test]
fn loom_a_failed_acknowledge_leaves_the_carriers_part_alone() {
    check(3, || {
        let (s, r) = (Actor::new(1), Actor::new(2));
        let (out, into) = (Half::out(), Half::into());
        connect(out.get(), into.get());
        let sender = {
            let (s, out) = (s.clone(), out.clone());
            thread::spawn(move || {
                // SAFETY: this thread acts for the actor, and carries it.
                unsafe {
                    let value = Value::of_integer(7);
                    let step = send(s.seat(), out.get(), value, false, ptr::null());
                    s.seat().more.with_mut(|more| more.origin = 1);
                    assert_eq!(s.carry(step), Step::Raised);
                }
            })
        };
        let (number, mut held) = r.acknowledge(&into).unwrap();
        assert_eq!(number, 7);
        // SAFETY: `held` came from this actor's acknowledge.
        unsafe { release_sender(&mut held, false) };
        sender.join().unwrap();
    });
}

#[test]
fn loom_stop_races_with_the_release_of_a_held_sender() {
    check(3, || {
        let (s, r) = (Actor::new(1), Actor::new(2));
        let (out, into) = (Half::out(), Half::into());
        connect(out.get(), into.get());
        let sender = {
            let (s, out) = (s.clone(), out.clone());
            thread::spawn(move || s.send(&out, 7))
        };
        let receiver = {
            let (r, into) = (r.clone(), into.clone());
            thread::spawn(move || {
                let taken = r.acknowledge(&into);
                if let Some((number, mut held)) = taken {
                    assert_eq!(number, 7);
                    // SAFETY: `held` came from this actor's acknowledge.
                    unsafe { release_sender(&mut held, false) };
                }
                taken.is_some()
            })
        };
        request_stop(s.seat());
        let sent = sender.join().unwrap();
        assert_eq!(sent, Step::Raised);
        let by_stop = s.raised() == STOPPED;
        // A sender stopped before it was received leaves the receiver waiting.
        request_stop(r.seat());
        let was_received = receiver.join().unwrap();
        assert!(by_stop || was_received);
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn loom_canary_an_ignored_stop_is_found() {
    check(3, || {
        faults::plant_ignored_stop();
        stop_races();
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn loom_canary_registering_without_a_look_is_found() {
    check(3, || {
        faults::plant_blind_registration();
        select_over_two_hubs();
    });
}
