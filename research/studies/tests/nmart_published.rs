//! The nMART study's tools fed with what the source published: they must give what it published,
//! or show where it is in error. No hardware is needed for any of it.

use hearth_allocators::meter::format::{Call, Event};
use hearth_allocators::synthetic::{
    BETWEEN, HOLDING, Model, Random, Request, SIZES, Units, peak, plan,
};
use hearth_studies::judging::Answer;
use hearth_studies::nmart::characterise::{characterise, cumulative, edge_of};
use hearth_studies::nmart::distances::{Whole, header, means, orders, table, transpose};
use hearth_studies::nmart::floor::Floor;
use hearth_studies::nmart::monitor::Status;
use hearth_studies::nmart::published;
use hearth_studies::nmart::verdict::Evidence;
use hearth_studies::nmart::zones::{SQUARE, Zones, fallback, hops, remote_cost};

fn whole(table: &[Vec<f64>]) -> Vec<Vec<u16>> {
    let row = |row: &Vec<f64>| row.iter().map(|&value| value as u16).collect();
    table.iter().map(row).collect()
}

#[test]
fn all_tables_are_there() {
    assert_eq!(published::times().count(), 12 * 7 * 2 * 2);
    assert_eq!(published::synthetic().count(), 2 * 6 * 7);
    assert_eq!(
        published::appendix().count(),
        12 * 7 * 3 + 16 * 7 * 2 + 4 * 7 * 5
    );
    assert_eq!(published::histograms().count(), 280);
    assert_eq!(published::means().count(), 12);
    assert_eq!(published::asked().count(), 12 + 4);
    assert_eq!(published::payoff().count(), 20);
}

/// (a) The synthetic model's means are those of the twelve programs.
#[test]
fn the_means_of_the_programs_are_the_models() {
    let mut sums = [0.0; 3];
    for (_, quantities) in published::means() {
        for (sum, (mean, _)) in sums.iter_mut().zip(quantities) {
            *sum += mean / 12.0;
        }
    }
    assert!((sums[0] - 55.14).abs() < 0.01, "{sums:?}");
    assert!((sums[1] - 80_337.9).abs() < 0.1, "{sums:?}");
    assert!((sums[2] - 146_824.3).abs() < 0.1, "{sums:?}");
}

/// (b) The second model's histograms are those of all programs together.
#[test]
fn the_histograms_of_the_programs_are_the_models() {
    let pooled = |quantity: usize| {
        let mut bins: Vec<(u64, u64)> = Vec::new();
        for bin in published::histograms() {
            let edge = bin.up_to.unwrap_or(u64::MAX);
            match bins.iter_mut().find(|(known, _)| *known == edge) {
                Some((_, count)) => *count += bin.counts[quantity],
                None => bins.push((edge, bin.counts[quantity])),
            }
        }
        bins.sort_unstable();
        bins
    };
    let all = |bins: &[(u64, u64)]| bins.iter().map(|(_, count)| count).sum::<u64>();
    assert_eq!(all(&pooled(0)), 2_305_843);
    assert_eq!(all(&pooled(1)), 2_305_831);
    assert_eq!(all(&pooled(2)), 2_305_843);
    for (quantity, model) in [SIZES, BETWEEN, HOLDING].into_iter().enumerate() {
        let shares = cumulative(&pooled(quantity));
        // The last of the model's is where the source cuts it off.
        for &(edge, share) in &model[..model.len() - 1] {
            let found = shares.iter().rfind(|(up_to, _)| *up_to <= u64::from(edge));
            let found = found.map_or(0.0, |(_, percent)| *percent);
            assert!(
                (found - 100.0 * share).abs() < 0.006,
                "{quantity}, {edge}: {found}"
            );
        }
    }
}

/// (c) Never more than about 37 blocks: only if both times are of one unit.
#[test]
fn the_generator_has_as_many_blocks_as_the_source_saw() {
    let (_, quantities) = published::means()
        .find(|(name, _)| *name == "gawk3")
        .unwrap();
    let model = Model::mean(quantities[0].0, quantities[1].0, quantities[2].0);
    let blocks = |units| {
        let mut requests = vec![Request::default(); 100_000];
        plan(&model, units, &mut Random::new(1), &mut requests);
        peak(&requests)
    };
    assert!(
        (33..=41).contains(&blocks(Units::AsPublished)),
        "{}",
        blocks(Units::AsPublished)
    );
    assert!(blocks(Units::Corrected) > 1_000);
}

/// (d) The four-node table is cut off; the eight-node one is rounded, but for one cell.
#[test]
fn the_generator_gives_both_published_tables() {
    let four = published::distances(4, "seconds");
    let published_four = whole(&published::distances(4, "measured"));
    assert_eq!(table(&four, Whole::Truncated), published_four);
    // Rounded, as the listing says, one-hop and two-hop neighbours are as far.
    let rounded = table(&four, Whole::Rounded);
    assert_eq!(rounded[2], [13, 14, 10, 14]);
    let eight = published::distances(8, "seconds");
    let published_eight = whole(&published::distances(8, "measured"));
    let found = table(&eight, Whole::Rounded);
    let differences: Vec<(usize, usize)> = (0..8)
        .flat_map(|row| (0..8).map(move |column| (row, column)))
        .filter(|&(row, column)| found[row][column] != published_eight[row][column])
        .collect();
    assert_eq!(differences, [(7, 4)]);
    assert_eq!((found[7][4], published_eight[7][4]), (26, 27));
}

/// The generator's rows are memory nodes, the kernel's the asking ones: it must be turned, which
/// the four-node table does not show.
#[test]
fn the_kernels_table_is_the_other_way_round() {
    let four = whole(&published::distances(4, "measured"));
    assert_eq!(transpose(&four), four);
    let eight = whole(&published::distances(8, "measured"));
    let turned = transpose(&eight);
    let pairs = (0..8).flat_map(|a| (0..a).map(move |b| (a, b)));
    assert_eq!(
        pairs.filter(|&(a, b)| eight[a][b] != eight[b][a]).count(),
        18
    );
    assert_eq!(turned[1][5], eight[5][1]);
    let text = header(&turned);
    assert!(text.contains("#define NUMA_DISTANCE_ROWS 8"));
    assert!(text.contains("\t{ 10, 15, 22, 24, 24, 27, 23, 23 },"));
}

/// Reads the means from the tool's files, whatever the number of nodes and the numbering of
/// processors.
#[test]
fn means_come_from_the_tools_files() {
    let files = [
        "100\t0\t1.0\n101\t0\t3.0\n102\t1\t4.0\nnonsense\n103\t2\t5.0\n",
        "100\t0\t6.0\n101\t1\t2.0\n102\t2\t3.0\n",
    ]
    .map(str::to_owned);
    let found = means(&files, 2, |processor| Some(usize::from(processor > 0)));
    assert_eq!(found, [[2.0, 4.5], [6.0, 2.5]]);
    assert_eq!(table(&found, Whole::Rounded), [[10, 23], [24, 10]]);
}

/// (e) The four orders.
#[test]
fn the_orders_follow_from_the_table() {
    let expected = [[0, 2, 1, 3], [1, 3, 0, 2], [2, 0, 3, 1], [3, 1, 2, 0]];
    assert_eq!(orders(&published::distances(4, "seconds")), expected);
    assert_eq!(
        fallback(&whole(&published::distances(4, "measured"))),
        expected
    );
    // The firmware's: all alike, so the next number, and round.
    let flat = fallback(&whole(&published::distances(4, "firmware")));
    for (node, order) in flat.iter().enumerate() {
        assert_eq!(order[..2], [node, (node + 1) % 4]);
    }
}

/// Links that the measured order saves on the source's square.
#[test]
fn the_measured_order_saves_links_where_the_source_gains_most() {
    let costs = hops(4, &SQUARE);
    assert_eq!(
        costs,
        [[0, 1, 1, 2], [1, 0, 2, 1], [1, 2, 0, 1], [2, 1, 1, 0]]
    );
    let firmware = fallback(&whole(&published::distances(4, "firmware")));
    let measured = fallback(&whole(&published::distances(4, "measured")));
    let cost = |orders: &[Vec<usize>], node| remote_cost(orders, &costs, node, 1_000);
    // The firmware sends nodes 1 and 3 two links away, and these are the source's gains above 13 %.
    assert_eq!(
        [0, 1, 2, 3].map(|node| cost(&firmware, node)),
        [1.0, 2.0, 1.0, 2.0]
    );
    assert_eq!([0, 1, 2, 3].map(|node| cost(&measured, node)), [1.0; 4]);
    for row in published::payoff() {
        let is_far = cost(&firmware, row.node) > 1.0;
        assert_eq!(row.gain_percent() > 13.0, is_far, "{row:?}");
    }
}

#[test]
fn zones_run_out_in_order() {
    let mut zones = Zones::new(vec![vec![0, 2, 1], vec![1, 0, 2], vec![2, 1, 0]], 10);
    assert_eq!(zones.take(0, 25, |_| true), [(0, 10), (2, 10), (1, 5)]);
    assert_eq!(zones.take(1, 3, |node| node != 1), []);
    assert_eq!(zones.take(1, 3, |_| true), [(1, 3)]);
}

/// (f) The gains.
#[test]
fn the_gains_are_as_published() {
    let expected = [(5.1, 7.1), (13.8, 16.0), (5.7, 7.54), (15.7, 17.4)];
    for (node, (low, high)) in expected.into_iter().enumerate() {
        let gains: Vec<f64> = published::payoff()
            .filter(|row| row.node == node)
            .map(|row| row.gain_percent())
            .collect();
        let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
        let most = gains.iter().copied().fold(0.0, f64::max);
        assert!(
            (least - low).abs() < 0.15 && (most - high).abs() < 0.15,
            "{node}: {gains:?}"
        );
    }
}

/// (g) Every percentage of fragmentation follows from the bytes.
#[test]
fn the_fragmentation_follows_from_the_bytes() {
    let mut checked = 0;
    let figures: Vec<_> = published::appendix().collect();
    for figure in figures
        .iter()
        .filter(|figure| figure.field == "internal_frag_pct")
    {
        let bytes = |field: &str| {
            let same = |other: &&published::Figure| {
                (other.workload, other.allocator, other.field)
                    == (figure.workload, figure.allocator, field)
            };
            figures.iter().find(same).unwrap().value
        };
        let waste = 100.0 * (1.0 - bytes("requested_bytes") / bytes("provided_bytes"));
        assert!((waste - figure.value).abs() < 0.006, "{figure:?}: {waste}");
        checked += 1;
    }
    assert_eq!(checked, 84);
}

/// (h) Cycles to time.
#[test]
fn cycles_become_milliseconds_as_published() {
    let ms = 8_333_072.0 / published::CYCLES_PER_US / 1000.0;
    assert!((ms - 4.15).abs() < 0.005, "{ms}");
}

/// (i) What larson does not release: threads times blocks. On the real program in
/// `allocators/tests/preload.rs`.
#[test]
fn larson_keeps_sixteen_thousand_blocks() {
    let larson = published::asked()
        .find(|asked| asked.workload == "larson")
        .unwrap();
    assert_eq!(larson.mallocs - larson.frees, 16 * 1_000);
}

/// The rules give the source's answers from its own tables; where its text claims more than they
/// say, that is said here.
#[test]
fn the_published_tables_give_the_published_answers() {
    let verdicts = Evidence::published().verdicts();
    let answer = |claim: &str| {
        let found = verdicts
            .iter()
            .find(|verdict| verdict.claim.contains(claim));
        let found = found.unwrap_or_else(|| panic!("no claim {claim}"));
        (
            found.answer,
            found.because.split(':').next().unwrap().to_owned(),
        )
    };
    let said = |answer: Answer, because: &str| (answer, because.to_owned());
    assert_eq!(
        answer("longest malloc, of all runs"),
        said(Answer::Yes, "in 10 of 12 cases")
    );
    assert_eq!(
        answer("longest free"),
        said(Answer::Yes, "in 11 of 12 cases")
    );
    assert_eq!(
        answer("prepares its classes"),
        said(Answer::Yes, "in all 12 cases")
    );
    assert_eq!(
        answer("least time in free"),
        said(Answer::Yes, "in 11 of 12 cases")
    );
    assert_eq!(
        answer("Half-fit wastes"),
        said(Answer::Yes, "in all 12 cases")
    );
    assert_eq!(
        answer("wastes less than Best-fit"),
        said(Answer::Yes, "in all 12 cases")
    );
    assert_eq!(answer("peak memory"), said(Answer::Yes, "in all 16 cases"));
    assert_eq!(
        answer("share cache lines"),
        said(Answer::Yes, "in all 2 cases")
    );
    assert_eq!(
        answer("not the fastest"),
        said(Answer::Yes, "in all 1 cases")
    );
    assert_eq!(
        answer("remote memory only"),
        said(Answer::Yes, "in all 12 cases")
    );
    assert_eq!(
        answer("TLSF is the fastest"),
        said(Answer::Yes, "in 11 of 12 cases")
    );
    // Of the four heavy cases the fourth, gawk's, is Half-fit's as well.
    assert_eq!(
        answer("under heavy load"),
        said(Answer::Yes, "in all 4 cases")
    );
    // What the source does not have cannot be judged from it.
    assert_eq!(answer("floors").0, Answer::CannotTell);
}

#[test]
fn a_trace_becomes_a_character() {
    let event = |stamp, block, bytes| Event {
        stamp,
        block,
        bytes,
    };
    let events = [
        event(1_000, 1, Some(8)),
        event(3_000, 2, Some(100)),
        event(4_000, 1, None),
        event(6_000, 1, Some(513)),
    ];
    // Two stamps a nanosecond; the second block is held to the end.
    let found = characterise(events.into_iter(), 11_000, 2_000.0);
    let [sizes, between, holding] = &found.quantities;
    assert_eq!((sizes.count, between.count, holding.count), (3, 2, 3));
    assert_eq!((sizes.mean, between.mean), (207.0, 2_500.0));
    assert_eq!(holding.mean, (1.5 + 4.0 + 2.5) / 3.0);
    assert_eq!(sizes.bins.first(), Some(&(8, 1)));
    assert_eq!(sizes.bins.last(), Some(&(1024, 1)));
    assert_eq!(found.blocks_max, 2);
    assert_eq!(
        [8.0, 8.5, 9.0, 16.0, 17.0].map(edge_of),
        [8, 16, 16, 16, 32]
    );
}

#[test]
fn a_floor_is_free_of_chance() {
    use Call::{Allocate, Free};
    let mut floor = Floor::default();
    floor.add([(Allocate, 50), (Free, 900), (Allocate, 30)].into_iter());
    assert_eq!(floor.least(), None);
    floor.add([(Allocate, 5_000), (Free, 20), (Allocate, 40)].into_iter());
    let least = floor.least().unwrap();
    assert_eq!((least.allocate_max, least.free_max), (50, 20));
    assert_eq!((least.allocate_sum, least.free_sum), (80, 20));
    // A run that makes another call has nothing to be compared with.
    floor.add([(Allocate, 1), (Allocate, 1), (Free, 1)].into_iter());
    assert_eq!(floor.least(), None);
}

#[test]
fn the_monitor_reads_all_seven_fields() {
    let text = "Name:\tx\nVmPeak:\t    9048 kB\nVmSize:\t    9000 kB\nVmHWM:\t 800 kB\nVmRSS:\t 700 kB\n\
                VmData:\t     276 kB\nCpus_allowed_list:\t0-1\nMems_allowed_list:\t0\n";
    let status = Status::parse(text).unwrap();
    assert_eq!(status.line(), "9000\t9048\t700\t800\t276\t0-1\t0");
    assert_eq!(Status::parse("Name:\tx\nState:\tZ\n"), None);
}
