//! Faults planted on purpose, which the models and the checker of histories must find. Outside of
//! tests there are none, and no code that asks for them.

/// A step that a planted fault leaves out or puts in the wrong place.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Fault {
    /// The snapshot moves on although something read has changed.
    UncheckedExtension,
    /// A commit does not look whether something read has changed.
    UncheckedCommit,
    /// Locks come free before memory holds what they guard.
    EarlyRelease,
    /// A commit leaves the clock, or the sequence number, as it was.
    StoppedClock,
    /// A commit wakes nobody.
    NoWake,
}

/// The fault of an instance, if any.
#[derive(Clone, Copy, Default)]
pub struct Planted {
    #[cfg(test)]
    pub(crate) fault: Option<Fault>,
}

impl Planted {
    #[inline(always)]
    pub(crate) fn is(self, fault: Fault) -> bool {
        #[cfg(test)]
        return self.fault == Some(fault);
        #[cfg(not(test))]
        {
            let _ = fault;
            false
        }
    }

    /// Lets other threads run where a fault has left something open.
    #[inline(always)]
    pub(crate) fn gape(self) {
        #[cfg(test)]
        hearth_sys::threading::yield_now();
    }
}
