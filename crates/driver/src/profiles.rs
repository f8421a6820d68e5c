//! The profile that counts, and reading it.

use std::fs;
use std::path::{Path, PathBuf};

use hearth_machine::profile::{Brief, Profile};
use hearth_machine::synthetic;
use hearth_machine::topology::Topology;
use hearth_terminal::{Failure, output};
use hearth_text::date::date;
use hearth_text::{cause, near};

use crate::this_machine;

/// The size of no profile comes near this.
const SIZE_MAX_BYTES: u64 = 256 << 20;

/// The longest wake-up that a good measurement can have shown.
const WAKE_MAX_US: f64 = 1000.0;

/// The user's choice of a basis for predictions; the kept profile if neither is given.
#[derive(Clone, Debug, Default)]
pub struct Basis {
    /// The file of a profile.
    pub profile: Option<PathBuf>,
    /// The description of a machine, or the name of an example.
    pub machine: Option<String>,
}

/// A profile, and what to tell about it.
pub struct Chosen {
    pub profile: Profile,
    /// The source of the figures, in a line.
    pub origin: String,
    /// A line about figures that might mislead.
    pub warning: Option<String>,
    /// The profile is this machine's, without measurements.
    pub is_assumed: bool,
}

impl Chosen {
    /// The warning that a text below figures does not give already: [`modelled`] says what is
    /// assumed.
    pub fn warning_beside_text(&self) -> Option<&str> {
        self.warning.as_deref().filter(|_| !self.is_assumed)
    }

    /// The line below figures.
    pub fn modelled(&self) -> String {
        modelled(&self.origin, self.is_assumed)
    }
}

/// The line below figures of this origin.
pub fn modelled(origin: &str, is_assumed: bool) -> String {
    let next = match is_assumed {
        true => " `hearth probe` would measure them.",
        false => "",
    };
    format!("Modelled, not measured, from {origin}.{next}")
}

/// The file of this machine's profile.
pub fn kept() -> Result<PathBuf, Failure> {
    hearth_sys::paths::profile_path().ok_or_else(|| {
        Failure::environment(
            "there is no place to keep the profile, as HOME is not set; name one with \
             HEARTH_PROFILE or an option",
        )
    })
}

/// The figures that programs need at each start; defaults if there is no kept profile. A damaged
/// profile is reported by the commands that are asked for it.
pub fn brief() -> Brief {
    let text = hearth_sys::paths::profile_path().and_then(|path| text(&path).ok());
    text.and_then(|text| Brief::from_json(&text))
        .unwrap_or_default()
}

/// The cost of waking a thread on another core, in whole microseconds.
pub fn wake_us(brief: &Brief) -> Option<u64> {
    let wake_ns = brief.wake_ns?;
    Some((wake_ns / 1e3).ceil().clamp(1.0, WAKE_MAX_US) as u64)
}

/// Distances between nodes as heaps take them, in hundredths; `None` where there is one node.
pub fn node_distances(brief: &Brief) -> Option<String> {
    let row = |row: &Vec<f64>| {
        let hundredths = |distance: &f64| format!("{:.0}", distance * 100.0);
        row.iter().map(hundredths).collect::<Vec<_>>().join(",")
    };
    let rows: Vec<String> = brief.distances.iter().map(row).collect();
    (rows.len() > 1).then(|| rows.join(";"))
}

/// Chooses the profile to plan with: of the described machine, the named file, or the stored one;
/// otherwise assumes default costs for this machine.
pub fn choose(basis: &Basis) -> Result<Chosen, Failure> {
    if let Some(description) = &basis.machine {
        return Ok(Chosen {
            profile: Profile::assumed(described(description)?),
            origin: "a described machine; every cost is Hearth's stated default".to_owned(),
            warning: None,
            is_assumed: false,
        });
    }
    let path = match &basis.profile {
        Some(path) => Some(path.clone()),
        None => kept().ok().filter(|path| fs::metadata(path).is_ok()),
    };
    let Some(path) = path else {
        let reading = this_machine::reading()?;
        return Ok(Chosen {
            profile: Profile::assumed(reading.topology),
            origin: "this machine's parts; every cost is Hearth's stated default".to_owned(),
            warning: Some(
                "there is no profile of this machine, so costs are assumed; `hearth probe` would \
                 measure them"
                    .to_owned(),
            ),
            is_assumed: true,
        });
    };
    let profile = read(&path)?;
    let shown = path.display();
    // Without a description of this machine there is nothing to compare.
    let difference = this_machine::reading()
        .ok()
        .and_then(|here| this_machine::difference(&profile, &here));
    Ok(Chosen {
        origin: format!("the profile {shown}{}", measured_on(&profile)),
        warning: difference.map(|difference| {
            format!(
                "the profile {shown} is of another machine ({difference}); `hearth probe` measures \
                 this one"
            )
        }),
        profile,
        is_assumed: false,
    })
}

/// The day of a measurement, as part of a line.
fn measured_on(profile: &Profile) -> String {
    match profile.origin.started_unix_s {
        Some(seconds) => format!(", measured on {}", date(seconds)),
        None => String::new(),
    }
}

/// A machine from a description, or from the name of an example.
pub fn described(text: &str) -> Result<Topology, Failure> {
    let description = synthetic::example(text).unwrap_or(text);
    synthetic::parse(description).map_err(|error| {
        let names = synthetic::EXAMPLES.iter().map(|(name, _)| *name);
        let advice = match near::nearest(text, names) {
            Some(name) => format!("; did you mean {name}?"),
            None => {
                let names: Vec<&str> = synthetic::EXAMPLES.iter().map(|(name, _)| *name).collect();
                format!(", or name an example: {}", names.join(", "))
            }
        };
        Failure::input(format!(
            "`{text}` does not describe a machine: {error}{advice}"
        ))
    })
}

/// Reads a profile.
pub fn read(path: &Path) -> Result<Profile, Failure> {
    let text = text(path)?;
    Profile::from_json(&text)
        .map_err(|error| Failure::input(format!("{}: {error}", path.display())))
}

/// A text file about a machine.
pub fn text(path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let refused =
        |error: &std::io::Error| Failure::input(format!("cannot read {shown}: {}", cause(error)));
    let facts = fs::metadata(path).map_err(|error| refused(&error))?;
    if facts.is_dir() {
        return Err(Failure::input(format!(
            "{shown} is a directory; name the file in it"
        )));
    }
    if facts.len() > SIZE_MAX_BYTES {
        return Err(Failure::input(format!(
            "{shown} is larger than {} MiB, which no description of a machine is",
            SIZE_MAX_BYTES >> 20
        )));
    }
    let bytes = fs::read(path).map_err(|error| refused(&error))?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::input(format!("{shown} is not text; is it the right file?")))
}

/// Makes the folder of the kept profile, and fails early if it cannot be written to.
pub fn prepare(path: &Path, is_kept: bool) -> Result<(), Failure> {
    if let (true, Some(folder)) = (is_kept, path.parent()) {
        fs::create_dir_all(folder).map_err(|error| output::cannot_write(path, &error))?;
    }
    if path.is_dir() {
        return Err(Failure::environment(format!(
            "cannot write {}: it is a directory",
            path.display()
        )));
    }
    let trial = output::beside(path);
    let tried = fs::write(&trial, "").and_then(|()| fs::remove_file(&trial));
    tried.map_err(|error| output::cannot_write(path, &error))
}
