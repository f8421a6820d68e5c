//! Channels: send, receive, acknowledge, select, connect, disconnect, publish.

use super::control::Arms;
use super::fit::{Agreement, Use, with_article};
use super::show::word;
use super::{BodyKind, Checker};
use crate::codes::semantic as code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{self, Direction, Name};
use crate::tree::{End, Expr, ExprKind, SelectArm};
use crate::types::{Type, TypeId};

impl<'a> Checker<'a> {
    /// The channel of an operation, and its payload; ERROR when it is none, or the wrong way.
    fn channel(&mut self, text: &'a ast::Expr, wanted: Direction, verb: &str) -> (Expr, TypeId) {
        let channel = self.value(text);
        let payload = match *self.types.get(channel.ty) {
            Type::Channel(direction, payload) if direction == wanted => payload,
            Type::Channel(_, payload) => {
                self.wrong_direction(&channel, wanted, verb);
                payload
            }
            Type::Error => TypeId::ERROR,
            _ => {
                self.not_a_channel(&channel, verb);
                TypeId::ERROR
            }
        };
        (channel, payload)
    }

    #[cold]
    fn wrong_direction(&mut self, channel: &Expr, wanted: Direction, verb: &str) {
        let found = match wanted {
            Direction::In => "out",
            Direction::Out => "in",
        };
        let (way, other) = match wanted {
            Direction::In => ("receives come from `in` channels", "send on it"),
            Direction::Out => ("sends go on `out` channels", "receive from it"),
        };
        let mut diagnostic = Diagnostic::error(
            code::WRONG_DIRECTION,
            format!("cannot {verb} an `{found}` channel"),
            channel.span,
            format!("this is {}", self.show_full(channel.ty)),
        );
        if let Some((span, text)) = self.place_declaration(channel) {
            let shown = self.show(channel.ty);
            diagnostic = self.with_declaration(diagnostic, span, format!("{text} `{shown}`"));
        }
        self.report(diagnostic.with_help(format!(
            "{way}: {other} instead, or declare the channel as `{}`",
            word(wanted)
        )));
    }

    #[cold]
    fn not_a_channel(&mut self, value: &Expr, verb: &str) {
        let shown = with_article(&self.show(value.ty));
        let mut diagnostic = Diagnostic::error(
            code::NOT_A_CHANNEL,
            format!("cannot {verb} {shown}"),
            value.span,
            format!("this is {}", self.show_full(value.ty)),
        )
        .with_note("Expected a channel.");
        if let Type::Component(ports) = self.types.get(value.ty) {
            let names: Vec<String> = ports
                .iter()
                .map(|port| format!("`.{}`", self.name(port.name)))
                .collect();
            diagnostic = diagnostic.with_help(match names.is_empty() {
                true => "this component has no channels".to_string(),
                false => format!("name one of its channels: {}", names.join(", ")),
            });
        }
        self.report(diagnostic);
    }

    fn communication(&mut self, what: &str, span: Span) {
        if self.at.body.kind != BodyKind::Constructor || self.at.layer.is_some() {
            return;
        }
        self.report(
            Diagnostic::warning(
                code::COMMUNICATION_IN_CONSTRUCTOR,
                format!("a constructor {what}"),
                span,
                "may wait before the behaviour has begun",
            )
            .with_help("communicate in the behaviour"),
        );
    }

    pub(super) fn send(
        &mut self,
        value: &'a ast::Expr,
        channel: &'a ast::Expr,
        span: Span,
    ) -> ExprKind {
        self.communication("sends", span);
        let value = self.value(value);
        let (channel, payload) = self.channel(channel, Direction::Out, "send on");
        self.leaves_component(&value, "sent");
        let used = Use {
            code: code::SEND_PAYLOAD,
            purpose: &|| "be sent on this channel".to_string(),
            because: Some((channel.span, "this channel carries")),
            help: None,
        };
        let value = self.coerce(value, payload, &used);
        ExprKind::Send {
            value: Box::new(value),
            channel: Box::new(channel),
        }
    }

    pub(super) fn receive(&mut self, name: Name, channel: &'a ast::Expr, span: Span) -> ExprKind {
        self.communication("receives", span);
        let (channel, payload) = self.channel(channel, Direction::In, "receive from");
        let local = self.local(name, payload);
        ExprKind::Receive {
            local,
            channel: Box::new(channel),
        }
    }

    pub(super) fn acknowledge(
        &mut self,
        name: Name,
        channel: &'a ast::Expr,
        body: &'a ast::Expr,
        span: Span,
    ) -> ExprKind {
        self.communication("receives", span);
        let (channel, payload) = self.channel(channel, Direction::In, "receive from");
        let local = self.local(name, payload);
        let body = self.scoped(body, false);
        ExprKind::Acknowledge {
            local,
            channel: Box::new(channel),
            body: Box::new(body),
        }
    }

    pub(super) fn select(
        &mut self,
        arms: &'a [ast::SelectArm],
        default: Option<&'a ast::Expr>,
        at: Arms,
    ) -> Expr {
        self.communication("selects", at.span);
        let mut agreement = Agreement::new();
        let mut checked = Vec::with_capacity(arms.len());
        for arm in arms {
            let (channel, payload) = self.channel(&arm.channel, Direction::In, "receive from");
            let outer = self.at.body.guarded.replace(arm.name);
            let guard = arm
                .guard
                .as_ref()
                .map(|guard| self.condition(guard, "a guard"));
            self.at.body.guarded = outer;
            self.at.scopes.enter();
            let local = self.local(arm.name, payload);
            let body = self.scoped(&arm.body, at.used);
            self.at.scopes.leave();
            agreement.add(self, &arm.body, &body, at.used);
            checked.push(SelectArm {
                acknowledge: arm.acknowledge,
                local,
                channel,
                guard,
                body,
                span: arm.span,
            });
        }
        let default = default.map(|text| {
            let body = self.scoped(text, at.used);
            agreement.add(self, text, &body, at.used);
            Box::new(body)
        });
        Expr {
            kind: ExprKind::Select {
                arms: checked,
                default,
            },
            ty: agreement.ty(),
            span: at.span,
        }
    }

    pub(super) fn connect(&mut self, a: &'a ast::End, b: &'a ast::End, span: Span) -> ExprKind {
        let a = self.end(a, "connect");
        let b = self.end(b, "connect");
        if let (End::Local(a), End::Local(b)) = (&a, &b) {
            self.joinable(a, b, span);
        }
        ExprKind::Connect(a, b)
    }

    fn end(&mut self, end: &'a ast::End, verb: &str) -> End {
        let value = self.value(&end.channel);
        let Some(address) = &end.address else {
            if !matches!(self.types.get(value.ty), Type::Channel(..) | Type::Error) {
                self.not_a_channel(&value, verb);
            }
            return End::Local(Box::new(value));
        };
        if value.ty != TypeId::STRING && value.ty != TypeId::ERROR {
            let diagnostic = self
                .wrong_kind(
                    code::REMOTE_END,
                    &value,
                    "name a channel of another node",
                    "a string, the name the channel is published under",
                )
                .with_help("write `\"name\" on address`");
            self.report(diagnostic);
        }
        let address = self.address(address);
        End::Remote {
            name: Box::new(value),
            address: Box::new(address),
        }
    }

    /// Unsigned, or the `byte[]` of older programs.
    fn address(&mut self, text: &'a ast::Expr) -> Expr {
        let value = self.value(text);
        let bytes = matches!(*self.types.get(value.ty), Type::Array(TypeId::BYTE));
        if bytes {
            return value;
        }
        let used = Use {
            code: code::REMOTE_END,
            purpose: &|| "be the address of a node".to_string(),
            because: None,
            help: None,
        };
        self.coerce(value, TypeId::UNSIGNED, &used)
    }

    fn joinable(&mut self, a: &Expr, b: &Expr, span: Span) {
        let (Type::Channel(one, first), Type::Channel(other, second)) =
            (self.types.get(a.ty), self.types.get(b.ty))
        else {
            return;
        };
        let (one, other) = (*one, *other);
        let (code, title, help) = if one == other {
            let way = word(one);
            (
                code::LIKE_DIRECTIONS,
                format!("cannot connect an `{way}` channel to an `{way}` channel"),
                "a connection joins an `in` and an `out`",
            )
        } else if first != second {
            (
                code::DIFFERENT_PAYLOADS,
                format!(
                    "cannot connect channels of `{}` and `{}`",
                    self.show(*first),
                    self.show(*second)
                ),
                "both ends of a connection carry exactly the same type",
            )
        } else {
            return;
        };
        let shown = |ty| self.show(ty);
        let diagnostic = Diagnostic::error(code, title, span, "these ends do not fit together")
            .with_label(a.span, format!("this is `{}`", shown(a.ty)))
            .with_label(b.span, format!("this is `{}`", shown(b.ty)))
            .with_help(help);
        self.report(diagnostic);
    }

    pub(super) fn disconnect(&mut self, end: &'a ast::End) -> ExprKind {
        ExprKind::Disconnect(self.end(end, "disconnect"))
    }

    pub(super) fn publish(&mut self, channel: &'a ast::Expr, name: &'a ast::Expr) -> ExprKind {
        let channel = self.value(channel);
        if !matches!(self.types.get(channel.ty), Type::Channel(..) | Type::Error) {
            self.not_a_channel(&channel, "publish");
        }
        let name = self.value(name);
        let used = Use {
            code: code::REMOTE_END,
            purpose: &|| "be the name a channel is published under".to_string(),
            because: None,
            help: None,
        };
        let name = self.coerce(name, TypeId::STRING, &used);
        ExprKind::Publish {
            channel: Box::new(channel),
            name: Box::new(name),
        }
    }
}
