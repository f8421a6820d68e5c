//! The largest of many numbers that change one by one: a tree of maxima.

/// Numbers from 0 on; the largest is at the root.
#[derive(Clone, Debug)]
pub(crate) struct Peak {
    leaves: usize,
    tree: Vec<f64>,
}

impl Peak {
    /// All zero.
    pub(crate) fn new(count: usize) -> Self {
        let leaves = count.max(1).next_power_of_two();
        Self {
            leaves,
            tree: vec![0.0; 2 * leaves],
        }
    }

    pub(crate) fn set(&mut self, at: usize, value: f64) {
        let mut at = self.leaves + at;
        self.tree[at] = value;
        while at > 1 {
            at /= 2;
            let largest = self.tree[2 * at].max(self.tree[2 * at + 1]);
            if self.tree[at] == largest {
                break;
            }
            self.tree[at] = largest;
        }
    }

    pub(crate) fn largest(&self) -> f64 {
        self.tree[1]
    }

    /// The first position that has the largest.
    pub(crate) fn position(&self) -> usize {
        let mut at = 1;
        while at < self.leaves {
            at *= 2;
            if self.tree[at] < self.tree[at + 1] {
                at += 1;
            }
        }
        at - self.leaves
    }
}

#[cfg(test)]
mod tests {
    use super::Peak;

    #[test]
    fn the_largest_and_the_first_that_has_it() {
        let mut random = fastrand::Rng::with_seed(1);
        for count in [1, 2, 3, 8, 100] {
            let mut peak = Peak::new(count);
            let mut plain = vec![0.0; count];
            for _ in 0..1000 {
                let (at, value) = (random.usize(..count), f64::from(random.u32(..50)));
                peak.set(at, value);
                plain[at] = value;
                let largest = plain.iter().copied().fold(0.0, f64::max);
                assert_eq!(peak.largest(), largest);
                assert_eq!(
                    Some(peak.position()),
                    plain.iter().position(|value| *value == largest)
                );
            }
        }
    }
}
