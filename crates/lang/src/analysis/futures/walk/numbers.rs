//! Numbers: what is known of a value, what a store makes known, and what a condition tells.

use super::{State, Walker};
use crate::analysis::futures::effects::{Deed, Effects};
use crate::analysis::futures::places::{Range, Rows};
use crate::analysis::futures::symbols::{Meaning, range_of_type};
use crate::analysis::futures::zone::{Linear, Symbol, ZERO};
use crate::core::ir::*;
use crate::source::Span;
use crate::tree::{BinaryOp, UnaryOp};
use crate::types::TypeId;

type Interval = (Option<i64>, Option<i64>);

/// A number is at least the symbol plus the first, and at most the symbol plus the second.
type Bounds = (Symbol, Option<i64>, Option<i64>);

impl Walker<'_, '_> {
    /// A value as a symbol plus a constant, if it is one and does not wrap.
    pub(super) fn linear(&self, value: &Value, state: &State) -> Option<Linear> {
        match value {
            Value::Int(n, _) => Some((ZERO, *n)),
            Value::Slot(slot) => Some((self.symbols.get(Meaning::Slot(*slot))?, 0)),
            Value::Length(array) => self.length(array, 0),
            Value::Convert(_, to, inner) => {
                let range = range_of_type(*to)?;
                is_within(self.interval(inner, state), range).then(|| self.linear(inner, state))?
            }
            Value::Binary(op @ (BinaryOp::Add | BinaryOp::Subtract), ty, a, b) => {
                let (a, b) = (self.linear(a, state)?, self.linear(b, state)?);
                let (symbol, offset) = match op {
                    BinaryOp::Add if b.0 == ZERO => (a.0, a.1 + b.1),
                    BinaryOp::Add if a.0 == ZERO => (b.0, a.1 + b.1),
                    BinaryOp::Subtract if b.0 == ZERO => (a.0, a.1 - b.1),
                    BinaryOp::Subtract if a.0 == b.0 => (ZERO, a.1 - b.1),
                    _ => return None,
                };
                let range = state.zone.range((symbol, offset));
                is_within(range, range_of_type(*ty)?).then_some((symbol, offset))
            }
            _ => None,
        }
    }

    /// The length of an array, or of rows so many steps below it.
    pub(super) fn length(&self, array: &Value, depth: u8) -> Option<Linear> {
        match array {
            Value::Slot(slot) => Some((self.symbols.get(Meaning::Length(*slot, depth))?, 0)),
            Value::Member(member) => {
                let lengths = self.world.lengths(self.component?, *member)?;
                Some((ZERO, i64::from(*lengths.get(usize::from(depth))?)))
            }
            Value::Element(outer, _, element) if self.world.is_even(*element) => {
                self.length(outer, depth + 1)
            }
            _ => None,
        }
    }

    /// The least and the greatest number that a value can be.
    pub(super) fn interval(&self, value: &Value, state: &State) -> Interval {
        let whole = type_of(value).and_then(range_of_type);
        let whole = whole.map_or((None, None), |(low, high)| (Some(low), Some(high)));
        let found = match value {
            Value::Binary(op, ty, a, b) => {
                let a = self.interval(a, state);
                let b = self.interval(b, state);
                let exact = match op {
                    BinaryOp::Add => (sum(a.0, b.0), sum(a.1, b.1)),
                    BinaryOp::Subtract => (sum(a.0, minus(b.1)), sum(a.1, minus(b.0))),
                    BinaryOp::Multiply => product(a, b),
                    BinaryOp::Divide => match (a, b) {
                        ((Some(low), Some(high)), (Some(by), Some(same)))
                            if by == same && by > 0 =>
                        {
                            (Some(low / by), Some(high / by))
                        }
                        _ => (None, None),
                    },
                    BinaryOp::Remainder => match b {
                        (Some(low), Some(high)) if low > 0 => {
                            let least = if a.0.is_some_and(|low| low >= 0) {
                                0
                            } else {
                                1 - high
                            };
                            (Some(least), Some(high - 1))
                        }
                        _ => (None, None),
                    },
                    _ => (None, None),
                };
                match range_of_type(*ty) {
                    Some(range) if is_within(exact, range) => exact,
                    _ => whole,
                }
            }
            Value::Convert(_, to, inner) => {
                let inner = self.interval(inner, state);
                match range_of_type(*to) {
                    Some(range) if is_within(inner, range) => inner,
                    _ => whole,
                }
            }
            _ => whole,
        };
        // `linear` asks for the intervals of operands only, so this comes to an end.
        match self.linear(value, state) {
            Some(linear) => {
                let known = state.zone.range(linear);
                (larger(found.0, known.0), smaller(found.1, known.1))
            }
            None => found,
        }
    }

    /// The bounds of an index by symbols that keep their meaning.
    pub(super) fn range_of(&self, index: &Value, state: &State) -> Range {
        let mut range = Range::default();
        let Some((symbol, offset)) = self.linear(index, state) else {
            let (low, high) = self.interval(index, state);
            range.lower.extend(low.map(|low| (ZERO, low)));
            range.upper.extend(high.map(|high| (ZERO, high)));
            range.rows = self.rows_of(index, state);
            return range;
        };
        if matches!(index, Value::Slot(_)) {
            range.rows = self.rows_of(index, state);
        }
        for other in self.symbols.all() {
            if !self.symbols.is_stable_symbol(other) {
                continue;
            }
            if let Some(above) = state.zone.bound(symbol, other) {
                range.upper.push((other, above + offset));
            }
            if let Some(below) = state.zone.bound(other, symbol) {
                range.lower.push((other, offset - below));
            }
        }
        range
    }

    /// An index as a row and a place in it, if it is one.
    fn rows_of(&self, index: &Value, state: &State) -> Option<Box<Rows>> {
        let (product, place, more) = self.split(index)?;
        let Value::Binary(BinaryOp::Multiply, _, a, b) = product else {
            return None;
        };
        let mut ways = [(a, b), (b, a)].into_iter();
        ways.find_map(|(row, width)| self.rows(row, width, (place, more), state))
    }

    /// A sum as a product, another value and a constant.
    fn split<'v>(&'v self, sum: &'v Value) -> Option<(&'v Value, Option<&'v Value>, i64)> {
        let known = |value: &'v Value| match value {
            Value::Slot(slot) => self.symbols.product(*slot).unwrap_or(value),
            _ => value,
        };
        match known(sum) {
            Value::Binary(op @ (BinaryOp::Add | BinaryOp::Subtract), TypeId::INTEGER, a, b) => {
                if let Value::Int(more, _) = **b {
                    let (product, place, so_far) = self.split(a)?;
                    let more = if *op == BinaryOp::Add { more } else { -more };
                    return Some((product, place, so_far + more));
                }
                if *op == BinaryOp::Subtract {
                    return None;
                }
                for (part, place) in [(a, b), (b, a)] {
                    if let Some((product, None, more)) = self.split(part) {
                        return Some((product, Some(place), more));
                    }
                }
                None
            }
            product @ Value::Binary(BinaryOp::Multiply, TypeId::INTEGER, ..) => {
                Some((product, None, 0))
            }
            _ => None,
        }
    }

    fn rows(
        &self,
        row: &Value,
        width: &Value,
        (place, more): (Option<&Value>, i64),
        state: &State,
    ) -> Option<Box<Rows>> {
        let zone = &state.zone;
        let of_width = self.interval(width, state);
        let width = self.linear(width, state)?;
        let of_place = place.map(|place| (self.linear(place, state), self.interval(place, state)));
        let is_inside = match of_place {
            None => more >= 0 && zone.is_at_most((ZERO, more), 1, width),
            Some((Some((place, offset)), _)) => {
                let place = (place, offset + more);
                zone.is_at_most((ZERO, 0), 0, place) && zone.is_at_most(place, 1, width)
            }
            Some((None, (low, high))) => {
                let fits = |high: i64| zone.is_at_most((ZERO, high + more), 1, width);
                low.is_some_and(|low| low + more >= 0) && high.is_some_and(fits)
            }
        };
        // From the first place of the first row to behind the last place of the last one. What is
        // added on the way may wrap, and wraps back.
        let (first, last) = self.interval(row, state);
        let whole = product((first, sum(last, Some(1))), of_width);
        let range = range_of_type(TypeId::INTEGER)?;
        let is_known = self.symbols.is_stable_symbol(width.0);
        (is_inside && is_known && is_within(whole, range)).then(|| {
            let row = self.range_of(row, state);
            let place = match place {
                Some(place) => self.range_of(place, state).plus(more),
                None => Range {
                    lower: vec![(ZERO, more)],
                    upper: vec![(ZERO, more)],
                    rows: None,
                },
            };
            Box::new(Rows { width, row, place })
        })
    }

    /// The symbol becomes the value.
    pub(super) fn store_number(
        &self,
        symbol: Symbol,
        ty: TypeId,
        value: &Value,
        state: &mut State,
    ) {
        if let Some(linear) = self.linear(value, state) {
            state.zone.assign(symbol, linear);
        } else {
            let known = self.bounds(value, state);
            let (low, high) = self.interval(value, state);
            state.zone.forget(symbol);
            if let Some((least, most)) = range_of_type(ty) {
                state.zone.add(symbol, ZERO, high.unwrap_or(most).min(most));
                state
                    .zone
                    .add(ZERO, symbol, -low.unwrap_or(least).max(least));
            }
            for (other, low, high) in known {
                if other == symbol {
                    continue;
                }
                if let Some(high) = high {
                    state.zone.add(symbol, other, high);
                }
                if let Some(low) = low {
                    state.zone.add(other, symbol, -low);
                }
            }
        }
        for (yes, no) in state.facts.values_mut() {
            yes.forget(symbol);
            no.forget(symbol);
        }
    }

    /// Bounds of a value by symbols: at least the symbol plus the first, at most plus the second.
    fn bounds(&self, value: &Value, state: &State) -> Vec<Bounds> {
        let Value::Binary(op, ty, a, b) = value else {
            return Vec::new();
        };
        let Some(range) = range_of_type(*ty) else {
            return Vec::new();
        };
        let (of_a, of_b) = (self.interval(a, state), self.interval(b, state));
        let (lin_a, lin_b) = (self.linear(a, state), self.linear(b, state));
        let mut found = Vec::new();
        match op {
            BinaryOp::Add => {
                found.extend(self.middle_by_half(a, b, range, state));
                if is_within((sum(of_a.0, of_b.0), sum(of_a.1, of_b.1)), range) {
                    for (linear, other) in [(lin_a, of_b), (lin_b, of_a)] {
                        if let Some((symbol, offset)) = linear {
                            let by = |end: Option<i64>| end.map(|end| end + offset);
                            found.push((symbol, by(other.0), by(other.1)));
                        }
                    }
                }
            }
            BinaryOp::Subtract => {
                let exact = (sum(of_a.0, minus(of_b.1)), sum(of_a.1, minus(of_b.0)));
                if let (Some((symbol, offset)), true) = (lin_a, is_within(exact, range)) {
                    let by = |end: Option<i64>| end.map(|end| offset - end);
                    found.push((symbol, by(of_b.1), by(of_b.0)));
                }
            }
            BinaryOp::Divide if matches!(of_b, (Some(low), _) if low > 0) => {
                if let (Some((symbol, offset)), (Some(0..), _)) = (lin_a, of_a) {
                    found.push((symbol, None, Some(offset)));
                }
                if of_b == (Some(2), Some(2))
                    && let Value::Binary(BinaryOp::Add, _, p, q) = &**a
                {
                    found.extend(self.middle(p, q, range, state));
                }
            }
            BinaryOp::Remainder if matches!(of_b, (Some(low), _) if low > 0) => {
                if let (Some((symbol, offset)), (Some(0..), _)) = (lin_a, of_a) {
                    found.push((symbol, None, Some(offset)));
                }
            }
            _ => {}
        }
        found
    }

    /// `(p + q) / 2` lies between the two, and below the greater one if they differ.
    fn middle(&self, p: &Value, q: &Value, range: (i64, i64), state: &State) -> Vec<Bounds> {
        let (of_p, of_q) = (self.interval(p, state), self.interval(q, state));
        let exact = (sum(of_p.0, of_q.0), sum(of_p.1, of_q.1));
        let (Some(p), Some(q)) = (self.linear(p, state), self.linear(q, state)) else {
            return Vec::new();
        };
        // Rounding is downwards only for what is not negative.
        if !is_within(exact, range) || exact.0.is_none_or(|low| low < 0) {
            return Vec::new();
        }
        between(p, q, state).unwrap_or_default()
    }

    /// `p + (q - p) / 2`.
    fn middle_by_half(
        &self,
        a: &Value,
        b: &Value,
        range: (i64, i64),
        state: &State,
    ) -> Vec<Bounds> {
        let Value::Binary(BinaryOp::Divide, _, whole, two) = b else {
            return Vec::new();
        };
        let Value::Binary(BinaryOp::Subtract, _, q, p) = &**whole else {
            return Vec::new();
        };
        let (of_p, of_q) = (self.interval(p, state), self.interval(q, state));
        let exact = (sum(of_q.0, minus(of_p.1)), sum(of_q.1, minus(of_p.0)));
        let is_half = matches!(**two, Value::Int(2, _));
        let (Some(start), Some(p), Some(q)) = (
            self.linear(a, state),
            self.linear(p, state),
            self.linear(q, state),
        ) else {
            return Vec::new();
        };
        if !is_half || start != p || !is_within(exact, range) || !state.zone.is_at_most(p, 0, q) {
            return Vec::new();
        }
        between(p, q, state).unwrap_or_default()
    }

    // ---- conditions -----------------------------------------------------------------------------

    /// Learns that a condition has this truth.
    pub(super) fn assume(&self, condition: &Value, truth: bool, state: &mut State) {
        match condition {
            Value::Bool(known) if *known != truth => state.zone.end(),
            Value::Slot(slot) => {
                let Some((yes, no)) = state.facts.get(slot).cloned() else {
                    return;
                };
                let never = {
                    let mut never = yes.clone();
                    never.end();
                    never
                };
                let (known, now) = match truth {
                    true => (yes.clone(), (yes, never)),
                    false => (no.clone(), (never, no)),
                };
                state.zone.meet(&known);
                state.facts.insert(*slot, now);
            }
            Value::Unary(UnaryOp::Not, _, inner) => self.assume(inner, !truth, state),
            Value::Binary(op @ (BinaryOp::And | BinaryOp::Or), _, a, b) => {
                if (*op == BinaryOp::And) == truth {
                    self.assume(a, truth, state);
                    self.assume(b, truth, state);
                } else {
                    let mut other = state.clone();
                    self.assume(a, !truth, &mut other);
                    self.assume(b, truth, &mut other);
                    self.assume(a, truth, state);
                    state.join(&other);
                }
            }
            Value::Binary(op, ty, a, b) if range_of_type(*ty).is_some() => {
                let (Some(a), Some(b)) = (self.linear(a, state), self.linear(b, state)) else {
                    return;
                };
                let zone = &mut state.zone;
                match (op, truth) {
                    (BinaryOp::Less, true) | (BinaryOp::GreaterEqual, false) => {
                        zone.learn_at_most(a, 1, b);
                    }
                    (BinaryOp::LessEqual, true) | (BinaryOp::Greater, false) => {
                        zone.learn_at_most(a, 0, b);
                    }
                    (BinaryOp::Greater, true) | (BinaryOp::LessEqual, false) => {
                        zone.learn_at_most(b, 1, a);
                    }
                    (BinaryOp::GreaterEqual, true) | (BinaryOp::Less, false) => {
                        zone.learn_at_most(b, 0, a);
                    }
                    (BinaryOp::Equal, true) | (BinaryOp::NotEqual, false) => {
                        zone.learn_at_most(a, 0, b);
                        zone.learn_at_most(b, 0, a);
                    }
                    (BinaryOp::Equal, false) | (BinaryOp::NotEqual, true) => {
                        // What is at most the other, and not the other, is below it.
                        if zone.is_at_most(a, 0, b) {
                            zone.learn_at_most(a, 1, b);
                        } else if zone.is_at_most(b, 0, a) {
                            zone.learn_at_most(b, 1, a);
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// After a check the index is inside; a check that cannot be shown to hold may raise.
    pub(super) fn check_index(
        &self,
        array: &Value,
        index: &Value,
        span: Span,
        state: &mut State,
        out: &mut Effects,
    ) {
        let length = self.length(array, 0);
        let is_above = self.interval(index, state).0.is_some_and(|low| low >= 0);
        let Some(index) = self.linear(index, state) else {
            let high = self.interval(index, state).1;
            let fits =
                |length: Linear| high.is_some_and(|h| state.zone.is_at_most((ZERO, h), 1, length));
            if !is_above || !length.is_some_and(fits) {
                out.does(Deed::Raises, span);
            }
            return;
        };
        let is_below = length.is_some_and(|length| state.zone.is_at_most(index, 1, length));
        if !is_above || !is_below {
            out.does(Deed::Raises, span);
        }
        state.zone.learn_at_most((ZERO, 0), 0, index);
        if let Some(length) = length {
            state.zone.learn_at_most(index, 1, length);
        }
    }

    /// The slot holds any number of its type.
    pub(super) fn unknown_number(&self, slot: SlotId, state: &mut State) {
        if let Some(symbol) = self.symbols.get(Meaning::Slot(slot)) {
            state.zone.forget(symbol);
            self.learn_type(symbol, &mut state.zone);
            for (yes, no) in state.facts.values_mut() {
                yes.forget(symbol);
                no.forget(symbol);
            }
        }
        for depth in 0..u8::MAX {
            let Some(symbol) = self.symbols.get(Meaning::Length(slot, depth)) else {
                return;
            };
            state.zone.forget(symbol);
            self.learn_type(symbol, &mut state.zone);
        }
    }
}

/// Bounds of what lies between two numbers of which the first is at most the second.
fn between(p: Linear, q: Linear, state: &State) -> Option<Vec<Bounds>> {
    let (low, high) = if state.zone.is_at_most(p, 0, q) {
        (p, q)
    } else if state.zone.is_at_most(q, 0, p) {
        (q, p)
    } else {
        return None;
    };
    let less = i64::from(state.zone.is_at_most(low, 1, high));
    Some(vec![
        (low.0, Some(low.1), None),
        (high.0, None, Some(high.1 - less)),
    ])
}

fn type_of(value: &Value) -> Option<TypeId> {
    match value {
        Value::Int(_, ty) | Value::Unary(_, ty, _) | Value::Element(_, _, ty) => Some(*ty),
        Value::Binary(op, ty, ..) => {
            let is_number = !matches!(
                op,
                BinaryOp::And
                    | BinaryOp::Or
                    | BinaryOp::Equal
                    | BinaryOp::NotEqual
                    | BinaryOp::Less
                    | BinaryOp::LessEqual
                    | BinaryOp::Greater
                    | BinaryOp::GreaterEqual
            );
            is_number.then_some(*ty)
        }
        Value::Convert(_, to, _) => Some(*to),
        Value::Length(_) => Some(TypeId::INTEGER),
        _ => None,
    }
}

fn is_within((low, high): Interval, (least, most): (i64, i64)) -> bool {
    low.is_some_and(|low| low >= least) && high.is_some_and(|high| high <= most)
}

fn sum(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    a?.checked_add(b?)
}

fn minus(a: Option<i64>) -> Option<i64> {
    a.map(|a| -a)
}

fn larger(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    a.max(b)
}

fn smaller(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn product(a: Interval, b: Interval) -> Interval {
    let ((Some(a), Some(b)), (Some(c), Some(d))) = (a, b) else {
        return (None, None);
    };
    let ends = [
        a.checked_mul(c),
        a.checked_mul(d),
        b.checked_mul(c),
        b.checked_mul(d),
    ];
    let Some(ends) = ends.into_iter().collect::<Option<Vec<i64>>>() else {
        return (None, None);
    };
    (ends.iter().copied().min(), ends.iter().copied().max())
}
