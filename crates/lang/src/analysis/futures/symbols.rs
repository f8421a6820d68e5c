//! The numbers of a function that the analysis follows.

use std::collections::HashMap;

use super::zone::Symbol;
use crate::core::ir::*;
use crate::core::passes::{look_at_each, statement_target, visit_value};
use crate::tree::{BinaryOp, Program};
use crate::types::{Type, TypeId};

/// More symbols than this are not followed: the work grows with the square of their number.
const SYMBOLS_MAX: usize = 32;

/// A number that a symbol stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Meaning {
    Zero,
    Slot(SlotId),
    /// The length of an array, or of the rows so many steps below it, which are all equal.
    Length(SlotId, u8),
}

/// The symbols of a function.
#[derive(Debug)]
pub(super) struct Symbols {
    meanings: Vec<Meaning>,
    numbers: HashMap<Meaning, Symbol>,
    /// The first symbols: zero, parameters that are never assigned, and their lengths.
    pub(super) formals: usize,
    /// How often each slot is set in the text.
    sets: Vec<u32>,
    /// Products, and sums with them, of slots that are set in one place, by the slot that holds
    /// them and is set nowhere else. Where the slot can be read, its parts still have the values
    /// of which it was made: they are declared around it.
    products: HashMap<SlotId, Value>,
}

impl Symbols {
    pub(super) fn of(function: &Function, program: &Program) -> Symbols {
        let mut sets = vec![0; function.slots.len()];
        look_at_each(&function.body, &mut |stmt| {
            if let Some(slot) = statement_target(stmt) {
                sets[slot.index()] += 1;
            }
        });
        let mut symbols = Symbols {
            meanings: Vec::new(),
            numbers: HashMap::new(),
            formals: 0,
            sets,
            products: HashMap::new(),
        };
        look_at_each(&function.body, &mut |stmt| {
            if let StmtKind::Set {
                place: StorePlace::Slot(slot),
                value,
                mode: Mode::Plain,
                ..
            } = stmt
                && symbols.is_stable(*slot)
                && symbols.is_product(value)
            {
                symbols.products.insert(*slot, value.clone());
            }
        });
        symbols.add(Meaning::Zero);
        for &param in &function.params {
            if symbols.sets[param.index()] == 0 {
                symbols.add_slot(param, function, program);
            }
        }
        symbols.formals = symbols.meanings.len();
        for index in 0..function.slots.len() {
            let slot = SlotId(index as u32);
            if symbols.sets[index] > 0 {
                symbols.add_slot(slot, function, program);
            }
        }
        symbols
    }

    /// True for integers made of slots and constants by `+`, `-` and at least one `*`.
    fn is_product(&self, value: &Value) -> bool {
        let mut has_product = false;
        let mut is_plain = true;
        visit_value(value, &mut |value| match value {
            Value::Binary(BinaryOp::Multiply, TypeId::INTEGER, ..) => has_product = true,
            Value::Binary(BinaryOp::Add | BinaryOp::Subtract, TypeId::INTEGER, ..) => {}
            Value::Int(..) => {}
            Value::Slot(slot) => is_plain &= self.is_stable(*slot),
            _ => is_plain = false,
        });
        has_product && is_plain
    }

    /// The product that a slot holds.
    pub(super) fn product(&self, slot: SlotId) -> Option<&Value> {
        self.products.get(&slot)
    }

    fn add_slot(&mut self, slot: SlotId, function: &Function, program: &Program) {
        let SlotType::Of(mut ty) = function.slots[slot.index()].ty else {
            return;
        };
        if range_of_type(ty).is_some() {
            self.add(Meaning::Slot(slot));
            return;
        }
        let mut depth = 0;
        while let (Type::Array(element), true) = (program.types.get(ty), self.is_stable(slot)) {
            self.add(Meaning::Length(slot, depth));
            ty = *element;
            depth += 1;
        }
    }

    fn add(&mut self, meaning: Meaning) {
        if self.meanings.len() < SYMBOLS_MAX && !self.numbers.contains_key(&meaning) {
            let symbol = Symbol(self.meanings.len() as u16);
            self.meanings.push(meaning);
            self.numbers.insert(meaning, symbol);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.meanings.len()
    }

    pub(super) fn get(&self, meaning: Meaning) -> Option<Symbol> {
        self.numbers.get(&meaning).copied()
    }

    pub(super) fn meaning(&self, symbol: Symbol) -> Meaning {
        self.meanings[usize::from(symbol.0)]
    }

    /// The symbols of parameters and their lengths, zero included.
    pub(super) fn formals(&self) -> impl Iterator<Item = Symbol> + use<> {
        (0..self.formals as u16).map(Symbol)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = Symbol> + use<> {
        (0..self.count() as u16).map(Symbol)
    }

    /// True for a slot that is set in one place at most: it means one number from there on, until
    /// it is set again in another round.
    pub(super) fn is_stable(&self, slot: SlotId) -> bool {
        self.sets[slot.index()] <= 1
    }

    pub(super) fn is_stable_symbol(&self, symbol: Symbol) -> bool {
        match self.meaning(symbol) {
            Meaning::Slot(slot) => self.is_stable(slot),
            _ => true,
        }
    }

    /// True if the symbol means something that these slots hold.
    pub(super) fn is_among(&self, symbol: Symbol, slots: &dyn Fn(SlotId) -> bool) -> bool {
        match self.meaning(symbol) {
            Meaning::Slot(slot) | Meaning::Length(slot, _) => slots(slot),
            Meaning::Zero => false,
        }
    }
}

/// The values of a numeric type without fraction.
pub(super) fn range_of_type(ty: TypeId) -> Option<(i64, i64)> {
    match ty {
        TypeId::INTEGER => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
        TypeId::UNSIGNED => Some((0, i64::from(u32::MAX))),
        TypeId::BYTE => Some((0, i64::from(u8::MAX))),
        _ => None,
    }
}
