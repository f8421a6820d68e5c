//! Hand-overs of a lock: a thread on each core, all waiting, and how often the lock passed within a
//! node and to another. The lab's tests run it where there are several nodes: `hand_overs LOCK`.

use std::error::Error;
use std::io::Write as _;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hearth_sync::{LockKind, Mode, Owned};
use hearth_sys::affinity::{Pinned, allowed};
use hearth_sys::procfs::parse_list;
use hearth_sys::{Linux, System};

const CALLS: usize = 2000;
/// From a thread's word that it is about to call to its place in the queue it takes less.
const ENTERS_WITHIN: Duration = Duration::from_micros(200);
/// A thread that has not come back by then lost its core: the others stop waiting for it.
const PATIENCE: Duration = Duration::from_millis(200);

#[derive(Default)]
struct Passed {
    node: Option<usize>,
    within: usize,
    across: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let lock: LockKind = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "cohort".into())
        .parse()?;
    let cores = allowed();
    let calling: Vec<AtomicBool> = cores.iter().map(|_| AtomicBool::new(false)).collect();
    let passed = Owned::builder()
        .mode(Mode::Lock)
        .lock(lock)
        .build(Passed::default())?;
    let (begin, calls) = (Barrier::new(cores.len()), AtomicUsize::new(0));
    thread::scope(|scope| {
        for (place, &core) in cores.iter().enumerate() {
            let (passed, calling, begin, calls) = (passed.clone(), &calling, &begin, &calls);
            scope.spawn(move || {
                let _pinned = Pinned::to(core);
                let node = node_of(core);
                begin.wait();
                while calls.fetch_add(1, Ordering::Relaxed) < CALLS {
                    calling[place].store(true, Ordering::Relaxed);
                    passed.call(|passed| {
                        await_all(calling);
                        match passed.node.replace(node) {
                            Some(last) if last == node => passed.within += 1,
                            Some(_) => passed.across += 1,
                            None => {}
                        }
                    });
                    calling[place].store(false, Ordering::Relaxed);
                }
                // Stop waiting for it.
                calling[place].store(true, Ordering::Relaxed);
            });
        }
    });
    let (within, across) = passed.call(|passed| (passed.within, passed.across));
    writeln!(
        std::io::stdout(),
        "{lock}: {within} within a node, {across} to another"
    )?;
    Ok(())
}

/// All others wait for the lock, or have lost their cores.
fn await_all(calling: &[AtomicBool]) {
    let since = Instant::now();
    let is_calling = |thread: &AtomicBool| thread.load(Ordering::Relaxed);
    while !calling.iter().all(is_calling) && since.elapsed() < PATIENCE {
        thread::yield_now();
    }
    let since = Instant::now();
    while since.elapsed() < ENTERS_WITHIN {
        thread::yield_now();
    }
}

fn node_of(core: usize) -> usize {
    let lists = (0..64).map(|node| {
        let list = Linux.read(&format!("/sys/devices/system/node/node{node}/cpulist"));
        parse_list(&list.unwrap_or_default())
    });
    let mut nodes = lists.enumerate();
    nodes
        .find(|(_, cores)| cores.contains(&core))
        .map_or(0, |(node, _)| node)
}
