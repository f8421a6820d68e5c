//! Names in sight while a body is generated.

use crate::tree::*;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Storage {
    Local(usize),
    Member(usize),
    Port(usize),
}

/// A variable in sight.
#[derive(Clone, Debug)]
pub(super) struct Visible {
    pub(super) storage: Storage,
    pub(super) name: String,
    pub(super) ty: Type,
    pub(super) assignable: bool,
    /// Least lengths of an array, outermost first; missing ones count as 1.
    pub(super) lengths: Vec<u32>,
    /// An integer known to lie in 0..below.
    pub(super) below: Option<u32>,
    /// Number of enclosing scopes.
    pub(super) level: usize,
}

/// The body being generated.
#[derive(Default)]
pub(super) struct Scope {
    pub(super) locals: Vec<Variable>,
    /// Number of locals that are parameters.
    pub(super) params: usize,
    pub(super) visible: Vec<Visible>,
    marks: Vec<usize>,
    /// The component it belongs to.
    pub(super) owner: Option<usize>,
    /// The result type, in a procedure.
    pub(super) result: Option<Type>,
    /// Number of runs of the current place for one run of the body.
    pub(super) multiplicity: u64,
    pub(super) cost: u64,
    /// Statements made so far.
    pub(super) made: usize,
    /// Whether an exception raised here is caught, or may leave the body.
    pub(super) may_raise: bool,
    pub(super) raises: bool,
    pub(super) may_print: bool,
    pub(super) prints: bool,
    /// Whether calls of user procedures are forbidden: for places with an unspecified order of
    /// effects.
    pub(super) quiet: bool,
    /// Whether this is inside an index.
    pub(super) indexing: bool,
}

/// Largest estimated number of steps of one body.
pub(super) const DEAR: u64 = 6_000;

/// The most statements in one body.
const LONG: usize = 30;

/// Nesting beyond which only simple statements and expressions are generated.
const DEEP: usize = 6;

impl Scope {
    pub(super) fn body(owner: Option<usize>) -> Self {
        Scope {
            owner,
            multiplicity: 1,
            ..Scope::default()
        }
    }

    pub(super) fn enter(&mut self) {
        self.marks.push(self.visible.len());
    }

    pub(super) fn leave(&mut self) {
        let mark = self.marks.pop().unwrap_or(0);
        self.visible.truncate(mark);
    }

    pub(super) fn level(&self) -> usize {
        self.marks.len()
    }

    pub(super) fn is_deep(&self) -> bool {
        self.level() > DEEP
    }

    /// A new variable of the innermost scope; its number.
    pub(super) fn declare(&mut self, name: String, ty: Type) -> usize {
        let index = self.locals.len();
        self.locals.push(Variable {
            name: name.clone(),
            ty: ty.clone(),
        });
        let level = self.level();
        self.visible.push(Visible {
            storage: Storage::Local(index),
            name,
            ty,
            assignable: true,
            lengths: Vec::new(),
            below: None,
            level,
        });
        index
    }

    pub(super) fn newest(&mut self) -> &mut Visible {
        self.visible.last_mut().expect("a variable was declared")
    }

    /// Variables that no other of the same name hides.
    pub(super) fn in_sight(&self) -> impl Iterator<Item = &Visible> {
        let all = &self.visible;
        all.iter().enumerate().filter_map(move |(index, variable)| {
            let hidden = all[index + 1..]
                .iter()
                .any(|later| later.name == variable.name);
            (!hidden).then_some(variable)
        })
    }

    pub(super) fn spend(&mut self, steps: u64) {
        self.cost += steps * self.multiplicity;
    }

    /// Whether this many steps here would still be cheap enough.
    pub(super) fn affords(&self, steps: u64) -> bool {
        self.made < LONG && self.cost + steps * self.multiplicity < DEAR
    }
}

impl Visible {
    pub(super) fn expr(&self) -> Expr {
        let kind = match self.storage {
            Storage::Local(index) => ExprKind::Local(index),
            Storage::Member(index) => ExprKind::Member(index),
            Storage::Port(index) => ExprKind::Port(index),
        };
        Expr {
            kind,
            ty: self.ty.clone(),
        }
    }
}
