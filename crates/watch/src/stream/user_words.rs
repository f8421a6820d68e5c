//! Words of a journal's header that belong to the journal's user, and can be seen from outside.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};

use hearth_sys::shared;

use super::layout::{HEADER, MAGIC, VERSION, header};

/// The words of a journal that are its user's.
#[derive(Clone, Copy)]
pub struct UserWords(&'static [AtomicU64]);

impl UserWords {
    pub(super) fn in_words(words: &'static [AtomicU64]) -> UserWords {
        UserWords(words)
    }

    /// Those of a journal's file. None if it is no journal, or cannot be mapped.
    #[must_use]
    pub fn of(file: &File) -> Option<UserWords> {
        let words = shared::map(file, HEADER * 8).ok()?;
        let word = |at: usize| words[at].load(Ordering::Acquire);
        let is_journal = word(header::MAGIC) == MAGIC && word(header::VERSION) == VERSION;
        is_journal.then_some(UserWords(words))
    }

    /// The number of the journal's process.
    #[must_use]
    pub fn process(self) -> u32 {
        self.0[header::PROCESS].load(Ordering::Relaxed) as u32
    }

    /// A word.
    ///
    /// # Panics
    /// There are 64.
    #[must_use]
    pub fn word(self, number: usize) -> &'static AtomicU64 {
        assert!(number < header::USER_WORDS, "{number} of 64 words");
        &self.0[header::USER + number]
    }
}
