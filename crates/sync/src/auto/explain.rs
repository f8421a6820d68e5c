//! The controller's decisions, as text.

use std::fmt::Write as _;

use super::figures::Seen;
use super::{Controller, Known};

/// Share below which a difference between sections is not mentioned.
const FETCH_SHARE_MIN: f64 = 0.1;

impl Controller {
    /// Describes the current mode, what each mode was seen to reach, and the last change: "under
    /// the lock: 1.9 M calls/s, a section takes 410 ns of which about 300 ns are fetching lines
    /// from other cores; by message 2.6 M; …".
    pub fn explain(&self) -> String {
        let home = &self.modes[self.home];
        let mut text = format!("{}: ", home.name);
        let Some(seen) = &home.seen else {
            text.push_str("nothing measured yet");
            return text;
        };
        let _ = write!(text, "{} calls/s", self.per_second(seen.rate));
        self.explain_section(&mut text, seen);
        let others = self.modes.iter().enumerate();
        for (_, other) in others.filter(|(mode, _)| *mode != self.home) {
            self.explain_other(&mut text, seen, other);
        }
        self.explain_change(&mut text);
        text
    }

    fn explain_section(&self, text: &mut String, seen: &Seen) {
        if let Some(section) = seen.section {
            let _ = write!(text, ", a section takes {}", self.time(section));
            // The data is nearest in the mode with the shortest section.
            let least = self
                .modes
                .iter()
                .filter_map(|mode| mode.seen.and_then(|seen| seen.section))
                .fold(section, f64::min);
            let fetching = section - least;
            if seen.callers >= 2.0 && fetching > FETCH_SHARE_MIN * section {
                let _ = write!(
                    text,
                    " of which about {} are fetching lines from other cores",
                    self.time(fetching)
                );
                if let Some(line) = self.ticks_per_line {
                    let _ = write!(text, " ({})", lines(fetching / line));
                }
            }
        }
        if seen.contended >= 0.01 {
            let _ = write!(text, ", {:.0} % of the calls wait", 100.0 * seen.contended);
            if seen.wait > 0.0 {
                let each = seen.wait / seen.contended;
                let _ = write!(text, ", {} each", self.time(each));
            }
        }
    }

    fn explain_other(&self, text: &mut String, home: &Seen, other: &Known) {
        let name = &other.name;
        let _ = match (other.ratio, &other.seen) {
            (Some(ratio), _) => {
                write!(text, "; {name} {}", self.per_second(home.rate * ratio))
            }
            (None, Some(seen)) => write!(
                text,
                "; {name} {} when the load was another",
                self.per_second(seen.rate)
            ),
            (None, None) => write!(text, "; {name} not tried yet"),
        };
    }

    fn explain_change(&self, text: &mut String) {
        let Some(change) = self.change else {
            text.push_str("; never switched");
            return;
        };
        let ago = (self.now - change.at) / self.ticks_per_second;
        let percent = 100.0 * (change.ratio - 1.0);
        let from = &self.modes[change.from].name;
        let _ = write!(text, "; switched {} ago from {from}", seconds(ago));
        let _ = if percent >= 0.5 {
            write!(text, ", for {percent:.0} % more calls")
        } else {
            write!(text, ", for as many calls")
        };
        if self.switches > 1 {
            let _ = write!(text, "; {} switches in all", self.switches);
        }
    }

    /// Converts calls per tick to calls per second.
    fn per_second(&self, rate: f64) -> String {
        let rate = rate * self.ticks_per_second;
        let (value, unit) = match rate {
            1e6.. => (rate / 1e6, " M"),
            1e3.. => (rate / 1e3, " k"),
            _ => (rate, ""),
        };
        format!("{}{unit}", short(value))
    }

    fn time(&self, ticks: f64) -> String {
        let ns = ticks / self.ticks_per_second * 1e9;
        match ns {
            1e6.. => format!("{} ms", short(ns / 1e6)),
            1e4.. => format!("{} µs", short(ns / 1e3)),
            _ => format!("{ns:.0} ns"),
        }
    }
}

/// Lines that could have moved one after the other; if they moved in parallel there were more.
fn lines(count: f64) -> String {
    match count.round() {
        ..=1.0 => "a line".to_owned(),
        count => format!("{count} lines or more"),
    }
}

/// Formats two significant digits, without a zero after the point.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    if value >= 10.0 {
        return format!("{value:.0}");
    }
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn seconds(value: f64) -> String {
    match value {
        120.0.. => format!("{:.0} min", value / 60.0),
        10.0.. => format!("{value:.0} s"),
        _ => format!("{value:.1} s"),
    }
}
