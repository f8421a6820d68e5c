//! The source's equations against the golden values worked out from its text.

use hearth_machine::profile::{Carrier, Profile};
use hearth_machine::synthetic;
use hearth_published::source::printed::{
    communication_3_7_ns, communication_7_13_7_14_ns, communication_7_15_7_16_ns,
    control_7_7_to_7_10_ns, control_7_11_7_12_ns, read_3_5_ns, write_3_2_ns,
};
use hearth_published::source::{Access, Control, Defect, ERRATA, Latency, Parameters, Slope, Type};

/// n, then types 1 to 3 of the Xeon 5130, then of the E5.
const GOLDEN: &[(u64, [u64; 3], [u64; 3])] = &[
    (8, [291411, 297694, 699232], [413966, 415430, 1073146]),
    (16064, [297432, 303715, 705253], [418983, 420448, 1078164]),
    (33664, [309818, 316101, 717639], [427113, 428578, 1086294]),
    (256064, [431443, 437726, 839264], [513988, 515453, 1173169]),
    (512064, [571443, 577726, 979264], [802012, 803476, 1461192]),
    (
        1120064,
        [903943, 910226, 1311764],
        [1262762, 1264226, 1921942],
    ),
    (
        4160064,
        [2566443, 2572726, 2974264],
        [3566512, 3567976, 4225692],
    ),
    (
        8000064,
        [135931362, 135937645, 136339183],
        [6476512, 6477976, 7135692],
    ),
    (
        30400064,
        [515959122, 515965405, 516366943],
        [23451512, 23452976, 24110692],
    ),
];

/// Halves go to the even neighbour in the golden table, so a value within half a nanosecond is it.
fn same_nanosecond(computed: f64, golden: u64) -> bool {
    (computed - golden as f64).abs() <= 0.5 + 1e-6
}

#[test]
fn intended_form_gives_the_golden_values() {
    for &(n, xeon, e5) in GOLDEN {
        for (machine, row) in Parameters::published().iter().zip([xeon, e5]) {
            for (kind, golden) in Type::ALL.into_iter().zip(row) {
                let computed = machine.communication_ns(kind, n, Slope::Rounded);
                assert!(
                    same_nanosecond(computed, golden),
                    "{} type {} at {n}: {computed}, golden {golden}",
                    machine.name,
                    kind.number(),
                );
            }
        }
    }
}

#[test]
fn quoted_example_follows_from_words_of_four_bytes() {
    let n = 1_280_064;
    let four = Parameters::xeon_5130().with_word_bytes(4.0);
    let eight = Parameters::xeon_5130();
    let of = |machine: &Parameters| machine.communication_ns(Type::Two, n, Slope::Rounded);
    assert!(same_nanosecond(of(&four), 1_477_750));
    assert!(same_nanosecond(of(&eight), 997_726));
    let throughput = four.throughput_bytes_per_ns(Type::Two, n, Slope::Rounded);
    assert!((throughput - 0.87).abs() < 0.005, "{throughput}");
    let throughput = eight.throughput_bytes_per_ns(Type::Two, n, Slope::Rounded);
    assert!((throughput - 1.283).abs() < 0.0005, "{throughput}");
}

#[test]
fn throughput_ends_at_the_published_plateaus() {
    for (machine, plateau) in Parameters::published().iter().zip([0.059, 0.42]) {
        let far = machine.throughput_bytes_per_ns(Type::One, 1 << 40, Slope::Derived);
        assert!((far / plateau - 1.0).abs() < 0.01, "{far}");
        assert_eq!(
            machine.throughput_bytes_per_ns(Type::One, 0, Slope::Derived),
            0.0
        );
    }
}

#[test]
fn two_sides_have_the_slopes_worked_out_from_the_text() {
    let cases: [(Parameters, &[(u64, f64)]); 2] = [
        (
            Parameters::xeon_5130(),
            &[(32_768, 0.375), (4_194_304, 0.5469), (8_388_608, 3.4531)],
        ),
        (
            Parameters::xeon_e5_2695(),
            &[
                (32_768, 0.3125),
                (262_144, 0.3906),
                (30_720_000, 0.7578),
                (64_000_000, 2.1484),
            ],
        ),
    ];
    for (machine, slopes) in &cases {
        for &(n, slope) in *slopes {
            let sides = machine.side_ns(Access::Write, n) + machine.side_ns(Access::Read, n);
            assert!((sides / n as f64 - slope).abs() < 5e-5, "{n}");
        }
    }
}

#[test]
fn slopes_beyond_the_last_level() {
    let [xeon, e5] = Parameters::published().map(|machine| {
        let beyond = machine.beyond.expect("published machines have the term");
        beyond.slope_ns_per_byte()
    });
    assert!((xeon - 13.51235).abs() < 1e-5);
    assert!((e5 - 0.23174).abs() < 1e-5);
    // A fault costs as much as the page's share of it; two are in the base already.
    let machine = Parameters::xeon_e5_2695();
    let n = 40_000_000;
    let extra = machine.control_ns(Type::Three, n, Slope::Derived) - 1_029_678.0;
    assert!((extra - e5 * n as f64).abs() < 1e-6);
}

#[test]
fn separate_latencies_and_the_equality_option() {
    let mut machine = Parameters::xeon_5130();
    machine.memory = Latency {
        read_ns: 100.0,
        write_ns: 160.0,
    };
    machine.levels[0].latency.write_ns = 2.0;
    let n = 8_388_608;
    let write = machine.side_ns(Access::Write, n);
    let expected = n as f64 / 64.0 * 160.0 + (n as f64 / 8.0 - n as f64 / 64.0) * 2.0;
    assert!((write - expected).abs() < 1e-6);
    assert!(write > machine.side_ns(Access::Read, n));
    let equal = machine.with_equal_latencies();
    assert_eq!(
        equal.side_ns(Access::Write, n),
        equal.side_ns(Access::Read, n)
    );
    assert_eq!(equal, Parameters::xeon_5130());
}

#[test]
fn control_is_the_sum_of_its_parts() {
    let control = Control {
        exit_first_ns: 1.0,
        switch_ns: 2.0,
        enter_second_ns: 4.0,
        interrupts_ns: 8.0,
        context_switches_ns: 16.0,
        major_faults_ns: 32.0,
        minor_faults_ns: 64.0,
    };
    assert_eq!(control.deterministic_ns(), 7.0);
    assert_eq!(control.interrupts_and_switches_ns(), 24.0);
    assert_eq!(control.unwanted_ns(), 120.0);
    assert_eq!(control.total_ns(), 127.0);
    let machine = Parameters::xeon_5130();
    let whole = machine.with_control_ns(64, control.total_ns());
    assert_eq!(whole, 2.0 * 64.0 / 8.0 * 1.5 + 127.0);
}

#[test]
fn printed_equations_differ_where_the_errata_say_and_nowhere_else() {
    let e5 = Parameters::xeon_e5_2695();
    let n = 1_000_000;
    let third = n as f64 / 64.0 * (60.0 - 15.5);
    // 1: the third level costs as memory does, in writes of 3.2 and on both sides of 3.7.
    let write = e5.side_ns(Access::Write, n);
    assert!((write_3_2_ns(&e5, n) - write - third).abs() < 1e-6);
    assert_eq!(read_3_5_ns(&e5, n), e5.side_ns(Access::Read, n));
    let difference = communication_3_7_ns(&e5, 5.0, n) - e5.with_control_ns(n, 5.0);
    assert!((difference - 2.0 * third).abs() < 1e-6);
    // 2: within the first level, reads are charged by the byte.
    let difference = communication_3_7_ns(&e5, 5.0, 800) - e5.with_control_ns(800, 5.0);
    assert!((difference - 700.0 * 1.25).abs() < 1e-9);
    let final_form = communication_7_15_7_16_ns(&e5, Type::One, 800).expect("published");
    let intended = e5.communication_ns(Type::One, 800, Slope::Rounded);
    assert!((final_form - intended - 700.0 * 1.25).abs() < 1e-6);
    // 3: deeper levels are charged by the byte.
    let symbolic = communication_7_13_7_14_ns(&e5, Type::One, n).expect("published");
    assert_eq!(symbolic, 2.0 * n as f64 * 15.5 + 413_963.0);
    // 4: the term begins above the second level.
    let control = control_7_7_to_7_10_ns(&e5, Type::One, n).expect("published");
    assert!(control < 413_963.0 + 0.2318 * n as f64 && control != 413_963.0);
    assert_eq!(
        control_7_7_to_7_10_ns(&e5, Type::One, 262_144),
        Some(413_963.0)
    );
    assert_eq!(control_7_11_7_12_ns(&e5, Type::One, n), Some(413_963.0));
    // 5: type 3 takes the other machine's base.
    let n = 40_000_000;
    let printed = control_7_11_7_12_ns(&e5, Type::Three, n).expect("published");
    let intended = e5.control_ns(Type::Three, n, Slope::Rounded);
    assert!((intended - printed - f64::from(1_029_678 - 655_763)).abs() < 1e-6);
    // 6: the last equation's slope is smaller for types 2 and 3.
    let of = |kind| communication_7_15_7_16_ns(&e5, kind, n).expect("published");
    let gap = of(Type::One) - of(Type::Two);
    let slopes = (0.2309 - 0.2108) * n as f64;
    assert!((gap - (370_497.0 - 371_962.0 + slopes)).abs() < 1e-6);
    // The other machine's printed final form is sound above the first level.
    let xeon = Parameters::xeon_5130();
    for n in [33_664, 4_160_064, 30_400_064] {
        for kind in Type::ALL {
            let printed = communication_7_15_7_16_ns(&xeon, kind, n).expect("published");
            let intended = xeon.communication_ns(kind, n, Slope::Rounded);
            assert!((printed - intended).abs() < 1e-6);
        }
    }
    assert_eq!(
        ERRATA.iter().map(|e| e.number).collect::<Vec<_>>(),
        (1..=9).collect::<Vec<_>>()
    );
}

#[test]
fn each_defect_is_a_switch_and_together_they_are_the_page() {
    let close = |a: f64, b: f64, what: &str| {
        assert!(
            (a - b).abs() <= 1e-9 * a.abs().max(1.0),
            "{what}: {a} and {b}"
        );
    };
    for machine in Parameters::published() {
        for kind in Type::ALL {
            for n in [0, 8, 800, 16_064, 33_664, 300_000, 8_000_064, 40_000_064] {
                let at = format!("{} type {} at {n}", machine.name, kind.number());
                for slope in [Slope::Derived, Slope::Rounded] {
                    let none = machine.communication_with_ns(kind, n, slope, &[]);
                    close(none, machine.communication_ns(kind, n, slope), &at);
                }
                let with = |slope, defects| machine.communication_with_ns(kind, n, slope, defects);
                let page = communication_7_15_7_16_ns(&machine, kind, n).expect("published");
                close(with(Slope::Rounded, Defect::OF_7_15_AND_7_16), page, &at);
                let page = communication_7_13_7_14_ns(&machine, kind, n).expect("published");
                close(with(Slope::Rounded, Defect::OF_7_13_AND_7_14), page, &at);
                let defects = Defect::OF_7_7_TO_7_10;
                let control = machine.control_with_ns(kind, n, Slope::Derived, defects);
                let page = control_7_7_to_7_10_ns(&machine, kind, n).expect("published");
                close(control, page, &at);
                let side = |access| machine.side_with_ns(access, n, Defect::OF_3_7);
                let page = communication_3_7_ns(&machine, 5.0, n);
                close(side(Access::Write) + 5.0 + side(Access::Read), page, &at);
            }
        }
    }
    // Each one alone moves some prediction for the E5, which has them all.
    let e5 = Parameters::xeon_e5_2695();
    for defect in Defect::ALL {
        let moves = [800, 300_000, 40_000_064].iter().any(|n| {
            let with = e5.communication_with_ns(Type::Three, *n, Slope::Derived, &[defect]);
            with != e5.communication_ns(Type::Three, *n, Slope::Derived)
        });
        assert!(moves, "{defect:?}");
        assert_eq!(Defect::named(defect.name()), Some(defect));
        assert!(defect.erratum().number <= 6);
    }
    assert_eq!(Defect::named("no-such"), None);
    // The published machine without its printed form has none of the later ones.
    let mut other = e5.clone();
    other.printed = None;
    assert_eq!(
        other.control_with_ns(Type::Three, 40_000_064, Slope::Derived, &Defect::ALL),
        e5.control_ns(Type::Three, 40_000_064, Slope::Derived)
    );
}

#[test]
fn other_machines_have_no_printed_form() {
    let mut machine = Parameters::xeon_5130();
    machine.printed = None;
    assert_eq!(communication_7_15_7_16_ns(&machine, Type::One, 8), None);
    assert_eq!(control_7_7_to_7_10_ns(&machine, Type::One, 8), None);
}

#[test]
fn the_cheapest_type_wins_and_draws_go_to_the_first() {
    let mut machine = Parameters::xeon_e5_2695();
    let best = machine.cheapest(4096, &Type::ALL, Slope::Derived);
    assert_eq!(best.map(|(kind, _)| kind), Some(Type::One));
    machine.zero_data.control_ns = [1.0; 3];
    let best = machine.cheapest(4096, &[Type::Three, Type::Two], Slope::Derived);
    assert_eq!(best.map(|(kind, _)| kind), Some(Type::Two));
    assert_eq!(machine.cheapest(4096, &[], Slope::Derived), None);
}

#[test]
fn a_profile_in_the_sources_terms() {
    let text = "2 packages, 2 cores, l1d 32K per core, l2 4M per package";
    let profile = Profile::assumed(synthetic::parse(text).expect("a description"));
    let machine = Parameters::from_profile(&profile, Carrier::Threads);
    let capacities: Vec<u64> = machine.levels.iter().map(|l| l.capacity_bytes).collect();
    assert_eq!(capacities, [32_768, 4_194_304]);
    let published = Parameters::xeon_5130();
    for n in [64, 65_536, 8_388_608] {
        let ours = machine.side_ns(Access::Read, n);
        let theirs = published.side_ns(Access::Read, n);
        assert!(
            (0.5..2.0).contains(&(ours / theirs)),
            "{ours} and {theirs} at {n}"
        );
    }
    let control = machine.zero_data.control_ns;
    assert!(control[0] < control[1] && control.iter().all(|ns| *ns > 0.0));
    assert_eq!(
        machine.control_ns(Type::One, 1 << 30, Slope::Derived),
        control[0]
    );
}
