//! Printer of statements.

use super::Printer;
use crate::tree::*;

const REMARKS: [&str; 4] = [
    "// keep",
    "/* a remark */",
    "// else { then } :=",
    "/* of\n two lines */",
];

impl<'p> Printer<'p> {
    /// Statements of the main sequence, each on its line or joined by `;`.
    pub(super) fn statements(&mut self, statements: &'p [Stmt]) {
        for (index, statement) in statements.iter().enumerate() {
            if index > 0 {
                self.separator();
            }
            self.statement(statement);
        }
    }

    fn separator(&mut self) {
        match self.random.below(20) {
            0 => self.push(" ; "),
            1 => {
                self.push(" ;");
                self.line();
            }
            2 => {
                self.line();
                let remark = *self.random.pick(&REMARKS);
                self.push(remark);
                self.line();
            }
            _ => self.line(),
        }
    }

    /// `{ … }` as a scope of statements.
    pub(super) fn braces(&mut self, statements: &'p [Stmt]) {
        let brackets = std::mem::take(&mut self.brackets);
        self.push("{");
        if !statements.is_empty() {
            self.indent += 1;
            self.line();
            self.statements(statements);
            self.indent -= 1;
            self.line();
        }
        self.push("}");
        self.brackets = brackets;
    }

    /// The statements of a branch: in braces, or one bare statement that cannot swallow the text
    /// after it.
    fn branch(&mut self, statements: &'p [Stmt]) {
        let bare = match statements {
            [Stmt::Do(_) | Stmt::Send(..) | Stmt::Throw(_)] => true,
            // A choice as the value would swallow an `else` or an arm.
            [Stmt::Assign(_, value)] => !value.is_choice(),
            _ => false,
        };
        if bare && self.random.chance(50) {
            self.statement(&statements[0]);
        } else {
            self.braces(statements);
        }
    }

    fn local(&self, index: usize) -> &'p str {
        &self.scope.locals[index].name
    }

    pub(super) fn statement(&mut self, statement: &'p Stmt) {
        match statement {
            Stmt::Let(variable, value) => {
                self.push(self.local(*variable));
                self.push(" = ");
                self.clause(value);
            }
            Stmt::Assign(place, value) => {
                self.expr(place, 0);
                self.push(" := ");
                self.clause(value);
            }
            // Without brackets they would read as a call after a handler's label.
            Stmt::Do(call) => self.primary(call),
            Stmt::Block(statements) => self.braces(statements),
            Stmt::If(condition, then, otherwise) => {
                self.push("if ");
                self.clause(condition);
                self.push(" then ");
                self.branch(then);
                if let Some(otherwise) = otherwise {
                    if self.random.chance(20) && self.brackets == 0 {
                        self.line();
                        self.push("else ");
                    } else {
                        self.push(" else ");
                    }
                    self.branch(otherwise);
                }
            }
            Stmt::For {
                variable,
                from,
                to,
                step,
                body,
            } => self.for_loop(*variable, from, to, *step, body),
            Stmt::Case(scrutinee, arms, default) => {
                self.push("case ");
                self.expr(scrutinee, 0);
                self.push(" of");
                self.indent += 1;
                for (labels, body) in arms {
                    self.line();
                    self.labels(labels);
                    self.branch(body);
                }
                self.line();
                self.push("default : ");
                self.branch(default);
                self.indent -= 1;
            }
            Stmt::Project(scrutinee, arms, default) => {
                self.project_head(scrutinee, arms.first().map_or(0, |arm| arm.0));
                self.indent += 1;
                for (variable, body) in arms {
                    self.line();
                    self.ty(&self.scope.locals[*variable].ty);
                    self.push(" : ");
                    self.branch(body);
                }
                self.line();
                self.push("default : ");
                self.branch(default);
                self.indent -= 1;
            }
            Stmt::Try(body, handlers) => {
                self.push("try ");
                self.branch(body);
                for (label, handler) in handlers {
                    self.except(*label);
                    // Without a label a bare handler would read as one.
                    if label.is_some() {
                        self.branch(handler);
                    } else {
                        self.braces(handler);
                    }
                }
            }
            Stmt::Throw(label) => self.push(&format!("throw {}", EXCEPTIONS[*label])),
            Stmt::Return(None) => self.push("return"),
            Stmt::Return(Some(value)) => {
                self.push("return ");
                self.clause(value);
            }
            Stmt::Stop(None) => self.push("stop"),
            Stmt::Stop(Some(target)) => {
                self.push("stop ");
                self.expr(target, 0);
            }
            Stmt::Send(value, channel) => {
                self.push("send ");
                self.clause(value);
                self.push(" on ");
                self.expr(channel, 0);
            }
            Stmt::Receive(variable, channel) => {
                self.taking("receive", *variable, channel);
            }
            Stmt::Acknowledge(variable, channel, body) => {
                self.taking("acknowledge", *variable, channel);
                self.push(" after ");
                self.branch(body);
            }
            Stmt::Select(arms, default) => self.select(arms, default.as_deref()),
            Stmt::Connect(left, right) => {
                self.push("connect ");
                self.expr(left, 0);
                self.push(" to ");
                self.expr(right, 0);
            }
            Stmt::Disconnect(channel) => {
                self.push("disconnect ");
                self.expr(channel, 0);
            }
        }
    }

    fn taking(&mut self, verb: &str, variable: usize, channel: &'p Expr) {
        let name = self.local(variable);
        self.push(&format!("{verb} {name} from "));
        self.expr(channel, 0);
    }

    fn for_loop(
        &mut self,
        variable: usize,
        from: &'p Expr,
        to: &'p Expr,
        step: i32,
        body: &'p [Stmt],
    ) {
        let name = self.local(variable);
        self.push(&format!("for {name} = "));
        self.expr(from, 0);
        let tight = matches!(to.kind, ExprKind::Integer(0..)) && self.random.chance(30);
        self.push(if tight { ".." } else { " .. " });
        self.expr(to, 0);
        if step != 1 || self.random.chance(10) {
            let sign = if step > 0 && self.random.chance(30) {
                "+"
            } else {
                ""
            };
            self.push(&format!(" : {sign}{step}"));
        }
        self.push(" do ");
        self.branch(body);
    }

    fn select(&mut self, arms: &'p [SelectArm], default: Option<&'p [Stmt]>) {
        self.push("select {");
        self.indent += 1;
        for arm in arms {
            self.line();
            let verb = if arm.acknowledge {
                "acknowledge"
            } else {
                "receive"
            };
            self.taking(verb, arm.variable, &arm.channel);
            if let Some(guard) = &arm.guard {
                self.push(" when ");
                self.clause(guard);
            }
            if arm.acknowledge {
                self.push(" after");
            }
            self.push(" : ");
            self.branch(&arm.body);
        }
        if let Some(default) = default {
            self.line();
            self.push("default : ");
            self.branch(default);
        }
        self.indent -= 1;
        self.line();
        self.push("}");
    }
}
