//! The work that a piece of program is, as far as its text tells.

use crate::core::ir::*;
use crate::core::passes::blocks_of;
use crate::tree::{ProcCode, ProcId, Program};

/// Rounds of a loop whose bounds are not in the text.
const ROUNDS_UNKNOWN: u64 = 1_000;
/// The work of a recursive procedure.
const RECURSIVE: u64 = 1_000_000;
/// The work of one of the runtime's procedures.
const NATIVE: u64 = 20;

/// Work below this many statements is not worth a message to another core and back, which takes
/// some hundred nanoseconds where it is cheapest. At run time a measured bound decides again.
pub(super) const WORTH_MIN: u64 = 500;

/// The work of procedures.
pub(super) struct Weights {
    procs: Vec<u64>,
}

impl Weights {
    pub(super) fn new(
        program: &Program,
        module: &Module,
        of_proc: &[Option<usize>],
        is_recursive: &[bool],
    ) -> Weights {
        let mut weights = Weights {
            procs: vec![NATIVE; program.procs.len()],
        };
        // A procedure calls only what is declared before it, recursion aside.
        for (index, proc) in program.procs.iter().enumerate() {
            if let (ProcCode::Body(_), Some(function)) = (&proc.code, of_proc[index]) {
                weights.procs[index] = if is_recursive[index] {
                    RECURSIVE
                } else {
                    weights.of_block(&module.functions[function].body)
                };
            }
        }
        weights
    }

    pub(super) fn of_proc(&self, proc: ProcId) -> u64 {
        self.procs[proc.index()]
    }

    pub(super) fn of_block(&self, block: &[Stmt]) -> u64 {
        let works = block.iter().map(|stmt| self.of(stmt));
        works.fold(0, u64::saturating_add)
    }

    /// The work of a statement.
    pub(super) fn of(&self, stmt: &Stmt) -> u64 {
        match &stmt.kind {
            StmtKind::Call {
                callee: Callee::Proc(proc),
                ..
            } => self.of_proc(*proc).saturating_add(1),
            StmtKind::Loop(inner) => {
                let round = self
                    .of_block(&inner.prepare)
                    .saturating_add(self.of_block(&inner.body))
                    .saturating_add(1);
                round.saturating_mul(rounds(inner).unwrap_or(ROUNDS_UNKNOWN))
            }
            StmtKind::NewArray { lengths, .. } => {
                let lengths = lengths.iter().map(|&n| u64::from(n));
                lengths.fold(1, u64::saturating_mul) / 8 + 1
            }
            kind => {
                let inner = blocks_of(kind)
                    .into_iter()
                    .map(|block| self.of_block(block));
                inner.max().unwrap_or(0).saturating_add(1)
            }
        }
    }
}

/// The number of rounds, if both bounds are in the text.
fn rounds(inner: &Loop) -> Option<u64> {
    let (Value::Int(from, _), Value::Int(to, _)) = (&inner.from, &inner.to) else {
        return None;
    };
    let step = i64::from(inner.step);
    let distance = if step > 0 { to - from } else { from - to };
    Some(if distance < 0 {
        0
    } else {
        (distance / step.abs()) as u64 + 1
    })
}
