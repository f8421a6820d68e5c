//! Faults planted by the model checker's tests, to prove that the checker finds them.

/// Switches for the thread that runs a model.
#[cfg_attr(not(test), expect(dead_code, reason = "planted by tests"))]
pub(crate) mod faults {
    use std::cell::Cell;

    std::thread_local! {
        static IGNORES_STOP: Cell<bool> = const { Cell::new(false) };
        static REGISTERS_BLINDLY: Cell<bool> = const { Cell::new(false) };
        static SLEEPS_BLINDLY: Cell<bool> = const { Cell::new(false) };
        static TELLS_NOBODY: Cell<bool> = const { Cell::new(false) };
        static FORGETS_GIVEN: Cell<bool> = const { Cell::new(false) };
        static COMES_TOO_SOON: Cell<bool> = const { Cell::new(false) };
    }

    /// Removes all faults.
    pub(crate) fn heal() {
        IGNORES_STOP.set(false);
        REGISTERS_BLINDLY.set(false);
        SLEEPS_BLINDLY.set(false);
        TELLS_NOBODY.set(false);
        FORGETS_GIVEN.set(false);
        COMES_TOO_SOON.set(false);
    }

    /// Plants: an offer opens without checking for a stop request afterwards.
    pub(crate) fn plant_ignored_stop() {
        IGNORES_STOP.set(true);
    }

    pub(crate) fn ignores_stop() -> bool {
        IGNORES_STOP.get()
    }

    /// Plants: a select registers at a half-channel without checking for a sender there.
    pub(crate) fn plant_blind_registration() {
        REGISTERS_BLINDLY.set(true);
    }

    pub(crate) fn registers_blindly() -> bool {
        REGISTERS_BLINDLY.get()
    }

    /// Plants: a worker sleeps without a last check of its ends of links.
    pub(crate) fn plant_blind_sleep() {
        SLEEPS_BLINDLY.set(true);
    }

    pub(crate) fn sleeps_blindly() -> bool {
        SLEEPS_BLINDLY.get()
    }

    /// Plants: the component that gives or takes at a link skips the check whether to notify the
    /// other.
    pub(crate) fn plant_told_nobody() {
        TELLS_NOBODY.set(true);
    }

    pub(crate) fn tells_nobody() -> bool {
        TELLS_NOBODY.get()
    }

    /// Plants: a link ends without delivering the value given to it.
    pub(crate) fn plant_forgotten_value() {
        FORGETS_GIVEN.set(true);
    }

    /// Plants: a server migrates before the thread that ran it has left it.
    pub(crate) fn plant_coming_too_soon() {
        COMES_TOO_SOON.set(true);
    }

    pub(crate) fn comes_too_soon() -> bool {
        COMES_TOO_SOON.get()
    }

    pub(crate) fn forget_given(word: usize, given: usize) -> usize {
        if FORGETS_GIVEN.get() {
            word & !given
        } else {
            word
        }
    }
}
