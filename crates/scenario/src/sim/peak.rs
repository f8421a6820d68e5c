//! The busiest window.

/// Most core time in a window of the length, with the window's start, both in nanoseconds. `load`
/// has the number of busy cores from each time on.
///
/// The sum over a window is linear in its start between two times at which either end passes a
/// change of the load. So the maximum is at a window that starts or ends at a change.
pub(super) fn peak(load: &[(u64, u32)], end_ns: u64, window_ns: u64) -> (u64, u64) {
    // Core time up to each change.
    let mut sums = Vec::with_capacity(load.len());
    let mut sum = 0;
    for (nth, (at_ns, busy)) in load.iter().enumerate() {
        sums.push(sum);
        let until_ns = load.get(nth + 1).map_or(end_ns.max(*at_ns), |next| next.0);
        sum += u64::from(*busy) * (until_ns - at_ns);
    }
    let until = |at_ns: u64, cursor: &mut usize| {
        while load.get(*cursor + 1).is_some_and(|next| next.0 <= at_ns) {
            *cursor += 1;
        }
        let (from_ns, busy) = load[*cursor];
        sums[*cursor] + u64::from(busy) * (at_ns.min(end_ns).max(from_ns) - from_ns)
    };
    let mut best = (0, 0);
    let mut cursors = [0; 4];
    for at_ns in load.iter().map(|change| change.0).chain([end_ns]) {
        let starts = [at_ns, at_ns.saturating_sub(window_ns)];
        for (nth, start_ns) in starts.into_iter().enumerate() {
            let before = until(start_ns, &mut cursors[2 * nth]);
            let after = until(start_ns + window_ns, &mut cursors[2 * nth + 1]);
            if after - before > best.0 {
                best = (after - before, start_ns);
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_window_is_that_of_every_start_tried() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..300 {
            let mut load = vec![(0, random.u32(0..3))];
            for _ in 0..random.usize(0..8) {
                let at_ns = load[load.len() - 1].0 + random.u64(1..9);
                load.push((at_ns, random.u32(0..3)));
            }
            let end_ns = load[load.len() - 1].0 + random.u64(0..9);
            let window_ns = random.u64(1..20);
            let busy = |ns: u64| match ns < end_ns {
                true => load
                    .iter()
                    .rev()
                    .find(|one| one.0 <= ns)
                    .map_or(0, |one| one.1),
                false => 0,
            };
            let sum = |start: u64| {
                (start..start + window_ns)
                    .map(|ns| u64::from(busy(ns)))
                    .sum()
            };
            let expected: u64 = (0..=end_ns).map(sum).max().unwrap_or(0);
            let (found, at_ns) = peak(&load, end_ns, window_ns);
            assert_eq!(found, expected, "{load:?} to {end_ns} in {window_ns}");
            assert_eq!(sum(at_ns), found);
        }
    }
}
