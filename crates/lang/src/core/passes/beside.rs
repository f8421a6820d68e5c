//! Marks: calls that run beside what follows them, and loops whose rounds run beside each other.
//!
//! The analysis of futures proves which calls and loops are independent, and names them by their
//! places in the IR. This pass marks them. Where the result of a call is copied from a temporary
//! right behind it, the copy moves behind the wait.

use super::nested_blocks;
use super::parts::WHOLE_MAX;
use crate::core::ir::*;
use std::collections::BTreeMap;

/// A statement that is proved to be independent.
#[derive(Clone, PartialEq, Debug)]
pub struct Mark {
    /// Index into [`Module::functions`].
    pub function: usize,
    /// The statement, counted from 0 in the order of [`look_at_each`](super::look_at_each).
    pub statement: u32,
    pub what: Independent,
}

/// The kind of an independent statement.
#[derive(Clone, PartialEq, Debug)]
pub enum Independent {
    /// A call, with the number of statements in its block, itself included, up to where it has to
    /// be waited for. `copies`: the first of them, behind the call, copies its result.
    Call { until: usize, copies: bool },
    /// A loop.
    Rounds(Vec<Reduction>),
}

/// Marks statements of a module as the marks say.
pub fn run(module: &mut Module, marks: &[Mark]) {
    let mut by_function: BTreeMap<usize, BTreeMap<u32, &Independent>> = BTreeMap::new();
    for mark in marks {
        let of_function = by_function.entry(mark.function).or_default();
        of_function.insert(mark.statement, &mark.what);
    }
    for (index, function) in module.functions.iter_mut().enumerate() {
        let marks = by_function.remove(&index).unwrap_or_default();
        let mut pass = Pass {
            marks,
            statement: 0,
            records: 0,
        };
        // The main sequence that is cut into parts cannot wait in another part.
        let room = match function.is_main() {
            true => WHOLE_MAX.saturating_sub(function.body.len()),
            false => usize::MAX,
        };
        pass.block(&mut function.body, room);
        function.records = pass.records;
    }
}

struct Pass<'m> {
    marks: BTreeMap<u32, &'m Independent>,
    statement: u32,
    records: u32,
}

impl Pass<'_> {
    /// Marks the statements of a block, to which at most `room` may be added.
    fn block(&mut self, block: &mut Block, mut room: usize) {
        let mut waits: Vec<(usize, RecordId, Option<usize>)> = Vec::new();
        for (at, stmt) in block.iter_mut().enumerate() {
            let mark = self.marks.get(&self.statement).copied();
            self.statement += 1;
            match &mut stmt.kind {
                StmtKind::Call { turn, .. } => {
                    *turn = Turn::InOrder;
                    if let Some(Independent::Call { until, copies }) = mark
                        && room > 0
                    {
                        room -= 1;
                        let record = RecordId(self.records);
                        self.records += 1;
                        *turn = Turn::Beside(record);
                        waits.push((at + until, record, copies.then_some(at + 1)));
                    }
                }
                StmtKind::Loop(inner) => {
                    inner.rounds = match mark {
                        Some(Independent::Rounds(reductions)) => Rounds::Apart(reductions.clone()),
                        _ => Rounds::InOrder,
                    };
                }
                _ => {}
            }
            for inner in nested_blocks(&mut stmt.kind) {
                self.block(inner, usize::MAX);
            }
        }
        if waits.is_empty() {
            return;
        }
        let mut old: Vec<Option<Stmt>> = std::mem::take(block).into_iter().map(Some).collect();
        let copies: Vec<usize> = waits.iter().filter_map(|(.., copy)| *copy).collect();
        for at in 0..=old.len() {
            for (_, record, copy) in waits.iter().filter(|(until, ..)| *until == at) {
                let span = block.last().map(|stmt| stmt.span).unwrap_or_default();
                let kind = StmtKind::Await(*record);
                block.push(Stmt { kind, span });
                block.extend(copy.and_then(|copy| old[copy].take()));
            }
            if at < old.len() && !copies.contains(&at) {
                block.extend(old[at].take());
            }
        }
    }
}
