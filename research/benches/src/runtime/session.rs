//! Measures a row: all its sides in one session, in turn, bound to the same cores.
//!
//! Sides differ by factors of a hundred, so each has its own number of rounds, chosen such that a
//! run takes `RUN_S` beyond its start. The start, a run of one round, is measured before and
//! subtracted, since some peers take a tenth of a second for it. Every answer is compared with the
//! one that its number of rounds must give.

use std::process::Command;

use super::sides::{Programs, Setting};
use super::{Goal, Measure, Row, Who};
use crate::earlier::{Compared, Earlier};
use crate::measure::{self, Kept, Run, in_turn, peak, pin, run};
use hearth_stats::{Ratio, Summary, ratio};

/// Amount of measuring.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    pub repeats: usize,
    /// A tenth of the work in each run.
    pub brief: bool,
}

/// Seconds of a run without its start: long enough to time, short enough to fit between the
/// disturbances of a shared host.
const RUN_S: f64 = 0.3;
/// Number of runs of one round, whose median is subtracted.
const STARTS: usize = 5;
/// Number of runs to find the rounds that take as long as is wanted, within a factor of two.
const TRIES: usize = 32;
/// Memory repeats itself better than time does.
const MEMORY_REPEATS_MAX: usize = 5;
/// More rounds would not fit the integers of 32 bits of most sides.
const ROUNDS_MAX: f64 = 5e8;

/// Result of a row.
#[derive(Clone, Debug)]
pub struct Found {
    pub hearth: Side,
    pub besides: Vec<Side>,
    /// Peers that are missing, and what to do.
    pub skipped: Vec<String>,
    pub cores: Vec<usize>,
}

/// Result of one side.
#[derive(Clone, Debug)]
pub struct Side {
    pub who: Who,
    pub aside: Option<&'static str>,
    pub rounds: u32,
    /// Seconds that were subtracted from each run.
    pub start_s: f64,
    pub values: Vec<f64>,
    pub summary: Summary,
    /// Runs that other guests of the host disturbed.
    pub discarded: usize,
    /// Its value over Hearth's.
    pub ratio: Option<Ratio>,
}

impl Found {
    /// The least of those that count.
    pub fn best(&self) -> Option<&Side> {
        let counting = self.besides.iter().filter(|side| side.aside.is_none());
        counting.min_by(|a, b| a.summary.median.total_cmp(&b.summary.median))
    }

    pub fn is_reached(&self, goal: &Goal) -> Option<bool> {
        let best = self.best().map(|side| side.summary.median);
        goal.is_reached(self.hearth.summary.median, best)
    }
}

/// Measures a row of this Hearth beside an earlier one.
pub fn beside_earlier(row: &Row, effort: Effort, earlier: &Earlier) -> Result<Compared, String> {
    let target_s = if effort.brief { RUN_S / 10.0 } else { RUN_S };
    pin(usize::MAX)?;
    let (mut now, mut before) = (Programs::default(), Programs::default());
    now.add(row.program)?;
    before.add_built(row.program, |stem, folder| earlier.build(stem, folder))?;
    let sessions = [now, before].map(|programs| Session {
        row,
        programs,
        target_s,
    });
    let cores = pin(row.workers)?;
    let ready = sessions
        .iter()
        .map(|session| session.ready(row.hearth(), None, &cores))
        .collect::<Result<Vec<_>, _>>()?;
    let rounds = ready[0].rounds;
    let ready: Vec<Ready> = ready
        .into_iter()
        .map(|ready| Ready { rounds, ..ready })
        .collect();
    let kept = in_turn(ready.len(), effort.repeats, |side| {
        sessions[side].value(&ready[side], &cores)
    })?;
    Compared::of(&kept)
}

/// A side that is ready to be measured.
struct Ready {
    who: Who,
    aside: Option<&'static str>,
    rounds: u32,
    start_s: f64,
    /// On one core, if that is another number.
    start_alone_s: f64,
}

struct Session<'a> {
    row: &'a Row,
    programs: Programs,
    target_s: f64,
}

/// Runs Hearth's side at its smallest; an error if the answer is wrong.
pub fn check(row: &Row) -> Result<(), String> {
    let session = Session::new(row, RUN_S)?;
    let cores = pin(row.workers)?;
    session.check_small(row.hearth(), &cores)
}

/// Measures a row. Peers that are missing are named; whatever else goes wrong is an error.
pub fn measure(row: &Row, effort: Effort) -> Result<Found, String> {
    let target_s = if effort.brief { RUN_S / 10.0 } else { RUN_S };
    let session = Session::new(row, target_s)?;
    let cores = pin(row.workers)?;
    if cores.len() < row.workers {
        return Err(format!(
            "{} cores are needed, and this process may use {}",
            row.workers,
            cores.len()
        ));
    }
    let mut ready = Vec::new();
    let mut skipped = Vec::new();
    ready.push(session.ready(row.hearth(), None, &cores)?);
    for beside in row.besides {
        let small = session.setting(1, &cores);
        match session.programs.command(beside.who, &small) {
            Ok(_) => ready.push(session.ready(beside.who, beside.aside, &cores)?),
            Err(missing) => {
                skipped.push(format!("{}: skipped: {missing}", beside.who.label()));
            }
        }
    }
    let repeats = match row.measure {
        Measure::Memory { .. } => effort.repeats.min(MEMORY_REPEATS_MAX),
        Measure::Time { .. } | Measure::SpeedUp => effort.repeats,
    };
    let kept = in_turn(ready.len(), repeats, |side| {
        session.value(&ready[side], &cores)
    })?;
    let mut sides = Vec::new();
    for (ready, kept) in ready.into_iter().zip(kept) {
        sides.push(side(ready, kept, sides.first())?);
    }
    let besides = sides.split_off(1);
    let hearth = sides.pop().ok_or("no measurements")?;
    Ok(Found {
        hearth,
        besides,
        skipped,
        cores,
    })
}

fn side(ready: Ready, kept: Kept<f64>, hearth: Option<&Side>) -> Result<Side, String> {
    Ok(Side {
        who: ready.who,
        aside: ready.aside,
        rounds: ready.rounds,
        start_s: ready.start_s,
        summary: Summary::of(&kept.values).ok_or("no measurements")?,
        ratio: hearth.and_then(|hearth| ratio(&kept.values, &hearth.values)),
        values: kept.values,
        discarded: kept.discarded,
    })
}

impl<'a> Session<'a> {
    fn new(row: &'a Row, target_s: f64) -> Result<Self, String> {
        // Compilers may use what there is.
        pin(usize::MAX)?;
        let mut programs = Programs::default();
        programs.add(row.program)?;
        for beside in row.besides {
            if let Who::Hearth(program) = beside.who {
                programs.add(program)?;
            }
        }
        Ok(Session {
            row,
            programs,
            target_s,
        })
    }

    fn setting<'b>(&'b self, rounds: u32, cores: &'b [usize]) -> Setting<'b> {
        Setting {
            row: self.row.program,
            rounds,
            cores,
        }
    }

    fn run(&self, who: Who, rounds: u32, cores: &[usize]) -> Result<Run, String> {
        let setting = self.setting(rounds, cores);
        let (mut command, input) = self.programs.command(who, &setting)?;
        let ran = run(&mut command, &input)?;
        let answer: Result<i32, _> = ran.stdout.trim_end().parse();
        let answer = answer.map_err(|_| format!("{} says {:?}", who.label(), ran.stdout))?;
        let wanted = match self.row.measure {
            Measure::Time { answer, .. } => Some(answer(rounds)),
            _ if self.row.small.0 == rounds && who != Who::C("burn") => Some(self.row.small.1),
            _ => None,
        };
        match wanted {
            Some(wanted) if wanted != answer => Err(format!(
                "{} says {answer} after {rounds} rounds instead of {wanted}",
                who.label()
            )),
            _ => Ok(ran),
        }
    }

    fn check_small(&self, who: Who, cores: &[usize]) -> Result<(), String> {
        let (rounds, wanted) = self.row.small;
        if let Measure::Time { answer, .. } = self.row.measure {
            assert_eq!(answer(rounds), wanted, "the table of {}", self.row.name);
        }
        self.run(who, rounds, cores).map(drop)
    }

    /// Checks a side's answer and finds out how many rounds it needs.
    fn ready(
        &self,
        who: Who,
        aside: Option<&'static str>,
        cores: &[usize],
    ) -> Result<Ready, String> {
        self.check_small(who, cores)?;
        let mut start_alone_s = 0.0;
        let (rounds, start_s) = match self.row.measure {
            Measure::Time { .. } => {
                let start_s = self.start(who, cores)?;
                (self.enough(who, start_s, cores)?, start_s)
            }
            Measure::Memory {
                count,
                count_of_peers,
            } => {
                let is_ours = matches!(who, Who::Hearth(_));
                (if is_ours { count } else { count_of_peers }, 0.0)
            }
            Measure::SpeedUp => {
                let start_s = self.start(who, cores)?;
                let one = pin(1)?;
                start_alone_s = self.start(who, &one)?;
                let rounds = self.enough(who, start_alone_s, &one)?;
                pin(self.row.workers)?;
                (rounds, start_s)
            }
        };
        Ok(Ready {
            who,
            aside,
            rounds,
            start_s,
            start_alone_s,
        })
    }

    /// Time that a run of one round takes.
    fn start(&self, who: Who, cores: &[usize]) -> Result<f64, String> {
        let runs = (0..STARTS).map(|_| Ok(self.run(who, 1, cores)?.times.wall));
        let seconds = runs.collect::<Result<Vec<f64>, String>>()?;
        Ok(Summary::of(&seconds).map_or(0.0, |summary| summary.median))
    }

    /// Number of rounds that take as long as is wanted.
    fn enough(&self, who: Who, start_s: f64, cores: &[usize]) -> Result<u32, String> {
        let mut rounds = f64::from(self.row.small.0);
        for _ in 0..TRIES {
            let ran = self.run(who, rounds as u32, cores)?;
            if ran.disturbed {
                continue;
            }
            let took = ran.times.wall - start_s;
            // Too short a run says little, so the next has ten times as many rounds at most.
            let factor = (self.target_s / took.max(1e-9)).clamp(0.1, 10.0);
            rounds = (rounds * factor).clamp(2.0, ROUNDS_MAX).floor();
            if (0.5..2.0).contains(&factor) || rounds == 2.0 || rounds == ROUNDS_MAX {
                break;
            }
        }
        Ok(rounds as u32)
    }

    /// One value of a side, and whether it was disturbed.
    fn value(&self, side: &Ready, cores: &[usize]) -> Result<(f64, bool), String> {
        match self.row.measure {
            Measure::Time { units, .. } => {
                let ran = self.run(side.who, side.rounds, cores)?;
                // The run that is subtracted had one round.
                let rounds = f64::from(side.rounds - 1) * units;
                let seconds = ran.times.wall - side.start_s;
                // Much shorter than was tried before: the start was slow then, or this run is not.
                let is_odd = side.rounds > 2 && seconds < self.target_s / 8.0;
                Ok((seconds * 1e9 / rounds, ran.disturbed || is_odd))
            }
            Measure::Memory { .. } => {
                let all = self.peak(side.who, side.rounds, cores)?;
                let one = self.peak(side.who, 1, cores)?;
                Ok(((all - one) / f64::from(side.rounds), false))
            }
            Measure::SpeedUp => self.speed_up(side),
        }
    }

    /// Peak resident bytes.
    fn peak(&self, who: Who, rounds: u32, cores: &[usize]) -> Result<f64, String> {
        let setting = self.setting(rounds, cores);
        let (command, input) = self.programs.command(who, &setting)?;
        let (bytes, stdout) = peak(&command, &input)?;
        if stdout.trim_end() != rounds.to_string() {
            return Err(format!(
                "{} says {stdout:?} of {rounds} components",
                who.label()
            ));
        }
        Ok(bytes)
    }

    fn speed_up(&self, side: &Ready) -> Result<(f64, bool), String> {
        let one = pin(1)?;
        let alone = self.run(side.who, side.rounds, &one)?;
        let cores = pin(self.row.workers)?;
        let alone_s = alone.times.wall - side.start_alone_s;
        if let Who::C(row) = side.who {
            let setting = self.setting(side.rounds, &one);
            let commands: Result<Vec<Command>, String> = cores
                .iter()
                .map(|_| Ok(self.programs.command(Who::C(row), &setting)?.0))
                .collect();
            let (seconds, disturbed) = measure::side_by_side(commands?, &cores)?;
            // Each did all the work of the one that was alone.
            let speed_up = cores.len() as f64 * alone_s / (seconds - side.start_alone_s);
            return Ok((speed_up, alone.disturbed || disturbed));
        }
        let together = self.run(side.who, side.rounds, &cores)?;
        if alone.stdout != together.stdout {
            return Err(format!(
                "{} says {:?} on one core and {:?} on {}",
                side.who.label(),
                alone.stdout,
                together.stdout,
                cores.len()
            ));
        }
        let speed_up = alone_s / (together.times.wall - side.start_s);
        Ok((speed_up, alone.disturbed || together.disturbed))
    }
}
