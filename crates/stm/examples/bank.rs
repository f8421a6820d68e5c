//! A bank: short transfers between two accounts, mixed with sums of all accounts.
//!
//! `bank [accounts=1024] [read-all=20] [threads=1] [rounds=5] [ms=500]`: both algorithms, one mutex
//! around the accounts, and the crate fast-stm, in turns. `read-all` is the percentage of sums.

mod beside;

use std::sync::Mutex;
use std::time::Duration;

use beside::{Contender, Random, argument, compare};
use fast_stm::TVar;
use hearth_stm::{Algorithm, Lsa, Norec, Stm, Var, thread_counts};

const BEGINNING: i64 = 1000;

enum Order {
    Transfer(usize, usize),
    Sum,
}

fn order(random: &mut Random, accounts: usize, read_all: usize) -> Order {
    if random.below(100) < read_all {
        return Order::Sum;
    }
    let from = random.below(accounts);
    let other = random.below(accounts - 1);
    Order::Transfer(from, if other < from { other } else { other + 1 })
}

/// A way to add up all accounts in one transaction.
type Sum<A> = fn(&Stm<A>, &[Var<i64>]) -> i64;

fn fold<A: Algorithm>(stm: &Stm<A>, bank: &[Var<i64>]) -> i64 {
    stm.atomically(|tx| tx.fold(bank, 0, |sum, one| sum + one))
}

/// The sum by a read of each account, as other memories do it.
fn singly<A: Algorithm>(stm: &Stm<A>, bank: &[Var<i64>]) -> i64 {
    stm.atomically(|tx| {
        let mut sum = 0;
        for account in bank {
            sum += tx.read(account)?;
        }
        Ok(sum)
    })
}

fn hearth<A: Algorithm>(
    name: &'static str,
    accounts: usize,
    read_all: usize,
    sum: Sum<A>,
) -> Contender<'static> {
    let stm = Stm::<A>::with_algorithm();
    let bank: Vec<Var<i64>> = (0..accounts).map(|_| Var::new(BEGINNING)).collect();
    let conflicts = || thread_counts::<A>().conflicts;
    Contender::new(name, conflicts, move |random| {
        match order(random, accounts, read_all) {
            Order::Transfer(from, to) => stm.atomically(|tx| {
                tx.update(&bank[from], |sum| sum - 1)?;
                tx.update(&bank[to], |sum| sum + 1).map(drop)
            }),
            Order::Sum => assert_eq!(sum(&stm, &bank), accounts as i64 * BEGINNING),
        }
    })
}

fn mutex(accounts: usize, read_all: usize) -> Contender<'static> {
    let bank = Mutex::new(vec![BEGINNING; accounts]);
    Contender::new(
        "mutex",
        || 0,
        move |random| match order(random, accounts, read_all) {
            Order::Transfer(from, to) => {
                let mut bank = bank.lock().expect("nobody panics");
                bank[from] -= 1;
                bank[to] += 1;
            }
            Order::Sum => {
                let sum: i64 = bank.lock().expect("nobody panics").iter().sum();
                assert_eq!(sum, accounts as i64 * BEGINNING);
            }
        },
    )
}

fn fast_stm(accounts: usize, read_all: usize) -> Contender<'static> {
    let bank: Vec<TVar<i64>> = (0..accounts).map(|_| TVar::new(BEGINNING)).collect();
    Contender::new(
        "fast-stm",
        || 0,
        move |random| match order(random, accounts, read_all) {
            Order::Transfer(from, to) => fast_stm::atomically(|tx| {
                let sum = tx.read(&bank[from])?;
                tx.write(&bank[from], sum - 1)?;
                let sum = tx.read(&bank[to])?;
                tx.write(&bank[to], sum + 1)
            }),
            Order::Sum => {
                let sum: i64 = fast_stm::atomically(|tx| {
                    let mut sum = 0;
                    for account in &bank {
                        sum += tx.read(account)?;
                    }
                    Ok(sum)
                });
                assert_eq!(sum, accounts as i64 * BEGINNING);
            }
        },
    )
}

fn main() {
    let (accounts, read_all) = (argument("accounts", 1024), argument("read-all", 20));
    let contenders = [
        hearth::<Lsa>("lsa", accounts, read_all, fold),
        hearth::<Norec>("norec", accounts, read_all, fold),
        hearth::<Lsa>("lsa, single", accounts, read_all, singly),
        hearth::<Norec>("norec, single", accounts, read_all, singly),
        mutex(accounts, read_all),
        fast_stm(accounts, read_all),
    ];
    let duration = Duration::from_millis(argument("ms", 500) as u64);
    compare(
        &contenders,
        argument("threads", 1),
        argument("rounds", 5),
        duration,
    );
}
