//! Origin of a transaction in its program.

use std::fmt;
use std::panic::Location;

/// Place in a program where transactions begin, by its name or else by file and line.
///
/// The compiler passes the caller's place; a tracer that does not look at it costs nothing, as the
/// argument is left out.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The name given to [`Stm::atomically_at`](crate::Stm::atomically_at).
    pub name: Option<&'static str>,
    /// The call.
    pub caller: &'static Location<'static>,
}

impl Origin {
    /// The calling function's caller.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn here(name: Option<&'static str>) -> Origin {
        Origin {
            name,
            caller: Location::caller(),
        }
    }

    /// A number that is the same for the same call.
    #[inline]
    #[must_use]
    pub fn key(&self) -> usize {
        match self.name {
            Some(name) => name.as_ptr().addr(),
            None => std::ptr::from_ref(self.caller).addr(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Some(name) => f.write_str(name),
            None => write!(f, "{}:{}", self.caller.file(), self.caller.line()),
        }
    }
}
