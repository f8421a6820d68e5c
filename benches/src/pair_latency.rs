//! The probe's pair latency beside core-to-core-latency's: which of them says the same again?

use hearth_benches::measure;
use hearth_benches::repeatability::{
    Repeatability, Reported, core_to_core_latency, hearth, repeatability,
};
use std::path::{Path, PathBuf};
use std::process::Command;

const QUESTION: &str = "How well does the latency between two cores repeat over fresh processes?";
const FAIRNESS: &str = "Both pass a line between the same two cores by compare-and-swap. The peer \
    runs with its defaults, 300 samples of 1000 round trips on one line, and takes some tenths of \
    a second; Hearth takes seconds, over many lines and in rounds. Both print a figure and say how \
    sure they are of it: an interval here, a standard error there, of which 1.96 make an interval. \
    No run is left out, however busy the host.";
/// What is asked of Hearth: anchors-rest, section A, goal 1.
const VARIATION_MAX: f64 = 0.02;
const COVERING_MIN: f64 = 0.9;
/// Seconds and rounds of one of our processes.
const EFFORT: [&str; 2] = ["6", "24"];
/// Processes of each, if more are not asked for; the peer's figures in the sources are of 20.
const RUNS_MIN: usize = 20;

/// What cargo built beside this program.
fn beside(path: &str, hint: &str) -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let found = this.parent().unwrap_or(Path::new(".")).join(path);
    if found.is_file() {
        return Ok(found);
    }
    Err(format!("there is no {}; {hint}", found.display()))
}

fn output(command: &mut Command) -> Result<String, String> {
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

/// Runs both in turn and tells of both. The row's ratio is our variation over the peer's.
pub(crate) fn pair_latency(repeats: usize) -> Result<String, String> {
    println!("pair-latency: {QUESTION}");
    println!("  {FAIRNESS}");
    let ours = beside("examples/pair_latency", "use benches/run")?;
    let peer = beside(
        "../peers/bin/core-to-core-latency",
        "run benches/install-peers first",
    )?;
    let runs = repeats.max(RUNS_MIN);
    let cores = measure::pin(2)?;
    let [first, second] = cores[..] else {
        return Err("two cores are needed, and this process may use one".into());
    };
    let (mut of_hearth, mut of_peer) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let text = output(Command::new(&ours).args(EFFORT))?;
        let found = text.lines().find_map(hearth);
        of_hearth.push(found.ok_or_else(|| format!("no figure in {text:?}"))?);
        let named = format!("{first},{second}");
        let text = output(Command::new(&peer).args(["--cores", &named]))?;
        of_peer.push(core_to_core_latency(&text).ok_or_else(|| format!("no figure in {text:?}"))?);
    }
    let told = |side: &str, runs: &[Reported]| -> Result<Repeatability, String> {
        let found = repeatability(runs).ok_or("too few runs")?;
        println!(
            "  {side:22} grand median {:.1} ns, variation {:.1} %, {} of {} intervals hold it",
            found.grand_median,
            100.0 * found.variation,
            found.covering,
            found.runs
        );
        Ok(found)
    };
    let hearth = told("Hearth", &of_hearth)?;
    let peer = told("core-to-core-latency", &of_peer)?;
    let is_reached = hearth.variation <= VARIATION_MAX
        && hearth.covering as f64 >= COVERING_MIN * hearth.runs as f64;
    println!(
        "  goal of 2 % and 9 of 10 intervals {}\n",
        if is_reached { "reached" } else { "MISSED" }
    );
    Ok(format!(
        "pair-latency,{runs},{},{},{},,",
        hearth.variation,
        peer.variation,
        hearth.variation / peer.variation
    ))
}
