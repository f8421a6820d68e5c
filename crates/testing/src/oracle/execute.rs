//! Execution of statements.

use super::Escape;
use super::arithmetic::store;
use super::evaluate::{Activation, Step, in_bounds};
use super::value::Value;
use super::world::Held;
use crate::tree::*;

impl<'p> Activation<'p> {
    pub(super) async fn statements(&self, statements: &'p [Stmt]) -> Result<(), Escape> {
        for statement in statements {
            self.block(std::slice::from_ref(statement)).await?;
        }
        Ok(())
    }

    /// Executes statements; boxed.
    pub(super) fn block<'a>(&'a self, statements: &'p [Stmt]) -> Step<'a, ()>
    where
        'p: 'a,
    {
        Box::pin(async move {
            for statement in statements {
                self.machine.tick()?;
                self.execute(statement).await?;
            }
            Ok(())
        })
    }

    async fn execute(&self, statement: &'p Stmt) -> Result<(), Escape> {
        match statement {
            Stmt::Let(variable, value) => {
                let value = self.eval(value).await?;
                self.set(*variable, value);
                Ok(())
            }
            Stmt::Assign(place, value) => self.assign(place, value).await,
            Stmt::Do(call) => self.eval(call).await.map(drop),
            Stmt::Block(statements) => self.block(statements).await,
            Stmt::If(condition, then, otherwise) => {
                if self.eval(condition).await?.bool() {
                    self.block(then).await
                } else if let Some(otherwise) = otherwise {
                    self.block(otherwise).await
                } else {
                    Ok(())
                }
            }
            Stmt::For {
                variable,
                from,
                to,
                step,
                body,
            } => self.for_loop(*variable, from, to, *step, body).await,
            Stmt::Case(scrutinee, arms, default) => {
                let value = self.eval(scrutinee).await?;
                for (labels, body) in arms {
                    if self.matches(&value, labels).await? {
                        return self.block(body).await;
                    }
                }
                self.block(default).await
            }
            Stmt::Project(scrutinee, arms, default) => {
                let boxed = self.eval(scrutinee).await?;
                for (variable, body) in arms {
                    if self.unwraps(&boxed, *variable) {
                        return self.block(body).await;
                    }
                }
                self.block(default).await
            }
            Stmt::Try(body, handlers) => match self.block(body).await {
                Err(Escape::Raise(raised)) => {
                    for (label, handler) in handlers {
                        if label.is_none_or(|label| label == raised) {
                            return self.block(handler).await;
                        }
                    }
                    Err(Escape::Raise(raised))
                }
                other => other,
            },
            Stmt::Throw(label) => Err(Escape::Raise(*label)),
            Stmt::Return(None) => Err(Escape::Return(Value::Void)),
            Stmt::Return(Some(value)) => Err(Escape::Return(self.eval(value).await?)),
            Stmt::Stop(None) => Err(Escape::Stop),
            Stmt::Stop(Some(target)) => {
                let target = self.eval(target).await?.component();
                if !target.ended.get() {
                    self.machine.world.stop(target.number);
                }
                Ok(())
            }
            _ => self.communicate(statement).await,
        }
    }

    async fn communicate(&self, statement: &'p Stmt) -> Result<(), Escape> {
        let world = &self.machine.world;
        let number = self.instance.number;
        match statement {
            Stmt::Send(value, channel) => {
                let (Type::In(payload) | Type::Out(payload)) = &channel.ty else {
                    unreachable!("a channel's type")
                };
                let value = self.stored(value, payload).await?;
                let half = self.eval(channel).await?.channel();
                world.send(number, half, value).await
            }
            Stmt::Receive(variable, channel) => {
                let half = self.eval(channel).await?.channel();
                let taken = world.receive(number, vec![(half, false)], false).await?;
                self.set(*variable, taken.expect("no default").1);
                Ok(())
            }
            Stmt::Acknowledge(variable, channel, body) => {
                let half = self.eval(channel).await?.channel();
                let taken = world.receive(number, vec![(half, true)], false).await?;
                let (_, value, held) = taken.expect("no default");
                self.set(*variable, value);
                self.hold(held, body).await
            }
            Stmt::Select(arms, default) => self.select(arms, default.as_deref()).await,
            Stmt::Connect(left, right) => {
                let left = self.eval(left).await?.channel();
                let right = self.eval(right).await?.channel();
                world.connect(&left, &right);
                Ok(())
            }
            Stmt::Disconnect(channel) => {
                world.disconnect(&self.eval(channel).await?.channel());
                Ok(())
            }
            other => unreachable!("{other:?} does not communicate"),
        }
    }

    /// Runs the block of an `acknowledge`, then releases the sender.
    async fn hold(&self, held: Option<Held>, body: &'p [Stmt]) -> Result<(), Escape> {
        let result = self.block(body).await;
        if let Some(held) = held {
            let ok = matches!(result, Ok(()) | Err(Escape::Return(_)));
            self.machine.world.release(held, ok);
        }
        result
    }

    async fn select(
        &self,
        arms: &'p [SelectArm],
        default: Option<&'p [Stmt]>,
    ) -> Result<(), Escape> {
        let mut open = Vec::new();
        let mut numbers = Vec::new();
        for (index, arm) in arms.iter().enumerate() {
            if let Some(guard) = &arm.guard
                && !self.eval(guard).await?.bool()
            {
                continue;
            }
            open.push((self.eval(&arm.channel).await?.channel(), arm.acknowledge));
            numbers.push(index);
        }
        if open.is_empty() && default.is_none() {
            return Err(Escape::Raise(OPERATION_FAILED));
        }
        let world = &self.machine.world;
        let taken = world.receive(self.instance.number, open, default.is_some());
        match (taken.await?, default) {
            (Some((chosen, value, held)), _) => {
                let arm = &arms[numbers[chosen]];
                self.set(arm.variable, value);
                self.hold(held, &arm.body).await
            }
            (None, Some(default)) => self.block(default).await,
            (None, None) => unreachable!("blocks until an arm is ready"),
        }
    }

    async fn for_loop(
        &self,
        variable: usize,
        from: &'p Expr,
        to: &'p Expr,
        step: i32,
        body: &'p [Stmt],
    ) -> Result<(), Escape> {
        let from = self.stored(from, &Type::Integer).await?;
        self.set(variable, from);
        loop {
            let to = self.stored(to, &Type::Integer).await?.integer();
            let now = self.frame.borrow()[variable].integer();
            if (step > 0 && now > to) || (step < 0 && now < to) {
                return Ok(());
            }
            self.block(body).await?;
            let now = self.frame.borrow()[variable].integer();
            self.set(variable, Value::Integer(now.wrapping_add(step)));
        }
    }

    async fn assign(&self, place: &'p Expr, value: &'p Expr) -> Result<(), Escape> {
        match &place.kind {
            ExprKind::Local(index) => {
                let value = self.eval(value).await?;
                self.set(*index, value);
            }
            ExprKind::Member(index) => {
                let value = self.stored(value, &place.ty).await?;
                self.instance.members.borrow_mut()[*index] = value;
            }
            ExprKind::Port(index) => {
                let half = self.eval(value).await?.channel();
                self.instance.ports.borrow_mut()[*index] = half;
            }
            ExprKind::Index(base, index) => {
                let cells = self.eval(base).await?.contents();
                let index = self.eval(index).await?.integral();
                let value = store(self.eval(value).await?, &place.ty);
                let at = in_bounds(index, cells.borrow().len())?;
                cells.borrow_mut()[at] = value;
            }
            ExprKind::Field(base, field) => {
                let cells = self.eval(base).await?.contents();
                let value = store(self.eval(value).await?, &place.ty);
                cells.borrow_mut()[*field] = value;
            }
            ExprKind::PortOf(base, port) => {
                let component = self.eval(base).await?.component();
                let half = self.eval(value).await?.channel();
                component.ports.borrow_mut()[*port] = half;
            }
            other => unreachable!("{other:?} is no place"),
        }
        Ok(())
    }
}
