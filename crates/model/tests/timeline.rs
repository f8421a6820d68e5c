//! The fetch timelines against the source's tables 7.1 to 7.3.

use hearth_model::published::timeline::{PREFETCH_NS, SINGLE_NS, SMART_CACHE_NS};
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
