//! Preparation for real-time mode: all memory is there before the first allocation, and no system
//! call is made after.
//!
//! `HEARTH_REAL_TIME=64M` prepares 64 MiB on each node, with their metadata: opened, populated and
//! locked. There is no helper, no page is given back, and what does not fit is refused, with one
//! message. Blocks of more than 256 MiB, which are mappings of their own, are refused, too.

use crate::ground::geometry::ARENA_BYTES;
use crate::ground::{environment, os, real_time};
use crate::heap::table::TABLE;
use crate::store::idle::IDLE;
use crate::store::nodes;
use crate::store::pool::{POOLS, Prepared};
use crate::store::space::{ACCOUNT_BYTES, SPACE};

/// The variable with the bytes to prepare on each node, perhaps with K, M or G behind the number.
const NAME: &[u8] = b"HEARTH_REAL_TIME=";

/// Prepares memory if the environment asks for it. Ends the process if there is not enough: it
/// would fail later, where it must not.
pub(crate) fn prepare() {
    let mut buffer = [0; 64];
    let Some(text) = environment::value(NAME, &mut buffer) else {
        return;
    };
    let Some(bytes) = bytes_of(text) else {
        os::die(&[
            b"hearth: HEARTH_REAL_TIME=",
            text,
            b" is not a size; give bytes, or a number with K, M or G, such as 64M\n",
        ]);
    };
    real_time::turn_on();
    IDLE.stage.forbid();
    let arenas = bytes.div_ceil(ARENA_BYTES).max(1);
    // To ask for more would end this process, or another, while its pages come.
    let with_metadata = bytes
        .saturating_add(arenas.saturating_mul(ACCOUNT_BYTES))
        .saturating_mul(nodes::count());
    let is_there = nodes::machine_has(with_metadata) && TABLE.prepare();
    // If the system refuses, it will refuse the pages too, and that is reported.
    os::lock_image();
    for node in 0..nodes::count() {
        let prepared = if is_there {
            POOLS.prepare(&SPACE, node, arenas)
        } else {
            Prepared::Nothing
        };
        match prepared {
            Prepared::Locked => {}
            Prepared::NotLocked => os::say(&[
                b"hearth: real-time: the memory could not be locked, so the system may take pages \
                  away; raise the limit (ulimit -l)\n",
            ]),
            Prepared::Nothing => os::die(&[
                b"hearth: real-time: too little memory for HEARTH_REAL_TIME=",
                text,
                b" on each node; ask for less\n",
            ]),
        }
    }
}

/// Parses a size such as 64M.
fn bytes_of(text: &[u8]) -> Option<usize> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let shift = match &text[digits..] {
        b"" => 0,
        b"K" | b"k" => 10,
        b"M" | b"m" => 20,
        b"G" | b"g" => 30,
        _ => return None,
    };
    let number = environment::decimal(&text[..digits])?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(bytes_of(b"4096"), Some(4096));
        assert_eq!(bytes_of(b"64M"), Some(64 << 20));
        assert_eq!(bytes_of(b"2g"), Some(2 << 30));
        assert_eq!(bytes_of(b"0"), None);
        assert_eq!(bytes_of(b"M"), None);
        assert_eq!(bytes_of(b"12X"), None);
    }
}
