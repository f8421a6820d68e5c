//! Heap bounds: the worst-case size of a component's heap, where the program's text determines it.
//!
//! The contents of a heap are reached by counted references: members, variables and temporaries.
//! Data never forms cycles, so with the last of them it is freed. A bound follows in three steps:
//!
//! 1. *What can a reference lead to?* [`families`] and [`flow`]: arrays with the lengths of the
//!    text.
//! 2. *How many references are there at once?* [`peak`]: along the statements, into what they call.
//! 3. *What do others hold?* A value that is handed over stays in the heap that it was created in
//!    until its receiver frees it. So whatever other components can hold of what this one makes
//!    counts too: their own bounds, of its families only, as often as there are such components
//!    ([`instances`]).
//!
//! The analysis is sound: it never reports a bound that does not hold. It is not complete: objects
//! that several references share are counted for each, and all worst cases are assumed to coincide.
//!
//! In a program that embeds compiled components, the messages and data of those that are not
//! compiled are not known here.

mod families;
mod flow;
mod instances;
mod peak;

use std::collections::{BTreeMap, BTreeSet};

use crate::core::Lowered;
use crate::core::ir::*;
use crate::core::passes::{blocks_of, statement_target};
use crate::layout::Layouts;
use crate::source::Span;
use crate::tree::{ComponentId, Program};
use families::{FamilyId, Measure, Weight};
use flow::Flow;
use instances::Instances;
use peak::Peaks;

/// The largest size of a heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeapBound {
    Bounded(Room),
    /// There is no bound, or none was found.
    Unbounded(Reason),
}

/// The room that is enough for all blocks that a heap has at once, as far as sizes go: what the
/// heap keeps back beside them is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Bytes of all blocks together, each as large as the heap makes it.
    pub bytes: u64,
    /// Bytes of the largest block.
    pub largest: u64,
}

/// The reason why there is no bound, and its place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    pub text: String,
    pub span: Span,
}

impl Reason {
    fn new(text: impl Into<String>, span: Span) -> Reason {
        Reason {
            text: text.into(),
            span,
        }
    }
}

/// The bounds of all components of a program.
pub(crate) struct HeapBounds {
    /// By number; none of those that are not used.
    components: Vec<Option<HeapBound>>,
    main: HeapBound,
}

impl HeapBounds {
    pub(crate) fn new(input: &Lowered<'_>, layouts: &Layouts) -> HeapBounds {
        let flow = Flow::new(input);
        let mut analysis = Analysis {
            input,
            layouts,
            heaps: heaps(input, &flow),
            flow: &flow,
            instances: Instances::new(input),
            known: BTreeMap::new(),
        };
        let mut components = vec![None; input.program.components.len()];
        for number in 1..analysis.heaps.len() {
            if let Some(id) = analysis.heaps[number].component {
                components[id.index()] = Some(analysis.bound(number));
            }
        }
        HeapBounds {
            components,
            main: analysis.bound(MAIN),
        }
    }

    pub(crate) fn of(&self, component: ComponentId) -> &HeapBound {
        self.components[component.index()]
            .as_ref()
            .unwrap_or(&self.main)
    }

    pub(crate) fn of_main(&self) -> &HeapBound {
        &self.main
    }

    /// The bounds of all used components, by their names, and of `main`.
    pub(crate) fn by_name(self, program: &Program) -> Vec<(String, HeapBound)> {
        let components = program.components.iter().enumerate();
        components
            .filter(|(_, component)| component.used)
            .map(|(index, component)| {
                let bound = self.of(ComponentId(index as u32)).clone();
                (program.names.name(component.name).to_owned(), bound)
            })
            .chain([("main".to_owned(), self.main.clone())])
            .collect()
    }
}

/// One kind of heap: that of the main sequence, or of the components of one type.
struct Heap {
    component: Option<ComponentId>,
    /// Families of objects that others create and it may receive.
    received: BTreeSet<FamilyId>,
}

/// The number of the main sequence's among [`heaps`].
const MAIN: usize = 0;

fn heaps(input: &Lowered<'_>, flow: &Flow<'_>) -> Vec<Heap> {
    let components = input.program.components.iter().enumerate();
    let used = components.filter(|(_, component)| component.used);
    let ids = used.map(|(index, _)| Some(ComponentId(index as u32)));
    let heap = |component| Heap {
        component,
        received: flow.received(component),
    };
    std::iter::once(None).chain(ids).map(heap).collect()
}

struct Analysis<'a> {
    input: &'a Lowered<'a>,
    layouts: &'a Layouts,
    flow: &'a Flow<'a>,
    heaps: Vec<Heap>,
    instances: Instances<'a>,
    /// A component's share of some families, kept as many are asked for again.
    known: BTreeMap<(usize, BTreeSet<FamilyId>), Measure>,
}

impl Analysis<'_> {
    fn bound(&mut self, number: usize) -> HeapBound {
        match self.own_and_moved(number) {
            Ok(Weight { bytes, largest }) => HeapBound::Bounded(Room { bytes, largest }),
            Err(reason) => HeapBound::Unbounded(reason),
        }
    }

    fn own_and_moved(&mut self, number: usize) -> Measure {
        let component = self.heaps[number].component;
        let mut sum = self.peaks(None).of_component(component)?;
        let (handed_on, place) = self.flow.handed_on(component);
        if let (false, Some(place)) = (handed_on.is_empty(), place) {
            for other in 0..self.heaps.len() {
                sum = sum.plus(self.held_by(other, number, &handed_on, place)?);
            }
        }
        Ok(sum)
    }

    /// The most that all components of a kind, without the creator itself, can hold of its
    /// handed-over objects.
    fn held_by(
        &mut self,
        other: usize,
        maker: usize,
        handed_on: &BTreeSet<FamilyId>,
        place: Span,
    ) -> Measure {
        let taken = self.heaps[other].received.intersection(handed_on);
        let each = self.part(other, taken.copied().collect())?;
        let Some(id) = self.heaps[other].component else {
            // There is one main sequence.
            return Ok(each.times(u64::from(maker != MAIN)));
        };
        if each == Weight::default() {
            return Ok(each);
        }
        match self.instances.of(id) {
            Some(count) if other == maker => Ok(each.times(count.saturating_sub(1))),
            Some(count) => Ok(each.times(count)),
            None => {
                let name = self.input.program.components[id.index()].name;
                let name = self.input.program.names.name(name);
                let text = format!(
                    "values handed over stay in this heap until they are released, and there may be any number \
                     of `{name}`"
                );
                Err(Reason::new(text, place))
            }
        }
    }

    /// The most that one component of a kind can hold of some families.
    fn part(&mut self, number: usize, families: BTreeSet<FamilyId>) -> Measure {
        if families.is_empty() {
            return Ok(Weight::default());
        }
        let key = (number, families);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let component = self.heaps[number].component;
        let measure = self.peaks(Some(&key.1)).of_component(component);
        self.known.insert(key, measure.clone());
        measure
    }

    fn peaks<'n>(&'n self, counted: Option<&'n BTreeSet<FamilyId>>) -> Peaks<'n, 'n> {
        Peaks::new(self.input, self.layouts, self.flow, counted)
    }
}

// ---- what the parts share ----------------------------------------------------------------------

/// The bytes of a heap's block for a value of this size. Heaps cut blocks of 1 to 16 granules,
/// which have 16 bytes on the lowest of six levels and four times as many on each next; a block of
/// a higher level has more than four. Larger blocks are whole chunks of 64 KiB, or arenas of 4 MiB.
///
/// The heap itself is not known here: a test of the command holds both to the same.
pub fn block_bytes(bytes: u64) -> u64 {
    const LEVELS: u32 = 6;
    const CHUNK: u64 = 64 << 10;
    const ARENA: u64 = 4 << 20;
    if bytes == 0 {
        return 0;
    }
    let granule = (0..LEVELS).map(|level| 16_u64 << (2 * level));
    let fitting = granule.into_iter().find(|granule| bytes <= 16 * granule);
    let unit = match fitting {
        Some(granule) => granule,
        None if bytes <= ARENA => CHUNK,
        None => ARENA,
    };
    bytes.checked_next_multiple_of(unit).unwrap_or(u64::MAX)
}

/// Adds the slots that a block stores into.
fn targets_of(block: &Block, targets: &mut Vec<SlotId>) {
    for stmt in block {
        targets.extend(statement_target(&stmt.kind));
        for inner in blocks_of(&stmt.kind) {
            targets_of(inner, targets);
        }
    }
}
