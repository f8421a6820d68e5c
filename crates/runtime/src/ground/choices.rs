//! A component's choice among several partners or arms: in turn, or by a seed.

/// The choices of one component.
#[derive(Default)]
pub(crate) struct Choices {
    /// State of the generator when `--seed` rules.
    seeded: Option<u64>,
    /// Children created so far: part of their identity, so that a seed means the same to each
    /// component in every interleaving of the threads.
    children: u64,
    identity: u64,
    /// The turn in which each arm of a select was last chosen, by the arm's key.
    turns: Vec<(usize, u64)>,
    clock: u64,
    scratch: Scratch,
}

/// The arms of one select: their keys, and the order in which to try them.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) keys: Vec<usize>,
    pub(crate) order: Vec<u32>,
}

impl Choices {
    /// The choices of the first component.
    pub(crate) fn root(seed: Option<u64>) -> Choices {
        Choices::with_identity(seed, seed.unwrap_or(0))
    }

    fn with_identity(seed: Option<u64>, identity: u64) -> Choices {
        Choices {
            seeded: seed.map(|_| identity),
            children: 0,
            identity,
            turns: Vec::new(),
            clock: 0,
            scratch: Scratch::default(),
        }
    }

    /// The choices of a component that this one creates.
    pub(crate) fn child(&mut self) -> Choices {
        self.children += 1;
        let identity = scramble(self.identity ^ scramble(self.children));
        Choices::with_identity(self.seeded, identity)
    }

    /// Whether they follow from a seed.
    pub(crate) fn are_seeded(&self) -> bool {
        self.seeded.is_some()
    }

    /// The index to start at among `count`, given the rotation's start.
    pub(crate) fn start(&mut self, rotation: usize, count: usize) -> usize {
        match &mut self.seeded {
            None => rotation,
            Some(_) if count < 2 => 0,
            Some(state) => (draw(state) % count as u64) as usize,
        }
    }

    /// Orders the arms whose keys are in `scratch`, least recently served first, so that no arm
    /// starves however the guards change from one select to the next.
    pub(crate) fn order(&mut self, scratch: &mut Scratch) {
        let Scratch { keys, order } = scratch;
        order.clear();
        order.extend(0..keys.len() as u32);
        if let Some(state) = &mut self.seeded {
            for last in (1..order.len()).rev() {
                order.swap(last, (draw(state) % (last as u64 + 1)) as usize);
            }
            return;
        }
        if !self.turns.is_empty() {
            order.sort_unstable_by_key(|&arm| (self.turn_of(keys[arm as usize]), arm));
        }
    }

    /// Takes the space for a select's arms; the caller puts it back.
    pub(crate) fn take_scratch(&mut self) -> Scratch {
        std::mem::take(&mut self.scratch)
    }

    pub(crate) fn put_scratch(&mut self, scratch: Scratch) {
        self.scratch = scratch;
    }

    fn turn_of(&self, key: usize) -> u64 {
        self.turns
            .iter()
            .find(|(known, _)| *known == key)
            .map_or(0, |&(_, turn)| turn)
    }

    /// Records that the arm with this key was served.
    pub(crate) fn served(&mut self, key: usize) {
        self.clock += 1;
        let clock = self.clock;
        match self.turns.iter_mut().find(|(known, _)| *known == key) {
            Some((_, turn)) => *turn = clock,
            None => self.turns.push((key, clock)),
        }
    }
}

/// The next number of a SplitMix64 sequence.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    scramble(*state)
}

/// SplitMix64's finaliser: neighbouring inputs give unrelated outputs.
pub(crate) fn scramble(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn first_of(choices: &mut Choices, keys: &[usize]) -> usize {
        let mut scratch = choices.take_scratch();
        scratch.keys = keys.to_vec();
        choices.order(&mut scratch);
        let first = keys[scratch.order[0] as usize];
        choices.put_scratch(scratch);
        choices.served(first);
        first
    }

    #[test]
    fn the_arm_served_longest_ago_comes_first() {
        let mut choices = Choices::root(None);
        for expected in [10, 20, 30, 10, 20] {
            assert_eq!(first_of(&mut choices, &[10, 20, 30]), expected);
        }
    }

    #[test]
    fn an_arm_closed_at_times_gets_its_turn() {
        let mut choices = Choices::root(None);
        let mut second_served = 0;
        for pass in 0..30 {
            // The second arm is open in every other pass.
            let open: &[usize] = if pass % 2 == 0 { &[1, 3] } else { &[1, 2, 3] };
            second_served += usize::from(first_of(&mut choices, open) == 2);
        }
        assert!(second_served >= 5, "{second_served} of 15");
    }

    #[test]
    fn a_seed_gives_every_child_its_own_sequence_again_and_again() {
        let sequence = |seed| {
            let mut root = Choices::root(Some(seed));
            let (mut a, mut b) = (root.child(), root.child());
            let draws =
                |choices: &mut Choices| (0..20).map(|_| choices.start(0, 7)).collect::<Vec<_>>();
            (draws(&mut a), draws(&mut b))
        };
        let (a, b) = sequence(5);
        assert_ne!(a, b);
        assert_eq!((a, b), sequence(5));
    }
}
