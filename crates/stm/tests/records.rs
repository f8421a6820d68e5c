//! Transactions recorded into a stream and read back.

#![cfg(feature = "trace")]

use hearth_stm::trace::{Options, Reason, Recorder, Session, kind, sign_of, unpack_abort};
use hearth_stm::{Lsa, Stm, Traced, Var, abort, with_tracer};
use hearth_watch::stream::{Chunk, Encoding, Log, TICKS};

type Memory<const FULL: bool> = Traced<Lsa, Recorder<FULL>>;

/// The chunks, and the records emitted and lost.
fn record<const FULL: bool>(
    encoding: Encoding,
    run: impl Fn(&Stm<Memory<FULL>>),
) -> (Vec<Chunk>, u64) {
    let options = Options {
        encoding,
        buffer_bytes: 256 << 10,
        ..Options::default()
    };
    let session = Session::begin(Vec::new(), options).expect("memory is there");
    let stm = Stm::<Memory<FULL>>::with_algorithm().traces(session.target());
    run(&stm);
    with_tracer::<Memory<FULL>, _>(Recorder::close);
    let account = session.end();
    assert_eq!(account.lost, 0);
    let bytes = account.sink.expect("the writer is whole");
    let mut log = Log::of(std::io::Cursor::new(bytes)).expect("a stream");
    let mut chunks = Vec::new();
    while let Some((missing, chunk)) = log.next_chunk() {
        assert_eq!(missing, 0);
        chunks.push(chunk);
    }
    assert!(log.has_ended);
    assert_eq!(log.damages, Vec::<String>::new());
    (chunks, account.emitted)
}

fn kinds(chunk: &Chunk) -> Vec<u8> {
    let kind_of = |record: &[u64; 2]| (record[0] >> 56) as u8;
    chunk.records.iter().map(kind_of).collect()
}

#[test]
fn a_full_trace_has_all_words() {
    let vars: Vec<Var<u64>> = (0..8).map(Var::new).collect();
    let address = |nth: usize| std::ptr::from_ref(&vars[nth]).addr() as u64;
    for encoding in [Encoding::Raw, Encoding::Columns] {
        let (chunks, emitted) = record::<true>(encoding, |stm| {
            let _ = stm.try_atomically(|tx| {
                for var in &vars[..4] {
                    tx.read(var)?;
                }
                tx.write(&vars[6], 77)?;
                tx.fold(&vars[4..], 0, |sum, one| sum + one)?;
                tx.read(&vars[1])?;
                abort::<(), _>(())
            });
            stm.atomically(|tx| tx.update(&vars[0], |value| value + 1));
        });
        assert_eq!(emitted, 12);
        let [chunk] = &chunks[..] else {
            panic!("{chunks:?}");
        };
        let (start, commit, aborted) = (kind::START, kind::COMMIT, kind::ABORT);
        let (read, write, origin) = (kind::READ, kind::WRITE, kind::ORIGIN);
        let expected = [
            start, origin, read, write, read, read, aborted, start, origin, read, write, commit,
        ];
        assert_eq!(kinds(chunk), expected);
        let access = |nth: usize| [chunk.records[nth][0] & TICKS, chunk.records[nth][1]];
        assert_eq!(access(2), [address(0), 4]);
        assert_eq!(access(3), [address(6), 77]);
        assert_eq!(access(4), [address(4), 4]);
        assert_eq!(access(5), [address(1), 1]);
        assert_eq!(unpack_abort(access(6)[1]), Some((Reason::User, 0, 0)));
        assert_ne!(chunk.note, u32::from(sign_of(0)));
        let time = |nth: usize| chunk.records[nth][0] & TICKS;
        assert!(time(0) == time(1) && time(0) <= time(6));
        assert!(time(6) <= time(7) && time(7) <= time(11));
    }
}

/// Threads wait for the writer: nothing is lost although the blocks are few.
#[test]
fn a_reduced_trace_has_starts_and_ends_of_all_threads() {
    const EACH: u64 = 20_000;
    let var = Var::new(0_u64);
    let (chunks, emitted) = record::<false>(Encoding::Columns, |stm| {
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        stm.atomically(|tx| tx.update(&var, |value| value + 1));
                    }
                });
            }
        });
    });
    let of_kind = |wanted| {
        let all = chunks.iter().flat_map(kinds);
        all.filter(|&kind| kind == wanted).count() as u64
    };
    let (starts, commits) = (of_kind(kind::START), of_kind(kind::COMMIT));
    assert_eq!(commits, 2 * EACH);
    assert_eq!(starts, commits + of_kind(kind::ABORT));
    // Each chunk says the origin once.
    assert_eq!(emitted, 2 * starts + of_kind(kind::ORIGIN));
    assert!(of_kind(kind::ORIGIN) <= chunks.len() as u64);
    let mut threads: Vec<(u32, u32)> = chunks.iter().map(|it| (it.thread, it.note)).collect();
    threads.sort_unstable();
    threads.dedup();
    assert_eq!(threads.len(), 2);
}

#[test]
fn an_instance_without_a_target_runs() {
    let stm = Stm::<Memory<true>>::with_algorithm();
    let var = Var::new(1_u64);
    assert_eq!(stm.atomically(|tx| tx.read(&var)), 1);
}

/// The silent tracer adds nothing to a descriptor.
#[test]
fn silence_has_no_size() {
    assert_eq!(size_of::<hearth_stm::trace::Silent>(), 0);
}

/// In a build with traces the plain algorithms record, too, once the process has a journal.
#[cfg(feature = "trace-reduced")]
#[test]
fn plain_instances_record_into_the_process_journal() {
    use hearth_stm::trace::Target;

    let session = Session::begin(Vec::new(), Options::default()).expect("memory is there");
    let (stm, var) = (Stm::new(), Var::new(1_u64));
    stm.atomically(|tx| tx.read(&var));
    assert!(Target::set_process(session.journal()));
    assert!(!Target::set_process(session.journal()));
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| stm.atomically(|tx| tx.update(&var, |value| value + 1)));
        worker.join().expect("it ends");
    });
    let account = session.end();
    let accesses = if cfg!(feature = "trace-full") { 2 } else { 0 };
    assert_eq!((account.emitted, account.lost), (3 + accesses, 0));
}
