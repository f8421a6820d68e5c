//! Operations on the word of a region: pure arithmetic on 64 bits, without loops over blocks.

/// The multiples of 16: places for regions of the level below.
pub const ALIGNED: u64 = 0x0001_0001_0001_0001;

/// `granules` ones, 1 to 64, from bit 0.
#[inline]
pub const fn ones(granules: u32) -> u64 {
    u64::MAX >> (64 - granules)
}

/// The places where `granules` ones in a row begin.
///
/// Each step doubles what is known: bit i of `found` says that `known` ones begin at i.
#[inline]
pub const fn runs(word: u64, granules: u32) -> u64 {
    let mut found = word;
    let mut known = 1;
    while known * 2 <= granules {
        found &= found >> known;
        known *= 2;
    }
    if known < granules {
        found &= found >> (granules - known);
    }
    found
}

/// For each number of granules, the starts of consecutive blocks from bit 0, as many as fit.
const EVERY: [u64; 17] = {
    let mut table = [0; 17];
    let mut granules = 1;
    while granules <= 16 {
        let mut place = 0;
        while place + granules <= 64 {
            table[granules] |= 1 << place;
            place += granules;
        }
        granules += 1;
    }
    table
};

/// The starts of the lowest runs of `granules` ones, 1 to 16, that do not overlap; up to `count`,
/// which is not 0. `runs` has the starts of all runs, and is not 0.
#[inline]
pub const fn lowest_runs(word: u64, runs: u64, granules: u32, count: u32) -> u64 {
    let mut found = runs;
    // Usually they are consecutive.
    let first = found.trailing_zeros();
    let (length, rest) = (granules * count, 64 - first);
    if length <= rest {
        let together = (EVERY[granules as usize] & ones(length)) << first;
        if spread(together, granules) & !word == 0 {
            return together;
        }
    }
    let mut begins = 0;
    let mut left = count;
    while left > 0 && found != 0 {
        let first = found.trailing_zeros();
        begins |= 1 << first;
        found &= !(ones(granules) << first);
        left -= 1;
    }
    begins
}

/// All granules of blocks of one size that start at the given places and do not overlap: the sum of
/// the blocks, each the same ones shifted, is one product.
#[inline]
pub const fn spread(begins: u64, granules: u32) -> u64 {
    begins.wrapping_mul(ones(granules))
}

/// No run.
pub const FULL: u8 = 0;
/// A run of 16 or more, but none aligned.
pub const LONG: u8 = 16;
/// An aligned run of 16: room for a region of the level below.
pub const ROOM: u8 = 17;

/// The grade of a region: the length of its longest run up to 15, [`LONG`] or [`ROOM`].
#[inline]
pub const fn grade(word: u64) -> u8 {
    let two = word & word >> 1;
    let four = two & two >> 2;
    let eight = four & four >> 4;
    let sixteen = eight & eight >> 8;
    if sixteen != 0 {
        return if sixteen & ALIGNED != 0 { ROOM } else { LONG };
    }
    // The longest run has 0 to 15: find its binary digits from the highest. `found` has the starts
    // of runs of `length`; a run of `length + step` starts where one of `step` follows.
    let (mut found, mut length) = (u64::MAX, 0);
    if eight != 0 {
        (found, length) = (eight, 8);
    }
    let with = found & four >> length;
    if with != 0 {
        (found, length) = (with, length + 4);
    }
    let with = found & two >> length;
    if with != 0 {
        (found, length) = (with, length + 2);
    }
    if found & word >> length != 0 {
        length += 1;
    }
    length
}

/// The grade of a region whose run around `place` has just grown; at least the previous grade.
#[inline]
pub const fn grade_around(free: u64, place: u32) -> u8 {
    let above = (!(free >> place)).trailing_zeros();
    // Shifted so that the place is the highest bit.
    let below = (!(free << (63 - place))).leading_zeros();
    let length = above + below - 1;
    if length < 16 {
        return length as u8;
    }
    if runs(free, 16) & ALIGNED != 0 {
        ROOM
    } else {
        LONG
    }
}

/// Widens a run to all adjacent ones of `within`.
pub const fn widen(run: u64, within: u64) -> u64 {
    let first = run.trailing_zeros();
    let above = (!(within >> first)).trailing_zeros();
    let below = if first == 0 {
        0
    } else {
        (!(within << (64 - first))).leading_zeros()
    };
    ones(above + below) << (first - below)
}

/// The length of the block that starts at `place`: up to the next start or free granule, or the
/// end.
#[inline]
pub const fn length(free: u64, starts: u64, place: u32) -> u32 {
    // Two shifts, as one by 64 is undefined.
    let next = (free | starts) >> place >> 1;
    if next == 0 {
        64 - place
    } else {
        next.trailing_zeros() + 1
    }
}

/// The last granules of all blocks, deferred ones too. A deferred block is free at its start alone.
#[inline]
pub const fn ends(free: u64, starts: u64) -> u64 {
    let taken = !free | starts;
    // A block extends to the next granule if that is neither free nor a start.
    let goes_on = !(free | starts) >> 1;
    taken & !goes_on
}

/// All granules of the blocks that start at the marked places. Blocks have at most 16 granules, so
/// four steps reach the last one.
#[inline]
pub const fn blocks(free: u64, starts: u64, marked: u64) -> u64 {
    // A block extends where nothing is free and no block starts.
    let mut goes_on = !(free | starts);
    let mut found = marked;
    let mut step = 1;
    while step < 16 {
        found |= goes_on & found << step;
        goes_on &= goes_on << step;
        step *= 2;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    /// SplitMix64: words for tests.
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = *state;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    /// Words with runs of all lengths.
    fn words() -> Vec<u64> {
        let mut state = 7;
        let mut found = vec![0, u64::MAX, 1, 1 << 63, ALIGNED];
        for _ in 0..3000 {
            let (a, b, c) = (random(&mut state), random(&mut state), random(&mut state));
            found.extend([a, a & b, a | b, a | b | c, a | b | c | random(&mut state)]);
            found.push(ones(a as u32 % 64 + 1) << (b % 64));
        }
        found
    }

    fn longest(word: u64) -> u32 {
        let (mut best, mut now) = (0, 0);
        for i in 0..64 {
            now = if word >> i & 1 == 1 { now + 1 } else { 0 };
            best = best.max(now);
        }
        best
    }

    fn slow_grade(word: u64) -> u8 {
        let aligned = [0, 16, 32, 48].iter().any(|i| word >> i & 0xffff == 0xffff);
        match longest(word) {
            _ if aligned => ROOM,
            16.. => LONG,
            length => length as u8,
        }
    }

    #[test]
    fn runs_widen_to_the_next_gaps() {
        assert_eq!(widen(1, 1), 1);
        assert_eq!(widen(0b0011_0000, 0b1011_1110_1111_1001), 0b1111_1000);
        for first in 0..64 {
            for length in 1..=64 - first {
                let within = ones(length) << first;
                for bit in first..first + length {
                    assert_eq!(widen(1 << bit, within), within);
                    let gaps = (within << 1) | (within >> 1) | within;
                    assert_eq!(widen(1 << bit, gaps), gaps);
                    let far = !gaps | within;
                    assert_eq!(widen(1 << bit, far), within);
                }
            }
        }
    }

    #[test]
    fn runs_begin_where_they_say() {
        for word in words().into_iter().step_by(7) {
            for granules in 1..=64u32 {
                for place in 0..64u32 {
                    let is_run =
                        place + granules <= 64 && word >> place & ones(granules) == ones(granules);
                    assert_eq!(runs(word, granules) >> place & 1 == 1, is_run);
                }
            }
        }
    }

    #[test]
    fn lowest_runs_do_not_overlap() {
        for word in words().into_iter().step_by(5) {
            for granules in 1..=16 {
                let found = runs(word, granules);
                if found == 0 {
                    continue;
                }
                let begins = lowest_runs(word, found, granules, 8);
                let covered = spread(begins, granules);
                assert_eq!(covered & !word, 0);
                assert_eq!(covered.count_ones(), begins.count_ones() * granules);
                assert!(begins.count_ones() == 8 || runs(word & !covered, granules) == 0);
            }
        }
    }

    #[test]
    fn grades_are_the_longest_run() {
        for word in words() {
            assert_eq!(grade(word), slow_grade(word), "{word:b}");
        }
    }

    #[test]
    fn grades_grow_with_what_is_given_back() {
        for word in words() {
            for place in (0..64).filter(|place| word >> place & 1 == 1) {
                let before = word & !(1 << place);
                let expected = slow_grade(word);
                assert_eq!(grade_around(word, place).max(slow_grade(before)), expected);
            }
        }
    }

    #[test]
    fn blocks_are_found_by_their_starts() {
        let mut state = 3;
        for _ in 0..20_000 {
            // A region cut into blocks of 1 to 16 granules and holes.
            let (mut free, mut starts, mut place) = (0u64, 0u64, 0u32);
            let mut deferred = 0u64;
            let mut cut = Vec::new();
            while place < 64 {
                let granules = (random(&mut state) as u32 % 16 + 1).min(64 - place);
                if random(&mut state).is_multiple_of(3) {
                    free |= ones(granules) << place;
                } else {
                    starts |= 1 << place;
                    cut.push((place, granules));
                }
                place += granules;
            }
            let (mut marked, mut expected, mut last) = (0, 0, 0);
            for (place, granules) in cut {
                assert_eq!(length(free, starts, place), granules);
                last |= 1 << (place + granules - 1);
                // Every fifth is deferred.
                if random(&mut state).is_multiple_of(5) {
                    deferred |= 1 << place;
                }
                if random(&mut state).is_multiple_of(2) {
                    marked |= 1 << place;
                    expected |= ones(granules) << place;
                }
            }
            assert_eq!(blocks(free, starts, marked), expected);
            assert_eq!(ends(free | deferred, starts), last);
        }
    }
}
