//! The fewest units and cores as an integer program, solved by others' solvers.
//!
//! One variable for each component and seat, one for each unit, core, lock-step pair, and level on
//! a core. Under a bound on utilisation every rule is linear but those of messages, which are left
//! out. The program minimises units first and cores second, by weights.
//!
//! Ordinary runs use `microlp` on a few small systems. It now and then calls a program singular or
//! infeasible that is neither: systems where it gives no answer are counted, and a mapping that the
//! checker accepts refutes that there is none. With `HEARTH_TEST_DEEP=1` systems of up to 40
//! components go to HiGHS, by Python's `highspy`: `HEARTH_HIGHS` names a Python that has it.

mod support;

use std::io::Write as _;
use std::process::{Command, Stdio};

use good_lp::{
    Expression, ProblemVariables, ResolutionError, Solution, SolverModel, microlp, variable,
};
use hearth_consolidate::generate::Recipe;
use hearth_consolidate::model::{Asil, Bound, By, LockStep, Mixing, System};
use hearth_consolidate::search::{Goals, SearchError, search};

/// Σ terms ≤ limit, or = limit.
struct Row {
    terms: Vec<(f64, usize)>,
    is_equal: bool,
    limit: f64,
}

/// A program over variables that are 0 or 1.
#[derive(Default)]
struct Program {
    costs: Vec<f64>,
    rows: Vec<Row>,
}

impl Program {
    fn variable(&mut self, cost: f64) -> usize {
        self.costs.push(cost);
        self.costs.len() - 1
    }

    fn at_most(&mut self, terms: Vec<(f64, usize)>, limit: f64) {
        let is_equal = false;
        self.rows.push(Row {
            terms,
            is_equal,
            limit,
        });
    }

    /// `a` only with `b`.
    fn needs(&mut self, a: usize, b: usize) {
        self.at_most(vec![(1.0, a), (-1.0, b)], 0.0);
    }
}

/// Cost of a unit: more than that of all cores.
const UNIT: f64 = 1000.0;

struct SeatVariable {
    component: usize,
    core: usize,
    memory: usize,
    variable: usize,
    share: f64,
}

fn program(system: &System) -> Program {
    let Bound::Utilisation(bound) = system.rules.bound else {
        panic!("the program is linear for a bound on utilisation only");
    };
    let mut program = Program::default();
    let units: Vec<usize> = system
        .units
        .iter()
        .map(|_| program.variable(UNIT))
        .collect();
    let cores: Vec<usize> = system.cores.iter().map(|_| program.variable(1.0)).collect();
    let pair = |core: usize| matches!(system.cores[core].lockstep, LockStep::With(_));
    let locked: Vec<usize> = (0..cores.len())
        .map(|core| program.variable(if pair(core) { 1.0 } else { 0.0 }))
        .collect();
    let levels: Vec<Vec<usize>> = (cores.iter())
        .map(|_| Asil::ALL.iter().map(|_| program.variable(0.0)).collect())
        .collect();
    let mut seats = Vec::new();
    for (component, one) in system.components.iter().enumerate() {
        for (core, place) in system.cores.iter().enumerate() {
            let is_safe = one.asil != Asil::D || place.lockstep != LockStep::No;
            for memory in &system.units[place.unit].memories {
                let time = system.time_ns(component, core, *memory);
                let time = time.filter(|time| *time <= one.deadline_ns && is_safe);
                if let Some(time) = time {
                    seats.push(SeatVariable {
                        component,
                        core,
                        memory: *memory,
                        variable: program.variable(0.0),
                        share: time as f64 / one.period_ns as f64,
                    });
                }
            }
        }
    }
    let ones = |keep: &dyn Fn(&SeatVariable) -> bool| -> Vec<(f64, usize)> {
        let kept = seats.iter().filter(|seat| keep(seat));
        kept.map(|seat| (1.0, seat.variable)).collect()
    };
    for component in 0..system.components.len() {
        let terms = ones(&|seat| seat.component == component);
        program.rows.push(Row {
            terms,
            is_equal: true,
            limit: 1.0,
        });
    }
    for (core, place) in system.cores.iter().enumerate() {
        program.needs(cores[core], units[place.unit]);
        for mode in 0..system.modes.len() {
            let active = seats.iter().filter(|seat| {
                seat.core == core && system.components[seat.component].modes.has(mode)
            });
            let mut terms: Vec<(f64, usize)> =
                active.map(|seat| (seat.share, seat.variable)).collect();
            terms.push((-bound, cores[core]));
            program.at_most(terms, 0.0);
        }
        for seat in seats.iter().filter(|seat| seat.core == core) {
            program.needs(seat.variable, cores[core]);
            let level = system.components[seat.component].asil;
            program.needs(seat.variable, levels[core][level.steps()]);
            if level == Asil::D {
                program.needs(seat.variable, locked[core]);
            }
            if let Some(first) = place.checks {
                program.at_most(vec![(1.0, seat.variable), (1.0, locked[first])], 1.0);
            }
        }
        for (low, here) in levels[core].iter().enumerate() {
            let far = low + 1 + system.rules.mixing.steps_max();
            for there in levels[core].iter().skip(far) {
                program.at_most(vec![(1.0, *here), (1.0, *there)], 1.0);
            }
        }
    }
    for (number, memory) in system.memories.iter().enumerate() {
        let there = seats.iter().filter(|seat| seat.memory == number);
        let mebi = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let mut terms: Vec<(f64, usize)> = there
            .map(|seat| (mebi(system.components[seat.component].bytes), seat.variable))
            .collect();
        terms.push((-mebi(memory.bytes), units[memory.unit]));
        program.at_most(terms, 0.0);
    }
    // Units that are alike are used from the first on.
    for (nth, pair) in units.windows(2).enumerate() {
        let look = |unit: usize| {
            let cores = system.units[unit].cores.iter();
            cores
                .map(|core| &system.cores[*core].kind)
                .collect::<Vec<_>>()
        };
        if look(nth) == look(nth + 1) {
            program.needs(pair[1], pair[0]);
        }
    }
    for apart in &system.apart {
        let places = match apart.by {
            By::Unit => system.units.len(),
            By::Core => system.cores.len(),
        };
        for place in 0..places {
            let terms = ones(&|seat| {
                let at = match apart.by {
                    By::Unit => system.cores[seat.core].unit,
                    By::Core => seat.core,
                };
                at == place && apart.components.contains(&seat.component)
            });
            program.at_most(terms, 1.0);
        }
    }
    program
}

/// The least cost; none if there is no solution, an error if the solver gives up.
fn by_microlp(program: &Program) -> Result<Option<f64>, String> {
    let mut variables = ProblemVariables::new();
    let all: Vec<_> = (program.costs.iter())
        .map(|_| variables.add(variable().binary()))
        .collect();
    let sum = |terms: &mut dyn Iterator<Item = (f64, usize)>| -> Expression {
        terms.map(|(factor, at)| factor * all[at]).sum()
    };
    let costs = program
        .costs
        .iter()
        .enumerate()
        .map(|(at, cost)| (*cost, at));
    let objective = sum(&mut costs.filter(|(cost, _)| *cost != 0.0));
    let mut model = variables.minimise(&objective).using(microlp);
    for row in &program.rows {
        let left = sum(&mut row.terms.iter().copied());
        model = model.with(match row.is_equal {
            true => left.eq(row.limit),
            false => left.leq(row.limit),
        });
    }
    match model.solve() {
        Ok(solution) => Ok(Some(solution.eval(&objective))),
        Err(ResolutionError::Infeasible) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// The cost of the best solution that HiGHS finds in 20 s, and its bound; it reads the program as
/// an LP file.
fn by_highs(program: &Program, python: &str) -> Option<(f64, f64)> {
    const SCRIPT: &str = "
import sys, tempfile, highspy
with tempfile.NamedTemporaryFile('w', suffix='.lp') as file:
    file.write(sys.stdin.read()); file.flush()
    h = highspy.Highs(); h.setOptionValue('output_flag', False)
    h.setOptionValue('mip_rel_gap', 0.0)
    h.setOptionValue('time_limit', 20.0)
    assert h.readModel(file.name) == highspy.HighsStatus.kOk
    h.run()
    status = h.getModelStatus()
    info = h.getInfo()
    if status == highspy.HighsModelStatus.kInfeasible:
        print('none')
    else:
        found = info.primal_solution_status == 2
        print(info.objective_function_value if found else 'inf', info.mip_dual_bound)
";
    let line = |terms: &mut dyn Iterator<Item = (f64, usize)>| {
        let terms = terms.map(|(factor, at)| format!("{factor:+.17} x{at}\n"));
        terms.collect::<String>()
    };
    let costs = program
        .costs
        .iter()
        .enumerate()
        .map(|(at, cost)| (*cost, at));
    let mut text = format!(
        "minimize\n{}subject to\n",
        line(&mut costs.filter(|(cost, _)| *cost != 0.0))
    );
    for row in program.rows.iter().filter(|row| !row.terms.is_empty()) {
        let sign = if row.is_equal { "=" } else { "<=" };
        text += &format!(
            "{}{sign} {:.17}\n",
            line(&mut row.terms.iter().copied()),
            row.limit
        );
    }
    text += "binary\n";
    for at in 0..program.costs.len() {
        text += &format!("x{at}\n");
    }
    text += "end\n";
    let mut child = Command::new(python)
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("HEARTH_HIGHS names a Python");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(text.as_bytes()).expect("Python reads");
    drop(input);
    let output = child.wait_with_output().expect("Python ends");
    assert!(
        output.status.success(),
        "HEARTH_HIGHS names a Python with highspy (pip install highspy)"
    );
    let answer = String::from_utf8_lossy(&output.stdout);
    match answer.trim() {
        "none" => None,
        numbers => {
            let mut numbers = numbers.split(' ').map(|one| one.parse().expect("a number"));
            numbers.next().zip(numbers.next())
        }
    }
}

/// Units and cores of a cost.
fn numbers(cost: f64) -> (usize, usize) {
    let cost = cost.round() as usize;
    (cost / UNIT as usize, cost % UNIT as usize)
}

fn recipe(random: &mut fastrand::Rng, components_max: usize) -> Recipe {
    Recipe {
        components: random.usize(4..=components_max),
        units: Some(random.usize(2..=2 + components_max / 6)),
        bound: Bound::Utilisation([0.69, 1.0][random.usize(..2)]),
        mixing: [Mixing::Any, Mixing::Adjacent, Mixing::Same][random.usize(..3)],
        load: (0.05, [0.2, 0.4, 0.6][random.usize(..3)]),
        sorts: random.usize(1..=2),
        ..Recipe::default()
    }
}

#[test]
fn as_few_units_and_cores_as_an_integer_program() {
    let (mut same, mut none, mut silent) = (0, 0, 0);
    let count = if support::is_deep() { 400 } else { 5 };
    for seed in 0..count {
        let mut random = fastrand::Rng::with_seed(seed);
        let recipe = recipe(&mut random, 9);
        let mut system = recipe.system(seed);
        system.messages.clear();
        let ours = search(&system, &Goals::default(), seed, &mut |_| 0.0);
        match (ours, by_microlp(&program(&system))) {
            (Ok(ours), theirs) => {
                assert!(support::checked(&system, &ours.mapping).is_valid());
                let Ok(Some(cost)) = theirs else {
                    silent += 1;
                    continue;
                };
                let found = (ours.value.units, ours.value.cores);
                assert_eq!(found, numbers(cost), "{recipe:?} {seed}");
                same += 1;
            }
            (Err(error), Ok(Some(cost))) => panic!("{recipe:?} {seed}: {error} and {cost}"),
            (Err(_), _) => none += 1,
        }
    }
    assert!(
        same > count / 3,
        "{same} the same, {none} none, {silent} without an answer"
    );
}

#[test]
fn as_few_units_and_cores_as_highs_finds() {
    if !support::is_deep() {
        return;
    }
    let python = std::env::var("HEARTH_HIGHS").unwrap_or_else(|_| "python3".to_owned());
    let (mut same, mut none, mut open) = (0, 0, 0);
    let count = std::env::var("HEARTH_HIGHS_SYSTEMS").map_or(100, |n| n.parse().expect("a number"));
    for seed in 0..count {
        let mut random = fastrand::Rng::with_seed(1_000_000 + seed);
        let recipe = recipe(&mut random, 40);
        let mut system = recipe.system(seed);
        system.messages.clear();
        let ours = search(&system, &Goals::default(), seed, &mut |_| 0.0);
        match (ours, by_highs(&program(&system), &python)) {
            (Ok(ours), Some((cost, bound))) => {
                assert!(support::checked(&system, &ours.mapping).is_valid());
                let found = UNIT * ours.value.units as f64 + ours.value.cores as f64;
                let least = UNIT * ours.least.units as f64 + ours.least.cores as f64;
                assert!(found < cost + 0.5, "{found}, {cost}: {recipe:?} {seed}");
                assert!(found > bound - 0.5, "{found}, {bound}: {recipe:?} {seed}");
                assert!(least < cost + 0.5, "{least}, {cost}: {recipe:?} {seed}");
                // Costs are whole, so a bound above the next smaller one is a proof.
                match bound > found - 1.0 + 1e-3 {
                    true => same += 1,
                    false => open += 1,
                }
            }
            (Err(SearchError::Nowhere { .. } | SearchError::Impossible), None) => none += 1,
            // It was not proved, and it is right.
            (Err(SearchError::NotFound { .. }), None) => none += 1,
            (ours, theirs) => panic!("{recipe:?} {seed}: {ours:?} and {theirs:?}"),
        }
    }
    let sums = format!("{same} the same, {none} without a mapping, {open} open");
    assert!(same > count / 2, "{sums}");
    std::fs::write(std::env::temp_dir().join("hearth-consolidate-highs"), sums).ok();
}
