//! A long main sequence: C functions for its parts, and one that runs them.
//!
//! ```text
//! main_sequence_1 … main_sequence_n     a part each, resumable like any function that may park
//! main_sequence_leave_1 …               release the frame's variables, of which there may be many
//! main_sequence                         runs the parts; releases when they end or one is left
//! ```

use super::Emitter;
use crate::core::ir::*;
use crate::core::passes::{look_at_each, statement_target};
use crate::emit::Context;
use crate::types::TypeId;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

/// The mark of C functions that run once and hold no loop of the program: C compilers need not
/// optimise them. It repeats `wrapv`, as some versions of gcc forget the command line's options.
const RUNS_ONCE: &str = "\
#if defined(__clang__)
#define HEARTH_RUNS_ONCE __attribute__((noinline, optnone))
#elif defined(__GNUC__)
#define HEARTH_RUNS_ONCE __attribute__((noinline, optimize(\"O0\", \"wrapv\")))
#else
#define HEARTH_RUNS_ONCE
#endif

";

/// Number of components made alike, one after the other, from which on they are made in a loop.
const RUN_MIN: usize = 4;

/// Groups of variables that one C function releases.
const GROUPS: usize = 128;

pub(super) fn emit(context: &Context<'_>, function: &Function) -> String {
    let name = context.names.function(function.role);
    let mut text = RUNS_ONCE.to_owned();
    let fields = context.layouts.of(function.role).fields.iter();
    let positions = fields.enumerate().map(|(at, slot)| (*slot, at)).collect();
    let mut begin = 0;
    for (part, &end) in function.parts.iter().enumerate() {
        let statements = &function.body[begin..end];
        let mut emitter = Emitter::new(
            context,
            function,
            statements,
            own_slots(function, statements),
        );
        emitter.part(statements, &positions);
        let haste = if has_loop(statements) {
            ""
        } else {
            "HEARTH_RUNS_ONCE "
        };
        text.push_str(&emitter.finish(&format!(
            "{haste}static hearth_step {name}_{}(main_component *self, {name}_frame *frame)",
            part + 1
        )));
        begin = end;
    }
    let leaves = emit_leaves(context, function, &name, &mut text);
    let _ = writeln!(
        text,
        "static hearth_step {name}(main_component *self, {name}_frame *frame)\n{{\n    \
         static hearth_step (*const parts[])(main_component *, {name}_frame *) = {{"
    );
    for part in 1..=function.parts.len() {
        let _ = writeln!(text, "        {name}_{part},");
    }
    let _ = writeln!(
        text,
        "    }};\n    hearth_step step = HEARTH_DONE;\n    \
         while (frame->next_part < {}) {{\n        step = parts[frame->next_part](self, frame);\n        \
         if (step == HEARTH_BLOCKED)\n            return step;\n        \
         if (step == HEARTH_RAISED)\n            break;\n        \
         frame->state = 0;\n        frame->next_part++;\n    }}",
        function.parts.len()
    );
    for leave in 1..=leaves {
        let _ = writeln!(text, "    {name}_leave_{leave}(self, frame);");
    }
    text.push_str("    return step;\n}\n\n");
    text
}

fn has_loop(statements: &[Stmt]) -> bool {
    let mut found = false;
    look_at_each(statements, &mut |stmt| {
        found |= matches!(stmt, StmtKind::Loop(_) | StmtKind::Versioned { .. });
    });
    found
}

/// The slots outside the frame that some statements store into.
fn own_slots(function: &Function, statements: &[Stmt]) -> Vec<SlotId> {
    let mut own = BTreeSet::new();
    look_at_each(statements, &mut |stmt| {
        let target = statement_target(stmt);
        own.extend(target.filter(|slot| function.slots[slot.index()].storage != Storage::Frame));
    });
    own.into_iter().collect()
}

/// Emits functions that release what the frame holds, and returns their number.
fn emit_leaves(context: &Context<'_>, function: &Function, name: &str, text: &mut String) -> usize {
    let layout = context.layouts.of(function.role);
    let counted = |slot: &SlotId| function.slots[slot.index()].counted;
    let alike = |a: &SlotId, b: &SlotId| {
        let (a, b) = (&function.slots[a.index()], &function.slots[b.index()]);
        a.counted == b.counted && a.ty == b.ty
    };
    let groups: Vec<&[SlotId]> = layout
        .fields
        .chunk_by(alike)
        .filter(|group| counted(&group[0]))
        .collect();
    for (leave, groups) in groups.chunks(GROUPS).enumerate() {
        let mut emitter = Emitter::new(context, function, &[], Vec::new());
        for group in groups {
            emitter.release_group(group);
        }
        let body = emitter.body;
        let _ = writeln!(
            text,
            "static void {name}_leave_{}(main_component *self, {name}_frame *frame)\n{{\n    \
             hearth_component *const base = &self->base;\n    (void)base;\n{body}}}\n",
            leave + 1
        );
    }
    groups.len().div_ceil(GROUPS)
}

impl Emitter<'_, '_> {
    /// Statements of a part. Components made alike, one after the other, are made in a loop.
    fn part(&mut self, mut statements: &[Stmt], positions: &HashMap<SlotId, usize>) {
        while let Some(first) = statements.first() {
            let run = run_of_components(statements, positions);
            let StmtKind::NewComponent {
                target,
                component,
                constructor,
                ..
            } = &first.kind
            else {
                self.statement(first);
                statements = &statements[1..];
                continue;
            };
            if run < RUN_MIN {
                statements[..run]
                    .iter()
                    .for_each(|stmt| self.statement(stmt));
            } else {
                self.place_mark(first.span);
                let ty = self.slot_type(*target);
                self.each_of_group(ty, *target, run, |this| {
                    this.new_component_in("slots_[n_]", *component, *constructor, &[]);
                });
            }
            statements = &statements[run..];
        }
    }

    /// A loop over `count` fields of one type that lie side by side in the frame, as `slots_[n_]`.
    fn each_of_group(
        &mut self,
        ty: TypeId,
        first: SlotId,
        count: usize,
        body: impl FnOnce(&mut Self),
    ) {
        let first = self.layout.slot_names[first.index()].clone();
        let frame = self.context.names.function(self.function.role);
        let declaration = self.context.declare(ty, "*slots_");
        let pointer = self.context.declare(ty, "*");
        self.line("{");
        self.line(format!(
            "    {declaration} = ({pointer})(void *)((char *)frame + offsetof({frame}_frame, {first}));"
        ));
        self.line(format!("    for (size_t n_ = 0; n_ < {count}; n_++) {{"));
        self.depth += 2;
        body(self);
        self.depth -= 2;
        self.line("    }");
        self.line("}");
    }

    /// Releases fields of one type that lie side by side in the frame.
    fn release_group(&mut self, group: &[SlotId]) {
        let ty = self.function.slots[group[0].index()].ty;
        let (SlotType::Of(ty), true) = (ty, group.len() > 1) else {
            return group.iter().for_each(|&slot| self.release_at_exit(slot));
        };
        let call = self.release_call(ty, "slots_[n_]");
        self.each_of_group(ty, group[0], group.len(), |this| {
            this.line(format!("{call};"));
            this.line("slots_[n_] = NULL;");
        });
    }
}

/// The number of statements at the beginning, at least 1, that make components of one kind without
/// arguments in variables that lie side by side in the frame.
fn run_of_components(statements: &[Stmt], positions: &HashMap<SlotId, usize>) -> usize {
    let made = |stmt: &Stmt| match &stmt.kind {
        StmtKind::NewComponent {
            target,
            component,
            constructor,
            args,
        } if args.is_empty() => Some((*positions.get(target)?, *component, *constructor)),
        _ => None,
    };
    let Some((at, component, constructor)) = made(&statements[0]) else {
        return 1;
    };
    let next = |(i, stmt): (usize, &Stmt)| made(stmt) == Some((at + i, component, constructor));
    let run = statements.iter().enumerate().take_while(|&item| next(item));
    run.count()
}
