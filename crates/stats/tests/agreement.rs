//! Agreement of predictions with measurements, against values worked out by hand.

use hearth_stats::agreement::{kendall, median_absolute_percentage_error, spearman};

#[test]
fn percentage_errors_skip_what_took_no_time() {
    let pairs = [(110.0, 100.0), (50.0, 100.0), (80.0, 100.0), (1.0, 0.0)];
    let error = median_absolute_percentage_error(&pairs).expect("three count");
    assert!((error - 20.0).abs() < 1e-9);
    assert_eq!(median_absolute_percentage_error(&[(1.0, 0.0)]), None);
}

#[test]
fn rank_correlations() {
    let rising: Vec<(f64, f64)> = (1..=9_i32)
        .map(|n| (f64::from(n), f64::from(n).powi(3)))
        .collect();
    assert_eq!(kendall(&rising), Some(1.0));
    assert!((spearman(&rising).expect("some") - 1.0).abs() < 1e-12);
    let falling: Vec<(f64, f64)> = rising.iter().map(|(x, y)| (*x, -y)).collect();
    assert_eq!(kendall(&falling), Some(-1.0));
    assert!((spearman(&falling).expect("some") + 1.0).abs() < 1e-12);
    // One inversion among six pairs of four: (5 − 1) / 6; and 1 − 6·2 / (4·15).
    let one = [(1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (4.0, 4.0)];
    assert!((kendall(&one).expect("some") - 4.0 / 6.0).abs() < 1e-12);
    assert!((spearman(&one).expect("some") - 0.8).abs() < 1e-12);
    // Ties: two concordant pairs, one tie on one side: 2 / √(3·2).
    let tied = [(1.0, 1.0), (2.0, 1.0), (3.0, 2.0)];
    assert!((kendall(&tied).expect("some") - 2.0 / 6.0_f64.sqrt()).abs() < 1e-12);
    assert!((spearman(&tied).expect("some") - 0.75_f64.sqrt()).abs() < 1e-12);
    for constant in [&[][..], &[(1.0, 1.0)], &[(1.0, 2.0), (2.0, 2.0)]] {
        assert_eq!(kendall(constant), None);
        assert_eq!(spearman(constant), None);
    }
}
