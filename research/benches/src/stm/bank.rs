//! A bank: short transfers between two accounts, mixed with sums of all accounts.

use std::sync::Mutex;

use fast_stm::TVar;
use hearth_stm::{Algorithm, Lsa, Norec, Stm, Var};

use super::{Random, Side};

const ACCOUNTS: usize = 1024;
const BEGINNING: i64 = 1000;
const ALL: i64 = ACCOUNTS as i64 * BEGINNING;

enum Order {
    Transfer(usize, usize),
    Sum,
}

fn order(random: &mut Random, read_all: usize) -> Order {
    if random.below(100) < read_all {
        return Order::Sum;
    }
    let from = random.below(ACCOUNTS);
    let other = random.below(ACCOUNTS - 1);
    Order::Transfer(from, if other < from { other } else { other + 1 })
}

fn right(sum: i64) -> Result<(), String> {
    match sum == ALL {
        true => Ok(()),
        false => Err(format!("the accounts have {sum}, not {ALL}")),
    }
}

/// The sum with a read of each account, as other memories do it, or with one of all.
fn sum<A: Algorithm>(stm: &Stm<A>, bank: &[Var<i64>], is_fold: bool) -> i64 {
    stm.atomically(|tx| {
        if is_fold {
            return tx.fold(bank, 0, |sum, one| sum + one);
        }
        let mut sum = 0;
        for account in bank {
            sum += tx.read(account)?;
        }
        Ok(sum)
    })
}

fn hearth<A: Algorithm>(name: &'static str, read_all: usize, is_fold: bool) -> Side {
    let bank: Vec<Var<i64>> = (0..ACCOUNTS).map(|_| Var::new(BEGINNING)).collect();
    Side::new(
        name,
        (Stm::<A>::with_algorithm(), bank),
        move |(stm, bank), random| match order(random, read_all) {
            Order::Transfer(from, to) => stm.atomically(|tx| {
                tx.update(&bank[from], |sum| sum - 1)?;
                tx.update(&bank[to], |sum| sum + 1).map(drop)
            }),
            Order::Sum => assert_eq!(sum(stm, bank, is_fold), ALL),
        },
        |(stm, bank)| right(sum(stm, bank, true)),
    )
}

fn serve(bank: &mut [i64], order: Order) {
    match order {
        Order::Transfer(from, to) => {
            bank[from] -= 1;
            bank[to] += 1;
        }
        Order::Sum => assert_eq!(bank.iter().sum::<i64>(), ALL),
    }
}

fn mutex(read_all: usize) -> Side {
    Side::new(
        "mutex",
        Mutex::new(vec![BEGINNING; ACCOUNTS]),
        move |bank, random| {
            let order = order(random, read_all);
            serve(&mut bank.lock().expect("nobody panics"), order);
        },
        |bank| right(bank.lock().expect("nobody panics").iter().sum()),
    )
}

fn parking_lot(read_all: usize) -> Side {
    Side::new(
        "parking_lot",
        parking_lot::Mutex::new(vec![BEGINNING; ACCOUNTS]),
        move |bank, random| {
            let order = order(random, read_all);
            serve(&mut bank.lock(), order);
        },
        |bank| right(bank.lock().iter().sum()),
    )
}

fn sum_of_peer(bank: &[TVar<i64>]) -> i64 {
    fast_stm::atomically(|tx| {
        let mut sum = 0;
        for account in bank {
            sum += tx.read(account)?;
        }
        Ok(sum)
    })
}

fn fast_stm(read_all: usize) -> Side {
    let bank: Vec<TVar<i64>> = (0..ACCOUNTS).map(|_| TVar::new(BEGINNING)).collect();
    Side::new(
        "fast-stm",
        bank,
        move |bank, random| match order(random, read_all) {
            Order::Transfer(from, to) => fast_stm::atomically(|tx| {
                let sum = tx.read(&bank[from])?;
                tx.write(&bank[from], sum - 1)?;
                let sum = tx.read(&bank[to])?;
                tx.write(&bank[to], sum + 1)
            }),
            Order::Sum => assert_eq!(sum_of_peer(bank), ALL),
        },
        |bank| right(sum_of_peer(bank)),
    )
}

pub(super) fn sides(read_all: usize, is_fold: bool) -> Vec<Side> {
    vec![
        hearth::<Lsa>("lsa", read_all, is_fold),
        hearth::<Norec>("norec", read_all, is_fold),
        mutex(read_all),
        parking_lot(read_all),
        fast_stm(read_all),
    ]
}
