//! The modelled folder and its members at a moment, and the steps that change it.

use super::player::{Answer, Step, member};
use super::text::Text;
use crate::chain;
use crate::outside::Fault;
use crate::state::State;

/// A member: its answers so far by their number in the explorer, and what the system keeps of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Player {
    pub(super) place: u32,
    pub(super) has_ended: bool,
    /// Its own file, which it has open.
    own: Option<Own>,
    listing: Option<Listing>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Own {
    name: Text,
    text: Text,
    is_there: bool,
}

/// A listing of the folder that has begun.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Listing {
    /// The ending of the names that it lists.
    ending: Text,
    /// Names that are there all the time.
    steady: Vec<Text>,
    /// Names that came or went meanwhile.
    loose: Vec<Text>,
}

/// Beginning of a text into which somebody wrote. It is still the same file.
const SPOILED: &str = "nonsense: ";

/// The whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct World {
    /// Names and texts, ascending.
    states: Vec<(Text, Text)>,
    pub(super) players: Vec<Player>,
    /// Members that may still be killed.
    pub(super) kills: u32,
    /// Times that somebody may still damage the folder.
    pub(super) damages: u32,
    /// Times that a member's file may still be read in the middle of being written.
    pub(super) tears: u32,
    /// The member that took the last step, and how often it may still be another's turn although
    /// that one could go on.
    pub(super) last: usize,
    pub(super) switches: u32,
}

/// A thing that somebody does to the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// Removes a state, by its place from the newest.
    Remove(usize),
    /// Writes into a state.
    Spoil(usize),
    /// Removes all states.
    RemoveAll,
}

/// An answer, the world then, and the member whose write is over as well.
pub(super) type Changed = (Answer, World, Option<usize>);

impl World {
    pub(super) fn new(players: usize) -> World {
        World {
            players: vec![Player::default(); players],
            ..World::default()
        }
    }

    fn names(&self, ending: &str) -> Vec<Text> {
        let owns = self.players.iter().filter_map(|player| player.own.as_ref());
        let owns = owns.filter(|own| own.is_there).map(|own| &own.name);
        let states = self.states.iter().map(|(name, _)| name);
        let all = states.chain(owns);
        all.filter(|name| name.ends_with(ending)).cloned().collect()
    }

    /// Tells the listings that a name comes or goes.
    fn loosen(&mut self, name: &str) {
        for listing in self
            .players
            .iter_mut()
            .filter_map(|one| one.listing.as_mut())
            .filter(|listing| name.ends_with(&*listing.ending))
        {
            listing.steady.retain(|steady| **steady != *name);
            if !listing.loose.iter().any(|loose| **loose == *name) {
                listing.loose.push(name.into());
                listing.loose.sort_by(|a, b| a.cmp(b));
            }
        }
    }

    fn read(&self, name: &str) -> Option<Text> {
        let own = self.own(name).and_then(|at| self.players[at].own.as_ref());
        let mut states = self.states.iter();
        let state = states.find(|(state, _)| **state == *name);
        let text = state.map(|(_, text)| text);
        text.or(own.map(|own| &own.text)).cloned()
    }

    /// The member whose file a name is.
    fn own(&self, name: &str) -> Option<usize> {
        let is_it = |own: &Own| own.is_there && *own.name == *name;
        let mut players = self.players.iter();
        players.position(|player| player.own.as_ref().is_some_and(is_it))
    }

    fn remove(&mut self, name: &str) {
        if let Some(at) = self.own(name) {
            if let Some(own) = &mut self.players[at].own {
                own.is_there = false;
            }
            self.loosen(name);
        } else if self.states.iter().any(|(state, _)| **state == *name) {
            self.states.retain(|(state, _)| **state != *name);
            self.loosen(name);
        }
    }

    /// Whether nobody can see when a step happens.
    pub(super) fn is_private(&self, step: &Step) -> bool {
        match step {
            Step::HasOwn => self.damages == 0,
            Step::IsAlive(_) => self.kills == 0,
            _ => false,
        }
    }

    /// Takes a member's step. All answers that it may get, each with the world then; the answers
    /// differ if others are in the middle of something. `racing` is the text that a member is
    /// about to write, by the member.
    pub(super) fn step(
        &self,
        at: usize,
        step: &Step,
        fault: Option<Fault>,
        racing: &dyn Fn(usize) -> Option<Text>,
    ) -> Vec<Changed> {
        let mut next = self.clone();
        let answer = match step {
            Step::List(ending) => match next.players[at].listing.take() {
                None => {
                    next.players[at].listing = Some(Listing {
                        ending: ending.clone(),
                        steady: self.names(ending),
                        loose: Vec::new(),
                    });
                    Answer::Done
                }
                Some(listing) => {
                    let subsets = 0..1_usize << listing.loose.len();
                    let mut listed: Vec<Changed> = Vec::new();
                    for subset in subsets {
                        let loose = listing.loose.iter().enumerate();
                        let loose = loose.filter(|(at, _)| subset >> at & 1 == 1);
                        let all = listing.steady.iter().chain(loose.map(|(_, name)| name));
                        let mut names: Vec<Text> = all.cloned().collect();
                        names.sort_by(|a, b| a.cmp(b));
                        // Nobody looks at number 1 where later ones are.
                        if names.len() > 1 {
                            names.retain(|name| **name != *chain::name(1));
                        }
                        let answer = Answer::Names(names.into());
                        if listed.iter().all(|(other, ..)| *other != answer) {
                            listed.push((answer, next.clone(), None));
                        }
                    }
                    return listed;
                }
            },
            Step::Read(name) => {
                let text = Answer::Text(self.read(name));
                // A write that goes on meanwhile is over soon.
                if let Some(writer) = self.own(name).filter(|writer| *writer != at)
                    && let Some(written) = racing(writer)
                    && !self.players[writer].has_ended
                    && self.tears > 0
                {
                    let mut over = next.clone();
                    over.tears -= 1;
                    over.write(writer, &written);
                    let torn = Answer::Text(Some("torn".into()));
                    return vec![(text, next, None), (torn, over, Some(writer))];
                }
                text
            }
            Step::IsThere(name, text) => {
                let now = self.read(name);
                let spoiled = now.as_ref().and_then(|now| now.strip_prefix(SPOILED));
                if spoiled == Some(&**text) {
                    // Who has it open does not notice, who reads it does.
                    let answers = [true, false].map(|is| (Answer::Is(is), next.clone(), None));
                    return answers.into();
                }
                Answer::Is(now.as_ref() == Some(text))
            }
            Step::Publish(name, text) => {
                let is_there = self.states.iter().any(|(state, _)| state == name);
                if !is_there || fault == Some(Fault::PublishesOver) {
                    next.states.retain(|(state, _)| state != name);
                    next.states.push((name.clone(), text.clone()));
                    next.states.sort_by(|a, b| a.0.cmp(&b.0));
                }
                if !is_there {
                    next.loosen(name);
                }
                Answer::Is(!is_there || fault == Some(Fault::PublishesOver))
            }
            Step::Remove(name) => {
                next.remove(name);
                Answer::Done
            }
            Step::PutOver(name, other) => {
                if let Some(text) = self.read(name) {
                    next.remove(name);
                    // A listing may miss a name that becomes another file's.
                    next.remove(other);
                    next.states.push((other.clone(), text));
                    next.states.sort_by(|a, b| a.0.cmp(&b.0));
                    next.loosen(other);
                }
                Answer::Done
            }
            Step::MakeOwn(name, text) => {
                let was_there = self.own(name).is_some();
                next.players[at].own = Some(Own {
                    name: name.clone(),
                    text: text.clone(),
                    is_there: true,
                });
                if !was_there {
                    next.loosen(name);
                }
                Answer::Done
            }
            Step::HasOwn => {
                let own = self.players[at].own.as_ref();
                Answer::Is(own.is_some_and(|own| own.is_there))
            }
            Step::WriteOwn(text) => {
                next.write(at, text);
                Answer::Done
            }
            Step::Removed => {
                let players = self.players.iter().filter(|player| !player.has_ended);
                let owns = players.filter_map(|player| player.own.as_ref());
                let removed = owns.filter(|own| !own.is_there);
                let texts = removed.map(|own| (own.name.clone(), own.text.clone()));
                Answer::Texts(texts.collect())
            }
            Step::IsAlive(process) => Answer::Is(!self.players[member(*process)].has_ended),
        };
        vec![(answer, next, None)]
    }

    fn write(&mut self, at: usize, text: &str) {
        if let Some(own) = &mut self.players[at].own {
            let rest = own.text.get(text.len()..).unwrap_or_default();
            own.text = format!("{text}{rest}").as_str().into();
        }
    }

    /// Cores that the newest state tells of as those of living members, as bits.
    pub(super) fn told(&self) -> u32 {
        let newest = self.states.last().and_then(|(_, text)| State::of(text));
        let holders = newest.unwrap_or_default().holders.into_iter();
        let living = holders.filter(|(process, _)| !self.players[member(*process)].has_ended);
        let cores = living.flat_map(|(_, holder)| holder.cores);
        cores.fold(0, |bits, core| bits | 1 << core.0)
    }

    /// Kills a member.
    pub(super) fn kill(&self, at: usize) -> World {
        let mut next = self.clone();
        let player = &mut next.players[at];
        (player.has_ended, player.place, player.listing) = (true, 0, None);
        next.kills -= 1;
        next
    }

    /// Everything that somebody may do to the folder.
    pub(super) fn damages(&self) -> Vec<Damage> {
        let states = 0..self.states.len();
        let mut all: Vec<Damage> = states.clone().map(Damage::Remove).collect();
        all.extend(states.map(Damage::Spoil));
        if self.states.len() > 1 {
            all.push(Damage::RemoveAll);
        }
        all
    }

    /// The folder after that.
    pub(super) fn damage(&self, damage: Damage) -> World {
        let mut next = self.clone();
        next.damages -= 1;
        let at = |place: usize| self.states.len() - 1 - place;
        match damage {
            Damage::Remove(place) => next.remove(&self.states[at(place)].0),
            Damage::Spoil(place) => {
                let text = format!("{SPOILED}{}", &*self.states[at(place)].1);
                next.states[at(place)].1 = text.as_str().into();
            }
            Damage::RemoveAll => {
                for (name, _) in &self.states {
                    next.remove(name);
                }
            }
        }
        next
    }
}
