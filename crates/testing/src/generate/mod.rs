//! Random well-typed programs.
//!
//! A program is built bottom up: types, procedures, components, the main sequence. Statements grow
//! under two limits, a budget of statements and an estimate of their steps. Where the language
//! leaves the result open (which of two ready senders is served first, the address order of
//! references) nothing is generated whose output could depend on it.

mod components;
mod expression;
mod literal;
mod names;
mod plan;
mod procedure;
mod scope;
mod servers;
mod show;
mod statement;
mod streams;
mod types;

use crate::oracle::{self, Expected};
use crate::random::Random;
use crate::text;
use crate::tree::*;
use scope::Scope;

/// A program with its expected output.
#[derive(Debug)]
pub struct Case {
    pub seed: u64,
    /// The seed and shape of the accepted [`program`].
    pub draw: (u64, Shape),
    pub text: String,
    pub expected: Expected,
}

/// Allowed contents of the generated program.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub components: bool,
    /// Statements in the main sequence, roughly; procedures and components scale with it.
    pub size: usize,
}

/// A program of the seed's own shape. Programs that take too long or whose output depends on the
/// schedule are drawn again.
pub fn case(seed: u64) -> Case {
    let mut random = Random::new(seed);
    let shape = Shape {
        components: random.chance(60),
        size: 6 + random.below(30),
    };
    case_of(seed, shape)
}

/// [`case`] with a given shape.
pub fn case_of(seed: u64, shape: Shape) -> Case {
    // Generator and oracle recurse into deep trees, beyond a test thread's stack.
    let draw = std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || draw(seed, shape))
        .expect("a thread starts");
    draw.join().expect("the generator does not panic")
}

const STACK: usize = 256 << 20;

fn draw(seed: u64, shape: Shape) -> Case {
    let mut random = Random::new(seed);
    loop {
        let draw = random.seed();
        let program = program(draw, shape);
        if let Ok(expected) = oracle::expect(&program) {
            return Case {
                seed,
                draw: (draw, shape),
                text: text::print(&program, draw),
                expected,
            };
        }
    }
}

/// A well-typed program, not yet known to have one output.
pub fn program(seed: u64, shape: Shape) -> Program {
    let mut generator = Generator::new(seed);
    generator.types();
    generator.helpers();
    for _ in 0..1 + generator.random.below(shape.size / 3 + 1) {
        generator.top_level_proc();
    }
    let plans = if shape.components {
        1 + generator.random.below(3)
    } else {
        0
    };
    generator.main(shape.size, plans);
    generator.program
}

/// Properties of a procedure for its callers.
#[derive(Clone, Copy, Debug, Default)]
struct Manner {
    /// Estimated steps of one call.
    cost: u64,
    raises: bool,
    prints: bool,
    /// The component that may call it; None: from anywhere.
    owner: Option<usize>,
    /// Called by the generator's own patterns only.
    reserved: bool,
}

struct Generator {
    random: Random,
    program: Program,
    manners: Vec<Manner>,
    names: usize,
    /// Types of procedure values; each has a procedure that may be one.
    signatures: Vec<Type>,
    scope: Scope,
    helpers: Helpers,
    /// A component that servers may create; it sends one value and stops.
    task: Option<usize>,
}

/// Procedures every program has.
#[derive(Clone, Copy, Default)]
struct Helpers {
    show_real: usize,
    to_int: usize,
}

impl Generator {
    fn new(seed: u64) -> Self {
        Generator {
            random: Random::new(seed),
            program: Program {
                enums: vec![EnumType {
                    name: "ExceptionType".into(),
                    labels: EXCEPTIONS.iter().map(ToString::to_string).collect(),
                }],
                ..Program::default()
            },
            manners: Vec::new(),
            names: 0,
            signatures: Vec::new(),
            scope: Scope::default(),
            helpers: Helpers::default(),
            task: None,
        }
    }

    /// The main sequence: statements, the communication plans one after another, and at the end the
    /// values in sight.
    fn main(&mut self, size: usize, plans: usize) {
        self.scope = Scope::body(None);
        self.scope.may_print = true;
        // Components first: they precede every statement.
        let plans: Vec<_> = (0..plans).map(|_| self.plan(size)).collect();
        self.scope.enter();
        let mut statements = self.some_statements(size / 2);
        for plan in plans {
            statements.extend(self.stage(plan));
            statements.extend(self.some_statements(size / 4));
        }
        statements.extend(self.show_all());
        if self.scope.locals.is_empty() || self.random.chance(10) {
            statements.extend(self.show_text("end\n"));
        }
        if self.random.chance(4) {
            // Uncaught: the exit code is 1. A plain `throw` is not allowed here.
            let nothing = Expr::integer(0);
            let crash = Expr::binary(Binary::Divide, Expr::integer(1), nothing, Type::Integer);
            let name = self.unique("crash");
            let variable = self.scope.declare(name, Type::Integer);
            statements.push(Stmt::Let(variable, crash));
        }
        self.scope.leave();
        let scope = std::mem::take(&mut self.scope);
        self.program.main = Body {
            locals: scope.locals,
            params: 0,
            statements,
        };
    }
}
