//! Calls beside others, waits for them, and loops whose rounds run beside each other.

use super::Emitter;
use super::mentions::Mentions;
use crate::core::ir::*;
use crate::core::passes::{look_at_each, statement_target};
use crate::emit::beside::{Copies, Copy, each_loop, needs_its_component};
use crate::tree::{ProcCode, ProcId};
use crate::types::TypeId;
use std::collections::BTreeSet;
use std::fmt::Write;

impl Emitter<'_, '_> {
    /// Whether this copy has records.
    pub(super) fn divides(&self) -> bool {
        self.context.copies.any
            && matches!(self.copy, Copy::Only | Copy::Divided)
            && self.function.parts.is_empty()
            && !self.is_of_rounds
    }

    fn number(&self) -> usize {
        self.context.functions[&self.function.role]
    }

    /// The depth of calls from here.
    pub(super) fn depth_inside(&self) -> &'static str {
        match (self.copy, self.has_marks) {
            (Copy::Divided, true) => "depth_in + 1",
            (Copy::Divided, false) => "depth_in",
            _ => "0",
        }
    }

    /// A call of a procedure that does not block, from this copy, as an expression.
    pub(super) fn copied_call(&self, proc: ProcId, args: &[Argument], depth: &str) -> String {
        let copy = match self.copy {
            Copy::Only | Copy::Divided => Copy::Divided,
            other => other,
        };
        let name = self.context.copy_name(proc, copy);
        let first = self.context.first_arguments(proc, copy, depth);
        format!("{name}({})", self.arguments(&first, args))
    }

    /// In the divided copy of a procedure that calls itself: a call deep enough is a piece, and
    /// runs in order.
    pub(super) fn piece_first(&mut self) {
        let Role::Proc(proc) = self.function.role else {
            return;
        };
        if self.copy != Copy::Divided || !self.context.copies.is_grained(proc) {
            return;
        }
        let grain = self.context.copies.grain_of(proc);
        let name = self.context.copy_name(proc, Copy::Piece);
        let mut arguments = self.context.first_arguments(proc, Copy::Piece, "");
        for (_, parameter) in self.context.parameters(self.function) {
            let _ = write!(arguments, ", {parameter}");
        }
        self.line(format!("if (hearth_grain_is_piece(&{grain}, depth_in)) {{"));
        self.line("    uint64_t begun_0 = hearth_piece_begins(depth_in);");
        let (store, end) = match self.function.result {
            TypeId::VOID => ("", "return;"),
            _ => ("result = ", "return result;"),
        };
        self.line(format!("    {store}{name}({arguments});"));
        self.line("    if (begun_0)");
        self.line(format!("        hearth_piece_ended(&{grain}, begun_0);"));
        self.line(format!("    {end}"));
        self.line("}");
    }

    /// Whether a call beside others can be a record here.
    pub(super) fn can_be_record(&self, proc: ProcId) -> bool {
        self.divides()
            && matches!(
                self.context.input.program.procs[proc.index()].code,
                ProcCode::Body(_)
            )
            && !self.context.input.effects.of_proc(proc).blocks
            && self.context.copies.can_move(proc)
    }

    /// A call that may run up to its `Await`.
    pub(super) fn call_beside(
        &mut self,
        record: RecordId,
        target: Option<SlotId>,
        proc: ProcId,
        args: &[Argument],
    ) {
        let name = format!("hearth_call_{}_{}", self.number(), record.0);
        let variable = format!("record_{}", record.0);
        self.add_record(&name, proc);
        let copies = &self.context.copies;
        let is_grained = copies.is_grained(proc);
        let grain = match is_grained {
            true => copies.grain_of(proc),
            false => copies.grain(name.clone(), "HEARTH_GRAIN_CALL"),
        };
        self.records.insert(record, (name.clone(), target));
        self.line(format!("if (hearth_grain_is_open(&{grain})) {{"));
        if self.context.input.program.procs[proc.index()].bound {
            self.line(format!("    {variable}.self = self;"));
        }
        for (number, argument) in args.iter().enumerate() {
            let value = self.bare(&argument.value);
            self.line(format!("    {variable}.argument_{number} = {value};"));
        }
        let depth = match self.copy {
            Copy::Divided => "depth_in + 1",
            _ => "1",
        };
        self.line(format!(
            "    hearth_beside(&{variable}.record, base, {name}_run, &{grain}, {depth}, {});",
            !is_grained
        ));
        self.line("} else {");
        self.depth += 1;
        self.call_in_order(target, proc, args);
        self.depth -= 1;
        self.line("}");
    }

    /// Whether this copy calls another than the ordinary one of the procedure.
    pub(super) fn calls_copies(&self, proc: ProcId) -> bool {
        match self.copy {
            Copy::Ordinary => false,
            Copy::Only => self.context.copies.is_divided(proc) && self.function.parts.is_empty(),
            Copy::Piece | Copy::Divided => true,
        }
    }

    /// Calls a procedure that does not block, in this copy.
    pub(super) fn call_in_order(
        &mut self,
        target: Option<SlotId>,
        proc: ProcId,
        args: &[Argument],
    ) {
        let call = self.copied_call(proc, args, self.depth_inside());
        if self.copy == Copy::Only && self.context.copies.is_grained(proc) {
            let this = match self.context.input.program.procs[proc.index()].bound {
                true => "self",
                false => "base",
            };
            let grain = self.context.copies.grain_of(proc);
            let ordinary = format!(
                "{}({})",
                self.context.names.proc(proc),
                self.arguments(this, args)
            );
            self.line(format!("if (hearth_grain_is_open(&{grain}))"));
            self.depth += 1;
            self.assign_call(target, &call);
            self.depth -= 1;
            self.line("else");
            self.depth += 1;
            self.assign_call(target, &ordinary);
            self.depth -= 1;
        } else {
            self.assign_call(target, &call);
        }
        if self.context.function(Role::Proc(proc)).raises {
            self.check_raised();
        }
    }

    /// The struct of a record and the function that runs its call.
    fn add_record(&self, name: &str, proc: ProcId) {
        let context = self.context;
        let function = context.function(Role::Proc(proc));
        let mut fields = String::from("    hearth_record record;\n");
        if let Some(owner) = context.owner(function.role) {
            let owner = context.names.component(owner);
            let _ = writeln!(fields, "    {owner}_component *self;");
        }
        let mut arguments = context
            .first_arguments(proc, Copy::Divided, "depth_in")
            .replace("self", "call->self");
        for (number, (ty, _)) in context.parameters(function).into_iter().enumerate() {
            let field = format!("argument_{number}");
            let _ = writeln!(fields, "    {};", context.declare(ty, &field));
            let _ = write!(arguments, ", call->{field}");
        }
        let mut stores = String::new();
        if function.result != TypeId::VOID {
            let _ = writeln!(
                fields,
                "    {};",
                context.declare(function.result, "result")
            );
            stores.push_str("call->result = ");
        }
        let callee = context.copy_name(proc, Copy::Divided);
        let run = format!(
            "static void {name}_run(hearth_record *record, hearth_component *base, uint32_t depth_in)"
        );
        let types =
            format!("typedef struct {{\n{fields}}} {name};\n__attribute__((unused)) {run};\n");
        let text = format!(
            "{run}\n{{\n    {name} *call = ({name} *)record;\n    (void)call;\n    (void)depth_in;\n    \
             {stores}{callee}({arguments});\n}}\n\n"
        );
        context.copies.add(name, &types, text);
    }

    /// Waits for a call.
    pub(super) fn await_call(&mut self, record: RecordId) {
        let Some((_, target)) = self.records.get(&record).cloned() else {
            return; // it came to its end where it stands
        };
        let variable = format!("record_{}", record.0);
        self.line(format!("if ({variable}.record.slot != 0) {{"));
        self.depth += 1;
        self.line(format!("hearth_await(&{variable}.record, base);"));
        if let Some(slot) = target {
            let slot = self.slot_name(slot);
            self.line(format!("{slot} = {variable}.result;"));
        }
        self.check_raised();
        self.depth -= 1;
        self.line("}");
    }

    /// Waits for all calls that are open where the function is left by an exception, the latest
    /// first: so that of the earliest of those that raised one is in flight at the end.
    pub(super) fn await_all(&mut self) {
        let records: Vec<(RecordId, Option<SlotId>)> = self
            .records
            .iter()
            .map(|(record, (_, target))| (*record, *target))
            .collect();
        for (record, target) in records.into_iter().rev() {
            let variable = format!("record_{}", record.0);
            self.line(format!("if ({variable}.record.slot != 0) {{"));
            self.line(format!("    hearth_await(&{variable}.record, base);"));
            if let Some(slot) = target {
                let slot = self.slot_name(slot);
                self.line(format!("    {slot} = {variable}.result;"));
            }
            self.line("}");
        }
    }

    /// Declarations of records.
    pub(super) fn record_declarations(&self) -> String {
        let mut text = String::new();
        for (record, (name, _)) in &self.records {
            let _ = writeln!(text, "    {name} record_{};", record.0);
            let _ = writeln!(text, "    record_{}.record.slot = 0;", record.0);
        }
        text
    }

    // ---- rounds -------------------------------------------------------------------------------

    /// A loop whose rounds may run beside each other. False: it is to run in order.
    pub(super) fn rounds_beside(&mut self, l: &Loop, reductions: &[Reduction]) -> bool {
        if !self.divides() || !l.counted || reductions.len() * 8 > 64 {
            return false;
        }
        let Some(inside) = self.inside_of(l, reductions) else {
            return false;
        };
        self.loops += 1;
        let kind = match self.copy {
            Copy::Divided => "divided",
            _ => "only",
        };
        let name = format!("hearth_rounds_{}_{kind}_{}", self.number(), self.loops);
        let (given, has_sums) = self.add_rounds(&name, l, reductions, &inside);
        let copies = &self.context.copies;
        let grain = copies.grain(name.clone(), "HEARTH_GRAIN_ROUNDS");
        let (from, to) = (self.value(&l.from), self.value(&l.to));
        self.line("{");
        self.depth += 1;
        self.line(format!(
            "const int64_t first_0 = {from}, count_0 = ((int64_t){to} - first_0 + {}) / {};",
            l.step, l.step
        ));
        self.line(format!(
            "if (hearth_grain_has_rounds(&{grain}, count_0)) {{"
        ));
        self.depth += 1;
        let fields: Vec<String> = given
            .iter()
            .map(|(field, value)| format!(".{field} = {value}"))
            .collect();
        self.line(format!("{name} given_0 = {{ {} }};", fields.join(", ")));
        let (mut sums, mut joins) = ("NULL".to_owned(), "NULL, &given_0, NULL, 0".to_owned());
        if has_sums {
            let starts: Vec<String> = reductions
                .iter()
                .enumerate()
                .map(|(n, r)| format!(".sum_{n} = {}", self.slot_name(r.slot)))
                .collect();
            self.line(format!("{name}_sums sums_0 = {{ {} }};", starts.join(", ")));
            sums = "&sums_0".into();
            joins = format!("{name}_join, &given_0, &{name}_neutral, sizeof({name}_sums)");
        }
        self.line(format!(
            "hearth_run_rounds(&(hearth_rounds){{ {name}_run, {joins}, &{grain} }}, base, {}, {sums}, count_0);",
            match self.copy {
                Copy::Divided => "depth_in",
                _ => "0",
            }
        ));
        if has_sums {
            for (n, reduction) in reductions.iter().enumerate() {
                let slot = self.slot_name(reduction.slot);
                self.line(format!("{slot} = sums_0.sum_{n};"));
            }
        }
        self.check_raised();
        self.depth -= 1;
        self.line("} else {");
        self.depth += 1;
        self.repeat_in_order(l);
        self.depth -= 1;
        self.line("}");
        self.depth -= 1;
        self.line("}");
        true
    }

    /// The slots that each round has for itself; None if some slot is neither that nor given from
    /// outside.
    fn inside_of(&self, l: &Loop, reductions: &[Reduction]) -> Option<BTreeSet<SlotId>> {
        if needs_its_component(&l.body) || calls_fixed(&l.body, &self.context.copies) {
            return None;
        }
        let mut inside = own_slots_of(&l.body);
        for slot in &inside {
            let data = &self.function.slots[slot.index()];
            let is_sum = reductions.iter().any(|r| r.slot == *slot);
            let is_fresh = l.fresh.contains(&slot.0) || is_of_body(&l.body, *slot);
            if !is_sum && (!is_fresh || data.storage == Storage::Frame) {
                return None;
            }
        }
        inside.retain(|slot| !reductions.iter().any(|r| r.slot == *slot));
        let storage_of = |slot: SlotId| self.function.slots[slot.index()].storage;
        let in_frame = storage_of(l.variable) == Storage::Frame;
        (!in_frame && !inside.contains(&l.variable)).then_some(inside)
    }

    /// The body of the function of a loop's rounds, with its way out.
    fn finish_rounds(&mut self) -> String {
        let mut text = std::mem::take(&mut self.body);
        if self.leaves {
            text.push_str("    return;\nleave:;\n");
            for slot in self.counted_slots() {
                self.release_at_exit(slot);
            }
            text.push_str(&std::mem::take(&mut self.body));
        }
        text
    }

    /// Declarations of what each round has for itself.
    fn head_of_rounds(&self, inside: &BTreeSet<SlotId>, mentions: &Mentions<'_>) -> String {
        let mut head = String::new();
        for &id in inside {
            let slot = &self.function.slots[id.index()];
            let name = &self.layout.slot_names[id.index()];
            if slot.storage != Storage::Register || !mentions.any_of(name) {
                continue;
            }
            let declaration = self.slot_declaration(slot.ty, name);
            let _ = match slot.counted {
                true => writeln!(head, "    {declaration} = {};", self.slot_zero(slot.ty)),
                false => writeln!(head, "    {declaration};"),
            };
            if !mentions.is_read(name) {
                let _ = writeln!(head, "    (void){name};");
            }
        }
        self.stack_objects(mentions, &mut head);
        head
    }

    /// The structs and functions of a loop's rounds. Returns the fields to give with their values,
    /// and whether there are sums.
    fn add_rounds(
        &self,
        name: &str,
        l: &Loop,
        reductions: &[Reduction],
        inside: &BTreeSet<SlotId>,
    ) -> (Vec<(String, String)>, bool) {
        let context = self.context;
        let mut emitter = Emitter::new(
            context,
            self.function,
            &l.body,
            inside.iter().copied().collect(),
        );
        emitter.copy = match self.copy {
            Copy::Only | Copy::Divided => Copy::Divided,
            other => other,
        };
        emitter.is_of_rounds = true;
        emitter.sums = reductions.iter().map(|r| r.slot).collect();
        emitter.has_marks = false;
        emitter.fast_variable = self.fast_variable;
        let variable = self.slot_name(l.variable);
        let step = l.step;
        let compare = if step > 0 { "<" } else { ">" };
        let advance = match step {
            1 => format!("{variable}++"),
            -1 => format!("{variable}--"),
            n => format!("{variable} += {n}"),
        };
        emitter.line(format!(
            "for (int64_t {variable} = given_0->first_0 + from_0 * {step}, {variable}_end = \
             given_0->first_0 + to_0 * {step}; {variable} {compare} {variable}_end; {advance}) {{"
        ));
        emitter.inner(&l.body);
        emitter.line("}");
        for (n, reduction) in reductions.iter().enumerate() {
            let slot = emitter.slot_name(reduction.slot);
            emitter.line(format!("(({name}_sums *)sums_in)->sum_{n} = {slot};"));
        }
        let text = emitter.finish_rounds();
        let code: String = text
            .split_inclusive('\n')
            .filter(|l| !l.starts_with('#'))
            .collect();
        let mentions = Mentions::of(&code);

        let mut given = vec![("first_0".to_owned(), "first_0".to_owned())];
        let mut fields = String::from("    int64_t first_0;\n");
        let mut locals = String::new();
        let mut give = |field: &str, declaration: String, value: &str| {
            let _ = writeln!(fields, "    {declaration};");
            let _ = writeln!(locals, "    {declaration} = given_0->{field};");
            given.push((field.to_owned(), value.to_owned()));
        };
        if mentions.any_of("self") {
            let of = match context.owner(self.function.role) {
                Some(owner) => context.names.component(owner).to_owned(),
                None => "main".into(),
            };
            give("self", format!("{of}_component *self"), "self");
        }
        if mentions.any_of("frame") {
            let frame = context.names.function(self.function.role);
            give("frame", format!("{frame}_frame *frame"), "frame");
        }
        for (index, slot) in self.function.slots.iter().enumerate() {
            let id = SlotId(index as u32);
            let plain = &self.layout.slot_names[index];
            if id == l.variable
                || inside.contains(&id)
                || slot.storage == Storage::Frame
                || reductions.iter().any(|r| r.slot == id)
                || !mentions.any_of(plain)
            {
                continue;
            }
            let declaration = match slot.storage {
                Storage::Counter => format!("int64_t {plain}"),
                _ => self.slot_declaration(slot.ty, plain),
            };
            give(plain, declaration, plain);
        }
        let mut sums = String::new();
        if !reductions.is_empty() {
            let mut sum_fields = String::new();
            let mut neutral = Vec::new();
            let mut join = String::new();
            for (n, reduction) in reductions.iter().enumerate() {
                let declaration = context.declare(reduction.ty, &format!("sum_{n}"));
                let _ = writeln!(sum_fields, "    {declaration};");
                neutral.push(self.value(&reduction.way.neutral(reduction.ty)));
                let slot = emitter.slot_name(reduction.slot);
                let local = context.declare(reduction.ty, &slot);
                let _ = writeln!(locals, "    {local} = (({name}_sums *)sums_in)->sum_{n};");
                let _ = writeln!(join, "    {}", joined(reduction.way, n));
            }
            let _ = write!(
                sums,
                "typedef struct {{\n{sum_fields}}} {name}_sums;\n\
                 _Static_assert(sizeof({name}_sums) <= HEARTH_SUMS_BYTES, \"too many sums\");\n\
                 static const {name}_sums {name}_neutral = {{ {} }};\n\
                 static void {name}_join(void *sums_in, const void *others_in)\n{{\n    \
                 {name}_sums *into = sums_in;\n    const {name}_sums *from = others_in;\n{join}}}\n",
                neutral.join(", ")
            );
        }
        let run = format!(
            "static void {name}_run(void *given_in, hearth_component *base, uint32_t depth_in, \
             void *sums_in, int64_t from_0, int64_t to_0)"
        );
        let types = format!("typedef struct {{\n{fields}}} {name};\n{sums}{run};\n");
        let function = format!(
            "{run}\n{{\n    const {name} *given_0 = given_in;\n    (void)base;\n    (void)depth_in;\n    \
             (void)sums_in;\n{locals}{}{text}}}\n\n",
            emitter.head_of_rounds(inside, &mentions)
        );
        context.copies.add(name, &types, function);
        (given, !reductions.is_empty())
    }
}

/// Whether statements call a procedure that cannot run with a base of its own.
fn calls_fixed(body: &[Stmt], copies: &Copies) -> bool {
    let mut found = false;
    look_at_each(body, &mut |stmt| {
        if let StmtKind::Call {
            callee: Callee::Proc(proc),
            ..
        } = stmt
        {
            found |= !copies.can_move(*proc);
        }
    });
    found
}

/// The slots that statements set.
fn own_slots_of(body: &[Stmt]) -> BTreeSet<SlotId> {
    let mut own = BTreeSet::new();
    look_at_each(body, &mut |stmt| {
        own.extend(statement_target(stmt));
        match stmt {
            StmtKind::Promoted { members, .. } => own.extend(members.iter().map(|m| m.1)),
            StmtKind::Release(slot) => {
                own.insert(*slot);
            }
            _ => {}
        }
    });
    each_loop(body, &mut |l| {
        own.insert(l.variable);
    });
    own
}

/// Whether statements of a body make this slot themselves: a loop's variable, or a member kept
/// while a loop runs.
fn is_of_body(body: &[Stmt], slot: SlotId) -> bool {
    let mut found = false;
    look_at_each(body, &mut |stmt| {
        if let StmtKind::Promoted { members, .. } = stmt {
            found |= members.iter().any(|m| m.1 == slot);
        }
    });
    each_loop(body, &mut |l| {
        found |= l.variable == slot || l.fresh.contains(&slot.0);
    });
    found
}

/// The statement that adds one sum to another.
fn joined(way: Way, n: usize) -> String {
    let (into, from) = (format!("into->sum_{n}"), format!("from->sum_{n}"));
    match way {
        Way::Sum => format!("{into} += {from};"),
        Way::Product => format!("{into} *= {from};"),
        Way::BitAnd => format!("{into} &= {from};"),
        Way::BitOr => format!("{into} |= {from};"),
        Way::BitXor => format!("{into} ^= {from};"),
        Way::All => format!("{into} = {into} && {from};"),
        Way::Any => format!("{into} = {into} || {from};"),
        Way::Greatest => format!("if ({from} > {into}) {into} = {from};"),
        Way::Least => format!("if ({from} < {into}) {into} = {from};"),
    }
}
