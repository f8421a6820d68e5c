//! Recordings with threads, nested calls and losses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process, thread};

use hearth_calls::{Recorded, Step};
use hearth_watch::stream::{Encoding, Head, Journal, Law, Shape, TICKS, Tape, Writer};

/// A directory that is deleted at the end.
pub(crate) struct Temporary(pub(crate) PathBuf);

impl Temporary {
    pub(crate) fn new() -> Temporary {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("hearth-readers-{}-{number}", process::id());
        let path = env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a directory");
        Temporary(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Names of probes; some need quoting somewhere.
const NAMES: [&str; 4] = ["Shop::handle", "Shop::find", "say \"hi\\\"", "größe; 2"];
const END: u64 = 1 << 56;
/// Records of a block.
const BLOCK: usize = 4;

/// A recording in which nothing is missing.
pub(crate) fn whole(directory: &Temporary) -> Recorded {
    recording(directory, &[("first", 6, &[]), ("second", 3, &[])])
}

/// A recording with each kind of loss: in the middle, twice, at the beginning, at the end, of all
/// records, and by choice.
pub(crate) fn lossy(directory: &Temporary) -> Recorded {
    let threads: [(&str, u32, &[u32]); 7] = [
        ("whole", 4, &[]),
        ("middle", 6, &[2]),
        ("twice", 8, &[1, 4, 5]),
        ("beginning", 6, &[0]),
        ("end", 4, &[4, 5, 6, 7, 8, 9]),
        ("all", 2, &[0, 1, 2, 3, 4]),
        ("sampled", 9, &[]),
    ];
    recording(directory, &threads)
}

/// Threads by name, each with this many outermost calls of six records or eight in turns, and with
/// the numbers of its blocks that are lost.
fn recording(directory: &Temporary, threads: &[(&str, u32, &[u32])]) -> Recorded {
    let file = hearth_sys::shared::memory_file("a test", 1 << 20).expect("memory");
    let shape = Shape {
        blocks: 200,
        records: BLOCK,
    };
    let journal = Journal::begin(&file, shape, Law::Block).expect("a journal");
    let names = NAMES.map(|name| u64::from(journal.name(name).expect("room")));
    for &(name, calls, _) in threads {
        // One after the other, so that their numbers are known.
        let thread = thread::Builder::new().name(name.to_owned());
        let samples = name == "sampled";
        let thread = thread.spawn(move || record(journal, names, calls, samples));
        thread.expect("a thread").join().expect("it records");
    }
    let head = Head {
        process: process::id(),
        law: Law::Block,
        program: "a \"test\"".into(),
        journal: String::new(),
    };
    let mut writer = Writer::new(journal, Vec::new(), head, Encoding::Calls);
    let mut stored: BTreeMap<u32, u32> = BTreeMap::new();
    while let Some(full) = journal.try_next() {
        let number = stored.entry(full.thread()).or_default();
        let lost = threads[full.thread() as usize - 1].2;
        match lost.contains(number) {
            true => full.refuse(),
            false => writer.store(full),
        }
        *number += 1;
    }
    journal.close();
    assert!(writer.finish());
    let path = directory.path("test.calls");
    fs::write(&path, writer.sink()).expect("it is written");
    Recorded::open(&path).expect("a recording")
}

fn record(journal: &'static Journal, names: [u64; 4], calls: u32, samples: bool) {
    let (tape, mut depth) = (Tape::new(), 0_u32);
    let mut step = |first: u64, name: u64| {
        let first = first | journal.now();
        if tape.has_left_out() {
            tape.write_gap(first & TICKS);
        }
        if !tape.write(first, name) {
            assert!(tape.turn(journal, depth) && tape.write(first, name));
        }
        depth = if first >= END { depth - 1 } else { depth + 1 };
    };
    let [handle, find, say, size] = names;
    for call in 0..calls {
        if samples && call % 3 == 2 {
            // The last call is, too.
            tape.leave_out(6);
            continue;
        }
        step(0, handle);
        step(0, find);
        if call % 2 == 1 {
            step(0, size);
            step(END, size);
        }
        step(END, find);
        step(0, say);
        step(END, say);
        step(END, handle);
    }
}

/// Numbers that each form must agree with.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) calls: u64,
    /// Calls whose beginning is known.
    pub(crate) begins: u64,
    /// Calls whose end is known.
    pub(crate) ends: u64,
    pub(crate) gaps: u64,
    pub(crate) lost: u64,
}

impl Counts {
    pub(crate) fn of(recorded: &Recorded) -> Counts {
        let mut counts = Counts::default();
        let visit = |step: Step<'_>| match step {
            Step::Ends { call, .. } => {
                counts.calls += 1;
                counts.begins += u64::from(call.begin.is_some());
                counts.ends += u64::from(call.end.is_some());
                assert!(call.open_from <= call.open_until, "{call:?}");
            }
            Step::Gap { records, .. } => {
                counts.gaps += 1;
                counts.lost += records;
            }
            Step::Begins { .. } | Step::Appears { .. } => {}
        };
        recorded.visit(visit).expect("it is read");
        let lost = recorded.accounts().iter().map(|account| account.lost());
        assert_eq!(counts.lost, lost.sum::<u64>(), "gaps make up the losses");
        counts
    }
}

/// Path of a script beside this file.
pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/readers")
        .join(name)
}
