//! A journal as another process sees it: after its program was killed, or while it runs.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::chunk::{Chunk, Clocks};
use super::layout::{BLOCKS, Law, MAGIC, TICKS, VERSION, block, header, state};
use super::tally::{Tallies, tallies_of};
use super::words::{Total, bytes_of, chunk_of, names, total_of};

/// Contents of a journal.
#[derive(Clone, Debug, Default)]
pub struct Remains {
    /// The number of the process.
    pub process: u32,
    /// Its law of loss.
    pub law: Law,
    /// Whether the file has everything already.
    pub is_over: bool,
    /// The file that the records go to.
    pub file: Option<PathBuf>,
    /// All names by their numbers.
    pub names: Vec<(u32, String)>,
    /// The latest reading of the clocks.
    pub clocks: Clocks,
    /// Accounts of the threads that had a slot.
    pub totals: Vec<Total>,
    /// Records of threads that found no slot.
    pub homeless: u64,
    /// Blocks that were not freed, in the order in which they were handed over, open ones last. The
    /// file may have some of them.
    pub left: Vec<Chunk>,
    /// Tallies of the probes, if threads keep them instead of records.
    pub(super) tallies: Tallies,
    /// The journal's clock is the time stamp counter.
    pub is_tsc: bool,
}

impl Remains {
    /// Reads a journal.
    ///
    /// # Errors
    /// It is none, or of another version of this crate, or cannot be read.
    pub fn of_file(file: &File) -> io::Result<Remains> {
        let unfit = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
        let head = words_at(file, 0, BLOCKS)?;
        if head[header::MAGIC] != MAGIC {
            return Err(unfit("it is no journal"));
        }
        if head[header::VERSION] != VERSION {
            return Err(unfit("it is a journal of another version of Hearth"));
        }
        let (count, block_words) = (head[header::BLOCKS], head[header::BLOCK_WORDS]);
        let is_sane = (2..1 << 24).contains(&count) && (16..1 << 24).contains(&block_words);
        if !is_sane {
            return Err(unfit("its header is damaged"));
        }
        let block_words = block_words as usize;
        let has_tallies = head[header::HAS_TALLIES] == 1;
        let count = match has_tallies {
            // Most of the file was never touched.
            true => count.min(head[header::TALLY_BLOCKS]),
            false => count,
        };
        let rest = words_at(file, BLOCKS, count as usize * block_words)?;
        let word_of = |number: usize, at: usize| rest[number * block_words + at];
        let tallies = match has_tallies && block_words == super::layout::tallies::WORDS {
            true => tallies_of(count as usize, &word_of),
            false => Tallies::new(),
        };
        let word = |at: usize| match at.checked_sub(BLOCKS) {
            Some(at) => rest.get(at).copied().unwrap_or(0),
            None => head[at],
        };
        let begin = head[header::BEGIN_TICKS];
        let slots = (head[header::SLOTS] as usize).min(super::THREADS_MAX);
        let totals = (0..slots).filter_map(|slot| total_of(slot, block_words, &word));
        let mut totals: Vec<Total> = totals.collect();
        complete(&mut totals, &rest, block_words);
        Ok(Remains {
            process: head[header::PROCESS] as u32,
            law: Law::of_number(head[header::LAW]).unwrap_or_default(),
            is_over: head[header::IS_OVER] != 0,
            file: path(&head[header::FILE..][..header::FILE_WORDS]),
            names: names(0, &word).0,
            clocks: Clocks {
                ticks: head[header::LATEST_TICKS].wrapping_sub(begin) & TICKS,
                ns: head[header::LATEST_NS].saturating_sub(head[header::BEGIN_NS]),
                wall: head[header::LATEST_WALL],
            },
            totals,
            homeless: head[header::HOMELESS],
            left: blocks(&rest, block_words, &|number, head| {
                // Nobody has begun to use it anew while it was read.
                let again = words_at(file, BLOCKS + number * block_words, block::RECORDS);
                again.is_ok_and(|again| {
                    [block::THREAD, block::FIRST].map(|at| again[at] == head[at]) == [true; 2]
                })
            }),
            tallies,
            is_tsc: head[header::SOURCE] == 1,
        })
    }
}

fn path(words: &[u64]) -> Option<PathBuf> {
    let (&length, text) = words.split_first()?;
    let mut bytes = bytes_of(text.iter().copied());
    bytes.truncate(length as usize);
    (!bytes.is_empty()).then(|| OsString::from_vec(bytes).into())
}

/// The blocks in use that `is_same` takes for what they were, by their number and first words.
fn blocks(
    words: &[u64],
    block_words: usize,
    is_same: &dyn Fn(usize, &[u64]) -> bool,
) -> Vec<Chunk> {
    let mut left: Vec<(u64, Chunk)> = words
        .chunks_exact(block_words)
        .enumerate()
        .filter_map(|(number, words)| {
            let order = match words[block::STATE] {
                state::OPEN => u64::MAX,
                state::FULL | state::TAKEN => words[block::ORDER],
                _ => return None,
            };
            if !is_same(number, words) {
                return None;
            }
            let used = (words[block::USED] as usize).clamp(block::RECORDS, block_words);
            Some((order, chunk_of(&words[..used])))
        })
        .collect();
    left.sort_by_key(|(order, _)| *order);
    left.into_iter().map(|(_, chunk)| chunk).collect()
}

/// Completes the accounts of threads with a block that was being given up.
fn complete(totals: &mut [Total], words: &[u64], block_words: usize) {
    for words in words.chunks_exact(block_words) {
        let thread = (words[block::THREAD] >> 32) as u32;
        let Some(total) = totals.iter_mut().find(|total| total.thread == thread) else {
            continue;
        };
        let count = match words[block::STATE] {
            state if state == state::OVERWRITTEN.0 => &mut total.overwritten,
            state if state == state::REFUSED.0 => &mut total.refused,
            _ => continue,
        };
        *count = (*count).max(words[block::LOSES]);
    }
}

/// Reads words of a file; what lies behind its end is zero.
fn words_at(file: &File, from: usize, count: usize) -> io::Result<Vec<u64>> {
    let mut bytes = vec![0; count * 8];
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], (from * 8 + done) as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let words = bytes.chunks_exact(8);
    Ok(words
        .map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process may die before and after it stores the count.
    #[test]
    fn a_block_that_was_being_given_up_counts_once() {
        let of = |refused| Total {
            thread: 3,
            emitted: 100,
            refused,
            ..Total::default()
        };
        let mut words = vec![0; 2 * block::RECORDS];
        words[block::STATE] = state::REFUSED.0;
        words[block::THREAD] = 3 << 32;
        words[block::LOSES] = 60;
        for before in [20, 60] {
            let mut totals = [of(before)];
            complete(&mut totals, &words, block::RECORDS);
            assert_eq!(totals, [of(60)]);
        }
        assert!(blocks(&words, block::RECORDS, &|_, _| true).is_empty());
    }
}
