//! Real-time mode: all memory is there before the first allocation, and the kernel is not called after.
//!
//! `HEARTH_REAL_TIME=64M` prepares 64 MiB on each node, with what belongs to them: opened, populated and locked.
//! There is no helper, no page is given back, and what does not fit is refused, which is said once. Blocks
//! of more than 256 MiB, which are mappings of their own, are refused, too.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::environment;
use crate::geometry::ARENA_BYTES;
use crate::helper::HELPER;
use crate::nodes;
use crate::os;
use crate::pool::{Pools, Prepared};
use crate::space::{ACCOUNT_BYTES, Space};
use crate::table::Table;

/// The environment's name for how much is prepared on each node: bytes, or with K, M or G behind the number.
const NAME: &[u8] = b"HEARTH_REAL_TIME=";

static IS_ON: AtomicBool = AtomicBool::new(false);
static IS_TOLD: AtomicBool = AtomicBool::new(false);

/// Is it on?
pub(crate) fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Prepares memory if the environment says so. Ends the process if there is not so much: it would fail
/// later, where it must not.
pub(crate) fn begin(space: &Space, pools: &Pools, table: &Table) {
    let mut buffer = [0; 64];
    let Some(text) = environment::value(NAME, &mut buffer) else {
        return;
    };
    let Some(bytes) = bytes_of(text) else {
        os::die(&[
            b"hearth: HEARTH_REAL_TIME=",
            text,
            b" is no size; give bytes, or a number with K, M or G, such as 64M\n",
        ]);
    };
    IS_ON.store(true, Ordering::Relaxed);
    HELPER.stage.forbid();
    let arenas = bytes.div_ceil(ARENA_BYTES).max(1);
    // To ask for more would end this process, or another, while its pages come.
    let with_metadata = bytes
        .saturating_add(arenas.saturating_mul(ACCOUNT_BYTES))
        .saturating_mul(nodes::count());
    let is_there = nodes::machine_has(with_metadata) && table.prepare();
    // Where it is refused, so will the pages be, and that is told.
    os::lock_image();
    for node in 0..nodes::count() {
        let prepared = if is_there {
            pools.prepare(space, node, arenas)
        } else {
            Prepared::Nothing
        };
        match prepared {
            Prepared::Locked => {}
            Prepared::NotLocked => os::say(&[
                b"hearth: real-time: memory is there but could not be locked; raise the limit \
                  (ulimit -l), or pages may be taken away\n",
            ]),
            Prepared::Nothing => os::die(&[
                b"hearth: real-time: there is not so much memory as HEARTH_REAL_TIME=",
                text,
                b" asks for on each node; ask for less\n",
            ]),
        }
    }
}

/// An allocation was refused: told once, if the mode is on.
#[cold]
pub(crate) fn refused() {
    if !is_on() || IS_TOLD.swap(true, Ordering::Relaxed) {
        return;
    }
    os::say(&[
        b"hearth: real-time: the memory that was prepared is used up, and malloc returns null; give \
          HEARTH_REAL_TIME a larger size\n",
    ]);
}

/// A size such as 64M.
fn bytes_of(text: &[u8]) -> Option<usize> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let shift = match &text[digits..] {
        b"" => 0,
        b"K" | b"k" => 10,
        b"M" | b"m" => 20,
        b"G" | b"g" => 30,
        _ => return None,
    };
    let number = nodes::decimal(&text[..digits])?;
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
