//! Response times of the components of one core in one mode, in whole nanoseconds.
//!
//! Preemptive fixed priorities, shorter deadlines first, earlier components before later ones.
//! Joseph and Pandya's equation (1986), in the form of Audsley and others (1993):
//!
//! ```text
//! R = C + Σ ⌈R / T_j⌉ · C_j     over all j of higher priority
//! ```
//!
//! whose least solution is the longest response for deadlines up to the period. Blocking and the
//! cost of preemption belong into the times.

/// A component as the equation sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) component: usize,
    pub(super) time_ns: u64,
    pub(super) period_ns: u64,
    pub(super) deadline_ns: u64,
}

/// The longest response time of each, in the order given; none where it is beyond the deadline.
pub(super) fn responses(loads: &[Load]) -> Vec<Option<u64>> {
    let responses = loads.iter().map(|load| {
        let above = loads.iter().filter(|other| {
            let key = |load: &Load| (load.deadline_ns, load.component);
            key(other) < key(load)
        });
        let above: Vec<&Load> = above.collect();
        response(load, &above)
    });
    responses.collect()
}

fn response(load: &Load, above: &[&Load]) -> Option<u64> {
    let deadline = u128::from(load.deadline_ns);
    let mut length = u128::from(load.time_ns);
    loop {
        let others = above.iter().map(|other| {
            let releases = length.div_ceil(u128::from(other.period_ns));
            releases * u128::from(other.time_ns)
        });
        let next = u128::from(load.time_ns) + others.sum::<u128>();
        // `next` never falls, so this ends: each round adds at least 1 ns or is the last.
        if next > deadline {
            return None;
        }
        if next == length {
            return u64::try_from(length).ok();
        }
        length = next;
    }
}
