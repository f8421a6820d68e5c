//! Reuse distances beside an oracle that counts, and the source's cases.

use std::collections::BTreeSet;

use hearth_model::locality::thrashing::{Runs, SeriesError, detect};
use hearth_model::locality::trace::{Reader, TraceError};
use hearth_model::locality::{Access, Analysis, AnalysisOptions, Level, Report, Sampler, Stack};

/// The definition itself: distinct other lines since the last use.
fn counted(lines: &[u64], at: usize) -> Option<u64> {
    let before = lines[..at].iter().rposition(|&line| line == lines[at])?;
    let between: BTreeSet<u64> = lines[before + 1..at].iter().copied().collect();
    Some(between.len() as u64)
}

#[test]
fn distances_are_those_counted() {
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let distinct = [1, 5, 50, 700][seed as usize % 4];
        let lines: Vec<u64> = (0..1500).map(|_| random.u64(..distinct) * 64).collect();
        let mut stack = Stack::new();
        for (at, &line) in lines.iter().enumerate() {
            let touch = stack.touch(line, at as u32);
            let distance = touch.map(|touch| touch.distance);
            assert_eq!(distance, counted(&lines, at), "seed {seed}, reference {at}");
            if let Some(touch) = touch {
                assert_eq!(lines[touch.note as usize], line);
            }
        }
    }
}

/// Rows fill, marks move together, the row grows: distances stay those of a list that is searched.
#[test]
fn distances_survive_full_rows_and_removals() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut stack = Stack::new();
    let mut list: Vec<u64> = Vec::new();
    for _ in 0..60_000 {
        let reach = random.u64(1..5001);
        let line = random.u64(..reach);
        if random.u8(..) < 8 {
            stack.remove(line);
            list.retain(|&known| known != line);
            continue;
        }
        let place = list.iter().rposition(|&known| known == line);
        let expected = place.map(|place| (list.len() - place - 1) as u64);
        let distance = stack.touch(line, 0).map(|touch| touch.distance);
        assert_eq!(distance, expected);
        if let Some(place) = place {
            list.remove(place);
        }
        list.push(line);
        assert_eq!(stack.lines(), list.len());
    }
}

/// An LRU cache, simulated, misses what the histogram says, whatever its size.
#[test]
fn miss_ratios_are_those_of_a_cache() {
    let mut random = fastrand::Rng::with_seed(3);
    let lines: Vec<u64> = (0..20_000)
        .map(|_| random.u64(..400).min(random.u64(..400)))
        .collect();
    let report = of_lines(AnalysisOptions::new(), &lines);
    for capacity in [1_usize, 2, 17, 64, 200, 399, 400, 1000] {
        let mut cache: Vec<u64> = Vec::new();
        let mut misses = 0;
        for &line in &lines {
            match cache.iter().position(|&held| held == line) {
                Some(place) => drop(cache.remove(place)),
                None => misses += 1,
            }
            cache.insert(0, line);
            cache.truncate(capacity);
        }
        let share = f64::from(misses) / lines.len() as f64;
        let estimate = report.misses(capacity as u64, false);
        assert!((estimate.share - share).abs() < 1e-12, "{capacity} lines");
        assert!(estimate.is_exact());
    }
}

fn of_lines(options: AnalysisOptions, lines: &[u64]) -> Report {
    let mut analysis = Analysis::new(options);
    let component = analysis.component("all");
    for &line in lines {
        analysis.add(Access {
            line,
            thread: 0,
            component,
            write: false,
        });
    }
    analysis.report()
}

/// The interval of a sample contains the truth in at least nine of ten cases, where about 95 of 100
/// are expected, and is narrow enough to be useful.
#[test]
fn samples_state_their_error() {
    let (mut held, mut asked) = (0, 0);
    for seed in 0..12 {
        let mut random = fastrand::Rng::with_seed(seed);
        let lines: Vec<u64> = (0..120_000)
            .map(|_| {
                let skew = random.f64().powi(1 + (seed % 3) as i32);
                (skew * 30_000.0) as u64
            })
            .collect();
        let truth = of_lines(AnalysisOptions::new(), &lines);
        let sample = of_lines(AnalysisOptions::new().sample(3000), &lines);
        assert!(sample.rate < 0.2 && sample.rate > 0.05, "{}", sample.rate);
        assert!((sample.lines / truth.lines - 1.0).abs() < 0.1);
        for capacity in [2000, 5000, 10_000, 20_000] {
            let share = truth.misses(capacity, false).share;
            let estimate = sample.misses(capacity, false);
            asked += 1;
            held += u32::from(estimate.low <= share && share <= estimate.high);
            assert!(estimate.high - estimate.low < 0.2, "{capacity}: {estimate}");
        }
    }
    assert!(held * 10 >= asked * 9, "{held} of {asked}");
}

#[test]
fn samplers_never_follow_more_than_they_may() {
    let mut sampler = Sampler::new(100);
    let mut followed = BTreeSet::new();
    for line in 0..10_000_u64 {
        let mut given_up = Vec::new();
        if sampler.follows(line * 64, |line| given_up.push(line)) {
            followed.insert(line * 64);
        }
        for line in given_up {
            assert!(followed.remove(&line));
        }
        assert!(followed.len() <= 100);
    }
    assert!(
        (0.005..0.02).contains(&sampler.rate()),
        "{}",
        sampler.rate()
    );
    for &line in &followed.clone() {
        assert!(sampler.follows(line, |_| unreachable!()));
    }
}

/// The microbenchmark of the source as a trace: each thread walks its own lines, then the
/// section's, of which it writes some; through a separate server if the section is delegated.
struct Loop {
    own: u64,
    section: u64,
    written: u64,
    workers: u32,
    is_delegated: bool,
}

impl Loop {
    fn report(&self, levels: &[Level]) -> Report {
        let mut options = AnalysisOptions::new();
        for level in levels {
            options = options.level(level.clone());
        }
        let mut analysis = Analysis::new(options);
        let walk = analysis.component("walk");
        let section = analysis.component("section");
        let mut random = fastrand::Rng::with_seed(1);
        for _pass in 0..20 {
            for worker in 0..self.workers {
                let mut own: Vec<u64> = (0..self.own).collect();
                random.shuffle(&mut own);
                for line in own {
                    analysis.add(Access {
                        line: (u64::from(worker) + 1) << 32 | line,
                        thread: worker,
                        component: walk,
                        write: false,
                    });
                }
                for line in 0..self.section {
                    analysis.add(Access {
                        line,
                        thread: if self.is_delegated {
                            self.workers
                        } else {
                            worker
                        },
                        component: section,
                        write: line < self.written,
                    });
                }
            }
        }
        analysis.report()
    }
}

fn l1() -> Level {
    Level::private("L1d", 1024)
}

/// 600 lines each fit into 1,024, both together do not; delegated, the section's stay.
#[test]
fn displacement_is_found_where_only_the_sum_is_too_large() {
    let mut work = Loop {
        own: 600,
        section: 600,
        written: 0,
        workers: 1,
        is_delegated: false,
    };
    let report = work.report(&[l1(), Level::private("L2", 8192)]);
    let [walk, section] = report.displacements.as_slice() else {
        panic!("{:?}", report.displacements);
    };
    assert_eq!(
        (walk.component.as_str(), section.component.as_str()),
        ("walk", "section")
    );
    // In the walk, shuffled anew each time, some lines come again early.
    assert!(walk.share > 0.5, "{walk}");
    // All but the first of 20 passes.
    assert!((section.share - 0.95).abs() < 1e-9, "{section}");
    assert_eq!(section.beside, [("walk".to_owned(), 600.0)]);
    assert_eq!(section.level, l1());
    assert_eq!(
        section.to_string(),
        "data displacement in L1d (1024 lines): 95.0 % of the references of section miss there and \
         would hit if it ran alone; it touches 600 lines each time, and beside it walk 600"
    );
    assert!(report.invalidations.is_empty());

    work.is_delegated = true;
    assert!(work.report(&[l1()]).displacements.is_empty());
}

/// The edge is the cache's size in lines, in both ways: together 1,024 stay, 1,025 do not.
#[test]
fn displacement_begins_at_the_size_of_the_cache() {
    for (own, is_displaced) in [(424, false), (425, true)] {
        let work = Loop {
            own,
            section: 600,
            written: 0,
            workers: 1,
            is_delegated: false,
        };
        let found = work.report(&[l1()]).displacements;
        let section = found.iter().any(|found| found.component == "section");
        assert_eq!(section, is_displaced, "{own}");
    }
}

/// A component that is too large by itself is not displaced by anyone.
#[test]
fn a_component_too_large_alone_is_not_displaced() {
    let work = Loop {
        own: 2048,
        section: 1100,
        written: 0,
        workers: 1,
        is_delegated: false,
    };
    let found = work.report(&[l1()]).displacements;
    assert!(
        found.iter().all(|found| found.component != "section"),
        "{found:?}"
    );
}

/// Lines written by others are found, as many as were written; one owner alone invalidates nothing.
#[test]
fn invalidation_counts_the_lines_that_others_wrote() {
    let mut work = Loop {
        own: 64,
        section: 128,
        written: 32,
        workers: 4,
        is_delegated: false,
    };
    let report = work.report(&[l1()]);
    let [only] = report.invalidations.as_slice() else {
        panic!("{:?}", report.invalidations);
    };
    // 32 of 128 at each use but each worker's first: 19 of 20 passes.
    assert!((only.share - 0.25 * 0.95).abs() < 1e-9, "{only}");
    assert!((only.share_would_hit - only.share).abs() < 1e-9);
    assert_eq!(
        only.to_string(),
        "data invalidation: 23.8 % of the references of section find a line that another thread wrote \
         since, in section; 23.8 % would have hit the nearest private cache"
    );
    assert!(report.displacements.is_empty());

    work.is_delegated = true;
    assert!(work.report(&[l1()]).invalidations.is_empty());
    work.is_delegated = false;
    work.workers = 1;
    assert!(work.report(&[l1()]).invalidations.is_empty());
}

#[test]
fn executions_are_measured_in_distinct_lines() {
    let mut analysis = Analysis::new(AnalysisOptions::new());
    let (a, b) = (analysis.component("a"), analysis.component("b"));
    let mut random = fastrand::Rng::with_seed(9);
    let mut sizes = Vec::new();
    for pass in 0..200 {
        let (component, first) = if pass % 2 == 0 { (a, 0) } else { (b, 1000) };
        let mut distinct = BTreeSet::new();
        for _ in 0..100 {
            let line = first + random.u64(..80);
            distinct.insert(line);
            analysis.add(Access {
                line,
                thread: 0,
                component,
                write: false,
            });
        }
        sizes.push(distinct.len() as f64);
    }
    let report = analysis.report();
    for (at, component) in report.components.iter().enumerate() {
        let own: Vec<f64> = sizes.iter().skip(at).step_by(2).copied().collect();
        assert_eq!(component.executions, 100);
        assert!((component.lines_mean - own.iter().sum::<f64>() / 100.0).abs() < 1e-9);
        assert!((component.lines_highest - own.iter().copied().fold(0.0, f64::max)).abs() < 1e-9);
    }
}

/// Threads have caches of their own, and share others: two that walk the same lines.
#[test]
fn shared_and_private_levels_see_different_distances() {
    let mut analysis = Analysis::new(
        AnalysisOptions::new()
            .level(Level::private("L1d", 16))
            .level(Level::shared("L3", 16)),
    );
    let component = analysis.component("walk");
    for _pass in 0..50 {
        for thread in 0..2 {
            for line in 0..10_u64 {
                analysis.add(Access {
                    line: u64::from(thread) * 100 + line,
                    thread,
                    component,
                    write: false,
                });
            }
        }
    }
    let report = analysis.report();
    assert!((report.levels[0].misses.share - 20.0 / 1000.0).abs() < 1e-12);
    assert!((report.levels[1].misses.share - 1.0).abs() < 1e-12);
    assert!((report.lines - 20.0).abs() < 1e-12);
}

fn runs(threads: u32, throughputs: &[f64]) -> Runs {
    Runs {
        threads,
        throughputs: throughputs.to_vec(),
    }
}

#[test]
fn thrashing_is_a_significant_fall() {
    let falls = [
        runs(12, &[50.0, 52.0, 49.0, 51.0, 50.0]),
        runs(2, &[60.0, 61.0, 59.0, 60.0, 62.0]),
        runs(4, &[100.0, 99.0, 101.0, 100.0, 102.0]),
        runs(8, &[80.0, 81.0, 79.0, 80.0, 82.0]),
    ];
    let found = detect(&falls).unwrap().expect("a clear fall");
    let threads = (found.threads_best, found.threads_first, found.threads_worst);
    assert_eq!(threads, (4, 8, 12));
    assert!(found.chance < 1e-4);
    let words = found.to_string();
    assert!(
        words.starts_with("internal thrashing: throughput is highest with 4 threads"),
        "{words}"
    );
    let noise = [
        runs(2, &[60.0, 80.0, 100.0]),
        runs(4, &[95.0, 75.0, 85.0]),
        runs(8, &[60.0, 90.0, 85.0]),
    ];
    assert_eq!(detect(&noise), Ok(None));
    let rises = [
        runs(1, &[1.0, 1.1]),
        runs(2, &[2.0, 2.1]),
        runs(4, &[2.0, 2.2]),
    ];
    assert_eq!(detect(&rises), Ok(None));
}

/// Without a fall one is reported in no more cases than promised.
#[test]
fn thrashing_is_seldom_reported_without_a_fall() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut normal = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
    let alarms = (0..2000).filter(|_| {
        let series: Vec<Runs> = (1..=6)
            .map(|threads| runs(threads, &[(); 8].map(|()| 100.0 + normal())))
            .collect();
        detect(&series).unwrap().is_some()
    });
    // 1 % are promised; 2000 fair trials give more than 35 in one of a thousand cases.
    assert!(alarms.count() <= 35);
}

#[test]
fn series_that_cannot_be_judged_are_refused() {
    let good = runs(1, &[1.0, 2.0]);
    assert_eq!(detect(&[]), Err(SeriesError::TooFewPoints));
    assert_eq!(
        detect(std::slice::from_ref(&good)),
        Err(SeriesError::TooFewPoints)
    );
    assert_eq!(
        detect(&[good.clone(), runs(2, &[1.0])]),
        Err(SeriesError::TooFewRuns(2))
    );
    let bad = runs(2, &[1.0, f64::NAN]);
    assert_eq!(
        detect(&[good.clone(), bad]),
        Err(SeriesError::NotAThroughput(2))
    );
    assert_eq!(detect(&[good.clone(), good]), Err(SeriesError::Twice(1)));
}

#[test]
fn both_forms_of_traces_are_read() {
    let mut reader = Reader::new();
    let text = "==12== Lackey\nI  04016b80,3\n L 1ffeffe7e8,8\n S 10,4\n M 7f,2\n# ours\nt 3\nc tree walk\n\
                r 64\nw 0x80 256 # all\nt 0\nr 1 1\nt 3\nr 2";
    let mut seen = Vec::new();
    for line in text.lines() {
        if let Some(it) = reader.line(line).unwrap() {
            let lines: Vec<u64> = it.lines(64).collect();
            seen.push((it.thread, it.write, lines, reader.component().to_owned()));
        }
    }
    let seen: Vec<_> = seen
        .iter()
        .map(|(thread, write, lines, name)| (*thread, *write, lines.as_slice(), name.as_str()))
        .collect();
    assert_eq!(
        seen,
        [
            (0, false, &[0x1f_feff_e7e8 / 64][..], "program"),
            (0, true, &[0], "program"),
            (0, true, &[1, 2], "program"),
            (3, false, &[1], "tree walk"),
            (3, true, &[2, 3, 4, 5], "tree walk"),
            (0, false, &[0], "program"),
            (3, false, &[0], "tree walk"),
        ]
    );
}

#[test]
fn lines_that_are_no_trace_are_refused() {
    let refusal = |line: &str| Reader::new().line(line).unwrap_err();
    assert_eq!(refusal("x 1"), TraceError::Unknown("x".into()));
    assert_eq!(refusal(" L zz,8"), TraceError::Address("zz,8".into()));
    assert_eq!(refusal(" L 10"), TraceError::Address("10".into()));
    assert_eq!(refusal(" S 10,0"), TraceError::Size("0".into()));
    assert_eq!(refusal("r"), TraceError::Address(String::new()));
    assert_eq!(
        refusal("r 0xfffffffffffffff0 32"),
        TraceError::Size("32".into())
    );
    assert_eq!(refusal("r 1 2 3"), TraceError::Extra("3".into()));
    assert_eq!(
        refusal("w 1 9999999999"),
        TraceError::Size("9999999999".into())
    );
    assert_eq!(refusal("t one"), TraceError::Thread("one".into()));
    assert_eq!(refusal("c"), TraceError::NoName);
    assert!(Reader::new().line("r 0xffffffffffffffff 1").is_ok());
    assert_eq!(
        refusal("\u{1b}[2J 1"),
        TraceError::Unknown("\\u{1b}[2J".into())
    );
}
