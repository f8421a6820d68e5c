//! Calls, and what natives do that matters here.

use super::paths::Spot;
use super::{DEPTH_MAX, Flow, Phase, RoleKey, Walk};
use crate::analysis::graph::UnknownKind;
use crate::analysis::graph::known::{Known, wrapped};
use crate::analysis::graph::weights;
use crate::core::ir::*;
use crate::source::Span;
use crate::tree::{ProcCode, ProcId};
use crate::types::TypeId;

impl Walk<'_> {
    pub(super) fn call(
        &mut self,
        target: Option<SlotId>,
        callee: &Callee,
        args: &[Argument],
        span: Span,
    ) -> Flow {
        let mut values = Vec::with_capacity(args.len());
        for argument in args {
            values.push(self.value(&argument.value));
        }
        self.work(weights::CALL);
        let (proc, instance) = match callee {
            Callee::Proc(proc) => {
                // A procedure of a component sees that component; others see nobody's members.
                (*proc, self.frame.instance)
            }
            Callee::Value(value, _) => match self.value(value) {
                Known::Proc(proc, instance) => (proc, instance),
                _ => {
                    let reason = "the procedure that this calls is not known before the run";
                    self.unknown(UnknownKind::Work, reason, span);
                    self.set_target(target, Known::Unknown);
                    return Flow::Next;
                }
            },
        };
        let program = self.program;
        match &program.procs[proc.index()].code {
            ProcCode::Native { symbol, blocks, .. } => {
                if *blocks {
                    self.tally.outside_ns += self.weight * weights::OUTSIDE;
                }
                let result = self.native(program.names.name(*symbol), &values, span);
                self.set_target(target, result);
                Flow::Next
            }
            ProcCode::Body(_) => self.call_body(target, proc, instance, &values, span),
        }
    }

    fn set_target(&mut self, target: Option<SlotId>, value: Known) {
        if let Some(slot) = target {
            self.put(Spot::Slot(self.frame.base + slot.index()), value);
        }
    }

    fn call_body(
        &mut self,
        target: Option<SlotId>,
        proc: ProcId,
        instance: crate::analysis::graph::InstanceId,
        args: &[Known],
        span: Span,
    ) -> Flow {
        let index = self.functions.get(&RoleKey::Proc(proc.0)).copied();
        let recursive = index.is_some_and(|index| self.under_way.contains(&index));
        // Where nothing is certain a recursion might be walked for ever.
        if self.depth >= DEPTH_MAX || recursive && self.doubt().is_some() {
            let reason = "the depth of recursion is not known before the run";
            self.unknown(UnknownKind::Work, reason, span);
            self.set_target(target, Known::Unknown);
            return Flow::Next;
        }
        match self.run(Role::Proc(proc), instance, args) {
            Flow::Next | Flow::Return => {
                let result = self.result;
                self.set_target(target, result);
                Flow::Next
            }
            flow => flow,
        }
    }

    fn native(&mut self, name: &str, args: &[Known], span: Span) -> Known {
        let first = args.first().copied().unwrap_or(Known::Unknown);
        self.work(if name.starts_with("hearth_print") {
            weights::PRINT
        } else {
            weights::NATIVE
        });
        // What a native was given it may have changed.
        for array in args.iter().filter_map(|&value| Self::object_of(value)) {
            if name == "hearth_ifft" {
                self.blur(array);
            }
        }
        match (name, first) {
            ("hearth_set_core", core) => {
                self.set_core(core, span);
                Known::Unknown
            }
            // The first counts seconds, the other milliseconds.
            ("hearth_set_timer", channel) => self.set_timer(channel, args.get(1), 1.0),
            ("hearth_set_rtimer", channel) => self.set_timer(channel, args.get(1), 1e-3),
            ("hearth_int_to_unsigned", Known::Int(n)) => Known::Int(wrapped(n, TypeId::UNSIGNED)),
            ("hearth_int_to_byte", Known::Int(n)) => Known::Int(wrapped(n, TypeId::BYTE)),
            ("hearth_abs_int", Known::Int(n)) => Known::Int(wrapped(n.abs(), TypeId::INTEGER)),
            ("hearth_square_int", Known::Int(n)) => {
                Known::Int(wrapped(n.wrapping_mul(n), TypeId::INTEGER))
            }
            ("hearth_real_to_int", Known::Real(x)) => Known::Int(i64::from(x as i32)),
            ("hearth_abs_real", Known::Real(x)) => Known::Real(x.abs()),
            ("hearth_square_real", Known::Real(x)) => Known::Real(x * x),
            (_, Known::About(x)) if name.starts_with("hearth_int_to") => Known::About(x),
            _ => Known::Unknown,
        }
    }

    /// A timer sends on a channel from now on, or once.
    fn set_timer(&mut self, channel: Known, time: Option<&Known>, unit: f64) -> Known {
        if let (Known::Channel(channel), Some((time, _))) = (channel, time.and_then(|t| t.number()))
            && time > 0.0
        {
            self.tally.timers.push((channel, time * unit));
        }
        Known::Unknown
    }

    /// `setCore`: the component that calls it stays on this core.
    fn set_core(&mut self, core: Known, span: Span) {
        let instance = self.frame.instance.index();
        match core {
            Known::Int(core) if self.doubts.is_empty() => {
                self.world.instances[instance].core = u32::try_from(core).ok();
            }
            Known::Int(_) => {
                let doubt = self.doubts.last().copied().unwrap_or_default();
                self.unknown(UnknownKind::Core, doubt, span);
            }
            _ => {
                let reason = match self.phase {
                    Phase::Start => "the core's number is not known before the run",
                    Phase::Pass => "the core's number is not known before the run, or changes",
                };
                self.unknown(UnknownKind::Core, reason, span);
            }
        }
    }
}
