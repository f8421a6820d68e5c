//! The mapping into the text: attributes replaced, elements inserted, nothing else touched.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Model;
use super::read::reference;
use crate::mapping::Mapping;

/// A change: the bytes, and what comes in their place.
type Edit = (std::ops::Range<usize>, String);

impl Model {
    /// The model with tasks allocated to the processing units of a mapping. Allocations that are
    /// there are changed, others added. Memories are not written: AMALTHEA maps labels and
    /// runnables to memories, and a seat is of a whole task.
    #[must_use]
    pub fn with_mapping(&self, mapping: &Mapping) -> String {
        let mut edits = Vec::new();
        let schedulers = self.schedulers();
        let mut missing = String::new();
        let allocations = self.allocations();
        for (component, seat) in self.system.components.iter().zip(&mapping.0) {
            let core = &self.processing_units[seat.core];
            let affinity = format!("{}?type=ProcessingUnit", encoded(core));
            let scheduler = schedulers.get(core.as_str());
            match allocations.get(component.name.as_str()) {
                Some(at) => self.reallocate(*at, &affinity, scheduler, &mut edits),
                None => {
                    let task = format!("{}?type=Task", encoded(&component.name));
                    let _ = write!(missing, "\n    <taskAllocation task=\"{task}\"");
                    if let Some(scheduler) = scheduler {
                        let _ = write!(missing, " scheduler=\"{}\"", quoted(scheduler));
                    }
                    let _ = write!(missing, " affinity=\"{affinity}\"/>");
                }
            }
        }
        if !missing.is_empty() {
            edits.push(self.insertion(&missing));
        }
        applied(&self.text, edits)
    }

    /// The first allocation of each task, by its name.
    fn allocations(&self) -> BTreeMap<String, usize> {
        let elements = self.document.elements.iter().enumerate();
        let mut found = BTreeMap::new();
        for (at, element) in elements.filter(|(_, one)| one.name == "taskAllocation") {
            if let Some(task) = element.attribute("task") {
                found.entry(reference(task)).or_insert(at);
            }
        }
        found
    }

    /// References to the schedulers that are responsible for one processing unit alone.
    fn schedulers(&self) -> BTreeMap<String, String> {
        let elements = self.document.elements.iter();
        let mut found = BTreeMap::new();
        for element in elements.filter(|one| one.name == "schedulerAllocation") {
            let unit = element.attribute("responsibility").unwrap_or_default();
            if let (Some(scheduler), 1) = (
                element.attribute("scheduler"),
                unit.split_whitespace().count(),
            ) {
                found.entry(reference(unit)).or_insert(scheduler.to_owned());
            }
        }
        found
    }

    fn reallocate(
        &self,
        at: usize,
        affinity: &str,
        scheduler: Option<&String>,
        edits: &mut Vec<Edit>,
    ) {
        let element = &self.document.elements[at];
        let mut set = |name: &str, value: &str| {
            let attribute = element.attributes.iter().find(|one| one.name == name);
            match attribute {
                Some(attribute) if attribute.value == value => {}
                Some(attribute) => edits.push((attribute.at.clone(), quoted(value))),
                None => {
                    // Behind the last attribute.
                    let last = element.attributes.iter().map(|one| one.at.end + 1).max();
                    let end = last.unwrap_or(element.tag.start + 1 + element.name.len());
                    edits.push((end..end, format!(" {name}=\"{}\"", quoted(value))));
                }
            }
        };
        set("affinity", affinity);
        if let Some(scheduler) = scheduler {
            set("scheduler", scheduler);
        }
    }

    /// The place for new allocations: the mapping model, opened or made if need be.
    fn insertion(&self, lines: &str) -> Edit {
        let root = &self.document.elements[0];
        let model = self.document.children(0, "mappingModel").next();
        match model.map(|at| &self.document.elements[at]) {
            Some(element) if element.end.is_some() => {
                let after = element.tag.end;
                (after..after, lines.to_owned())
            }
            Some(element) => {
                // <mappingModel … /> becomes <mappingModel …> … </mappingModel>.
                let tag = &self.text[element.tag.clone()];
                let open = tag.trim_end_matches('>').trim_end_matches('/');
                let name = tag[1..]
                    .split(|c: char| c.is_whitespace() || c == '/')
                    .next();
                let name = name.unwrap_or("mappingModel");
                let from = element.tag.start + open.len();
                (from..element.tag.end, format!(">{lines}\n  </{name}>"))
            }
            None => {
                let whole = format!("  <mappingModel>{lines}\n  </mappingModel>\n");
                match root.end {
                    Some(end) => (end..end, whole),
                    None => (root.tag.end - 2..root.tag.end - 2, String::new()),
                }
            }
        }
    }

    /// Name of a memory in the model; none for one that was assumed.
    #[must_use]
    pub fn memory_name(&self, memory: usize) -> Option<&str> {
        self.memories.get(memory)?.as_deref()
    }
}

fn applied(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(at, _)| at.start);
    let mut result = String::with_capacity(text.len() + 256);
    let mut from = 0;
    for (at, new) in edits {
        result.push_str(&text[from..at.start]);
        result.push_str(&new);
        from = at.end;
    }
    result.push_str(&text[from..]);
    result
}

/// A name in a reference.
fn encoded(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'*' => {
                text.push(char::from(byte));
            }
            _ => _ = write!(text, "%{byte:02X}"),
        }
    }
    text
}

/// A text between double quotes.
fn quoted(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}
