//! Facts about procedures and loops from the text alone: which variables they assign, and whether
//! they create, connect or communicate anything.

use super::weights::Pace;
use crate::core::ir::*;
use crate::core::passes::{blocks_of, statement_target};
use crate::tree::{MemberId, ProcCode, ProcId, Program};
use crate::types::{Type, Types};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// Natives whose call changes who runs where, or what comes over a channel.
const STRUCTURAL_NATIVES: [&str; 4] = [
    "hearth_set_core",
    "hearth_set_timer",
    "hearth_unset_timer",
    "hearth_set_rtimer",
];

/// The possible effects of a piece of code.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Writes {
    pub(super) slots: BTreeSet<SlotId>,
    /// Members of the component that the code belongs to.
    pub(super) members: BTreeSet<MemberId>,
    /// It makes or stores components or channels, connects, sends, receives or places.
    pub(super) is_structural: bool,
    /// Facts about a loop.
    pub(super) pace: Pace,
}

/// The facts of a module, found once or when asked for.
pub(super) struct Facts<'a> {
    types: &'a Types,
    valued: &'a [ProcId],
    procs: Vec<Writes>,
    /// By the address of the loop in the module.
    loops: HashMap<usize, Rc<Writes>>,
    functions: HashMap<usize, Rc<Writes>>,
}

impl<'a> Facts<'a> {
    pub(super) fn new(program: &'a Program, module: &'a Module) -> Facts<'a> {
        let mut facts = Facts {
            types: &program.types,
            valued: &module.valued,
            procs: program.procs.iter().map(native_writes(program)).collect(),
            loops: HashMap::new(),
            functions: HashMap::new(),
        };
        // Procedures call each other: round and round until nothing is added.
        let mut is_changed = true;
        while is_changed {
            is_changed = false;
            for function in &module.functions {
                let Role::Proc(proc) = function.role else {
                    continue;
                };
                let mut writes = Writes::default();
                facts.add_block(&function.body, &mut writes);
                writes.slots.clear();
                if writes != facts.procs[proc.index()] {
                    facts.procs[proc.index()] = writes;
                    is_changed = true;
                }
            }
        }
        facts
    }

    /// The possible effects of a round of a loop.
    pub(super) fn of_loop(&mut self, l: &Loop) -> Rc<Writes> {
        let key = std::ptr::from_ref(l) as usize;
        if let Some(known) = self.loops.get(&key) {
            return Rc::clone(known);
        }
        let mut writes = Writes {
            pace: Pace::of(l),
            ..Writes::default()
        };
        self.add_block(&l.prepare, &mut writes);
        self.add_block(&l.body, &mut writes);
        let writes = Rc::new(writes);
        self.loops.insert(key, Rc::clone(&writes));
        writes
    }

    /// The possible effects of a whole function, by its number in the module.
    pub(super) fn of_function(&mut self, number: usize, function: &Function) -> Rc<Writes> {
        if let Some(known) = self.functions.get(&number) {
            return Rc::clone(known);
        }
        let mut writes = Writes::default();
        self.add_block(&function.body, &mut writes);
        let writes = Rc::new(writes);
        self.functions.insert(number, Rc::clone(&writes));
        writes
    }

    fn add_block(&self, block: &Block, writes: &mut Writes) {
        for stmt in block {
            writes.slots.extend(statement_target(&stmt.kind));
            self.add_own(&stmt.kind, writes);
            for inner in blocks_of(&stmt.kind) {
                self.add_block(inner, writes);
            }
        }
    }

    fn add_own(&self, stmt: &StmtKind, writes: &mut Writes) {
        match stmt {
            StmtKind::Set {
                place: StorePlace::Member(member),
                ..
            } => {
                writes.members.insert(*member);
            }
            // Where components and channels are stored decides who is connected later.
            StmtKind::Set {
                place: StorePlace::Element(_, _, element),
                ..
            } => {
                writes.is_structural |= matches!(
                    self.types.get(*element),
                    Type::Component(_) | Type::Channel(..)
                );
            }
            StmtKind::Call { callee, .. } => match callee {
                Callee::Proc(proc) => self.add_proc(*proc, writes),
                Callee::Value(..) => {
                    for &proc in self.valued {
                        self.add_proc(proc, writes);
                    }
                }
            },
            StmtKind::NewChannel { .. }
            | StmtKind::PortOf { .. }
            | StmtKind::NewComponent { .. }
            | StmtKind::PortAssign { .. }
            | StmtKind::Send { .. }
            | StmtKind::Receive { .. }
            | StmtKind::Select { .. }
            | StmtKind::Connect(..)
            | StmtKind::Disconnect(_)
            | StmtKind::Publish { .. }
            | StmtKind::StopOther(_) => writes.is_structural = true,
            _ => {}
        }
    }

    fn add_proc(&self, proc: ProcId, writes: &mut Writes) {
        let callee = &self.procs[proc.index()];
        writes.members.extend(&callee.members);
        writes.is_structural |= callee.is_structural;
    }
}

fn native_writes(program: &Program) -> impl Fn(&crate::tree::Proc) -> Writes + '_ {
    |proc| Writes {
        is_structural: match &proc.code {
            ProcCode::Native { symbol, .. } => {
                STRUCTURAL_NATIVES.contains(&program.names.name(*symbol))
            }
            ProcCode::Body(_) => false,
        },
        ..Writes::default()
    }
}
