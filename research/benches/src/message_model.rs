//! Compares predictions of whole messages with measurements that no model has seen: ours, fitted to
//! a fresh profile, and the cache-impact source's equations on the same profile.

use crate::pair_latency::output;
use hearth_benches::peers::beside;
use hearth_benches::runtime::Effort;
use hearth_machine::profile::{Carrier, Profile};
use hearth_machine::topology::{OsThread, Topology};
use hearth_model::fitted::{Between, Model, Question, Sample};
use hearth_probe::handover::{self, Point, Points};
use hearth_published::validation::{Agreement, Comparison, Validation};
use hearth_sys::{Linux, System};
use hearth_testing::toolchain::Workshop;
use std::fs;
use std::process::Command;
use std::sync::atomic::AtomicBool;

const QUESTION: &str = "How well are messages predicted that the model was not fitted to?";
const FAIRNESS: &str = "A fresh `hearth probe` measures the machine, with messages whose sizes are \
    even powers of two. Then messages of odd powers of two, 128 B to 32 MiB, are measured on one \
    core and across two, asleep and spinning, and both models predict them from that profile. The \
    source's equations, in their intended form, get the profile's own figures and are fitted to \
    nothing, as the source fits nothing. No measurement is left out, however busy the host.";
/// Seconds and rounds of the points to judge by.
const SECONDS: f64 = 60.0;
const SECONDS_BRIEF: f64 = 15.0;
const ROUNDS: u32 = 8;

/// Measures, fits, judges. The row's ratio is our error over the source's.
pub(crate) fn message_model(effort: Effort) -> Result<String, String> {
    println!("message-model: {QUESTION}");
    println!("  {FAIRNESS}");
    let hearth = beside("hearth", "use benches/run")?;
    let workshop = Workshop::new("message-model")?;
    let path = workshop.path().join("profile.json");
    output(Command::new(hearth).arg("probe").arg("--output").arg(&path))?;
    let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
    let profile = Profile::from_json(&text).map_err(|error| error.to_string())?;
    let model = Model::fitted(&profile).map_err(|error| error.to_string())?;
    let points = judges(effort)?;
    let samples: Vec<Sample> = points
        .iter()
        .filter_map(|point| sample(&profile.topology, point))
        .collect();
    let found = Validation::of(&profile, &model, &samples).map_err(|error| error.to_string())?;
    if model.report().is_none() {
        println!("  the profile has too few messages to fit the model to");
    }
    for slice in &found.slices {
        let carrier = match slice.carrier {
            Carrier::Threads => "asleep",
            Carrier::Spin => "spinning",
            Carrier::Worker => "workers",
        };
        told(&format!("{carrier}, {}", slice.relation), &slice.comparison);
    }
    told("all", &found.all);
    println!(
        "  goal of {} % and a rank correlation of {} {}\n",
        Validation::ERROR_GOAL_PERCENT,
        Validation::RANK_GOAL,
        if found.meets_goals() {
            "reached"
        } else {
            "MISSED"
        }
    );
    let (ours, source) = (&found.all.ours, &found.all.source);
    Ok(format!(
        "message-model,{},{},{},{},,",
        found.all.points,
        ours.median_error_percent,
        source.median_error_percent,
        ours.median_error_percent / source.median_error_percent
    ))
}

fn told(what: &str, found: &Comparison) {
    let side = |agreement: &Agreement| {
        let rank =
            |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.2}"));
        format!(
            "{:5.1} % off, tau {}, rho {}",
            agreement.median_error_percent,
            rank(agreement.kendall),
            rank(agreement.spearman)
        )
    };
    println!(
        "  {what:36} {:3} points  Hearth {} ({:.0} % inside)  source {}",
        found.points,
        side(&found.ours),
        100.0 * found.covered,
        side(&found.source)
    );
}

/// The points to judge by.
fn judges(effort: Effort) -> Result<Vec<Point>, String> {
    let cores = Linux.allowed().map_err(|error| error.to_string())?;
    let mut pairs = vec![[cores[0], cores[0]]];
    pairs.extend(cores.get(1).map(|&other| [cores[0], other]));
    let sizes: Vec<u64> = handover::sizes().into_iter().skip(1).step_by(2).collect();
    let mut requests = handover::grid(&pairs, &sizes);
    requests.retain(|asked| asked.carrier != Carrier::Spin || asked.cores[0] != asked.cores[1]);
    let cancel = AtomicBool::new(false);
    let seconds = if effort.brief { SECONDS_BRIEF } else { SECONDS };
    let effort = handover::Effort {
        seconds,
        rounds: ROUNDS,
        seed: 1,
    };
    let found: Points = handover::points(&Linux, &requests, effort, &cancel, &mut |_| {})
        .map_err(|error| error.to_string())?;
    for why in &found.missing {
        println!("  missing: {why}");
    }
    Ok(found
        .points
        .into_iter()
        .filter(Point::is_held_out)
        .collect())
}

/// A measured point as the model takes it; None if the machine does not know its cores.
fn sample(machine: &Topology, point: &Point) -> Option<Sample> {
    let thread = |core: usize| machine.thread_of(OsThread(u32::try_from(core).ok()?));
    let [sender, receiver] = point.request.cores;
    Some(Sample {
        question: Question::new(
            point.request.bytes,
            Between::Pair(thread(sender)?, thread(receiver)?),
            point.request.carrier,
        ),
        ns: point.exchange_ns.value,
    })
}
