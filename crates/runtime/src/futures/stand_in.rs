//! The base of a thread that runs calls of a component which another thread runs.
//!
//! Generated code reaches the runtime by its base: the exception in flight, and the heap. A thread
//! that helps has a base of its own, a component that is never resumed and that nobody refers to.
//! What a call makes lies in the heap of this base, and becomes its component's as the content of a
//! message does: it stays where it is, and the end of an object reaches the heap it came from.

use std::ptr;

use crate::abi::{Component, ComponentType, Site, Step};
use crate::exchange::values::heap;
use crate::ground::choices::Choices;
use crate::seats::seat::{Identity, Seat};

struct Type(ComponentType);
// SAFETY: its pointers are to literals, or null.
unsafe impl Sync for Type {}

unsafe extern "C" fn resume(_: *mut Component) -> Step {
    unreachable!("a stand-in is not resumed")
}

static TYPE: Type = Type(ComponentType {
    name: c"call beside".as_ptr(),
    size: size_of::<Component>(),
    resume,
    destroy: None,
    trace: None,
    port_count: 0,
    ports: ptr::null(),
    service: true,
    declared: Site {
        file: c"".as_ptr(),
        line: 0,
        column: 0,
        text: c"".as_ptr(),
    },
    heap_bytes: 0,
    heap_largest: 0,
});

/// Makes a stand-in, which lives as long as the process.
pub(super) fn make() -> *mut Component {
    let bytes = size_of::<Seat>() + size_of::<Component>();
    let block = heap::common_zeroed(ptr::null_mut(), bytes).cast::<u8>();
    let _ = block.expose_provenance();
    let identity = Identity {
        id: 0,
        number: 1,
        service: true,
    };
    // SAFETY: the block has room for both, the seat first; a zeroed component is a valid one.
    unsafe {
        let component = block.add(size_of::<Seat>()).cast::<Component>();
        (*component).r#type = &raw const TYPE.0;
        block
            .cast::<Seat>()
            .write(Seat::new(identity, Choices::default(), 0));
        component
    }
}

/// The owner of a stack that runs calls with this stand-in, for the report of an overflow.
///
/// # Safety
/// `make` has made it.
pub(super) unsafe fn owner_of_stack(stand_in: *mut Component) -> usize {
    // SAFETY: as the caller promises.
    unsafe { ptr::from_ref(crate::seats::seat::seat_of(stand_in)).expose_provenance() }
}
