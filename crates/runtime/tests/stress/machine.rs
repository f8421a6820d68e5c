//! Components made by hand in Rust: a program steps from one operation to the next.

use std::ffi::{CStr, c_char};
use std::ptr;
use std::sync::{Mutex, Once};

use hearth_runtime::abi::{
    Arm, Component, ComponentType, Held, Kind, Port, STOPPED, Site, Step, Type, Value, held_of,
};
use hearth_runtime::c;
use hearth_runtime::channel::Channel;
use hearth_runtime::external::{self, Ticket};

pub(crate) struct Static<T>(pub(crate) T);
// SAFETY: descriptors are never written.
unsafe impl<T> Sync for Static<T> {}

const NOWHERE: Site = Site {
    file: ptr::null(),
    line: 0,
    column: 0,
    text: ptr::null(),
};

const fn scalar(code: &'static CStr, kind: Kind, size: u32) -> Type {
    Type {
        code: code.as_ptr(),
        kind,
        size,
        flat: true,
        element: ptr::null(),
        field_count: 0,
        fields: ptr::null(),
        object_size: 0,
    }
}

pub(crate) static INTEGER: Static<Type> = Static(scalar(c"i", Kind::Integer, 4));
pub(crate) static INTEGERS: Static<Type> = Static(Type {
    element: &raw const INTEGER.0,
    ..scalar(c"Ai", Kind::Array, 8)
});
/// An out half-channel as a payload.
pub(crate) static REPLY: Static<Type> = Static(Type {
    element: &raw const INTEGER.0,
    ..scalar(c"Ii", Kind::In, 8)
});

pub(crate) const PORTS: usize = 4;

/// A component with a few integer ports each way and a program.
#[repr(C)]
pub(crate) struct Machine {
    base: Component,
    outs: [*mut Channel; PORTS],
    ins: [*mut Channel; PORTS],
    program: Option<Box<dyn Program>>,
}

/// The last operation's outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    Start,
    Done,
    Raised,
}

/// A program's next action: an operation, already begun, or the end.
pub(crate) enum Next {
    Operation(Step),
    End,
}

pub(crate) trait Program: Send {
    fn next(&mut self, me: Me, event: Event) -> Next;
}

impl<F: FnMut(Me, Event) -> Next + Send> Program for F {
    fn next(&mut self, me: Me, event: Event) -> Next {
        self(me, event)
    }
}

/// The running component, as its program sees it.
#[derive(Clone, Copy)]
pub(crate) struct Me(*mut Machine);

unsafe extern "C" fn resume(component: *mut Component) -> Step {
    let me = Me(component.cast());
    // SAFETY: the carrier runs this machine, which was made with a program.
    unsafe {
        let mut event = match (*component).stage {
            0 => Event::Start,
            _ => event_of((*component).outcome == Step::Done as u8),
        };
        (*component).stage = 1;
        let mut program = (*me.0).program.take().unwrap();
        loop {
            let next = program.next(me, event);
            match next {
                Next::End if event == Event::Raised && me.is_stopped() => return Step::Raised,
                Next::End => return Step::Done,
                // The exception is handled.
                Next::Operation(Step::Done) => event = Event::Done,
                Next::Operation(Step::Raised) => event = Event::Raised,
                Next::Operation(Step::Blocked) => {
                    (*me.0).program = Some(program);
                    return Step::Blocked;
                }
            }
        }
    }
}

fn event_of(is_done: bool) -> Event {
    if is_done { Event::Done } else { Event::Raised }
}

unsafe extern "C" fn destroy(component: *mut Component) {
    // SAFETY: ended, so the program is ours to drop; a machine stopped while blocked still has it.
    unsafe { (*component.cast::<Machine>()).program = None };
}

const fn port(name: &'static CStr, direction: u32, offset: usize) -> Port {
    Port {
        name: name.as_ptr(),
        direction,
        payload: &raw const INTEGER.0,
        offset,
    }
}

const OUTS: usize = std::mem::offset_of!(Machine, outs);
const INS: usize = std::mem::offset_of!(Machine, ins);
static PORT_LIST: Static<[Port; 2 * PORTS]> = Static([
    port(c"out0", 1, OUTS),
    port(c"out1", 1, OUTS + 8),
    port(c"out2", 1, OUTS + 16),
    port(c"out3", 1, OUTS + 24),
    port(c"in0", 0, INS),
    port(c"in1", 0, INS + 8),
    port(c"in2", 0, INS + 16),
    port(c"in3", 0, INS + 24),
]);
static MACHINE: Static<ComponentType> = Static(ComponentType {
    name: c"Machine".as_ptr(),
    size: size_of::<Machine>(),
    resume,
    destroy: Some(destroy),
    trace: None,
    port_count: 2 * PORTS as u32,
    ports: &raw const PORT_LIST.0[0],
    service: false,
    declared: NOWHERE,
    heap_bytes: 0,
    heap_largest: 0,
});

/// A counted reference to a machine.
pub(crate) struct Handle(*mut Machine);
// SAFETY: components may be started, stopped and wired from any thread.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    /// Makes a machine without starting it, so that it can be wired first.
    pub(crate) fn new(program: impl Program + 'static) -> Handle {
        anchor();
        Handle::made_by(ptr::null_mut(), program)
    }

    fn made_by(creator: *mut Component, program: impl Program + 'static) -> Handle {
        // SAFETY: the descriptors are valid, and the creator runs this; the struct is not running
        // yet.
        unsafe {
            let machine: *mut Machine =
                c::hearth_component_new(creator, &raw const MACHINE.0, -1).cast();
            (&raw mut (*machine).program).write(Some(Box::new(program)));
            Handle(machine)
        }
    }

    pub(crate) fn start(&self) -> &Handle {
        // SAFETY: counted, and started once.
        unsafe { c::hearth_component_start(self.0.cast()) };
        self
    }

    pub(crate) fn stop(&self) {
        // SAFETY: counted.
        unsafe { c::hearth_stop(ptr::null_mut(), self.0.cast()) };
    }

    pub(crate) fn output(&self, index: usize) -> Half {
        self.port([c"out0", c"out1", c"out2", c"out3"][index].as_ptr())
    }

    pub(crate) fn input(&self, index: usize) -> Half {
        self.port([c"in0", c"in1", c"in2", c"in3"][index].as_ptr())
    }

    fn port(&self, name: *const c_char) -> Half {
        // SAFETY: counted, and there is such a port.
        Half(unsafe { c::hearth_port_of(self.0.cast(), name) })
    }
}

impl Clone for Handle {
    fn clone(&self) -> Handle {
        // SAFETY: counted.
        Handle(unsafe { c::hearth_component_retain(self.0.cast()) }.cast())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: counted.
        unsafe { c::hearth_component_release(self.0.cast()) };
    }
}

/// A counted reference to a half-channel.
pub(crate) struct Half(*mut Channel);
// SAFETY: half-channels are shared by design.
unsafe impl Send for Half {}
// SAFETY: as above.
unsafe impl Sync for Half {}

impl Half {
    pub(crate) fn free(payload: &'static Static<Type>, direction: u32) -> Half {
        // SAFETY: a valid type.
        Half(unsafe { c::hearth_channel_new(ptr::null_mut(), &raw const payload.0, direction) })
    }

    /// Takes over a reference that came in a message.
    pub(crate) fn received(value: Value) -> Half {
        // SAFETY: the program receives half-channels here.
        Half(unsafe { value.pointer }.cast())
    }

    pub(crate) fn connect(&self, other: &Half) {
        // SAFETY: both are counted, and of opposite directions.
        unsafe { c::hearth_connect(ptr::null_mut(), self.0, other.0, ptr::null()) };
    }

    pub(crate) fn disconnect(&self) {
        // SAFETY: counted.
        unsafe { c::hearth_disconnect(ptr::null_mut(), self.0, ptr::null()) };
    }

    pub(crate) fn as_value(&self) -> Value {
        Value::of_pointer(self.0)
    }
}

impl Clone for Half {
    fn clone(&self) -> Half {
        // SAFETY: counted.
        Half(unsafe { c::hearth_channel_retain(self.0) })
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        // SAFETY: counted.
        unsafe { c::hearth_channel_release(self.0) };
    }
}

/// Operations, for the running component only.
impl Me {
    fn component(self) -> *mut Component {
        self.0.cast()
    }

    pub(crate) fn send(self, port: usize, number: i32) -> Next {
        // SAFETY: the program runs this machine.
        let channel = unsafe { (*self.0).outs[port] };
        self.send_on(channel, Value::of_integer(number), false)
    }

    pub(crate) fn send_value(self, half: &Half, value: Value, moves: bool) -> Next {
        self.send_on(half.0, value, moves)
    }

    fn send_on(self, channel: *mut Channel, value: Value, moves: bool) -> Next {
        // SAFETY: the program runs this machine.
        Next::Operation(unsafe {
            c::hearth_send(self.component(), channel, value, moves, &NOWHERE)
        })
    }

    pub(crate) fn receive(self, port: usize) -> Next {
        // SAFETY: the program runs this machine.
        Next::Operation(unsafe {
            c::hearth_receive(self.component(), (*self.0).ins[port], &NOWHERE)
        })
    }

    pub(crate) fn receive_from(self, half: &Half) -> Next {
        // SAFETY: the program runs this machine.
        Next::Operation(unsafe { c::hearth_receive(self.component(), half.0, &NOWHERE) })
    }

    pub(crate) fn acknowledge(self, port: usize) -> Next {
        // SAFETY: the program runs this machine.
        Next::Operation(unsafe {
            c::hearth_acknowledge(self.component(), (*self.0).ins[port], &NOWHERE)
        })
    }

    pub(crate) fn let_go(self, ok: bool) {
        // SAFETY: the program runs this machine, after an acknowledge.
        unsafe {
            let mut held: Held = held_of(self.component()).read();
            c::hearth_release_sender(self.component(), &mut held, ok);
        }
    }

    pub(crate) fn select(self, ports: &[usize]) -> Next {
        let arms: Vec<_> = ports.iter().map(|&port| self.arm_at(port, false)).collect();
        self.select_among(&arms, false)
    }

    /// Makes an arm of a select at a port.
    pub(crate) fn arm_at(self, port: usize, acknowledge: bool) -> Arm {
        Arm {
            // SAFETY: the program runs this machine.
            channel: unsafe { (*self.0).ins[port].cast() },
            acknowledge,
            site: ptr::null(),
        }
    }

    /// Makes an arm at any half-channel.
    pub(crate) fn arm_of(self, half: &Half) -> Arm {
        Arm {
            channel: half.0.cast(),
            acknowledge: false,
            site: ptr::null(),
        }
    }

    pub(crate) fn select_among(self, arms: &[Arm], has_default: bool) -> Next {
        let count = arms.len() as u32;
        // SAFETY: the program runs this machine.
        Next::Operation(unsafe {
            c::hearth_select(
                self.component(),
                arms.as_ptr(),
                count,
                has_default,
                &NOWHERE,
            )
        })
    }

    pub(crate) fn received(self) -> Value {
        // SAFETY: the program runs this machine.
        unsafe { (*self.component()).received }
    }

    pub(crate) fn number(self) -> i32 {
        // SAFETY: only called where integers come.
        unsafe { self.received().integer }
    }

    pub(crate) fn arm(self) -> u32 {
        // SAFETY: the program runs this machine.
        unsafe { (*self.component()).arm }
    }

    pub(crate) fn is_stopped(self) -> bool {
        // SAFETY: the program runs this machine.
        unsafe { (*self.component()).raised == STOPPED }
    }

    /// Makes a machine as a child of this one.
    #[allow(dead_code, reason = "for some tests only")]
    pub(crate) fn make(self, program: impl Program + 'static) -> Handle {
        Handle::made_by(self.component(), program)
    }

    /// Makes a half-channel as this machine.
    #[allow(dead_code, reason = "for some tests only")]
    pub(crate) fn half(self, payload: &'static Static<Type>, direction: u32) -> Half {
        // SAFETY: the program runs this machine.
        Half(unsafe { c::hearth_channel_new(self.component(), &raw const payload.0, direction) })
    }

    /// Moves to a core.
    #[allow(dead_code, reason = "for some tests only")]
    pub(crate) fn set_core(self, core: u32) {
        // SAFETY: the program runs this machine.
        unsafe { c::hearth_set_core(self.component(), core) };
    }

    /// Makes a new array.
    pub(crate) fn array(self, length: u32, number: i32) -> Value {
        // SAFETY: the program runs this machine.
        Value::of_pointer(unsafe {
            c::hearth_array_new(
                self.component(),
                &raw const INTEGERS.0,
                &length,
                1,
                Value::of_integer(number),
            )
        })
    }

    /// Releases its own array.
    pub(crate) fn drop_array(self, value: Value) {
        // SAFETY: the program owns the array.
        unsafe { c::hearth_destroy(self.component(), &raw const INTEGERS.0, value.pointer) };
    }

    /// Takes the elements of a received array, and releases it.
    pub(crate) fn take_array(self, value: Value) -> Vec<i32> {
        // SAFETY: the program owns the array.
        unsafe {
            let array: *mut hearth_runtime::abi::Array = value.pointer.cast();
            let first = array
                .byte_add(hearth_runtime::abi::HEADER_BYTES)
                .cast::<i32>();
            let elements = std::slice::from_raw_parts(first, (*array).length).to_vec();
            c::hearth_destroy(self.component(), &raw const INTEGERS.0, array.cast());
            elements
        }
    }
}

static ANCHORED: Mutex<Option<Ticket>> = Mutex::new(None);

/// Makes the runtime print the deadlock report and end the process if every component is blocked.
#[allow(dead_code, reason = "for some tests only")]
pub(crate) fn expect_nothing_more() {
    if let Some(ticket) = &*ANCHORED.lock().unwrap() {
        ticket.set_wakeable(false);
    }
}

/// Starts a component that waits forever for an outside event: without it the runtime would end
/// this process when a test's components have stopped, and call the pauses between them deadlocks.
pub(crate) fn anchor() {
    unsafe extern "C" fn wait(component: *mut Component) -> Step {
        // SAFETY: the carrier runs this component.
        let (step, ticket) =
            unsafe { external::wait(component, ptr::null(), "the end of the tests", true) };
        *ANCHORED.lock().unwrap() = Some(ticket);
        step
    }
    static ANCHOR: Static<ComponentType> = Static(ComponentType {
        name: c"Anchor".as_ptr(),
        size: size_of::<Component>(),
        resume: wait,
        destroy: None,
        trace: None,
        port_count: 0,
        ports: ptr::null(),
        service: false,
        declared: NOWHERE,
        heap_bytes: 0,
        heap_largest: 0,
    });
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: valid descriptors.
        unsafe {
            let anchor = c::hearth_component_new(ptr::null_mut(), &raw const ANCHOR.0, -1);
            c::hearth_component_start(anchor);
        }
    });
}
