//! All forms of the files come back the same, and in time.

use std::path::PathBuf;
use std::sync::Arc;

use hearth_stm::{Lsa, Stm, Traced, Var, abort, with_tracer};
use hearth_transactions::{Codec, Form, Kind, Paper, Plan, Record, trace};

type Memory<const FULL: bool> = Traced<Lsa, Paper<FULL>>;

const FORMS: [Form; 8] = [
    Form::Ascii,
    Form::Binary(1),
    Form::Binary(100),
    Form::Inline(100, Codec::Fast),
    Form::Inline(100, Codec::Strong),
    Form::Compressors(7, Codec::Fast, 1),
    Form::Compressors(7, Codec::Strong, 2),
    Form::Compressors(7, Codec::Fast, 3),
];

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("hearth-transactions-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("there is room");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn codec(form: Form) -> Option<Codec> {
    match form {
        Form::Inline(_, codec) | Form::Compressors(_, codec, _) => Some(codec),
        _ => None,
    }
}

#[test]
fn all_forms_come_back() {
    let vars: Vec<Var<u64>> = (0..4).map(Var::new).collect();
    let address = |nth: usize| std::ptr::from_ref(&vars[nth]).addr() as u64;
    for (nth, form) in FORMS.into_iter().enumerate() {
        let folder = Folder::new(&format!("all-{nth}"));
        let plan = Arc::new(Plan::new(Some(folder.0.clone()), form));
        let stm = Stm::<Memory<true>>::with_algorithm().traces(Some(Arc::clone(&plan)));
        for round in 0..50 {
            stm.atomically(|tx| {
                tx.fold(&vars, 0, |sum, one| sum + one)?;
                tx.write(&vars[2], round)
            });
            let _ = stm.try_atomically(|_| abort::<(), _>(()));
        }
        with_tracer::<Memory<true>, _>(Paper::close);
        let threads = trace::read(&folder.0, codec(form)).expect("files are whole");
        let records = &threads[&0];
        assert_eq!(records.len(), 3 + 50 * (9 + 4) + 3, "{form:?}");
        let of_first = &records[3..16];
        let kinds: Vec<Kind> = of_first.iter().map(|record| record.kind).collect();
        let expected = [
            Kind::Rdtsc,
            Kind::Start,
            Kind::Read,
            Kind::Read,
            Kind::Read,
            Kind::Read,
            Kind::Write,
            Kind::Rdtsc,
            Kind::Commit,
            Kind::Rdtsc,
            Kind::Start,
            Kind::Rdtsc,
            Kind::Abort,
        ];
        assert_eq!(kinds, expected, "{form:?}");
        assert_eq!(of_first[5].words, [address(3), 0]);
        assert_eq!(of_first[6].words, [address(2), 0]);
        let events = trace::merge(&threads);
        assert_eq!(events.len(), 50 * (7 + 2));
        let history = trace::history(&threads);
        let attempts = &history.threads[0].attempts;
        assert_eq!(attempts.len(), 100);
        assert!(attempts.iter().step_by(2).all(|it| it.sizes() == (4, 1)));
        assert!(hearth_stm::analysis::report(&history).contains("Words read in an attempt"));
        assert!(events.is_sorted_by(|one, other| one.ns <= other.ns));
        if !matches!(form, Form::Ascii) && codec(form).is_none() {
            assert_eq!(plan.bytes(), records.len() as u64 * 17);
        }
    }
}

#[test]
fn reduced_traces_have_no_accesses_and_threads_have_files() {
    let folder = Folder::new("reduced");
    let plan = Arc::new(Plan::new(Some(folder.0.clone()), Form::Binary(10)));
    let stm = Stm::<Memory<false>>::with_algorithm().traces(Some(plan));
    let var = Var::new(0_u64);
    std::thread::scope(|scope| {
        let work = || {
            for _ in 0..1000 {
                stm.atomically(|tx| tx.update(&var, |value| value + 1));
            }
        };
        let workers = [(); 3].map(|()| scope.spawn(work));
        for worker in workers {
            worker.join().expect("it ends");
        }
    });
    let threads = trace::read(&folder.0, None).expect("files are whole");
    assert_eq!(threads.len(), 3);
    let events = trace::merge(&threads);
    let number = |kind| events.iter().filter(|it| it.record.kind == kind).count();
    assert_eq!(number(Kind::Commit), 3000);
    assert_eq!(number(Kind::Start), 3000 + number(Kind::Abort));
    assert_eq!(number(Kind::Read) + number(Kind::Write), 0);
    // The counter grows with the commits, in the order of time but for those that were close.
    let commits: Vec<u64> = events
        .iter()
        .filter(|event| event.record.kind == Kind::Commit)
        .map(|event| event.record.words[1])
        .collect();
    assert_eq!(commits.iter().max(), Some(&(3000 * 8)));
}

#[test]
fn accesses_are_spaced_evenly() {
    let records = [
        Record::new(Kind::Timing1, 1, 5),
        Record::new(Kind::Timing2, 1000, 0),
        Record::new(Kind::Rdtsc, 10_000, 0),
        Record::new(Kind::Rdtsc, 10_200, 0),
        Record::new(Kind::Start, 1, 0),
        Record::new(Kind::Read, 8, 0),
        Record::new(Kind::Write, 8, 1),
        Record::new(Kind::Read, 16, 0),
        Record::new(Kind::Rdtsc, 10_600, 0),
        Record::new(Kind::Commit, 1, 8),
        Record::new(Kind::Timing1, 1, 5),
        Record::new(Kind::Timing2, 2000, 0),
        Record::new(Kind::Rdtsc, 12_000, 0),
    ];
    let events = trace::place(7, &records).expect("the clocks are there");
    let times: Vec<f64> = events.iter().map(|event| event.ns - 5e9).collect();
    assert_eq!(times, [1100.0, 1150.0, 1200.0, 1250.0, 1300.0]);
    assert!(events.iter().all(|event| event.thread == 7));
    assert_eq!(trace::place(7, &records[3..10]), None);
}
