//! Stores, and what they tie together.

use super::{State, Walker};
use crate::analysis::futures::effects::Effects;
use crate::analysis::futures::places::{Cell, How, Path, Range, Root, Step};
use crate::analysis::futures::symbols::{Meaning, range_of_type};
use crate::analysis::futures::zone::{Linear, ZERO};
use crate::core::ir::*;
use crate::source::Span;
use crate::types::{Type, TypeId};

/// A slot that may refer to more objects than this may refer to any.
const PATHS_MAX: usize = 8;

/// Facts are kept about so many bools.
const FACTS_MAX: usize = 3;

impl Walker<'_, '_> {
    pub(super) fn set(
        &mut self,
        place: &StorePlace,
        value: &Value,
        (mode, replaces): (Mode, bool),
        span: Span,
        state: &mut State,
        out: &mut Effects,
    ) {
        self.read(value, span, state, out);
        let paths = self.paths(value, state);
        if mode == Mode::Retain {
            count(&paths, span, out);
        }
        match place {
            StorePlace::Slot(slot) => {
                if replaces {
                    self.count_slot(*slot, span, state, out);
                }
                self.set_slot(*slot, value, paths, state);
            }
            StorePlace::Member(member) => {
                let variable = Path::of(Root::Member(*member));
                if replaces && mode != Mode::Plain {
                    drop_one(std::slice::from_ref(&variable), span, out);
                }
                let cell = Cell::Variable(*member);
                out.touch(variable.clone(), cell, How::Write, span);
                self.keep((value, mode), &[variable], None, span, state, out);
            }
            StorePlace::Global(global) => {
                let variable = Path::of(Root::Global(*global));
                self.keep((value, mode), &[variable], None, span, state, out);
            }
            StorePlace::Element(array, index, element) => {
                self.read(array, span, state, out);
                self.read(index, span, state, out);
                let step = self.element(index, *element, state);
                self.set_cell((array, step), value, (mode, replaces), span, state, out);
            }
            StorePlace::Field(object, ty, field) => {
                self.read(object, span, state, out);
                let step = Step {
                    cell: Cell::Field(*ty, *field),
                    range: Range::default(),
                };
                self.set_cell((object, step), value, (mode, replaces), span, state, out);
            }
            StorePlace::Result => self.set_result(value, paths, state),
        }
        if let (Mode::Move, Value::Slot(from)) = (mode, value) {
            state.values.remove(from);
        }
    }

    fn set_cell(
        &mut self,
        (object, step): (&Value, Step),
        value: &Value,
        (mode, replaces): (Mode, bool),
        span: Span,
        state: &mut State,
        out: &mut Effects,
    ) {
        let cell = step.cell;
        let containers = self.paths(object, state);
        for container in &containers {
            let path = container.then(step.clone());
            if replaces && mode != Mode::Plain {
                drop_one(std::slice::from_ref(&path), span, out);
            }
            out.touch(path, cell, How::Write, span);
        }
        self.keep((value, mode), &containers, Some(cell), span, state, out);
    }

    fn set_slot(&mut self, slot: SlotId, value: &Value, paths: Vec<Path>, state: &mut State) {
        let SlotType::Of(ty) = self.function.slots[slot.index()].ty else {
            return;
        };
        if ty == TypeId::BOOL {
            let (mut yes, mut no) = (state.numbers(), state.numbers());
            self.assume(value, true, &mut yes);
            self.assume(value, false, &mut no);
            state.facts.insert(slot, (yes.zone, no.zone));
            while state.facts.len() > FACTS_MAX {
                // The latest temporaries are those that are looked at next.
                state.facts.pop_first();
            }
        } else if let Some(symbol) = self.symbols.get(Meaning::Slot(slot)) {
            self.store_number(symbol, ty, value, state);
        } else if self.world.is_counted(ty) {
            let lengths = self.lengths_of(value, ty);
            match value {
                Value::Received(_) => self.made(slot, state),
                _ if paths.len() > PATHS_MAX => {
                    state.values.insert(slot, vec![Path::of(Root::Unknown)]);
                }
                _ => {
                    state.values.insert(slot, paths);
                }
            }
            self.set_lengths(slot, &lengths, state);
        }
    }

    fn set_result(&mut self, value: &Value, paths: Vec<Path>, state: &State) {
        for path in paths {
            if !self.found.summary.result.contains(&path) {
                self.found.summary.result.push(path);
            }
        }
        if range_of_type(self.function.result).is_some() {
            let range = self.range_of(value, state);
            let formals: Vec<_> = self.symbols.formals().collect();
            let range = range.only(&|symbol| formals.contains(&symbol));
            match &mut self.found.summary.range {
                Some(known) => known.join(&range, false),
                none => *none = Some(range),
            }
        }
    }

    /// The slot refers to a new object.
    pub(super) fn made(&mut self, slot: SlotId, state: &mut State) {
        let path = Path::of(Root::New(slot));
        state.values.insert(slot, vec![path]);
        self.set_lengths(slot, &[], state);
    }

    pub(super) fn new_struct(
        &mut self,
        target: SlotId,
        ty: TypeId,
        fields: &[(Value, Mode)],
        span: Span,
        state: &mut State,
        out: &mut Effects,
    ) {
        let container = [Path::of(Root::New(target))];
        for (field, (value, mode)) in (0..).zip(fields) {
            self.read(value, span, state, out);
            if *mode == Mode::Retain {
                count(&self.paths(value, state), span, out);
            }
            let cell = Cell::Field(ty, field);
            self.keep((value, *mode), &container, Some(cell), span, state, out);
            if let (Mode::Move, Value::Slot(from)) = (mode, value) {
                state.values.remove(from);
            }
        }
        self.made(target, state);
    }

    /// Ties objects that are stored somewhere to what keeps them. A new object that nothing else
    /// refers to belongs to its place from now on: for a call that still has it, it is as if its
    /// life had ended.
    fn keep(
        &mut self,
        (value, mode): (&Value, Mode),
        containers: &[Path],
        cell: Option<Cell>,
        span: Span,
        state: &State,
        out: &mut Effects,
    ) {
        if mode == Mode::Plain {
            return;
        }
        let paths = self.paths(value, state);
        if self.is_new_and_alone(value, mode, state) {
            for path in paths {
                out.touch(path, Cell::Life, How::Write, span);
            }
            return;
        }
        if let (Some(cell), false) = (cell, paths.is_empty()) {
            self.found.shared.insert(cell);
        }
        for path in paths {
            for container in containers {
                self.found.ties.tie(path.root, container.root);
            }
        }
    }

    fn is_new_and_alone(&self, value: &Value, mode: Mode, state: &State) -> bool {
        let (Mode::Move, Value::Slot(slot)) = (mode, value) else {
            return false;
        };
        let Some([path]) = state.values.get(slot).map(Vec::as_slice) else {
            return false;
        };
        matches!(path.root, Root::New(_))
            && path.steps.is_empty()
            && !self.found.ties.is_tied(path.root)
            && !state.values.iter().any(|(other, paths)| {
                other != slot && paths.iter().any(|other| other.root == path.root)
            })
    }

    /// The count of the object that a slot holds changes.
    pub(super) fn count_slot(&self, slot: SlotId, span: Span, state: &State, out: &mut Effects) {
        if let SlotType::Of(ty) = self.function.slots[slot.index()].ty
            && self.world.is_counted(ty)
            && let Some(paths) = state.values.get(&slot)
        {
            drop_one(paths, span, out);
        }
    }

    // ---- lengths ------------------------------------------------------------------------------

    /// The lengths of an array and of its rows, as far as they are known.
    fn lengths_of(&self, value: &Value, mut ty: TypeId) -> Vec<Linear> {
        let mut lengths = Vec::new();
        while let Type::Array(element) = self.world.ty(ty) {
            let depth = lengths.len() as u8;
            match self.length(value, depth) {
                Some(length) => lengths.push(length),
                None => break,
            }
            ty = *element;
        }
        lengths
    }

    fn set_lengths(&self, slot: SlotId, lengths: &[Linear], state: &mut State) {
        for depth in 0..u8::MAX {
            let Some(symbol) = self.symbols.get(Meaning::Length(slot, depth)) else {
                return;
            };
            match lengths.get(usize::from(depth)) {
                Some(&length) => state.zone.assign(symbol, length),
                None => state.zone.forget(symbol),
            }
            self.learn_type(symbol, &mut state.zone);
        }
    }

    pub(super) fn learn_lengths(&self, slot: SlotId, lengths: &[u32], state: &mut State) {
        let lengths: Vec<Linear> = lengths.iter().map(|n| (ZERO, i64::from(*n))).collect();
        self.set_lengths(slot, &lengths, state);
    }
}

/// A reference to an object is given up.
fn drop_one(paths: &[Path], span: Span, out: &mut Effects) {
    count(paths, span, out);
    for path in paths {
        out.touch(path.clone(), Cell::Life, How::Write, span);
    }
}

fn count(paths: &[Path], span: Span, out: &mut Effects) {
    for path in paths {
        out.touch(path.clone(), Cell::Count, How::Write, span);
    }
}
