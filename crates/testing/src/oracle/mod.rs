//! Expected output of a generated program: an interpreter over the generator's own tree.
//!
//! It shares no code with the compiler. Components are futures polled by one loop that chooses
//! among the runnable ones by a seed, so a program can run under several schedules: if the outputs
//! differ, the program is racy and useless as a test.

mod arithmetic;
mod evaluate;
mod execute;
mod standard;
mod value;
mod world;

use crate::tree::{DIVISION_BY_ZERO, Program, Type};
use evaluate::Activation;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use value::{Instance, Value};
use world::{Schedule, World};

/// Output and exit code of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expected {
    pub stdout: String,
    /// 0, or 1 after an uncaught exception.
    pub exit_code: i32,
}

/// Reason why a program has no single answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// It takes more steps than a test may.
    TooLong,
    /// All components wait.
    Deadlock,
    /// Two schedules print differently.
    Racy,
}

/// Steps after which a program counts as too long.
const STEPS: u64 = 400_000;

/// The output, equal under every schedule tried, or the reason why there is none.
pub fn expect(program: &Program) -> Result<Expected, Unfit> {
    let first = run(program, 0)?;
    let schedules = if program.components.is_empty() { 1 } else { 4 };
    for seed in 1..schedules {
        if run(program, seed)? != first {
            return Err(Unfit::Racy);
        }
    }
    Ok(first)
}

/// The output under one schedule.
pub fn run(program: &Program, seed: u64) -> Result<Expected, Unfit> {
    let machine = Machine {
        program,
        world: World::new(seed),
        stdout: RefCell::default(),
        failed: Cell::new(false),
        steps: Cell::new(0),
    };
    let mut schedule = Schedule::default();
    let main = machine.world.admit(Rc::new(Instance::main()));
    schedule.add(main.number, Box::pin(machine.main(main)));
    loop {
        for (instance, constructor, args) in machine.world.take_born() {
            let number = instance.number;
            schedule.add(number, Box::pin(machine.live(instance, constructor, args)));
        }
        if machine.steps.get() > STEPS {
            return Err(Unfit::TooLong);
        }
        if !schedule.step(&machine.world) {
            break;
        }
    }
    if schedule.any_left() {
        return Err(Unfit::Deadlock);
    }
    Ok(Expected {
        stdout: machine.stdout.take(),
        exit_code: i32::from(machine.failed.get()),
    })
}

/// One run of a program.
struct Machine<'p> {
    program: &'p Program,
    world: World,
    stdout: RefCell<String>,
    failed: Cell<bool>,
    steps: Cell<u64>,
}

/// The exception raised by integer division by zero.
const DIVISION: Escape = Escape::Raise(DIVISION_BY_ZERO);

/// Reason why control leaves a statement early.
#[derive(Debug)]
enum Escape {
    Raise(usize),
    Return(Value),
    Stop,
    /// The program takes too long.
    Spent,
}

impl<'p> Machine<'p> {
    async fn main(&'p self, instance: Rc<Instance>) {
        let body = &self.program.main;
        let activation = Activation::new(self, instance.clone(), &body.locals);
        if let Err(Escape::Raise(_)) = activation.statements(&body.statements).await {
            self.failed.set(true);
            // An exception that leaves the main sequence ends the process.
            self.world.end_all();
        }
        self.world.retire(&instance);
    }

    /// Runs a component: members, constructor, passes.
    async fn live(&'p self, instance: Rc<Instance>, constructor: usize, args: Vec<Value>) {
        if let Err(Escape::Raise(_)) = self.passes(&instance, constructor, args).await {
            self.failed.set(true);
        }
        self.world.retire(&instance);
    }

    async fn passes(
        &'p self,
        instance: &Rc<Instance>,
        constructor: usize,
        args: Vec<Value>,
    ) -> Result<(), Escape> {
        let component = &self.program.components[instance.component];
        for member in &component.members {
            if let crate::tree::Member::Variable {
                variable,
                init,
                locals,
            } = member
            {
                let activation = Activation::new(self, instance.clone(), locals);
                let value = activation.stored(init, &variable.ty).await?;
                instance.members.borrow_mut().push(value);
            } else {
                instance.members.borrow_mut().push(Value::Void);
            }
        }
        let body = &component.constructors[constructor];
        let activation = Activation::with_args(self, instance.clone(), body, args);
        activation.statements(&body.statements).await?;
        let body = &component.behaviour;
        loop {
            self.tick()?;
            if self.world.is_stopped(instance.number) {
                return Err(Escape::Stop);
            }
            let activation = Activation::new(self, instance.clone(), &body.locals);
            activation.statements(&body.statements).await?;
            self.world.breathe(instance.number).await;
        }
    }

    fn print(&self, text: &str) {
        self.stdout.borrow_mut().push_str(text);
    }

    /// Counts a step; an error beyond the limit.
    fn tick(&self) -> Result<(), Escape> {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > STEPS {
            return Err(Escape::Spent);
        }
        Ok(())
    }

    fn default_of(&self, ty: &Type) -> Value {
        match ty {
            Type::Integer => Value::Integer(0),
            Type::Unsigned => Value::Unsigned(0),
            Type::Byte => Value::Byte(0),
            Type::Real => Value::Single(0.0),
            Type::Bool => Value::Bool(false),
            Type::Text => Value::Text("".into()),
            Type::Enum(_) => Value::Label(0),
            _ => Value::Void,
        }
    }
}
