//! The contract between compiled programs and the runtime: `include/hearth.h`, its mirror in Rust,
//! and its number.
//!
//! The compiler writes C for the header ([`HEADER`]) and checks the number ([`ABI`]); the runtime
//! implements it; the command hands the header to the C compiler. This crate never knows what any
//! of them do with it. A test holds header and mirror to the same layout.
//!
//! Names omit the prefix: `hearth_component` is [`Component`]. Other threads may write a
//! component's `attention`, and threads that complete its rendezvous write its results, so the
//! runtime uses raw pointers and never makes a reference to a whole component.
//!
//! ```
//! let line = format!("#define HEARTH_ABI {}", hearth_abi::ABI);
//! assert!(hearth_abi::HEADER.contains(&line));
//! ```

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU8};

/// The header's text.
pub const HEADER: &str = include_str!("../include/hearth.h");

/// A worker, beginning as in the header; the rest is private to the runtime.
#[repr(C)]
pub struct Worker {
    rest: [u8; 0],
}

/// A collector of references, private to the runtime.
#[repr(C)]
pub struct Tracer {
    rest: [u8; 0],
}

/// A half-channel, beginning as in the header; the rest is private to the runtime.
#[repr(C)]
pub struct Channel {
    rest: [u8; 0],
}

/// The version of the contract.
pub const ABI: u32 = 6;

/// A step's ending.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Done = 0,
    Blocked = 1,
    Raised = 2,
}

/// A place in the source.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Site {
    pub file: *const c_char,
    pub line: u32,
    pub column: u32,
    pub text: *const c_char,
}

/// Any value that fits a variable.
#[repr(C)]
#[derive(Clone, Copy)]
pub union Value {
    pub integer: i32,
    pub unsigned: u32,
    pub real: f32,
    pub byte: u8,
    pub boolean: bool,
    pub pointer: *mut c_void,
    pub bits: u64,
}

impl Value {
    /// No value: the contents of a slot before any store.
    pub const NOTHING: Value = Value { bits: 0 };

    /// An integer.
    pub fn of_integer(integer: i32) -> Value {
        // Writes the whole slot, so that no bit of it is uninitialised.
        Value {
            bits: u64::from(integer as u32),
        }
    }

    /// A bool.
    pub fn of_bool(boolean: bool) -> Value {
        Value {
            bits: u64::from(boolean),
        }
    }

    /// A reference.
    pub fn of_pointer<T>(pointer: *mut T) -> Value {
        Value {
            pointer: pointer.cast(),
        }
    }
}

/// The header of every counted object.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Object {
    pub refs: u32,
    pub spare: u32,
}

/// `refs` of literals.
pub const IMMORTAL: u32 = u32::MAX;

/// Immutable text: this header, the bytes, a NUL.
#[repr(C)]
pub struct Text {
    pub object: Object,
    pub length: usize,
}

/// An array: this header and the elements.
#[repr(C)]
pub struct Array {
    pub object: Object,
    pub length: usize,
}

/// Bytes of a header before the text or the elements.
pub const HEADER_BYTES: usize = 16;

/// A value with its type.
#[repr(C)]
pub struct AnyBox {
    pub object: Object,
    pub r#type: *const Type,
    pub value: Value,
}

/// A procedure as a value. `owner` is counted when it is not null.
#[repr(C)]
pub struct Procedure {
    pub object: Object,
    pub code: Option<unsafe extern "C" fn()>,
    pub owner: *mut Component,
}

/// Kind of a type.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Integer,
    Unsigned,
    Real,
    Bool,
    Byte,
    Enum,
    String,
    Any,
    Struct,
    Array,
    In,
    Out,
    Component,
    Procedure,
    /// A value private to the embedding program: see [`Foreign`].
    Foreign,
}

impl Kind {
    /// Tells whether a slot of this kind holds a reference.
    pub fn is_reference(self) -> bool {
        self >= Kind::String
    }
}

/// The function that passes values of a foreign type from one component to another. A foreign
/// type's `element` is one of these. Its values belong to their senders until they are passed, and
/// are never released.
#[repr(C)]
pub struct Foreign {
    /// Takes a value that a sender lends, for the component `to`, which runs or is parked for it.
    pub pass: unsafe extern "C" fn(to: *mut Component, value: *mut c_void) -> *mut c_void,
}

/// A field of a struct type.
#[repr(C)]
pub struct Field {
    pub name: *const c_char,
    pub r#type: *const Type,
    pub offset: usize,
}

/// A type's descriptor for the runtime.
#[repr(C)]
pub struct Type {
    pub code: *const c_char,
    pub kind: Kind,
    pub size: u32,
    pub flat: bool,
    pub element: *const Type,
    pub field_count: u32,
    pub fields: *const Field,
    pub object_size: usize,
}

/// Equal types have equal codes.
impl PartialEq for Type {
    fn eq(&self, other: &Type) -> bool {
        // SAFETY: codes are literals.
        unsafe { literal(self.code) == literal(other.code) }
    }
}

impl std::fmt::Debug for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // SAFETY: codes are literals.
        f.write_str(&unsafe { literal(self.code) })
    }
}

// SAFETY: descriptors are immutable: static in the compiled program, or made here and never freed.
unsafe impl Sync for Type {}

/// A sender that an acknowledge holds.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Held {
    pub sender: *mut Component,
    pub ticket: u64,
}

impl Held {
    /// No sender is held.
    pub const NOBODY: Held = Held {
        sender: std::ptr::null_mut(),
        ticket: 0,
    };
}

/// The first part of every component's struct. Right before it lies its seat, the runtime's part.
#[repr(C)]
pub struct Component {
    pub r#type: *const ComponentType,
    pub home: *const Worker,
    pub next: *mut Component,
    /// An acknowledge leaves its sender in this field and the next: see [`held_of`].
    pub waits_at: *mut Channel,
    pub waits_in: *const Site,
    pub received: Value,
    pub raised: u32,
    pub arm: u32,
    pub passes_left: u32,
    /// The number of its heap; 0 if it has none.
    pub heap: u32,
    pub stage: u16,
    pub destination: u16,
    pub attention: AtomicU8,
    pub waiting: u8,
    pub outcome: u8,
    /// Bits: [`MOVED`], [`FOUND_SENDER`], [`FOUND_FULL`].
    pub history: u8,
}

/// Bit of `history` of a component that has gone to another worker, after which its earlier wait is
/// forgotten.
pub const MOVED: u8 = 1;

/// Bit of `history` of a component whose selects have found a waiting sender since a sender last
/// served its wait in one.
pub const FOUND_SENDER: u8 = 2;

/// Bit of `history` of a component that found a value waiting at the last link from which it
/// received, and has sent over no link since: it receives a stream.
pub const FOUND_FULL: u8 = 4;

/// Finds the sender that an acknowledge leaves here: it lies in the place of a light wait's words,
/// since the component does not wait lightly.
pub fn held_of(component: *mut Component) -> *mut Held {
    const _: () = assert!(size_of::<Held>() == size_of::<[usize; 2]>());
    component
        .wrapping_byte_add(std::mem::offset_of!(Component, waits_at))
        .cast()
}

/// `raised` of a component that was stopped.
pub const STOPPED: u32 = u32::MAX;

/// `raised` of a component whose wait was called off to make it look around; never in C.
pub const ROUSED: u32 = u32::MAX - 1;

/// The labels of `ExceptionType`, in order.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    OperationFailed,
    ChannelBufferFull,
    DivisionByZero,
    SendStatusUnknown,
    DuplicateLcn,
    NodesUnreachable,
    ChannelsUnknown,
    IncompatibleChannels,
    BindStatusUnknown,
}

/// `arm` when a select ran its default.
pub const DEFAULT: u32 = u32::MAX;

/// A port of a component type.
#[repr(C)]
pub struct Port {
    pub name: *const c_char,
    /// 0 in, 1 out.
    pub direction: u32,
    pub payload: *const Type,
    pub offset: usize,
}

/// Description shared by all components of one kind.
#[repr(C)]
pub struct ComponentType {
    pub name: *const c_char,
    pub size: usize,
    pub resume: unsafe extern "C" fn(*mut Component) -> Step,
    pub destroy: Option<unsafe extern "C" fn(*mut Component)>,
    pub trace: Option<unsafe extern "C" fn(*mut Component, *mut Tracer)>,
    pub port_count: u32,
    pub ports: *const Port,
    pub service: bool,
    pub declared: Site,
    /// The most bytes in its heap at once; 0: nothing, or unknown.
    pub heap_bytes: u32,
    /// The largest block of those.
    pub heap_largest: u32,
}

/// An open arm of a select.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Arm {
    pub channel: *mut Channel,
    pub acknowledge: bool,
    pub site: *const Site,
}

/// A probe that the compiler put into a program.
#[repr(C)]
pub struct Probe {
    /// Null until it is first passed; then the address of its state.
    pub place: AtomicPtr<u64>,
    pub name: *const c_char,
}

/// Last part of the struct of each component of a program with probes; private to the runtime.
#[repr(C)]
pub struct Calls {
    pub state: u64,
}

/// State of a probe that is off.
pub const PROBE_OFF: u64 = 1;

/// A compiled program.
#[repr(C)]
pub struct Program {
    pub name: *const c_char,
    pub abi: u32,
    pub main: *const ComponentType,
    pub compat_original: bool,
}

/// Reads a C literal; null gives empty text.
///
/// # Safety
/// `text` is null, or points to a NUL-terminated string that is neither freed nor written during
/// `'a`.
pub unsafe fn literal<'a>(text: *const c_char) -> std::borrow::Cow<'a, str> {
    if text.is_null() {
        return "".into();
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(text) }.to_string_lossy()
}

/// Returns the ports of a component type.
///
/// # Safety
/// `of` points to a component type, and its `ports` to `port_count` initialised ports unless that
/// is 0. Neither is freed or written during `'a`.
pub unsafe fn ports<'a>(of: *const ComponentType) -> &'a [Port] {
    // SAFETY: a valid type has the number of its ports, which are static.
    unsafe {
        if (*of).port_count == 0 {
            return &[];
        }
        std::slice::from_raw_parts((*of).ports, (*of).port_count as usize)
    }
}

/// Returns the fields of a struct type.
///
/// # Safety
/// `of` points to a type, and its `fields` to `field_count` initialised fields unless that is 0.
/// Neither is freed or written during `'a`.
pub unsafe fn fields<'a>(of: *const Type) -> &'a [Field] {
    // SAFETY: a valid type has the number of its fields, which are static.
    unsafe {
        if (*of).field_count == 0 {
            return &[];
        }
        std::slice::from_raw_parts((*of).fields, (*of).field_count as usize)
    }
}
