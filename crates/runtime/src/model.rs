//! Faults that the model checker's tests plant, to prove that it would find them.

/// Switches, for the thread that runs a model.
pub(crate) mod faults {
    use std::cell::Cell;

    std::thread_local! {
        static IGNORES_STOP: Cell<bool> = const { Cell::new(false) };
    }

    /// Plants: an offer is opened without a look for a stop request afterwards.
    pub(crate) fn plant_ignored_stop() {
        IGNORES_STOP.set(true);
    }

    pub(crate) fn ignores_stop() -> bool {
        IGNORES_STOP.get()
    }
}
