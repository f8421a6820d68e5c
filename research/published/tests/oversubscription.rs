//! The model of the paper on oversubscription, by the values that it gives for eight CPUs.

use hearth_published::oversubscription::{
    Line, bounds, contention_max, contention_min, jump, obtained, share,
};

#[track_caller]
fn assert_near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-9, "{found}, not {wanted}");
}

#[test]
fn the_papers_two_jumps_have_their_heights() {
    // Foreign threads, threads, δ at least and at most, CPUs and times of both.
    for (r, x, (least, most), (n_least, n_most)) in [
        (4, 4, (1, 1), (4.0, 4.0)),
        (4, 5, (1, 2), (5.0, 2.5)),
        (0, 8, (1, 1), (8.0, 8.0)),
        (0, 9, (1, 2), (8.0, 4.5)),
    ] {
        assert_eq!(contention_min(x, r, 8), least);
        assert_eq!(contention_max(x, r, 8), most);
        assert_near(obtained(x, f64::from(least), 8), n_least);
        assert_near(obtained(x, f64::from(most), 8), n_most);
        let (low, high) = bounds(x, r, 8);
        assert_near(low, 1.0 / n_least);
        assert_near(high, 1.0 / n_most);
    }
    // The upper bound jumps by 60 and 78 percent.
    assert_near(bounds(5, 4, 8).1 / bounds(4, 4, 8).1, 1.6);
    assert_near(bounds(9, 0, 8).1 / bounds(8, 0, 8).1, 16.0 / 9.0);
    assert_eq!(
        (jump(0, 8), jump(4, 8), jump(8, 8)),
        (Some(9), Some(5), None)
    );
}

#[test]
fn the_upper_bound_has_a_peak_every_n_threads() {
    for foreign in [0, 4] {
        let rises: Vec<u32> = (2..=32)
            .filter(|x| bounds(*x, foreign, 8).1 > bounds(x - 1, foreign, 8).1)
            .collect();
        let wanted: Vec<u32> = (0..4).map(|nth| 9 + 8 * nth - foreign).collect();
        assert_eq!(
            rises,
            wanted.into_iter().filter(|x| *x <= 32).collect::<Vec<_>>()
        );
    }
}

#[test]
fn bounds_enclose_and_n_is_the_most() {
    for cpus in 1..=9 {
        for foreign in 0..20 {
            for threads in 1..40 {
                let (low, high) = bounds(threads, foreign, cpus);
                assert!(low <= high && low >= 1.0 / f64::from(cpus));
                assert!(contention_min(threads, foreign, cpus) >= 1);
            }
        }
    }
}

#[test]
fn shares_go_to_one() {
    assert_near(share(4, 4), 0.5);
    assert_near(share(16, 4), 0.8);
    assert_near(share(3, 0), 1.0);
    assert_near(share(0, 0), 0.0);
}

#[test]
fn a_line_is_found() {
    let line = Line {
        scale: 3.0,
        constant: 0.5,
    };
    let inverses = [1.0, 0.5, 0.25, 0.125];
    let pairs = inverses.map(|inverse| (inverse, line.time(inverse)));
    let found = Line::fit(&pairs).unwrap();
    assert_near(found.scale, 3.0);
    assert_near(found.constant, 0.5);
    assert_eq!(Line::fit(&pairs[..1]), None);
    assert_eq!(Line::fit(&[]), None);
}
