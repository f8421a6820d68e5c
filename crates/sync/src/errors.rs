//! What is refused, and why.

use std::fmt;

/// Why a call was not made. The closure was not run, and is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The proprietor has died, or the section was closed, before the request was served.
    OwnerDied,
    /// An earlier closure panicked, and the section was built to refuse calls after that.
    Poisoned,
    /// The calling thread is inside this very section: waiting for it would last for ever.
    Reentrant,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CallError::OwnerDied => {
                "the owner of the data has died or was closed, and the request was not served; \
                 take what is left with `into_inner`, or make a new one"
            }
            CallError::Poisoned => {
                "a closure panicked on this data earlier, and it was built with `poison(true)`; \
                 look at the data and call `clear_poison`"
            }
            CallError::Reentrant => {
                "a closure on this data called the same section again, which would wait for itself; \
                 do the work in the closure that has the data already"
            }
        })
    }
}

impl std::error::Error for CallError {}

/// The system refused the proprietor a thread.
#[derive(Debug)]
pub struct NoProprietor(pub(crate) std::io::Error);

impl fmt::Display for NoProprietor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot start a thread for the proprietor: {}; end some threads or raise their limit \
             (ulimit -u), or stay with a lock",
            self.0
        )
    }
}

impl std::error::Error for NoProprietor {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// A word that names nothing of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    kind: &'static str,
    found: String,
    known: String,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnknownName { kind, found, known } = self;
        write!(
            f,
            "there is no {kind} named '{found}'; choose one of: {known}"
        )
    }
}

impl std::error::Error for UnknownName {}

/// The one of all with this name.
pub(crate) fn by_name<K: Copy + fmt::Display>(
    kind: &'static str,
    text: &str,
    all: &[K],
) -> Result<K, UnknownName> {
    all.iter()
        .copied()
        .find(|one| one.to_string() == text)
        .ok_or_else(|| UnknownName {
            kind,
            found: text.to_owned(),
            known: all
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", "),
        })
}
