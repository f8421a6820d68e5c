//! The contents of all heaps at the program's end, for a recording.
//!
//! Other threads may still run, and only its component's carrier may touch a heap. So the heaps are
//! read as `hearth heap` reads those of another process: through the system, which copies.

use std::collections::HashMap;

use hearth_heap::inspect::{HeapKind, Memory, NAME, Watched};
use hearth_sys::process::Process;
use hearth_watch::Recorder;

use super::ways;

/// This process, as seen from another.
struct Own(Process);

impl Memory for Own {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        self.0.read(address, into)
    }
}

/// Records the heaps of all components that have not ended. Parts that cannot be read keep their
/// last recorded state.
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
        // Where the kernel does not name mappings: pages that are read-only.
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
