//! The tree as one line of text a declaration or statement, for tests and for comparing trees:
//! spans are left out.

use std::fmt::Write as _;

use super::ast::*;
use crate::symbol::{Interner, Symbol};

/// The whole tree, an S-expression a line.
pub fn unit(unit: &Unit, names: &Interner) -> String {
    let mut printer = Printer {
        names,
        out: String::new(),
    };
    for declaration in &unit.declarations {
        match declaration {
            Declaration::Type(declaration) => printer.type_declaration(declaration),
            Declaration::Proc(declaration) => printer.proc_declaration(declaration),
            Declaration::Component(declaration) => printer.component(declaration),
        }
        printer.out.push('\n');
    }
    for statement in &unit.statements {
        printer.expr(statement);
        printer.out.push('\n');
    }
    printer.out
}

/// One expression as an S-expression.
pub fn expr(expr: &Expr, names: &Interner) -> String {
    let mut printer = Printer {
        names,
        out: String::new(),
    };
    printer.expr(expr);
    printer.out
}

struct Printer<'a> {
    names: &'a Interner,
    out: String,
}

impl Printer<'_> {
    fn word(&mut self, word: &str) {
        if !self.out.is_empty() && !self.out.ends_with(['(', '\n', '[']) {
            self.out.push(' ');
        }
        self.out.push_str(word);
    }

    /// `(head …)`
    fn list(&mut self, head: &str, rest: impl FnOnce(&mut Self)) {
        self.word("(");
        self.word(head);
        rest(self);
        self.out.push(')');
    }

    /// `[…]`
    fn group(&mut self, items: impl FnOnce(&mut Self)) {
        self.word("[");
        items(self);
        self.out.push(']');
    }

    fn symbol(&mut self, symbol: Symbol) {
        let names = self.names;
        self.word(names.name(symbol));
    }

    fn name(&mut self, name: Name) {
        self.symbol(name.symbol);
    }

    fn type_declaration(&mut self, declaration: &TypeDeclaration) {
        self.list("type", |this| {
            this.name(declaration.name);
            this.ty(&declaration.ty);
        });
    }

    fn proc_declaration(&mut self, declaration: &ProcDeclaration) {
        self.list("proc", |this| {
            this.name(declaration.name);
            this.groups(&declaration.params);
            if let Some(result) = &declaration.result {
                this.word(":");
                this.ty(result);
            }
            match &declaration.body {
                ProcBody::Block(block) => this.block(block),
                ProcBody::Native {
                    symbol,
                    blocks,
                    raises,
                } => this.list("native", |this| {
                    this.symbol(*symbol);
                    if *blocks {
                        this.word("blocks");
                    }
                    if *raises {
                        this.word("raises");
                    }
                }),
            }
        });
    }

    fn component(&mut self, component: &ComponentDeclaration) {
        self.list("component", |this| {
            this.name(component.name);
            this.group(|this| {
                for &name in &component.presents {
                    this.name(name);
                }
            });
            for member in &component.members {
                match member {
                    MemberDeclaration::Type(declaration) => this.type_declaration(declaration),
                    MemberDeclaration::Proc(declaration) => this.proc_declaration(declaration),
                    MemberDeclaration::Variable { name, value, .. } => this.list("=", |this| {
                        this.name(*name);
                        this.expr(value);
                    }),
                }
            }
            for constructor in &component.constructors {
                this.list("constructor", |this| {
                    this.groups(&constructor.params);
                    this.block(&constructor.body);
                });
            }
            this.list("behaviour", |this| this.block(&component.behaviour));
        });
    }

    fn groups(&mut self, groups: &[Group]) {
        self.group(|this| {
            for group in groups {
                this.params(group);
            }
        });
    }

    fn params(&mut self, group: &Group) {
        self.word("(");
        self.ty(&group.ty);
        for &name in &group.names {
            self.name(name);
        }
        self.out.push(')');
    }

    fn block(&mut self, block: &Block) {
        self.list("block", |this| {
            for statement in &block.statements {
                this.expr(statement);
            }
        });
    }

    fn ty(&mut self, ty: &Type) {
        match &ty.kind {
            TypeKind::Integer => self.word("integer"),
            TypeKind::Unsigned => self.word("unsigned"),
            TypeKind::Real => self.word("real"),
            TypeKind::Bool => self.word("bool"),
            TypeKind::Byte => self.word("byte"),
            TypeKind::String => self.word("string"),
            TypeKind::Any => self.word("any"),
            TypeKind::Named(symbol) => self.symbol(*symbol),
            TypeKind::Channel(direction, payload) => {
                self.list(direction_word(*direction), |this| this.ty(payload));
            }
            TypeKind::Interface(ports) => self.list("interface", |this| {
                for (direction, group) in ports {
                    this.list(direction_word(*direction), |this| this.params(group));
                }
            }),
            TypeKind::Struct(fields) => self.list("struct", |this| {
                for group in fields {
                    this.params(group);
                }
            }),
            TypeKind::Enum(labels) => self.list("enum", |this| {
                for &label in labels {
                    this.name(label);
                }
            }),
            TypeKind::Proc { params, result } => self.list("proc", |this| {
                this.group(|this| {
                    for param in params {
                        this.ty(param);
                    }
                });
                if let Some(result) = result {
                    this.ty(result);
                }
            }),
            TypeKind::Array(element) => self.list("array", |this| this.ty(element)),
            TypeKind::Error => self.word("<error>"),
        }
    }

    fn exprs(&mut self, exprs: &[Expr]) {
        for expr in exprs {
            self.expr(expr);
        }
    }

    fn written(&mut self, value: impl std::fmt::Display) {
        self.word("");
        let _infallible = write!(self.out, "{value}");
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Integer(value) => self.written(value),
            ExprKind::Unsigned(value) => self.written(format_args!("${value}")),
            ExprKind::Byte(value) => self.written(format_args!("#{value}")),
            ExprKind::Real(value) => self.written(format_args!("{value:?}")),
            ExprKind::Bool(value) => self.written(value),
            ExprKind::String(value) => self.written(format_args!("{value:?}")),
            ExprKind::Name(symbol) => self.symbol(*symbol),
            ExprKind::Error => self.word("<error>"),
            ExprKind::Block(block) => self.block(block),
            ExprKind::Type(declaration) => self.type_declaration(declaration),
            ExprKind::Any(value) => self.list("any", |this| this.expr(value)),
            ExprKind::Paren(inner) => self.list("paren", |this| this.expr(inner)),
            ExprKind::Length(base) => self.list("length", |this| this.expr(base)),
            ExprKind::Unary(op, operand) => self.list(unary_word(*op), |this| this.expr(operand)),
            ExprKind::Operators(first, links) => {
                for link in links.iter().rev() {
                    self.word("(");
                    self.word(binary_word(link.op));
                }
                self.expr(first);
                for link in links {
                    self.expr(&link.right);
                    self.out.push(')');
                }
            }
            ExprKind::Field(base, field) => self.list("field", |this| {
                this.expr(base);
                this.name(*field);
            }),
            ExprKind::Index(base, indices) => self.list("index", |this| {
                this.expr(base);
                this.exprs(indices);
            }),
            ExprKind::Call(callee, args) => self.list("call", |this| {
                this.expr(callee);
                this.exprs(args);
            }),
            ExprKind::Beside(inner) => self.list("beside", |this| this.expr(inner)),
            ExprKind::Declare(name, value) => self.list("=", |this| {
                this.name(*name);
                this.expr(value);
            }),
            ExprKind::Assign(target, value) => self.list(":=", |this| {
                this.expr(target);
                this.expr(value);
            }),
            _ => self.statement(expr),
        }
    }

    fn statement(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::If {
                condition,
                then,
                otherwise,
            } => self.list("if", |this| {
                this.expr(condition);
                this.expr(then);
                if let Some(otherwise) = otherwise {
                    this.expr(otherwise);
                }
            }),
            ExprKind::For {
                variable,
                from,
                to,
                step,
                body,
            } => self.list("for", |this| {
                this.name(*variable);
                this.expr(from);
                this.expr(to);
                this.written(step);
                this.expr(body);
            }),
            ExprKind::Case {
                scrutinee,
                arms,
                default,
            } => self.list("case", |this| {
                this.expr(scrutinee);
                for arm in arms {
                    this.word("(");
                    this.group(|this| this.exprs(&arm.labels));
                    this.expr(&arm.body);
                    this.out.push(')');
                }
                this.expr(default);
            }),
            ExprKind::Project {
                scrutinee,
                name,
                arms,
                default,
            } => self.list("project", |this| {
                this.expr(scrutinee);
                this.name(*name);
                for arm in arms {
                    this.word("(");
                    this.ty(&arm.ty);
                    this.expr(&arm.body);
                    this.out.push(')');
                }
                this.expr(default);
            }),
            ExprKind::Select { arms, default } => self.list("select", |this| {
                for arm in arms {
                    this.select_arm(arm);
                }
                if let Some(default) = default {
                    this.list("default", |this| this.expr(default));
                }
            }),
            ExprKind::Try { body, handlers } => self.list("try", |this| {
                this.expr(body);
                for handler in handlers {
                    this.list("except", |this| {
                        if let Some(label) = handler.label {
                            this.name(label);
                        }
                        this.expr(&handler.body);
                    });
                }
            }),
            _ => self.message(expr),
        }
    }

    fn select_arm(&mut self, arm: &SelectArm) {
        let head = if arm.acknowledge {
            "acknowledge"
        } else {
            "receive"
        };
        self.list(head, |this| {
            this.name(arm.name);
            this.expr(&arm.channel);
            if let Some(guard) = &arm.guard {
                this.list("when", |this| this.expr(guard));
            }
            this.expr(&arm.body);
        });
    }

    fn message(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Connect(from, to) => self.list("connect", |this| {
                this.end(from);
                this.end(to);
            }),
            ExprKind::Disconnect(end) => self.list("disconnect", |this| this.end(end)),
            ExprKind::Publish { channel, name } => self.list("publish", |this| {
                this.expr(channel);
                this.expr(name);
            }),
            ExprKind::Send { value, channel } => self.list("send", |this| {
                this.expr(value);
                this.expr(channel);
            }),
            ExprKind::Receive { name, channel } => self.list("receive", |this| {
                this.name(*name);
                this.expr(channel);
            }),
            ExprKind::Acknowledge {
                name,
                channel,
                body,
            } => self.list("acknowledge", |this| {
                this.name(*name);
                this.expr(channel);
                this.expr(body);
            }),
            ExprKind::Stop(target) => self.list("stop", |this| {
                if let Some(target) = target {
                    this.name(*target);
                }
            }),
            ExprKind::Return(value) => self.list("return", |this| {
                if let Some(value) = value {
                    this.expr(value);
                }
            }),
            ExprKind::Throw(label) => self.list("throw", |this| this.name(*label)),
            ExprKind::NewChannel(direction, payload) => self.list("new", |this| {
                this.list(direction_word(*direction), |this| this.ty(payload));
            }),
            ExprKind::NewNamed { name, args } => self.list("new", |this| {
                this.name(*name);
                this.group(|this| this.exprs(args));
            }),
            ExprKind::NewArray {
                element,
                lengths,
                init,
            } => self.list("new-array", |this| {
                this.ty(element);
                for (length, _) in lengths {
                    this.written(length);
                }
                this.expr(init);
            }),
            _ => {}
        }
    }

    fn end(&mut self, end: &End) {
        match &end.address {
            Some(address) => self.list("on", |this| {
                this.expr(&end.channel);
                this.expr(address);
            }),
            None => self.expr(&end.channel),
        }
    }
}

fn direction_word(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "in",
        Direction::Out => "out",
    }
}

fn unary_word(op: UnaryOp) -> &'static str {
    match op {
        UnaryOp::Plus => "+",
        UnaryOp::Minus => "-",
        UnaryOp::Not => "!",
        UnaryOp::Complement => "~",
    }
}

fn binary_word(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Or => "or",
        BinaryOp::And => "and",
        BinaryOp::BitOr => "|",
        BinaryOp::BitXor => "^",
        BinaryOp::BitAnd => "&",
        BinaryOp::Equal => "==",
        BinaryOp::NotEqual => "!=",
        BinaryOp::Less => "<",
        BinaryOp::LessEqual => "<=",
        BinaryOp::Greater => ">",
        BinaryOp::GreaterEqual => ">=",
        BinaryOp::Add => "+",
        BinaryOp::Subtract => "-",
        BinaryOp::Multiply => "*",
        BinaryOp::Divide => "/",
        BinaryOp::Remainder => "%",
    }
}
