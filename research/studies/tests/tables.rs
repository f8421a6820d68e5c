//! Schedules, snapshots, and the source's tables.

use hearth_studies::cache_impact::exchange::{Run, interval};
use hearth_studies::cache_impact::record::{Row, figures, head, line, run_lines, runs};
use hearth_studies::cache_impact::schedule;
use hearth_studies::cache_impact::snapshot::{Events, Snapshot};
use hearth_studies::cache_impact::{CacheImpactOptions, Sizes};
use hearth_studies::results::Figures;
use hearth_studies::study::Choice;

#[test]
fn the_dense_schedule_has_235_sizes_and_an_empty_one() {
    let sizes = schedule::bytes(Sizes::Dense, false, u64::MAX);
    assert_eq!(sizes.len(), 236);
    assert_eq!(sizes[..9], [0, 8, 16, 32, 64, 128, 256, 512, 1024]);
    assert_eq!(sizes[9..11], [1184, 1344]);
    assert_eq!(sizes.last(), Some(&128_000_064));
    // Sizes that the published tables name.
    for published in [16_064, 32_064, 1_120_064, 4_160_064, 33_600_064] {
        assert!(sizes.contains(&published), "{published}");
    }
    assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn powers_double_from_a_word_to_128_mib() {
    let sizes = schedule::bytes(Sizes::Powers, false, u64::MAX);
    assert_eq!(sizes.len(), 26);
    assert_eq!(sizes[..3], [0, 8, 16]);
    assert_eq!(sizes.last(), Some(&(128 << 20)));
}

#[test]
fn a_quick_schedule_is_part_of_the_whole_one() {
    for sizes in [Sizes::Dense, Sizes::Powers] {
        let whole = schedule::bytes(sizes, false, u64::MAX);
        let quick = schedule::bytes(sizes, true, u64::MAX);
        assert!(quick.iter().all(|bytes| whole.contains(bytes)));
        assert!(quick.len() < whole.len() / 2 + 2);
        assert_eq!(quick[0], 0);
        assert_eq!(quick.last(), whole.last());
    }
    assert_eq!(
        schedule::bytes(Sizes::Dense, false, 100),
        [0, 8, 16, 32, 64]
    );
}

#[test]
fn counts_that_make_no_sense_are_refused() {
    let refused = |options: CacheImpactOptions| options.check().unwrap_err().to_string();
    let none = CacheImpactOptions {
        repeats: Some(0),
        ..CacheImpactOptions::default()
    };
    assert_eq!(refused(none), "0 repeats cannot be made; ask for 1 to 1000");
    let many = CacheImpactOptions {
        sweeps: 101,
        ..CacheImpactOptions::default()
    };
    assert_eq!(refused(many), "101 sweeps cannot be made; ask for 1 to 100");
}

/// Contents of `/proc/interrupts` on a machine with two cores.
fn interrupts(timer: [u64; 2], disk: u64) -> String {
    format!(
        "           CPU0       CPU1\n  24:  {disk:>9}          0   PCI-MSI 0-edge  virtio0\n \
         LOC:  {:>9}  {:>9}   Local timer interrupts\n ERR:          0\n",
        timer[0], timer[1]
    )
}

/// Contents of `/proc/self/stat` as proc_pid_stat(5) has it, with a name that has been chosen to
/// mislead.
fn stat(minor: u64, major: u64) -> String {
    format!(
        "4711 (a) b ) R 1 4711 4711 0 -1 4194304 {minor} 77 {major} 78 5 6 0 0 20 0 3 0 12345\n"
    )
}

#[test]
fn snapshots_are_parsed_and_compared() {
    let before = Snapshot::of(&interrupts([100, 200], 7), &stat(300, 1));
    let counts = before.counts();
    assert_eq!(counts.interrupts, Some(307));
    assert_eq!(counts.faults_minor, Some(300));
    assert_eq!(counts.faults_major, Some(1));
    let after = Snapshot::of(&interrupts([101, 203], 7), &stat(302, 1));
    assert_eq!(
        before.until(&after),
        Events {
            interrupts: 4,
            faults_minor: 2,
            faults_major: 0
        }
    );
}

#[test]
fn texts_that_are_no_snapshots_have_no_counts() {
    for (interrupts, stat) in [("", ""), ("CPU\n", "1 (x"), ("\n\n", "1 (x) R 1 2")] {
        let counts = Snapshot::of(interrupts, stat).counts();
        assert_eq!(counts.interrupts, None, "{interrupts:?}");
        assert_eq!(counts.faults_minor, None, "{stat:?}");
        assert_eq!(counts.faults_major, None, "{stat:?}");
    }
}

#[test]
fn a_run_is_clean_if_nothing_disturbed_it() {
    let events = |interrupts, faults_minor, faults_major| Events {
        interrupts,
        faults_minor,
        faults_major,
    };
    assert!(events(0, 0, 0).is_clean(2));
    assert!(events(0, 2, 0).is_clean(2));
    assert!(!events(0, 3, 0).is_clean(2));
    assert!(!events(1, 0, 0).is_clean(2));
    assert!(!events(0, 0, 1).is_clean(2));
}

fn run(time: u64, interrupts: u64, faults_minor: u64) -> Run {
    Run {
        time: Some(time),
        events: Events {
            interrupts,
            faults_minor,
            faults_major: 0,
        },
        sender: Some(0),
        receiver: Some(1),
    }
}

#[test]
fn the_tables_have_the_sources_columns() {
    let head = head(10);
    let columns: Vec<&str> = head.trim_end().split(',').collect();
    assert_eq!(
        columns[..6],
        ["N", "Time", "TimeMin", "1.INT", "1.PFMIN", "1.PFMAJ"]
    );
    assert_eq!(columns.last(), Some(&"10.PFMAJ"));
    assert_eq!(columns.len(), 3 + 3 * 10);
    let row = Row {
        bytes: 16,
        runs: vec![run(100, 0, 2), run(201, 1, 2), run(110, 0, 2)],
    };
    assert_eq!(line(&row, Some(2), 90), "16,105,90,0,2,0,1,2,0,0,2,0\n");
    assert_eq!(line(&row, None, 91), "16,137,91,0,2,0,1,2,0,0,2,0\n");
    assert_eq!(row.clean_runs(2), 2);
}

#[test]
fn without_a_clean_run_the_time_is_zero() {
    let row = Row {
        bytes: 128_000_064,
        runs: vec![run(291_886_303, 38, 31_253); 2],
    };
    assert_eq!(
        line(&row, Some(2), 581_742),
        "128000064,0,581742,38,31253,0,38,31253,0\n"
    );
    let typical = row.typical(2).unwrap();
    assert_eq!(typical.time, 291_886_303.0);
    assert!(!typical.is_clean);
}

#[test]
fn runs_are_kept_as_figures() {
    let row = Row {
        bytes: 8,
        runs: vec![
            run(5, 0, 0),
            Run {
                time: None,
                sender: None,
                ..run(0, 3, 1)
            },
            run(7, 0, 0),
        ],
    };
    let mut kept = Figures::default();
    for (figure, value) in row.runs.iter().flat_map(figures) {
        kept.push(&figure, value);
    }
    assert_eq!(runs(&kept), row.runs);
    let text = run_lines(&row);
    let second = text.lines().nth(1).unwrap();
    assert!(second.starts_with("8,2,,3,1,0,,"), "{second}");
}

/// One of ten intervals is negative: the source's tables show some 1.8e18 then.
#[test]
fn a_negative_interval_is_none_and_wraps_where_that_is_wanted() {
    assert_eq!(interval(5, 9, false), Some(4));
    assert_eq!(interval(9, 5, false), None);
    assert_eq!(interval(9, 5, true), Some(u64::MAX - 3));
    let negative = interval(600_000, 0, true);
    let mut runs = vec![run(1_500_000, 0, 0); 9];
    runs.push(Run {
        time: negative,
        ..run(0, 0, 0)
    });
    let row = Row {
        bytes: 16_000_064,
        runs,
    };
    let mean = row.mean(None) as f64;
    assert!((mean / 1.8447e18 - 1.0).abs() < 1e-3, "{mean}");
}
