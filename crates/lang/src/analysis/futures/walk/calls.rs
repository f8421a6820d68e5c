//! Calls: the callee's summary in terms of the caller, and what the callee learns of the caller.

use std::collections::BTreeSet;

use super::{State, Walker};
use crate::analysis::futures::effects::{Deed, Effects};
use crate::analysis::futures::natives::{self, Native};
use crate::analysis::futures::places::{Apart, Cell, How, Path, Range, Root, Rows, Step};
use crate::analysis::futures::symbols::{Meaning, Symbols, range_of_type};
use crate::analysis::futures::world::Entry;
use crate::analysis::futures::zone::{Linear, Symbol, ZERO, Zone};
use crate::core::ir::*;
use crate::source::Span;
use crate::tree::{MemberId, ProcCode, ProcId};
use crate::types::{Type, TypeId};

impl Walker<'_, '_> {
    /// Walks over a call; returns the effects of the callee alone.
    pub(super) fn call(
        &mut self,
        target: Option<SlotId>,
        callee: &Callee,
        args: &[Argument],
        span: Span,
        state: &mut State,
        out: &mut Effects,
    ) -> Effects {
        for argument in args {
            self.read(&argument.value, span, state, out);
        }
        let mut called = out.of_part();
        let mut needed: Vec<Path> = Vec::new();
        if !out.is_ignored {
            let counted = args.iter().filter(|arg| self.world.is_counted(arg.ty));
            needed.extend(counted.flat_map(|arg| self.paths(&arg.value, state)));
        }
        match callee {
            Callee::Proc(proc) => {
                let result = self.call_proc(*proc, args, span, state, &mut called);
                self.take_result(target, result, state);
            }
            Callee::Value(value, ty) => {
                self.read(value, span, state, out);
                called.does(Deed::CallsValue, span);
                called.does(Deed::Raises, span);
                let before = state.clone();
                state.zone.end();
                for &proc in &self.world.module.valued {
                    if self.world.program.procs[proc.index()].ty == *ty {
                        let mut after = before.clone();
                        let result = self.call_proc(proc, args, span, &mut after, &mut called);
                        self.take_result(target, result, &mut after);
                        state.join(&after);
                    }
                }
            }
        }
        out.absorb(&called);
        // What runs inside of the call keeps its arguments by itself.
        for path in needed {
            called.touch(path, Cell::Life, How::Read, span);
        }
        called
    }

    fn call_proc(
        &mut self,
        proc: ProcId,
        args: &[Argument],
        span: Span,
        state: &mut State,
        called: &mut Effects,
    ) -> Outcome {
        let paths: Vec<Vec<Path>> = args
            .iter()
            .map(|argument| self.paths(&argument.value, state))
            .collect();
        match &self.world.program.procs[proc.index()].code {
            ProcCode::Native {
                symbol,
                blocks,
                raises,
                ..
            } => {
                let name = self.world.program.names.name(*symbol);
                let native = natives::of(name, *blocks);
                self.call_native(native, args, &paths, span, state, called);
                if *raises {
                    called.does(Deed::Raises, span);
                }
                Outcome::default()
            }
            ProcCode::Body(_) => self.call_body(proc, args, &paths, span, state, called),
        }
    }

    fn call_native(
        &self,
        native: Native,
        args: &[Argument],
        paths: &[Vec<Path>],
        span: Span,
        state: &State,
        called: &mut Effects,
    ) {
        match native {
            Native::Pure => {}
            Native::Reads => {
                for (argument, paths) in args.iter().zip(paths) {
                    for path in paths {
                        self.read_below(path, argument.ty, span, called);
                    }
                }
            }
            Native::Transforms => {
                let mut range = Range::default();
                range.lower.push((ZERO, 0));
                if let Some(count) = args.get(1) {
                    range.upper = self.range_of(&count.value, state).upper;
                    range.upper.iter_mut().for_each(|(_, offset)| *offset -= 1);
                }
                let cell = Cell::Element(TypeId::INTEGER);
                for path in paths.first().into_iter().flatten() {
                    for how in [How::Read, How::Write] {
                        let range = range.clone();
                        called.touch(path.then(Step { cell, range }), cell, how, span);
                    }
                }
            }
            Native::Does(deed) => {
                called.does(deed, span);
                for (argument, paths) in args.iter().zip(paths) {
                    for path in paths {
                        self.read_below(path, argument.ty, span, called);
                    }
                }
            }
        }
    }

    fn call_body(
        &mut self,
        proc: ProcId,
        args: &[Argument],
        paths: &[Vec<Path>],
        span: Span,
        state: &mut State,
        called: &mut Effects,
    ) -> Outcome {
        let world = self.world;
        let Some(function) = world.of_proc[proc.index()] else {
            called.does(Deed::CallsValue, span);
            return Outcome::default();
        };
        let symbols = &world.symbols[function];
        let numbers = self.formal_numbers(function, symbols, args, state);
        if self.records {
            let entry = Entry {
                proc,
                zone: entry_zone(symbols, &numbers, &state.zone),
                ties: self.entry_ties(args, paths, state),
                is_caught: self.is_caught() || self.own_caller_catches(),
            };
            self.found.entries.push(entry);
        }
        let summary = &world.summaries[proc.index()];
        let translation = Translation {
            walker: self,
            numbers: &numbers,
            paths,
            state,
        };
        let is_ignored = called.is_ignored;
        let accesses = summary.effects.accesses.iter();
        for access in accesses.filter(|_| !is_ignored) {
            for path in translation.paths(&access.path) {
                called.touch(path, access.cell, access.how, access.span);
            }
        }
        called.absorb_deeds(&summary.effects);
        if world.is_recursive[proc.index()] {
            called.does(Deed::MayNotEnd, span);
        }
        let outcome = Outcome {
            paths: summary
                .result
                .iter()
                .flat_map(|path| match path.root {
                    Root::New(_) => vec![Path::of(Root::Result)],
                    _ => translation.paths(path),
                })
                .collect(),
            range: summary.range.as_ref().map(|range| translation.range(range)),
            ties: summary
                .ties
                .iter()
                .flat_map(|&(a, b)| {
                    let (a, b) = (translation.roots(a), translation.roots(b));
                    let pairs = a.iter().flat_map(|&a| b.iter().map(move |&b| (a, b)));
                    pairs.collect::<Vec<_>>()
                })
                .collect(),
        };
        if !summary.returns {
            state.zone.end();
        }
        outcome
    }

    fn own_caller_catches(&self) -> bool {
        match self.function.role {
            Role::Proc(proc) => self.world.is_caught[proc.index()],
            _ => false,
        }
    }

    /// The slot that takes the result of a call.
    fn take_result(&mut self, target: Option<SlotId>, outcome: Outcome, state: &mut State) {
        let result = target.map(Root::New);
        for (a, b) in outcome.ties {
            let own = |root| match (root, result) {
                (Root::Result, Some(result)) => result,
                _ => root,
            };
            self.found.ties.tie(own(a), own(b));
        }
        let Some(target) = target else { return };
        self.unknown_number(target, state);
        state.facts.remove(&target);
        let SlotType::Of(ty) = self.function.slots[target.index()].ty else {
            return;
        };
        if self.world.is_counted(ty) {
            let mut paths: Vec<Path> = Vec::new();
            for mut path in outcome.paths {
                if path.root == Root::Result {
                    path.root = Root::New(target);
                }
                if !paths.contains(&path) {
                    paths.push(path);
                }
            }
            if paths.is_empty() {
                paths.push(Path::of(Root::New(target)));
            }
            state.values.insert(target, paths);
        }
        if let (Some(symbol), Some(range)) =
            (self.symbols.get(Meaning::Slot(target)), outcome.range)
        {
            for (other, offset) in range.upper {
                state.zone.learn_at_most((symbol, 0), 0, (other, offset));
            }
            for (other, offset) in range.lower {
                state.zone.learn_at_most((other, offset), 0, (symbol, 0));
            }
        }
    }

    /// The callee's formal symbols in the caller's terms.
    fn formal_numbers(
        &self,
        function: usize,
        symbols: &Symbols,
        args: &[Argument],
        state: &State,
    ) -> Vec<Option<Known>> {
        let callee = &self.world.module.functions[function];
        let argument = |slot: SlotId| {
            let at = callee.params.iter().position(|&param| param == slot)?;
            args.get(at)
        };
        let mut known = Vec::with_capacity(symbols.formals);
        for symbol in symbols.formals() {
            known.push(match symbols.meaning(symbol) {
                Meaning::Zero => Some(Known::Exactly((ZERO, 0))),
                Meaning::Slot(slot) => {
                    argument(slot).map(|argument| match self.linear(&argument.value, state) {
                        Some(linear) => Known::Exactly(linear),
                        None => {
                            let (low, high) = self.interval(&argument.value, state);
                            let all =
                                range_of_type(argument.ty).unwrap_or((i64::MIN / 8, i64::MAX / 8));
                            Known::Within(low.unwrap_or(all.0), high.unwrap_or(all.1))
                        }
                    })
                }
                Meaning::Length(slot, depth) => {
                    argument(slot).map(|argument| match self.length(&argument.value, depth) {
                        Some(linear) => Known::Exactly(linear),
                        None => Known::Within(1, i64::from(i32::MAX)),
                    })
                }
            });
        }
        known
    }

    /// The arguments that may reach one object, or one that the callee knows otherwise.
    fn entry_ties(
        &self,
        args: &[Argument],
        paths: &[Vec<Path>],
        state: &State,
    ) -> Vec<(Root, Root)> {
        let ties = &self.found.ties;
        let apart = Apart {
            shared: &self.world.shared,
            zone: &state.zone,
            is_common: &|_| true,
            rounds: None,
        };
        let meet = |a: &Path, b: &Path| {
            if a.root != b.root {
                return ties.are_tied(a.root, b.root);
            }
            a.root == Root::Unknown || !apart.are_apart(&a.steps, &b.steps)
        };
        let is_data = |at: usize| match self.world.ty(args[at].ty) {
            Type::Array(_) | Type::Struct(_) => true,
            _ => self.world.is_counted(args[at].ty),
        };
        let mut found = BTreeSet::new();
        for first in (0..args.len()).filter(|&at| is_data(at)) {
            let param = Root::Param(first as u32);
            for second in (first + 1..args.len()).filter(|&at| is_data(at)) {
                if paths[first]
                    .iter()
                    .any(|a| paths[second].iter().any(|b| meet(a, b)))
                {
                    found.insert((param, Root::Param(second as u32)));
                }
            }
            for path in &paths[first] {
                if ties.is_unknown(path.root) {
                    found.insert((param, Root::Unknown));
                }
                let members = self.component.map_or(0, |component| {
                    self.world.program.components[component.index()]
                        .members
                        .len()
                });
                for member in 0..members {
                    let member = Root::Member(MemberId(member as u32));
                    if ties.are_tied(path.root, member) {
                        found.insert((param, member));
                    }
                }
            }
        }
        found.into_iter().collect()
    }
}

/// The effect of a call on its caller. [`Root::Result`] is the new object that it yields.
#[derive(Default)]
struct Outcome {
    paths: Vec<Path>,
    range: Option<Range>,
    ties: Vec<(Root, Root)>,
}

/// A number of the callee in the caller's terms.
#[derive(Clone, Copy)]
enum Known {
    Exactly(Linear),
    Within(i64, i64),
}

/// The callee's formal symbols with all that the caller knows of their differences.
fn entry_zone(symbols: &Symbols, numbers: &[Option<Known>], caller: &Zone) -> Zone {
    let mut zone = Zone::new(symbols.formals);
    if !caller.is_reachable() {
        zone.end();
        return zone;
    }
    let formals: Vec<Symbol> = symbols.formals().collect();
    for (&x, known) in formals.iter().zip(numbers) {
        let (low, high) = match known {
            Some(Known::Exactly(linear)) => caller.range(*linear),
            Some(Known::Within(low, high)) => (Some(*low), Some(*high)),
            None => continue,
        };
        if let Some(high) = high {
            zone.add(x, ZERO, high);
        }
        if let Some(low) = low {
            zone.add(ZERO, x, -low);
        }
    }
    for (&x, of_x) in formals.iter().zip(numbers) {
        for (&y, of_y) in formals.iter().zip(numbers) {
            if let (Some(Known::Exactly(a)), Some(Known::Exactly(b))) = (of_x, of_y)
                && let Some(bound) = caller.bound(a.0, b.0)
            {
                zone.add(x, y, bound + a.1 - b.1);
            }
        }
    }
    zone
}

/// The callee's places in the caller's terms.
struct Translation<'t, 'w, 'a> {
    walker: &'t Walker<'w, 'a>,
    numbers: &'t [Option<Known>],
    paths: &'t [Vec<Path>],
    state: &'t State,
}

impl Translation<'_, '_, '_> {
    fn paths(&self, path: &Path) -> Vec<Path> {
        let steps: Vec<Step> = path
            .steps
            .iter()
            .map(|step| Step {
                cell: step.cell,
                range: self.range(&step.range),
            })
            .collect();
        let starts = match path.root {
            Root::Param(param) => self.paths.get(param as usize).cloned().unwrap_or_default(),
            root => vec![Path::of(root)],
        };
        starts
            .into_iter()
            .map(|mut start| {
                start.steps.extend(steps.iter().cloned());
                start
            })
            .collect()
    }

    fn roots(&self, root: Root) -> Vec<Root> {
        match root {
            Root::Param(param) => {
                let paths = self.paths.get(param as usize).into_iter().flatten();
                paths.map(|path| path.root).collect()
            }
            root => vec![root],
        }
    }

    fn range(&self, range: &Range) -> Range {
        let zone = &self.state.zone;
        let symbols = self.walker.symbols;
        let stable = || symbols.all().filter(|&s| symbols.is_stable_symbol(s));
        let mut found = Range::default();
        for &(formal, offset) in &range.upper {
            match self.numbers[usize::from(formal.0)] {
                Some(Known::Exactly((symbol, more))) => {
                    for other in stable() {
                        if let Some(bound) = zone.bound(symbol, other) {
                            tighten(&mut found.upper, (other, bound + more + offset), i64::min);
                        }
                    }
                }
                Some(Known::Within(_, high)) => {
                    tighten(&mut found.upper, (ZERO, high + offset), i64::min);
                }
                None => {}
            }
        }
        for &(formal, offset) in &range.lower {
            match self.numbers[usize::from(formal.0)] {
                Some(Known::Exactly((symbol, more))) => {
                    for other in stable() {
                        if let Some(bound) = zone.bound(other, symbol) {
                            tighten(&mut found.lower, (other, more + offset - bound), i64::max);
                        }
                    }
                }
                Some(Known::Within(low, _)) => {
                    tighten(&mut found.lower, (ZERO, low + offset), i64::max);
                }
                None => {}
            }
        }
        found.rows = range.rows.as_ref().and_then(|rows| {
            let Some(Known::Exactly((symbol, more))) = self.numbers[usize::from(rows.width.0.0)]
            else {
                return None;
            };
            symbols.is_stable_symbol(symbol).then(|| {
                Box::new(Rows {
                    width: (symbol, more + rows.width.1),
                    row: self.range(&rows.row),
                    place: self.range(&rows.place),
                })
            })
        });
        found
    }
}

fn tighten(bounds: &mut Vec<Linear>, (symbol, offset): Linear, better: fn(i64, i64) -> i64) {
    match bounds.iter_mut().find(|(other, _)| *other == symbol) {
        Some((_, known)) => *known = better(*known, offset),
        None => bounds.push((symbol, offset)),
    }
}
