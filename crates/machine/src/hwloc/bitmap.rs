//! Sets as hwloc writes them: 32 bits a part, the highest first, `0x00000001,,0x0000000f`.

use std::collections::BTreeSet;

/// More bits than any file needs; bounds the memory.
const PARTS_MAX: usize = 1 << 12;

pub(super) fn write(bits: impl IntoIterator<Item = u32>) -> String {
    let mut parts: Vec<u32> = Vec::new();
    for bit in bits {
        let at = bit as usize / 32;
        if parts.len() <= at {
            parts.resize(at + 1, 0);
        }
        parts[at] |= 1 << (bit % 32);
    }
    if parts.is_empty() {
        return "0x0".into();
    }
    let parts: Vec<String> = parts
        .iter()
        .rev()
        .map(|part| format!("0x{part:08x}"))
        .collect();
    parts.join(",")
}

/// Nothing for text that is not a set, and for infinite sets.
pub(super) fn read(text: &str) -> Option<BTreeSet<u32>> {
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > PARTS_MAX {
        return None;
    }
    let mut bits = BTreeSet::new();
    for (at, part) in (0u32..).zip(parts.iter().rev()) {
        let digits = part.strip_prefix("0x").unwrap_or(part);
        let part = match digits {
            "" => 0,
            digits => u32::from_str_radix(digits, 16).ok()?,
        };
        bits.extend(
            (0..32)
                .filter(|bit| part & (1 << bit) != 0)
                .map(|bit| at * 32 + bit),
        );
    }
    Some(bits)
}
