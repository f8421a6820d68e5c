//! Facts of a whole program, which the walks of its functions read and extend.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::effects::Effects;
use super::places::{Cell, Path, Range, Root, Ties, are_alike, join_steps};
use super::symbols::Symbols;
use super::zone::Zone;
use crate::core::effects::{EffectTable, for_each_body, walk};
use crate::core::ir::*;
use crate::core::passes::look_at_each;
use crate::source::{SourceId, Span};
use crate::symbol::Symbol;
use crate::tree::{ComponentId, ExprKind, MemberId, ProcId, Program};
use crate::types::{Type, TypeId};

/// A procedure as its callers see it: in terms of its parameters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Summary {
    pub(super) effects: Effects,
    /// Objects that the result may be.
    pub(super) result: Vec<Path>,
    /// The range of a result that is a number.
    pub(super) range: Option<Range>,
    /// False as long as no way to its end is known.
    pub(super) returns: bool,
    pub(super) ties: Vec<(Root, Root)>,
}

/// A call as its callee sees it.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) proc: ProcId,
    /// Over the callee's formal symbols.
    pub(super) zone: Zone,
    pub(super) ties: Vec<(Root, Root)>,
    /// An exception would be caught.
    pub(super) is_caught: bool,
}

/// All that is known about a program.
pub(super) struct World<'a> {
    pub(super) program: &'a Program,
    pub(super) module: &'a Module,
    /// The function of each procedure that has one.
    pub(super) of_proc: Vec<Option<usize>>,
    /// By function.
    pub(super) symbols: Vec<Symbols>,
    /// By procedure: the functions that call it.
    callers: Vec<Vec<usize>>,
    /// By procedure, as the next three.
    pub(super) summaries: Vec<Summary>,
    pub(super) entries: Vec<Zone>,
    pub(super) entry_ties: Vec<Ties>,
    pub(super) is_caught: Vec<bool>,
    /// Members of each component that may reach one object; of the main sequence at the end.
    pub(super) member_ties: Vec<Ties>,
    /// Kinds of cells of which several may refer to one object.
    pub(super) shared: BTreeSet<Cell>,
    /// Places where the user's text names variables, in order.
    mentions: Vec<(Span, Symbol)>,
    /// Calls and loops behind the word `beside`.
    pub(super) asked: BTreeSet<Span>,
    /// Procedures that can reach themselves.
    pub(super) is_recursive: Vec<bool>,
    /// Lengths of arrays in members that are set by their initialisers only.
    lengths: BTreeMap<(ComponentId, MemberId), Vec<u32>>,
    /// The type of arrays with elements of a type.
    arrays: HashMap<TypeId, TypeId>,
}

impl<'a> World<'a> {
    pub(super) fn new(program: &'a Program, module: &'a Module) -> World<'a> {
        let symbols: Vec<Symbols> = module
            .functions
            .iter()
            .map(|function| Symbols::of(function, program))
            .collect();
        let count = program.procs.len();
        let mut of_proc = vec![None; count];
        for (index, function) in module.functions.iter().enumerate() {
            if let Role::Proc(proc) = function.role {
                of_proc[proc.index()] = Some(index);
            }
        }
        let mut entries = vec![Zone::unreachable(1); count];
        let mut entry_ties = vec![Ties::default(); count];
        let mut is_caught = vec![false; count];
        for (proc, function) in of_proc.iter().enumerate() {
            let Some(function) = *function else { continue };
            entries[proc] = Zone::unreachable(symbols[function].formals);
            // Who calls a value is not known.
            if module.valued.contains(&ProcId(proc as u32)) {
                entries[proc] = Zone::new(symbols[function].formals);
                is_caught[proc] = true;
                for param in 0..module.functions[function].params.len() {
                    entry_ties[proc].tie(Root::Param(param as u32), Root::Unknown);
                }
            }
        }
        World {
            program,
            module,
            callers: callers(program, module),
            of_proc,
            symbols,
            summaries: vec![Summary::default(); count],
            entries,
            entry_ties,
            is_caught,
            member_ties: vec![Ties::default(); program.components.len() + 1],
            shared: BTreeSet::new(),
            mentions: mentions(program),
            asked: program.asked.iter().map(|asked| asked.what).collect(),
            is_recursive: EffectTable::new(program).recursive,
            lengths: fixed_lengths(program, module),
            arrays: program
                .types
                .iter()
                .filter_map(|(id, ty)| match ty {
                    Type::Array(element) => Some((*element, id)),
                    _ => None,
                })
                .collect(),
        }
    }

    /// The first place inside `inside` that names a variable so.
    pub(super) fn mention(&self, name: Symbol, inside: Span) -> Option<Span> {
        let from = self
            .mentions
            .partition_point(|(span, _)| span.start < inside.start);
        let mut inner = self.mentions[from..]
            .iter()
            .take_while(|(span, _)| span.start < inside.end);
        inner
            .find(|(_, found)| *found == name)
            .map(|(span, _)| *span)
    }

    /// The component that a function belongs to.
    pub(super) fn owner(&self, role: Role) -> Option<ComponentId> {
        owner(self.program, role)
    }

    /// The lengths of a member's array, outermost first, if they never change.
    pub(super) fn lengths(&self, component: ComponentId, member: MemberId) -> Option<&[u32]> {
        self.lengths.get(&(component, member)).map(Vec::as_slice)
    }

    /// True if all arrays in one array with such elements have one length.
    pub(super) fn is_even(&self, element: TypeId) -> bool {
        self.arrays
            .get(&element)
            .is_none_or(|array| !self.module.ragged.contains(array))
    }

    pub(super) fn ty(&self, ty: TypeId) -> &'a Type {
        self.program.types.get(ty)
    }

    /// True for objects that can be changed.
    pub(super) fn is_data(&self, ty: TypeId) -> bool {
        matches!(self.ty(ty), Type::Array(_) | Type::Struct(_))
    }

    /// True for objects whose count of references is a plain number.
    pub(super) fn is_counted(&self, ty: TypeId) -> bool {
        self.is_data(ty) || matches!(self.ty(ty), Type::String | Type::Any | Type::Proc { .. })
    }
}

/// The functions that call each procedure. A call of a value may call any that is one.
fn callers(program: &Program, module: &Module) -> Vec<Vec<usize>> {
    let mut callers = vec![Vec::new(); program.procs.len()];
    for (index, function) in module.functions.iter().enumerate() {
        let mut called = BTreeSet::new();
        look_at_each(&function.body, &mut |stmt| match stmt {
            StmtKind::Call {
                callee: Callee::Proc(proc),
                ..
            } => {
                called.insert(*proc);
            }
            StmtKind::Call { .. } => called.extend(&module.valued),
            _ => {}
        });
        for proc in called {
            callers[proc.index()].push(index);
        }
    }
    callers
}

fn mentions(program: &Program) -> Vec<(Span, Symbol)> {
    let mut found = Vec::new();
    for_each_body(program, &mut |body| {
        walk(&body.block, &mut |expr| {
            if let (ExprKind::Local(local), SourceId::USER) = (&expr.kind, expr.span.source) {
                found.push((expr.span, body.locals[local.index()].name));
            }
        });
    });
    found.sort_by_key(|(span, _)| span.start);
    found
}

fn owner(program: &Program, role: Role) -> Option<ComponentId> {
    match role {
        Role::Proc(proc) => program.procs[proc.index()].owner,
        Role::Constructor(component, _) | Role::Members(component) | Role::Behaviour(component) => {
            Some(component)
        }
        Role::Main => None,
    }
}

fn fixed_lengths(
    program: &Program,
    module: &Module,
) -> BTreeMap<(ComponentId, MemberId), Vec<u32>> {
    let mut lengths = BTreeMap::new();
    let mut changed = BTreeSet::new();
    for function in &module.functions {
        let Some(component) = owner(program, function.role) else {
            continue;
        };
        let mut made: HashMap<SlotId, &Vec<u32>> = HashMap::new();
        look_at_each(&function.body, &mut |stmt| match stmt {
            StmtKind::NewArray {
                target, lengths, ..
            } => {
                made.insert(*target, lengths);
            }
            StmtKind::Set {
                place: StorePlace::Member(member),
                value,
                ..
            } => {
                let known = match value {
                    Value::Slot(slot) => made.get(slot),
                    _ => None,
                };
                match known {
                    Some(known) if matches!(function.role, Role::Members(_)) => {
                        lengths.insert((component, *member), (*known).clone());
                    }
                    _ => {
                        changed.insert((component, *member));
                    }
                }
            }
            _ => {}
        });
    }
    lengths.retain(|member, _| !changed.contains(member));
    lengths
}

impl World<'_> {
    /// Takes over what a walk found of a function and of those that it calls. The functions whose
    /// walks go by any of it that is new.
    pub(super) fn learn(
        &mut self,
        function: usize,
        summary: &Summary,
        entries: &[Entry],
        is_late: bool,
    ) -> Vec<usize> {
        let mut concerned = Vec::new();
        if let Role::Proc(proc) = self.module.functions[function].role {
            let known = &mut self.summaries[proc.index()];
            let joined = join(known, summary, is_late);
            if joined != *known {
                concerned.extend(&self.callers[proc.index()]);
            }
            *known = joined;
        }
        for entry in entries {
            let mut changed = false;
            let at = entry.proc.index();
            let known = &mut self.entries[at];
            if !known.covers(&entry.zone) {
                match is_late {
                    true => known.widen(&entry.zone),
                    false => known.join(&entry.zone),
                }
                changed = true;
            }
            if entry.is_caught && !self.is_caught[at] {
                self.is_caught[at] = true;
                changed = true;
            }
            changed |= add_ties(&mut self.entry_ties[at], entry.ties.iter().copied());
            if changed {
                concerned.extend(self.of_proc[at]);
            }
        }
        concerned
    }

    /// Takes over which members a function ties together.
    pub(super) fn learn_members(&mut self, function: usize, ties: &Ties) -> bool {
        let owner = self.owner(self.module.functions[function].role);
        let Some(component) = owner else { return false };
        let count = self.program.components[component.index()].members.len();
        let members = || (0..count).map(|member| Root::Member(MemberId(member as u32)));
        let mut tied = Vec::new();
        for a in members() {
            if ties.is_unknown(a) {
                tied.push((a, Root::Unknown));
            }
            for b in members().filter(|b| *b > a) {
                if ties.are_tied(a, b) {
                    tied.push((a, b));
                }
            }
        }
        add_ties(&mut self.member_ties[component.index()], tied.into_iter())
    }
}

fn add_ties(known: &mut Ties, new: impl Iterator<Item = (Root, Root)>) -> bool {
    let mut changed = false;
    for (a, b) in new {
        let is_new = match b {
            Root::Unknown => !known.is_unknown(a),
            _ => !known.are_tied(a, b),
        };
        if is_new {
            known.tie(a, b);
            changed = true;
        }
    }
    changed
}

fn join(known: &Summary, new: &Summary, is_late: bool) -> Summary {
    let mut result = known.result.clone();
    for path in &new.result {
        let alike = result
            .iter_mut()
            .find(|other| other.root == path.root && are_alike(&other.steps, &path.steps));
        match alike {
            Some(other) => join_steps(&mut other.steps, &path.steps, is_late),
            None => result.push(path.clone()),
        }
    }
    let range = match (&known.range, &new.range) {
        (Some(known), Some(new)) => {
            let mut joined = known.clone();
            joined.join(new, is_late);
            Some(joined)
        }
        (known, new) => known.clone().or_else(|| new.clone()),
    };
    let mut ties = known.ties.clone();
    ties.extend(new.ties.iter().filter(|tie| !known.ties.contains(tie)));
    Summary {
        effects: new.effects.widened(&known.effects, is_late),
        result,
        range,
        returns: known.returns || new.returns,
        ties,
    }
}
