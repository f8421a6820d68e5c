//! Refusals, and their reasons.

use std::fmt;

use thiserror::Error;

/// Reason why a call was not made. The closure was dropped without running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CallError {
    /// The proprietor died, or the section was closed, before the request was served.
    #[error(
        "the owner of the data has died or was closed, and the request was not served; \
         take what is left with `into_inner`, or make a new one"
    )]
    OwnerDied,
    /// An earlier closure panicked, and the section was built to refuse calls after that.
    #[error(
        "a closure panicked on this data earlier, and it was built with `poison(true)`; \
         look at the data and call `clear_poison`"
    )]
    Poisoned,
    /// The calling thread is inside this very section: the call would wait for itself.
    #[error(
        "a closure on this data called the same section again, which would wait for itself; \
         do the work in the closure that has the data already"
    )]
    Reentrant,
}

/// The system refused the proprietor a thread.
#[derive(Debug, Error)]
#[error(
    "cannot start a thread for the proprietor: {0}; end some threads or raise their limit \
     (ulimit -u), or stay with a lock"
)]
pub struct NoProprietor(#[source] pub(crate) std::io::Error);

/// A name that is not among the choices.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no {kind} named '{found}'; choose one of: {known}")]
pub struct UnknownName {
    kind: &'static str,
    found: String,
    known: String,
}

/// Finds a value by its name.
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
