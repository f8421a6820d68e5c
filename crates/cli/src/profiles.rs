//! Which profile counts, and reading and writing it.

use std::fs;
use std::path::{Path, PathBuf};

use hearth_machine::profile::{Brief, Profile};
use hearth_machine::synthetic;
use hearth_machine::topology::Topology;

use crate::arguments::machine::Basis;
use crate::failure::{Failure, cause};
use crate::near;
use crate::{output, surroundings};

/// No profile comes near this.
const SIZE_MAX_BYTES: u64 = 256 << 20;

/// No wake-up takes longer, if it was measured well.
const WAKE_MAX_US: f64 = 1000.0;

/// A profile and what is to be said of it.
pub(crate) struct Chosen {
    pub(crate) profile: Profile,
    /// Where the figures come from, in a line.
    pub(crate) origin: String,
    /// A line for those who might be misled, if there is reason.
    pub(crate) warning: Option<String>,
    /// It is this machine, and nobody has measured it.
    pub(crate) is_assumed: bool,
}

/// The file in which this machine's profile is kept.
pub(crate) fn kept() -> Result<PathBuf, Failure> {
    hearth_sys::paths::profile_path().ok_or_else(|| {
        Failure::environment(
            "it is not known where the profile is kept, as HOME is not set; name it with \
             HEARTH_PROFILE or an option",
        )
    })
}

/// What programs need of the kept profile each time they start; nothing if there is none. Whatever is
/// wrong with one is said where somebody asks for it.
pub(crate) fn brief() -> Brief {
    let text = hearth_sys::paths::profile_path().and_then(|path| text(&path).ok());
    text.and_then(|text| Brief::from_json(&text))
        .unwrap_or_default()
}

/// What waking a thread on another core costs here, in whole microseconds.
pub(crate) fn wake_us(brief: &Brief) -> Option<u64> {
    let wake_ns = brief.wake_ns?;
    Some((wake_ns / 1e3).ceil().clamp(1.0, WAKE_MAX_US) as u64)
}

/// Distances between nodes as heaps take them, in hundredths; nothing where there is one node.
pub(crate) fn node_distances(brief: &Brief) -> Option<String> {
    let row = |row: &Vec<f64>| {
        let hundredths = |distance: &f64| format!("{:.0}", distance * 100.0);
        row.iter().map(hundredths).collect::<Vec<_>>().join(",")
    };
    let rows: Vec<String> = brief.distances.iter().map(row).collect();
    (rows.len() > 1).then(|| rows.join(";"))
}

/// What predictions rest on: the described machine, the named profile, the kept one, or else
/// assumptions about this machine.
pub(crate) fn choose(basis: &Basis) -> Result<Chosen, Failure> {
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
        let reading = surroundings::reading()?;
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
    // Without a description of this machine nothing can be compared, and nothing is said.
    let difference = surroundings::reading()
        .ok()
        .and_then(|here| surroundings::difference(&profile, &here));
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

/// The day of so many seconds after 1970 began, in UTC, as `2026-11-21`.
pub(crate) fn date(unix_s: u64) -> String {
    // Howard Hinnant's civil_from_days: years begin in March, so that the odd day comes last, and
    // days are counted from the year 0 in eras of 400 years.
    let days = unix_s / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// A machine from a description, or from the name of an example.
pub(crate) fn described(text: &str) -> Result<Topology, Failure> {
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
        Failure::input(format!("`{text}` describes no machine: {error}{advice}"))
    })
}

/// Reads a profile.
pub(crate) fn read(path: &Path) -> Result<Profile, Failure> {
    let text = text(path)?;
    Profile::from_json(&text)
        .map_err(|error| Failure::input(format!("{}: {error}", path.display())))
}

/// A text file about a machine.
pub(crate) fn text(path: &Path) -> Result<String, Failure> {
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

/// Makes the folder of the kept profile, and says early if nothing can be written there.
pub(crate) fn prepare(path: &Path, is_kept: bool) -> Result<(), Failure> {
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

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn days() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(951_782_400), "2000-02-29");
        assert_eq!(date(1_795_275_000), "2026-11-21");
        assert_eq!(date(4_107_542_400), "2100-03-01");
    }
}
