//! Comparison of the optimiser with the optimum of an integer program.
//!
//! For component i on slot s the program has x(i, s), one of which is 1 for each i. For a
//! connection e and slots s, t it has y(e, s, t) ≥ 0, whose sums are the x of its ends, so that
//! where the x are whole y is their product. Loads are then linear; B is at least each of them and
//! each core's, and J = B + C / n. Working sets, whose part is not linear, and requests are left
//! out; `talk.rs` compares with them by trying all placements.

mod support;

use good_lp::{Expression, ProblemVariables, Solution, SolverModel, Variable, microlp, variable};
use hearth_place::cost::{CostOptions, evaluate};
use hearth_place::graph::{Connection, Graph, Turn};
use hearth_place::slots::{Machine, Message, Share};
use hearth_place::talk::{EXACT_MAX, Effort, talk};

/// Number of random instances; the solver is slow in a build for tests.
const INSTANCES: u64 = if cfg!(debug_assertions) { 24 } else { 240 };

/// y of one connection, by slots of its ends, and the cost of a message there.
struct Crossing {
    from: usize,
    to: usize,
    messages: f64,
    cells: Vec<Vec<(Variable, Share)>>,
}

fn message(connection: &Connection, options: &CostOptions) -> Message {
    Message {
        bytes: connection.bytes.value,
        carrier: connection.carrier.unwrap_or(options.carrier),
        kind: connection.kind,
    }
}

/// The least J, by the solver.
fn optimum(graph: &Graph, machine: &Machine, options: &CostOptions) -> f64 {
    let slots: Vec<_> = machine.all().collect();
    let mut variables = ProblemVariables::new();
    let x: Vec<Vec<Variable>> = graph
        .components
        .iter()
        .map(|_| {
            slots
                .iter()
                .map(|_| variables.add(variable().binary()))
                .collect()
        })
        .collect();
    let bottleneck = variables.add(variable().min(0.0));
    let crossings: Vec<Crossing> = graph
        .connections
        .iter()
        .filter(|c| c.from != c.to)
        .map(|c| {
            let message = message(c, options);
            let mut cell = |s, t| {
                let share = machine.messages().share(s, t, &message);
                (variables.add(variable().min(0.0).max(1.0)), share)
            };
            Crossing {
                from: c.from.index(),
                to: c.to.index(),
                messages: c.messages.value,
                cells: slots
                    .iter()
                    .map(|s| slots.iter().map(|t| cell(*s, *t)).collect())
                    .collect(),
            }
        })
        .collect();
    let mut loads = vec![Expression::from(0.0); slots.len()];
    let mut own = Expression::from(0.0);
    let mut total = Expression::from(0.0);
    for (component, row) in graph.components.iter().zip(&x) {
        for (load, x) in loads.iter_mut().zip(row) {
            *load += component.work_ns.value * *x;
        }
    }
    // Messages of a component to itself move with it.
    for c in graph.connections.iter().filter(|c| c.from == c.to) {
        let message = message(c, options);
        for (slot, x) in slots.iter().zip(&x[c.from.index()]) {
            let share = machine.messages().share(*slot, *slot, &message);
            loads[slot.index()] += c.messages.value * share.total_ns() * *x;
            own += c.messages.value * share.total_ns() * *x;
        }
    }
    for crossing in &crossings {
        for (s, row) in crossing.cells.iter().enumerate() {
            for (t, (y, share)) in row.iter().enumerate() {
                loads[s] += crossing.messages * share.send_ns * *y;
                loads[t] += crossing.messages * share.receive_ns * *y;
                total += crossing.messages * share.total_ns() * *y;
            }
        }
    }
    let divisor = slots.len().min(graph.components.len()) as f64;
    let mut model = variables
        .minimise(Expression::from(bottleneck) + (total + own.clone()) / divisor)
        .using(microlp);
    for row in &x {
        let sum: Expression = row.iter().sum();
        model = model.with(sum.eq(1.0));
    }
    for crossing in &crossings {
        for at in 0..slots.len() {
            let sent: Expression = crossing.cells[at].iter().map(|(y, _)| *y).sum();
            let received: Expression = crossing.cells.iter().map(|row| row[at].0).sum();
            model = model.with(sent.eq(x[crossing.from][at]));
            model = model.with(received.eq(x[crossing.to][at]));
        }
    }
    for core in machine.cores() {
        let all: Expression = core.iter().map(|slot| loads[slot.index()].clone()).sum();
        model = model.with((all / options.smt_yield).leq(bottleneck));
    }
    for load in loads {
        model = model.with(load.leq(bottleneck));
    }
    for (component, parts) in graph.components.iter().enumerate() {
        if let Some(pin) = parts.pinned.and_then(|cpu| machine.slot_of(cpu)) {
            model = model.with(Expression::from(x[component][pin.index()]).eq(1.0));
        }
    }
    let solution = model.solve().expect("some placement is possible");
    let objective = solution.eval(bottleneck);
    let talk = crossings.iter().map(|crossing| {
        let cells = crossing.cells.iter().flatten();
        let taken = cells.map(|(y, share)| share.total_ns() * solution.value(*y));
        crossing.messages * taken.sum::<f64>()
    });
    objective + (talk.sum::<f64>() + solution.eval(own)) / divisor
}

#[test]
fn within_a_hundredth_of_the_optimum() {
    let options = CostOptions::default();
    let mut exact = 0;
    for seed in 0..INSTANCES {
        let mut random = fastrand::Rng::with_seed(5000 + seed);
        let (description, most) = [
            ("1 package, 2 cores, l2 1M per core", EXACT_MAX),
            ("2 packages, 1 core, l2 1M per core", EXACT_MAX),
            ("1 package, 1 core, 2 threads, l2 1M per core", EXACT_MAX),
            ("3 packages, 1 core, l2 1M per core", 8),
            ("2 packages, 2 cores, 1 node, l2 4M per package", 6),
        ][random.usize(..5)];
        let machine = support::machine(description);
        let count = random.usize(2..=most);
        let mut graph = support::graph(&mut random, count);
        for component in &mut graph.components {
            component.working_set_bytes.value = 0.0;
        }
        for connection in &mut graph.connections {
            connection.turn = Turn::Free;
        }
        let best = optimum(&graph, &machine, &options);
        let effort = Effort {
            seed,
            ..Effort::default()
        };
        let ours = talk(&graph, &machine, &options, effort, None).expect("a placement");
        let cost = evaluate(&graph, &machine, &options, &ours.placement).expect("it fits");
        let share = cost.total_ns / best;
        // The solver's tolerance is some 1e-6.
        assert!(
            share <= 1.01,
            "seed {seed}, {count} components: {share} times the optimum"
        );
        assert!(
            share >= 1.0 - 1e-5,
            "seed {seed}: {share}, the program is another problem"
        );
        exact += u64::from(share <= 1.0 + 1e-5);
    }
    assert!(exact * 10 >= INSTANCES * 9, "{exact} of {INSTANCES} exact");
}
