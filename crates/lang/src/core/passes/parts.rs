//! Parts: a long main sequence becomes several C functions.
//!
//! C compilers take time that grows with the square of a function's length, or worse. A main
//! sequence that creates and connects thousands of components runs once, and nothing is lost when
//! it is cut. What several parts name goes into the frame, and so does all that a part leaves
//! behind: the function that runs the parts releases it when the last one has ended, or when one is
//! left by an exception.

use super::{each_statement, statement_target, statement_values, visit_value};
use crate::core::ir::*;

/// Statements of a body that stays in one piece.
pub(super) const WHOLE_MAX: usize = 512;
/// Statements of a part. Shorter ones cost C compilers more for each function than they save.
const PART: usize = 128;

pub fn run(function: &mut Function) {
    // An object in a C local would end with its part. The lowering makes none in the main
    // sequences that are long by their text.
    let cuttable = function.body.len() > WHOLE_MAX
        && function.is_main()
        && !function.body.iter().any(|stmt| is_on_stack(&stmt.kind));
    if !cuttable {
        return;
    }
    let mut first_part = vec![None; function.slots.len()];
    let slots = &mut function.slots;
    for (part, statements) in function.body.chunks_mut(PART).enumerate() {
        for stmt in statements {
            each_slot(stmt, &mut |slot| {
                if *first_part[slot.index()].get_or_insert(part) != part {
                    slots[slot.index()].storage = Storage::Frame;
                }
            });
        }
    }
    release_at_the_end(function);
    let length = function.body.len();
    function.parts = (0..length.div_ceil(PART))
        .map(|part| ((part + 1) * PART).min(length))
        .collect();
    function.blocks = true;
    function.raises = true;
}

/// Leaves the last releases to whoever runs the parts, as it releases the frame's slots anyway.
fn release_at_the_end(function: &mut Function) {
    while let Some(Stmt {
        kind: StmtKind::Release(slot),
        ..
    }) = function.body.last()
        && function.slots[slot.index()].storage == Storage::Frame
    {
        function.body.pop();
    }
}

fn is_on_stack(stmt: &StmtKind) -> bool {
    matches!(
        stmt,
        StmtKind::NewArray { on_stack: true, .. } | StmtKind::NewStruct { on_stack: true, .. }
    )
}

/// Visits each slot that a statement, or one inside it, names.
fn each_slot(stmt: &mut Stmt, visit: &mut dyn FnMut(SlotId)) {
    let mut own = |stmt: &mut StmtKind| {
        statement_target(stmt).into_iter().for_each(&mut *visit);
        match stmt {
            StmtKind::Release(slot)
            | StmtKind::PortAssign { value: slot, .. }
            | StmtKind::Send {
                moved: Some(slot), ..
            } => visit(*slot),
            StmtKind::Versioned { guards, .. } => {
                for guard in guards {
                    if let Guard::Induction { start, .. } = guard {
                        visit(*start);
                    }
                }
            }
            _ => {}
        }
        statement_values(stmt, &mut |value| {
            visit_value(value, &mut |v| {
                if let Value::Slot(slot) = v {
                    visit(*slot);
                }
            });
        });
    };
    own(&mut stmt.kind);
    for inner in super::nested_blocks(&mut stmt.kind) {
        each_statement(inner, &mut own);
    }
}
