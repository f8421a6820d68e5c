//! Passes over the core IR, and what they share: visiting values, statements and blocks.

pub mod beside;
pub mod liveness;
pub mod loops;
pub mod parts;

use super::ir::*;

/// Visits a value and the values inside it.
pub fn visit_value(value: &Value, visit: &mut dyn FnMut(&Value)) {
    visit(value);
    match value {
        Value::Convert(_, _, e)
        | Value::Unary(_, _, e)
        | Value::Length(e)
        | Value::Field(e, _, _)
        | Value::Unboxed(e, _)
        | Value::BoxIs(e, _) => visit_value(e, visit),
        Value::Binary(_, _, a, b) | Value::Element(a, b, _) | Value::IndexOrZero(a, b, _) => {
            visit_value(a, visit);
            visit_value(b, visit);
        }
        _ => {}
    }
}

/// Rewrites a value from the inside out.
pub fn rewrite_value(value: &mut Value, rewrite: &mut dyn FnMut(&mut Value)) {
    match value {
        Value::Convert(_, _, e)
        | Value::Unary(_, _, e)
        | Value::Length(e)
        | Value::Field(e, _, _)
        | Value::Unboxed(e, _)
        | Value::BoxIs(e, _) => rewrite_value(e, rewrite),
        Value::Binary(_, _, a, b) | Value::Element(a, b, _) | Value::IndexOrZero(a, b, _) => {
            rewrite_value(a, rewrite);
            rewrite_value(b, rewrite);
        }
        _ => {}
    }
    rewrite(value);
}

/// Defines a function that visits the values a statement itself reads, nested blocks aside. Places
/// count as far as they are evaluated (array, index, object).
macro_rules! visitor {
    ($(#[$doc:meta])* $name:ident $($mutable:tt)?) => {
        $(#[$doc])*
        pub fn $name<'a>(stmt: &'a $($mutable)? StmtKind, visit: &mut dyn FnMut(&'a $($mutable)? Value)) {
            let end = |end: &'a $($mutable)? End, visit: &mut dyn FnMut(&'a $($mutable)? Value)| match end {
                End::Local(channel) => visit(channel),
                End::Remote(name, address) => {
                    visit(name);
                    visit(address);
                }
            };
            match stmt {
                StmtKind::Set { place, value, .. } => {
                    match place {
                        StorePlace::Element(array, index, _) => {
                            visit(array);
                            visit(index);
                        }
                        StorePlace::Field(object, _, _) => visit(object),
                        _ => {}
                    }
                    visit(value);
                }
                StmtKind::CheckIndex { array, index, .. } => {
                    visit(array);
                    visit(index);
                }
                StmtKind::CheckZero { value, .. } => visit(value),
                StmtKind::If { condition, .. } => visit(condition),
                StmtKind::Loop(l) => {
                    visit(&$($mutable)? l.from);
                    visit(&$($mutable)? l.to);
                }
                StmtKind::Versioned { guards, fast, slow } => {
                    for guard in guards {
                        match guard {
                            Guard::Index { array, index } => {
                                visit(array);
                                visit(index);
                            }
                            Guard::Range {
                                array, low, high, ..
                            }
                            | Guard::Scaled {
                                array, low, high, ..
                            }
                            | Guard::Induction {
                                array, low, high, ..
                            } => {
                                visit(array);
                                visit(low);
                                visit(high);
                            }
                        }
                    }
                    for l in [fast, slow] {
                        visit(&$($mutable)? l.from);
                        visit(&$($mutable)? l.to);
                    }
                }
                StmtKind::Call { callee, args, .. } => {
                    if let Callee::Value(value, _) = callee {
                        visit(value);
                    }
                    for argument in args {
                        visit(&$($mutable)? argument.value);
                    }
                }
                StmtKind::NewArray { init, .. } => visit(init),
                StmtKind::NewStruct { fields, .. } => {
                    for (value, _) in fields {
                        visit(value);
                    }
                }
                StmtKind::NewComponent { args, .. } => {
                    for argument in args {
                        visit(&$($mutable)? argument.value);
                    }
                }
                StmtKind::NewBox { value, .. } | StmtKind::Copy { value, .. } => visit(value),
                StmtKind::PortOf { component, .. } => visit(component),
                StmtKind::PortAssign {
                    component: Some(component),
                    ..
                } => visit(component),
                StmtKind::Send { channel, value, .. } => {
                    visit(channel);
                    visit(value);
                }
                StmtKind::Receive { channel, .. } => visit(channel),
                StmtKind::Select { arms, .. } => {
                    for arm in arms {
                        if let Some(open) = &$($mutable)? arm.open {
                            visit(open);
                        }
                        visit(&$($mutable)? arm.channel);
                    }
                }
                StmtKind::Connect(a, b) => {
                    end(a, visit);
                    end(b, visit);
                }
                StmtKind::Disconnect(a) => end(a, visit),
                StmtKind::Publish { channel, name } => {
                    visit(channel);
                    visit(name);
                }
                StmtKind::AddressOf { bytes, .. } => visit(bytes),
                StmtKind::StopOther(value) => visit(value),
                StmtKind::Raise { label } => visit(label),
                StmtKind::Try { handlers, .. } => {
                    for handler in handlers {
                        if let Some(label) = &$($mutable)? handler.label {
                            visit(label);
                        }
                    }
                }
                StmtKind::Release(_)
                | StmtKind::Promoted { .. }
                | StmtKind::NewChannel { .. }
                | StmtKind::NewProcedure { .. }
                | StmtKind::PortAssign {
                    component: None, ..
                }
                | StmtKind::TakeHeld(_)
                | StmtKind::StopSelf
                | StmtKind::Await(_)
                | StmtKind::Return => {}
            }
        }
    };
}

visitor! {
    /// Visits the values a statement itself reads, nested blocks aside, to change them. Places
    /// count as far as they are evaluated (array, index, object).
    statement_values mut
}

visitor! {
    /// Visits the same values to look at them.
    look_at_values
}

/// The slot a statement itself stores into, if any.
pub fn statement_target(stmt: &StmtKind) -> Option<SlotId> {
    match stmt {
        StmtKind::Set {
            place: StorePlace::Slot(slot),
            ..
        } => Some(*slot),
        StmtKind::Call { target, .. } => *target,
        StmtKind::NewArray { target, .. }
        | StmtKind::NewStruct { target, .. }
        | StmtKind::NewChannel { target, .. }
        | StmtKind::NewComponent { target, .. }
        | StmtKind::NewBox { target, .. }
        | StmtKind::NewProcedure { target, .. }
        | StmtKind::Copy { target, .. }
        | StmtKind::PortOf { target, .. }
        | StmtKind::AddressOf { target, .. }
        | StmtKind::TakeHeld(target) => Some(*target),
        StmtKind::Receive { held, .. } => *held,
        StmtKind::Loop(l) => Some(l.variable),
        _ => None,
    }
}

/// The blocks inside a statement, to be read.
pub fn blocks_of(stmt: &StmtKind) -> Vec<&Block> {
    match stmt {
        StmtKind::If {
            then, otherwise, ..
        } => vec![then, otherwise],
        StmtKind::Loop(l) => vec![&l.prepare, &l.body],
        StmtKind::Versioned { fast, slow, .. } => {
            vec![&fast.prepare, &fast.body, &slow.prepare, &slow.body]
        }
        StmtKind::Promoted { body, .. } => vec![body],
        StmtKind::Select { arms, default } => {
            arms.iter().map(|arm| &arm.body).chain(default).collect()
        }
        StmtKind::Try { body, handlers, .. } => {
            let handlers = handlers.iter().map(|handler| &handler.body);
            std::iter::once(body).chain(handlers).collect()
        }
        _ => Vec::new(),
    }
}

/// The blocks inside a statement, to be changed.
pub fn nested_blocks(stmt: &mut StmtKind) -> Vec<&mut Block> {
    match stmt {
        StmtKind::If {
            then, otherwise, ..
        } => vec![then, otherwise],
        StmtKind::Loop(l) => vec![&mut l.prepare, &mut l.body],
        StmtKind::Versioned { fast, slow, .. } => {
            vec![
                &mut fast.prepare,
                &mut fast.body,
                &mut slow.prepare,
                &mut slow.body,
            ]
        }
        StmtKind::Promoted { body, .. } => vec![body],
        StmtKind::Select { arms, default } => {
            let mut blocks: Vec<&mut Block> = arms.iter_mut().map(|a| &mut a.body).collect();
            blocks.extend(default);
            blocks
        }
        StmtKind::Try { body, handlers, .. } => {
            let mut blocks = vec![body];
            blocks.extend(handlers.iter_mut().map(|h| &mut h.body));
            blocks
        }
        _ => Vec::new(),
    }
}

/// Visits every statement of a block and of the blocks inside it.
pub fn each_statement(block: &mut Block, visit: &mut dyn FnMut(&mut StmtKind)) {
    for stmt in block {
        visit(&mut stmt.kind);
        for inner in nested_blocks(&mut stmt.kind) {
            each_statement(inner, visit);
        }
    }
}

/// Visits every statement of a block and of the blocks inside it, to be read.
pub fn look_at_each<'a>(block: &'a [Stmt], visit: &mut dyn FnMut(&'a StmtKind)) {
    for stmt in block {
        visit(&stmt.kind);
        for inner in blocks_of(&stmt.kind) {
            look_at_each(inner, visit);
        }
    }
}

/// Visits every value of a block and of the blocks inside it, whole values only.
pub fn each_value(block: &mut Block, visit: &mut dyn FnMut(&mut Value)) {
    each_statement(block, &mut |stmt| statement_values(stmt, &mut |v| visit(v)));
}
