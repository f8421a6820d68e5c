//! The middle of the compiler: typed tree → core IR → passes.
//!
//! [`effects`] says what each procedure may do, [`lower`] makes the IR, and the passes of
//! [`passes`] improve it. A later pass (futures, stack bounds) takes its place in [`build`].

pub mod effects;
pub mod ir;
mod lower;
pub mod passes;

use crate::source::Sources;
use crate::tree::{Component, Program};
pub use passes::beside::Mark;

/// Options of compiling.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoweringOptions {
    /// The original's behaviour instead of the decisions made here (the book lists them).
    pub compat_original: bool,
}

/// A lowered program: all that the analyses and the emitter know.
#[derive(Clone, Copy)]
pub struct Lowered<'a> {
    pub program: &'a Program,
    pub module: &'a ir::Module,
    pub effects: &'a effects::EffectTable,
    pub options: LoweringOptions,
    /// See [`compile::CompileOptions`](crate::compile::CompileOptions).
    pub hosted: bool,
    /// Chooses by name which calls get probes; none if the program is to have none.
    pub probes: Option<&'a dyn Fn(&str) -> bool>,
    /// The user's text, its name in messages and `#line`, and the preludes.
    pub sources: Sources<'a>,
}

/// Clears `used` of the procedures and components that neither the main sequence nor a kept
/// component reaches: they need not be compiled.
pub fn prune(program: &mut Program, keep: impl Fn(&Component) -> bool) {
    let (procs, components) = effects::reachable(program, keep);
    for (proc, reached) in program.procs.iter_mut().zip(procs) {
        proc.used &= reached;
    }
    for (component, reached) in program.components.iter_mut().zip(components) {
        component.used &= reached;
    }
}

/// Lowers a program without errors; loops are as the text has them, and last uses are moves.
pub fn lowered(program: &Program, options: LoweringOptions) -> ir::Module {
    let table = effects::EffectTable::new(program);
    let mut module = lower::lower(program, &table, options);
    for function in &mut module.functions {
        passes::liveness::run(function, &table);
    }
    module
}

/// Lowers a program without errors and runs all passes over it. `beside` looks at it as
/// [`lowered`] makes it, and says which calls and loops are to be marked as independent.
pub fn build(
    program: &Program,
    options: LoweringOptions,
    beside: &dyn Fn(&ir::Module) -> Vec<Mark>,
) -> (ir::Module, effects::EffectTable) {
    let table = effects::EffectTable::new(program);
    let mut module = lower::lower(program, &table, options);
    for function in &mut module.functions {
        passes::liveness::run(function, &table);
    }
    let marks = beside(&module);
    passes::beside::run(&mut module, &marks);
    let ragged = module.ragged.clone();
    for function in &mut module.functions {
        passes::loops::run(function, program, &table, &ragged);
        passes::parts::run(function);
    }
    (module, table)
}
