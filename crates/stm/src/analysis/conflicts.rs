//! Killers and victims.

use std::collections::HashMap;

use super::history::{Attempt, End, History};

/// Bytes of a stripe, the unit of conflicts under LSA.
const STRIPE: u64 = 64;

/// Author of a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Killer {
    /// A thread by its place in the history, which the abort names.
    Named(usize),
    /// A thread that committed a write to the place of the conflict last before the abort, during
    /// the attempt.
    Inferred(usize),
    /// Several threads have the sign that the abort names.
    Ambiguous,
    /// Unknown.
    Unknown,
}

impl Killer {
    /// The thread.
    #[must_use]
    pub fn thread(self) -> Option<usize> {
        match self {
            Killer::Named(thread) | Killer::Inferred(thread) => Some(thread),
            Killer::Ambiguous | Killer::Unknown => None,
        }
    }
}

/// Finds the killers of a history's attempts.
pub struct Kills {
    /// Threads by their signs; more than one thread: none.
    signs: HashMap<u16, Option<usize>>,
    /// Ends of commits that wrote a stripe, with their threads, in the order of time.
    writes: HashMap<u64, Vec<(f64, usize)>>,
}

impl Kills {
    /// Prepares a history.
    #[must_use]
    pub fn of(history: &History) -> Kills {
        let mut kills = Kills {
            signs: HashMap::new(),
            writes: HashMap::new(),
        };
        for (number, thread) in history.threads.iter().enumerate() {
            let known = kills.signs.entry(thread.sign).or_insert(Some(number));
            if *known != Some(number) {
                *known = None;
            }
            let commits = thread.attempts.iter().filter(|it| it.end == End::Commit);
            for commit in commits {
                for access in commit.accesses.iter().filter(|it| it.written.is_some()) {
                    let writes = kills.writes.entry(access.address / STRIPE).or_default();
                    writes.push((commit.end_ns, number));
                }
            }
        }
        for writes in kills.writes.values_mut() {
            writes.sort_by(|one, other| one.0.total_cmp(&other.0));
            writes.dedup();
        }
        kills
    }

    /// The killer of a thread's attempt. None if it met no conflict.
    #[must_use]
    pub fn killer(&self, victim: usize, attempt: &Attempt) -> Option<Killer> {
        let End::Abort {
            reason,
            site,
            owner,
        } = attempt.end
        else {
            return None;
        };
        if reason.is_some_and(|reason| !reason.is_conflict()) {
            return None;
        }
        match self.signs.get(&owner) {
            Some(Some(thread)) if owner != 0 => return Some(Killer::Named(*thread)),
            Some(None) if owner != 0 => return Some(Killer::Ambiguous),
            _ => {}
        }
        let writes = self
            .writes
            .get(&(site / STRIPE))
            .map_or(&[][..], Vec::as_slice);
        let until = writes.partition_point(|write| write.0 <= attempt.end_ns);
        let last = writes[..until].iter().rev();
        let found = last
            .take_while(|write| write.0 >= attempt.start_ns)
            .find(|write| write.1 != victim && site != 0);
        Some(found.map_or(Killer::Unknown, |write| Killer::Inferred(write.1)))
    }

    /// Number of commits that wrote to the stripe of an address.
    #[must_use]
    pub fn commits_at(&self, site: u64) -> usize {
        self.writes.get(&(site / STRIPE)).map_or(0, Vec::len)
    }
}
