//! Collection under every interleaving that the model checker can reach.
//!
//! One thread collects, by the steps that ship. Another does what the living do, one component
//! after another, as a worker would: messages, connections, and references that go from hand to
//! hand. Components lie in real blocks, with ports; half-channels are shared, and every operation
//! is the real one. Each model asserts that nobody is stopped who is woken in the end, and that
//! somebody who was garbage from the beginning is found.
//!
//! Canaries leave steps out or change their order. Loom cannot see the registry, the replacement of
//! ports, and the fields of components, whose references are kept by the model's thread; light
//! waits are models of the channels, since the first look makes them offers by the same function as
//! a stop.

use std::ptr;

use loom::thread;

use super::{PLAN, PLANTED, Plan, collect_of, planted};
use crate::abi::{self, Component, ComponentType, Kind, Port, Site, Tracer, Type, Value};
use crate::exchange::block::{self, Layout, port_place};
use crate::exchange::carrier;
use crate::exchange::channel::loom_tests::{
    INTEGER, Static, check, connect, header, never, receive, send, settle,
};
use crate::exchange::channel::{self, Channel, Origin, direction_of, disconnect};
use crate::exchange::component::request_stop;
use crate::exchange::values::heap;
use crate::exchange::values::trace::hearth_trace;
use crate::ground::choices::Choices;
use crate::hooks::Canary;
use crate::seats::offer::Stage;
use crate::seats::seat::{Identity, Seat, seat_of};

/// Bytes before a component's field, of two ports at most.
const FIELD: usize = size_of::<Component>() + 2 * size_of::<*mut Channel>();

static COMPONENT: Static<Type> = Static(Type {
    code: c"c".as_ptr(),
    kind: Kind::Component,
    size: size_of::<*mut Component>() as u32,
    flat: false,
    element: ptr::null(),
    field_count: 0,
    fields: ptr::null(),
    object_size: 0,
});

/// The field, a component or null.
fn field(component: *mut Component) -> *mut *mut Component {
    component.wrapping_byte_add(FIELD).cast()
}

unsafe extern "C" fn trace(component: *mut Component, tracer: *mut Tracer) {
    // SAFETY: the component is parked, and the tracer waits for this.
    unsafe {
        hearth_trace(
            tracer,
            &raw const COMPONENT.0,
            field(component).read().cast(),
        )
    };
}

const fn port(direction: u32, index: usize) -> Port {
    Port {
        name: c"port".as_ptr(),
        direction,
        payload: &raw const INTEGER.0,
        offset: size_of::<Component>() + index * size_of::<*mut Channel>(),
    }
}

static IN: Static<[Port; 1]> = Static([port(0, 0)]);
static OUT: Static<[Port; 1]> = Static([port(1, 0)]);
static BOTH: Static<[Port; 2]> = Static([port(0, 0), port(1, 1)]);

const fn kind_with(ports: &'static [Port]) -> Static<ComponentType> {
    Static(ComponentType {
        name: c"Sleeper".as_ptr(),
        size: FIELD + size_of::<*mut Component>(),
        resume: never,
        destroy: None,
        trace: Some(trace),
        port_count: ports.len() as u32,
        ports: ports.as_ptr(),
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

/// With an in.
static RECEIVER: Static<ComponentType> = kind_with(&IN.0);
/// With an out.
static SENDER: Static<ComponentType> = kind_with(&OUT.0);
/// With an in, and an out behind it.
static RELAY: Static<ComponentType> = kind_with(&BOTH.0);

/// A component, with the reference of its run.
#[derive(Clone, Copy)]
struct Who(*mut Component);
// SAFETY: one thread acts for the components, the other collects.
unsafe impl Send for Who {}

impl Who {
    /// Makes one as `component::make` does.
    fn new(id: u64, of: &'static ComponentType) -> Who {
        let layout = Layout::of(of);
        let block = heap::common_zeroed(ptr::null_mut(), layout.total).cast::<u8>();
        let _ = block.expose_provenance();
        // SAFETY: a fresh block of this layout.
        unsafe {
            let component = block.add(layout.component()).cast::<Component>();
            let ports = abi::ports(of);
            let identity = Identity {
                // The first is the main sequence's.
                id: 1 + id,
                number: 1,
                service: false,
            };
            component.write(header(of, ptr::null()));
            let seat = block.add(layout.seat).cast::<Seat>();
            seat.write(Seat::new(identity, Choices::root(None), ports.len() as u16));
            for (index, port) in ports.iter().enumerate() {
                let channel = block.cast::<Channel>().add(index);
                let origin = Origin::Port {
                    before_seat: (ports.len() - index) as u16,
                };
                Channel::make_at(channel, direction_of(port.direction), origin, ptr::null());
                port_place(component, port.offset).write(channel);
            }
            Who(component)
        }
    }

    /// Makes one that waits at its in.
    fn asleep(id: u64, of: &'static ComponentType) -> Who {
        let who = Who::new(id, of);
        who.sleep();
        who
    }

    fn seat(self) -> &'static Seat {
        // SAFETY: alive to the model's end.
        unsafe { seat_of(self.0) }
    }

    fn port(self, index: usize) -> &'static Channel {
        // SAFETY: alive to the model's end, and has so many ports.
        unsafe {
            let ports = abi::ports((*self.0).r#type);
            &*port_place(self.0, ports[index].offset).read()
        }
    }

    fn into(self) -> &'static Channel {
        self.port(0)
    }

    /// Its last port.
    fn out(self) -> &'static Channel {
        // SAFETY: types are static.
        self.port(unsafe { abi::ports((*self.0).r#type) }.len() - 1)
    }

    /// Begins to receive, which nobody can serve yet.
    fn sleep(self) {
        // SAFETY: the calling thread acts for it.
        let step = unsafe { receive(self.seat(), self.into(), ptr::null()) };
        assert_eq!(step, abi::Step::Blocked);
    }

    /// Keeps a reference to another in its field, or gives that back.
    fn keep(self, other: Option<Who>) {
        // SAFETY: the calling thread acts for it.
        unsafe {
            let before = field(self.0).replace(other.map_or(ptr::null_mut(), |other| other.0));
            if let Some(other) = other {
                other.retain();
            }
            if !before.is_null() {
                block::release(before);
            }
        }
    }

    /// Sends to somebody who waits.
    fn send(self, to: Who) {
        let value = Value::of_integer(7);
        // SAFETY: the calling thread acts for it.
        let step = unsafe { send(self.seat(), self.out(), value, false, ptr::null()) };
        assert!(
            step == abi::Step::Done && !to.is_stopped(),
            "one that could be woken was stopped"
        );
    }

    /// Goes on with what it was sent.
    fn go_on(self) {
        // SAFETY: the calling thread acts for it, and it has been woken.
        unsafe {
            carrier::wait(self.seat());
            // Of a send, the value would be given up otherwise.
            let stage = self.seat().state.stage();
            assert!(
                stage != Stage::Interrupted,
                "one that was woken was stopped"
            );
            assert_eq!(stage, Stage::Completed);
            settle(self.seat());
            assert!(
                (*self.0).outcome == abi::Step::Done as u8,
                "one that was woken was stopped"
            );
            assert_eq!((*self.0).received.integer, 7);
        }
    }

    fn is_stopped(self) -> bool {
        self.seat().is_stopping()
    }

    /// Adds a reference to its in, as `hearth_port_of` does.
    fn retain_into(self) {
        self.into().retain();
    }

    fn release_into(self) {
        // SAFETY: added by `retain_into`.
        unsafe { channel::release(self.into()) };
    }

    fn retain(self) {
        self.seat().retain();
    }

    fn release(self) {
        // SAFETY: added by `retain`, or that of its run.
        unsafe { block::release(self.0) };
    }

    /// Ends it.
    fn end(self) {
        if std::thread::panicking() {
            return;
        }
        if self.seat().state.stage() != Stage::Idle {
            request_stop(self.seat());
            // SAFETY: the other thread has ended.
            unsafe {
                carrier::wait(self.seat());
                settle(self.seat());
            }
        }
        for index in 0..2 {
            // SAFETY: types are static.
            if index < unsafe { abi::ports((*self.0).r#type) }.len() {
                disconnect(self.port(index));
            }
        }
        self.release();
    }
}

/// Collects among these while `life` goes on, and ends them. Returns the number collected.
fn collect_beside(plan: &'static Plan, all: &[Who], life: impl FnOnce()) -> usize {
    let collector = {
        let all: Vec<Who> = all.to_vec();
        all.iter().for_each(|who| who.retain());
        thread::spawn(move || {
            let seats = all.iter().map(|who| ptr::from_ref(who.seat())).collect();
            // SAFETY: retained above.
            unsafe { collect_of(seats, plan) }
        })
    };
    life();
    collector.join().unwrap()
}

fn collect_again(all: &[Who]) -> usize {
    let seats = all.iter().map(|who| {
        who.retain();
        ptr::from_ref(who.seat())
    });
    // SAFETY: retained just now.
    unsafe { collect_of(seats.collect(), &PLAN) }
}

fn end(all: &[Who]) {
    all.iter().for_each(|who| who.end());
}

// ---- a message ----------------------------------------------------------------------------------

/// A sends to C, who is connected. C is woken, and sleeps again.
fn message(plan: &'static Plan) {
    let (a, c) = (Who::new(1, &SENDER.0), Who::asleep(2, &RECEIVER.0));
    let garbage = Who::asleep(3, &RECEIVER.0);
    connect(a.out(), c.into());
    let all = [a, c, garbage];
    let collected = collect_beside(plan, &all, || {
        a.send(c);
        c.go_on();
        c.sleep();
    });
    assert!(!c.is_stopped(), "one that could be woken was stopped");
    assert!(garbage.is_stopped() && collected == 1, "garbage was missed");
    end(&all);
}

#[test]
fn loom_a_message_races_with_a_collection() {
    check(3, || message(&PLAN));
}

/// A and C pass a token in a ring: whenever one is looked at, it may be asleep, and the other has
/// the token.
fn token(plan: &'static Plan) {
    // Looked at first, when the other has the token.
    let c = Who::asleep(1, &RELAY.0);
    let a = Who::new(2, &RELAY.0);
    connect(a.out(), c.into());
    connect(c.out(), a.into());
    let all = [c, a];
    let collected = collect_beside(plan, &all, || {
        a.send(c);
        a.sleep();
        c.go_on();
        c.send(a);
        c.sleep();
        a.go_on();
    });
    assert!(collected == 0, "one that could be woken was stopped");
    end(&all);
}

#[test]
fn loom_a_token_races_with_a_collection() {
    check(2, || token(&PLAN));
}

// ---- a connection -------------------------------------------------------------------------------

/// A has a reference to C, takes C's half-channel, lets go of C, connects, lets go of the
/// half-channel, and sends.
fn connection(plan: &'static Plan) {
    let (a, c) = (Who::new(1, &SENDER.0), Who::asleep(2, &RECEIVER.0));
    let garbage = Who::asleep(3, &RECEIVER.0);
    c.retain();
    let all = [a, c, garbage];
    let collected = collect_beside(plan, &all, || {
        c.retain_into();
        c.release();
        connect(a.out(), c.into());
        c.release_into();
        a.send(c);
        c.go_on();
    });
    assert!(!c.is_stopped(), "one that could be woken was stopped");
    assert!(garbage.is_stopped() && collected == 1, "garbage was missed");
    end(&all);
}

#[test]
fn loom_a_connection_races_with_a_collection() {
    check(3, || connection(&PLAN));
}

// ---- a disconnection ----------------------------------------------------------------------------

/// A sends to C and disconnects itself: C is garbage from then on, and found now or later.
fn disconnection(plan: &'static Plan) {
    let (a, c) = (Who::new(1, &SENDER.0), Who::asleep(2, &RECEIVER.0));
    connect(a.out(), c.into());
    let all = [a, c];
    let collected = collect_beside(plan, &all, || {
        a.send(c);
        c.go_on();
        c.sleep();
        assert!(!c.is_stopped(), "one that could be woken was stopped");
        disconnect(a.out());
    });
    assert_eq!(collected + collect_again(&all), 1, "garbage was missed");
    assert!(c.is_stopped());
    end(&all);
}

#[test]
fn loom_a_disconnection_races_with_a_collection() {
    check(3, || disconnection(&PLAN));
}

/// A has C's half-channel, connects it, sends, disconnects, and lets go of it, all at once: nobody
/// can tell afterwards, but that C has run.
fn short_connection(plan: &'static Plan) {
    let (a, c) = (Who::new(1, &SENDER.0), Who::asleep(2, &RECEIVER.0));
    c.retain_into();
    let all = [a, c];
    let collected = collect_beside(plan, &all, || {
        connect(a.out(), c.into());
        a.send(c);
        disconnect(a.out());
        c.release_into();
        c.go_on();
        assert!(!c.is_stopped(), "one that was woken was stopped");
    });
    assert!(collected == 0, "one that was woken was stopped");
    end(&all);
}

#[test]
fn loom_a_short_connection_races_with_a_collection() {
    check(3, || short_connection(&PLAN));
}

// ---- a reference given --------------------------------------------------------------------------

/// A gives B its reference to C with a message. B connects C and sends.
fn gift(plan: &'static Plan) {
    let (a, b) = (Who::new(1, &SENDER.0), Who::asleep(2, &RELAY.0));
    let c = Who::asleep(3, &RECEIVER.0);
    connect(a.out(), b.into());
    c.retain();
    let all = [a, b, c];
    let collected = collect_beside(plan, &all, || {
        // The reference goes with the value, without being counted again.
        a.send(b);
        disconnect(a.out());
        b.go_on();
        c.retain_into();
        c.release();
        connect(b.out(), c.into());
        c.release_into();
        b.send(c);
        c.go_on();
    });
    assert!(collected == 0, "one that could be woken was stopped");
    end(&all);
}

#[test]
fn loom_a_reference_given_races_with_a_collection() {
    check(2, || gift(&PLAN));
}

/// C gives B a reference to itself and sleeps. B takes C's half-channel and lets go of C, connects
/// and sends.
fn gift_of_itself(plan: &'static Plan) {
    let (b, c) = (Who::new(1, &SENDER.0), Who::new(2, &RECEIVER.0));
    let all = [b, c];
    let collected = collect_beside(plan, &all, || {
        c.retain();
        c.sleep();
        c.retain_into();
        c.release();
        connect(b.out(), c.into());
        c.release_into();
        b.send(c);
        c.go_on();
    });
    assert!(collected == 0, "one that could be woken was stopped");
    end(&all);
}

#[test]
fn loom_a_gift_of_itself_races_with_a_collection() {
    check(3, || gift_of_itself(&PLAN));
}

// ---- garbage ------------------------------------------------------------------------------------

/// Two who wait for each other, and one who waits for nobody, go in one collection whatever others
/// do meanwhile.
#[test]
fn loom_a_ring_is_found_beside_the_living() {
    check(2, || {
        let ring = [Who::new(1, &RELAY.0), Who::new(2, &RELAY.0)];
        connect(ring[0].out(), ring[1].into());
        connect(ring[1].out(), ring[0].into());
        ring.iter().for_each(|who| who.sleep());
        let (a, c) = (Who::new(3, &SENDER.0), Who::asleep(4, &RECEIVER.0));
        connect(a.out(), c.into());
        let all = [ring[0], ring[1], a, c];
        let collected = collect_beside(&PLAN, &all, || {
            a.send(c);
            c.go_on();
        });
        assert_eq!(collected, 2, "garbage was missed");
        assert!(ring.iter().all(|who| who.is_stopped()));
        end(&all);
    });
}

// ---- fields -------------------------------------------------------------------------------------

/// B keeps C in its field. A sends to B, who takes C's half-channel, lets go of C, connects and
/// sends. Beside them are two that keep each other and are forgotten.
fn kept(plan: &'static Plan) {
    let (a, b) = (Who::new(1, &SENDER.0), Who::new(2, &RELAY.0));
    let c = Who::asleep(3, &RECEIVER.0);
    let forgotten = [Who::new(4, &RECEIVER.0), Who::new(5, &RECEIVER.0)];
    connect(a.out(), b.into());
    b.keep(Some(c));
    forgotten[0].keep(Some(forgotten[1]));
    forgotten[1].keep(Some(forgotten[0]));
    for who in [b, forgotten[0], forgotten[1]] {
        who.sleep();
    }
    let all = [a, b, c, forgotten[0], forgotten[1]];
    let collected = collect_beside(plan, &all, || {
        a.send(b);
        disconnect(a.out());
        b.go_on();
        c.retain_into();
        b.keep(None);
        connect(b.out(), c.into());
        c.release_into();
        b.send(c);
        c.go_on();
    });
    assert!(
        !b.is_stopped() && !c.is_stopped(),
        "one that could be woken was stopped"
    );
    assert_eq!(collected, 2, "garbage was missed");
    forgotten.iter().for_each(|who| who.keep(None));
    end(&all);
}

#[test]
fn loom_a_kept_reference_races_with_a_collection() {
    check(2, || kept(&PLAN));
}

// ---- canaries -----------------------------------------------------------------------------------

fn planted_as(canary: Canary) -> &'static Plan {
    const ALL: &[(Canary, Plan)] = &PLANTED;
    let found = ALL.iter().find(|(one, _)| *one == canary);
    &found.expect("it is planted").1
}

/// References to components are not looked at again.
#[test]
#[should_panic(expected = "woken was stopped")]
fn loom_canary_components_not_looked_at_are_found() {
    check(3, || {
        connection(planted_as(Canary::ComponentsNotLookedAt));
    });
}

/// References to half-channels are not looked at.
#[test]
#[should_panic(expected = "woken was stopped")]
fn loom_canary_half_channels_not_looked_at_are_found() {
    check(3, || {
        connection(planted_as(Canary::HalfChannelsNotLookedAt));
    });
}

/// Half-channels are looked at before components: they are taken from these in between.
#[test]
#[should_panic(expected = "woken was stopped")]
fn loom_canary_half_channels_before_components_are_found() {
    check(3, || connection(planted_as(Canary::HalfChannelsFirst)));
}

/// Nobody looks in the end whether they still sleep.
#[test]
#[should_panic(expected = "woken was stopped")]
fn loom_canary_no_last_look_is_found() {
    check(3, || short_connection(planted_as(Canary::NoLastLook)));
}

/// Nobody looks again at all.
#[test]
#[should_panic(expected = "woken was stopped")]
fn loom_canary_a_single_look_is_found() {
    const SINGLE: Plan = planted(&[]);
    check(3, || token(&SINGLE));
}
