//! Differences between integers that hold at a point of a function: `x - y <= c`.
//!
//! A *zone* is a matrix of such bounds over the symbols of a function, with symbol 0 for the
//! number zero, so that `x - 0 <= c` bounds `x` itself. It is kept closed: each entry is the best
//! bound that follows from all of them, but for the head of a loop, whose bounds must only grow.
//! Numbers are true integers; whoever adds one to a symbol
//! first shows that the machine's number does not wrap.

/// A number of a function: a variable, a length, or [`ZERO`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) struct Symbol(pub u16);

/// The number zero.
pub(super) const ZERO: Symbol = Symbol(0);

/// No bound. Far from the ends of the type, so that sums of two do not wrap.
const NONE: i64 = i64::MAX / 4;

/// Bounds that a growing one stops at: below, at most, at most one above. They are what bounds of
/// arrays and halves of ranges come to.
const STOPS: [i64; 3] = [-1, 0, 1];

/// A symbol, or none for zero, plus a constant.
pub(super) type Linear = (Symbol, i64);

/// All that is known about differences at one point; nothing at a point that is never reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Zone {
    count: usize,
    /// Row by row: the entry `(x, y)` bounds `x - y` from above.
    bounds: Vec<i64>,
    is_reachable: bool,
    /// Each bound is the best that follows from all.
    is_closed: bool,
}

impl Zone {
    /// Nothing is known about so many symbols, zero included.
    pub(super) fn new(count: usize) -> Zone {
        let mut zone = Zone {
            count,
            bounds: vec![NONE; count * count],
            is_reachable: true,
            is_closed: true,
        };
        for symbol in 0..count {
            zone.bounds[symbol * count + symbol] = 0;
        }
        zone
    }

    /// The zone of a point that is never reached.
    pub(super) fn unreachable(count: usize) -> Zone {
        Zone {
            is_reachable: false,
            ..Zone::new(count)
        }
    }

    pub(super) fn is_reachable(&self) -> bool {
        self.is_reachable
    }

    pub(super) fn end(&mut self) {
        self.is_reachable = false;
    }

    /// The upper bound of `x - y`, if there is one.
    pub(super) fn bound(&self, x: Symbol, y: Symbol) -> Option<i64> {
        let bound = self.entry(x, y);
        (bound < NONE / 2).then_some(bound)
    }

    fn entry(&self, x: Symbol, y: Symbol) -> i64 {
        self.bounds[usize::from(x.0) * self.count + usize::from(y.0)]
    }

    /// The range of a linear number: none where it has no end.
    pub(super) fn range(&self, (symbol, offset): Linear) -> (Option<i64>, Option<i64>) {
        let low = self.bound(ZERO, symbol).map(|c| offset - c);
        let high = self.bound(symbol, ZERO).map(|c| offset + c);
        (low, high)
    }

    /// True if `a + distance <= b` at this point.
    pub(super) fn is_at_most(&self, a: Linear, distance: i64, b: Linear) -> bool {
        !self.is_reachable
            || self
                .bound(a.0, b.0)
                .is_some_and(|c| c + a.1 + distance <= b.1)
    }

    /// Learns that `a + distance <= b`.
    pub(super) fn learn_at_most(&mut self, a: Linear, distance: i64, b: Linear) {
        self.add(a.0, b.0, b.1 - a.1 - distance);
    }

    /// Learns that `x - y <= c`.
    pub(super) fn add(&mut self, x: Symbol, y: Symbol, c: i64) {
        if !self.is_reachable || c >= self.entry(x, y) {
            return;
        }
        if x == y {
            self.is_reachable &= c >= 0;
            return;
        }
        let n = self.count;
        let (x, y) = (usize::from(x.0), usize::from(y.0));
        if self.bounds[y * n + x] < NONE / 2 && self.bounds[y * n + x] + c < 0 {
            self.is_reachable = false;
            return;
        }
        let from_y = self.bounds[y * n..(y + 1) * n].to_vec();
        for row in self.bounds.chunks_exact_mut(n) {
            let to_x = row[x];
            if to_x < NONE / 2 {
                tighten(row, to_x + c, &from_y);
            }
        }
    }

    /// Forgets all about a symbol.
    pub(super) fn forget(&mut self, symbol: Symbol) {
        let (n, s) = (self.count, usize::from(symbol.0));
        for other in (0..n).filter(|&other| other != s) {
            self.bounds[s * n + other] = NONE;
            self.bounds[other * n + s] = NONE;
        }
    }

    /// The symbol becomes a number: `value`, which may be its own old value plus a constant.
    pub(super) fn assign(&mut self, symbol: Symbol, (from, offset): Linear) {
        if symbol != from {
            self.forget(symbol);
            self.add(symbol, from, offset);
            self.add(from, symbol, -offset);
            return;
        }
        let (n, s) = (self.count, usize::from(symbol.0));
        for other in (0..n).filter(|&other| other != s) {
            for (at, change) in [(s * n + other, offset), (other * n + s, -offset)] {
                if self.bounds[at] < NONE / 2 {
                    self.bounds[at] += change;
                }
            }
        }
    }

    /// Learns all that the other zone says of the same point.
    pub(super) fn meet(&mut self, other: &Zone) {
        if !self.is_reachable || !other.is_reachable {
            self.is_reachable = false;
            return;
        }
        for x in 0..self.count {
            for y in 0..self.count {
                let bound = other.bounds[x * self.count + y];
                self.add(Symbol(x as u16), Symbol(y as u16), bound);
            }
        }
    }

    /// Keeps only what holds in both.
    pub(super) fn join(&mut self, other: &Zone) {
        if !other.is_reachable {
            return;
        }
        if !self.is_reachable {
            *self = other.clone();
            return;
        }
        self.is_closed &= other.is_closed;
        for (mine, theirs) in self.bounds.iter_mut().zip(&other.bounds) {
            if *theirs > *mine {
                *mine = *theirs;
            }
        }
    }

    /// Loosens each bound that does not hold in `next` to the next of [`STOPS`], or drops it: no
    /// bound is loosened more than a few times, so a loop that widens comes to an end.
    pub(super) fn widen(&mut self, next: &Zone) {
        if !next.is_reachable {
            return;
        }
        if !self.is_reachable {
            *self = next.clone();
            return;
        }
        for (mine, theirs) in self.bounds.iter_mut().zip(&next.bounds) {
            if *theirs > *mine {
                let stop = STOPS.into_iter().find(|stop| stop >= theirs);
                *mine = stop.unwrap_or(NONE);
                self.is_closed = false;
            }
        }
    }

    /// Makes each bound the best that follows from all, as widening does not leave them.
    pub(super) fn close(&mut self) {
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        let n = self.count;
        for via in 0..n {
            let from_via = self.bounds[via * n..(via + 1) * n].to_vec();
            for row in self.bounds.chunks_exact_mut(n) {
                let to_via = row[via];
                if to_via < NONE / 2 {
                    tighten(row, to_via, &from_via);
                }
            }
        }
        self.is_reachable &= (0..n).all(|x| self.bounds[x * n + x] >= 0);
    }

    /// True if all that this zone says holds in `other`.
    pub(super) fn covers(&self, other: &Zone) -> bool {
        !other.is_reachable
            || (self.is_reachable
                && self
                    .bounds
                    .iter()
                    .zip(&other.bounds)
                    .all(|(mine, theirs)| theirs <= mine))
    }
}

/// Takes over each way through another symbol that is a better bound.
fn tighten(row: &mut [i64], to: i64, from: &[i64]) {
    for (bound, rest) in row.iter_mut().zip(from) {
        if *rest < NONE / 2 && to + *rest < *bound {
            *bound = to + *rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: Symbol = Symbol(1);
    const Y: Symbol = Symbol(2);

    #[test]
    fn bounds_follow_from_each_other() {
        let mut zone = Zone::new(3);
        zone.add(X, Y, -1);
        zone.add(Y, ZERO, 10);
        assert_eq!(zone.bound(X, ZERO), Some(9));
        zone.assign(X, (X, 1));
        assert_eq!(zone.bound(X, Y), Some(0));
        zone.forget(Y);
        assert_eq!(zone.range((X, 0)), (None, Some(10)));
    }

    #[test]
    fn what_cannot_be_is_not_reached() {
        let mut zone = Zone::new(3);
        zone.add(X, Y, -1);
        zone.add(Y, X, -1);
        assert!(!zone.is_reachable());
    }

    #[test]
    fn widening_drops_what_grows() {
        let mut zone = Zone::new(2);
        zone.assign(X, (ZERO, 0));
        let mut next = zone.clone();
        next.assign(X, (X, 1));
        zone.widen(&next);
        assert_eq!(zone.range((X, 0)), (Some(0), Some(1)));
        next.assign(X, (X, 1));
        zone.widen(&next);
        assert_eq!(zone.range((X, 0)), (Some(0), None));
        assert!(zone.covers(&next));
    }
}
