//! Times of single operations, as the workloads `latency` and `burst` write them down.
//!
//! A single run includes all other work of the machine: an interrupt costs more than any
//! allocator. But the same seed gives the same operations in every process, so the least time of
//! each operation over several processes, the *floor*, has the allocator's own cost and
//! little else. With two threads operations meet differently in each process; there the floor is a
//! lower bound.

use std::path::Path;

const VERSION: u32 = 1;
/// Values of the upper two bits of a word of `latency`.
const MALLOC: u32 = 0;
const FREE: u32 = 1;
const TICKS: u32 = (1 << 30) - 1;

/// Words of a file, from the first.
struct Words(std::vec::IntoIter<u32>);

impl Words {
    fn of(path: &Path) -> Result<Self, String> {
        let told = |error: std::io::Error| format!("{}: {error}", path.display());
        let bytes = std::fs::read(path).map_err(told)?;
        let (words, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(format!("{} has no whole words", path.display()));
        }
        let words: Vec<u32> = words.iter().map(|word| u32::from_ne_bytes(*word)).collect();
        let mut words = Words(words.into_iter());
        match words.word()? {
            VERSION => Ok(words),
            other => Err(format!("{} is of version {other}", path.display())),
        }
    }

    fn word(&mut self) -> Result<u32, String> {
        self.0.next().ok_or("a file of ticks ends early".to_owned())
    }

    fn take(&mut self, count: u32) -> Result<Vec<u32>, String> {
        let taken: Vec<u32> = self.0.by_ref().take(count as usize).collect();
        if taken.len() == count as usize {
            return Ok(taken);
        }
        Err("a file of ticks ends early".to_owned())
    }
}

/// Operations of one thread of `latency`.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Lane {
    /// Kind and duration of each operation, an operation a word.
    operations: Vec<u32>,
    /// From before a malloc until its last page was written; empty if that was not measured.
    touches: Vec<u32>,
    /// Frees of other threads' blocks.
    favours: Vec<u32>,
}

/// A run of `latency`, or the floor of several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Latencies {
    lanes: Vec<Lane>,
}

/// Kind of operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    Malloc,
    Free,
    /// Mallocs, with the time to write to every page.
    Touch,
    /// Frees of blocks of another thread.
    Remote,
}

/// Start of the operations that count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum From {
    /// After the first quarter.
    Steady,
    /// From the first operation of the process.
    Start,
}

/// The order of times.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sorted(Vec<u32>);

impl Latencies {
    pub fn read(path: &Path) -> Result<Self, String> {
        let mut words = Words::of(path)?;
        let (threads, count, has_touches) = (words.word()?, words.word()?, words.word()?);
        let _ticks_per_us = words.word()?;
        let lanes = (0..threads).map(|_| {
            let operations = words.take(count)?;
            let touches = words.take(count * has_touches)?;
            let favours = words.word()?;
            Ok(Lane {
                operations,
                touches,
                favours: words.take(favours)?,
            })
        });
        let lanes = lanes.collect::<Result<_, String>>()?;
        Ok(Latencies { lanes })
    }

    /// Keeps the least time of each operation of this and another run. Frees for other threads stay
    /// as they are: those operations cannot be told apart.
    pub fn floor(&mut self, other: &Latencies) -> Result<(), String> {
        if self.lanes.len() != other.lanes.len() {
            return Err("two runs differ in their threads".to_owned());
        }
        for (lane, other) in self.lanes.iter_mut().zip(&other.lanes) {
            lane.floor(other)?;
        }
        Ok(())
    }

    pub fn sorted(&self, which: Which, from: From) -> Sorted {
        let mut found: Vec<u32> = Vec::new();
        for lane in &self.lanes {
            let first = match from {
                From::Steady => lane.operations.len() / 4,
                From::Start => 0,
            };
            let of_kind = |kind: u32| {
                let operations = lane.operations.iter().enumerate().skip(first);
                operations.filter(move |(_, word)| **word >> 30 == kind)
            };
            match which {
                Which::Malloc => found.extend(of_kind(MALLOC).map(|(_, word)| word & TICKS)),
                Which::Free => found.extend(of_kind(FREE).map(|(_, word)| word & TICKS)),
                Which::Touch => {
                    found.extend(of_kind(MALLOC).filter_map(|(at, _)| lane.touches.get(at)));
                }
                Which::Remote => found.extend(&lane.favours),
            }
        }
        found.sort_unstable();
        Sorted(found)
    }
}

impl Lane {
    fn floor(&mut self, other: &Lane) -> Result<(), String> {
        let is_same = |(one, two): (&u32, &u32)| one >> 30 == two >> 30;
        if self.operations.len() != other.operations.len()
            || self.touches.len() != other.touches.len()
            || !self.operations.iter().zip(&other.operations).all(is_same)
        {
            return Err("two runs with the same seed differ in what they did".to_owned());
        }
        let pairs = [
            (&mut self.operations, &other.operations),
            (&mut self.touches, &other.touches),
        ];
        for (mine, other) in pairs {
            floor(mine, other);
        }
        Ok(())
    }
}

fn floor(mine: &mut [u32], other: &[u32]) {
    for (mine, other) in mine.iter_mut().zip(other) {
        *mine = (*mine).min(*other);
    }
}

impl Sorted {
    /// The time that `percent` of 100 operations do not exceed; None of none.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let place = (self.0.len() as f64 * percent / 100.0).ceil() as usize;
        self.0
            .get(place.clamp(1, self.0.len().max(1)) - 1)
            .map(|&ticks| f64::from(ticks))
    }

    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.0.iter().map(|&ticks| f64::from(ticks)).sum();
        (!self.0.is_empty()).then(|| sum / self.0.len() as f64)
    }
}

/// A run of `burst`, or the floor of several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bursts {
    blocks: usize,
    mallocs: Vec<u32>,
}

impl Bursts {
    pub fn read(path: &Path) -> Result<Self, String> {
        let mut words = Words::of(path)?;
        let (rounds, blocks, _ticks_per_us) = (words.word()?, words.word()?, words.word()?);
        let count = rounds
            .checked_mul(blocks)
            .filter(|&count| count > 0)
            .ok_or("a burst without blocks")?;
        Ok(Bursts {
            blocks: blocks as usize,
            mallocs: words.take(count)?,
        })
    }

    fn is_like(&self, other: &Bursts) -> Result<(), String> {
        if self.blocks == other.blocks && self.mallocs.len() == other.mallocs.len() {
            return Ok(());
        }
        Err("two runs differ in their blocks".to_owned())
    }

    /// Keeps the least time of each malloc of this and another run.
    pub fn floor(&mut self, other: &Bursts) -> Result<(), String> {
        self.is_like(other)?;
        floor(&mut self.mallocs, &other.mallocs);
        Ok(())
    }

    /// Keeps each round as it was in the process in which its slowest malloc took least: this
    /// includes work that an allocator does at other times in every process, and that the floor
    /// therefore lacks. It includes interrupts, too, where a round is longer than what lies between
    /// them.
    pub fn calmest(&mut self, other: &Bursts) -> Result<(), String> {
        self.is_like(other)?;
        let rounds = self.mallocs.chunks_mut(self.blocks);
        for (mine, other) in rounds.zip(other.mallocs.chunks(self.blocks)) {
            if other.iter().max() < mine.iter().max() {
                mine.copy_from_slice(other);
            }
        }
        Ok(())
    }

    /// The slowest malloc of each round.
    pub fn worst(&self) -> Vec<f64> {
        let rounds = self.mallocs.chunks(self.blocks);
        rounds
            .filter_map(|round| round.iter().max())
            .map(|&ticks| f64::from(ticks))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(operations: &[u32]) -> Latencies {
        Latencies {
            lanes: vec![Lane {
                operations: operations.to_vec(),
                touches: Vec::new(),
                favours: vec![7],
            }],
        }
    }

    const FREED: u32 = FREE << 30;

    #[test]
    fn the_floor_is_of_each_operation() {
        let mut first = run(&[90, 40, FREED | 20, 41]);
        let floor = first.floor(&run(&[80, 900, FREED | 30, 40]));
        assert_eq!(floor, Ok(()));
        let mallocs = first.sorted(Which::Malloc, From::Start);
        assert_eq!(mallocs, Sorted(vec![40, 40, 80]));
        assert_eq!(mallocs.percentile(100.0), Some(80.0));
        assert_eq!(mallocs.percentile(50.0), Some(40.0));
        let steady = first.sorted(Which::Malloc, From::Steady);
        assert_eq!(steady.percentile(100.0), Some(40.0));
        let frees = first.sorted(Which::Free, From::Start);
        assert_eq!(frees.mean(), Some(20.0));
        assert_eq!(first.sorted(Which::Remote, From::Start).mean(), Some(7.0));
        assert_eq!(
            first.sorted(Which::Touch, From::Start).percentile(99.0),
            None
        );
    }

    #[test]
    fn runs_of_different_seeds_have_no_floor() {
        assert!(run(&[1, 2]).floor(&run(&[1, FREED | 2])).is_err());
    }

    #[test]
    fn a_burst_is_told_by_rounds() {
        let mut burst = Bursts {
            blocks: 2,
            mallocs: vec![5, 60, 70, 8],
        };
        let other = Bursts {
            blocks: 2,
            mallocs: vec![9, 50, 100, 9],
        };
        let mut calmest = burst.clone();
        assert_eq!(burst.floor(&other), Ok(()));
        assert_eq!(burst.worst(), [50.0, 70.0]);
        assert_eq!(calmest.calmest(&other), Ok(()));
        assert_eq!(calmest.worst(), [50.0, 70.0]);
        let slow = Bursts {
            blocks: 2,
            mallocs: vec![80, 1, 2, 60],
        };
        // Each has a spike of 60 or more, though never at the same operation.
        assert_eq!(burst.floor(&slow), Ok(()));
        assert_eq!(burst.worst(), [5.0, 8.0]);
        assert_eq!(calmest.calmest(&slow), Ok(()));
        assert_eq!(calmest.worst(), [50.0, 60.0]);
    }
}
