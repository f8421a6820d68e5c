//! Options of `hearth run` that do nothing beside others: the program runs all the same, and why
//! one of them is of no use is said once.

use hearth_driver::run_plan::{POLICIES, PlaceOption};

use crate::arguments::{Carrier, Heaps, Run, Servers};

/// The options that matter, each from the command line or else from its variable.
struct Asked {
    place: Option<String>,
    by_threads: bool,
    servers: &'static str,
    heaps: &'static str,
    workers: Option<usize>,
    moves_heaps: bool,
    logs_moves: bool,
    is_simulated: bool,
    /// Probes are asked for, and nothing says where their records go.
    has_idle_probes: bool,
    /// Futures are asked for, and so are probes.
    has_probed_futures: bool,
    /// Number of CPUs that this process may use.
    cpus: usize,
}

/// A sentence for each that has no effect.
pub(crate) fn notes(arguments: &Run) -> Vec<String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    let cpus = hearth_sys::affinity::allowed().len();
    of(&Asked::read(arguments, variable, cpus))
}

impl Asked {
    fn read(arguments: &Run, variable: impl Fn(&str) -> Option<String>, cpus: usize) -> Asked {
        let number = |name: &str| variable(name)?.parse().ok();
        Asked {
            place: match &arguments.place {
                Some(PlaceOption::Policy(name)) => Some((*name).to_owned()),
                Some(PlaceOption::Talk) => Some("talk".to_owned()),
                Some(PlaceOption::Plan(path)) => Some(path.display().to_string()),
                None => variable("HEARTH_PLACE"),
            },
            by_threads: match arguments.carrier {
                Some(carrier) => matches!(carrier, Carrier::Threads),
                None => variable("HEARTH_CARRIER").as_deref() == Some("threads"),
            },
            servers: match (arguments.servers, variable("HEARTH_SERVERS").as_deref()) {
                (Some(Servers::Synchronous), _) | (None, Some("synchronous")) => "synchronous",
                (Some(Servers::Auto), _) | (None, Some("auto")) => "auto",
                _ => "asynchronous",
            },
            heaps: match (arguments.heaps, variable("HEARTH_HEAPS").as_deref()) {
                (Some(Heaps::Shared), _) | (None, Some("shared")) => "shared",
                (Some(Heaps::System), _) | (None, Some("system")) => "system",
                _ => "private",
            },
            workers: arguments
                .workers
                .map(usize::from)
                .or_else(|| number("HEARTH_WORKERS")),
            moves_heaps: arguments
                .heaps_move
                .as_ref()
                .map(|bytes| bytes.0)
                .or_else(|| variable("HEARTH_HEAPS_MOVE")?.parse().ok())
                .is_some_and(|bytes| bytes > 0),
            logs_moves: arguments.place_log.is_some(),
            is_simulated: arguments.simulate.is_some(),
            has_idle_probes: !arguments.probes.patterns.is_empty()
                && arguments.calls.is_none()
                && variable("HEARTH_MONITOR").is_none(),
            has_probed_futures: arguments.beside.futures
                && (!arguments.probes.patterns.is_empty() || arguments.calls.is_some()),
            cpus,
        }
    }
}

/// Probes note the calls of one thread.
pub(crate) const FUTURES_WITH_PROBES: &str = "futures have no effect with probes, which note the calls of one thread: everything runs in order";

fn of(asked: &Asked) -> Vec<String> {
    let mut notes = Vec::new();
    let place = asked.place.as_deref().unwrap_or("os");
    let is_planned = !POLICIES.contains(&place);
    if asked.has_idle_probes {
        notes.push(
            "--probes has no effect: nothing says where calls are recorded; add --calls FILE, or set \
             HEARTH_MONITOR"
                .to_owned(),
        );
    }
    if asked.has_probed_futures {
        notes.push(FUTURES_WITH_PROBES.to_owned());
    }
    if asked.is_simulated {
        if is_planned || place == "steal" {
            notes.push(format!(
                "--place {place} has no effect on a simulation, whose schedule chooses where components run; \
                 only spread and single apply"
            ));
        }
        if asked.servers == "auto" {
            notes.push(
                "--servers auto has no effect on a simulation, where no time passes while components run: \
                 servers are asynchronous"
                    .to_owned(),
            );
        }
        if asked.logs_moves {
            notes.push("--place-log has no effect on a simulation: nothing moves".to_owned());
        }
        return notes;
    }
    if asked.by_threads {
        if place == "steal" {
            notes.push(
                "--place steal has no effect with --carrier threads: it lets idle workers take components from \
                 busy ones, but here each has a thread of its own, which the system schedules"
                    .to_owned(),
            );
        }
        if asked.servers != "asynchronous" {
            notes.push(format!(
                "--servers {} has no effect with --carrier threads: each component has a thread of its own, \
                 so no caller can run a server; use --carrier workers",
                asked.servers
            ));
        }
        if let Some(workers) = asked.workers {
            notes.push(format!(
                "--workers {workers} has no effect with --carrier threads: each component has a thread of its \
                 own; to use some of the CPUs only, start it with `taskset`"
            ));
        }
    } else if let Some(workers) = asked.workers.filter(|&workers| workers > asked.cpus)
        && is_planned
    {
        notes.push(format!(
            "--place {place} cannot keep components on CPUs with {workers} workers on {cpus} CPUs, as workers are then \
             not pinned; use --workers {cpus} at most",
            cpus = asked.cpus
        ));
    }
    if asked.moves_heaps && asked.heaps != "private" {
        notes.push(format!(
            "--heaps-move has no effect with --heaps {}: no component has a heap of its own to move",
            asked.heaps
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(place: &str) -> Asked {
        Asked {
            place: Some(place.to_owned()),
            by_threads: false,
            servers: "asynchronous",
            heaps: "private",
            workers: None,
            moves_heaps: false,
            logs_moves: false,
            is_simulated: false,
            has_idle_probes: false,
            has_probed_futures: false,
            cpus: 2,
        }
    }

    #[test]
    fn what_has_an_effect_is_not_told() {
        for place in [
            "os", "spread", "single", "random", "steal", "talk", "p.json",
        ] {
            assert_eq!(of(&asked(place)), [""; 0], "{place}");
            let few = Asked {
                workers: Some(2),
                moves_heaps: true,
                ..asked(place)
            };
            assert_eq!(of(&few), [""; 0], "{place}");
            if place != "steal" {
                let by_threads = Asked {
                    by_threads: true,
                    ..asked(place)
                };
                assert_eq!(of(&by_threads), [""; 0], "{place}");
            }
        }
    }

    #[test]
    fn what_has_none_is_told_once() {
        let cases = [
            (
                FUTURES_WITH_PROBES,
                Asked {
                    has_probed_futures: true,
                    ..asked("os")
                },
            ),
            (
                "--place steal has no effect with --carrier threads",
                Asked {
                    by_threads: true,
                    ..asked("steal")
                },
            ),
            (
                "--servers synchronous has no effect with --carrier threads",
                Asked {
                    by_threads: true,
                    servers: "synchronous",
                    ..asked("spread")
                },
            ),
            (
                "--servers auto has no effect on a simulation",
                Asked {
                    is_simulated: true,
                    servers: "auto",
                    ..asked("spread")
                },
            ),
            (
                "--workers 2 has no effect with --carrier threads",
                Asked {
                    by_threads: true,
                    workers: Some(2),
                    ..asked("talk")
                },
            ),
            (
                "--place talk cannot keep components on CPUs with 3 workers on 2 CPUs",
                Asked {
                    workers: Some(3),
                    ..asked("talk")
                },
            ),
            (
                "--heaps-move has no effect with --heaps shared",
                Asked {
                    moves_heaps: true,
                    heaps: "shared",
                    ..asked("spread")
                },
            ),
            (
                "--place talk has no effect on a simulation",
                Asked {
                    is_simulated: true,
                    ..asked("talk")
                },
            ),
            (
                "--probes has no effect",
                Asked {
                    has_idle_probes: true,
                    ..asked("spread")
                },
            ),
            (
                "--place-log has no effect on a simulation",
                Asked {
                    is_simulated: true,
                    logs_moves: true,
                    ..asked("spread")
                },
            ),
        ];
        for (beginning, asked) in cases {
            let notes = of(&asked);
            assert!(
                notes.len() == 1 && notes[0].starts_with(beginning),
                "{notes:?}"
            );
        }
    }
}
