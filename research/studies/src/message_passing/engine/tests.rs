//! The walks by counting, configurations, and short runs in every mode.

use std::sync::atomic::{AtomicU64, Ordering};

use hearth_sync::{Copying, LockKind, Mode, Queue};

use super::config::{Config, ConfigError, Defects};
use super::experiments::{Experiment, Sizes, cells};
use super::pool::huge_kib;
use super::walk::{Lines, Random, WORDS, WriteWalk};
use super::{grid, repeat, run};

fn words(lines: usize) -> Vec<AtomicU64> {
    (0..lines * WORDS).map(|_| AtomicU64::new(0)).collect()
}

#[test]
fn a_shuffle_is_one_cycle_over_all_lines() {
    for lines in [1, 2, 3, 7, 128, 1000] {
        for seed in 0..5 {
            let words = words(lines);
            let shuffled = Lines::shuffled(&words, &mut Random(seed));
            assert_eq!(shuffled.read(), lines as u64 - 1);
        }
    }
}

#[test]
fn shuffles_differ_by_seed_and_only_by_that() {
    let order = |seed| {
        let words = words(64);
        Lines::shuffled(&words, &mut Random(seed));
        words
            .iter()
            .map(|word| word.load(Ordering::Relaxed))
            .collect::<Vec<_>>()
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
}

/// Lines that each of three passes modifies, and lines that it moves over.
fn passes(lines: usize, modified: usize, defects: Defects) -> Vec<(u64, u64)> {
    let words = words(lines);
    let lines = Lines::shuffled(&words, &mut Random(3));
    let mut walk = WriteWalk::new(lines.len(), modified, defects);
    let mut before = 0;
    (0..3)
        .map(|_| {
            let moves = walk.pass(lines);
            let after = lines.modifications();
            let modified = after - before;
            before = after;
            (modified, moves)
        })
        .collect()
}

#[test]
fn a_pass_modifies_exactly_as_many_lines_as_asked_for() {
    for lines in [2, 3, 100, 128, 777] {
        for modified in [0, 1, lines / 3, lines / 2, lines - 1] {
            let expected = vec![(modified as u64, lines as u64 - 1); 3];
            assert_eq!(passes(lines, modified, Defects::default()), expected);
        }
    }
}

#[test]
fn the_same_lines_are_modified_each_time() {
    let words = words(128);
    let lines = Lines::shuffled(&words, &mut Random(9));
    let mut walk = WriteWalk::new(128, 40, Defects::default());
    for _ in 0..10 {
        walk.pass(lines);
    }
    assert_eq!((lines.modified(), lines.modifications()), (40, 400));
}

/// Known wrong behaviour, of the source's listing: half of the moves of 128 lines, whatever the
/// divisor.
#[test]
fn a_power_of_two_as_mask_modifies_half() {
    let defects = Defects {
        power_of_two_mask: true,
        head_unmodified: true,
        ..Defects::default()
    };
    for modified in [2, 8, 16, 32, 64] {
        let (found, moves) = passes(128, modified, defects)[0];
        assert_eq!(moves, 127);
        assert!((63..=64).contains(&found), "{modified}: {found}");
    }
}

#[test]
fn without_the_head_a_mask_modifies_one_fewer() {
    let defects = Defects {
        head_unmodified: true,
        ..Defects::default()
    };
    assert_eq!(passes(128, 16, defects)[0], (15, 127));
}

#[test]
fn a_cursor_that_is_kept_goes_nowhere_after_the_first_pass() {
    let defects = Defects {
        cursor_kept: true,
        ..Defects::default()
    };
    let moves: Vec<u64> = passes(128, 16, defects).iter().map(|pass| pass.1).collect();
    assert_eq!(moves, [127, 0, 0]);
}

#[test]
fn a_counter_that_is_kept_makes_passes_differ() {
    let defects = Defects {
        counter_kept: true,
        head_unmodified: true,
        ..Defects::default()
    };
    let found: Vec<u64> = passes(128, 16, defects).iter().map(|pass| pass.0).collect();
    assert_eq!(found, [15, 16, 16]);
}

#[test]
fn a_file_may_leave_out_everything() {
    let config = Config::parse("{}").unwrap();
    assert_eq!(config, Config::default());
    assert_eq!((config.threads, config.loops()), (10, 10));
    let text = r#"{"mode": "message", "lock": "mcs", "queue": "lines", "wait": {"spin_us": 5.0},
                   "defects": {"cursor_kept": true}}"#;
    let config = Config::parse(text).unwrap();
    assert_eq!(
        (config.loops(), config.lock, config.queue),
        (9, LockKind::Mcs, Queue::Lines)
    );
    let again = serde_json::to_string(&config).unwrap();
    assert_eq!(Config::parse(&again).unwrap(), config);
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    for (text, expected) in [
        (r#"{"threads": 0}"#, "threads is 0"),
        (
            r#"{"threads": 1, "mode": "message"}"#,
            "as the server is counted",
        ),
        (
            r#"{"section_lines": 4096}"#,
            "section_lines is 4096 and local_lines 2048",
        ),
        (
            r#"{"modified_lines": 128}"#,
            "modified_lines < section_lines",
        ),
        (r#"{"message_bytes": 100}"#, "choose one of [0, 8,"),
        (r#"{"seconds": 0}"#, "seconds above 0"),
        (r#"{"seconds": -1}"#, "choose up to 3600"),
        (r#"{"repetitions": 0}"#, "ask for 1 at least"),
        (r#"{"local_lines": 1000000}"#, "raise pool_mib to 611"),
        (r#"{"wait": {"spin_us": -1}}"#, "spin_us must be"),
        (r#"{"lock": "brass"}"#, "brass"),
        (r#"{"thread": 3}"#, "unknown field `thread`"),
        ("{", "line 1"),
    ] {
        let said = Config::parse(text).unwrap_err().to_string();
        assert!(said.contains(expected), "{text}: {said}");
    }
    let missing = Config::read(std::path::Path::new("/nowhere/at.json")).unwrap_err();
    assert!(matches!(missing, ConfigError::File { .. }));
}

#[test]
fn the_experiments_have_the_sources_sizes() {
    let base = Config::default();
    let all = cells(Experiment::Displacement, Sizes::Source, None, &base);
    assert!(
        all.iter()
            .all(|cell| cell.config.threads == 10 && cell.config.local_lines == 2048)
    );
    assert!(
        [8, 64, 1024, 2048]
            .iter()
            .all(|x| all.iter().any(|cell| cell.x == *x))
    );
    let all = cells(Experiment::Invalidation, Sizes::Source, None, &base);
    assert!(all.iter().all(|cell| cell.config.section_lines == 128));
    assert!(
        [2, 4, 8, 12]
            .iter()
            .all(|threads| all.iter().any(|cell| cell.config.threads == *threads))
    );
    let all = cells(Experiment::MessageSize, Sizes::Source, None, &base);
    assert!(all.iter().all(|cell| cell.config.mode == Mode::Message));
    assert!(
        [1, 128]
            .iter()
            .all(|lines| all.iter().any(|cell| cell.config.section_lines == *lines))
    );
    for sizes in [
        Sizes::Source,
        Sizes::of_cache_bytes(48.0 * 1024.0),
        Sizes::CacheLines(16),
    ] {
        for experiment in [
            Experiment::Displacement,
            Experiment::Invalidation,
            Experiment::MessageSize,
        ] {
            for cell in cells(experiment, sizes, Some(&[2, 3, 100]), &base) {
                cell.config.check().unwrap();
            }
        }
    }
}

#[test]
fn huge_pages_are_read_from_what_the_system_says() {
    let text = "7f00-7f80 rw-p 00000000 00:00 0 \nSize: 4 kB\nAnonHugePages:   2048 kB\n\
                8000-9000 rw-p 00000000 00:00 0 \nAnonHugePages:   4096 kB\n";
    assert_eq!(huge_kib(text, 0x7f10), 2048);
    assert_eq!(huge_kib(text, 0x8fff), 4096);
    assert_eq!(huge_kib(text, 0x9000), 0);
}

/// A run short enough for a test, with all that can be seen in it.
fn short(mode: Mode) -> Config {
    Config {
        mode,
        threads: 3,
        local_lines: 64,
        section_lines: 32,
        modified_lines: 5,
        seconds: 0.05,
        warm_up_seconds: 0.01,
        repetitions: 1,
        pool_mib: 2,
        ..Config::default()
    }
}

#[test]
fn every_mode_and_queue_runs_and_modifies_what_it_should() {
    let mut configs: Vec<Config> = Mode::ALL.map(short).to_vec();
    for queue in Queue::ALL {
        configs.push(Config {
            queue,
            message_bytes: 256,
            ..short(Mode::Message)
        });
    }
    for lock in LockKind::ALL {
        configs.push(Config {
            lock,
            ..short(Mode::Lock)
        });
    }
    for config in configs {
        let measured = run(&config, 0).unwrap();
        assert!(measured.iterations_per_second > 0.0, "{config:?}");
        assert!(measured.cycles_per_iteration > 0.0, "{config:?}");
        assert!(
            (measured.modified_per_pass - 5.0).abs() < 1e-9,
            "{config:?}: {measured:?}"
        );
        assert_eq!(measured.lines_modified, 5);
        let busy = measured.server_busy_percent;
        assert!(
            busy.is_none_or(|busy| (0.0..=100.0).contains(&busy)),
            "{busy:?}"
        );
        assert!(busy.is_some() || config.mode != Mode::Message);
    }
}

#[test]
fn messages_of_every_size_arrive() {
    for message_bytes in super::config::MESSAGE_BYTES {
        let config = Config {
            message_bytes,
            queue: Queue::Ring(Copying::Double),
            seconds: 0.01,
            ..short(Mode::Message)
        };
        assert!(run(&config, 0).unwrap().iterations_per_second > 0.0);
    }
}

#[test]
fn repetitions_are_summed_up() {
    let config = Config {
        repetitions: 3,
        seconds: 0.02,
        ..short(Mode::Lock)
    };
    let summary = repeat(&config).unwrap();
    let rate = summary.iterations_per_second;
    assert_eq!(summary.repetitions.len(), 3);
    assert!(rate.least <= rate.median && rate.median <= rate.most);
}

#[test]
fn the_grid_compares_auto_with_each_mode() {
    let base = Config {
        seconds: 0.02,
        warm_up_seconds: 0.01,
        repetitions: 1,
        ..Config::default()
    };
    let plan = grid::plan(Sizes::CacheLines(64), &[1], &base);
    let row = grid::measure(&plan[0]).unwrap();
    assert_eq!(row.loops, 1);
    let table = grid::table(&[row]);
    assert!(table.contains("of 1 cells within 5 %"), "{table}");
}
