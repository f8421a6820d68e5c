//! `hearth consolidate`.

use std::path::PathBuf;

use clap::Args;

/// Put software components of control units on the fewest units and cores that hold them.
///
/// The file has components with modes, periods, worst-case times and safety levels, messages,
/// circuit points, and the units to choose from. Components that are never active together share a
/// core as if there were one. Units come first, then cores, then goals by their weights; every
/// result is checked by code of its own, and its distance from the best is stated.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hearth consolidate car.toml                      the places, and what they save
  hearth consolidate car.toml --report car.html    as a page
  hearth consolidate car.toml --goal cabling=3,energy=1
  hearth consolidate engine.amxmi --out mapped.amxmi
  hearth consolidate car.toml --check places.toml  check a mapping and search for none")]
pub(crate) struct ConsolidateArguments {
    /// A system (*.toml), or an AMALTHEA model (*.amxmi)
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Weights of traffic, latency, cabling, energy, mixing and cost, as in cabling=3,energy=1;
    /// goals that are not named count nothing, and without this all count alike
    #[arg(long, value_name = "GOALS", value_parser = goals)]
    pub(crate) goal: Option<hearth_consolidate::search::Goals>,

    /// End the search after N seconds with the best so far
    #[arg(long, value_name = "N", default_value = "10", value_parser = seconds)]
    pub(crate) seconds: f64,

    /// The seed of random choices
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        hide_default_value = true,
        value_parser = super::number
    )]
    pub(crate) seed: u64,

    /// Write a page to FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Write the places to FILE: TOML, or the AMALTHEA model with them
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Check the places in FILE, as --out writes them, and search for none
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "report", "goal", "json"])]
    pub(crate) check: Option<PathBuf>,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok();
    let number = number.filter(|number| *number > 0.0 && *number <= 1e6);
    number.ok_or_else(|| "must be a number of seconds above 0, such as 10".to_owned())
}

fn goals(text: &str) -> Result<hearth_consolidate::search::Goals, String> {
    hearth_consolidate::search::Goals::parse(text)
}
