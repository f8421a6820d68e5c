//! Analysis of histories, made by hand and recorded.

#![cfg(feature = "trace")]

use hearth_stm::analysis::{
    Access, Attempt, End, History, Killer, Kills, Thread, perfetto, report,
};
use hearth_stm::trace::{Options, Reason, Recorder, Session, sign_of};
use hearth_stm::{Lsa, Stm, Traced, Var, abort};
use hearth_watch::stream::Log;

fn write(address: u64) -> Access {
    Access {
        address,
        words: 1,
        written: Some(7),
    }
}

fn attempt(start_ns: f64, end_ns: f64, end: End, accesses: &[Access]) -> Attempt {
    Attempt {
        start_ns,
        end_ns,
        counter: 0,
        origin: None,
        end,
        accesses: accesses.to_vec(),
    }
}

fn abort_of(reason: Reason, site: u64, owner: u16) -> End {
    End::Abort {
        reason: Some(reason),
        site,
        owner,
    }
}

fn example() -> History {
    let thread = |name: &str, sign, attempts| Thread {
        name: name.to_owned(),
        sign,
        attempts,
        lost: 0,
    };
    let read = Access {
        address: 0x1000,
        words: 5,
        written: None,
    };
    let one = vec![
        attempt(0.0, 100.0, End::Commit, &[read, write(0x1008)]),
        attempt(200.0, 260.0, End::Commit, &[write(0x1040)]),
    ];
    let two = vec![
        attempt(50.0, 150.0, abort_of(Reason::Changed, 0x1000, 0), &[read]),
        attempt(160.0, 180.0, abort_of(Reason::WriteLocked, 0x1040, 11), &[]),
        attempt(190.0, 250.0, abort_of(Reason::Changed, 0x1040, 0), &[]),
        attempt(255.0, 290.0, abort_of(Reason::User, 0, 0), &[]),
        attempt(300.0, 400.0, End::Commit, &[read, read]),
    ];
    History {
        threads: vec![thread("one", 11, one), thread("two", 12, two)],
        origins: Vec::new(),
        has_accesses: true,
    }
}

#[test]
fn killers_are_named_or_follow_from_commits() {
    let history = example();
    let kills = Kills::of(&history);
    let victims = &history.threads[1].attempts;
    let killers: Vec<_> = victims.iter().map(|it| kills.killer(1, it)).collect();
    let expected = [
        Some(Killer::Inferred(0)),
        Some(Killer::Named(0)),
        // The commit came later.
        Some(Killer::Unknown),
        None,
        None,
    ];
    assert_eq!(killers, expected);
    assert_eq!(kills.commits_at(0x1010), 1);
    let mut same = history;
    same.threads[1].sign = 11;
    let kills = Kills::of(&same);
    let killer = kills.killer(1, &same.threads[1].attempts[1]);
    assert_eq!(killer, Some(Killer::Ambiguous));
}

#[test]
fn accesses_are_spaced_evenly() {
    let history = example();
    let placed: Vec<f64> = history.threads[0].attempts[0]
        .placed()
        .map(|it| it.0)
        .collect();
    let step = 100.0 / 7.0;
    assert_eq!(placed, [step, 6.0 * step]);
}

#[test]
fn the_report_has_all_tables() {
    let text = report(&example());
    for line in [
        "one                           2          0        0.000        0.000    0.0%        0",
        "two                           1          4        0.000        0.000   68.3%        0",
        "changed                       2        0.000 ms",
        "0x0000000000001040          2 aborts      0.000 ms          1 commits write there",
        "two                                 2                0                0                1",
        "1 of these follow from the last commit at the place; the others are named.",
        "4-7                   2 ####################",
        "8-15                  1 ##########",
        "two                  |                      #    #         #     #               .|",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn arrows_lead_from_killers_to_victims() {
    let trace = perfetto(&example());
    let events = || trace.packet.iter().filter_map(|it| it.track_event.as_ref());
    let begins: Vec<(u64, u64)> = events()
        .flat_map(|it| {
            it.flow_ids
                .iter()
                .map(|&flow| (flow, it.track_uuid.unwrap_or(0)))
        })
        .collect();
    let ends: Vec<(u64, u64)> = events()
        .flat_map(|it| {
            let flows = it.terminating_flow_ids.iter();
            flows.map(|&flow| (flow, it.track_uuid.unwrap_or(0)))
        })
        .collect();
    assert_eq!(begins, [(1, 2), (2, 2)]);
    assert_eq!(ends, [(1, 3), (2, 3)]);
    let times: Vec<u64> = trace.packet.iter().filter_map(|it| it.timestamp).collect();
    assert!(times.is_sorted());
    // Three tracks; each attempt begins and ends; two arrows.
    assert_eq!(trace.packet.len(), 3 + 2 * 7 + 2 * 2);
}

#[test]
fn a_recorded_history_comes_back() {
    type Memory = Traced<Lsa, Recorder<true>>;
    let session = Session::begin(Vec::new(), Options::default()).expect("memory is there");
    let stm = Stm::<Memory>::with_algorithm().traces(session.target());
    let vars: Vec<Var<u64>> = (0..4).map(Var::new).collect();
    let work = || {
        for _ in 0..100 {
            stm.atomically_at("sums", |tx| {
                let sum = tx.fold(&vars, 0, |sum, one| sum + one)?;
                tx.write(&vars[1], sum % 1000)
            });
        }
        let _ = stm.try_atomically(|_| abort::<(), _>(()));
    };
    std::thread::scope(|scope| {
        let workers = [(); 2].map(|()| scope.spawn(work));
        for worker in workers {
            worker.join().expect("it ends");
        }
    });
    let bytes = session.end().sink.expect("the writer is whole");
    let log = Log::of(std::io::Cursor::new(bytes)).expect("a stream");
    let history = History::of_log(log);
    assert!(history.has_accesses);
    assert_eq!(history.threads.len(), 2);
    for thread in &history.threads {
        assert_eq!(thread.lost, 0);
        assert_ne!(thread.sign, sign_of(0));
        let commits = thread.attempts.iter().filter(|it| it.end == End::Commit);
        let commits: Vec<&Attempt> = commits.collect();
        assert_eq!(commits.len(), 100);
        assert!(commits.iter().all(|commit| commit.sizes() == (4, 1)));
        assert!(commits.iter().all(|it| it.start_ns <= it.end_ns));
        let given_up = abort_of(Reason::User, 0, 0);
        let last = thread.attempts.last().expect("one");
        assert_eq!(last.end, given_up);
        assert!(commits.iter().all(|it| history.origin(it) == "sums"));
        assert!(history.origin(last).contains("analysis.rs:"));
    }
    let (first, last) = history.span_ns();
    assert!(first >= 0.0 && last - first < 1e11, "{first} to {last}");
    let text = report(&history);
    assert!(text.contains("Where transactions begin"), "{text}");
    let row = text.lines().find(|line| line.starts_with("sums "));
    let words: Vec<&str> = row.unwrap_or_default().split_whitespace().collect();
    assert_eq!(words.get(1), Some(&"200"), "{text}");
}
