//! Inside of a core: a bar of its load, and its components as boxes with names, as dots, or
//! counted.

use std::collections::BTreeMap;

use hearth_machine::topology::{Thread, format_list};

use super::{Survey, percent};
use crate::svg::{Anchor, Canvas, text_width};

/// Most components on a core that become boxes with names, if there are few enough in all.
const BOXES_MAX: usize = 24;
const BOXES_MAX_IN_ALL: usize = 90;
/// Most cores with full-sized boxes. With more, boxes are small and curves connect cores.
const CORES_OF_BOXES: usize = 40;
/// Most components on each core that have names there, too.
const NAMES_MAX: usize = 3;
const NAME_WIDTH: f64 = 74.0;
/// Most components of a core that are dots. More are counted by type.
const DOTS_MAX: usize = 60;
/// Boxes below each other in a core before a second column begins.
const BOXES_IN_COLUMN: usize = 8;
/// Types counted in a core.
const COUNTED: usize = 6;

/// A line with the load, and the bar below it.
const HEAD: f64 = 21.0;
const BOX_HEIGHT: f64 = 18.0;
const BOX_WIDTH_MAX: f64 = 130.0;
/// Gap between columns of boxes, wide enough for curves.
pub(super) const GUTTER: f64 = 26.0;
/// Distance from one box to the one below it.
pub(super) const PITCH: f64 = BOX_HEIGHT + 7.0;
const DOT: f64 = 9.0;
const ROW: f64 = 14.0;
const TINY: f64 = 10.5;

/// Colours of types, the last for all further ones. They differ from those of ways.
pub(super) const TYPE_LOOKS: [&str; 5] = ["s0", "s3", "s5", "s8", "s7"];

/// Form of the components in a picture.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Boxes with names, and a curve for each pair that communicates.
    Boxes,
    /// Small boxes with names, and a curve for each pair of cores.
    Names,
    /// Dots or counts, and a curve for each pair of cores.
    Dots,
}

/// Contents of a core, measured from the upper left corner of its inside.
pub(super) struct CoreLayout {
    pub(super) size: (f64, f64),
    numbers: String,
    load: f64,
    items: Vec<Item>,
}

enum Item {
    Member {
        component: usize,
        at: (f64, f64),
        width: f64,
    },
    Dot {
        component: usize,
        at: (f64, f64),
    },
    Count {
        look: &'static str,
        text: String,
        at: (f64, f64),
    },
    Label {
        text: String,
        at: (f64, f64),
    },
}

/// Contents of all cores, indexed by each core's first thread.
pub(super) struct CoreLayouts<'a> {
    pub(super) form: Form,
    survey: &'a Survey<'a>,
    /// Types by name, with their colours.
    looks: BTreeMap<&'a str, &'static str>,
    slots: BTreeMap<Thread, CoreLayout>,
    width: f64,
    height: f64,
}

impl<'a> CoreLayouts<'a> {
    /// Lays out the insides of all cores, at equal size.
    pub(super) fn of(survey: &'a Survey<'a>) -> CoreLayouts<'a> {
        let machine = survey.placement.machine;
        let crowd = |threads: &[Thread]| survey.on(threads).count();
        let cores = machine.cores();
        let largest = cores
            .iter()
            .map(|core| crowd(&core.threads))
            .max()
            .unwrap_or(0);
        let all = survey.placement.components.len() - survey.nowhere.len();
        let few = largest <= BOXES_MAX && all <= BOXES_MAX_IN_ALL;
        let form = if few && cores.len() <= CORES_OF_BOXES {
            Form::Boxes
        } else if largest <= NAMES_MAX {
            Form::Names
        } else {
            Form::Dots
        };
        let kinds = survey.kinds(0..survey.placement.components.len());
        let looks = kinds
            .iter()
            .enumerate()
            .map(|(nth, kind)| (kind.type_name, TYPE_LOOKS[nth.min(TYPE_LOOKS.len() - 1)]));
        let mut slots = CoreLayouts {
            form,
            survey,
            looks: looks.collect(),
            slots: BTreeMap::new(),
            width: 0.0,
            height: 0.0,
        };
        for core in cores {
            let slot = slots.slot(&core.threads);
            slots.width = slots.width.max(slot.size.0);
            slots.height = slots.height.max(slot.size.1);
            slots.slots.insert(core.threads[0], slot);
        }
        slots
    }

    /// Size of a core's inside: the same for all, so that equal parts of the machine look alike.
    pub(super) fn size(&self) -> (f64, f64) {
        (self.width, self.height)
    }

    fn look(&self, component: usize) -> &'static str {
        let name = self.survey.component(component).type_name.as_str();
        self.looks.get(name).copied().unwrap_or(TYPE_LOOKS[4])
    }

    fn slot(&self, threads: &[Thread]) -> CoreLayout {
        let machine = self.survey.placement.machine;
        let numbers = format_list(threads.iter().map(|&thread| machine.os_thread(thread).0));
        let load = self.survey.load(threads);
        let members: Vec<usize> = self.survey.on(threads).collect();
        let mut head = text_width(&numbers, TINY);
        if !members.is_empty() {
            head += text_width(&percent(load, 1.0), TINY) + 10.0;
        }
        let (items, size) = if members.len() > DOTS_MAX {
            self.counts(&members)
        } else {
            match self.form {
                Form::Boxes => self.boxes(threads),
                Form::Names => self.names(&members),
                Form::Dots => self.dots(&members),
            }
        };
        CoreLayout {
            size: (size.0.max(head).max(30.0), HEAD + size.1),
            numbers,
            load,
            items,
        }
    }

    /// Boxes, by thread if there are several.
    fn boxes(&self, threads: &[Thread]) -> (Vec<Item>, (f64, f64)) {
        let mut items = Vec::new();
        let used: Vec<Thread> = threads
            .iter()
            .copied()
            .filter(|&thread| self.survey.on(&[thread]).next().is_some())
            .collect();
        let count = self.survey.on(threads).count();
        let columns = count.div_ceil(BOXES_IN_COLUMN).max(1);
        let widths = self.survey.on(threads).map(|one| {
            let name = &self.survey.component(one).name;
            (text_width(name, TINY) + 14.0).clamp(34.0, BOX_WIDTH_MAX)
        });
        let width = widths.fold(0.0, f64::max);
        let mut y = HEAD + 2.0;
        for &thread in &used {
            if used.len() > 1 {
                let number = self.survey.placement.machine.os_thread(thread).0;
                items.push(Item::Label {
                    text: number.to_string(),
                    at: (0.0, y + 9.0),
                });
                y += 12.0;
            }
            let members: Vec<usize> = self.survey.on(&[thread]).collect();
            let rows = members.len().div_ceil(columns);
            for (nth, &component) in members.iter().enumerate() {
                let (column, row) = ((nth / rows) as f64, (nth % rows) as f64);
                let at = (column * (width + GUTTER), y + row * PITCH);
                items.push(Item::Member {
                    component,
                    at,
                    width,
                });
            }
            y += rows as f64 * PITCH;
        }
        let all = columns as f64 * (width + GUTTER);
        let size = if used.is_empty() {
            (0.0, 0.0)
        } else {
            (all, y - HEAD)
        };
        (items, size)
    }

    /// Boxes of one width below each other.
    fn names(&self, members: &[usize]) -> (Vec<Item>, (f64, f64)) {
        if members.is_empty() {
            return (Vec::new(), (0.0, 0.0));
        }
        let pitch = BOX_HEIGHT + 3.0;
        let boxes = members
            .iter()
            .enumerate()
            .map(|(nth, &component)| Item::Member {
                component,
                at: (0.0, HEAD + 3.0 + nth as f64 * pitch),
                width: NAME_WIDTH,
            });
        (boxes.collect(), (NAME_WIDTH, members.len() as f64 * pitch))
    }

    fn dots(&self, members: &[usize]) -> (Vec<Item>, (f64, f64)) {
        if members.is_empty() {
            return (Vec::new(), (0.0, 0.0));
        }
        let mut members = members.to_vec();
        members.sort_by_key(|&one| &self.survey.component(one).type_name);
        let columns = ((members.len() as f64 * 2.0).sqrt().ceil() as usize).max(5);
        let dots = members.iter().enumerate().map(|(nth, &component)| {
            let (column, row) = ((nth % columns) as f64, (nth / columns) as f64);
            let at = (column * (DOT + 2.0), HEAD + 3.0 + row * (DOT + 2.0));
            Item::Dot { component, at }
        });
        let rows = members.len().div_ceil(columns) as f64;
        let wide = members.len().min(columns) as f64 * (DOT + 2.0) - 2.0;
        (dots.collect(), (wide, 3.0 + rows * (DOT + 2.0)))
    }

    /// Counts the components of each type.
    fn counts(&self, members: &[usize]) -> (Vec<Item>, (f64, f64)) {
        let kinds = self.survey.kinds(members.iter().copied());
        let mut rows: Vec<(&'static str, String)> = Vec::new();
        for kind in kinds.iter().take(COUNTED) {
            let look = self
                .looks
                .get(kind.type_name)
                .copied()
                .unwrap_or(TYPE_LOOKS[4]);
            let name = match kind.type_name {
                "" => "without a type",
                name => name,
            };
            rows.push((
                look,
                fitting(&format!("{} {name}", kind.names.len()), BOX_WIDTH_MAX),
            ));
        }
        let others: usize = kinds
            .iter()
            .skip(COUNTED)
            .map(|kind| kind.names.len())
            .sum();
        if others > 0 {
            rows.push((TYPE_LOOKS[4], format!("{others} of other types")));
        }
        let width = rows
            .iter()
            .map(|(_, text)| text_width(text, TINY))
            .fold(0.0, f64::max);
        let height = 4.0 + rows.len() as f64 * ROW;
        let items = rows.into_iter().enumerate().map(|(nth, (look, text))| {
            let at = (0.0, HEAD + 4.0 + nth as f64 * ROW);
            Item::Count { look, text, at }
        });
        (items.collect(), (DOT + 5.0 + width, height))
    }

    /// Positions of components' boxes, for the core whose inside begins at a point.
    pub(super) fn places(
        &self,
        threads: &[Thread],
        from: (f64, f64),
    ) -> impl Iterator<Item = (usize, BoxPosition)> {
        let items = self
            .slots
            .get(&threads[0])
            .into_iter()
            .flat_map(|slot| &slot.items);
        items.filter_map(move |item| match *item {
            Item::Member {
                component,
                at,
                width,
            } => {
                let middle = from.1 + at.1 + BOX_HEIGHT / 2.0;
                let left = from.0 + at.0;
                Some((
                    component,
                    BoxPosition {
                        left,
                        right: left + width,
                        middle,
                    },
                ))
            }
            _ => None,
        })
    }

    /// Draws the inside of a core.
    pub(super) fn paint(&self, canvas: &mut Canvas, threads: &[Thread], from: (f64, f64)) {
        let Some(slot) = self.slots.get(&threads[0]) else {
            return;
        };
        let base = from.1 + 10.0;
        canvas.text(
            "tiny faint halo",
            (from.0, base),
            Anchor::Start,
            &slot.numbers,
        );
        if !slot.items.is_empty() {
            let load = percent(slot.load, 1.0);
            canvas.text(
                "small halo",
                (from.0 + self.width, base),
                Anchor::End,
                &load,
            );
        }
        let bar = (from.0, from.1 + 14.0);
        let tip = format!("busy: {}", percent(slot.load, 1.0));
        canvas.rect("track", bar, (self.width, 5.0), &tip);
        // Two threads of a core can be busier together than a core with one thread.
        let most = threads.len() as f64 + 0.005;
        let look = if slot.load > most { "over" } else { "busy" };
        if slot.load > 0.0 {
            let busy = (self.width * slot.load.min(1.0)).max(1.0);
            canvas.rect(look, bar, (busy, 5.0), &tip);
        }
        for item in &slot.items {
            self.item(canvas, item, from);
        }
    }

    fn item(&self, canvas: &mut Canvas, item: &Item, from: (f64, f64)) {
        let moved = |at: (f64, f64)| (from.0 + at.0, from.1 + at.1);
        match item {
            Item::Member {
                component,
                at,
                width,
            } => {
                self.member(canvas, *component, moved(*at), *width);
            }
            Item::Dot { component, at } => {
                let class = format!("{} bar", self.look(*component));
                canvas.rect(&class, moved(*at), (DOT, DOT), &self.tip(*component));
            }
            Item::Count { look, text, at } => {
                let at = moved(*at);
                canvas.rect(&format!("{look} bar"), at, (DOT, DOT), "");
                let after = (at.0 + DOT + 5.0, at.1 + DOT);
                canvas.text("small halo", after, Anchor::Start, text);
            }
            Item::Label { text, at } => {
                canvas.text("tiny faint halo", moved(*at), Anchor::Start, text);
            }
        }
    }

    fn member(&self, canvas: &mut Canvas, component: usize, at: (f64, f64), width: f64) {
        let look = self.look(component);
        let tip = self.tip(component);
        canvas.rect(&format!("{look} member"), at, (width, BOX_HEIGHT), &tip);
        canvas.rect(&format!("{look} bar"), at, (4.0, BOX_HEIGHT), &tip);
        let load = super::amount(self.survey.component(component).load).min(1.0);
        if load > 0.0 {
            let below = (at.0 + 4.0, at.1 + BOX_HEIGHT - 2.5);
            let busy = ((width - 4.0) * load).max(1.0);
            canvas.rect(&format!("{look} bar"), below, (busy, 2.5), &tip);
        }
        let name = fitting(&self.survey.component(component).name, width - 12.0);
        canvas.text("small", (at.0 + 8.0, at.1 + 12.0), Anchor::Start, &name);
    }

    fn tip(&self, index: usize) -> String {
        let component = self.survey.component(index);
        let mut tip = component.name.clone();
        if !component.type_name.is_empty() && component.type_name != component.name {
            tip = format!("{tip}, {}", component.type_name);
        }
        let machine = self.survey.placement.machine;
        if let Some(thread) = component.thread {
            tip = format!("{tip}, on hardware thread {}", machine.os_thread(thread).0);
        }
        format!(
            "{tip}, busy {} of a core",
            percent(super::amount(component.load), 1.0)
        )
    }

    /// Types in the order of their colours, with their numbers of components.
    pub(super) fn legend(&self) -> Vec<(&'static str, String)> {
        let all = 0..self.survey.placement.components.len();
        let kinds = self.survey.kinds(all);
        let own = TYPE_LOOKS.len() - 1;
        // The last colour is for one type, if just one is left.
        let told = if kinds.len() > own + 1 {
            own
        } else {
            kinds.len()
        };
        let named = kinds.iter().take(told).zip(TYPE_LOOKS).map(|(kind, look)| {
            let name = match kind.type_name {
                "" => "without a type",
                name => name,
            };
            (
                look,
                format!("{} ({})", fitting(name, 160.0), kind.names.len()),
            )
        });
        let mut lines: Vec<_> = named.collect();
        if kinds.len() > told {
            let others: usize = kinds.iter().skip(told).map(|kind| kind.names.len()).sum();
            let types = kinds.len() - told;
            lines.push((TYPE_LOOKS[own], format!("{types} other types ({others})")));
        }
        lines
    }
}

/// Position of a component's box.
#[derive(Clone, Copy)]
pub(super) struct BoxPosition {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) middle: f64,
}

/// Shortens a text to a width by leaving out its middle, since the ends tell more.
fn fitting(text: &str, width: f64) -> String {
    if text_width(text, TINY) <= width {
        return text.to_owned();
    }
    let letters: Vec<char> = text.chars().take(200).collect();
    let last = text.chars().rev().take(40).collect::<Vec<_>>();
    for kept in (2..60).rev() {
        let (before, after) = (kept - kept / 3, kept / 3);
        let start: String = letters.iter().take(before).collect();
        let end: String = last.iter().take(after).rev().collect();
        let short = format!("{start}…{end}");
        if text_width(&short, TINY) <= width {
            return short;
        }
    }
    "…".to_owned()
}
