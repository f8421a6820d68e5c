//! Caches from curves: invented ones, and those that the cache-impact source published (section
//! 4.1).

use hearth_probe::staircase::{CacheVerdict, CurvePoint, Level, check_claim, levels};

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * 1024.0;

fn curve(points: &[(f64, f64)]) -> Vec<CurvePoint> {
    points
        .iter()
        .map(|&(bytes, ns)| CurvePoint {
            bytes: bytes as u64,
            ns,
        })
        .collect()
}

/// The published points, with the sizes of powers of two where the text gives a range.
fn xeon_5130() -> Vec<CurvePoint> {
    let mut points: Vec<(f64, f64)> = (0..=5).map(|k| (KIB * f64::from(1 << k), 1.506)).collect();
    points.extend(
        [(36.0, 7.03), (128.0, 8.08), (256.0, 8.06), (512.0, 8.35)].map(|(k, l)| (k * KIB, l)),
    );
    points.extend(
        [
            (1.0, 10.67),
            (2.0, 13.06),
            (3.0, 23.5),
            (4.0, 41.9),
            (5.0, 62.3),
            (6.0, 78.7),
            (7.0, 92.4),
            (8.0, 101.3),
        ]
        .map(|(m, l)| (m * MIB, l)),
    );
    curve(&points)
}

fn e5_2695() -> Vec<CurvePoint> {
    let mut points: Vec<(f64, f64)> = (0..=5).map(|k| (KIB * f64::from(1 << k), 1.25)).collect();
    points.extend(
        [
            (36.0, 3.752),
            (48.0, 3.752),
            (64.0, 3.752),
            (96.0, 3.752),
            (128.0, 3.752),
            (144.0, 3.752),
            (160.0, 8.12),
            (224.0, 5.75),
            (256.0, 12.1),
            (352.0, 12.5),
            (416.0, 15.1),
            (512.0, 15.1),
        ]
        .map(|(k, l)| (k * KIB, l)),
    );
    points.extend([1.0, 2.0, 4.0, 8.0, 12.0].map(|m| (m * MIB, 15.1)));
    points.extend(
        [
            (16.0, 15.3),
            (20.0, 16.7),
            (24.0, 22.6),
            (26.0, 29.0),
            (28.0, 35.4),
            (30.0, 43.4),
            (32.0, 49.9),
            (36.0, 60.4),
            (40.0, 67.5),
            (48.0, 71.5),
            (60.0, 73.3),
        ]
        .map(|(m, l)| (m * MIB, l)),
    );
    curve(&points)
}

fn assert_level(level: &Level, latency: f64, capacity: Option<f64>) {
    assert!(
        (level.latency_ns / latency).ln().abs() < 0.12,
        "{level:?} for {latency} ns"
    );
    match (level.capacity, capacity) {
        (Some(found), Some(wanted)) => {
            assert!(found.low <= found.bytes && found.bytes <= found.high);
            assert!(
                (found.bytes / wanted).ln().abs() < 0.3,
                "{level:?} for {wanted} bytes"
            );
        }
        (None, None) => {}
        _ => panic!("{level:?} for {capacity:?}"),
    }
}

#[test]
fn the_published_curve_of_the_5130() {
    let points = xeon_5130();
    let levels = levels(&points);
    assert_eq!(levels.len(), 3, "{levels:?}");
    assert_level(&levels[0], 1.506, Some(32.0 * KIB));
    assert_level(&levels[1], 8.07, Some(4.0 * MIB));
    assert_level(&levels[2], 101.3, None);
    assert!(
        levels[1].is_settled && !levels[2].is_settled,
        "it ends while it rises"
    );
    let claim = check_claim((4.0 * MIB) as u64, &levels, &points);
    assert!(matches!(claim, CacheVerdict::Confirmed { .. }), "{claim:?}");
}

#[test]
fn the_published_curve_of_the_e5() {
    let points = e5_2695();
    let levels = levels(&points);
    assert_eq!(levels.len(), 4, "{levels:?}");
    assert_level(&levels[0], 1.25, Some(32.0 * KIB));
    assert_level(&levels[1], 3.75, Some(256.0 * KIB));
    assert_level(&levels[2], 15.1, Some(30.0 * MIB));
    assert_level(&levels[3], 72.0, None);
    for claimed in [32.0 * KIB, 256.0 * KIB, 30.0 * MIB] {
        let claim = check_claim(claimed as u64, &levels, &points);
        assert!(
            matches!(claim, CacheVerdict::Confirmed { .. }),
            "{claimed}: {claim:?}"
        );
    }
}

/// A machine with these levels, each outgrown over its last third, and noise.
fn invented(caches: &[(f64, f64)], memory: f64, noise: f64, seed: u64) -> Vec<CurvePoint> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut latencies: Vec<f64> = caches.iter().map(|&(_, latency)| latency).collect();
    latencies.push(memory);
    hearth_probe::curve::sizes(256 << 20, 64)
        .iter()
        .map(|&bytes| {
            let mut ns = latencies[0];
            for (index, &(capacity, _)) in caches.iter().enumerate() {
                // The share of accesses that this cache no longer holds.
                let over = ((bytes as f64 / capacity).log2() / 0.6 + 0.5).clamp(0.0, 1.0);
                ns += over * (latencies[index + 1] - latencies[index]);
            }
            let wobble: f64 = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
            CurvePoint {
                bytes,
                ns: ns * (1.0 + noise * wobble),
            }
        })
        .collect()
}

#[test]
fn invented_machines_are_recovered() {
    let machines: [&[(f64, f64)]; 4] = [
        &[(32.0 * KIB, 1.2), (256.0 * KIB, 4.0), (8.0 * MIB, 14.0)],
        &[(48.0 * KIB, 1.6), (2.0 * MIB, 5.0), (36.0 * MIB, 30.0)],
        &[(64.0 * KIB, 1.0), (1.0 * MIB, 5.5)],
        &[(32.0 * KIB, 2.0)],
    ];
    let (mut right, mut all) = (0, 0);
    for machine in machines {
        for noise in [0.0, 0.02, 0.05] {
            for seed in 0..20 {
                let found = levels(&invented(machine, 95.0, noise, seed));
                let agrees = found.len() == machine.len() + 1
                    && machine.iter().zip(&found).all(|(&(bytes, ns), level)| {
                        (level.latency_ns / ns).ln().abs() < 0.15
                            && level
                                .capacity
                                .is_some_and(|c| (c.bytes / bytes).ln().abs() < 0.35)
                    });
                right += usize::from(agrees);
                all += 1;
            }
        }
    }
    assert!(right * 100 >= all * 95, "{right} of {all}");
}

#[test]
fn a_machine_that_lies_is_caught() {
    let machine = [(48.0 * KIB, 1.6), (2.0 * MIB, 5.0), (30.0 * MIB, 25.0)];
    let points = invented(&machine, 110.0, 0.02, 3);
    let levels = levels(&points);
    let claim = |mib: f64| check_claim((mib * MIB) as u64, &levels, &points);
    assert!(matches!(claim(30.0), CacheVerdict::Confirmed { .. }));
    let CacheVerdict::Contradicted {
        size_ratio,
        slowdown,
    } = claim(480.0)
    else {
        panic!("{:?}", claim(480.0));
    };
    assert!((0.04..0.09).contains(&size_ratio), "{size_ratio}");
    assert!((3.5..5.5).contains(&slowdown), "{slowdown}");
    let CacheVerdict::Contradicted {
        size_ratio,
        slowdown,
    } = claim(8.0)
    else {
        panic!("{:?}", claim(8.0));
    };
    assert!(!(0.6..1.6).contains(&size_ratio) && slowdown >= 1.0);
    assert_eq!(claim(4000.0), CacheVerdict::Undecided);
}

#[test]
fn too_little_says_nothing() {
    assert!(levels(&[]).is_empty());
    assert!(levels(&curve(&[(64.0, 1.0), (0.0, 1.0), (128.0, f64::NAN)])).is_empty());
    let flat = curve(
        &(0..20)
            .map(|k| (64.0 * f64::from(1 << k), 2.0))
            .collect::<Vec<_>>(),
    );
    let found = levels(&flat);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].capacity, None);
    assert_eq!(check_claim(1 << 20, &found, &flat), CacheVerdict::Undecided);
}
