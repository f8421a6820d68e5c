//! Monitors, and the four runs that are made with each.

use serde::{Deserialize, Serialize};

/// A monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Monitor {
    /// Hearth's probes.
    Hearth,
    /// Kieker, woven into Java's byte code at load time.
    Kieker,
    /// The Rust crate.
    Fastrace,
}

impl Monitor {
    /// All of them.
    pub const ALL: [Monitor; 3] = [Monitor::Hearth, Monitor::Kieker, Monitor::Fastrace];

    /// Its name in tables.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Monitor::Hearth => "hearth",
            Monitor::Kieker => "kieker",
            Monitor::Fastrace => "fastrace",
        }
    }

    /// Its name on pages.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Monitor::Hearth => "Hearth",
            Monitor::Kieker => "Kieker",
            Monitor::Fastrace => "fastrace",
        }
    }
}

/// One of the source's four runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// No probe: the time T.
    Plain,
    /// A probe that is off: T + I.
    Off,
    /// Records are collected and not written: T + I + C.
    Nowhere,
    /// They are written: T + I + C + W.
    File,
}

impl Way {
    /// All, in order.
    pub const ALL: [Way; 4] = [Way::Plain, Way::Off, Way::Nowhere, Way::File];

    /// Its name in tables and as an argument.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Way::Plain => "plain",
            Way::Off => "off",
            Way::Nowhere => "nowhere",
            Way::File => "file",
        }
    }

    /// The way of that name.
    #[must_use]
    pub fn named(text: &str) -> Option<Way> {
        Way::ALL.into_iter().find(|way| way.id() == text)
    }
}
