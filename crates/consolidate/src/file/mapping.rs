//! Mappings as TOML: a table `[[placed]]` for each component.

use std::fmt::Write as _;

use super::forms::MappingForm;
use super::resolve::{Names, whole};
use super::{Fault, FileError, Source};
use crate::mapping::{Mapping, Seat};
use crate::model::System;

/// Reads a mapping for a system. The numbers of cores and memories count within their unit.
///
/// # Errors
/// [`FileError`] at the first mistake.
pub fn read_mapping(text: &str, name: &str, system: &System) -> Result<Mapping, FileError> {
    let source = Source { text, name };
    let form: MappingForm = source.parse()?;
    let components = system.components.iter().map(|one| one.name.as_str());
    let components = Names::of("component", components);
    let units = Names::of("unit", system.units.iter().map(|unit| unit.name.as_str()));
    let mut seats: Vec<Option<Seat>> = vec![None; system.components.len()];
    for placed in &form.placed {
        let component = components.find(&source, &placed.component)?;
        let unit = &system.units[units.find(&source, &placed.unit)?];
        let last = |list: &[usize]| list.len().saturating_sub(1) as f64;
        let core = whole(&source, Some(&placed.core), 0.0, 0.0..=last(&unit.cores))?;
        let memory = placed.memory.as_ref();
        let memory = whole(&source, memory, 0.0, 0.0..=last(&unit.memories))?;
        let seat = Seat {
            core: unit.cores[core],
            memory: unit.memories[memory],
        };
        if seats[component].replace(seat).is_some() {
            let fault = Fault::Twice {
                name: placed.component.get_ref().clone(),
                what: "placed",
            };
            return Err(source.error(placed.component.span().start, fault));
        }
    }
    let placed = seats.iter().position(Option::is_none);
    if let Some(missing) = placed {
        let name = system.components[missing].name.clone();
        return Err(source.error(text.len(), Fault::Unplaced { name }));
    }
    Ok(Mapping(seats.into_iter().flatten().collect()))
}

/// Writes a mapping, for [`read_mapping`].
#[must_use]
pub fn write_mapping(system: &System, mapping: &Mapping) -> String {
    let mut text = format!(
        "# Places of the components of {}.\n",
        one_line(&system.name)
    );
    for (component, seat) in system.components.iter().zip(&mapping.0) {
        let (core, memory) = (&system.cores[seat.core], &system.memories[seat.memory]);
        let unit = &system.units[core.unit];
        let nth = unit.memories.iter().position(|at| *at == seat.memory);
        let _ = write!(
            text,
            "\n[[placed]]\ncomponent = {}\nunit = {}\ncore = {}\nmemory = {} # {}\n",
            quoted(&component.name),
            quoted(&unit.name),
            core.nth,
            nth.unwrap_or(0),
            one_line(&memory.kind),
        );
    }
    text
}

fn quoted(name: &str) -> String {
    toml::Value::String(name.to_owned()).to_string()
}

fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}
