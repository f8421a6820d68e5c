//! Components that answer requests. Only one of them works at a time: a requester waits for the
//! answer, so they may share peers and print.

use super::components::Draft;
use super::{Generator, Manner};
use crate::tree::*;

pub(super) struct Servers {
    list: Vec<Server>,
}

struct Server {
    component: usize,
    style: Style,
    request: Type,
    /// Number of the port that takes requests; the answer's is the next.
    ask: usize,
    /// The servers it asks, with the number of its own asking port; the next port takes answers.
    asks: Vec<(usize, usize)>,
    cost: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Takes a request, sends an answer.
    Answer,
    /// Holds the requester until it has handled the request; no answer.
    Hold,
    /// Holds, and refuses some requests.
    Refuse,
    /// The request carries the channel for the answer.
    Carry,
}

impl Generator {
    pub(super) fn servers(&mut self, size: usize) -> Servers {
        let mut list: Vec<Server> = Vec::new();
        // A component for servers to create on demand.
        self.task = self.random.chance(50).then(|| {
            let payload = self.payload();
            self.source(payload, 1, 2)
        });
        for _ in 0..1 + self.random.below(3) {
            let server = self.server(&list, size);
            list.push(server);
        }
        Servers { list }
    }

    fn server(&mut self, earlier: &[Server], size: usize) -> Server {
        let style = *self.random.pick(&[
            Style::Answer,
            Style::Answer,
            Style::Hold,
            Style::Refuse,
            Style::Carry,
        ]);
        let content = self.payload();
        let answer = self.payload();
        let request = match style {
            Style::Carry => {
                // No struct directly inside a struct.
                let content = match content {
                    Type::Struct(_) => Type::array(content),
                    other => other,
                };
                let fields = vec![
                    (self.field_name(), Type::input(answer.clone())),
                    (self.field_name(), content),
                ];
                self.declare_struct("Order", fields)
            }
            _ => content,
        };
        let mut ports = vec![self.port("ask", false, request.clone())];
        if matches!(style, Style::Answer | Style::Carry) {
            ports.push(self.port("answer", true, answer));
        }
        // A channel that is joined to nothing.
        let spare = self.random.chance(30).then(|| {
            let payload = self.payload();
            ports.push(self.port("spare", false, payload));
            ports.len() - 1
        });
        let mut asks = Vec::new();
        for (number, other) in earlier.iter().enumerate() {
            if other.style == Style::Answer && self.random.chance(60) {
                asks.push((number, ports.len()));
                let component = &self.program.components[other.component];
                let answers = component.ports[other.ask + 1].payload.clone();
                let requests = other.request.clone();
                ports.push(self.port("to", true, requests));
                ports.push(self.port("from", false, answers));
            }
        }
        let mut draft = self.draft("Server", ports, true);
        for &(number, port) in &asks {
            self.asking_proc(&mut draft, port, earlier[number].cost);
        }
        self.random_members(&mut draft);
        self.random_constructors(&mut draft);
        self.open_body(&draft, true);
        let statements = self.serve(&draft, style, spare, size / 4);
        let (behaviour, cost) = self.close_body(statements);
        Server {
            component: self.finish(draft, behaviour),
            style,
            request,
            ask: 0,
            asks,
            cost,
        }
    }

    /// `proc ask(T x) : U { send x on to; receive r from from; return r }`
    fn asking_proc(&mut self, draft: &mut Draft, port: usize, cost: u64) {
        let request = draft.ports[port].payload.clone();
        let answer = draft.ports[port + 1].payload.clone();
        let to = Expr::new(ExprKind::Port(port), draft.ports[port].ty());
        let from = Expr::new(ExprKind::Port(port + 1), draft.ports[port + 1].ty());
        let local = |index: usize, ty: &Type| Expr::new(ExprKind::Local(index), ty.clone());
        let variable = |name: &str, ty: &Type| Variable {
            name: name.into(),
            ty: ty.clone(),
        };
        let mut statements = vec![Stmt::Send(local(0, &request), to)];
        let keep = || vec![Stmt::Return(Some(local(1, &answer)))];
        match self.random.below(4) {
            0 => statements.push(Stmt::Acknowledge(1, from, Vec::new())),
            1 => {
                let arm = SelectArm {
                    acknowledge: self.random.chance(50),
                    variable: 1,
                    channel: from,
                    guard: None,
                    body: keep(),
                };
                statements.push(Stmt::Select(vec![arm], None));
                // Not reached, but a separate variable: the arm's is out of scope here.
                let default = self.literal(&answer);
                statements.push(Stmt::Return(Some(default)));
            }
            2 => {
                // Inside a loop that is left early.
                let taking = Stmt::Receive(1, from);
                let body = [vec![taking], keep()].concat();
                statements.push(Stmt::For {
                    variable: 2,
                    from: Expr::integer(1),
                    to: Expr::integer(3),
                    step: 1,
                    body,
                });
                let default = self.literal(&answer);
                statements.push(Stmt::Return(Some(default)));
            }
            _ => statements.push(Stmt::Receive(1, from)),
        }
        if !matches!(statements.last(), Some(Stmt::Return(_))) {
            statements.extend(keep());
        }
        let body = Body {
            locals: vec![
                variable("x", &request),
                variable("r", &answer),
                variable("turn", &Type::Integer),
            ],
            params: 1,
            statements,
        };
        let manner = Manner {
            cost: cost + 10,
            raises: false,
            prints: true,
            owner: Some(draft.index),
            reserved: false,
        };
        let name = self.unique("ask");
        let proc = self.add_proc(name, answer, body, manner);
        self.add_member_proc(draft, proc);
    }

    /// One pass of a server.
    fn serve(
        &mut self,
        draft: &Draft,
        style: Style,
        spare: Option<usize>,
        size: usize,
    ) -> Vec<Stmt> {
        let mut statements = Vec::new();
        let port = |number: usize| Expr::new(ExprKind::Port(number), draft.ports[number].ty());
        let name = self.unique("req");
        let chosen = spare.filter(|_| self.random.chance(50));
        if let Some(spare) = spare.filter(|_| chosen.is_none()) {
            statements.push(self.poll(port(spare), draft.ports[spare].payload.clone()));
        }
        self.scope.enter();
        let variable = self.scope.declare(name, draft.ports[0].payload.clone());
        let handled = self.handle(draft, style, variable, size);
        self.scope.leave();
        match chosen {
            Some(spare) => {
                let other = self.spare_arm(port(spare), draft.ports[spare].payload.clone());
                let guard = self.random.chance(50).then(|| self.true_guard());
                let mut arms = vec![SelectArm {
                    acknowledge: matches!(style, Style::Hold | Style::Refuse),
                    variable,
                    channel: port(0),
                    guard,
                    body: handled,
                }];
                arms.insert(self.random.below(2), other);
                statements.push(self.guarded(style, Stmt::Select(arms, None)));
            }
            None if matches!(style, Style::Hold | Style::Refuse) => {
                let taking = Stmt::Acknowledge(variable, port(0), handled);
                statements.push(self.guarded(style, taking));
            }
            None => {
                statements.push(Stmt::Receive(variable, port(0)));
                statements.extend(handled);
            }
        }
        statements
    }

    /// Statements after a request, up to the answer.
    fn handle(&mut self, draft: &Draft, style: Style, variable: usize, size: usize) -> Vec<Stmt> {
        self.scope.may_raise = style == Style::Refuse;
        let count = 1 + self.random.below(size + 2);
        let mut statements = self.some_statements(count);
        self.scope.may_raise = false;
        if let Some(task) = self.task.filter(|_| self.random.chance(50)) {
            statements.extend(self.employ(task));
        }
        let answer = |draft: &Draft| Expr::new(ExprKind::Port(1), draft.ports[1].ty());
        match style {
            Style::Hold => {}
            Style::Refuse => {
                let condition = self.expr(&Type::Bool, 2);
                let label = self.random.below(EXCEPTIONS.len());
                statements.push(Stmt::If(condition, vec![Stmt::Throw(label)], None));
            }
            Style::Answer => {
                let value = self.fitting(&draft.ports[1].payload, 3);
                statements.push(Stmt::Send(value, answer(draft)));
            }
            Style::Carry => {
                let Type::Struct(index) = draft.ports[0].payload else {
                    unreachable!("orders are structs")
                };
                let channel = self.program.structs[index].fields[0].1.clone();
                let order = Expr::new(ExprKind::Local(variable), draft.ports[0].payload.clone());
                let value = self.fitting(&draft.ports[1].payload, 3);
                let reply = order.field(0, channel);
                statements.push(self.connect(reply, answer(draft)));
                statements.push(Stmt::Send(value, answer(draft)));
                statements.push(Stmt::Disconnect(answer(draft)));
            }
        }
        statements
    }

    /// Creates a component that sends one value and stops, and takes the value.
    fn employ(&mut self, task: usize) -> Vec<Stmt> {
        let mut statements = Vec::new();
        let creation = self.creation(task);
        let instance = self.bind("helper", creation, &mut statements);
        let channel = self.join(&instance, 0, &mut statements);
        statements.extend(self.take_and_show(&channel));
        if self.random.chance(30) {
            // It has stopped or is about to.
            statements.push(Stmt::Stop(Some(instance)));
        }
        statements
    }

    /// Guards a statement: nothing that ends an acknowledge early may end the server. The handler
    /// runs beside the refused sender, so it stays silent.
    fn guarded(&mut self, style: Style, statement: Stmt) -> Stmt {
        if style != Style::Refuse {
            return statement;
        }
        let prints = std::mem::replace(&mut self.scope.may_print, false);
        self.scope.enter();
        let handler = self.some_statements(1);
        self.scope.leave();
        self.scope.may_print = prints;
        Stmt::Try(vec![statement], vec![(None, handler)])
    }

    /// A guard that is true, but not obviously.
    fn true_guard(&mut self) -> Expr {
        let prints = std::mem::replace(&mut self.scope.may_print, false);
        let any = self.expr(&Type::Bool, 2);
        self.scope.may_print = prints;
        let yes = Expr::new(ExprKind::Bool(true), Type::Bool);
        Expr::binary(Binary::Or, any, yes, Type::Bool)
    }

    fn spare_arm(&mut self, channel: Expr, payload: Type) -> SelectArm {
        let prints = std::mem::replace(&mut self.scope.may_print, false);
        let guard = self.random.chance(40).then(|| self.expr(&Type::Bool, 1));
        self.scope.may_print = prints;
        self.scope.enter();
        let name = self.unique("never");
        let variable = self.scope.declare(name, payload);
        let body = self.nested();
        self.scope.leave();
        SelectArm {
            acknowledge: self.random.chance(30),
            variable,
            channel,
            guard,
            body,
        }
    }

    /// A `select` over nothing ready, which takes the default.
    fn poll(&mut self, channel: Expr, payload: Type) -> Stmt {
        let arm = self.spare_arm(channel, payload);
        let prints = std::mem::replace(&mut self.scope.may_print, false);
        let default = self.nested();
        self.scope.may_print = prints;
        Stmt::Select(vec![arm], Some(default))
    }

    pub(super) fn use_servers(&mut self, servers: &Servers) -> Vec<Stmt> {
        let mut statements = Vec::new();
        let mut instances = Vec::new();
        for server in &servers.list {
            let creation = self.creation(server.component);
            instances.push(self.bind("server", creation, &mut statements));
        }
        for (server, instance) in servers.list.iter().zip(&instances) {
            for &(other, port) in &server.asks {
                let asked = &instances[other];
                let ends = [(port, 0), (port + 1, 1)];
                for (mine, theirs) in ends {
                    let mine = self.port_of(instance, mine);
                    let theirs = self.port_of(asked, theirs);
                    statements.push(self.connect(mine, theirs));
                }
            }
        }
        let channels: Vec<(Expr, Option<Expr>)> = servers
            .list
            .iter()
            .zip(&instances)
            .map(|(server, instance)| {
                let ask = self.join(instance, 0, &mut statements);
                let answer = (server.style == Style::Answer)
                    .then(|| self.join(instance, 1, &mut statements));
                (ask, answer)
            })
            .collect();
        for _ in 0..1 + self.random.below(4) {
            let number = self.random.below(servers.list.len());
            let (ask, answer) = &channels[number];
            if self.random.chance(20) {
                statements.push(Stmt::Disconnect(ask.clone()));
                let port = self.port_of(&instances[number], 0);
                statements.push(self.connect(ask.clone(), port));
            }
            statements.extend(self.exchange(&servers.list[number], ask, answer.as_ref()));
        }
        for instance in instances {
            statements.push(Stmt::Stop(Some(instance)));
        }
        statements
    }

    /// A request from the main sequence, perhaps repeated.
    fn exchange(&mut self, server: &Server, ask: &Expr, answer: Option<&Expr>) -> Vec<Stmt> {
        self.scope.enter();
        let rounds = if self.random.chance(40) { 3 } else { 1 };
        let counter = self.unique("turn");
        let variable = self.scope.declare(counter, Type::Integer);
        self.scope.newest().assignable = false;
        let outer = self.scope.multiplicity;
        self.scope.multiplicity *= rounds;
        self.scope.enter();
        self.scope.spend(server.cost + 10);
        let mut body = self.request(server, ask, answer);
        if self.random.chance(30) {
            body.extend(self.some_statements(1));
        }
        self.scope.leave();
        self.scope.multiplicity = outer;
        self.scope.leave();
        vec![Stmt::For {
            variable,
            from: Expr::integer(1),
            to: Expr::integer(rounds as i32),
            step: 1,
            body,
        }]
    }

    fn request(&mut self, server: &Server, ask: &Expr, answer: Option<&Expr>) -> Vec<Stmt> {
        let mut statements = Vec::new();
        if server.style == Style::Carry {
            let Type::Struct(index) = server.request else {
                unreachable!("orders are structs")
            };
            let fields = self.program.structs[index].fields.clone();
            let new = Expr::new(ExprKind::NewChannel, fields[0].1.clone());
            let reply = self.bind("reply", new, &mut statements);
            let content = self.fitting(&fields[1].1, 2);
            let kind = ExprKind::NewStruct(vec![reply.clone(), content]);
            let order = Expr::new(kind, server.request.clone());
            statements.push(Stmt::Send(order, ask.clone()));
            statements.extend(self.take_and_show(&reply));
            return statements;
        }
        let value = self.fitting(&server.request, 3);
        let send = Stmt::Send(value, ask.clone());
        if server.style == Style::Refuse {
            let shown = self.show_text("refused\n");
            let handlers = vec![(Some(SEND_STATUS_UNKNOWN), shown)];
            let told = self.show_text("taken\n");
            let mut body = vec![send];
            body.extend(told);
            statements.push(Stmt::Try(body, handlers));
            return statements;
        }
        statements.push(send);
        if let Some(answer) = answer {
            statements.extend(self.take_and_show(answer));
        }
        statements
    }

    /// `receive r from channel`, and r is printed.
    pub(super) fn take_and_show(&mut self, channel: &Expr) -> Vec<Stmt> {
        let Type::In(payload) = &channel.ty else {
            unreachable!("answers come in")
        };
        let name = self.unique("got");
        let variable = self.scope.declare(name, (**payload).clone());
        let place = Expr::new(ExprKind::Local(variable), (**payload).clone());
        let mut statements = vec![Stmt::Receive(variable, channel.clone())];
        statements.extend(self.show(place));
        statements
    }
}
