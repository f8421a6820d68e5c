//! Compares the probe's pair latency with core-to-core-latency's: which repeats itself better?

use hearth_benches::measure;
use hearth_benches::peers::beside;
use hearth_benches::repeatability::{ByState, Reported, by_state, core_to_core_latency, hearth};
use hearth_benches::runtime::Effort;
use hearth_testing::toolchain::Workshop;
use std::fs;
use std::process::Command;

const QUESTION: &str = "How well does the latency between two cores repeat over fresh processes?";
const FAIRNESS: &str = "Both pass a line between the same two cores by compare-and-swap. The peer \
    runs with its defaults, 300 samples of 1000 round trips on one line, and takes some tenths of \
    a second; `hearth probe` takes a minute for this and all else that it measures, over many lines \
    and in rounds (ten seconds if the runs are to be brief). Both print a figure and say how sure \
    they are of it: an interval here, a standard error there, of which 1.96 make an interval. A \
    program that tells states of a pair apart prints a figure for each, which must repeat among \
    the figures of that state. No run is left out, however busy the host.";
/// Goal for Hearth: anchors-rest, section A, goal 1.
const VARIATION_MAX: f64 = 0.02;
const COVERING_MIN: f64 = 0.9;
/// Processes of each, if more are not asked for; the peer's figures in the sources are of 20.
const RUNS_MIN: usize = 20;

pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?} ended with {}", output.status));
    }
    // The peer writes its figures beside its progress, to standard error.
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Ok(text)
}

/// Runs both in turn and reports both. The row's ratio is our variation over the peer's.
pub(crate) fn pair_latency(effort: Effort) -> Result<String, String> {
    println!("pair-latency: {QUESTION}");
    println!("  {FAIRNESS}");
    let ours = beside("hearth", "use benches/run")?;
    let peer = beside(
        "../peers/bin/core-to-core-latency",
        "run benches/install-peers first",
    )?;
    let runs = effort.repeats.max(RUNS_MIN);
    let cores = measure::pin(2)?;
    let [first, second] = cores[..] else {
        return Err("two cores are needed, and this process may use one".into());
    };
    let (mut of_hearth, mut of_peer) = (Vec::new(), Vec::new());
    let workshop = Workshop::new("pair-latency")?;
    let profile = workshop.path().join("profile.json");
    for run in 0..runs {
        let mut probe = Command::new(&ours);
        probe.args([
            "probe",
            "--seed",
            &run.to_string(),
            "--cpus",
            &format!("{first},{second}"),
        ]);
        probe.args(effort.brief.then_some("--quick"));
        output(probe.arg("--output").arg(&profile))?;
        let text = fs::read_to_string(&profile).map_err(|error| error.to_string())?;
        let found = hearth(&text).ok_or("the profile has no pair of CPUs")?;
        let told: Vec<String> = found.iter().map(told).collect();
        println!("  {:3} {}", run + 1, told.join("; "));
        of_hearth.push(found);
        let named = format!("{first},{second}");
        let text = output(Command::new(&peer).args(["--cores", &named]))?;
        let figure = core_to_core_latency(&text).ok_or_else(|| format!("no figure in {text:?}"))?;
        of_peer.push(vec![figure]);
    }
    let hearth = summed_up("Hearth", &of_hearth)?;
    let peer = summed_up("core-to-core-latency", &of_peer)?;
    let (printed, covering) = hearth.intervals();
    let is_reached =
        hearth.variation() <= VARIATION_MAX && covering as f64 >= COVERING_MIN * printed as f64;
    println!(
        "  goal of 2 % and 9 of 10 intervals {}\n",
        if is_reached { "reached" } else { "MISSED" }
    );
    Ok(format!(
        "pair-latency,{runs},{},{},{},,",
        hearth.variation(),
        peer.variation(),
        hearth.variation() / peer.variation()
    ))
}

fn told(figure: &Reported) -> String {
    let Reported { value, low, high } = figure;
    format!("{value:.1} ns, {low:.1} to {high:.1}")
}

/// Prints the repeatability of a side in each state.
fn summed_up(side: &str, runs: &[Vec<Reported>]) -> Result<ByState, String> {
    let found = by_state(runs).ok_or("too few runs")?;
    for state in &found.states {
        println!(
            "  {side:22} grand median {:.1} ns, variation {:.1} %, {} of {} intervals hold it",
            state.grand_median,
            100.0 * state.variation,
            state.covering,
            state.runs
        );
    }
    if found.alone > 0 {
        println!("  {side:22} {} figures near no other", found.alone);
    }
    Ok(found)
}
