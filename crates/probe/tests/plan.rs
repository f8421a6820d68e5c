//! The plan: times, pairs, sizes, distances.

use hearth_probe::curve::sizes;
use hearth_probe::distances;
use hearth_probe::noise;
use hearth_probe::{Mode, Part, ProbePlan};

#[test]
fn plans_keep_within_their_mode() {
    for mode in [Mode::Quick, Mode::Normal, Mode::Deep] {
        for cpus in [1, 2, 3, 16, 64, 256, 1024] {
            for nodes in [1, 2, 8] {
                let plan = ProbePlan::new(mode, cpus, nodes);
                assert!(plan.seconds() <= mode.seconds());
                assert!(plan.seconds() > mode.seconds() * 0.85);
                assert_eq!(plan.seconds_of(Part::Pairs) > 0.0, cpus > 1);
                assert_eq!(plan.seconds_of(Part::Distances) > 0.0, nodes > 1);
                assert_eq!(plan.seconds_of(Part::Messages) > 0.0, mode != Mode::Quick);
                assert!(plan.rounds >= 6, "an interval by ranks needs six rounds");
            }
        }
    }
}

#[test]
fn sizes_rise_and_end() {
    let sizes = sizes(256 << 20, 64);
    assert_eq!((sizes[0], *sizes.last().unwrap()), (1 << 10, 256 << 20));
    assert!(sizes.is_sorted() && sizes.iter().all(|size| size % 64 == 0));
    assert!(sizes.contains(&(32 << 10)) && sizes.len() < 80);
    let wide = hearth_probe::curve::sizes(1 << 20, 4096);
    assert!(wide.iter().all(|size| size % 4096 == 0 && *size >= 8192));
}

#[test]
fn gaps_fall_into_octaves() {
    assert_eq!(noise::bucket(999.0), None);
    assert_eq!(noise::bucket(1000.0), Some(0));
    assert_eq!(noise::bucket(4100.0), Some(2));
    assert_eq!(noise::bucket(1e15), Some(noise::BUCKETS - 1));
}

/// nMART evaluation, section 6.2: the four-node table is cut off, not rounded.
#[test]
fn the_published_distances_follow_from_the_published_means() {
    let means = vec![
        vec![2.321, 3.065, 2.915, 3.330],
        vec![3.044, 2.268, 3.280, 2.847],
        vec![2.877, 3.275, 2.266, 3.070],
        vec![3.287, 2.845, 3.083, 2.271],
    ];
    let fine = distances::fine(&means);
    let whole = |to_whole: fn(f64) -> f64| -> Vec<Vec<u16>> {
        fine.iter()
            .map(|row| row.iter().map(|&d| to_whole(d) as u16).collect())
            .collect()
    };
    let printed = [
        [10, 13, 12, 14],
        [13, 10, 14, 12],
        [12, 14, 10, 13],
        [14, 12, 13, 10],
    ];
    assert_eq!(whole(f64::floor), printed);
    let rounded = [
        [10, 13, 13, 14],
        [13, 10, 14, 13],
        [13, 14, 10, 14],
        [14, 13, 14, 10],
    ];
    assert_eq!(whole(f64::round), rounded);
    assert!(distances::fine(&[vec![0.0, f64::NAN]])[0][1].is_nan());
}
