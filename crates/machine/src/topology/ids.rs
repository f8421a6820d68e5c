//! Numbers of a machine's parts, and one unit. The operating system's number and Hearth's number of
//! a part are different types, so neither can index the other's tables.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$text:meta])* $name:ident, $prefix:literal) => {
        $(#[$text])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as an index of a table.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

number!(
    /// A hardware thread as the operating system numbers it: Linux's CPU. May have gaps.
    OsThread,
    "cpu"
);
number!(
    /// A NUMA node as the operating system numbers it. May have gaps.
    OsNode,
    "node"
);
number!(
    /// A package (socket) as the operating system numbers it. May have gaps.
    OsPackage,
    "package"
);
number!(
    /// A hardware thread, numbered densely in the order package, node, core, SMT position.
    Thread,
    "T"
);
number!(
    /// A physical core, numbered densely in the order of its threads.
    Core,
    "C"
);
number!(
    /// A NUMA node, numbered densely by the package of its first thread, then by its
    /// [`OsNode`]; nodes without threads come last.
    Node,
    "N"
);
number!(
    /// A package, numbered densely by its [`OsPackage`].
    Package,
    "P"
);

/// An amount of memory.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    const UNITS: [(&'static str, u32); 4] = [("T", 40), ("G", 30), ("M", 20), ("K", 10)];

    /// `n` times 1024 bytes.
    pub const fn kib(n: u64) -> Bytes {
        Bytes(n << 10)
    }

    /// `n` times 1024² bytes.
    pub const fn mib(n: u64) -> Bytes {
        Bytes(n << 20)
    }

    /// `n` times 1024³ bytes.
    pub const fn gib(n: u64) -> Bytes {
        Bytes(n << 30)
    }

    /// Reads `48K`, `2048K`, `16M`, `4G`, `1T` or plain bytes, `512`. The letters are powers of
    /// 1024, as in the kernel's files. Nothing for anything else and for sizes above 2⁶⁴.
    pub fn parse(text: &str) -> Option<Bytes> {
        let text = text.trim();
        let (digits, shift) = Bytes::UNITS
            .iter()
            .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)))
            .unwrap_or((text, 0));
        let digits = digits.trim_end();
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let number: u64 = digits.parse().ok()?;
        number.checked_mul(1 << shift).map(Bytes)
    }

    /// The shortest exact form that [`Bytes::parse`] reads back.
    pub fn compact(self) -> String {
        if self.0 == 0 {
            return "0".into();
        }
        for (unit, shift) in Bytes::UNITS {
            if self.0.trailing_zeros() >= shift {
                return format!("{}{unit}", self.0 >> shift);
            }
        }
        self.0.to_string()
    }
}

impl fmt::Display for Bytes {
    /// For people: `48 KiB`, `1.5 MiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, shift) in Bytes::UNITS {
            if self.0 >= 1 << shift {
                let whole = self.0 as f64 / (1u64 << shift) as f64;
                let text = format!("{whole:.1}");
                let text = text.strip_suffix(".0").unwrap_or(&text);
                return write!(f, "{text} {unit}iB");
            }
        }
        write!(f, "{} B", self.0)
    }
}
