//! Faults that the model checker's tests plant, to prove that it would find them.

/// Switches, for the thread that runs a model.
#[cfg_attr(not(test), expect(dead_code, reason = "planted by tests"))]
pub(crate) mod faults {
    use std::cell::Cell;

    std::thread_local! {
        static IGNORES_STOP: Cell<bool> = const { Cell::new(false) };
        static REGISTERS_BLINDLY: Cell<bool> = const { Cell::new(false) };
    }

    /// Takes all faults away.
    pub(crate) fn heal() {
        IGNORES_STOP.set(false);
        REGISTERS_BLINDLY.set(false);
    }

    /// Plants: an offer is opened without a look for a stop request afterwards.
    pub(crate) fn plant_ignored_stop() {
        IGNORES_STOP.set(true);
    }

    pub(crate) fn ignores_stop() -> bool {
        IGNORES_STOP.get()
    }

    /// Plants: a select registers at a half-channel without looking for a sender there.
    pub(crate) fn plant_blind_registration() {
        REGISTERS_BLINDLY.set(true);
    }

    pub(crate) fn registers_blindly() -> bool {
        REGISTERS_BLINDLY.get()
    }
}
