//! The law of streams: emitted = stored + lost, whatever happens.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use hearth_sys::shared::memory_file;
use hearth_watch::stream::{
    Chunks, Encoding, FileSink, Head, Journal, Law, Log, Remains, Said, Shape, Sink, Tape, Writer,
};

const SMALL: Shape = Shape {
    blocks: 8,
    records: 60,
};

fn record(journal: &'static Journal, tape: &Tape, second: u64) {
    let first = journal.now();
    if !tape.write(first, second) && tape.turn(journal, 0) {
        assert!(tape.write(first, second));
    }
}

fn journal(law: Law) -> (File, &'static Journal) {
    let file = memory_file("a test", SMALL.bytes()).expect("memory");
    let journal = Journal::begin(&file, SMALL, law).expect("a journal");
    (file, journal)
}

fn head(law: Law) -> Head {
    Head {
        process: std::process::id(),
        law,
        program: "a test".into(),
        journal: String::new(),
    }
}

/// Takes some chunks, then refuses some, and so on.
struct Moody {
    bytes: Vec<u8>,
    calls: u64,
}

impl Sink for Moody {
    fn store(&mut self, chunks: &[u8]) -> io::Result<()> {
        self.calls += 1;
        if self.calls % 7 > 4 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if self.calls.is_multiple_of(5) {
            thread::sleep(Duration::from_micros(300));
        }
        self.bytes.store(chunks)
    }
}

/// Reads a stream and checks its law; returns the numbers of records emitted and stored.
fn check(mut log: Log, sent: &[u64]) -> (u64, u64) {
    let mut last = vec![0; sent.len() + 1];
    while let Some((_, chunk)) = log.next_chunk() {
        for [_, second] in &chunk.records {
            let (thread, number) = ((second >> 40) as usize, second & 0xff_ffff_ffff);
            assert!(
                number > last[thread],
                "thread {thread}: {number} comes late"
            );
            last[thread] = number;
        }
    }
    let accounts = log.accounts();
    let mut emitted: Vec<u64> = accounts.iter().map(|(total, _)| total.emitted).collect();
    emitted.sort_unstable();
    let mut expected = sent.to_vec();
    expected.sort_unstable();
    assert_eq!(emitted, expected);
    for (total, stored) in &accounts {
        assert_eq!(total.emitted, stored + total.lost(), "{total:?}");
    }
    let stored = accounts.iter().map(|(_, stored)| stored).sum();
    (emitted.iter().sum(), stored)
}

/// Records as much as it stores, a thousand times.
struct Echo {
    journal: &'static Journal,
    tape: Tape,
    calls: u64,
}

impl Sink for Echo {
    fn store(&mut self, _chunks: &[u8]) -> io::Result<()> {
        self.calls += 1;
        if self.calls < 1_000 {
            thread::sleep(Duration::from_millis(1));
            (0..60).for_each(|number| record(self.journal, &self.tape, number));
        }
        Ok(())
    }
}

#[test]
fn a_writer_that_is_always_behind_comes_back() {
    let (_file, journal) = journal(Law::DropNewest);
    let tape = Tape::new();
    (0..61).for_each(|number| record(journal, &tape, number));
    let echo = Echo {
        journal,
        tape,
        calls: 0,
    };
    let mut writer = Writer::new(journal, echo, head(Law::DropNewest), Encoding::Calls);
    assert!(writer.step(Duration::from_millis(5)));
    assert!(writer.sink().calls < 1_000, "it had a second to come back");
}

#[test]
fn every_record_is_stored_or_counted() {
    for law in Law::ALL {
        let (_file, journal) = journal(law);
        let sent: Vec<u64> = (1..6).map(|thread| 3_000 * thread + 17).collect();
        let mut bytes = Vec::new();
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let moody = Moody {
                    bytes: Vec::new(),
                    calls: 0,
                };
                let mut writer = Writer::new(journal, moody, head(law), Encoding::Calls);
                while writer.step(Duration::from_millis(1)) {}
                while !writer.finish() {}
                std::mem::take(&mut writer.sink().bytes)
            });
            let recorders: Vec<_> = (0_u64..)
                .zip(&sent)
                .map(|(thread, &count)| {
                    scope.spawn(move || {
                        let tape = Tape::new();
                        for number in 1..=count {
                            record(journal, &tape, thread << 40 | number);
                        }
                    })
                })
                .collect();
            for recorder in recorders {
                recorder.join().expect("it records");
            }
            journal.close();
            bytes = writer.join().expect("it writes");
        });
        let log = Log::of(io::Cursor::new(bytes)).expect("a stream");
        let (emitted, stored) = check(log, &sent);
        assert!(
            stored > 0 && stored < emitted,
            "{law}: the sink refused some"
        );
    }
}

#[test]
fn nothing_is_lost_when_threads_wait() {
    let (_file, journal) = journal(Law::Block);
    let mut writer = Writer::new(journal, Vec::new(), head(Law::Block), Encoding::Raw);
    thread::scope(|scope| {
        scope.spawn(|| {
            let tape = Tape::new();
            for number in 1..=20_000 {
                record(journal, &tape, number);
            }
            tape.close();
            journal.close();
        });
        while writer.step(Duration::from_millis(1)) {}
    });
    assert!(writer.finish());
    let bytes = std::mem::take(writer.sink());
    let log = Log::of(io::Cursor::new(bytes)).expect("a stream");
    assert_eq!(check(log, &[20_000]), (20_000, 20_000));
}

#[test]
fn a_journal_has_what_the_file_lacks() {
    for law in [Law::DropNewest, Law::DropOldest] {
        let (file, journal) = journal(law);
        let tape = Tape::new();
        let mut writer = Writer::new(journal, Vec::new(), head(law), Encoding::Calls);
        // More than the blocks take, with a writer that comes once in between, and then dies.
        for number in 1..=300 {
            record(journal, &tape, number);
        }
        if let Some(full) = journal.try_next() {
            writer.store(full);
        }
        for number in 301..=1_000 {
            record(journal, &tape, number);
        }
        let remains = Remains::of_file(&file).expect("a journal");
        assert!(!remains.is_over);
        let mut log = Log::of(io::Cursor::new(writer.sink().clone())).expect("a stream");
        log.add(remains);
        let (_, stored) = check(log, &[1_000]);
        assert!(stored >= 8 * 60, "{law}: all blocks are there");
    }
}

#[test]
fn threads_that_still_run_at_the_end_are_in_the_file() {
    let (file, journal) = journal(Law::DropNewest);
    let (is_over, written) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut writer = Writer::new(journal, Vec::new(), head(Law::DropNewest), Encoding::Calls);
    thread::scope(|scope| {
        scope.spawn(|| {
            let tape = Tape::new();
            while !is_over.load(Ordering::Relaxed) {
                record(journal, &tape, 1 + written.fetch_add(1, Ordering::Relaxed));
            }
        });
        while written.load(Ordering::Relaxed) < 10_000 {
            writer.step(Duration::from_millis(1));
        }
        assert!(writer.finish());
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(Remains::of_file(&file).expect("a journal").is_over);
    let bytes = std::mem::take(writer.sink());
    let mut log = Log::of(io::Cursor::new(bytes)).expect("a stream");
    while log.next_chunk().is_some() {}
    assert!(log.has_ended);
    let (total, stored) = log.accounts().remove(0);
    assert_eq!(total.emitted, stored + total.lost());
    assert!(total.emitted >= 9_000);
}

#[test]
fn more_threads_than_slots_at_a_time_come_and_go() {
    let (_file, journal) = journal(Law::Block);
    let mut writer = Writer::new(journal, Vec::new(), head(Law::Block), Encoding::Calls);
    for _ in 0..300 {
        let tape = Tape::new();
        record(journal, &tape, 1);
        drop(tape);
        writer.step(Duration::ZERO);
        writer.account();
    }
    journal.close();
    assert!(writer.finish());
    let bytes = std::mem::take(writer.sink());
    let mut log = Log::of(io::Cursor::new(bytes)).expect("a stream");
    while log.next_chunk().is_some() {}
    let accounts = log.accounts();
    assert_eq!(accounts.len(), 300);
    assert!(
        accounts
            .iter()
            .all(|(total, stored)| total.emitted == 1 && *stored == 1)
    );
}

#[test]
fn a_full_disk_leaves_whole_chunks() {
    let Ok(full) = File::options().write(true).open("/dev/full") else {
        return;
    };
    let (_file, journal) = journal(Law::DropNewest);
    let tape = Tape::new();
    let sink = FileSink::new(full);
    let mut writer = Writer::new(journal, sink, head(Law::DropNewest), Encoding::Calls);
    for number in 1..=200 {
        record(journal, &tape, number);
    }
    writer.step(Duration::from_secs(1));
    let failure = writer.failure().expect("it is full");
    assert_eq!(failure.kind(), io::ErrorKind::StorageFull);
    tape.close();
    writer.step(Duration::from_secs(1));
    let total = journal.accounts().remove(0);
    assert_eq!((total.emitted, total.refused), (200, 200));
}

#[test]
fn names_that_come_while_a_chunk_is_stored_are_stored_with_the_next() {
    const NAMES: usize = 20_000;
    let (_file, journal) = journal(Law::Block);
    let mut writer = Writer::new(journal, Vec::new(), head(Law::Block), Encoding::Raw);
    thread::scope(|scope| {
        let adder = scope.spawn(|| (0..NAMES).all(|_| journal.name("a name").is_some()));
        while !adder.is_finished() {
            writer.account();
        }
        assert!(adder.join().expect("it ends"), "there is room");
    });
    assert!(writer.finish());
    let bytes = std::mem::take(writer.sink());
    let mut stored = 0;
    for chunk in Chunks::new(&bytes[..]) {
        if let Said::Names(names) = chunk.expect("whole chunks") {
            stored += names.len();
        }
    }
    assert_eq!(stored, NAMES);
}

#[test]
fn an_account_waits_for_its_threads_blocks() {
    let (_file, journal) = journal(Law::DropOldest);
    let tape = Tape::new();
    for number in 1..=100 {
        record(journal, &tape, number);
    }
    tape.close();
    assert!(journal.accounts_of_left().is_empty(), "two blocks are full");
    let first = journal.try_next().expect("two blocks");
    first.refuse();
    assert!(journal.accounts_of_left().is_empty(), "one block is full");
    drop(journal.try_next());
    let totals = journal.accounts_of_left();
    assert_eq!(
        (totals.len(), totals[0].emitted, totals[0].refused),
        (1, 100, 60)
    );
    assert!(journal.accounts_of_left().is_empty());
}
