//! A ping-pong buffer: memory that two threads use in turn, to measure what messages cost.
//!
//! | field | writer | reader | when |
//! |---|---|---|---|
//! | `turn` | the seat that has the turn, by passing on | both seats | at any time |
//! | the memory | the seat that has the turn | the same | from seeing its turn until it passes on |
//!
//! The turn is a number that only grows (and wraps); seat s has it while `turn mod 2 = s`. So at
//! most one seat has it, and only that seat can end it. There are two seats, each of which can be
//! borrowed once.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::futex;
use crate::mapping::{MapOptions, Mapping};
use crate::refused::Refused;

/// The turn, alone on its line: no line of the memory comes along.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Word(AtomicU32);

/// Memory that two threads use in turn.
#[derive(Debug)]
pub struct PingPong {
    memory: Mapping,
    turn: Word,
}

/// One of the two users.
#[derive(Debug)]
pub struct Seat<'a> {
    start: *mut u64,
    words: usize,
    turn: &'a AtomicU32,
    parity: u32,
}

// SAFETY: a seat borrows the buffer's memory and uses it only in its turn; nothing of it belongs to
// a thread.
unsafe impl Send for Seat<'_> {}

/// A seat's turn: the memory is the seat's until it passes on. If this is dropped, the turn stays
/// with the seat.
///
/// It keeps no reference to the memory: a reference that is passed to a function is the only one
/// until that returns, and `pass_on` lets the other seat make its own before.
#[derive(Debug)]
pub struct Turn<'a> {
    start: *mut u64,
    words: usize,
    turn: &'a AtomicU32,
    _memory: PhantomData<&'a mut [u64]>,
}

// SAFETY: as for a seat, of which it is a unique borrow.
unsafe impl Send for Turn<'_> {}

impl PingPong {
    /// Maps the memory.
    ///
    /// # Errors
    /// As for [`Mapping::new`].
    pub fn new(options: MapOptions) -> Result<PingPong, Refused> {
        Ok(PingPong {
            memory: Mapping::new(options)?,
            turn: Word::default(),
        })
    }

    /// Size of the memory in bytes.
    pub fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// The two seats; the first begins.
    pub fn seats(&mut self) -> [Seat<'_>; 2] {
        self.turn.0.store(0, Ordering::Relaxed);
        let words = self.memory.words_mut();
        let (start, count) = (words.as_mut_ptr(), words.len());
        [0, 1].map(|parity| Seat {
            start,
            words: count,
            turn: &self.turn.0,
            parity,
        })
    }
}

impl Seat<'_> {
    /// True if the seat has the turn.
    #[inline]
    pub fn is_mine(&self) -> bool {
        // Acquire pairs with the release in `pass_on`: the other seat's writes are visible.
        self.turn.load(Ordering::Acquire) % 2 == self.parity
    }

    /// Takes the turn if the seat has it now.
    #[inline]
    pub fn try_take(&mut self) -> Option<Turn<'_>> {
        if !self.is_mine() {
            return None;
        }
        Some(Turn {
            start: self.start,
            words: self.words,
            turn: self.turn,
            _memory: PhantomData,
        })
    }

    /// Sleeps until the seat has the turn. The other must pass on by [`Turn::pass_on_and_wake`].
    pub fn take_asleep(&mut self) -> Turn<'_> {
        loop {
            let now = self.turn.load(Ordering::Acquire);
            if now % 2 == self.parity {
                break;
            }
            futex::wait(self.turn, now);
        }
        self.try_take()
            .expect("only the seat that has the turn can end it")
    }
}

impl Turn<'_> {
    /// The memory.
    #[inline]
    pub fn words(&mut self) -> &mut [u64] {
        // SAFETY: pointer and length are those of a mapping that the buffer, borrowed while the
        // seats live, keeps. It is this seat's turn, which no other thread can end, and the seat is
        // borrowed uniquely until the turn is over; so there is no other reference.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.words) }
    }

    /// Gives the turn to the other seat.
    #[inline]
    pub fn pass_on(self) {
        let next = self.turn.load(Ordering::Relaxed).wrapping_add(1);
        // Release pairs with the acquire of the seat that takes it.
        self.turn.store(next, Ordering::Release);
    }

    /// Gives the turn to the other seat, and wakes it if it sleeps.
    pub fn pass_on_and_wake(self) {
        let word = std::ptr::from_ref(self.turn);
        self.pass_on();
        futex::wake_one_at(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs under Miri as well, for which a reference handed on too late would be undefined
    /// behaviour.
    #[test]
    fn each_finds_what_the_other_has_left() {
        let mut memory = PingPong::new(MapOptions {
            huge: crate::mapping::HugePages::Default,
            ..MapOptions::small(4096)
        })
        .unwrap();
        let rounds = if cfg!(miri) { 20 } else { 2000 };
        let [mut first, mut second] = memory.seats();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for round in 0..rounds {
                    let mut turn = second.take_asleep();
                    assert_eq!(turn.words()[round as usize % 512], round + 1);
                    turn.words()[0] = round;
                    turn.pass_on_and_wake();
                }
            });
            for round in 0..rounds {
                let mut turn = first.take_asleep();
                assert!(round == 0 || turn.words()[0] == round - 1);
                turn.words()[round as usize % 512] = round + 1;
                turn.pass_on_and_wake();
            }
        });
    }
}
