//! Medians, quartiles and intervals, against values worked out by hand.

use hearth_stats::{Summary, interval, median, median_rank, quantile, ratio};

#[test]
fn medians_and_quantiles() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[3.0]), Some(3.0));
    assert_eq!(median(&[9.0, 1.0, 4.0]), Some(4.0));
    assert_eq!(median(&[9.0, 1.0, 4.0, 5.0]), Some(4.5));
    assert_eq!(quantile(&[0.0, 10.0], 0.95), Some(9.5));
    assert_eq!(quantile(&[0.0, 10.0], 2.0), Some(10.0));
    assert_eq!(quantile(&[1.0, 2.0, 3.0], 0.25), Some(1.5));
}

#[test]
fn a_summary_has_quartiles_and_a_sample_deviation() {
    let found = Summary::of(&[5.0, 1.0, 3.0, 2.0, 4.0]).expect("five values");
    assert_eq!((found.lower, found.median, found.upper), (2.0, 3.0, 4.0));
    assert_eq!((found.least, found.most, found.mean), (1.0, 5.0, 3.0));
    assert!((found.deviation - 2.5f64.sqrt()).abs() < 1e-12);
    assert_eq!(Summary::of(&[7.0]).map(|one| one.deviation), Some(0.0));
    assert_eq!(Summary::of(&[]), None);
}

#[test]
fn the_interval_holds_the_ratio() {
    let found = ratio(&[2.0, 2.1, 1.9, 2.0], &[1.0, 1.1, 0.9, 1.0]).expect("values");
    assert!((found.value - 2.0).abs() < 1e-9);
    assert!(found.low < found.value && found.value < found.high);
    // One run each shows no variation, and the same runs give the same interval.
    let one = ratio(&[3.0], &[2.0]).expect("values");
    assert_eq!((one.low, one.value, one.high), (1.5, 1.5, 1.5));
    assert_eq!(
        ratio(&[2.0, 2.5], &[1.0, 1.2]),
        ratio(&[2.0, 2.5], &[1.0, 1.2])
    );
}

#[test]
fn there_is_no_ratio_to_nothing() {
    assert_eq!(ratio(&[], &[1.0]), None);
    assert_eq!(ratio(&[1.0], &[]), None);
    assert_eq!(ratio(&[1.0], &[0.0]), None);
    // Most draws of three have a median of zero.
    assert_eq!(ratio(&[1.0], &[0.0, 0.0, 1.0, 1.0, 1.0]), None);
}

/// 400 experiments with 9 runs a side, whose medians differ by a factor of 2.
#[test]
fn it_holds_the_truth_in_about_95_of_100_cases() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut runs = |scale: f64| -> Vec<f64> {
        let run = |_| scale * (1.0 + 0.2 * (random.f64() + random.f64() - 1.0));
        (0..9).map(run).collect()
    };
    let holds = |_| {
        let found = ratio(&runs(2.0), &runs(1.0)).expect("values");
        found.low <= 2.0 && 2.0 <= found.high
    };
    let held = (0..400).map(holds).filter(|held| *held).count();
    assert!((360..=396).contains(&held), "{held} of 400");
}

#[test]
fn a_figure_of_three_lists_has_an_interval() {
    let lists: [&[f64]; 3] = [&[1.0, 1.2], &[2.0, 2.2], &[4.0]];
    let product = |sides: &[Vec<f64>]| sides.iter().map(|side| median(side)).product();
    let found = interval(&lists, product).expect("values");
    assert!((found.value - 1.1 * 2.1 * 4.0).abs() < 1e-9);
    assert!(found.low >= 8.0 - 1e-9 && found.high <= 1.2 * 2.2 * 4.0 + 1e-9);
}

/// P(k-th smallest ≤ median ≤ k-th largest) from tables of the sign test.
#[test]
fn ranks_are_those_of_the_sign_test() {
    let table = [(5, None), (6, Some(1)), (8, Some(1)), (9, Some(2))];
    for (count, rank) in table {
        assert_eq!(median_rank(count), rank, "{count} values");
    }
    assert_eq!(median_rank(12), Some(3));
    assert_eq!(median_rank(20), Some(6));
    assert_eq!(median_rank(100), Some(40));
    assert_eq!(median_rank(0), None);
    // Exact and approximate ranks meet.
    let (below, above) = (median_rank(200).unwrap(), median_rank(201).unwrap());
    assert!(above.abs_diff(below) <= 1, "{below} {above}");
}
