//! A travel agency: cars, flights and rooms in trees, and the customers' reservations.
//!
//! Clients reserve the dearest of some things, delete customers, and change what there is. Nearly
//! everything is in transactions of middle length; the wider the queries reach and the more of
//! them one transaction has, the more conflicts.

use hearth_stm::{Algorithm, Halt, Slab, Stm, Tree, Tx, Var};

use super::{Kernel, Random, Size, shares};

const KINDS: usize = 3;
/// Things of a kind that are added or taken away at once.
const LOT: i64 = 100;

/// How much transactions meet.
#[derive(Clone, Copy)]
pub(super) enum Contention {
    Low,
    High,
}

pub(super) struct Parameters {
    /// Queries in a transaction.
    pub(super) queries: usize,
    /// Share of all things that queries reach.
    pub(super) reach_percent: usize,
    /// Share of the transactions that reserve.
    pub(super) reserve_percent: usize,
    /// Things of a kind, and customers.
    pub(super) relations: usize,
    pub(super) transactions: usize,
}

impl Parameters {
    pub(super) const fn of(size: Size, contention: Contention) -> Parameters {
        let (queries, reach_percent, reserve_percent) = match contention {
            Contention::Low => (2, 90, 98),
            Contention::High => (4, 60, 90),
        };
        let (relations, transactions) = match size {
            Size::Small => (64, 256),
            Size::Published => (16_384, 4096),
        };
        Parameters {
            queries,
            reach_percent,
            reserve_percent,
            relations,
            transactions,
        }
    }
}

/// A thing: how many there are, how many of them are reserved and free, and the price.
struct Thing {
    total: Var<i64>,
    used: Var<i64>,
    free: Var<i64>,
    price: Var<i64>,
}

struct Kind {
    /// Ids of what there is.
    ids: Tree<u32, ()>,
    things: Vec<Thing>,
}

// Words of a reservation.
const WHICH: usize = 1;
const NEXT: usize = 2;

pub(super) struct Vacation<A: Algorithm> {
    stm: Stm<A>,
    threads: usize,
    seed: u64,
    parameters: Parameters,
    kinds: [Kind; KINDS],
    /// The first reservation of each customer.
    customers: Tree<u32, u32>,
    reservations: Slab,
}

#[derive(Clone, Copy)]
enum Order {
    Add { price: i64 },
    TakeAway,
}

impl<A: Algorithm> Vacation<A> {
    pub(super) fn new(
        stm: Stm<A>,
        size: Size,
        contention: Contention,
        threads: usize,
        seed: u64,
    ) -> Vacation<A> {
        let parameters = Parameters::of(size, contention);
        let relations = parameters.relations;
        let mut random = Random::new(seed);
        let mut ids: Vec<u32> = (0..relations as u32).collect();
        let kinds = std::array::from_fn(|_| {
            let tree = Tree::with_capacity(relations);
            random.shuffle(&mut ids);
            for &id in &ids {
                stm.atomically(|tx| tree.insert(tx, id, ()));
            }
            let thing = |_| {
                let total = (random.below(5) as i64 + 1) * LOT;
                Thing {
                    total: Var::new(total),
                    used: Var::new(0),
                    free: Var::new(total),
                    price: Var::new(price(&mut random)),
                }
            };
            Kind {
                ids: tree,
                things: (0..relations).map(thing).collect(),
            }
        });
        let customers = Tree::with_capacity(relations);
        random.shuffle(&mut ids);
        for &id in &ids {
            stm.atomically(|tx| customers.insert(tx, id, 0));
        }
        Vacation {
            stm,
            threads,
            seed,
            parameters,
            kinds,
            customers,
            reservations: Slab::with_capacity(relations),
        }
    }

    fn reserve(&self, customer: u32, queries: &[(usize, u32)]) {
        self.stm.atomically(|tx| {
            let mut best: [Option<(i64, u32)>; KINDS] = [None; KINDS];
            for &(kind, id) in queries {
                if self.kinds[kind].ids.get(tx, id)?.is_none() {
                    continue;
                }
                let thing = &self.kinds[kind].things[id as usize];
                let price = tx.read(&thing.price)?;
                let is_better = best[kind].is_none_or(|(dearest, _)| price > dearest);
                if tx.read(&thing.free)? > 0 && is_better {
                    best[kind] = Some((price, id));
                }
            }
            for (kind, best) in best.into_iter().enumerate() {
                if let Some((_, id)) = best {
                    self.reserve_one(tx, customer, kind, id)?;
                }
            }
            Ok(())
        });
    }

    fn reserve_one<'v>(
        &'v self,
        tx: &mut Tx<'v, A>,
        customer: u32,
        kind: usize,
        id: u32,
    ) -> Result<(), Halt> {
        let which = (kind as u32, id);
        let first = self.customers.get(tx, customer)?.unwrap_or(0);
        let mut at = first;
        while at != 0 {
            // Nobody has two of the same.
            if tx.read(self.reservations.word(at, WHICH))? == pack(which) {
                return Ok(());
            }
            at = tx.read(self.reservations.word(at, NEXT))? as u32;
        }
        let thing = &self.kinds[kind].things[id as usize];
        tx.update(&thing.free, |free| free - 1)?;
        tx.update(&thing.used, |used| used + 1)?;
        let node = self.reservations.allocate(tx)?;
        tx.write(self.reservations.word(node, WHICH), pack(which))?;
        tx.write(self.reservations.word(node, NEXT), first.into())?;
        self.customers.insert(tx, customer, node).map(drop)
    }

    /// Cancels all that a customer has, and forgets the customer.
    fn forget(&self, customer: u32) {
        self.stm.atomically(|tx| {
            let mut at = self.customers.remove(tx, customer)?.unwrap_or(0);
            while at != 0 {
                let (kind, id) = unpack(tx.read(self.reservations.word(at, WHICH))?);
                let thing = &self.kinds[kind as usize].things[id as usize];
                tx.update(&thing.free, |free| free + 1)?;
                tx.update(&thing.used, |used| used - 1)?;
                let next = tx.read(self.reservations.word(at, NEXT))? as u32;
                self.reservations.free(tx, at)?;
                at = next;
            }
            Ok(())
        });
    }

    fn change(&self, changes: &[(usize, u32, Order)]) {
        self.stm.atomically(|tx| {
            for &(kind, id, order) in changes {
                self.change_one(tx, kind, id, order)?;
            }
            Ok(())
        });
    }

    fn change_one<'v>(
        &'v self,
        tx: &mut Tx<'v, A>,
        kind: usize,
        id: u32,
        order: Order,
    ) -> Result<(), Halt> {
        let Kind { ids, things } = &self.kinds[kind];
        let thing = &things[id as usize];
        let lot = match order {
            Order::Add { price } => {
                ids.insert(tx, id, ())?;
                tx.write(&thing.price, price)?;
                LOT
            }
            Order::TakeAway if tx.read(&thing.free)? < LOT => return Ok(()),
            Order::TakeAway => -LOT,
        };
        tx.update(&thing.free, |free| free + lot)?;
        if tx.update(&thing.total, |total| total + lot)? == 0 {
            ids.remove(tx, id)?;
        }
        Ok(())
    }
}

fn price(random: &mut Random) -> i64 {
    random.below(5) as i64 * 10 + 50
}

fn pack((kind, id): (u32, u32)) -> u64 {
    u64::from(kind) << 32 | u64::from(id)
}

fn unpack(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

impl<A: Algorithm> Kernel for Vacation<A> {
    fn work(&self, thread: usize) {
        let Parameters {
            queries,
            reach_percent,
            reserve_percent,
            relations,
            transactions,
        } = self.parameters;
        let mut random = Random::new(self.seed * 1000 + thread as u64);
        let reach = (relations * reach_percent / 100).max(1);
        for _ in shares(transactions, self.threads, thread) {
            let customer = random.below(reach) as u32;
            let mut things = || (random.below(KINDS), random.below(reach) as u32);
            let things: Vec<(usize, u32)> = (0..queries).map(|_| things()).collect();
            if random.happens(reserve_percent) {
                self.reserve(customer, &things);
            } else if random.happens(50) {
                self.forget(customer);
            } else {
                let mut order = || match random.happens(50) {
                    true => Order::Add {
                        price: price(&mut random),
                    },
                    false => Order::TakeAway,
                };
                let with_order = |(kind, id)| (kind, id, order());
                let changes: Vec<_> = things.into_iter().map(with_order).collect();
                self.change(&changes);
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        let mut used = vec![[0_i64; KINDS]; self.parameters.relations];
        self.stm.atomically(|tx| {
            used.iter_mut().for_each(|kinds| *kinds = [0; KINDS]);
            let mut firsts = Vec::new();
            self.customers.visit(tx, |_, first| firsts.push(first))?;
            for mut at in firsts {
                while at != 0 {
                    let (kind, id) = unpack(tx.read(self.reservations.word(at, WHICH))?);
                    used[id as usize][kind as usize] += 1;
                    at = tx.read(self.reservations.word(at, NEXT))? as u32;
                }
            }
            Ok(())
        });
        for (number, kind) in self.kinds.iter().enumerate() {
            for (id, thing) in kind.things.iter().enumerate() {
                let (words, is_there) = self.stm.atomically(|tx| {
                    let words = [
                        tx.read(&thing.total)?,
                        tx.read(&thing.used)?,
                        tx.read(&thing.free)?,
                    ];
                    Ok((words, kind.ids.get(tx, id as u32)?.is_some()))
                });
                let [total, of, free] = words;
                let is_right = total == of + free
                    && of == used[id][number]
                    && free >= 0
                    && (total > 0) == is_there;
                if !is_right {
                    return Err(format!("thing {id} of kind {number}: {words:?}"));
                }
            }
        }
        Ok(())
    }
}
