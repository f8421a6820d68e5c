//! The figures of a run.

use hearth_allocators::meter::format::{MeterWord, Readings};

use super::launch::Ran;
use super::options::Experiment;

/// Figures by name.
type Figures = Vec<(String, f64)>;

/// The figures of a run of an experiment.
pub(super) fn figures(experiment: Experiment, ran: &Ran) -> Figures {
    let mut figures = Figures::new();
    if let Some(readings) = &ran.readings {
        match experiment {
            Experiment::Times => figures.extend(words(
                readings,
                &[
                    ("allocate_max", MeterWord::AllocateMax),
                    ("free_max", MeterWord::FreeMax),
                    ("allocate_sum", MeterWord::AllocateSum),
                    ("free_sum", MeterWord::FreeSum),
                    ("realloc_max", MeterWord::ReallocMax),
                    ("empty", MeterWord::Empty),
                    ("calls", MeterWord::Records),
                ],
            )),
            Experiment::Fragments => figures.extend(wasted(readings)),
            Experiment::Workloads => return asked(readings),
            _ => {}
        }
    }
    let mut put = |name: &str, value: f64| figures.push((name.to_owned(), value));
    if let Some(peaks) = &ran.peaks {
        put("peak_kb", peaks.peak_kb as f64);
        put("data_kb", peaks.data_kb as f64);
        put("resident_kb", peaks.resident_peak_kb as f64);
    }
    if experiment != Experiment::Times && experiment != Experiment::Fragments {
        let said = |name: &str| -> Option<f64> {
            let line = ran.said.lines().find_map(|line| line.strip_prefix(name));
            line?.trim().parse().ok()
        };
        put("seconds", said("seconds").unwrap_or(ran.seconds));
        if let Some(allocations) = said("allocations") {
            put("allocations", allocations);
        }
    }
    figures
}

/// A program's requests.
fn asked(readings: &Readings) -> Figures {
    let mut figures = words(
        readings,
        &[
            ("bytes", MeterWord::Requested),
            ("largest", MeterWord::Largest),
        ],
    );
    figures.push(("mallocs".to_owned(), readings.allocations() as f64));
    figures.push(("frees".to_owned(), readings.releases() as f64));
    figures
}

fn words(readings: &Readings, named: &[(&str, MeterWord)]) -> Figures {
    let named = named.iter();
    named
        .map(|(name, word)| ((*name).to_owned(), readings.get(*word) as f64))
        .collect()
}

/// The source's metric, without and with what the allocator adds to each block.
fn wasted(readings: &Readings) -> Figures {
    let (asked, given) = (
        readings.get(MeterWord::Requested) as f64,
        readings.get(MeterWord::Provided) as f64,
    );
    let percent = |of: f64| 100.0 * (1.0 - asked / of);
    let mut figures = vec![
        ("requested".to_owned(), asked),
        ("provided".to_owned(), given),
        ("payload_waste_percent".to_owned(), percent(given.max(1.0))),
    ];
    let overhead = readings.get(MeterWord::Overhead) * readings.allocations();
    if overhead > 0 {
        let whole = percent(given + overhead as f64);
        figures.push(("waste_percent".to_owned(), whole));
    }
    figures
}
