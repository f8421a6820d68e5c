//! What all heaps have when the program ends, for a recording.
//!
//! Other threads may still run, and a heap is touched by its component's carrier alone. So the
//! heaps are read as `hearth heap` reads those of another process: through the system, which
//! copies.

use std::collections::HashMap;

use hearth_heap::inspect::{HeapKind, Memory, NAME, Watched};
use hearth_sys::process::Process;
use hearth_watch::Recorder;

use super::ways;

/// This process, as another would see it.
struct Own(Process);

impl Memory for Own {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        self.0.read(address, into)
    }
}

/// Tells the heaps of all components that have not ended. What cannot be read stays as it was last
/// seen.
pub(crate) fn tell_all(recorder: &Recorder) {
    if let Some(bytes) = ways::shared_used() {
        recorder.shared_heap(bytes);
    }
    if let Some(used) = used_by_number() {
        recorder.heaps(|number| used.get(&number).copied());
    }
}

fn used_by_number() -> Option<HashMap<u32, u64>> {
    let process = Process::of(std::process::id()).ok()?;
    let name = format!("[anon:{NAME}]");
    let mappings = process.mappings().ok()?;
    let mut used = HashMap::new();
    for range in mappings {
        // Where the kernel knows no names, pages that are only read.
        let is_candidate = range.is_anonymous && range.is_readable && !range.is_writable;
        if !is_candidate || !range.name.is_empty() && range.name != name {
            continue;
        }
        if let Ok(watched) = Watched::at(Own(process), range.start) {
            watched.heaps(|heap| {
                if heap.kind == HeapKind::Component {
                    used.insert(heap.number, heap.used);
                }
            });
        }
    }
    Some(used)
}
