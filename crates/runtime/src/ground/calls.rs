//! Calls into the program: wakers, destructors, and closures that it gave to the runtime.
//!
//! Such code may panic, and may use all that this crate offers. So it is called where nothing is
//! half changed and no lock is held, and never but through here: a panic must not reach the
//! carrier, which cannot unwind. What safe code may do at each such place is a table in
//! `docs/internals/foreign-code.md`.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls code of the program's. A panic ends here, and its message comes back.
pub(crate) fn call<R>(code: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(message_of)
}

/// The same where there is no component that a panic could end. The panic hook has told of it.
pub(crate) fn call_for_nobody(code: impl FnOnce()) {
    drop(call(code));
}

/// What a panic says. It is dropped, which may panic too.
fn message_of(panic: Box<dyn Any + Send>) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        // This one might panic in turn, for ever.
        std::mem::forget(second);
    }
    text.unwrap_or_else(|| "a panic that carries no text".to_owned())
}
