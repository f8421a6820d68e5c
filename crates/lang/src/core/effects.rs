//! The possible effects of procedures, found once for the whole program before lowering.
//!
//! The least fixed point over the call graph: a procedure blocks, raises or writes if its own text
//! does or if something it calls does. Procedure values are treated by type: calling one may do
//! whatever any procedure of that type that is used as a value may do.

use crate::tree::*;
use crate::types::{TypeId, Types};
use std::collections::HashMap;

/// The possible effects of a piece of program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Effects {
    /// Wait: communicate, or call what does.
    pub blocks: bool,
    /// Leave by an exception or a stop.
    pub raises: bool,
    /// Store a reference somewhere other than a new variable: may end an object's life.
    pub writes_refs: bool,
    /// Store into members or elements, or have any effect a later read could notice.
    pub writes: bool,
}

impl Effects {
    pub const ALL: Effects = Effects {
        blocks: true,
        raises: true,
        writes_refs: true,
        writes: true,
    };

    pub(super) fn join(&mut self, other: Effects) {
        self.blocks |= other.blocks;
        self.raises |= other.raises;
        self.writes_refs |= other.writes_refs;
        self.writes |= other.writes;
    }
}

/// Effects of every procedure, and of every procedure type.
#[derive(Debug)]
pub struct EffectTable {
    procs: Vec<Effects>,
    values: HashMap<TypeId, Effects>,
    /// Procedures used as values.
    pub valued: Vec<ProcId>,
    /// By procedure and parameter: true if a reference passed in may be kept or passed on.
    keeps: Vec<Vec<bool>>,
    /// Procedures that can reach themselves: their frames come from the heap.
    pub recursive: Vec<bool>,
}

impl EffectTable {
    pub fn new(program: &Program) -> Self {
        let mut table = EffectTable {
            procs: vec![Effects::default(); program.procs.len()],
            values: HashMap::new(),
            valued: Vec::new(),
            keeps: program
                .procs
                .iter()
                .map(|proc| vec![false; params_of(proc)])
                .collect(),
            recursive: vec![false; program.procs.len()],
        };
        table.find_valued(program);
        loop {
            let mut changed = false;
            for (i, proc) in program.procs.iter().enumerate() {
                let effects = match &proc.code {
                    ProcCode::Native { blocks, raises, .. } => Effects {
                        blocks: *blocks,
                        raises: *raises || *blocks,
                        writes_refs: false,
                        writes: true,
                    },
                    ProcCode::Body(body) => table.of(&body.block, &program.types),
                };
                changed |= effects != table.procs[i];
                table.procs[i] = effects;
            }
            for &proc in &table.valued {
                let effects = table.procs[proc.index()];
                let entry = table
                    .values
                    .entry(program.procs[proc.index()].ty)
                    .or_default();
                let before = *entry;
                entry.join(effects);
                entry.raises = true; // the owner may be another component
                changed |= *entry != before;
            }
            if !changed {
                break;
            }
        }
        table.find_keeping(program);
        table.find_recursion(program);
        table
    }

    pub fn of_proc(&self, proc: ProcId) -> Effects {
        self.procs[proc.index()]
    }

    /// Calling a value of this type. A type no procedure value has cannot be called at all.
    pub fn of_value(&self, ty: TypeId) -> Effects {
        self.values.get(&ty).copied().unwrap_or(Effects {
            raises: true,
            ..Effects::default()
        })
    }

    /// May anything but the variable itself refer to its object after this, or outlive it?
    pub fn escapes(&self, expr: &Expr, local: LocalId) -> bool {
        use ExprKind as E;
        let named = |e: &Expr| matches!(e.kind, E::Local(l) if l == local);
        let inside = |e: &Expr| self.escapes(e, local);
        // Looking into the object, and copying it, lets nothing out.
        let looked_at = |e: &Expr| !named(e) && inside(e);
        match &expr.kind {
            E::Local(l) => *l == local,
            E::Field(e, _) | E::Length(e) | E::Box(e) => looked_at(e),
            E::Index(array, index) => looked_at(array) || inside(index),
            E::Binary(_, a, b) => looked_at(a) || looked_at(b),
            E::NewArray { init, .. } => looked_at(init),
            E::NewComponent { args, .. } => args.iter().any(looked_at),
            E::Call(Callee::Proc(proc), args) => args.iter().enumerate().any(|(i, arg)| {
                let kept = self.keeps[proc.index()].get(i).copied().unwrap_or(false);
                if named(arg) { kept } else { inside(arg) }
            }),
            _ => {
                let mut found = false;
                children(expr, &mut |child| found |= self.escapes(child, local));
                found
            }
        }
    }

    fn find_keeping(&mut self, program: &Program) {
        loop {
            let mut changed = false;
            for (i, proc) in program.procs.iter().enumerate() {
                let ProcCode::Body(body) = &proc.code else {
                    continue;
                };
                for param in 0..body.params {
                    let local = LocalId(param as u32);
                    if !self.keeps[i][param]
                        && (self.escapes(&body.block, local) || is_assigned(body, local))
                    {
                        self.keeps[i][param] = true;
                        changed = true;
                    }
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// The possible effects of evaluating an expression.
    pub fn of(&self, expr: &Expr, types: &Types) -> Effects {
        let mut effects = Effects::default();
        walk(expr, &mut |e| effects.join(self.own(e, types)));
        effects
    }

    /// The possible effects of the node itself, without its children.
    fn own(&self, expr: &Expr, types: &Types) -> Effects {
        let raises = Effects {
            raises: true,
            ..Effects::default()
        };
        match &expr.kind {
            ExprKind::Index(..) => raises,
            ExprKind::Binary(BinaryOp::Divide | BinaryOp::Remainder, ..)
                if expr.ty != TypeId::REAL =>
            {
                raises
            }
            ExprKind::Call(Callee::Proc(proc), _) => self.of_proc(*proc),
            ExprKind::Call(Callee::Value(value), _) => self.of_value(value.ty),
            ExprKind::Assign(place, _) => Effects {
                writes: true,
                writes_refs: is_reference(types, place.ty),
                ..Effects::default()
            },
            ExprKind::Let(..) | ExprKind::For { .. } => Effects {
                writes: true,
                ..Effects::default()
            },
            ExprKind::Send { .. }
            | ExprKind::Receive { .. }
            | ExprKind::Acknowledge { .. }
            | ExprKind::Select { .. }
            | ExprKind::Publish { .. }
            | ExprKind::Connect(..)
            | ExprKind::Disconnect(..)
                if blocks_here(&expr.kind) =>
            {
                Effects {
                    writes_refs: false,
                    ..Effects::ALL
                }
            }
            ExprKind::Connect(..) | ExprKind::Disconnect(..) | ExprKind::NewComponent { .. } => {
                Effects {
                    writes: true,
                    ..Effects::default()
                }
            }
            ExprKind::Stop(_) | ExprKind::Throw(_) => Effects {
                raises: true,
                writes: true,
                ..Effects::default()
            },
            ExprKind::Return(_) => Effects {
                writes: true,
                ..Effects::default()
            },
            _ => Effects::default(),
        }
    }

    fn find_valued(&mut self, program: &Program) {
        for_each_body(program, &mut |body| {
            walk(&body.block, &mut |e| {
                if let ExprKind::Proc(proc) = e.kind
                    && !self.valued.contains(&proc)
                {
                    self.valued.push(proc);
                }
            });
        });
    }

    fn find_recursion(&mut self, program: &Program) {
        let callees: Vec<Vec<usize>> = program
            .procs
            .iter()
            .map(|proc| {
                let mut found = Vec::new();
                if let ProcCode::Body(body) = &proc.code {
                    walk(&body.block, &mut |e| match &e.kind {
                        ExprKind::Call(Callee::Proc(callee), _) => found.push(callee.index()),
                        ExprKind::Call(Callee::Value(value), _) => found.extend(
                            self.valued
                                .iter()
                                .filter(|p| program.procs[p.index()].ty == value.ty)
                                .map(|p| p.index()),
                        ),
                        _ => {}
                    });
                }
                found
            })
            .collect();
        for start in 0..program.procs.len() {
            let mut seen = vec![false; program.procs.len()];
            let mut work = callees[start].clone();
            while let Some(next) = work.pop() {
                if next == start {
                    self.recursive[start] = true;
                    break;
                }
                if !std::mem::replace(&mut seen[next], true) {
                    work.extend(&callees[next]);
                }
            }
        }
    }
}

fn params_of(proc: &Proc) -> usize {
    match &proc.code {
        ProcCode::Body(body) => body.params,
        // The runtime's functions borrow their arguments and copy what they keep.
        ProcCode::Native { params, .. } => params.len(),
    }
}

fn is_assigned(body: &Body, local: LocalId) -> bool {
    let mut found = false;
    walk(&body.block, &mut |e| {
        if let ExprKind::Assign(place, _) = &e.kind {
            found |= matches!(place.kind, ExprKind::Local(l) if l == local);
        }
    });
    found
}

fn blocks_here(kind: &ExprKind) -> bool {
    match kind {
        ExprKind::Connect(a, b) => is_remote(a) || is_remote(b),
        ExprKind::Disconnect(a) => is_remote(a),
        _ => true,
    }
}

fn is_remote(end: &End) -> bool {
    matches!(end, End::Remote { .. })
}

/// True if a variable of this type holds a counted reference.
pub fn is_reference(types: &Types, ty: TypeId) -> bool {
    use crate::types::Type::*;
    matches!(
        types.get(ty),
        String | Any | Struct(_) | Array(_) | Channel(..) | Component(_) | Proc { .. }
    )
}

/// Every body that is part of the program: used procedures and components, globals, main.
pub fn for_each_body(program: &Program, visit: &mut dyn FnMut(&Body)) {
    for proc in program.procs.iter().filter(|p| p.used) {
        if let ProcCode::Body(body) = &proc.code {
            visit(body);
        }
    }
    for component in program.components.iter().filter(|c| c.used) {
        component.members.iter().for_each(|m| visit(&m.init));
        component.constructors.iter().for_each(&mut *visit);
        visit(&component.behaviour);
    }
    program
        .globals
        .iter()
        .filter(|g| g.used)
        .for_each(|g| visit(&g.init));
    visit(&program.main);
}

/// Tells which procedures and components the globals, the main sequence and the kept components
/// reach.
pub fn reachable(program: &Program, keep: impl Fn(&Component) -> bool) -> (Vec<bool>, Vec<bool>) {
    let mut reached = Reached::none_of(program);
    let mut work: Vec<&Body> = vec![&program.main];
    work.extend(program.globals.iter().filter(|g| g.used).map(|g| &g.init));
    for (index, component) in program.components.iter().enumerate() {
        if keep(component) {
            reached.components[index] = true;
            work.extend(bodies(component));
        }
    }
    reached.follow(program, work, &mut |_| {});
    (reached.procs, reached.components)
}

/// True if the component's code, or code that it reaches, names a global.
pub fn names_globals(program: &Program, component: &Component) -> bool {
    let mut is_found = false;
    let work = bodies(component).collect();
    Reached::none_of(program).follow(program, work, &mut |e| {
        is_found |= matches!(e.kind, ExprKind::Global(_));
    });
    is_found
}

/// The procedures and components that some code reaches, by their numbers.
struct Reached {
    procs: Vec<bool>,
    components: Vec<bool>,
}

impl Reached {
    fn none_of(program: &Program) -> Reached {
        Reached {
            procs: vec![false; program.procs.len()],
            components: vec![false; program.components.len()],
        }
    }

    /// Adds everything that these bodies reach, and shows each expression of it to `visit`.
    fn follow<'a>(
        &mut self,
        program: &'a Program,
        mut work: Vec<&'a Body>,
        visit: &mut dyn FnMut(&Expr),
    ) {
        while let Some(body) = work.pop() {
            walk(&body.block, &mut |e| {
                visit(e);
                match &e.kind {
                    ExprKind::Call(Callee::Proc(proc), _) | ExprKind::Proc(proc) => {
                        let first = !std::mem::replace(&mut self.procs[proc.index()], true);
                        let code = &program.procs[proc.index()].code;
                        if let (true, ProcCode::Body(body)) = (first, code) {
                            work.push(body);
                        }
                    }
                    ExprKind::NewComponent { component, .. }
                        if !self.components[component.index()] =>
                    {
                        self.components[component.index()] = true;
                        work.extend(bodies(&program.components[component.index()]));
                    }
                    _ => {}
                }
            });
        }
    }
}

fn bodies(component: &Component) -> impl Iterator<Item = &Body> {
    let members = component.members.iter().map(|m| &m.init);
    members
        .chain(&component.constructors)
        .chain([&component.behaviour])
}

/// Visits an expression and everything inside it, parents first.
pub fn walk<'a>(expr: &'a Expr, visit: &mut dyn FnMut(&'a Expr)) {
    visit(expr);
    children(expr, &mut |child| walk(child, visit));
}

/// The direct parts of an expression, in evaluation order.
pub fn children<'a>(expr: &'a Expr, visit: &mut dyn FnMut(&'a Expr)) {
    use ExprKind::*;
    let end = |end: &'a End, visit: &mut dyn FnMut(&'a Expr)| match end {
        End::Local(channel) => visit(channel),
        End::Remote { name, address } => {
            visit(name);
            visit(address);
        }
    };
    match &expr.kind {
        Int(_) | Real(_) | Bool(_) | String(_) | Label(_) | Local(_) | Member(_) | Port(_)
        | Global(_) | Proc(_) | Carried | NewChannel | Nothing | Error | Stop(None)
        | Return(None) => {}
        Convert(e)
        | Unary(_, e)
        | Length(e)
        | Field(e, _)
        | PortOf(e, _)
        | Box(e)
        | Let(_, e)
        | Stop(Some(e))
        | Return(Some(e))
        | Throw(e) => visit(e),
        Binary(_, a, b) | Index(a, b) | Assign(a, b) => {
            visit(a);
            visit(b);
        }
        Call(callee, args) => {
            if let Callee::Value(value) = callee {
                visit(value);
            }
            args.iter().for_each(visit);
        }
        NewArray { init, .. } => visit(init),
        NewStruct(args) | NewComponent { args, .. } | Block(args) | Chain(args) => {
            args.iter().for_each(visit);
        }
        If {
            condition,
            then,
            otherwise,
        } => {
            visit(condition);
            visit(then);
            if let Some(e) = otherwise {
                visit(e);
            }
        }
        For { from, to, body, .. } => {
            visit(from);
            visit(to);
            visit(body);
        }
        Case {
            scrutinee,
            arms,
            default,
        } => {
            visit(scrutinee);
            for (labels, body) in arms {
                labels.iter().for_each(&mut *visit);
                visit(body);
            }
            visit(default);
        }
        Project {
            scrutinee,
            arms,
            default,
        } => {
            visit(scrutinee);
            arms.iter().for_each(|arm| visit(&arm.body));
            visit(default);
        }
        Select { arms, default } => {
            for arm in arms {
                if let Some(guard) = &arm.guard {
                    visit(guard);
                }
                visit(&arm.channel);
            }
            arms.iter().for_each(|arm| visit(&arm.body));
            if let Some(e) = default {
                visit(e);
            }
        }
        Connect(a, b) => {
            end(a, visit);
            end(b, visit);
        }
        Disconnect(a) => end(a, visit),
        Publish { channel, name } => {
            visit(channel);
            visit(name);
        }
        Send { value, channel } => {
            visit(value);
            visit(channel);
        }
        Receive { channel, .. } => visit(channel),
        Acknowledge { channel, body, .. } => {
            visit(channel);
            visit(body);
        }
        Try { body, handlers } => {
            visit(body);
            for handler in handlers {
                if let Some(label) = &handler.label {
                    visit(label);
                }
                visit(&handler.body);
            }
        }
    }
}
