//! Sensors: numbers from a script, a walk at random, or the machine itself.
//!
//! A program sees the numbers as they are: an integer reading cuts off the fraction, a real one
//! does not. Readings through `sensors`, through a stream and through procedures such as
//! `photoReading` take their turns in the same script.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::ground::options;
use crate::ground::settings::{self, after};
use crate::ground::sync::lock_std as lock;
use crate::hooks::simulation;

/// One of a node's sensors, numbered as the prelude's text numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Sensor {
    Photo,
    Solar,
    Humid,
    Temp,
    Battery,
    Pressure,
    TiltX,
    TiltY,
    AccelX,
    AccelY,
    InternalTemp,
}

const ALL: [Sensor; 11] = [
    Sensor::Photo,
    Sensor::Solar,
    Sensor::Humid,
    Sensor::Temp,
    Sensor::Battery,
    Sensor::Pressure,
    Sensor::TiltX,
    Sensor::TiltY,
    Sensor::AccelX,
    Sensor::AccelY,
    Sensor::InternalTemp,
];

impl Sensor {
    pub(crate) fn numbered(number: usize) -> Option<Sensor> {
        ALL.get(number).copied()
    }

    /// Returns the variable that configures it.
    fn variable(self) -> &'static str {
        match self {
            Sensor::Photo => "HEARTH_DEVICE_PHOTO",
            Sensor::Solar => "HEARTH_DEVICE_SOLAR",
            Sensor::Humid => "HEARTH_DEVICE_HUMID",
            Sensor::Temp => "HEARTH_DEVICE_TEMP",
            Sensor::Battery => "HEARTH_DEVICE_BATTERY",
            Sensor::Pressure => "HEARTH_DEVICE_PRESSURE",
            Sensor::TiltX => "HEARTH_DEVICE_TILTX",
            Sensor::TiltY => "HEARTH_DEVICE_TILTY",
            Sensor::AccelX => "HEARTH_DEVICE_ACCELX",
            Sensor::AccelY => "HEARTH_DEVICE_ACCELY",
            Sensor::InternalTemp => "HEARTH_DEVICE_INTERNALTEMP",
        }
    }

    /// Returns its walk's start, bounds and longest step.
    fn range(self) -> Range {
        let (start, low, high, step) = match self {
            Sensor::Photo => (400.0, 0.0, 1023.0, 20.0),
            Sensor::Solar => (300.0, 0.0, 1023.0, 20.0),
            Sensor::Humid => (45.0, 20.0, 90.0, 1.0),
            Sensor::Temp => (21.0, 10.0, 35.0, 0.5),
            Sensor::Battery => (3000.0, 2100.0, 3300.0, 5.0),
            Sensor::Pressure => (1013.0, 950.0, 1050.0, 1.0),
            Sensor::TiltX | Sensor::TiltY => (0.0, -90.0, 90.0, 5.0),
            Sensor::AccelX | Sensor::AccelY => (0.0, -2048.0, 2047.0, 100.0),
            Sensor::InternalTemp => (45.0, 20.0, 80.0, 0.5),
        };
        Range {
            start,
            low,
            high,
            step,
        }
    }
}

#[derive(Clone, Copy)]
struct Range {
    start: f64,
    low: f64,
    high: f64,
    step: f64,
}

/// The source of a sensor's numbers.
#[derive(Debug, PartialEq)]
enum Source {
    /// Repeated forever.
    Script {
        values: Vec<f64>,
        next: usize,
    },
    Walk {
        at: f64,
        state: u64,
    },
    /// A file of the machine, and the factor for its number.
    Machine {
        path: PathBuf,
        scale: f64,
    },
}

static SOURCES: [Mutex<Option<Source>>; ALL.len()] = [const { Mutex::new(None) }; ALL.len()];

/// The sensor's next number.
pub(crate) fn reading(sensor: Sensor) -> f64 {
    let mut source = lock(&SOURCES[sensor as usize]);
    source.get_or_insert_with(|| open(sensor)).next(sensor)
}

fn open(sensor: Sensor) -> Source {
    let variable = sensor.variable();
    let default = || machine(sensor).unwrap_or_else(|| walk(sensor, seed()));
    settings::read(variable, default, |text| parse(sensor, text))
}

/// Parses `walk`, `walk:SEED`, `value:NUMBER,…`, or the path of a script.
fn parse(sensor: Sensor, text: &str) -> Result<Source, String> {
    if text == "walk" {
        return Ok(walk(sensor, seed()));
    }
    if let Some(seed) = after(text, "walk") {
        return match seed.parse() {
            Ok(seed) => Ok(walk(sensor, seed)),
            Err(_) => Err("the seed after `walk:` must be a whole number".to_owned()),
        };
    }
    if let Some(list) = after(text, "value") {
        return match list.split(',').map(number).collect() {
            Some(values) => Ok(Source::Script { values, next: 0 }),
            None => Err("after `value:` come numbers, separated by commas".to_owned()),
        };
    }
    let values = script(Path::new(text))?;
    Ok(Source::Script { values, next: 0 })
}

/// Returns the run's seed, if it has one, so that `--seed` changes the walks too.
fn seed() -> u64 {
    options::get().seed.or_else(simulation::seed).unwrap_or(1)
}

fn walk(sensor: Sensor, seed: u64) -> Source {
    // Each sensor has its own walk.
    let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (sensor as u64) << 56;
    Source::Walk {
        at: sensor.range().start,
        state,
    }
}

/// Reads one number a line; blank lines and lines that begin with `#` do not count.
fn script(path: &Path) -> Result<Vec<f64>, String> {
    let allowed = "give `walk`, `walk:SEED`, `value:NUMBER,…` or a file with one number a line";
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("could not read it as a file ({error}); {allowed}"))?;
    let mut values = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match number(line) {
            Some(value) => values.push(value),
            None => {
                return Err(format!(
                    "line {} of the file is no number: {line}",
                    index + 1
                ));
            }
        }
    }
    if values.is_empty() {
        return Err("the file has no numbers".to_owned());
    }
    Ok(values)
}

fn number(text: &str) -> Option<f64> {
    text.trim()
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
}

/// Finds the file with this machine's value of the sensor, if there is one.
fn machine(sensor: Sensor) -> Option<Source> {
    let (paths, scale): (&[&str], f64) = match sensor {
        // Microvolts; the program sees millivolts.
        Sensor::Battery => (
            &[
                "/sys/class/power_supply/BAT0/voltage_now",
                "/sys/class/power_supply/BAT1/voltage_now",
            ],
            1e-3,
        ),
        // Thousandths of a degree.
        Sensor::InternalTemp => (&["/sys/class/thermal/thermal_zone0/temp"], 1e-3),
        _ => return None,
    };
    let path = paths
        .iter()
        .map(PathBuf::from)
        .find(|path| machine_value(path).is_some())?;
    Some(Source::Machine { path, scale })
}

fn machine_value(path: &Path) -> Option<f64> {
    number(&std::fs::read_to_string(path).ok()?)
}

impl Source {
    fn next(&mut self, sensor: Sensor) -> f64 {
        match self {
            Source::Script { values, next } => {
                let value = values[*next % values.len()];
                *next = (*next + 1) % values.len();
                value
            }
            Source::Walk { at, state } => {
                let value = *at;
                let Range {
                    low, high, step, ..
                } = sensor.range();
                let part = draw(state) as f64 / u64::MAX as f64;
                *at = (value + (2.0 * part - 1.0) * step).clamp(low, high);
                value
            }
            // If the file has gone, the program continues with the usual value.
            Source::Machine { path, scale } => {
                machine_value(path).map_or(sensor.range().start, |value| value * *scale)
            }
        }
    }
}

/// The next number of a SplitMix64 sequence.
pub(super) fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut bits = *state;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(source: &mut Source, sensor: Sensor, count: usize) -> Vec<f64> {
        (0..count).map(|_| source.next(sensor)).collect()
    }

    #[test]
    fn a_list_of_values_repeats() {
        let mut source = parse(Sensor::Photo, "value:1, -2.5,3").unwrap();
        assert_eq!(
            take(&mut source, Sensor::Photo, 5),
            [1.0, -2.5, 3.0, 1.0, -2.5]
        );
    }

    #[test]
    fn a_walk_repeats_with_its_seed_and_stays_in_range() {
        for sensor in ALL {
            let values = |seed: &str| take(&mut parse(sensor, seed).unwrap(), sensor, 2000);
            let first = values("walk:7");
            assert_eq!(first, values("walk:7"));
            assert_ne!(first, values("walk:8"));
            let Range { low, high, .. } = sensor.range();
            assert!(
                first.iter().all(|value| (low..=high).contains(value)),
                "{sensor:?}"
            );
        }
    }

    #[test]
    fn sensors_walk_apart() {
        let mut x = parse(Sensor::TiltX, "walk").unwrap();
        let mut y = parse(Sensor::TiltY, "walk").unwrap();
        assert_ne!(
            take(&mut x, Sensor::TiltX, 5),
            take(&mut y, Sensor::TiltY, 5)
        );
    }

    #[test]
    fn a_file_is_read_line_by_line() {
        let path = std::env::temp_dir().join(format!("hearth-sensor-{}", std::process::id()));
        std::fs::write(&path, "# degrees\n21.5\n\n22\r\n").unwrap();
        let mut source = parse(Sensor::Temp, path.to_str().unwrap()).unwrap();
        assert_eq!(take(&mut source, Sensor::Temp, 3), [21.5, 22.0, 21.5]);
        std::fs::write(&path, "21.5\nwarm\n").unwrap();
        let refusal = parse(Sensor::Temp, path.to_str().unwrap()).unwrap_err();
        assert_eq!(refusal, "line 2 of the file is no number: warm");
        std::fs::write(&path, "# nothing\n").unwrap();
        assert_eq!(
            parse(Sensor::Temp, path.to_str().unwrap()).unwrap_err(),
            "the file has no numbers"
        );
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_is_wrong_is_said() {
        let refusal = |text| parse(Sensor::Solar, text).unwrap_err();
        assert_eq!(
            refusal("walk:x"),
            "the seed after `walk:` must be a whole number"
        );
        assert_eq!(
            refusal("value:1,two"),
            "after `value:` come numbers, separated by commas"
        );
        assert_eq!(
            refusal("value:inf"),
            "after `value:` come numbers, separated by commas"
        );
        assert!(refusal("/no/such/file").contains("could not read it as a file"));
    }
}
