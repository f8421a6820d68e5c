//! Waiting before a run's first stamp, so that runs begin alike.

use hearth_sys::clock::monotonic_ns;

use super::options::Start;
use super::snapshot::Snapshot;

/// A timer that has not struck for this long does not strike: the kernel stops it on idle cores,
/// and some machines call it otherwise.
const PATIENCE_NS: u64 = 50_000_000;

/// Waits for the event and takes the counters, `stamp` being the run's clock. Waiting for an
/// interrupt comes before the counters, as that one would count otherwise; waiting for the clock's
/// next value comes after them, as late as can be. True if the event came.
pub fn begin(start: Start, before: &mut Snapshot, mut stamp: impl FnMut() -> u64) -> bool {
    match start {
        Start::Tick => {
            before.before();
            let now = stamp();
            while stamp() == now {}
            true
        }
        Start::Interrupt => {
            let end = monotonic_ns() + PATIENCE_NS;
            before.before();
            let count = timer(before);
            let mut came = false;
            while !came && monotonic_ns() < end {
                before.before();
                came = timer(before) != count;
            }
            before.before();
            came
        }
    }
}

/// Interrupts of the local timers: the line `LOC`, or all where there is none.
pub(crate) fn timer(snapshot: &Snapshot) -> u64 {
    let interrupts = snapshot.interrupts();
    let kinds = interrupts.by_kind();
    let sum = |wanted: &dyn Fn(&str) -> bool| -> u64 {
        let kept = kinds.iter().filter(|(name, _)| wanted(name));
        kept.flat_map(|(_, counts)| counts).sum()
    };
    match sum(&|name| name == "LOC") {
        0 => sum(&|_| true),
        count => count,
    }
}
