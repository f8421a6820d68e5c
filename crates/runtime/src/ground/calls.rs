//! Calls into the program: wakers, destructors, and closures that it gave to the runtime.
//!
//! Such code may panic, and may use all of this crate. The runtime therefore calls it only from
//! here, holding no lock and with every invariant in place: a panic must not reach the carrier,
//! which cannot unwind. A table in `docs/internals/foreign-code.md` says what safe code may do at
//! each such place.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls the program's code. Catches a panic and returns its message.
pub(crate) fn call<R>(code: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(message_of)
}

/// Calls code that no component runs, so a panic ends none; the panic hook has reported it.
pub(crate) fn call_for_nobody(code: impl FnOnce()) {
    drop(call(code));
}

/// The message of a panic. Drops the payload, which may panic too.
fn message_of(panic: Box<dyn Any + Send>) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        // Dropping this one might panic in turn, without end.
        std::mem::forget(second);
    }
    text.unwrap_or_else(|| "a panic that carries no text".to_owned())
}
