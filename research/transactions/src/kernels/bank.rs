//! A bank: short transfers between two accounts, and sums of all accounts.

use std::sync::atomic::{AtomicBool, Ordering};

use hearth_stm::{Algorithm, Stm, Var};

use super::{Kernel, Random, Size};

const BEGINNING: i64 = 1000;

/// Number of accounts, and transactions in 100 that read them all.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// Number of accounts.
    pub accounts: usize,
    /// Transactions in 100 that read all accounts.
    pub read_all_percent: usize,
}

impl Parameters {
    /// Those of the bank that comes with TinySTM, which the source of the traces took.
    pub const PUBLISHED: Parameters = Parameters {
        accounts: 1024,
        read_all_percent: 20,
    };
}

/// The accounts with their memory.
pub struct Bank<A: Algorithm> {
    stm: Stm<A>,
    parameters: Parameters,
    accounts: Vec<Var<i64>>,
    is_wrong: AtomicBool,
    /// Transactions of a thread, as a kernel.
    each: usize,
    seed: u64,
}

impl<A: Algorithm> Bank<A> {
    /// A bank whose accounts have the same.
    #[must_use]
    pub fn new(stm: Stm<A>, parameters: Parameters) -> Bank<A> {
        let accounts = 0..parameters.accounts;
        Bank {
            stm,
            parameters,
            accounts: accounts.map(|_| Var::new(BEGINNING)).collect(),
            is_wrong: AtomicBool::new(false),
            each: 0,
            seed: 0,
        }
    }

    pub(super) fn kernel(stm: Stm<A>, size: Size, seed: u64) -> Bank<A> {
        let each = match size {
            Size::Small => 500,
            Size::Published => 100_000,
        };
        Bank {
            each,
            seed,
            ..Bank::new(stm, Parameters::PUBLISHED)
        }
    }

    fn sum(&self) -> i64 {
        self.stm.atomically(|tx| {
            let mut sum = 0;
            // One by one, as other memories read them.
            for account in &self.accounts {
                sum += tx.read(account)?;
            }
            Ok(sum)
        })
    }

    fn is_right(&self, sum: i64) -> bool {
        sum == self.accounts.len() as i64 * BEGINNING
    }

    /// Makes one transaction.
    #[inline]
    pub fn transaction(&self, random: &mut Random) {
        if random.happens(self.parameters.read_all_percent) {
            if !self.is_right(self.sum()) {
                self.is_wrong.store(true, Ordering::Relaxed);
            }
            return;
        }
        let accounts = &self.accounts;
        let from = random.below(accounts.len());
        let other = random.below(accounts.len() - 1);
        let to = if other < from { other } else { other + 1 };
        self.stm.atomically(|tx| {
            tx.update(&accounts[from], |sum| sum - 1)?;
            tx.update(&accounts[to], |sum| sum + 1).map(drop)
        });
    }

    /// Looks whether money was lost or made.
    ///
    /// # Errors
    /// It was.
    pub fn audit(&self) -> Result<(), String> {
        if self.is_wrong.load(Ordering::Relaxed) {
            return Err("a sum was wrong amid transfers".to_owned());
        }
        match self.is_right(self.sum()) {
            true => Ok(()),
            false => Err("money was lost or made".to_owned()),
        }
    }
}

impl<A: Algorithm> Kernel for Bank<A> {
    fn work(&self, thread: usize) {
        let mut random = Random::new(self.seed * 1000 + thread as u64);
        for _ in 0..self.each {
            self.transaction(&mut random);
        }
    }

    fn check(&self) -> Result<(), String> {
        self.audit()
    }
}
