//! The choice of keys.

use crate::random::{Random, mix};

/// Distribution of requests over keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// Every key as often as any other.
    Uniform,
    /// Zipf's law: the `n`th key of a shuffled order, with a probability proportional to
    /// `n^-exponent`.
    Zipf {
        /// At least 0; web traffic is about 0.99.
        exponent: f64,
    },
    /// A share of the keys gets a share of the requests.
    Hotspot {
        /// Share of the keys, above 0 and below 1.
        keys: f64,
        /// Share of the requests, from 0 to 1.
        requests: f64,
    },
    /// One key after the other, over and over.
    Sequential,
}

impl std::str::FromStr for Spread {
    type Err = String;

    /// Parses `uniform`, `zipf`, `zipf:0.99`, `hotspot:0.1:0.9` or `sequential`.
    fn from_str(text: &str) -> Result<Spread, String> {
        let help = || {
            format!(
                "'{text}' is no spread of keys; there are uniform, zipf:EXPONENT, \
                 hotspot:KEYS:REQUESTS (shares from 0 to 1) and sequential"
            )
        };
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        let numbers: Vec<f64> = words
            .map(|word| word.parse::<f64>().map_err(|_| help()))
            .collect::<Result<_, _>>()?;
        match (name, &numbers[..]) {
            ("uniform", []) => Ok(Spread::Uniform),
            ("sequential", []) => Ok(Spread::Sequential),
            ("zipf", []) => Ok(Spread::Zipf { exponent: 0.99 }),
            ("zipf", &[exponent]) if (0.0..=10.0).contains(&exponent) => {
                Ok(Spread::Zipf { exponent })
            }
            ("hotspot", &[keys, requests])
                if keys > 0.0 && keys < 1.0 && (0.0..=1.0).contains(&requests) =>
            {
                Ok(Spread::Hotspot { keys, requests })
            }
            _ => Err(help()),
        }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Spread::Uniform => f.write_str("uniform"),
            Spread::Sequential => f.write_str("sequential"),
            Spread::Zipf { exponent } => write!(f, "zipf:{exponent}"),
            Spread::Hotspot { keys, requests } => write!(f, "hotspot:{keys}:{requests}"),
        }
    }
}

/// Draws key numbers from a spread.
#[derive(Clone, Debug)]
pub struct Draw {
    space: u64,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Uniform,
    Zipf(Zipf),
    Hotspot { hot: u64, requests: f64 },
    Sequential { next: u64 },
}

impl Draw {
    /// Draws keys below `space`, which is at least 1. A sequential spread begins at `start`.
    pub fn new(spread: Spread, space: u64, start: u64) -> Draw {
        let form = match spread {
            Spread::Uniform => Form::Uniform,
            Spread::Zipf { exponent } => Form::Zipf(Zipf::new(space, exponent)),
            Spread::Hotspot { keys, requests } => Form::Hotspot {
                hot: ((space as f64 * keys) as u64).clamp(1, space),
                requests,
            },
            Spread::Sequential => Form::Sequential {
                next: start % space,
            },
        };
        Draw { space, form }
    }

    /// Draws the next key.
    pub fn next(&mut self, random: &mut Random) -> u64 {
        match &mut self.form {
            Form::Uniform => random.below(self.space),
            Form::Zipf(zipf) => shuffled(zipf.rank(random) - 1, self.space),
            Form::Hotspot { hot, requests } => {
                let (hot, cold) = (*hot, self.space - *hot);
                if cold == 0 || random.unit() < *requests {
                    shuffled(random.below(hot), self.space)
                } else {
                    shuffled(hot + random.below(cold), self.space)
                }
            }
            Form::Sequential { next } => {
                let key = *next;
                *next = (key + 1) % self.space;
                key
            }
        }
    }
}

/// Permutes the numbers below `space`, so that popular keys are not neighbours: mixes within the
/// next larger power of two and repeats while the result is outside.
fn shuffled(number: u64, space: u64) -> u64 {
    let bits = (u64::BITS - (space - 1).leading_zeros()).max(1);
    let mask = u64::MAX >> (u64::BITS - bits);
    let mut number = number;
    loop {
        // Each step has an inverse modulo the power of two.
        number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask;
        number ^= number >> bits.div_ceil(2);
        number = number.wrapping_mul(0xbf58_476d_1ce4_e5b9) & mask;
        if number < space {
            return number;
        }
    }
}

/// Draws ranks of Zipf's law in constant time, whatever the number of keys: rejection-inversion (W.
/// Hörmann, G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", 1996).
#[derive(Clone, Debug)]
struct Zipf {
    exponent: f64,
    low: f64,
    high: f64,
    shortcut: f64,
}

impl Zipf {
    fn new(space: u64, exponent: f64) -> Zipf {
        let area = |x: f64| area(x, exponent);
        Zipf {
            exponent,
            low: area(1.5) - 1.0,
            high: area(space as f64 + 0.5),
            shortcut: 2.0 - inverse_area(area(2.5) - 2f64.powf(-exponent), exponent),
        }
    }

    /// Draws a rank, from 1 to the number of keys.
    fn rank(&self, random: &mut Random) -> u64 {
        loop {
            let u = self.high + random.unit() * (self.low - self.high);
            let x = inverse_area(u, self.exponent);
            let rank = x.round().max(1.0);
            if rank - x <= self.shortcut
                || u >= area(rank + 0.5, self.exponent) - rank.powf(-self.exponent)
            {
                return (rank as u64).max(1);
            }
        }
    }
}

/// The integral of `x^-exponent`, 0 at 1.
fn area(x: f64, exponent: f64) -> f64 {
    let log = x.ln();
    let scaled = (1.0 - exponent) * log;
    // (e^scaled - 1) / scaled, which is 1 at 0.
    let ratio = if scaled.abs() > 1e-8 {
        scaled.exp_m1() / scaled
    } else {
        1.0 + scaled / 2.0
    };
    ratio * log
}

fn inverse_area(area: f64, exponent: f64) -> f64 {
    let scaled = (area * (1.0 - exponent)).max(-1.0);
    let ratio = if scaled.abs() > 1e-8 {
        scaled.ln_1p() / scaled
    } else {
        1.0 - scaled / 2.0
    };
    (ratio * area).exp()
}

/// The text of a key: its number in hexadecimal, filled with letters up to the size. Different
/// numbers give different texts, the same number always the same text.
#[derive(Clone, Debug)]
pub struct KeyText {
    prefix: Vec<u8>,
    digits: usize,
}

/// Longest key that the protocol allows.
pub const KEY_MAX: usize = 250;

impl KeyText {
    /// Texts for keys below `space`, beginning with `prefix`.
    pub fn new(prefix: &str, space: u64) -> KeyText {
        let bits = u64::BITS - (space.max(2) - 1).leading_zeros();
        KeyText {
            prefix: prefix.as_bytes().to_vec(),
            digits: bits.div_ceil(4) as usize,
        }
    }

    /// Smallest size at which texts differ.
    pub fn size_min(&self) -> usize {
        self.prefix.len() + self.digits
    }

    /// Appends the text of a key: `size` bytes, or more if that is too few.
    pub fn append(&self, key: u64, size: usize, to: &mut Vec<u8>) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        const FILLER: [u8; KEY_MAX] = [b'x'; KEY_MAX];
        to.extend_from_slice(&self.prefix);
        for digit in (0..self.digits).rev() {
            to.push(HEX[(key >> (4 * digit) & 15) as usize]);
        }
        let rest = size.saturating_sub(self.size_min()).min(KEY_MAX);
        to.extend_from_slice(&FILLER[..rest]);
    }
}

/// Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// Always the same.
    Fixed(usize),
    /// Uniform over a range, both ends included.
    Range(usize, usize),
    /// As in the cache of a large web site ("ETC" in B. Atikoglu et al., "Workload analysis of a
    /// large-scale key-value store", 2012): keys of about 30 bytes, values of some hundred with a
    /// long tail, here cut at 64 KiB.
    Etc,
}

impl std::str::FromStr for Sizes {
    type Err = String;

    /// Parses `64`, `16-250` or `etc`.
    fn from_str(text: &str) -> Result<Sizes, String> {
        let size = |text: &str| crate::units::bytes(text).map(|bytes| bytes as usize);
        if text == "etc" {
            return Ok(Sizes::Etc);
        }
        match text.split_once('-') {
            None => Ok(Sizes::Fixed(size(text)?)),
            Some((least, most)) => {
                let (least, most) = (size(least)?, size(most)?);
                if least > most {
                    return Err(format!("'{text}' has more before the line than after it"));
                }
                Ok(Sizes::Range(least, most))
            }
        }
    }
}

impl std::fmt::Display for Sizes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Sizes::Fixed(size) => write!(f, "{size}"),
            Sizes::Range(least, most) => write!(f, "{least}-{most}"),
            Sizes::Etc => f.write_str("etc"),
        }
    }
}

const ETC_VALUE_MAX: usize = 64 * 1024;

impl Sizes {
    /// Size of a key's text; always the same for a key.
    pub fn of_key(self, key: u64) -> usize {
        match self {
            Sizes::Fixed(size) => size,
            Sizes::Range(least, most) => {
                least + (mix(key ^ KEY_SALT) as usize) % (most - least + 1)
            }
            Sizes::Etc => {
                // A generalised extreme value of the source's parameters.
                let u = unit_of(mix(key ^ KEY_SALT));
                let size = 30.7984 + 8.20449 / 0.078688 * ((-u.ln()).powf(-0.078688) - 1.0);
                (size as usize).clamp(1, KEY_MAX)
            }
        }
    }

    /// Size of a value, from its key and version.
    pub fn of_value(self, key: u64, version: u64) -> usize {
        let number = mix(key.wrapping_mul(31).wrapping_add(version) ^ VALUE_SALT);
        match self {
            Sizes::Fixed(size) => size,
            Sizes::Range(least, most) => least + (number as usize) % (most - least + 1),
            Sizes::Etc => {
                // A generalised Pareto of the source's parameters.
                let u = unit_of(number);
                let size = 214.476 / 0.348238 * (u.powf(-0.348238) - 1.0);
                (size as usize).clamp(1, ETC_VALUE_MAX)
            }
        }
    }

    /// The smallest and the largest possible size.
    pub fn bounds(self) -> (usize, usize) {
        match self {
            Sizes::Fixed(size) => (size, size),
            Sizes::Range(least, most) => (least, most),
            Sizes::Etc => (1, ETC_VALUE_MAX),
        }
    }
}

const KEY_SALT: u64 = 0x6b65_7973;
const VALUE_SALT: u64 = 0x7661_6c75_6573;

/// A number above 0 and below 1.
fn unit_of(number: u64) -> f64 {
    ((number >> 12) as f64 + 0.5) / (1u64 << 52) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_follows_its_law() {
        for exponent in [0.0, 0.5, 0.99, 1.0, 1.5] {
            let (space, draws) = (1000u64, 200_000);
            let zipf = Zipf::new(space, exponent);
            let mut random = Random::new(7);
            let mut counts = vec![0f64; space as usize + 1];
            for _ in 0..draws {
                counts[zipf.rank(&mut random) as usize] += 1.0;
            }
            let weights: f64 = (1..=space).map(|n| (n as f64).powf(-exponent)).sum();
            for rank in [1usize, 2, 3, 10, 100] {
                let expected = draws as f64 * (rank as f64).powf(-exponent) / weights;
                let slack = 5.0 * expected.sqrt() + 1.0;
                assert!(
                    (counts[rank] - expected).abs() < slack,
                    "exponent {exponent}, rank {rank}: {} for {expected}",
                    counts[rank]
                );
            }
        }
    }

    #[test]
    fn shuffling_loses_no_key() {
        for space in [1u64, 2, 3, 100, 1000, 1024, 4097] {
            let mut seen = vec![false; space as usize];
            for number in 0..space {
                let key = shuffled(number, space) as usize;
                assert!(!seen[key], "{key} of {space} twice");
                seen[key] = true;
            }
        }
    }

    #[test]
    fn a_hotspot_gets_its_share_and_sequences_go_round() {
        let mut random = Random::new(3);
        let spread: Spread = "hotspot:0.1:0.9".parse().unwrap();
        let mut draw = Draw::new(spread, 1000, 0);
        let hot: std::collections::HashSet<u64> = (0..100).map(|i| shuffled(i, 1000)).collect();
        let hits = (0..10_000)
            .filter(|_| hot.contains(&draw.next(&mut random)))
            .count();
        assert!((8_800..9_200).contains(&hits), "{hits}");
        let mut draw = Draw::new(Spread::Sequential, 3, 2);
        let keys: Vec<_> = (0..4).map(|_| draw.next(&mut random)).collect();
        assert_eq!(keys, [2, 0, 1, 2]);
        assert!("hotspot:2:1".parse::<Spread>().is_err());
        assert!("zipf:x".parse::<Spread>().is_err());
    }

    #[test]
    fn key_texts_have_their_size_and_differ() {
        let text = KeyText::new("k:", 1000);
        assert_eq!(text.size_min(), 5);
        let mut seen = std::collections::HashSet::new();
        for key in 0..1000 {
            let mut bytes = Vec::new();
            text.append(key, 64, &mut bytes);
            assert_eq!(bytes.len(), 64);
            assert!(seen.insert(bytes));
        }
    }

    #[test]
    fn the_web_sites_sizes_have_its_means() {
        let mean = |size: &dyn Fn(u64) -> usize| {
            (0..100_000).map(|key| size(key) as f64).sum::<f64>() / 100_000.0
        };
        let keys = mean(&|key| Sizes::Etc.of_key(key));
        let values = mean(&|key| Sizes::Etc.of_value(key, 0));
        // The means of the laws are 36.4 and 329.
        assert!((34.0..39.0).contains(&keys), "{keys}");
        assert!((300.0..360.0).contains(&values), "{values}");
    }
}
