//! Loops: counted, guarded, promoted.

use super::Emitter;
use super::Target;
use crate::core::ir::*;
use crate::core::passes::each_statement;
use crate::tree::MemberId;

impl Emitter<'_, '_> {
    // ---- loops --------------------------------------------------------------------------------

    pub(super) fn repeat(&mut self, l: &Loop) {
        if let Rounds::Apart(reductions) = &l.rounds
            && self.rounds_beside(l, reductions)
        {
            return;
        }
        self.repeat_in_order(l);
    }

    pub(super) fn repeat_in_order(&mut self, l: &Loop) {
        let name = self.slot_name(l.variable);
        if l.counted {
            let (from, to) = (self.bare(&l.from), self.bare(&l.to));
            let (compare, bound, step) = match l.step {
                1 => (
                    "<",
                    format!("(int64_t){} + 1", self.value(&l.to)),
                    format!("{name}++"),
                ),
                -1 => (
                    ">",
                    format!("(int64_t){} - 1", self.value(&l.to)),
                    format!("{name}--"),
                ),
                n if n > 0 => ("<=", to, format!("{name} += {n}")),
                n => (">=", to, format!("{name} -= {}", i64::from(n).abs())),
            };
            self.line(format!("for (int64_t {name} = {from}, {name}_end = {bound}; {name} {compare} {name}_end; {step}) {{"));
            self.inner(&l.body);
            self.line("}");
            return;
        }
        // The variable may be assigned and the bound may change: both are looked at every round.
        let from = self.bare(&l.from);
        self.line(format!("{name} = {from};"));
        self.line("for (;;) {");
        self.depth += 1;
        self.block(&l.prepare);
        let to = self.value(&l.to);
        let beyond = if l.step > 0 { ">" } else { "<" };
        self.line(format!("if ({name} {beyond} {to})"));
        self.line("    break;");
        self.block(&l.body);
        let step = i64::from(l.step).abs();
        let (limit, sign) = if l.step > 0 {
            (format!("{name} > INT32_MAX - {step}"), "+=")
        } else {
            (format!("{name} < INT32_MIN + {step}"), "-=")
        };
        self.line(format!("if ({limit})"));
        self.line("    break;");
        self.line(format!("{name} {sign} {step};"));
        self.depth -= 1;
        self.line("}");
    }

    pub(super) fn versioned(&mut self, guards: &[Guard], fast: &Loop, slow: &Loop) {
        let conditions: Vec<String> = guards.iter().map(|g| self.guard(g)).collect();
        let mut separator = format!(" &&\n{}    ", "    ".repeat(self.depth));
        if conditions.len() == 1 {
            separator.clear();
        }
        self.line(format!("if ({}) {{", conditions.join(&separator)));
        let outer = std::mem::replace(
            &mut self.fast_variable,
            checks_nothing(fast).then_some(fast.variable),
        );
        self.depth += 1;
        self.repeat(fast);
        self.depth -= 1;
        self.fast_variable = outer;
        self.line("} else {");
        self.depth += 1;
        // Some check fails there, as a rule: that is no place for haste.
        self.repeat_in_order(slow);
        self.depth -= 1;
        self.line("}");
    }

    pub(super) fn guard(&self, guard: &Guard) -> String {
        match guard {
            Guard::Index { array, index } => {
                format!("(size_t){} < {}", self.value(index), self.length(array))
            }
            Guard::Scaled {
                array,
                factor,
                low,
                high,
            } => {
                let factor = self.value(factor);
                format!(
                    "{factor} >= 0 && {} >= 0 && (int64_t){} * {factor} < (int64_t){}",
                    self.value(low),
                    self.value(high),
                    self.length(array)
                )
            }
            Guard::Induction {
                array,
                start,
                step,
                low,
                high,
                after,
            } => {
                let (start, step) = (self.read_slot(*start), self.value(step));
                let rounds = format!("(int64_t){} - {}", self.value(high), self.value(low));
                let rounds = if *after {
                    format!("{rounds} + 1")
                } else {
                    rounds
                };
                format!(
                    "{start} >= 0 && {step} >= 0 && {start} + ({rounds}) * {step} < (int64_t){}",
                    self.length(array)
                )
            }
            Guard::Range {
                array,
                low,
                high,
                offset,
            } => {
                let shifted = |v: &Value| match offset {
                    0 => self.value(v),
                    n if *n > 0 => format!("(int64_t){} + {n}", self.value(v)),
                    n => format!("(int64_t){} - {}", self.value(v), -n),
                };
                let above = format!(
                    "(int64_t)({}) < (int64_t){}",
                    shifted(high),
                    self.length(array)
                );
                match low {
                    Value::Int(n, _) if n + offset >= 0 => above,
                    _ => format!("{} >= 0 && {above}", shifted(low)),
                }
            }
        }
    }

    pub(super) fn promoted(&mut self, members: &[(MemberId, SlotId, bool)], body: &Block) {
        for (member, slot, _) in members {
            let text = format!(
                "{} = self->{};",
                self.slot_name(*slot),
                self.member_name(*member)
            );
            if self.layout.used[slot.index()] {
                self.line(text);
            }
        }
        let label = self.new_label("raised");
        self.handlers.push(Target {
            label: label.clone(),
            used: false,
            promoted: members.to_vec(),
        });
        self.block(body);
        let target = self.handlers.pop().expect("pushed above");
        self.write_back(members);
        if target.used {
            let end = self.new_label("done");
            self.line(format!("goto {end};"));
            self.body.push_str(&format!("{label}:\n"));
            self.write_back(members);
            self.goto_raise();
            self.body.push_str(&format!("{end}:;\n"));
        }
    }

    pub(super) fn write_back(&mut self, members: &[(MemberId, SlotId, bool)]) {
        for (member, slot, written) in members {
            if *written {
                let text = format!(
                    "self->{} = {};",
                    self.member_name(*member),
                    self.slot_name(*slot)
                );
                self.line(text);
            }
        }
    }
}

/// Was every index check of the loop hoisted?
fn checks_nothing(l: &Loop) -> bool {
    let mut none = true;
    each_statement(&mut l.body.clone(), &mut |stmt| {
        none &= !matches!(stmt, StmtKind::CheckIndex { .. })
    });
    none
}
