//! The ledger of sent messages: each one's outcome and receiver.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// Most senders in a round, and most messages of each.
pub(crate) const SENDERS: usize = 1 << 15;
pub(crate) const MESSAGES: u32 = 1 << 16;

/// Outcome of a send, in a message's entry; the low bits count receipts.
const ACCEPTED: u32 = 1 << 16;
/// It ended by a stop.
const STOPPED: u32 = 1 << 17;
/// It was refused by an acknowledge that did not end well.
const REFUSED: u32 = 1 << 18;
/// Its receiver then held the sender.
const HELD: u32 = 1 << 19;
const COUNT: u32 = ACCEPTED - 1;

/// A message carries its sender and its number there.
pub(crate) fn message(sender: usize, sequence: u32) -> i32 {
    ((sender as u32) << 16 | sequence) as i32
}

fn origin(message: i32) -> (usize, u32) {
    (message as u32 as usize >> 16, message as u32 & 0xFFFF)
}

/// One round's ledger.
pub(crate) struct Ledger {
    columns: Mutex<Vec<Arc<Column>>>,
    pub(crate) received: AtomicU32,
    /// Number of live programs made for this round.
    pub(crate) alive: AtomicU32,
    /// Number of senders that have yet to deliver everything.
    pub(crate) owing: AtomicU32,
}

type Column = Box<[AtomicU32]>;

impl Ledger {
    pub(crate) fn new() -> Arc<Ledger> {
        Arc::new(Ledger {
            columns: Mutex::new(Vec::new()),
            received: AtomicU32::new(0),
            alive: AtomicU32::new(0),
            owing: AtomicU32::new(0),
        })
    }

    /// Adds a sender of at most this many messages. None if there are too many.
    pub(crate) fn sender(&self, messages: u32) -> Option<Account> {
        let mut columns = self.columns.lock().unwrap();
        if columns.len() == SENDERS {
            return None;
        }
        let messages = messages.min(MESSAGES);
        let column: Arc<Column> = Arc::new((0..messages).map(|_| AtomicU32::new(0)).collect());
        columns.push(column.clone());
        Some(Account {
            sender: columns.len() - 1,
            next: 0,
            column,
        })
    }

    /// Records that a message was received.
    pub(crate) fn note(&self, number: i32, is_held: bool) -> (usize, u32) {
        let (sender, sequence) = origin(number);
        let column = self.columns.lock().unwrap()[sender].clone();
        let how = if is_held { HELD } else { 0 };
        column[sequence as usize].fetch_or(how, Ordering::Relaxed);
        let before = column[sequence as usize].fetch_add(1, Ordering::Relaxed);
        assert_eq!(
            before & COUNT,
            0,
            "message {sequence} of sender {sender} came twice"
        );
        self.received.fetch_add(1, Ordering::Relaxed);
        (sender, sequence)
    }

    /// Checks, once all have ended, that every message is accounted for.
    pub(crate) fn check(&self) {
        for (sender, column) in self.columns.lock().unwrap().iter().enumerate() {
            for (sequence, entry) in column.iter().enumerate() {
                let entry = entry.load(Ordering::Relaxed);
                let count = entry & COUNT;
                let is_held = entry & HELD != 0;
                let is_well = match entry & (ACCEPTED | STOPPED | REFUSED) {
                    0 => count == 0,
                    ACCEPTED => count == 1,
                    REFUSED => count == 1 && is_held,
                    // A held sender has delivered already.
                    STOPPED => count == 0 || count == 1 && is_held,
                    _ => false,
                };
                assert!(
                    is_well,
                    "message {sequence} of sender {sender} came {count} times: {entry:#x}"
                );
            }
        }
    }
}

/// A sender's account of its own messages.
pub(crate) struct Account {
    sender: usize,
    next: u32,
    column: Arc<Column>,
}

impl Account {
    /// Returns the number of the next message. None if all were sent.
    pub(crate) fn next(&mut self) -> Option<i32> {
        if self.next as usize == self.column.len() {
            return None;
        }
        self.next += 1;
        Some(message(self.sender, self.next - 1))
    }

    fn note(&self, what: u32) {
        self.column[self.next as usize - 1].fetch_or(what, Ordering::Relaxed);
    }

    pub(crate) fn accepted(&self) {
        self.note(ACCEPTED);
    }

    pub(crate) fn stopped(&self) {
        self.note(STOPPED);
    }

    pub(crate) fn refused(&self) {
        self.note(REFUSED);
    }
}
