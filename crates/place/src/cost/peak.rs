//! Maximum of many numbers that change one by one: a tree of maxima.

/// Children of a node of the tree.
const FAN: usize = 16;

/// Numbers from 0 on; the last level of the tree has the largest of all.
#[derive(Clone, Debug)]
pub(crate) struct Peak {
    count: usize,
    /// Levels of the tree: the numbers, the largest of each [`FAN`] of them, and so on up to one;
    /// each level is filled up with zeros.
    levels: Vec<Vec<f64>>,
}

impl Peak {
    /// All zero.
    pub(crate) fn new(count: usize) -> Self {
        let mut levels = Vec::new();
        let mut nodes = count.max(1);
        loop {
            let is_root = nodes <= FAN;
            levels.push(vec![0.0; nodes.next_multiple_of(FAN)]);
            if is_root {
                return Self { count, levels };
            }
            nodes = nodes.div_ceil(FAN);
        }
    }

    pub(crate) fn set(&mut self, mut at: usize, mut value: f64) {
        let mut rest = self.levels.as_mut_slice();
        while let [level, above @ ..] = rest {
            let before = std::mem::replace(&mut level[at], value);
            let Some(next) = above.first() else { return };
            let parent = at / FAN;
            let largest = next[parent];
            if value < largest {
                if before < largest {
                    return;
                }
                value = max(&level[parent * FAN..][..FAN]);
                if value == largest {
                    return;
                }
            }
            (at, rest) = (parent, above);
        }
    }

    pub(crate) fn largest(&self) -> f64 {
        self.levels.last().map_or(0.0, |root| max(root))
    }

    pub(crate) fn get(&self, at: usize) -> f64 {
        self.levels[0][at]
    }

    /// The largest number except for some.
    pub(crate) fn largest_but(&mut self, some: impl Iterator<Item = usize> + Clone) -> f64 {
        let before = some.clone().map(|at| self.levels[0][at]);
        let mut before: Vec<f64> = before.collect();
        some.clone().for_each(|at| self.set(at, 0.0));
        let largest = self.largest();
        for (at, value) in some.zip(before.drain(..)) {
            self.set(at, value);
        }
        largest
    }

    /// The first position of the largest number.
    pub(crate) fn position(&self) -> usize {
        let largest = self.largest();
        let mut at = 0;
        for level in self.levels.iter().rev() {
            let nodes = level[at * FAN..][..FAN].iter();
            at = at * FAN
                + nodes
                    .take_while(|value| **value != largest)
                    .count()
                    .min(FAN - 1);
        }
        at.min(self.count.saturating_sub(1))
    }
}

fn max(values: &[f64]) -> f64 {
    // Not f64::max: none of them is NaN, and this is one instruction.
    let larger = |a: f64, b: f64| if a > b { a } else { b };
    let mut four = [0.0; 4];
    for chunk in values.chunks_exact(4) {
        for (largest, value) in four.iter_mut().zip(chunk) {
            *largest = larger(*largest, *value);
        }
    }
    larger(larger(four[0], four[1]), larger(four[2], four[3]))
}

#[cfg(test)]
mod tests {
    use super::Peak;

    #[test]
    fn the_largest_and_the_first_that_has_it() {
        let mut random = fastrand::Rng::with_seed(1);
        for count in [1, 2, 3, 8, 16, 17, 100, 256, 300, 5000] {
            let mut peak = Peak::new(count);
            let mut plain = vec![0.0; count];
            for _ in 0..1000 {
                let (at, value) = (random.usize(..count), f64::from(random.u32(..50)));
                peak.set(at, value);
                plain[at] = value;
                let largest = plain.iter().copied().fold(0.0, f64::max);
                assert_eq!(peak.largest(), largest);
                let but = [random.usize(..count), at];
                let others = plain.iter().enumerate().filter(|(at, _)| !but.contains(at));
                let others = others.map(|(_, value)| *value).fold(0.0, f64::max);
                assert_eq!(peak.largest_but(but.into_iter()), others);
                assert_eq!(
                    Some(peak.position()),
                    plain.iter().position(|value| *value == largest)
                );
            }
        }
    }
}
