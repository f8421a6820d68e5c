//! The equations exactly as printed, defects included (see [`super::ERRATA`]).
//!
//! Only useful in comparison with the intended form. Equations 7.7 to 7.16 exist for the two
//! published machines alone and give `None` for others.

use super::{Access, Parameters, Type};

/// Equation 3.2, ns: as intended, but the third level is charged with memory's latency.
#[must_use]
pub fn write_3_2_ns(machine: &Parameters, bytes: u64) -> f64 {
    third_level_as_memory_ns(machine, Access::Write, bytes)
}

/// Equation 3.5, ns: printed as intended.
#[must_use]
pub fn read_3_5_ns(machine: &Parameters, bytes: u64) -> f64 {
    machine.side_ns(Access::Read, bytes)
}

/// Equation 3.7, ns, for a given `Control`: writes as in 3.2; reads charge the third level with
/// memory's latency, and the first with `n` instead of `n/ns` accesses.
#[must_use]
pub fn communication_3_7_ns(machine: &Parameters, control_ns: f64, bytes: u64) -> f64 {
    let read = if fits_first(machine, bytes) {
        bytes as f64 * machine.first_level().read_ns
    } else {
        third_level_as_memory_ns(machine, Access::Read, bytes)
    };
    write_3_2_ns(machine, bytes) + control_ns + read
}

/// Equations 7.7 and 7.9 (Xeon 5130), 7.8 and 7.10 (E5), ns.
#[must_use]
pub fn control_7_7_to_7_10_ns(machine: &Parameters, kind: Type, bytes: u64) -> Option<f64> {
    let (printed, beyond) = (machine.printed?, machine.beyond?);
    let index = kind.index();
    Some(if bytes <= printed.events_above_bytes {
        machine.zero_data.control_ns[index]
    } else {
        printed.events_base_ns[index] - beyond.faults_in_base * beyond.fault_ns
            + beyond.slope_ns_per_byte() * bytes as f64
    })
}

/// Equations 7.11 (Xeon 5130) and 7.12 (E5), ns.
#[must_use]
pub fn control_7_11_7_12_ns(machine: &Parameters, kind: Type, bytes: u64) -> Option<f64> {
    let slopes = machine.printed?.slope_simplified_ns_per_byte;
    control_with(machine, kind, bytes, slopes)
}

/// Equations 7.13 (Xeon 5130) and 7.14 (E5), ns: deeper levels charge `n` accesses and forget the
/// rest of the line. `Control` is that of 7.11 and 7.12.
#[must_use]
pub fn communication_7_13_7_14_ns(machine: &Parameters, kind: Type, bytes: u64) -> Option<f64> {
    let n = bytes as f64;
    let latency = machine.latency_at(bytes);
    let write = if fits_first(machine, bytes) {
        n / machine.word_bytes * latency.write_ns
    } else {
        n * latency.write_ns
    };
    Some(write + control_7_11_7_12_ns(machine, kind, bytes)? + n * latency.read_ns)
}

/// Equations 7.15 (Xeon 5130) and 7.16 (E5), ns: reads within the first level charge `n` accesses;
/// the E5's slope is smaller for types 2 and 3.
#[must_use]
pub fn communication_7_15_7_16_ns(machine: &Parameters, kind: Type, bytes: u64) -> Option<f64> {
    let slopes = machine.printed?.slope_final_ns_per_byte;
    let control = control_with(machine, kind, bytes, slopes)?;
    let read = if fits_first(machine, bytes) {
        bytes as f64 * machine.first_level().read_ns
    } else {
        machine.side_ns(Access::Read, bytes)
    };
    Some(machine.side_ns(Access::Write, bytes) + control + read)
}

fn control_with(machine: &Parameters, kind: Type, bytes: u64, slopes: [f64; 3]) -> Option<f64> {
    let printed = machine.printed?;
    let last = machine.levels.last()?.capacity_bytes;
    let index = kind.index();
    Some(if bytes <= last {
        machine.zero_data.control_ns[index]
    } else {
        printed.beyond_constant_ns[index] + slopes[index] * bytes as f64
    })
}

fn fits_first(machine: &Parameters, bytes: u64) -> bool {
    machine
        .levels
        .first()
        .is_some_and(|level| bytes <= level.capacity_bytes)
}

fn third_level_as_memory_ns(machine: &Parameters, access: Access, bytes: u64) -> f64 {
    let in_third = machine.levels.len() >= 3
        && bytes > machine.levels[1].capacity_bytes
        && bytes <= machine.levels[2].capacity_bytes;
    if in_third {
        bytes as f64 / machine.line_bytes * machine.memory.of(access)
            + machine.first_level_rest_ns(access, bytes)
    } else {
        machine.side_ns(access, bytes)
    }
}
