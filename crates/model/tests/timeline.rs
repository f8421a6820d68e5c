//! The fetch timelines against the source's tables 7.1 to 7.3.

use hearth_model::published::timeline::{PREFETCH_NS, SINGLE_NS, SMART_CACHE_NS};
use hearth_model::source::{Access, Parameters};
use hearth_model::timeline::{Fetch, Pass};

fn ends(fetch: Fetch) -> Vec<f64> {
    let pass = Pass::xeon_5130(fetch);
    pass.reads().iter().map(|read| read.end_ns).collect()
}

#[test]
fn without_prefetch_the_printed_times_follow() {
    assert_eq!(ends(Fetch::Line), SINGLE_NS);
    assert_eq!(Pass::xeon_5130(Fetch::Line).total_ns(), 23.0);
    let misses: Vec<bool> = Pass::xeon_5130(Fetch::Line)
        .reads()
        .iter()
        .map(|read| read.missed)
        .collect();
    assert_eq!(
        misses,
        [true, false, false, false, true, false, false, false]
    );
}

#[test]
fn with_prefetch_all_but_the_misprint_follow() {
    let computed = ends(Pass::PREFETCH);
    for (index, (ours, printed)) in computed.iter().zip(PREFETCH_NS).enumerate() {
        let expected = if index == 5 { 14.5 } else { printed };
        assert_eq!(*ours, expected, "read {index}");
    }
    assert_eq!(PREFETCH_NS[5], 14.0);
}

#[test]
fn two_lines_at_once_end_with_the_prefetch_although_the_table_repeats_the_other() {
    assert_eq!(SMART_CACHE_NS, SINGLE_NS);
    assert_eq!(Pass::xeon_5130(Fetch::SmartCache).total_ns(), 17.5);
}

#[test]
fn a_whole_line_costs_what_the_equations_say() {
    let pass = Pass {
        reads_per_line: 8,
        lines: 1,
        ..Pass::xeon_5130(Fetch::Line)
    };
    assert_eq!(pass.total_ns(), 7.0 + 7.0 * 1.5);
}

#[test]
fn a_late_line_is_waited_for_and_pairs_repeat() {
    let pass = Pass {
        lines: 4,
        ..Pass::xeon_5130(Fetch::Prefetch { gap_ns: 20.0 })
    };
    let reads = pass.reads();
    assert_eq!(reads[4].end_ns, 27.0);
    assert!(reads[8].missed && !reads[12].missed);
    assert_eq!(
        Pass {
            lines: 0,
            ..Pass::xeon_5130(Fetch::Line)
        }
        .total_ns(),
        0.0
    );
}

#[test]
fn long_passes_are_added_up_from_short_ones() {
    for fetch in [Fetch::Line, Pass::PREFETCH, Fetch::SmartCache] {
        for lines in [0, 1, 2, 3, 8, 9] {
            let pass = Pass {
                lines,
                ..Pass::xeon_5130(fetch)
            };
            let last = pass.reads().last().map_or(0.0, |read| read.end_ns);
            assert!(
                (pass.total_ns() - last).abs() < 1e-9,
                "{fetch:?}, {lines} lines"
            );
        }
    }
}

#[test]
fn the_equations_with_a_fetch_policy() {
    for machine in Parameters::published() {
        for bytes in [64, 32_768, 65_536, 1 << 20, 64 << 20] {
            let with = |fetch| machine.side_fetching_ns(Access::Read, bytes, fetch);
            let single = machine.side_ns(Access::Read, bytes);
            assert!((with(Fetch::Line) - single).abs() < 1e-6 * single);
            let fits_first = bytes <= 32_768;
            assert_eq!(with(Fetch::SmartCache) < single, !fits_first);
            assert!(with(Pass::PREFETCH) <= single);
            assert!(with(Fetch::SmartCache) <= with(Pass::PREFETCH));
        }
    }
    // Half of the lines of the older machine's second level come for nothing but their reads.
    let n = 1 << 20;
    let both = Parameters::xeon_5130().side_fetching_ns(Access::Read, n, Fetch::SmartCache);
    let expected = n as f64 / 128.0 * (7.0 + 15.0 * 1.5);
    assert!((both - expected).abs() < 1e-6);
}
