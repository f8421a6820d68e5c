//! One walk through a function: what is known at each point, and what each statement may do.

mod calls;
mod loops;
mod numbers;
mod stores;

pub(super) use loops::{is_fixed, set_in};

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::effects::{Deed, Effects};
use super::places::{Cell, How, Path, Range, Root, Step, Ties};
use super::symbols::{Meaning, Symbols, range_of_type};
use super::world::{Entry, Summary, World};
use super::zone::{Symbol, ZERO, Zone};
use crate::core::ir::*;
use crate::core::passes::{look_at_each, statement_target};
use crate::source::Span;
use crate::tree::{ComponentId, MemberId};
use crate::types::{Type, TypeId};

/// All that is known at a point of a function.
#[derive(Clone)]
struct State {
    zone: Zone,
    /// The objects that each slot may refer to.
    values: BTreeMap<SlotId, Vec<Path>>,
    /// For a bool: the zone if it is true, and the zone if it is false.
    facts: BTreeMap<SlotId, (Zone, Zone)>,
}

impl State {
    /// The same without what is known of objects.
    fn numbers(&self) -> State {
        State {
            zone: self.zone.clone(),
            values: BTreeMap::new(),
            facts: self.facts.clone(),
        }
    }

    fn join(&mut self, other: &State) {
        if !other.zone.is_reachable() {
            return;
        }
        if !self.zone.is_reachable() {
            *self = other.clone();
            return;
        }
        self.zone.join(&other.zone);
        for (slot, paths) in &other.values {
            let mine = self.values.entry(*slot).or_default();
            for path in paths {
                if !mine.contains(path) {
                    mine.push(path.clone());
                }
            }
        }
        self.facts.retain(|slot, (yes, no)| {
            let Some((other_yes, other_no)) = other.facts.get(slot) else {
                return false;
            };
            yes.join(other_yes);
            no.join(other_no);
            true
        });
    }
}

/// A block as it was walked the last time.
pub(super) struct BlockRecord<'a> {
    pub(super) block: &'a [Stmt],
    /// The effects of each statement that is reached.
    pub(super) pieces: Vec<Effects>,
    /// The callee's own effects, and what is known after the call.
    pub(super) calls: HashMap<usize, (Effects, Zone)>,
    /// An exception here is caught in this function.
    pub(super) is_caught: bool,
}

/// A loop as it was walked the last time.
pub(super) struct LoopRecord<'a> {
    pub(super) stmt: &'a Stmt,
    pub(super) inner: &'a Loop,
    pub(super) body: Effects,
    /// Before its first round.
    pub(super) entry: Zone,
    pub(super) is_caught: bool,
}

/// All that a walk found.
pub(super) struct Walked<'a> {
    pub(super) summary: Summary,
    pub(super) entries: Vec<Entry>,
    pub(super) shared: BTreeSet<Cell>,
    pub(super) ties: Ties,
    pub(super) blocks: Vec<BlockRecord<'a>>,
    pub(super) loops: Vec<LoopRecord<'a>>,
}

struct Walker<'w, 'a> {
    world: &'w World<'a>,
    function: &'a Function,
    symbols: &'w Symbols,
    component: Option<ComponentId>,
    found: Walked<'a>,
    /// False while a loop looks for what holds in all its rounds.
    records: bool,
    tries: u32,
    loops_around: u32,
}

/// Walks a function with what the world knows so far.
pub(super) fn walk<'a>(world: &World<'a>, index: usize) -> Walked<'a> {
    let function = &world.module.functions[index];
    let symbols = &world.symbols[index];
    let component = world.owner(function.role);
    let members = component.map_or(world.program.components.len(), ComponentId::index);
    let mut ties = world.member_ties[members].clone();
    let mut zone = Zone::new(symbols.count());
    match function.role {
        Role::Proc(proc) => {
            for (a, b) in world.entry_ties[proc.index()].pairs() {
                ties.tie(a, b);
            }
            let entry = &world.entries[proc.index()];
            if !entry.is_reachable() {
                zone.end();
            }
            for x in symbols.formals() {
                for y in symbols.formals() {
                    if let Some(bound) = entry.bound(x, y) {
                        zone.add(x, y, bound);
                    }
                }
            }
        }
        Role::Constructor(..) => {
            for param in 1..function.params.len() {
                ties.tie(Root::Param(0), Root::Param(param as u32));
            }
        }
        _ => {}
    }
    let mut state = State {
        zone,
        values: BTreeMap::new(),
        facts: BTreeMap::new(),
    };
    for (index, param) in function.params.iter().enumerate() {
        let path = Path::of(Root::Param(index as u32));
        state.values.insert(*param, vec![path]);
    }
    let mut walker = Walker {
        world,
        function,
        symbols,
        component,
        found: Walked {
            summary: Summary::default(),
            entries: Vec::new(),
            shared: BTreeSet::new(),
            ties,
            blocks: Vec::new(),
            loops: Vec::new(),
        },
        records: true,
        tries: 0,
        loops_around: 0,
    };
    walker.learn_types(&mut state.zone);
    let mut effects = Effects::default();
    walker.block(&function.body, &mut state, &mut effects);
    walker.found.summary.returns |= state.zone.is_reachable();
    if state.zone.is_reachable()
        && function.result != TypeId::VOID
        && let Some(range) = &mut walker.found.summary.range
    {
        // Its end was reached: the default.
        *range = Range::default();
    }
    walker.finish(effects)
}

impl<'a> Walker<'_, 'a> {
    /// Turns what was found into terms of the parameters.
    fn finish(mut self, effects: Effects) -> Walked<'a> {
        let formals: Vec<Symbol> = self.symbols.formals().collect();
        let is_formal = |symbol: Symbol| formals.contains(&symbol);
        let outer = |steps: &[Step]| -> Vec<Step> {
            let only = |step: &Step| Step {
                cell: step.cell,
                range: step.range.only(&is_formal),
            };
            steps.iter().map(only).collect()
        };
        let members = self.component.map(|component| {
            let members = &self.world.program.components[component.index()].members;
            (0..members.len()).map(|m| Root::Member(MemberId(m as u32)))
        });
        let params = (0..self.function.params.len()).map(|p| Root::Param(p as u32));
        let roots: Vec<Root> = params
            .chain(members.into_iter().flatten())
            .chain([Root::Unknown])
            .collect();
        let ties = &self.found.ties;
        let mut seen = Effects {
            deeds: effects.deeds,
            ..Effects::default()
        };
        for access in effects.accesses {
            if let Root::New(_) = access.path.root {
                // An object of its own that may be a part of one that others know.
                for &root in &roots {
                    if root != Root::Unknown && ties.are_tied(access.path.root, root) {
                        seen.touch(Path::of(root), access.cell, access.how, access.span);
                    }
                }
                continue;
            }
            let path = Path {
                root: access.path.root,
                steps: outer(&access.path.steps),
            };
            seen.touch(path, access.cell, access.how, access.span);
        }
        let summary = &mut self.found.summary;
        summary.effects = seen;
        for path in &mut summary.result {
            path.steps = outer(&path.steps);
        }
        let mut tied: BTreeSet<(Root, Root)> = BTreeSet::new();
        for (at, &a) in roots.iter().enumerate() {
            for &b in &roots[at + 1..] {
                if a != Root::Unknown && b != Root::Unknown && ties.are_tied(a, b) {
                    tied.insert((a, b));
                }
                // Tied to what is unknown, and not just like everything is.
                if b == Root::Unknown && ties.is_unknown(a) {
                    tied.insert((a, b));
                }
            }
            for path in &summary.result {
                if matches!(path.root, Root::New(_)) && ties.are_tied(path.root, a) {
                    let is_real = a != Root::Unknown || ties.is_unknown(path.root);
                    if is_real {
                        tied.insert((Root::Result, a));
                    }
                }
            }
        }
        summary.ties = tied.into_iter().collect();
        self.found
    }

    fn learn_types(&self, zone: &mut Zone) {
        for symbol in self.symbols.all() {
            self.learn_type(symbol, zone);
        }
    }

    /// Learns that a symbol is a number of its type, and a length at least 1.
    fn learn_type(&self, symbol: Symbol, zone: &mut Zone) {
        let (low, high) = match self.symbols.meaning(symbol) {
            Meaning::Zero => return,
            Meaning::Length(..) => (1, i64::from(i32::MAX)),
            Meaning::Slot(slot) => match self.function.slots[slot.index()].ty {
                SlotType::Of(ty) => match range_of_type(ty) {
                    Some(range) => range,
                    None => return,
                },
                _ => return,
            },
        };
        zone.add(symbol, ZERO, high);
        zone.add(ZERO, symbol, -low);
    }

    fn is_caught(&self) -> bool {
        self.tries > 0
    }

    fn block(&mut self, block: &'a [Stmt], state: &mut State, out: &mut Effects) {
        let mut record = BlockRecord {
            block,
            pieces: Vec::new(),
            calls: HashMap::new(),
            is_caught: self.is_caught(),
        };
        for (at, stmt) in block.iter().enumerate() {
            if !state.zone.is_reachable() {
                break;
            }
            let mut piece = out.of_part();
            let called = self.statement(stmt, state, &mut piece);
            out.absorb(&piece);
            if self.records {
                record.pieces.push(piece);
                if let Some(called) = called {
                    record.calls.insert(at, (called, state.zone.clone()));
                }
            }
        }
        if self.records {
            self.found.blocks.push(record);
        }
    }

    /// Walks a statement. Of a call, returns the effects of the callee alone.
    fn statement(
        &mut self,
        stmt: &'a Stmt,
        state: &mut State,
        out: &mut Effects,
    ) -> Option<Effects> {
        let span = stmt.span;
        match &stmt.kind {
            StmtKind::Set {
                place,
                value,
                mode,
                replace,
            } => self.set(place, value, (*mode, *replace), span, state, out),
            StmtKind::Release(slot) => {
                self.count_slot(*slot, span, state, out);
                state.values.remove(slot);
            }
            StmtKind::CheckIndex { array, index, .. } => {
                self.read(array, span, state, out);
                self.read(index, span, state, out);
                self.check_index(array, index, span, state, out);
            }
            StmtKind::CheckZero { value, .. } => {
                self.read(value, span, state, out);
                let (low, high) = self.interval(value, state);
                let is_not_zero = low.is_some_and(|low| low > 0) || high.is_some_and(|h| h < 0);
                if !is_not_zero {
                    out.does(Deed::Raises, span);
                }
            }
            StmtKind::If {
                condition,
                then,
                otherwise,
            } => {
                self.read(condition, span, state, out);
                let mut other = state.clone();
                self.assume(condition, true, state);
                self.assume(condition, false, &mut other);
                self.block(then, state, out);
                self.block(otherwise, &mut other, out);
                state.join(&other);
            }
            StmtKind::Loop(inner) => self.counting(stmt, inner, state, out),
            StmtKind::Versioned { .. } | StmtKind::Promoted { .. } | StmtKind::Await(_) => {
                unreachable!("made by a later pass")
            }
            StmtKind::Call {
                target,
                callee,
                args,
                text,
                ..
            } => return Some(self.call(*target, callee, args, *text, state, out)),
            StmtKind::NewArray {
                target,
                lengths,
                init,
                init_type,
                ..
            } => {
                self.read(init, span, state, out);
                self.read_deep(init, *init_type, span, state, out);
                self.made(*target, state);
                self.learn_lengths(*target, lengths, state);
            }
            StmtKind::NewStruct {
                target, ty, fields, ..
            } => self.new_struct(*target, *ty, fields, span, state, out),
            StmtKind::NewChannel { target, .. } | StmtKind::NewProcedure { target, .. } => {
                self.made(*target, state);
            }
            StmtKind::NewComponent { target, args, .. } => {
                for argument in args {
                    self.read(&argument.value, span, state, out);
                }
                out.does(Deed::Creates, span);
                self.made(*target, state);
            }
            StmtKind::NewBox { target, ty, value } | StmtKind::Copy { target, ty, value } => {
                self.read(value, span, state, out);
                self.read_deep(value, *ty, span, state, out);
                self.made(*target, state);
            }
            StmtKind::PortOf {
                target, component, ..
            } => {
                self.read(component, span, state, out);
                out.does(Deed::Connects, span);
                self.made(*target, state);
            }
            StmtKind::PortAssign { component, .. } => {
                if let Some(component) = component {
                    self.read(component, span, state, out);
                }
                out.does(Deed::Connects, span);
            }
            StmtKind::Connect(..) | StmtKind::Disconnect(_) => out.does(Deed::Connects, span),
            StmtKind::Publish { .. } => out.does(Deed::Waits, span),
            StmtKind::Send {
                channel,
                value,
                ty,
                moved,
                ..
            } => {
                self.read(channel, span, state, out);
                self.read(value, span, state, out);
                self.read_deep(value, *ty, span, state, out);
                if let Some(slot) = moved {
                    state.values.remove(slot);
                }
                out.does(Deed::Waits, span);
            }
            StmtKind::Receive { channel, .. } => {
                self.read(channel, span, state, out);
                out.does(Deed::Waits, span);
            }
            StmtKind::Select { arms, default } => {
                out.does(Deed::Waits, span);
                let entry = state.clone();
                state.zone.end();
                for arm in arms {
                    self.branch(&arm.body, entry.clone(), state, out);
                }
                if let Some(default) = default {
                    self.branch(default, entry, state, out);
                }
            }
            StmtKind::TakeHeld(_) => {}
            StmtKind::AddressOf { target, bytes } => {
                self.read(bytes, span, state, out);
                self.unknown_number(*target, state);
            }
            StmtKind::StopOther(_) => out.does(Deed::Acts, span),
            StmtKind::StopSelf => {
                out.does(Deed::Stops, span);
                state.zone.end();
            }
            StmtKind::Raise { label } => {
                self.read(label, span, state, out);
                out.does(Deed::Raises, span);
                state.zone.end();
            }
            StmtKind::Return => {
                self.found.summary.returns = true;
                state.zone.end();
            }
            StmtKind::Try { body, handlers, .. } => self.protected(body, handlers, state, out),
        }
        None
    }

    fn branch(&mut self, block: &'a [Stmt], mut from: State, to: &mut State, out: &mut Effects) {
        self.block(block, &mut from, out);
        to.join(&from);
    }

    fn protected(
        &mut self,
        body: &'a [Stmt],
        handlers: &'a [Handler],
        state: &mut State,
        out: &mut Effects,
    ) {
        let mut entry = state.clone();
        let mut inside = out.of_part();
        self.tries += 1;
        self.block(body, state, &mut inside);
        self.tries -= 1;
        if handlers.iter().any(|handler| handler.label.is_none()) {
            inside.deeds.retain(|(deed, _)| *deed != Deed::Raises);
        }
        out.absorb(&inside);
        // Any part of the body may have run.
        self.forget_set(body, &mut entry);
        for handler in handlers {
            self.branch(&handler.body, entry.clone(), state, out);
        }
    }

    /// Forgets what a block may change, wherever it was left.
    fn forget_set(&self, block: &[Stmt], state: &mut State) {
        let mut set = Vec::new();
        look_at_each(block, &mut |stmt| set.extend(statement_target(stmt)));
        for slot in set {
            self.unknown_number(slot, state);
            state.facts.remove(&slot);
            if let SlotType::Of(ty) = self.function.slots[slot.index()].ty
                && self.world.is_counted(ty)
            {
                state.values.insert(slot, vec![Path::of(Root::Unknown)]);
            }
        }
    }

    // ---- reading ------------------------------------------------------------------------------

    /// The objects that a value may refer to.
    fn paths(&self, value: &Value, state: &State) -> Vec<Path> {
        match value {
            Value::Slot(slot) => state.values.get(slot).cloned().unwrap_or_default(),
            Value::Member(member) => vec![Path::of(Root::Member(*member))],
            Value::Global(global) => vec![Path::of(Root::Global(*global))],
            Value::Element(array, index, element) => {
                let step = self.element(index, *element, state);
                let paths = self.paths(array, state).into_iter();
                paths.map(|path| path.then(step.clone())).collect()
            }
            Value::Field(object, ty, field) => {
                let step = Step {
                    cell: Cell::Field(*ty, *field),
                    range: Range::default(),
                };
                let paths = self.paths(object, state).into_iter();
                paths.map(|path| path.then(step.clone())).collect()
            }
            Value::Unboxed(..) => vec![Path::of(Root::Unknown)],
            _ => Vec::new(),
        }
    }

    fn element(&self, index: &Value, element: TypeId, state: &State) -> Step {
        Step {
            cell: Cell::Element(element),
            range: self.range_of(index, state),
        }
    }

    /// Notes the memory that a value is read from.
    fn read(&self, value: &Value, span: Span, state: &State, out: &mut Effects) {
        if out.is_ignored {
            return;
        }
        match value {
            Value::Member(member) => {
                let path = Path::of(Root::Member(*member));
                out.touch(path, Cell::Variable(*member), How::Read, span);
            }
            Value::Element(array, index, element) => {
                self.read(array, span, state, out);
                self.read(index, span, state, out);
                let step = self.element(index, *element, state);
                for path in self.paths(array, state) {
                    out.touch(path.then(step.clone()), step.cell, How::Read, span);
                }
            }
            Value::Field(object, ty, field) => {
                self.read(object, span, state, out);
                let cell = Cell::Field(*ty, *field);
                for path in self.paths(object, state) {
                    let range = Range::default();
                    out.touch(path.then(Step { cell, range }), cell, How::Read, span);
                }
            }
            Value::Convert(_, _, e)
            | Value::Unary(_, _, e)
            | Value::Length(e)
            | Value::Unboxed(e, _)
            | Value::BoxIs(e, _) => self.read(e, span, state, out),
            Value::Binary(_, _, a, b) | Value::IndexOrZero(a, b, _) => {
                self.read(a, span, state, out);
                self.read(b, span, state, out);
            }
            _ => {}
        }
    }

    /// Notes that all data behind a value is read, as a copy does.
    fn read_deep(&self, value: &Value, ty: TypeId, span: Span, state: &State, out: &mut Effects) {
        for path in self.paths(value, state) {
            self.read_below(&path, ty, span, out);
        }
    }

    fn read_below(&self, path: &Path, ty: TypeId, span: Span, out: &mut Effects) {
        let parts: Vec<(Cell, TypeId)> = match self.world.ty(ty) {
            Type::Array(element) => vec![(Cell::Element(*element), *element)],
            Type::Struct(fields) => (0..)
                .zip(fields.iter())
                .map(|(at, (_, part))| (Cell::Field(ty, at), *part))
                .collect(),
            _ => return,
        };
        for (cell, part) in parts {
            let range = Range::default();
            let below = path.then(Step { cell, range });
            out.touch(below.clone(), cell, How::Read, span);
            if self.world.is_counted(part) && !self.world.is_data(part) {
                // A copy shares what never changes.
                out.touch(below, Cell::Count, How::Write, span);
            } else {
                self.read_below(&below, part, span, out);
            }
        }
    }
}
