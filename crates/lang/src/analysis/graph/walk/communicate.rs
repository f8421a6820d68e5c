//! The statements that make the graph: components, connections, messages.

use super::paths::{Spot, Way};
use super::{Flow, Phase, Walk};
use crate::analysis::graph::known::Known;
use crate::analysis::graph::tally::Operation;
use crate::analysis::graph::world::{HalfChannel, Instance};
use crate::analysis::graph::{ChannelId, InstanceId, UnknownKind, bytes, weights};
use crate::core::ir::*;
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{ComponentId, Direction};
use crate::types::TypeId;

/// The reason where the channel's name leads nowhere before the run.
const NO_CHANNEL: &str = "the channel is not known before the run";
/// One `connect` that may connect more pairs than this is as good as unknown.
const PEERS_MAX: usize = 10_000;

impl Walk<'_> {
    /// Makes an instance and runs its initialisers and its constructor.
    pub(super) fn new_component(
        &mut self,
        component: ComponentId,
        constructor: usize,
        args: &[Known],
        span: Span,
    ) -> Known {
        self.work(weights::BLOCK);
        if let Some(doubt) = self.doubt() {
            self.unknown(UnknownKind::Creation, doubt, span);
            return Known::Unknown;
        }
        let declared = &self.program.components[component.index()];
        let id = InstanceId(self.world.instances.len() as u32);
        let mut ports = Vec::with_capacity(declared.channels.len());
        for port in &declared.channels {
            ports.push(self.world.channel(HalfChannel {
                owner: id,
                name: Some((port.name, None)),
                direction: port.direction,
                payload: port.payload,
                span: port.span,
            }));
        }
        self.world.instances.push(Instance {
            component: Some(component),
            name: None,
            parent: self.frame.instance,
            ports,
            members: vec![Known::Unknown; declared.members.len()],
            core: None,
            span,
        });
        // What it is given is its own from here on.
        let args: Vec<Known> = args.iter().map(|&arg| self.world.copied(arg)).collect();
        let outer = std::mem::take(&mut self.tally);
        let pending = std::mem::take(&mut self.pending);
        let under_way = std::mem::take(&mut self.under_way);
        if let Flow::Next | Flow::Return = self.run(Role::Members(component), id, &[]) {
            self.run(Role::Constructor(component, constructor), id, &args);
        }
        self.under_way = under_way;
        self.pending = pending;
        let start = std::mem::replace(&mut self.tally, outer);
        let is_silent = start.sends.is_empty() && start.receives.is_empty();
        if !is_silent || !start.unknowns.is_empty() {
            self.starts.push((id, start));
        }
        Known::Component(id)
    }

    pub(super) fn port_of(&mut self, component: Known, name: Symbol) -> Known {
        let Known::Component(id) = component else {
            return Known::Unknown;
        };
        match self.port_number(id, name) {
            Some(number) => self.world.instances[id.index()].ports[number],
            None => Known::Unknown,
        }
    }

    fn port_number(&self, id: InstanceId, name: Symbol) -> Option<usize> {
        let component = self.world.instances[id.index()].component?;
        let channels = &self.program.components[component.index()].channels;
        channels.iter().position(|channel| channel.name == name)
    }

    pub(super) fn assign_port(&mut self, component: Known, name: Symbol, value: Known, span: Span) {
        let doubt = self.doubt();
        if let Some(doubt) = doubt {
            self.unknown(UnknownKind::Connection, doubt, span);
        }
        if let Known::Component(id) = component
            && let Some(number) = self.port_number(id, name)
        {
            let value = if doubt.is_some() {
                Known::Unknown
            } else {
                value
            };
            self.put(Spot::Port(id, number as u32), value);
        }
    }

    pub(super) fn connect(&mut self, a: &End, b: &End, span: Span) {
        let mut ends = [Known::Unknown; 2];
        for (end, known) in [a, b].into_iter().zip(&mut ends) {
            match end {
                End::Local(channel) => *known = self.value(channel),
                End::Remote(..) => {
                    let reason = "one end is a channel of another node";
                    return self.unknown(UnknownKind::Connection, reason, span);
                }
            }
        }
        match (self.doubt(), self.phase, ends) {
            (None, _, [Known::Channel(a), Known::Channel(b)]) => self.world.connect(a, b, span),
            (Some(_), Phase::Pass, [a, b]) => self.connect_for_a_while(a, b, span),
            (Some(doubt), ..) => self.unknown(UnknownKind::Connection, doubt, span),
            (None, ..) => self.unknown(UnknownKind::Connection, NO_CHANNEL, span),
        }
    }

    /// A connection made in a behaviour, which the next pass may make to another peer.
    fn connect_for_a_while(&mut self, a: Known, b: Known, span: Span) {
        let (a, b) = (self.world.channels_of(a), self.world.channels_of(b));
        if a.is_empty() || b.is_empty() || a.len() * b.len() > PEERS_MAX {
            return self.unknown(UnknownKind::Connection, NO_CHANNEL, span);
        }
        for &a in &a {
            for &b in &b {
                if let Some((from, to)) = self.world.in_order(a, b) {
                    self.tally.temporary.push((from, to, span));
                }
            }
        }
    }

    pub(super) fn disconnect(&mut self, end: &End, span: Span) {
        let End::Local(channel) = end else { return };
        match (self.doubt(), self.value(channel)) {
            (None, Known::Channel(channel)) => self.world.disconnect(channel),
            // What is connected for a while is disconnected again.
            (Some(_), Known::Channel(channel))
                if self.phase == Phase::Pass && !self.world.is_connected(channel) => {}
            (Some(doubt), _) => self.unknown(UnknownKind::Disconnection, doubt, span),
            (None, _) => self.unknown(UnknownKind::Disconnection, NO_CHANNEL, span),
        }
    }

    pub(super) fn send(
        &mut self,
        channel: &Value,
        (value, ty): (&Value, TypeId),
        is_moved: bool,
        text: Span,
    ) {
        let message = self.value(value);
        let size = bytes::of(self, message, ty);
        let channel = self.value(channel);
        let shares = self.shares(channel, UnknownKind::Send, text);
        self.operate(Direction::Out, &shares);
        let message = self.world.copied(message);
        for (channel, share) in &shares {
            let messages = self.weight * share;
            let is_exact = self.is_exact && shares.len() == 1;
            let used = self.tally.sends.entry(*channel).or_default();
            used.add(messages, size.bytes, is_exact, size.is_exact);
            used.is_moved &= is_moved;
            let sent = (*channel, message);
            if self.tally.messages.last() != Some(&sent) {
                self.tally.messages.push(sent);
            }
        }
    }

    pub(super) fn receive(&mut self, channel: &Value, text: Span) {
        let channel = self.value(channel);
        self.receive_from(channel, text);
    }

    pub(super) fn receive_from(&mut self, channel: Known, text: Span) {
        let shares = self.shares(channel, UnknownKind::Receive, text);
        self.operate(Direction::In, &shares);
        for (channel, share) in &shares {
            let is_exact = self.is_exact && shares.len() == 1;
            let used = self.tally.receives.entry(*channel).or_default();
            used.add(self.weight * share, 0.0, is_exact, true);
        }
        self.received = match &shares[..] {
            [(only, _)] => {
                let message = self.incoming.of(*only);
                self.world.copied(message)
            }
            _ => Known::Unknown,
        };
    }

    /// An operation on one of these channels: it follows those before it.
    fn operate(&mut self, direction: Direction, shares: &[(ChannelId, f64)]) {
        let only = match shares {
            [(channel, _)] => Some(Operation::new(direction, *channel)),
            _ => None,
        };
        for (before, work_ns) in std::mem::take(&mut self.pending) {
            self.tally.follows(before, only, work_ns);
        }
        for (channel, _) in shares {
            self.pending
                .push((Operation::new(direction, *channel), 0.0));
        }
    }

    /// The half-channels that a value may be, each with its part.
    fn shares(&mut self, channel: Known, kind: UnknownKind, text: Span) -> Vec<(ChannelId, f64)> {
        let mut channels = self.world.channels_of(channel);
        if channels.is_empty() {
            self.unknown(kind, NO_CHANNEL, text);
        }
        let share = 1.0 / channels.len().max(1) as f64;
        channels.sort_unstable();
        let mut shares: Vec<(ChannelId, f64)> = Vec::with_capacity(channels.len());
        for channel in channels {
            match shares.last_mut() {
                Some((last, part)) if *last == channel => *part += share,
                _ => shares.push((channel, share)),
            }
        }
        shares
    }

    /// One of the open arms, any of them as often as the others.
    pub(super) fn select(&mut self, arms: &[Arm], default: Option<&Block>) -> Flow {
        let mut open = Vec::with_capacity(arms.len());
        for arm in arms {
            let is_open = match &arm.open {
                Some(guard) => self.value(guard),
                None => Known::Bool(true),
            };
            if is_open != Known::Bool(false) {
                let channel = self.value(&arm.channel);
                open.push((arm, channel));
            }
        }
        self.received = Known::Unknown;
        if let ([(arm, channel)], None) = (&open[..], default) {
            self.receive_from(*channel, arm.text);
            return self.block(&arm.body);
        }
        let lasting = |block: &Block| !super::paths::leaves(block);
        let bodies = open.iter().map(|(arm, _)| &arm.body).chain(default);
        let count = bodies.filter(|body| lasting(body)).count();
        // An arm in which the component stops is taken once in its life.
        let share_of = |block: &Block| match (lasting(block), count) {
            (_, 0) => 1.0 / (open.len() + usize::from(default.is_some())).max(1) as f64,
            (true, count) => 1.0 / count as f64,
            (false, _) => 0.0,
        };
        let mut ways: Vec<Way<'_>> = Vec::with_capacity(open.len() + 1);
        for (arm, channel) in &open {
            ways.push(Way {
                share: share_of(&arm.body),
                receives: Some((*channel, arm.text)),
                block: Some(&arm.body),
                is_arm: true,
            });
        }
        if let Some(default) = default {
            ways.push(Way {
                is_arm: true,
                ..Way::of(share_of(default), Some(default))
            });
        }
        self.fork("this is in an arm of a select", &ways)
    }
}
