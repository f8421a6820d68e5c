//! Turns: which sets run side by side next, and on which cores. Pure.
//!
//! A *round* gives each set a turn. Its turns are those of first fit decreasing: each takes the
//! widest set that has not had its turn, and then whatever fits beside it. They are found one by
//! one, as sets come, go and change their width in between. Cores that are left over go to sets
//! that have had their turn, those with the fewest such extra turns first.
//!
//! Sets inside a set are a level of their own, with a round of its own in the cores and turns of
//! the outer one; the members that belong to the outer set directly are one more set there.

use std::collections::{BTreeMap, BTreeSet};

use hearth_claim::Core;

/// Set of a process: most processes have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetId {
    /// The process that joined it to the registry.
    pub process: u32,
    /// Its number among the process's sets, from 0.
    pub nth: u32,
}

/// A set's needs for the next turn. The order among sets is that of their age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The set.
    pub id: SetId,
    /// Number of cores it was given, 1 at least.
    pub cores: u32,
    /// Number of cores it has used lately, by its direct members.
    pub demand: u32,
    /// Whether cores that it does not use serve others.
    pub fills: bool,
    /// The set around it.
    pub within: Option<SetId>,
}

/// A set with a turn, and its cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The set: its direct members.
    pub id: SetId,
    /// Its cores, ascending.
    pub cores: Vec<Core>,
}

/// Sets that run side by side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// These run; the members of all others are held.
    pub places: Vec<Place>,
    /// Number of cores for which no set was found.
    pub left_over: u32,
}

/// Function that chooses so many of the free cores.
pub type Choose<'a> = &'a dyn Fn(&[Core], usize) -> Vec<Core>;

/// The order of turns, from turn to turn.
#[derive(Clone, Debug, Default)]
pub struct Rota {
    levels: BTreeMap<Option<SetId>, Level>,
    /// Cores of each set in its last turn.
    last: BTreeMap<SetId, Vec<Core>>,
}

/// Turns among the sets inside one set, or on the machine.
#[derive(Clone, Debug, Default)]
struct Level {
    /// Sets that had their turn in this round.
    served: BTreeSet<SetId>,
    /// Number of turns beyond that, on cores left over.
    extra: BTreeMap<SetId, u64>,
}

/// A set as its level sees it.
#[derive(Clone, Copy)]
struct Item {
    id: SetId,
    /// Cores it takes in a turn; 0 if nothing of it wants to run.
    width: u32,
    /// It stands for the direct members of the set around.
    is_direct: bool,
}

impl Rota {
    /// The next turn on these cores.
    pub fn next(&mut self, asks: &[Ask], cores: &[Core], choose: Choose<'_>) -> Turn {
        let known: BTreeSet<SetId> = asks.iter().map(|ask| ask.id).collect();
        self.last.retain(|id, _| known.contains(id));
        self.levels
            .retain(|around, _| around.is_none_or(|id| known.contains(&id)));
        let asks = without_circles(asks);
        let mut turn = Turn::default();
        self.level(None, &asks, cores, choose, &mut turn);
        turn
    }

    fn level(
        &mut self,
        around: Option<&Ask>,
        asks: &[Ask],
        cores: &[Core],
        choose: Choose<'_>,
        turn: &mut Turn,
    ) {
        let items = items(around, asks, cores.len());
        let level = self.levels.entry(around.map(|ask| ask.id)).or_default();
        let chosen = level.choose(&items, cores.len() as u32);
        let mut free = cores.to_vec();
        // Sets that find the cores of their last turn free keep them: their data is there.
        let keeps = |item: &Item, free: &[Core], last: &BTreeMap<SetId, Vec<Core>>| {
            let before = last.get(&item.id)?;
            let is_same = before.len() == item.width as usize;
            (is_same && before.iter().all(|core| free.contains(core))).then(|| before.clone())
        };
        let mut placed: Vec<(Item, Vec<Core>)> = Vec::new();
        let (stay, move_in): (Vec<Item>, Vec<Item>) = chosen
            .into_iter()
            .partition(|item| item.width > 0 && keeps(item, &free, &self.last).is_some());
        for item in stay.into_iter().chain(move_in) {
            let own = match item.width {
                // Nothing of it runs. Whatever wakes may do so anywhere.
                0 => cores.to_vec(),
                width => {
                    let own = keeps(&item, &free, &self.last)
                        .unwrap_or_else(|| choose(&free, width as usize));
                    free.retain(|core| !own.contains(core));
                    own
                }
            };
            placed.push((item, own));
        }
        turn.left_over += free.len() as u32;
        for (item, mut own) in placed {
            own.sort_unstable();
            let ask = asks.iter().find(|ask| ask.id == item.id);
            let inner = ask.filter(|_| !item.is_direct && has_inner(asks, item.id));
            if !item.is_direct && item.width > 0 {
                self.last.insert(item.id, own.clone());
            }
            match inner {
                Some(ask) => self.level(Some(ask), asks, &own, choose, turn),
                None => turn.places.push(Place {
                    id: item.id,
                    cores: own,
                }),
            }
        }
    }
}

impl Level {
    /// The sets of the next turn. Those that want nothing are always among them.
    fn choose(&mut self, items: &[Item], room: u32) -> Vec<Item> {
        let ids: BTreeSet<SetId> = items.iter().map(|item| item.id).collect();
        self.served.retain(|id| ids.contains(id));
        self.extra.retain(|id, _| ids.contains(id));
        let mut chosen: Vec<Item> = items.iter().copied().filter(|one| one.width == 0).collect();
        let mut wide: Vec<Item> = items.iter().copied().filter(|one| one.width > 0).collect();
        // Stable: the older of equals comes first.
        wide.sort_by_key(|item| std::cmp::Reverse(item.width));
        if wide.iter().all(|item| self.served.contains(&item.id)) {
            self.served.clear();
        }
        let mut left = room;
        let (waiting, mut had): (Vec<Item>, Vec<Item>) = wide
            .into_iter()
            .partition(|item| !self.served.contains(&item.id));
        let mut late = Vec::new();
        for item in waiting {
            if item.width <= left {
                left -= item.width;
                self.served.insert(item.id);
                chosen.push(item);
            } else {
                late.push(item);
            }
        }
        // Whoever waits has a turn in this round anyway, and may have one on top.
        had.extend(late);
        had.sort_by_key(|item| self.extra.get(&item.id).copied().unwrap_or(0));
        for item in had {
            if item.width <= left {
                left -= item.width;
                *self.extra.entry(item.id).or_insert(0) += 1;
                chosen.push(item);
            }
        }
        chosen
    }
}

fn has_inner(asks: &[Ask], id: SetId) -> bool {
    asks.iter().any(|ask| ask.within == Some(id))
}

/// The sets directly inside a set, and its direct members as one more.
fn items(around: Option<&Ask>, asks: &[Ask], room: usize) -> Vec<Item> {
    let inside = around.map(|ask| ask.id);
    let direct = around.map(|ask| Item {
        id: ask.id,
        width: own_width(ask).min(room as u32),
        is_direct: true,
    });
    let inner = asks.iter().filter(|ask| ask.within == inside);
    let inner = inner.map(|ask| Item {
        id: ask.id,
        width: width(ask, asks).min(room as u32),
        is_direct: false,
    });
    direct.into_iter().chain(inner).collect()
}

/// Cores that the direct members of a set take.
fn own_width(ask: &Ask) -> u32 {
    match ask.fills {
        true => ask.demand.min(ask.cores),
        false => ask.cores.max(1),
    }
}

/// Cores that a set takes with those inside it.
fn width(ask: &Ask, asks: &[Ask]) -> u32 {
    if !ask.fills {
        return ask.cores.max(1);
    }
    let inner = asks.iter().filter(|one| one.within == Some(ask.id));
    let inner: u32 = inner.map(|one| width(one, asks)).sum();
    inner.saturating_add(own_width(ask)).min(ask.cores)
}

/// Sets whose surroundings have ended, or lead back to themselves, are on the machine directly.
fn without_circles(asks: &[Ask]) -> Vec<Ask> {
    let around: BTreeMap<SetId, Option<SetId>> =
        asks.iter().map(|ask| (ask.id, ask.within)).collect();
    let is_sound = |ask: &Ask| {
        let mut at = ask.within;
        for _ in 0..asks.len() {
            match at {
                None => return true,
                Some(id) => match around.get(&id) {
                    None => return id != ask.within.unwrap_or(id),
                    Some(next) => at = *next,
                },
            }
        }
        at.is_none()
    };
    let mended = asks.iter().map(|ask| Ask {
        within: ask.within.filter(|_| is_sound(ask)),
        ..*ask
    });
    mended.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(process: u32) -> SetId {
        SetId { process, nth: 0 }
    }

    fn ask(process: u32, cores: u32) -> Ask {
        Ask {
            id: id(process),
            cores,
            demand: cores,
            fills: true,
            within: None,
        }
    }

    fn inside(outer: u32, ask: Ask) -> Ask {
        let within = Some(id(outer));
        Ask { within, ..ask }
    }

    fn first(free: &[Core], count: usize) -> Vec<Core> {
        free[..count].to_vec()
    }

    /// The turns of some sets on so many cores, each as `set:cores`, and what is left over.
    fn turns(rota: &mut Rota, asks: &[Ask], cores: u32, count: usize) -> Vec<String> {
        let cores: Vec<Core> = (0..cores).map(Core).collect();
        let mut shown = Vec::new();
        for _ in 0..count {
            let turn = rota.next(asks, &cores, &first);
            let mut places: Vec<String> = turn
                .places
                .iter()
                .map(|place| {
                    let cores: Vec<String> = place.cores.iter().map(|c| c.0.to_string()).collect();
                    format!("{}:{}", place.id.process, cores.join(","))
                })
                .collect();
            places.sort();
            shown.push(format!("{} -{}", places.join(" "), turn.left_over));
        }
        shown
    }

    fn fresh(asks: &[Ask], cores: u32, count: usize) -> Vec<String> {
        turns(&mut Rota::default(), asks, cores, count)
    }

    #[test]
    fn two_sets_that_need_all_take_turns() {
        let asks = [ask(1, 2), ask(2, 2)];
        assert_eq!(
            fresh(&asks, 2, 4),
            ["1:0,1 -0", "2:0,1 -0", "1:0,1 -0", "2:0,1 -0"]
        );
    }

    #[test]
    fn sets_that_fit_run_side_by_side() {
        let asks = [ask(1, 2), ask(2, 2)];
        assert_eq!(fresh(&asks, 4, 2), ["1:0,1 2:2,3 -0", "1:0,1 2:2,3 -0"]);
    }

    /// Widest first, then what fits: as first fit decreasing packs bins.
    #[test]
    fn turns_are_packed() {
        let asks = [ask(1, 1), ask(2, 2), ask(3, 3), ask(4, 2)];
        assert_eq!(fresh(&asks, 4, 2), ["1:3 3:0,1,2 -0", "2:0,1 4:2,3 -0"]);
        let asks = [ask(1, 4), ask(2, 1)];
        // Unavoidable: the small one leaves three cores without a set.
        assert_eq!(fresh(&asks, 4, 2), ["1:0,1,2,3 -0", "2:0 -3"]);
    }

    #[test]
    fn cores_left_over_serve_whoever_fits() {
        let asks = [ask(1, 3), ask(2, 2), ask(3, 1)];
        // Sets 1 and 3 fill the first turn; in the second 3 has an extra one.
        assert_eq!(fresh(&asks, 4, 2), ["1:0,1,2 3:3 -0", "2:0,1 3:3 -1"]);
        // Extra turns go round.
        let asks = [ask(1, 3), ask(2, 1), ask(3, 1), ask(4, 2), ask(5, 2)];
        let mut rota = Rota::default();
        turns(&mut rota, &asks, 4, 300);
        let extra = &rota.levels[&None].extra;
        let few = extra.values().min().copied().unwrap_or(0);
        assert!(extra.values().all(|one| *one <= few + 150), "{extra:?}");
    }

    #[test]
    fn each_set_has_a_turn_in_each_round() {
        let asks: Vec<Ask> = (1..=9).map(|at| ask(at, at % 4 + 1)).collect();
        let shown = fresh(&asks, 5, 60);
        for at in 1..=9 {
            let sign = format!("{at}:");
            let had = shown.iter().filter(|turn| turn.contains(&sign)).count();
            assert!(had >= 10, "set {at} had {had} turns of 60");
        }
    }

    #[test]
    fn a_set_that_fills_takes_what_it_uses() {
        let half = Ask {
            demand: 1,
            ..ask(1, 2)
        };
        let other = Ask {
            demand: 1,
            ..ask(2, 2)
        };
        assert_eq!(fresh(&[half, other], 2, 2), ["1:0 2:1 -0", "1:0 2:1 -0"]);
        let alone = Ask {
            fills: false,
            ..half
        };
        assert_eq!(fresh(&[alone, other], 2, 2), ["1:0,1 -0", "2:0 -1"]);
    }

    #[test]
    fn a_set_that_sleeps_is_not_held() {
        let asleep = Ask {
            demand: 0,
            ..ask(1, 2)
        };
        assert_eq!(fresh(&[asleep, ask(2, 2)], 2, 1), ["1:0,1 2:0,1 -0"]);
    }

    #[test]
    fn a_set_wider_than_the_machine_has_all_of_it() {
        assert_eq!(fresh(&[ask(1, 9), ask(2, 1)], 2, 2), ["1:0,1 -0", "2:0 -1"]);
    }

    #[test]
    fn inner_sets_share_the_turns_of_the_outer() {
        // Set 1 has two inner sets, of which one has its turn in each turn of set 1; its direct
        // members sleep, and so are never held while it has a turn.
        let outer = Ask {
            demand: 0,
            ..ask(1, 2)
        };
        let asks = [outer, inside(1, ask(2, 2)), inside(1, ask(3, 2)), ask(4, 2)];
        assert_eq!(
            fresh(&asks, 2, 4),
            ["1:0,1 2:0,1 -0", "4:0,1 -0", "1:0,1 3:0,1 -0", "4:0,1 -0"]
        );
        // Direct members that run have turns among them.
        let asks = [ask(1, 2), inside(1, ask(2, 2)), ask(4, 2)];
        assert_eq!(
            fresh(&asks, 2, 4),
            ["1:0,1 -0", "4:0,1 -0", "2:0,1 -0", "4:0,1 -0"]
        );
    }

    #[test]
    fn an_inner_set_stays_in_the_outer_ones_cores() {
        let outer = Ask {
            demand: 1,
            ..ask(1, 3)
        };
        let asks = [outer, inside(1, ask(2, 2)), ask(4, 1)];
        assert_eq!(fresh(&asks, 4, 1), ["1:2 2:0,1 4:3 -0"]);
    }

    #[test]
    fn a_set_keeps_its_cores_if_it_can() {
        let mut rota = Rota::default();
        let both = [ask(1, 2), ask(2, 2)];
        assert_eq!(turns(&mut rota, &both, 4, 1), ["1:0,1 2:2,3 -0"]);
        assert_eq!(turns(&mut rota, &both[1..], 4, 1), ["2:2,3 -2"]);
        // Relocated: its cores are gone.
        assert_eq!(turns(&mut rota, &both[1..], 2, 1), ["2:0,1 -0"]);
    }

    #[test]
    fn circles_and_missing_surroundings_are_on_the_machine() {
        let asks = [
            inside(2, ask(1, 1)),
            inside(1, ask(2, 1)),
            inside(9, ask(3, 1)),
        ];
        assert_eq!(fresh(&asks, 4, 1), ["1:0 2:1 3:2 -1"]);
        let asks = [ask(1, 2), inside(1, ask(2, 1)), inside(2, ask(3, 1))];
        assert_eq!(fresh(&asks, 2, 1).len(), 1);
    }
}
