//! Evaluation of expressions.

use super::arithmetic::{binary, store, unary, widen};
use super::value::{Instance, Value};
use super::{Escape, Machine};
use crate::tree::*;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// A running evaluation. Boxed, since expressions and statements contain each other.
pub(super) type Step<'a, T> = Pin<Box<dyn Future<Output = Result<T, Escape>> + 'a>>;

/// One run of a body: its variables, in the component it belongs to.
pub(super) struct Activation<'p> {
    pub(super) machine: &'p Machine<'p>,
    pub(super) instance: Rc<Instance>,
    pub(super) locals: &'p [Variable],
    pub(super) frame: RefCell<Vec<Value>>,
}

impl<'p> Activation<'p> {
    pub(super) fn new(
        machine: &'p Machine<'p>,
        instance: Rc<Instance>,
        locals: &'p [Variable],
    ) -> Self {
        Activation {
            machine,
            instance,
            locals,
            frame: RefCell::new(vec![Value::Void; locals.len()]),
        }
    }

    pub(super) fn with_args(
        machine: &'p Machine<'p>,
        instance: Rc<Instance>,
        body: &'p Body,
        args: Vec<Value>,
    ) -> Self {
        let activation = Activation::new(machine, instance, &body.locals);
        for (index, arg) in args.into_iter().enumerate() {
            activation.frame.borrow_mut()[index] = store(arg, &body.locals[index].ty);
        }
        activation
    }

    pub(super) fn set(&self, local: usize, value: Value) {
        let value = store(value, &self.locals[local].ty);
        self.frame.borrow_mut()[local] = value;
    }

    /// The value as a variable of type `ty` holds it.
    pub(super) async fn stored(&self, expr: &'p Expr, ty: &Type) -> Result<Value, Escape> {
        Ok(store(self.eval(expr).await?, ty))
    }

    async fn all(&self, exprs: &'p [Expr]) -> Result<Vec<Value>, Escape> {
        let mut values = Vec::with_capacity(exprs.len());
        for expr in exprs {
            values.push(self.eval(expr).await?);
        }
        Ok(values)
    }

    pub(super) fn eval<'a>(&'a self, expr: &'p Expr) -> Step<'a, Value>
    where
        'p: 'a,
    {
        Box::pin(self.evaluate(expr))
    }

    async fn evaluate(&self, expr: &'p Expr) -> Result<Value, Escape> {
        self.machine.tick()?;
        Ok(match &expr.kind {
            ExprKind::Integer(value) => Value::Integer(*value),
            ExprKind::Unsigned(value) => Value::Unsigned(*value),
            ExprKind::Byte(value) => Value::Byte(*value),
            ExprKind::Real(text) => Value::Double(text.parse().expect("a real literal")),
            ExprKind::Bool(value) => Value::Bool(*value),
            ExprKind::Text(text) => Value::Text(text.as_str().into()),
            ExprKind::Label(_, label) => Value::Label(*label as u32),
            ExprKind::Local(index) => self.frame.borrow()[*index].clone(),
            ExprKind::Member(index) => self.instance.members.borrow()[*index].clone(),
            ExprKind::Port(index) => Value::Channel(self.instance.ports.borrow()[*index].clone()),
            ExprKind::Procedure(index) => Value::Procedure(*index),
            ExprKind::Unary(op, operand) => unary(*op, self.eval(operand).await?),
            ExprKind::Binary(op, left, right) => self.operator(*op, left, right).await?,
            ExprKind::Length(base) => self.length(base).await?,
            ExprKind::Index(base, index) => {
                let cells = self.eval(base).await?.contents();
                let index = self.eval(index).await?.integral();
                let at = in_bounds(index, cells.borrow().len())?;

                cells.borrow()[at].clone()
            }
            ExprKind::Field(base, field) => {
                let cells = self.eval(base).await?.contents();

                cells.borrow()[*field].clone()
            }
            ExprKind::PortOf(base, port) => {
                let component = self.eval(base).await?.component();
                let half = component.ports.borrow()[*port].clone();
                Value::Channel(half)
            }
            ExprKind::Call(proc, args) => {
                let args = self.all(args).await?;
                self.call(*proc, args).await?
            }
            ExprKind::CallValue(callee, args) => {
                let Value::Procedure(proc) = self.eval(callee).await? else {
                    unreachable!("only procedures are called")
                };
                let args = self.all(args).await?;
                self.call(proc, args).await?
            }
            ExprKind::Standard(standard, args) => {
                let args = self.all(args).await?;
                let args = Machine::standard_args(*standard, args);
                let result = self.machine.standard(*standard, &args);
                if matches!(result, Value::Void) && !self.machine.program.components.is_empty() {
                    // Another component may print next.
                    self.machine.world.breathe(self.instance.number).await;
                }
                result
            }
            ExprKind::Box(value) => {
                let content = self.stored(value, &value.ty).await?.deep_copy();
                Value::Box(Rc::new((value.ty.clone(), content)))
            }
            ExprKind::NewArray(lengths, init) => {
                let mut element = &expr.ty;
                for _ in lengths {
                    let Type::Array(inner) = element else {
                        unreachable!("as many dimensions as lengths")
                    };
                    element = inner;
                }
                let init = self.stored(init, element).await?;
                filled(lengths, &init)
            }
            ExprKind::NewStruct(args) => {
                let Type::Struct(ty) = expr.ty else {
                    unreachable!("a struct's type")
                };
                let fields = &self.machine.program.structs[ty].fields;
                let args = self.all(args).await?;
                let pairs = args.into_iter().zip(fields);
                Value::cells(pairs.map(|(value, field)| store(value, &field.1)).collect())
            }
            ExprKind::NewChannel => Value::Channel(self.machine.world.half()),
            ExprKind::NewComponent(component, constructor, args) => {
                let args = self.all(args).await?;
                let declared = &self.machine.program.components[*component];
                let params = &declared.constructors[*constructor].locals;
                let args = args
                    .into_iter()
                    .zip(params)
                    .map(|(arg, param)| store(arg, &param.ty));
                let ports = declared.ports.len();
                let world = &self.machine.world;
                Value::Component(world.create(*component, ports, *constructor, args.collect()))
            }
            ExprKind::Block(statements, value) => {
                self.statements(statements).await?;
                self.eval(value).await?
            }
            ExprKind::If(condition, then, otherwise) => {
                if self.eval(condition).await?.bool() {
                    widen(self.eval(then).await?, &expr.ty)
                } else if let Some(otherwise) = otherwise {
                    widen(self.eval(otherwise).await?, &expr.ty)
                } else {
                    self.machine.default_of(&expr.ty)
                }
            }
            ExprKind::Case(scrutinee, arms, default) => {
                let value = self.eval(scrutinee).await?;
                for (labels, result) in arms {
                    if self.matches(&value, labels).await? {
                        return self.eval(result).await;
                    }
                }
                self.eval(default).await?
            }
            ExprKind::Project(scrutinee, arms, default) => {
                let boxed = self.eval(scrutinee).await?;
                for (variable, result) in arms {
                    if self.unwraps(&boxed, *variable) {
                        return self.eval(result).await;
                    }
                }
                self.eval(default).await?
            }
            ExprKind::Try(value, handlers) => match self.eval(value).await {
                Err(Escape::Raise(raised)) => {
                    for (label, handler) in handlers {
                        if label.is_none_or(|label| label == raised) {
                            return self.eval(handler).await;
                        }
                    }
                    return Err(Escape::Raise(raised));
                }
                other => other?,
            },
        })
    }

    async fn operator(&self, op: Binary, left: &'p Expr, right: &'p Expr) -> Result<Value, Escape> {
        let left = self.eval(left).await?;
        match op {
            Binary::And if !left.bool() => Ok(Value::Bool(false)),
            Binary::Or if left.bool() => Ok(Value::Bool(true)),
            Binary::And | Binary::Or => self.eval(right).await,
            _ => {
                let right = self.eval(right).await?;
                binary(op, left, right)
            }
        }
    }

    async fn length(&self, base: &'p Expr) -> Result<Value, Escape> {
        let length = match self.eval(base).await? {
            Value::Text(text) => text.len(),
            other => other.contents().borrow().len(),
        };
        Ok(Value::Integer(length as i32))
    }

    pub(super) async fn matches(&self, value: &Value, labels: &'p [Expr]) -> Result<bool, Escape> {
        for label in labels {
            let label = self.eval(label).await?;
            if binary(Binary::Equal, value.clone(), label)?.bool() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the box holds the type of `variable`, which then gets a copy of the content.
    pub(super) fn unwraps(&self, boxed: &Value, variable: usize) -> bool {
        let Value::Box(boxed) = boxed else {
            unreachable!("only boxes are projected")
        };
        if boxed.0 != self.locals[variable].ty {
            return false;
        }
        self.set(variable, boxed.1.deep_copy());
        true
    }

    async fn call(&self, proc: usize, args: Vec<Value>) -> Result<Value, Escape> {
        let proc = &self.machine.program.procs[proc];
        let activation =
            Activation::with_args(self.machine, self.instance.clone(), &proc.body, args);
        match activation.block(&proc.body.statements).await {
            Ok(()) => Ok(self.machine.default_of(&proc.result)),
            Err(Escape::Return(value)) => Ok(store(value, &proc.result)),
            Err(other) => Err(other),
        }
    }
}

/// The position of an index, or the exception for a bad one.
pub(super) fn in_bounds(index: i64, length: usize) -> Result<usize, Escape> {
    match usize::try_from(index) {
        Ok(at) if at < length => Ok(at),
        _ => Err(Escape::Raise(OPERATION_FAILED)),
    }
}

/// A new array whose elements are separate copies.
fn filled(lengths: &[u32], init: &Value) -> Value {
    match lengths {
        [] => init.deep_copy(),
        [length, rest @ ..] => Value::cells((0..*length).map(|_| filled(rest, init)).collect()),
    }
}
