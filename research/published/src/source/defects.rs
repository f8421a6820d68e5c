//! The printed equations' errors, one switch each.
//!
//! With no defect the equations are the intended ones; with those that an equation has on the page
//! they are that equation, as [`super::printed`] evaluates it. Between the two, each error's share
//! in a difference shows by itself.

use super::{Access, ERRATA, Erratum, Latency, Parameters, Slope, Type};

/// One error of the printed equations that changes their results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Defect {
    /// Writes to the third level cost as much as writes to memory.
    ThirdLevelWritesAsMemory,
    /// The same for reads.
    ThirdLevelReadsAsMemory,
    /// Reads that fit the first level are counted in bytes, not in words.
    FirstLevelReadsByByte,
    /// Accesses to deeper levels are counted in bytes, not in lines, and the rest of a line is
    /// free.
    DeeperLevelsByByte,
    /// Faults and interrupts begin above the second level, of three.
    EventsAboveSecondLevel,
    /// Beyond the last level, `Control` of type 3 starts from the other machine's value.
    ForeignBase,
    /// The slopes beyond the last level are those of the last equation, which differ by type.
    SlopesByType,
}

impl Defect {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::ThirdLevelWritesAsMemory,
        Self::ThirdLevelReadsAsMemory,
        Self::FirstLevelReadsByByte,
        Self::DeeperLevelsByByte,
        Self::EventsAboveSecondLevel,
        Self::ForeignBase,
        Self::SlopesByType,
    ];

    /// Defects of equation 3.7.
    pub const OF_3_7: &'static [Self] = &[
        Self::ThirdLevelWritesAsMemory,
        Self::ThirdLevelReadsAsMemory,
        Self::FirstLevelReadsByByte,
    ];

    /// Defects of equations 7.7 to 7.10.
    pub const OF_7_7_TO_7_10: &'static [Self] = &[Self::EventsAboveSecondLevel, Self::ForeignBase];

    /// Defects of equations 7.13 and 7.14.
    pub const OF_7_13_AND_7_14: &'static [Self] = &[
        Self::FirstLevelReadsByByte,
        Self::DeeperLevelsByByte,
        Self::ForeignBase,
    ];

    /// Defects of equations 7.15 and 7.16.
    pub const OF_7_15_AND_7_16: &'static [Self] = &[
        Self::FirstLevelReadsByByte,
        Self::ForeignBase,
        Self::SlopesByType,
    ];

    /// A short name for a switch, as `first-level-reads-by-byte`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ThirdLevelWritesAsMemory => "third-level-writes-as-memory",
            Self::ThirdLevelReadsAsMemory => "third-level-reads-as-memory",
            Self::FirstLevelReadsByByte => "first-level-reads-by-byte",
            Self::DeeperLevelsByByte => "deeper-levels-by-byte",
            Self::EventsAboveSecondLevel => "events-above-second-level",
            Self::ForeignBase => "foreign-base",
            Self::SlopesByType => "slopes-by-type",
        }
    }

    /// The defect of that [name](Defect::name).
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|defect| defect.name() == name)
    }

    /// The printed text and its intended meaning.
    #[must_use]
    pub fn erratum(self) -> &'static Erratum {
        let number = match self {
            Self::ThirdLevelWritesAsMemory | Self::ThirdLevelReadsAsMemory => 1,
            Self::FirstLevelReadsByByte => 2,
            Self::DeeperLevelsByByte => 3,
            Self::EventsAboveSecondLevel => 4,
            Self::ForeignBase => 5,
            Self::SlopesByType => 6,
        };
        // Numbers start at 1 and have no gaps; a test holds it.
        &ERRATA[number - 1]
    }
}

impl Parameters {
    /// [`Parameters::side_ns`] with defects, ns.
    #[must_use]
    pub fn side_with_ns(&self, access: Access, bytes: u64, defects: &[Defect]) -> f64 {
        let has = |defect| defects.contains(&defect);
        let n = bytes as f64;
        let place = self.levels.iter().position(|l| bytes <= l.capacity_bytes);
        if place == Some(0) {
            let by_byte = access == Access::Read && has(Defect::FirstLevelReadsByByte);
            let unit = if by_byte { 1.0 } else { self.word_bytes };
            return n / unit * self.first_level().of(access);
        }
        let third_as_memory = match access {
            Access::Write => Defect::ThirdLevelWritesAsMemory,
            Access::Read => Defect::ThirdLevelReadsAsMemory,
        };
        let latency: Latency = if place == Some(2) && has(third_as_memory) {
            self.memory
        } else {
            self.latency_at(bytes)
        };
        if has(Defect::DeeperLevelsByByte) {
            n * latency.of(access)
        } else {
            n / self.line_bytes * latency.of(access) + self.first_level_rest_ns(access, bytes)
        }
    }

    /// [`Parameters::control_ns`] with defects, ns. Those of equations 7.7 to 7.16 concern the two
    /// published machines and do nothing to others.
    #[must_use]
    pub fn control_with_ns(&self, kind: Type, bytes: u64, slope: Slope, defects: &[Defect]) -> f64 {
        let has = |defect| defects.contains(&defect);
        let base = self.zero_data.control_ns[kind.index()];
        let (Some(beyond), Some(printed)) = (&self.beyond, &self.printed) else {
            return self.control_ns(kind, bytes, slope);
        };
        let above = if has(Defect::EventsAboveSecondLevel) {
            printed.events_above_bytes
        } else {
            self.levels.last().map_or(0, |level| level.capacity_bytes)
        };
        if bytes <= above {
            return base;
        }
        let start = if has(Defect::ForeignBase) {
            printed.events_base_ns[kind.index()]
        } else {
            base
        };
        let per_byte = if has(Defect::SlopesByType) {
            printed.slope_final_ns_per_byte[kind.index()]
        } else {
            beyond.per_byte_ns(slope)
        };
        start - beyond.faults_in_base * beyond.fault_ns + per_byte * bytes as f64
    }

    /// [`Parameters::communication_ns`] with defects, ns.
    #[must_use]
    pub fn communication_with_ns(
        &self,
        kind: Type,
        bytes: u64,
        slope: Slope,
        defects: &[Defect],
    ) -> f64 {
        self.side_with_ns(Access::Write, bytes, defects)
            + self.control_with_ns(kind, bytes, slope, defects)
            + self.side_with_ns(Access::Read, bytes, defects)
    }
}
