//! Refusals of the system, with the next step.

use std::fmt;
use std::io;

/// Reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The rights of this process do not suffice.
    Permission,
    /// This kernel or machine has no such thing.
    Absent,
    /// The object does not exist or went away: an offline core, a node without memory.
    Invalid,
    /// Memory, descriptors or a limit of another kind ran out.
    Exhausted,
    /// Any other error number of the system.
    Other(i32),
}

impl Reason {
    /// The reason behind an error of the standard library.
    pub fn of(error: &io::Error) -> Reason {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Reason::Permission,
            Some(libc::ENOSYS | libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => Reason::Absent,
            Some(libc::EINVAL | libc::ESRCH | libc::EFAULT | libc::ENXIO) => Reason::Invalid,
            Some(libc::ENOMEM | libc::EAGAIN | libc::EMFILE | libc::ENFILE | libc::ENOSPC) => {
                Reason::Exhausted
            }
            Some(number) => Reason::Other(number),
            None => match error.kind() {
                io::ErrorKind::PermissionDenied => Reason::Permission,
                io::ErrorKind::NotFound | io::ErrorKind::Unsupported => Reason::Absent,
                io::ErrorKind::OutOfMemory => Reason::Exhausted,
                _ => Reason::Invalid,
            },
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Permission => f.write_str("permission denied"),
            Reason::Absent => f.write_str("not there on this system"),
            Reason::Invalid => f.write_str("no such object, or it went away"),
            Reason::Exhausted => f.write_str("a limit or memory ran out"),
            Reason::Other(number) => write!(f, "{}", io::Error::from_raw_os_error(*number)),
        }
    }
}

/// A refused request: action, object, reason and next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The action, as a verb: `pin a thread to`.
    pub action: &'static str,
    /// The object, such as `core 3` or a path.
    pub object: String,
    /// Reason of the refusal.
    pub reason: Reason,
    /// The next step, as a clause.
    pub next: &'static str,
}

impl Refused {
    /// A refusal from an error of the standard library.
    pub fn new(
        action: &'static str,
        object: impl Into<String>,
        error: &io::Error,
        next: &'static str,
    ) -> Refused {
        Refused::because(action, object, Reason::of(error), next)
    }

    /// A refusal for a reason found without asking the system.
    pub fn because(
        action: &'static str,
        object: impl Into<String>,
        reason: Reason,
        next: &'static str,
    ) -> Refused {
        Refused {
            action,
            object: object.into(),
            reason,
            next,
        }
    }

    /// A refusal from the error of the thread's last system call.
    pub(crate) fn last(
        action: &'static str,
        object: impl Into<String>,
        next: &'static str,
    ) -> Refused {
        Refused::new(action, object, &io::Error::last_os_error(), next)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused {
            action,
            object,
            reason,
            next,
        } = self;
        write!(f, "cannot {action} {object}: {reason}; {next}")
    }
}

impl std::error::Error for Refused {}
