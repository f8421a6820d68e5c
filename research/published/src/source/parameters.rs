//! Parameters of the equations, and the source's two machines.

use hearth_machine::profile::{Carrier, Level as StoredLevel, Profile};

use super::{Access, Slope, Type};

/// Cost of one access, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// `lat_Read`, ns.
    pub read_ns: f64,
    /// `lat_Write`, ns.
    pub write_ns: f64,
}

impl Latency {
    /// Read and write cost the same (equation 3.6).
    #[must_use]
    pub const fn equal(ns: f64) -> Self {
        Self {
            read_ns: ns,
            write_ns: ns,
        }
    }

    /// The latency of one kind of access, ns.
    #[must_use]
    pub const fn of(self, access: Access) -> f64 {
        match access {
            Access::Read => self.read_ns,
            Access::Write => self.write_ns,
        }
    }
}

/// A cache level as the equations see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// `l_L1`, `l_L2`, … in bytes.
    pub capacity_bytes: u64,
    /// Cost of an access there.
    pub latency: Latency,
}

/// Cost of an exchange of no data, by type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZeroData {
    /// Means for types 1, 2, 3, ns (table 6.2).
    pub control_ns: [f64; 3],
    /// Standard deviations, ns.
    pub deviation_ns: [f64; 3],
}

/// The operating system's part once a buffer exceeds the last cache level (7.7, 7.8).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BeyondLastLevel {
    /// Duration of a minor fault, ns (table 6.3).
    pub fault_ns: f64,
    /// Bytes to a minor fault.
    pub bytes_per_fault: f64,
    /// Duration of an interrupt with its context switch, ns (table 6.3).
    pub interrupt_ns: f64,
    /// Bytes to an interrupt.
    pub bytes_per_interrupt: f64,
    /// Faults that the zero-data cost contains already.
    pub faults_in_base: f64,
    /// The slope as the source rounds it (7.11, 7.12), ns a byte.
    pub rounded_slope_ns_per_byte: Option<f64>,
}

impl BeyondLastLevel {
    /// Nanoseconds a byte from the events' costs and rates.
    #[must_use]
    pub fn slope_ns_per_byte(&self) -> f64 {
        self.fault_ns / self.bytes_per_fault + self.interrupt_ns / self.bytes_per_interrupt
    }

    /// Nanoseconds a byte, computed as `slope` says.
    #[must_use]
    pub fn per_byte_ns(&self, slope: Slope) -> f64 {
        let rounded = self.rounded_slope_ns_per_byte;
        match slope {
            Slope::Derived => self.slope_ns_per_byte(),
            Slope::Rounded => rounded.unwrap_or_else(|| self.slope_ns_per_byte()),
        }
    }
}

/// Parameters that the printed equations have otherwise for a machine; needed by [`super::printed`]
/// and for a [`super::Defect`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Printed {
    /// The size above which 7.7 to 7.10 add the operating system's term, bytes.
    pub events_above_bytes: u64,
    /// The bases to which 7.7 to 7.10 add it, ns.
    pub events_base_ns: [f64; 3],
    /// Constants above the last level in 7.11, 7.12, 7.15 and 7.16, ns.
    pub beyond_constant_ns: [f64; 3],
    /// Slopes in 7.11 and 7.12, ns a byte.
    pub slope_simplified_ns_per_byte: [f64; 3],
    /// Slopes in 7.15 and 7.16, ns a byte.
    pub slope_final_ns_per_byte: [f64; 3],
}

/// A machine as the source's model knows one: two, three or any other number of levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Name for people.
    pub name: String,
    /// `ns`: the size of one access, bytes. Must be positive.
    pub word_bytes: f64,
    /// `cls`: the size of a line, bytes. Must be positive.
    pub line_bytes: f64,
    /// Cache levels, smallest first.
    pub levels: Vec<Level>,
    /// Memory's latency.
    pub memory: Latency,
    /// The cost of an exchange of nothing.
    pub zero_data: ZeroData,
    /// The operating system's part beyond the last level, if it is modelled.
    pub beyond: Option<BeyondLastLevel>,
    /// Parameters that the source prints otherwise.
    pub printed: Option<Printed>,
}

impl Parameters {
    /// Intel Xeon 5130 (2006): two levels, the second shared by the two cores of a chip.
    #[must_use]
    pub fn xeon_5130() -> Self {
        Self {
            name: "Xeon 5130".into(),
            word_bytes: 8.0,
            line_bytes: 64.0,
            levels: vec![level(32_768, 1.5), level(4_194_304, 7.0)],
            memory: Latency::equal(100.0),
            zero_data: ZeroData {
                control_ns: [291_408.0, 297_691.0, 699_229.0],
                deviation_ns: [6_320.0, 5_095.0, 11_694.0],
            },
            beyond: Some(BeyondLastLevel {
                fault_ns: 42_666.0,
                bytes_per_fault: 4_094.0,
                interrupt_ns: 153_694.0,
                bytes_per_interrupt: 49_727.0,
                faults_in_base: 2.0,
                rounded_slope_ns_per_byte: Some(13.5124),
            }),
            printed: Some(Printed {
                events_above_bytes: 4_194_304,
                events_base_ns: [291_408.0, 297_691.0, 699_229.0],
                beyond_constant_ns: [206_076.0, 212_359.0, 613_897.0],
                slope_simplified_ns_per_byte: [13.5124; 3],
                slope_final_ns_per_byte: [13.5124; 3],
            }),
        }
    }

    /// Intel Xeon E5-2695 v2 (2013): three levels, the third shared by the twelve cores of a chip.
    ///
    /// The third level is the source's 30 720 000 bytes; a true 30 MiB would be 31 457 280.
    #[must_use]
    pub fn xeon_e5_2695() -> Self {
        Self {
            name: "Xeon E5-2695 v2".into(),
            word_bytes: 8.0,
            line_bytes: 64.0,
            levels: vec![
                level(32_768, 1.25),
                level(262_144, 3.75),
                level(30_720_000, 15.5),
            ],
            memory: Latency::equal(60.0),
            zero_data: ZeroData {
                control_ns: [413_963.0, 415_428.0, 1_073_144.0],
                deviation_ns: [10_130.0, 12_584.0, 37_449.0],
            },
            beyond: Some(BeyondLastLevel {
                fault_ns: 21_733.0,
                bytes_per_fault: 103_107.0,
                interrupt_ns: 322_826.0,
                bytes_per_interrupt: 15_400_020.0,
                faults_in_base: 2.0,
                rounded_slope_ns_per_byte: Some(0.2309),
            }),
            printed: Some(Printed {
                events_above_bytes: 262_144,
                events_base_ns: [413_963.0, 415_428.0, 699_229.0],
                beyond_constant_ns: [370_497.0, 371_962.0, 655_763.0],
                slope_simplified_ns_per_byte: [0.2309; 3],
                slope_final_ns_per_byte: [0.2309, 0.2108, 0.2108],
            }),
        }
    }

    /// A profiled machine in the source's terms, with accesses of 8 bytes, reads and writes apart,
    /// and no term beyond the last level.
    ///
    /// `Control` is the hand-over by `carrier` between the first pair of each type. A type that the
    /// machine lacks takes the nearest one's that it has: do not ask the model for it then.
    /// Figures that the profile lacks are [assumed](Profile::with_defaults). Deviations are half
    /// the width of the figure's interval over 1.96.
    #[must_use]
    pub fn from_profile(profile: &Profile, carrier: Carrier) -> Self {
        let profile = profile.clone().with_defaults();
        let topology = &profile.topology;
        let mut zero_data = ZeroData {
            control_ns: [0.0; 3],
            deviation_ns: [0.0; 3],
        };
        let mut last = (0.0, 0.0);
        for kind in Type::ALL {
            let mut relations = topology.representatives().into_iter();
            let figure = relations.find_map(|(relation, _)| {
                let cost = profile.hand_over(carrier, relation)?;
                (Type::from(relation.source_type()) == kind).then_some(cost.one_way_ns)
            });
            if let Some(figure) = figure {
                last = (figure.value, (figure.high - figure.low) / 2.0 / 1.96);
            }
            let at = kind.index();
            (zero_data.control_ns[at], zero_data.deviation_ns[at]) = last;
        }
        let latency = |place| {
            profile.level(place).map(|cost| Latency {
                read_ns: cost.read_ns.value,
                write_ns: cost.write_ns.unwrap_or(cost.read_ns).value,
            })
        };
        let levels = profile.caches.iter().filter_map(|cache| {
            Some(Level {
                capacity_bytes: cache.capacity_bytes()? as u64,
                latency: latency(StoredLevel::Cache(cache.level))?,
            })
        });
        let line = topology.caches().iter().find_map(|cache| cache.line);
        let name = &profile.host.cpu_model;
        Self {
            name: name.clone().unwrap_or_else(|| "this machine".into()),
            word_bytes: 8.0,
            line_bytes: f64::from(line.unwrap_or(64).max(1)),
            levels: levels.collect(),
            memory: latency(StoredLevel::Memory).unwrap_or(Latency::equal(0.0)),
            zero_data,
            beyond: None,
            printed: None,
        }
    }

    /// Both published machines, the older first.
    #[must_use]
    pub fn published() -> [Self; 2] {
        [Self::xeon_5130(), Self::xeon_e5_2695()]
    }

    /// The same machine accessed in words of `bytes` (`ns`).
    #[must_use]
    pub fn with_word_bytes(self, bytes: f64) -> Self {
        Self {
            word_bytes: bytes,
            ..self
        }
    }

    /// The same machine with every write as costly as the read (equation 3.6).
    #[must_use]
    pub fn with_equal_latencies(mut self) -> Self {
        for level in &mut self.levels {
            level.latency = Latency::equal(level.latency.read_ns);
        }
        self.memory = Latency::equal(self.memory.read_ns);
        self
    }

    /// The first level's latency; memory's where there is no cache.
    #[must_use]
    pub fn first_level(&self) -> Latency {
        self.levels
            .first()
            .map_or(self.memory, |level| level.latency)
    }
}

const fn level(capacity_bytes: u64, ns: f64) -> Level {
    Level {
        capacity_bytes,
        latency: Latency::equal(ns),
    }
}
