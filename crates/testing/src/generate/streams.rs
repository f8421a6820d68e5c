//! Components that run side by side and print nothing: the main sequence receives the same from
//! them whichever is faster.

use super::components::Draft;
use super::{Generator, Manner};
use crate::tree::*;

pub(super) enum Streams {
    /// Each stage takes from the one before and gives to the next; the main sequence is last.
    Line { stages: Vec<usize>, count: i32 },
    /// Several producers, and one collector that adds up values in any order.
    Merge {
        producer: usize,
        producers: i32,
        collector: usize,
    },
    /// One source, equal stateless workers, and the main sequence that adds up.
    Farm {
        source: usize,
        worker: usize,
        workers: i32,
        count: i32,
    },
    /// A component made for one task, which sends its result and stops.
    Task { worker: usize, times: i32 },
}

impl Generator {
    pub(super) fn streams(&mut self, size: usize) -> Streams {
        let count = 1 + self.random.below(6) as i32;
        match self.random.below(4) {
            0 | 1 => self.line(count, size),
            2 => self.merge(count),
            _ if self.random.chance(50) => self.farm(count),
            _ => {
                let payload = self.payload();
                let worker = self.source(payload, 1, size / 4);
                Streams::Task {
                    worker,
                    times: count.min(4),
                }
            }
        }
    }

    fn line(&mut self, count: i32, size: usize) -> Streams {
        let mut payload = self.payload();
        let mut stages = vec![self.source(payload.clone(), count, size / 4)];
        for _ in 0..self.random.below(3) {
            let next = self.payload();
            stages.push(self.filter(payload, next.clone(), count, size / 4));
            payload = next;
        }
        Streams::Line { stages, count }
    }

    /// End of a pass: `n := n + 1` and `if n >= count then stop`, sometimes in a procedure.
    fn end_of_pass(&mut self, draft: &mut Draft, counter: &Expr, count: i32) -> Vec<Stmt> {
        let statements = self.count_pass(counter, count);
        if self.random.chance(60) {
            return statements;
        }
        let body = Body {
            statements,
            ..Body::default()
        };
        let manner = Manner {
            cost: 5,
            owner: Some(draft.index),
            reserved: true,
            ..Manner::default()
        };
        let name = self.unique("tick");
        let proc = self.add_proc(name, Type::Void, body, manner);
        self.add_member_proc(draft, proc);
        let call = Expr::new(ExprKind::Call(proc, Vec::new()), Type::Void);
        vec![Stmt::Do(call)]
    }

    /// Ends the component: by `stop`, or by an unhandled exception.
    fn ending(&mut self) -> Stmt {
        if self.random.chance(92) {
            return Stmt::Stop(None);
        }
        let nothing = Expr::integer(0);
        let crash = Expr::binary(Binary::Remainder, Expr::integer(1), nothing, Type::Integer);
        Stmt::Do(Expr::standard(Standard::PrintInt, vec![crash], Type::Void))
    }

    /// `n := n + 1` and `if n >= count then stop`.
    fn count_pass(&mut self, counter: &Expr, count: i32) -> Vec<Stmt> {
        let ty = Type::Integer;
        let more = Expr::binary(Binary::Add, counter.clone(), Expr::integer(1), ty);
        let done = Expr::binary(
            Binary::GreaterEqual,
            counter.clone(),
            Expr::integer(count),
            Type::Bool,
        );
        vec![
            Stmt::Assign(counter.clone(), more),
            Stmt::If(done, vec![self.ending()], None),
        ]
    }

    fn port_expr(draft: &Draft, port: usize) -> Expr {
        Expr::new(ExprKind::Port(port), draft.ports[port].ty())
    }

    /// Sends `count` values and stops.
    pub(super) fn source(&mut self, payload: Type, count: i32, size: usize) -> usize {
        let ports = vec![self.port("next", true, payload.clone())];
        let mut draft = self.draft("Source", ports, false);
        let counter = self.hidden_member(&mut draft, Type::Integer, Expr::integer(0));
        self.random_members(&mut draft);
        self.random_constructors(&mut draft);
        let ending = self.end_of_pass(&mut draft, &counter, count);
        self.open_body(&draft, false);
        let number = self.random.below(size + 2);
        let mut statements = self.some_statements(number);
        let value = self.fitting(&payload, 3);
        statements.push(Stmt::Send(value, Self::port_expr(&draft, 0)));
        statements.extend(ending);
        let (behaviour, _) = self.close_body(statements);
        self.finish(draft, behaviour)
    }

    /// Takes a value, gives a value, `count` times.
    fn filter(&mut self, takes: Type, gives: Type, count: i32, size: usize) -> usize {
        let ports = vec![
            self.port("next", true, gives.clone()),
            self.port("prev", false, takes.clone()),
        ];
        let mut draft = self.draft("Stage", ports, false);
        let counter = self.hidden_member(&mut draft, Type::Integer, Expr::integer(0));
        self.random_members(&mut draft);
        self.random_constructors(&mut draft);
        let ending = self.end_of_pass(&mut draft, &counter, count);
        self.open_body(&draft, false);
        let name = self.unique("taken");
        let variable = self.scope.declare(name, takes);
        let mut statements = vec![Stmt::Receive(variable, Self::port_expr(&draft, 1))];
        let number = self.random.below(size + 2);
        statements.extend(self.some_statements(number));
        let value = self.fitting(&gives, 3);
        statements.push(Stmt::Send(value, Self::port_expr(&draft, 0)));
        statements.extend(ending);
        let (behaviour, _) = self.close_body(statements);
        self.finish(draft, behaviour)
    }

    fn merge(&mut self, count: i32) -> Streams {
        let producer = self.source(Type::Integer, count, 1);
        let producers = 1 + self.random.below(4) as i32;
        let ports = vec![
            self.port("total", true, Type::Integer),
            self.port("each", false, Type::Integer),
        ];
        let mut draft = self.draft("Collector", ports, false);
        let sum = self.hidden_member(&mut draft, Type::Integer, Expr::integer(0));
        self.plain_constructor(&mut draft);
        self.open_body(&draft, false);
        let mut body = Vec::new();
        self.scope.enter();
        let turn = self.scope.declare("turn".into(), Type::Integer);
        let taken = self.take_sum(Self::port_expr(&draft, 1), &sum, &mut body);
        self.scope.leave();
        let _ = taken;
        let statements = vec![
            Stmt::For {
                variable: turn,
                from: Expr::integer(1),
                to: Expr::integer(producers * count),
                step: 1,
                body,
            },
            Stmt::Send(sum, Self::port_expr(&draft, 0)),
            Stmt::Stop(None),
        ];
        let (behaviour, _) = self.close_body(statements);
        Streams::Merge {
            producer,
            producers,
            collector: self.finish(draft, behaviour),
        }
    }

    /// `receive v from channel` and `sum := sum + v`.
    fn take_sum(&mut self, channel: Expr, sum: &Expr, body: &mut Vec<Stmt>) -> usize {
        let name = self.unique("part");
        let variable = self.scope.declare(name, Type::Integer);
        let value = Expr::new(ExprKind::Local(variable), Type::Integer);
        let more = Expr::binary(Binary::Add, sum.clone(), value, Type::Integer);
        body.push(Stmt::Receive(variable, channel));
        body.push(Stmt::Assign(sum.clone(), more));
        variable
    }

    fn farm(&mut self, count: i32) -> Streams {
        let source = self.source(Type::Integer, count, 1);
        let ports = vec![
            self.port("next", true, Type::Integer),
            self.port("prev", false, Type::Integer),
        ];
        let mut draft = self.draft("Worker", ports, false);
        self.plain_constructor(&mut draft);
        self.open_body(&draft, false);
        let variable = self.scope.declare("job".into(), Type::Integer);
        let mut statements = vec![Stmt::Receive(variable, Self::port_expr(&draft, 1))];
        statements.extend(self.some_statements(2));
        let value = self.fitting(&Type::Integer, 3);
        statements.push(Stmt::Send(value, Self::port_expr(&draft, 0)));
        let (behaviour, _) = self.close_body(statements);
        Streams::Farm {
            source,
            worker: self.finish(draft, behaviour),
            workers: 1 + self.random.below(3) as i32,
            count,
        }
    }

    pub(super) fn use_streams(&mut self, streams: &Streams) -> Vec<Stmt> {
        let mut statements = Vec::new();
        match *streams {
            Streams::Line { ref stages, count } => {
                let mut previous: Option<Expr> = None;
                for &stage in stages {
                    let creation = self.creation(stage);
                    let instance = self.bind("stage", creation, &mut statements);
                    if let Some(previous) = previous {
                        let from = self.port_of(&previous, 0);
                        let to = self.port_of(&instance, 1);
                        statements.push(self.connect(from, to));
                    }
                    previous = Some(instance);
                }
                let last = previous.expect("at least a source");
                let channel = self.join(&last, 0, &mut statements);
                let taking = |generator: &mut Self| generator.take_and_show(&channel);
                statements.push(self.repeat(count, taking));
            }
            Streams::Merge {
                producer,
                producers,
                collector,
            } => {
                let creation = self.creation(collector);
                let collector = self.bind("collector", creation, &mut statements);
                for _ in 0..producers {
                    let creation = self.creation(producer);
                    let instance = self.bind("producer", creation, &mut statements);
                    let from = self.port_of(&instance, 0);
                    let to = self.port_of(&collector, 1);
                    statements.push(self.connect(from, to));
                }
                let total = self.join(&collector, 0, &mut statements);
                statements.extend(self.take_and_show(&total));
            }
            Streams::Farm {
                source,
                worker,
                workers,
                count,
            } => self.use_farm(source, worker, workers, count, &mut statements),
            Streams::Task { worker, times } => {
                let task = |generator: &mut Self| {
                    let mut body = Vec::new();
                    let creation = generator.creation(worker);
                    let instance = generator.bind("task", creation, &mut body);
                    let channel = generator.join(&instance, 0, &mut body);
                    body.extend(generator.take_and_show(&channel));
                    body
                };
                statements.push(self.repeat(times, task));
            }
        }
        statements
    }

    fn use_farm(
        &mut self,
        source: usize,
        worker: usize,
        workers: i32,
        count: i32,
        statements: &mut Vec<Stmt>,
    ) {
        let creation = self.creation(source);
        let source = self.bind("source", creation, statements);
        let new = Expr::new(ExprKind::NewChannel, Type::input(Type::Integer));
        let results = self.bind("results", new, statements);
        let mut instances = Vec::new();
        for _ in 0..workers {
            let creation = self.creation(worker);
            let instance = self.bind("worker", creation, statements);
            let (from, to) = (self.port_of(&source, 0), self.port_of(&instance, 1));
            statements.push(self.connect(from, to));
            let from = self.port_of(&instance, 0);
            statements.push(self.connect(from, results.clone()));
            instances.push(instance);
        }
        let sum = self.bind("sum", Expr::integer(0), statements);
        let adding = |generator: &mut Self| {
            let mut body = Vec::new();
            generator.take_sum(results.clone(), &sum, &mut body);
            body
        };
        statements.push(self.repeat(count, adding));
        statements.extend(self.show(sum));
        for instance in instances {
            statements.push(Stmt::Stop(Some(instance)));
        }
    }

    /// A loop of this many rounds around the statements of `body`.
    fn repeat(&mut self, rounds: i32, body: impl FnOnce(&mut Self) -> Vec<Stmt>) -> Stmt {
        self.scope.enter();
        let name = self.unique("round");
        let variable = self.scope.declare(name, Type::Integer);
        self.scope.newest().assignable = false;
        let outer = self.scope.multiplicity;
        self.scope.multiplicity *= rounds.max(1) as u64;
        self.scope.enter();
        let body = body(self);
        self.scope.leave();
        self.scope.multiplicity = outer;
        self.scope.leave();
        Stmt::For {
            variable,
            from: Expr::integer(1),
            to: Expr::integer(rounds),
            step: 1,
            body,
        }
    }
}
