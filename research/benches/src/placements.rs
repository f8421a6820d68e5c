//! All placements of a program's components on a few cores, up to interchangeable components.
//!
//! Two components are alike if they are of the same type and have the same partners: which of them
//! is where makes no difference, only how many are. Nor does it matter which core is which.

use hearth_lang::analysis::graph::{InstanceId, Kind};
use hearth_lang::compile::{CompileOptions, graph};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

/// A component, as a plan names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    pub type_name: String,
    /// From 1, over those of its type, in creation order.
    pub number: u32,
}

/// A program's components, those that are alike together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Components {
    pub all: Vec<Placed>,
    /// Indices into `all`; each is in one.
    pub classes: Vec<Vec<usize>>,
}

/// A core for each component, by number from 0.
pub type Placement = Vec<u8>;

impl Components {
    /// Components of a program whose graph is constant. An error says what is not.
    pub fn of(text: &str, name: &str) -> Result<Components, String> {
        let graph = graph(text, name, &CompileOptions::default())
            .ok_or_else(|| format!("{name} does not compile"))?;
        if let Some(unknown) = graph.unknowns.first() {
            return Err(format!("{name}: {}", unknown.reason));
        }
        let is_user = |id: InstanceId| graph.component(id).kind == Kind::User;
        let mut partners: BTreeMap<InstanceId, Vec<(InstanceId, bool)>> = BTreeMap::new();
        for flow in &graph.flows {
            for (one, other, sends) in [(flow.from, flow.to, true), (flow.to, flow.from, false)] {
                if is_user(one) && is_user(other) {
                    partners.entry(one).or_default().push((other, sends));
                }
            }
        }
        let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
        let (mut all, mut classes) = (Vec::new(), BTreeMap::new());
        for (index, component) in graph.components.iter().enumerate() {
            let id = InstanceId(index as u32);
            if !is_user(id) {
                continue;
            }
            let number = numbers.entry(&component.type_name).or_default();
            *number += 1;
            let mut with = partners.remove(&id).unwrap_or_default();
            with.sort_unstable();
            let kind = (component.type_name.to_string(), with);
            let class: &mut Vec<usize> = classes.entry(kind).or_default();
            class.push(all.len());
            all.push(Placed {
                type_name: component.type_name.to_string(),
                number: *number,
            });
        }
        let mut classes: Vec<Vec<usize>> = classes.into_values().collect();
        classes.sort();
        Ok(Components { all, classes })
    }

    /// Every placement on this number of cores, or none if there are more than `most`.
    pub fn placements(&self, cores: u8, most: usize) -> Option<Vec<Placement>> {
        let mut found = vec![vec![0; self.all.len()]];
        for class in &self.classes {
            let ways = ways(class.len(), cores);
            if found.len().saturating_mul(ways.len()) > most.saturating_mul(usize::from(cores) * 4)
            {
                return None;
            }
            found = found
                .iter()
                .flat_map(|before| {
                    ways.iter().map(move |way| {
                        let mut placement = before.clone();
                        for (&component, &core) in class.iter().zip(way) {
                            placement[component] = core;
                        }
                        placement
                    })
                })
                .collect();
        }
        let mut known = HashSet::new();
        found.retain(|placement| known.insert(self.canonical(placement)));
        (found.len() <= most).then_some(found)
    }

    /// The same for all placements that differ in the numbers of the cores alone, or in which of
    /// those that are alike are where.
    fn canonical(&self, placement: &Placement) -> Placement {
        let mut first = None;
        let cores = 1 + placement.iter().copied().max().unwrap_or(0);
        for order in orders(cores) {
            let mut renamed = placement.clone();
            for class in &self.classes {
                let mut there: Vec<u8> = class
                    .iter()
                    .map(|&component| order[usize::from(placement[component])])
                    .collect();
                there.sort_unstable();
                for (&component, core) in class.iter().zip(there) {
                    renamed[component] = core;
                }
            }
            if first.as_ref().is_none_or(|first| renamed < *first) {
                first = Some(renamed);
            }
        }
        first.unwrap_or_default()
    }

    /// The text of `HEARTH_PLAN`: type, number and core, with tabs between them.
    pub fn plan(&self, placement: &Placement, cores: &[usize]) -> String {
        let mut text = String::new();
        for (component, &core) in self.all.iter().zip(placement) {
            let core = cores[usize::from(core)];
            let _ = writeln!(
                text,
                "{}\t{}\t{core}",
                component.type_name, component.number
            );
        }
        text
    }

    /// One line: `Client 3+9, Server 1+2`, how many of each type are on each core.
    pub fn told(&self, placement: &Placement) -> String {
        let cores = 1 + usize::from(placement.iter().copied().max().unwrap_or(0));
        let mut types: Vec<(&str, Vec<usize>)> = Vec::new();
        for (component, &core) in self.all.iter().zip(placement) {
            let name = component.type_name.as_str();
            let place = types.iter().position(|(known, _)| *known == name);
            let place = place.unwrap_or_else(|| {
                types.push((name, vec![0; cores]));
                types.len() - 1
            });
            types[place].1[usize::from(core)] += 1;
        }
        let told = types.iter().map(|(name, counts)| {
            let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
            format!("{name} {}", counts.join("+"))
        });
        told.collect::<Vec<_>>().join(", ")
    }
}

/// Every assignment of `count` interchangeable components to cores, each in ascending order.
fn ways(count: usize, cores: u8) -> Vec<Vec<u8>> {
    let mut found = vec![Vec::new()];
    for _ in 0..count {
        found = found
            .into_iter()
            .flat_map(|before: Vec<u8>| {
                let least = before.last().copied().unwrap_or(0);
                (least..cores).map(move |core| [before.clone(), vec![core]].concat())
            })
            .collect();
    }
    found
}

/// All orders of the first few numbers.
fn orders(count: u8) -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> = vec![Vec::new()];
    for _ in 0..count {
        let mut longer = Vec::new();
        for before in &found {
            for number in (0..count).filter(|number| !before.contains(number)) {
                longer.push([before.as_slice(), &[number]].concat());
            }
        }
        found = longer;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(counts: &[usize]) -> Components {
        let mut components = Components {
            all: Vec::new(),
            classes: Vec::new(),
        };
        for (kind, &count) in counts.iter().enumerate() {
            let from = components.all.len();
            for number in 1..=count {
                components.all.push(Placed {
                    type_name: format!("T{kind}"),
                    number: number as u32,
                });
            }
            components.classes.push((from..from + count).collect());
        }
        components
    }

    #[test]
    fn which_core_is_which_does_not_matter() {
        // Together or apart.
        assert_eq!(
            alike(&[1, 1]).placements(2, 100).map(|all| all.len()),
            Some(2)
        );
        // All ways of two cores for three that differ, halved.
        assert_eq!(
            alike(&[1, 1, 1]).placements(2, 100).map(|all| all.len()),
            Some(4)
        );
        // Partitions of a set of four into at most three.
        assert_eq!(
            alike(&[1; 4]).placements(3, 100).map(|all| all.len()),
            Some(14)
        );
    }

    #[test]
    fn of_those_that_are_alike_only_how_many() {
        // 0+4, 1+3, 2+2.
        assert_eq!(alike(&[4]).placements(2, 100).map(|all| all.len()), Some(3));
        assert!(alike(&[1; 20]).placements(2, 1000).is_none());
    }

    #[test]
    fn components_of_a_program() {
        let text = include_str!("../../../tests/workloads/client-server.isf");
        let components = Components::of(text, "client-server.isf").unwrap();
        assert_eq!((components.all.len(), components.classes.len()), (15, 6));
        let together = vec![0; 15];
        assert_eq!(components.told(&together), "Server 3, Client 12");
        assert!(
            components
                .plan(&together, &[7])
                .starts_with("Server\t1\t7\nClient\t1\t7\n")
        );
    }
}
