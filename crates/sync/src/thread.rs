//! Small numbers for threads, to index what is kept for each thread.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

const NONE: u32 = u32::MAX;
/// The thread is ending and has given back its number: it gets no other.
const GONE: u32 = u32::MAX - 1;

/// Numbers given back, and the first never given out.
struct Numbers {
    free: BTreeSet<u32>,
    next: u32,
}

static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers {
    free: BTreeSet::new(),
    next: 0,
});

thread_local! {
    /// Without a destructor, so that reading it costs a load.
    static NUMBER: Cell<u32> = const { Cell::new(NONE) };
    static RETURN: Return = const { Return };
}

/// Gives the number back when the thread ends.
struct Return;

impl Drop for Return {
    fn drop(&mut self) {
        let number = NUMBER.replace(GONE);
        if number < GONE {
            numbers().free.insert(number);
        }
    }
}

fn numbers() -> std::sync::MutexGuard<'static, Numbers> {
    NUMBERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calling thread's number, which no other living thread has. None while the thread ends.
#[cfg(not(loom))]
#[inline]
pub(crate) fn number() -> Option<u32> {
    match NUMBER.get() {
        NONE => number_slow(),
        GONE => None,
        number => Some(number),
    }
}

#[cfg(not(loom))]
#[cold]
fn number_slow() -> Option<u32> {
    // A thread whose locals are being destroyed gets no number: it could not give it back.
    if RETURN.try_with(|_| ()).is_err() {
        NUMBER.set(GONE);
        return None;
    }
    let mut numbers = numbers();
    let number = match numbers.free.pop_first() {
        Some(number) => number,
        None => {
            numbers.next += 1;
            numbers.next - 1
        }
    };
    NUMBER.set(number);
    Some(number)
}

// The model checker's threads share one system thread; models number them.
#[cfg(loom)]
loom::thread_local! {
    pub(crate) static MODELLED: Cell<Option<u32>> = Cell::new(None);
}

#[cfg(loom)]
pub(crate) fn number() -> Option<u32> {
    let _ = (|| numbers().next, &NUMBER, &RETURN, NONE);
    MODELLED.with(Cell::get)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_different_and_come_back() {
        let mine = number().unwrap();
        assert_eq!(number(), Some(mine));
        let other = std::thread::spawn(|| number().unwrap()).join().unwrap();
        assert_ne!(other, mine);
    }
}
