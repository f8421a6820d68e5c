//! A journal's words, read: accounts, names and blocks. The program itself reads them so, and
//! others do from the file.

use super::chunk::Chunk;
use super::layout::{
    BLOCKS, NAME_WORDS_MAX, NAMES, THREAD, THREADS, block, header, is_gap, root, tallies, thread,
};

/// A thread's account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Its number in the journal, from 1.
    pub thread: u32,
    /// The kernel's number.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Records that it emitted.
    pub emitted: u64,
    /// Records dropped as no block was free, or left out by choice.
    pub dropped: u64,
    /// Records overwritten before they were stored.
    pub overwritten: u64,
    /// Records that the file did not take.
    pub refused: u64,
}

impl Total {
    /// Records lost for any reason.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.dropped + self.overwritten + self.refused
    }
}

/// The account of the thread in a slot. None if the slot is unused.
pub(super) fn total_of(
    slot: usize,
    block_words: usize,
    word: &dyn Fn(usize) -> u64,
) -> Option<Total> {
    let base = THREADS + slot * THREAD;
    let id = word(base + thread::ID);
    if id == 0 {
        return None;
    }
    let kept = match word(base + thread::BLOCK).checked_sub(1) {
        None => word(base + thread::KEPT),
        Some(open) => {
            let start = BLOCKS + open as usize * block_words;
            if word(start + block::STATE) == tallies::ROOT {
                return Some(account(base, id, word(start + root::EMITTED), word));
            }
            let used = word(start + block::USED) as usize;
            let records = (block::RECORDS..used.min(block_words)).step_by(2);
            let kept = records.filter(|record| !is_gap(word(start + record)));
            word(start + block::KEPT) + kept.count() as u64
        }
    };
    Some(account(base, id, kept, word))
}

/// The account of the thread whose words begin at `base`, and which has kept so many records.
fn account(base: usize, id: u64, kept: u64, word: &dyn Fn(usize) -> u64) -> Total {
    let dropped = word(base + thread::LOST);
    let words = (0..thread::NAME_BYTES / 8).map(|nth| word(base + thread::NAME + nth));
    let mut name = bytes_of(words);
    name.retain(|&byte| byte != 0);
    Total {
        thread: (id >> 32) as u32,
        id: id as u32,
        name: String::from_utf8_lossy(&name).into_owned(),
        emitted: kept + dropped,
        dropped,
        overwritten: word(base + thread::OVERWRITTEN),
        refused: word(base + thread::REFUSED),
    }
}

/// The names from a word of the names on, each with its number, and the word behind them.
pub(super) fn names(from: usize, word: &dyn Fn(usize) -> u64) -> (Vec<(u32, String)>, usize) {
    let used = (word(header::NAME_WORDS) as usize).min(NAME_WORDS_MAX);
    let (mut at, mut names) = (from, Vec::new());
    while at < used {
        let bytes = word(NAMES + at) as usize;
        let words = bytes.div_ceil(8);
        if at + 1 + words > used {
            break;
        }
        let mut text = bytes_of((0..words).map(|nth| word(NAMES + at + 1 + nth)));
        text.truncate(bytes);
        names.push((at as u32, String::from_utf8_lossy(&text).into_owned()));
        at += 1 + words;
    }
    (names, at)
}

/// The records of a block, of which these are the words used.
pub(super) fn chunk_of(words: &[u64]) -> Chunk {
    let records = words[block::RECORDS..].chunks_exact(2);
    Chunk {
        thread: (words[block::THREAD] >> 32) as u32,
        first: words[block::FIRST],
        note: words[block::NOTE] as u32,
        records: records.map(|pair| [pair[0], pair[1]]).collect(),
    }
}

/// The bytes of words, in the order of memory.
pub(super) fn bytes_of(words: impl Iterator<Item = u64>) -> Vec<u8> {
    words.flat_map(u64::to_ne_bytes).collect()
}
