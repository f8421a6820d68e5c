//! Smaller trees that still show a finding.

use crate::tree::*;

/// Number of parts that [`without`] can leave out of a program.
pub fn parts(program: &Program) -> usize {
    let mut counter = Pruner::default();
    let mut copy = program.clone();
    counter.program(&mut copy);
    counter.seen
}

/// The program without the parts numbered `from..to`. It need not be correct any more.
pub fn without(program: &Program, from: usize, to: usize) -> Program {
    let mut copy = program.clone();
    let mut pruner = Pruner {
        seen: 0,
        drop: from..to,
    };
    pruner.program(&mut copy);
    copy
}

/// Visits statements and declarations in the order of the text.
#[derive(Default)]
struct Pruner {
    seen: usize,
    drop: std::ops::Range<usize>,
}

impl Pruner {
    fn keeps(&mut self) -> bool {
        let number = self.seen;
        self.seen += 1;
        !self.drop.contains(&number)
    }

    fn program(&mut self, program: &mut Program) {
        program.order.retain(|_| self.keeps());
        for proc in &mut program.procs {
            self.statements(&mut proc.body.statements);
        }
        for component in &mut program.components {
            for constructor in &mut component.constructors {
                self.statements(&mut constructor.statements);
            }
            self.statements(&mut component.behaviour.statements);
        }
        self.statements(&mut program.main.statements);
    }

    fn statements(&mut self, statements: &mut Vec<Stmt>) {
        statements.retain_mut(|statement| {
            let kept = self.keeps();
            // The parts of a dropped statement count too, so that numbers do not shift.
            self.inside(statement);
            kept
        });
    }

    fn inside(&mut self, statement: &mut Stmt) {
        match statement {
            Stmt::Block(body) | Stmt::For { body, .. } | Stmt::Acknowledge(_, _, body) => {
                self.statements(body);
            }
            Stmt::If(_, then, otherwise) => {
                self.statements(then);
                if let Some(otherwise) = otherwise {
                    self.statements(otherwise);
                }
            }
            Stmt::Case(_, arms, default) => {
                for (_, body) in arms {
                    self.statements(body);
                }
                self.statements(default);
            }
            Stmt::Project(_, arms, default) => {
                for (_, body) in arms {
                    self.statements(body);
                }
                self.statements(default);
            }
            Stmt::Try(body, handlers) => {
                self.statements(body);
                for (_, handler) in handlers {
                    self.statements(handler);
                }
            }
            Stmt::Select(arms, default) => {
                for arm in arms {
                    self.statements(&mut arm.body);
                }
                if let Some(default) = default {
                    self.statements(default);
                }
            }
            _ => {}
        }
    }
}
