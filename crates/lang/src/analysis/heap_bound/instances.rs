//! Bounds on the number of components of each kind that are ever created.
//!
//! Instances created in the main sequence, in a constructor or an initialiser, or in a procedure
//! that these call, is made as often as they run; a loop between literals multiplies. A behaviour
//! runs any number of times, and so does whatever is called as a value or calls itself.

use super::targets_of;
use crate::core::Lowered;
use crate::core::ir::*;
use crate::core::passes::blocks_of;
use crate::tree::{ComponentId, ProcId};
use crate::types::TypeId;

/// Upper bound on a number of executions; None if there is none.
type Times = Option<u64>;

fn plus(a: Times, b: Times) -> Times {
    a?.checked_add(b?)
}

fn times(a: Times, b: Times) -> Times {
    match (a, b) {
        (Some(0), _) | (_, Some(0)) => Some(0),
        (a, b) => a?.checked_mul(b?),
    }
}

/// A place that makes or calls: in which function, and how often each time that this runs.
#[derive(Clone, Copy)]
struct Site {
    function: usize,
    often: Times,
}

pub(super) struct Instances<'a> {
    functions: &'a [Function],
    /// By component, the places of its creation.
    made: Vec<Vec<Site>>,
    /// By procedure: where it is called.
    called: Vec<Vec<Site>>,
    is_value: Vec<bool>,
    /// By function; the inner None while it is being found.
    known: Vec<Option<Option<Times>>>,
}

impl<'a> Instances<'a> {
    pub(super) fn new(input: &Lowered<'a>) -> Instances<'a> {
        let functions = &input.module.functions;
        let mut instances = Instances {
            functions,
            made: input
                .program
                .components
                .iter()
                .map(|_| Vec::new())
                .collect(),
            called: input.program.procs.iter().map(|_| Vec::new()).collect(),
            is_value: vec![false; input.program.procs.len()],
            known: vec![None; functions.len()],
        };
        for proc in &input.module.valued {
            instances.is_value[proc.index()] = true;
        }
        for (index, function) in functions.iter().enumerate() {
            instances.look(index, &function.body, Some(1));
        }
        instances
    }

    fn look(&mut self, function: usize, block: &Block, often: Times) {
        for stmt in block {
            let site = Site { function, often };
            match &stmt.kind {
                StmtKind::NewComponent { component, .. } => {
                    self.made[component.index()].push(site);
                }
                StmtKind::Call {
                    callee: Callee::Proc(proc),
                    ..
                } => self.called[proc.index()].push(site),
                StmtKind::Loop(l) => {
                    self.look(function, &l.prepare, None);
                    self.look(function, &l.body, times(often, rounds(l)));
                    continue;
                }
                StmtKind::Versioned { fast, slow, .. } => {
                    for l in [fast, slow] {
                        self.look(function, &l.prepare, None);
                        self.look(function, &l.body, times(often, rounds(l)));
                    }
                    continue;
                }
                _ => {}
            }
            for inner in blocks_of(&stmt.kind) {
                self.look(function, inner, often);
            }
        }
    }

    /// The number of components of a kind.
    pub(super) fn of(&mut self, component: ComponentId) -> Times {
        let sites = self.made[component.index()].clone();
        self.sum(&sites)
    }

    fn sum(&mut self, sites: &[Site]) -> Times {
        let mut sum = Some(0);
        for site in sites {
            let runs = self.runs(site.function);
            sum = plus(sum, times(runs, site.often));
        }
        sum
    }

    /// The number of runs of a function.
    fn runs(&mut self, function: usize) -> Times {
        match self.known[function] {
            Some(Some(known)) => return known,
            // It is on the way to itself.
            Some(None) => return None,
            None => self.known[function] = Some(None),
        }
        let runs = match self.functions[function].role {
            Role::Main => Some(1),
            Role::Members(component) | Role::Constructor(component, _) => self.of(component),
            Role::Behaviour(component) => times(self.of(component), None),
            Role::Proc(proc) => self.calls(proc),
        };
        self.known[function] = Some(Some(runs));
        runs
    }

    fn calls(&mut self, proc: ProcId) -> Times {
        if self.is_value[proc.index()] {
            return None;
        }
        let sites = self.called[proc.index()].clone();
        self.sum(&sites)
    }
}

/// The rounds of a loop between literals whose body leaves its variable alone, and whose variable
/// does not wrap on the way out.
fn rounds(l: &Loop) -> Times {
    let (Value::Int(from, ty), Value::Int(to, _)) = (&l.from, &l.to) else {
        return None;
    };
    let mut targets = Vec::new();
    targets_of(&l.body, &mut targets);
    let step = i64::from(l.step);
    let values = match *ty {
        TypeId::INTEGER => i64::from(i32::MIN)..=i64::from(i32::MAX),
        TypeId::UNSIGNED => 0..=i64::from(u32::MAX),
        _ => 0..=i64::from(u8::MAX),
    };
    if targets.contains(&l.variable) || step == 0 || !values.contains(&(to + step)) {
        return None;
    }
    let distance = if step > 0 { to - from } else { from - to };
    if distance < 0 {
        return Some(0);
    }
    u64::try_from(distance / step.abs() + 1).ok()
}
