//! The cache-impact source's published figures.
//!
//! Times in ns, sizes in bytes. Arrays of two are the Xeon 5130 and the E5-2695 v2, arrays of three
//! experiments 2 to 4 (types 1 to 3). The parameters themselves (tables 6.1 and 6.2) are in
//! [`crate::source::Parameters`].

use crate::source::Type;

/// A mean and its standard deviation, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// Mean, ns.
    pub mean_ns: f64,
    /// Standard deviation, ns.
    pub deviation_ns: f64,
}

const fn mean(mean_ns: f64, deviation_ns: f64) -> Mean {
    Mean {
        mean_ns,
        deviation_ns,
    }
}

/// The machines, in the order of every array of two.
pub const MACHINES: [&str; 2] = ["Xeon 5130", "Xeon E5-2695 v2"];

/// Table 6.1, ns: first, second, third level and memory; `None` where there is no such level.
pub const LATENCIES_NS: [[Option<f64>; 4]; 2] = [
    [Some(1.5), Some(7.0), None, Some(100.0)],
    [Some(1.25), Some(3.75), Some(15.5), Some(60.0)],
];

/// Table 6.2: an exchange of no data, 1000 runs, by machine and type.
pub const ZERO_DATA: [[Mean; 3]; 2] = [
    [
        mean(291_408.0, 6_320.0),
        mean(297_691.0, 5_095.0),
        mean(699_229.0, 11_694.0),
    ],
    [
        mean(413_963.0, 10_130.0),
        mean(415_428.0, 12_584.0),
        mean(1_073_144.0, 37_449.0),
    ],
];

/// Table 6.3: an interrupt with its context switch, 10 samples. The first machine's deviation
/// comes from one sample of 650 527 ns; its median is near 96 006 ns.
pub const INTERRUPT: [Mean; 2] = [mean(153_694.0, 175_825.0), mean(322_826.0, 17_043.0)];

/// Table 6.3: a minor page fault, 10 samples. Both durations include reading and parsing `/proc`
/// and are far too long: the source's own runs leave at most 9.3 µs for a fault.
pub const MINOR_FAULT: [Mean; 2] = [mean(42_666.0, 2_471.0), mean(21_733.0, 3_162.0)];

/// Experiment 0: the mean reported as register latency, cycles. It is the timer's own cost.
pub const REGISTER_LATENCY_CYCLES: f64 = 349.0;

/// The latency curve lmbench gave on the Xeon 5130: size in bytes, ns a load.
pub const CURVE_XEON_5130: &[(u64, f64)] = &[
    (32_768, 1.506),
    (36_864, 7.03),
    (131_072, 8.08),
    (262_144, 8.06),
    (524_288, 8.35),
    (1_048_576, 10.67),
    (2_097_152, 13.06),
    (3_145_728, 23.5),
    (4_194_304, 41.9),
    (5_242_880, 62.3),
    (6_291_456, 78.7),
    (7_340_032, 92.4),
    (8_388_608, 101.3),
];

/// The latency curve lmbench gave on the E5-2695 v2: size in bytes, ns a load. It ends above the
/// 60 ns which the source takes for memory.
pub const CURVE_XEON_E5: &[(u64, f64)] = &[
    (32_768, 1.25),
    (36_864, 3.752),
    (147_456, 3.752),
    (163_840, 8.12),
    (229_376, 5.75),
    (262_144, 12.1),
    (360_448, 12.5),
    (425_984, 15.1),
    (12_582_912, 15.1),
    (16_777_216, 15.3),
    (20_971_520, 16.7),
    (25_165_824, 22.6),
    (27_262_976, 29.0),
    (29_360_128, 35.4),
    (31_457_280, 43.4),
    (33_554_432, 49.9),
    (37_748_736, 60.4),
    (41_943_040, 67.5),
    (50_331_648, 71.5),
    (62_914_560, 73.3),
];

/// One size of the application-level experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Buffer size, bytes.
    pub bytes: u64,
    /// Mean time by machine and type, ns, unfiltered. `None` where the source has no value or a
    /// corrupt one: near 1.8e18, a negative interval that wrapped around.
    pub ns: [[Option<u64>; 3]; 2],
}

impl Exchange {
    /// The mean of one machine (0 or 1) and type, ns.
    #[must_use]
    pub fn time_ns(&self, machine: usize, kind: Type) -> Option<u64> {
        self.ns.get(machine)?[kind.index()]
    }

    /// Bytes a nanosecond.
    #[must_use]
    pub fn throughput_bytes_per_ns(&self, machine: usize, kind: Type) -> Option<f64> {
        let ns = self.time_ns(machine, kind)?;
        Some(self.bytes as f64 / ns as f64)
    }

    /// Extra time of `kind` over type 1, both normalisations.
    #[must_use]
    pub fn impact(&self, machine: usize, kind: Type) -> Option<Impact> {
        let (base, other) = (
            self.time_ns(machine, Type::One)?,
            self.time_ns(machine, kind)?,
        );
        Some(Impact::between(base as f64, other as f64))
    }
}

/// Addition of a placement to type 1's time. The source gives percentages without saying of what,
/// so both normalisations are always given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impact {
    /// The difference, ns; negative if the placement is faster.
    pub difference_ns: f64,
    /// The difference as a share of type 1's time, percent.
    pub of_base_percent: f64,
    /// The difference as a share of the placement's own time, percent. The source's headline for
    /// type 3 is this one.
    pub of_own_percent: f64,
}

impl Impact {
    /// From two times in the same unit, of type 1 and of the placement.
    #[must_use]
    pub fn between(base_ns: f64, own_ns: f64) -> Self {
        let difference_ns = own_ns - base_ns;
        Self {
            difference_ns,
            of_base_percent: 100.0 * difference_ns / base_ns,
            of_own_percent: 100.0 * difference_ns / own_ns,
        }
    }
}

/// A published headline on the impact of placement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Headline {
    /// Index into [`MACHINES`].
    pub machine: usize,
    /// The placement compared with type 1.
    pub kind: Type,
    /// The cache whose size the buffer has.
    pub at: &'static str,
    /// Difference as printed, ns.
    pub difference_ns: f64,
    /// Percentage as printed.
    pub percent: f64,
}

/// The four headlines. Those for type 2 do not follow from the source's own table; those for
/// type 3 do, as shares of type 3's time.
pub const HEADLINES: [Headline; 4] = [
    headline(0, Type::Two, "second level, 4 MB", 7_900.0, 5.0),
    headline(0, Type::Three, "second level, 4 MB", 1_300_000.0, 37.0),
    headline(1, Type::Two, "third level, 30 MB", 8_900.0, 1.0),
    headline(1, Type::Three, "third level, 30 MB", 1_600_000.0, 15.0),
];

const fn headline(
    machine: usize,
    kind: Type,
    at: &'static str,
    difference_ns: f64,
    percent: f64,
) -> Headline {
    Headline {
        machine,
        kind,
        at,
        difference_ns,
        percent,
    }
}

/// The size above which both machines slow down sharply, bytes (32.04 MB). Almost surely the
/// allocator: glibc maps larger buffers afresh each time, so that every page faults again.
pub const CLIFF_BYTES: u64 = 33_600_064;

/// The source's example of predicted against measured: size in bytes, predicted ns, measured ns
/// (Xeon 5130, type 2).
pub const EXAMPLE: (u64, u64, u64) = (1_280_064, 1_477_750, 892_488);

/// No value, or a corrupt one.
const NONE: u64 = 0;

const fn row(bytes: u64, ns: [[u64; 3]; 2]) -> Exchange {
    let mut cells = [[None; 3]; 2];
    let mut machine = 0;
    while machine < 2 {
        let mut kind = 0;
        while kind < 3 {
            if ns[machine][kind] != NONE {
                cells[machine][kind] = Some(ns[machine][kind]);
            }
            kind += 1;
        }
        machine += 1;
    }
    Exchange { bytes, ns: cells }
}

/// Mean times of experiments 2 to 4 (appendices M to R), for sizes that span every level.
pub const EXCHANGES: &[Exchange] = &[
    row(
        8,
        [
            [619_266, 601_996, 1_397_017],
            [1_030_536, 1_028_934, 2_548_031],
        ],
    ),
    row(
        1_024,
        [
            [599_460, 590_766, 1_410_851],
            [1_014_706, 1_051_099, 2_546_838],
        ],
    ),
    row(
        16_064,
        [
            [583_962, 599_323, 1_509_354],
            [1_023_074, 989_427, 2_521_857],
        ],
    ),
    row(
        32_064,
        [[586_887, 594_842, 1_534_090], [992_920, 996_979, 2_546_059]],
    ),
    row(
        112_064,
        [
            [599_328, 618_359, 1_614_253],
            [1_051_905, 1_017_765, 2_527_029],
        ],
    ),
    row(
        256_064,
        [
            [623_362, 657_498, 1_661_406],
            [1_078_002, 1_059_599, 2_575_350],
        ],
    ),
    row(
        512_064,
        [
            [666_424, 673_756, 1_783_254],
            [1_145_448, 1_099_764, 2_678_427],
        ],
    ),
    row(
        1_120_064,
        [
            [861_759, 841_053, 2_206_729],
            [1_232_264, 1_238_121, 2_761_824],
        ],
    ),
    row(
        2_080_064,
        [
            [1_269_200, 1_325_258, 2_732_883],
            [1_414_881, 1_423_968, 2_943_301],
        ],
    ),
    row(
        4_000_064,
        [
            [2_880_563, 2_786_167, 4_626_890],
            [1_867_139, 1_793_700, 3_303_512],
        ],
    ),
    row(
        4_160_064,
        [
            [3_071_961, 2_944_912, 4_821_171],
            [1_813_562, 1_847_079, 3_353_371],
        ],
    ),
    row(
        8_000_064,
        [
            [7_174_824, 7_216_819, 8_921_407],
            [2_638_315, 2_574_418, 4_119_581],
        ],
    ),
    row(
        16_000_064,
        [
            [15_353_640, 15_383_038, NONE],
            [4_441_729, 4_370_622, 5_822_610],
        ],
    ),
    row(
        22_400_064,
        [
            [21_550_614, 21_478_843, 23_251_461],
            [5_973_842, 5_866_392, 7_336_956],
        ],
    ),
    row(
        30_400_064,
        [
            [29_179_611, 29_090_680, 30_669_320],
            [8_321_660, 8_369_473, 9_804_653],
        ],
    ),
    row(
        32_000_064,
        [
            [30_692_766, 30_587_832, 32_207_199],
            [8_899_784, 8_974_220, 10_413_840],
        ],
    ),
    row(
        40_000_064,
        [
            [91_816_075, 91_494_915, NONE],
            [NONE, 21_104_529, 22_009_531],
        ],
    ),
    row(
        80_000_064,
        [
            [182_867_231, 180_547_384, 185_276_806],
            [50_428_118, 65_943_425, 51_843_811],
        ],
    ),
    row(
        128_000_064,
        [
            [291_886_303, 215_758_434, NONE],
            [NONE, 86_075_985, 87_720_640],
        ],
    ),
];

/// The sizes of the source's schedule, bytes: 8-byte elements from 1 to 2^24, 235 sizes.
///
/// Below 100 elements the count doubles; then each power of ten has its own step, a fifth of it
/// (20 from 100, 200 from 1000, and so on).
#[must_use]
pub fn schedule_bytes() -> Vec<u64> {
    const ELEMENT_BYTES: u64 = 8;
    const ELEMENTS_MAX: u64 = 1 << 24;
    let mut sizes = Vec::new();
    let mut elements = 1_u64;
    while elements <= ELEMENTS_MAX {
        sizes.push(elements * ELEMENT_BYTES);
        elements = match elements.ilog10() {
            0 | 1 => elements * 2,
            decade @ 2..=7 => elements + 2 * 10_u64.pow(decade - 1),
            _ => elements * 2,
        };
    }
    sizes
}
