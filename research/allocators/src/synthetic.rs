//! The source's two models of load, after Zorn and Grunwald, and a third that it mentions.
//!
//! A request has a size, a time since the request before, and a time after which its block is
//! released. *MEAN* draws each evenly from 0 to twice its mean (sizes from 1 on), *CDF* from a
//! histogram, evenly within a bin; *NORMAL* from means and standard deviations, which the source
//! describes and does not use. Pure: the same seed, the same requests.
//!
//! The source's times between requests are in cycles and its holding times in microseconds, and it
//! drives one generator with both. [`Units::AsPublished`] does so too, [`Units::Corrected`] turns
//! microseconds into cycles of its machine.

/// The source's cycles a microsecond.
pub const CYCLES_PER_US: f64 = 2010.0;

/// Unit of the holding times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// One unit for both times, as in the source.
    AsPublished,
    /// Holding times are microseconds.
    Corrected,
}

/// A quantity's distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Even from the first to the second.
    Even(f64, f64),
    /// Upper edges of bins, and how much lies up to them. Within a bin it is even. What is beyond
    /// the last edge counts as the last bin's.
    Histogram(&'static [(u32, f64)]),
    /// Mean and standard deviation; values below 0 become 0.
    Normal(f64, f64),
}

/// The source's pooled histogram of sizes, in bytes, cut off where its table is.
pub const SIZES: &[(u32, f64)] = &[
    (8, 0.0753),
    (16, 0.3719),
    (32, 0.4448),
    (64, 0.8900),
    (128, 0.9450),
    (256, 0.9694),
    (512, 0.9853),
    (1 << 10, 0.9904),
    (2 << 10, 1.0),
];

/// The same of times between requests, in cycles.
pub const BETWEEN: &[(u32, f64)] = &[
    (256, 0.0),
    (512, 0.0470),
    (1 << 10, 0.6408),
    (2 << 10, 0.7481),
    (4 << 10, 0.9096),
    (8 << 10, 0.9549),
    (16 << 10, 0.9757),
    (32 << 10, 0.9911),
    (64 << 10, 1.0),
];

/// The same of holding times, in microseconds.
pub const HOLDING: &[(u32, f64)] = &[
    (8, 0.4196),
    (16, 0.4875),
    (32, 0.5532),
    (64, 0.6150),
    (128, 0.6694),
    (256, 0.7192),
    (512, 0.7653),
    (1 << 10, 0.8060),
    (2 << 10, 0.8348),
    (4 << 10, 0.8696),
    (8 << 10, 0.9039),
    (16 << 10, 0.9284),
    (32 << 10, 0.9492),
    (64 << 10, 0.9562),
    (128 << 10, 0.9657),
    (256 << 10, 0.9777),
    (512 << 10, 0.9941),
    (1 << 20, 0.9978),
    (2 << 20, 1.0),
];

/// Distributions that requests are drawn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// Sizes, in bytes.
    pub size: Distribution,
    /// Times between requests, in cycles.
    pub between: Distribution,
    /// Holding times, in microseconds.
    pub holding: Distribution,
}

impl Model {
    /// The first model, of means of size, time between and holding time.
    #[must_use]
    pub const fn mean(size: f64, between: f64, holding: f64) -> Model {
        Model {
            size: Distribution::Even(1.0, 2.0 * size),
            between: Distribution::Even(0.0, 2.0 * between),
            holding: Distribution::Even(0.0, 2.0 * holding),
        }
    }

    /// The first model with the parameters that the source runs it with.
    #[must_use]
    pub const fn published_mean() -> Model {
        Model::mean(55.0, 80_338.0, 146_824.0)
    }

    /// The second model with the parameters that the source runs it with.
    #[must_use]
    pub const fn published_cdf() -> Model {
        Model {
            size: Distribution::Histogram(SIZES),
            between: Distribution::Histogram(BETWEEN),
            holding: Distribution::Histogram(HOLDING),
        }
    }

    /// The third, of means and standard deviations in the same order.
    #[must_use]
    pub const fn normal(size: (f64, f64), between: (f64, f64), holding: (f64, f64)) -> Model {
        Model {
            size: Distribution::Normal(size.0, size.1),
            between: Distribution::Normal(between.0, between.1),
            holding: Distribution::Normal(holding.0, holding.1),
        }
    }
}

/// Random numbers, by Marsaglia's xorshift64*.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Random {
        // Seeds are small and alike; the start of the sequence is neither, and not 0.
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// From 0 on, below 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// From 0 on, below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.bits()) * end as u128) >> 64) as usize
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high.saturating_sub(low) + 1)
    }
}

impl Distribution {
    /// A value.
    pub fn draw(&self, random: &mut Random) -> f64 {
        match *self {
            Distribution::Even(low, high) => low + (high - low) * random.unit(),
            Distribution::Histogram(bins) => {
                let drawn = random.unit();
                let last = bins.len().saturating_sub(1);
                let bin = bins.iter().position(|&(_, up_to)| drawn < up_to);
                let bin = bin.unwrap_or(last);
                let low = bin
                    .checked_sub(1)
                    .map_or(0.0, |before| f64::from(bins[before].0));
                // Up: a bin has its upper edge, and not that of the bin before.
                (low + (f64::from(bins[bin].0) - low) * random.unit()).ceil()
            }
            Distribution::Normal(mean, deviation) => {
                // Box and Muller's; 1 − u is not 0.
                let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
                let angle = std::f64::consts::TAU * random.unit();
                (mean + deviation * radius * angle.cos()).max(0.0)
            }
        }
    }
}

/// A request, in the time that the model has.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Request {
    /// Bytes, 1 or more.
    pub bytes: u32,
    /// Time at which it comes.
    pub begin: f64,
    /// Time at which its block is released.
    pub end: f64,
}

/// Fills a plan with requests, in the order in which they come.
pub fn plan(model: &Model, units: Units, random: &mut Random, requests: &mut [Request]) {
    let mut now = 0.0;
    for request in requests {
        let bytes = model.size.draw(random).round().max(1.0) as u32;
        let holding = model.holding.draw(random)
            * match units {
                Units::AsPublished => 1.0,
                Units::Corrected => CYCLES_PER_US,
            };
        now += model.between.draw(random);
        *request = Request {
            bytes,
            begin: now,
            end: now + holding,
        };
    }
}

/// The next event: a request's block comes or goes, by the request's place in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// Its block is asked for.
    Begins(usize),
    /// Its block is released.
    Ends(usize),
}

/// Goes through a plan in the order of time. `order` is room for a number for each request.
///
/// Panics if there is room for less.
pub fn walk(requests: &[Request], order: &mut [u32], mut what: impl FnMut(Happening)) {
    let order = &mut order[..requests.len()];
    for (at, place) in order.iter_mut().enumerate() {
        *place = at as u32;
    }
    order.sort_unstable_by(|&a, &b| {
        let (a, b) = (a as usize, b as usize);
        requests[a].end.total_cmp(&requests[b].end).then(a.cmp(&b))
    });
    let mut ends = order.iter().map(|&at| at as usize).peekable();
    for (at, request) in requests.iter().enumerate() {
        while let Some(ended) = ends.next_if(|&ended| requests[ended].end < request.begin) {
            what(Happening::Ends(ended));
        }
        what(Happening::Begins(at));
    }
    ends.for_each(|ended| what(Happening::Ends(ended)));
}

/// The most blocks that are there at a time.
#[must_use]
pub fn peak(requests: &[Request]) -> usize {
    let mut order = vec![0; requests.len()];
    let (mut live, mut most) = (0usize, 0usize);
    walk(requests, &mut order, |happening| match happening {
        Happening::Begins(_) => {
            live += 1;
            most = most.max(live);
        }
        Happening::Ends(_) => live -= 1,
    });
    most
}

#[cfg(test)]
mod tests {
    use super::{Happening, Model, Random, Request, Units, peak, plan, walk};

    fn planned(model: &Model, units: Units, count: usize) -> Vec<Request> {
        let mut requests = vec![Request::default(); count];
        plan(model, units, &mut Random::new(1), &mut requests);
        requests
    }

    #[test]
    fn each_block_goes_once_and_after_it_came() {
        let requests = planned(&Model::published_cdf(), Units::Corrected, 5_000);
        let mut state = vec![0; requests.len()];
        let mut order = vec![0; requests.len()];
        walk(&requests, &mut order, |happening| match happening {
            Happening::Begins(at) => state[at] += 1,
            Happening::Ends(at) => {
                assert_eq!(state[at], 1);
                state[at] += 1;
            }
        });
        assert!(state.iter().all(|&seen| seen == 2));
    }

    #[test]
    fn means_are_as_asked_for() {
        let requests = planned(&Model::published_mean(), Units::AsPublished, 100_000);
        let mean =
            |of: fn(&Request) -> f64| requests.iter().map(of).sum::<f64>() / requests.len() as f64;
        assert!((mean(|r| f64::from(r.bytes)) - 55.5).abs() < 0.5);
        assert!((mean(|r| r.end - r.begin) / 146_824.0 - 1.0).abs() < 0.01);
        assert!((requests[99_999].begin / 100_000.0 / 80_338.0 - 1.0).abs() < 0.01);
    }

    /// The source observes that there are never more than 37 blocks, from the means of its gawk's
    /// third set: only if both times are of one unit.
    #[test]
    fn as_published_there_are_about_37_blocks() {
        let model = Model::mean(49.29, 2631.0, 48_037.0);
        for seed in 1..=10 {
            let mut requests = vec![Request::default(); 100_000];
            plan(
                &model,
                Units::AsPublished,
                &mut Random::new(seed),
                &mut requests,
            );
            assert!((33..=41).contains(&peak(&requests)), "{}", peak(&requests));
        }
        assert!(peak(&planned(&model, Units::Corrected, 100_000)) > 30_000);
    }

    #[test]
    fn the_histograms_are_drawn_from_as_they_are() {
        let requests = planned(&Model::published_cdf(), Units::AsPublished, 200_000);
        for &(edge, up_to) in super::SIZES {
            let below = requests.iter().filter(|r| r.bytes <= edge).count();
            let share = below as f64 / requests.len() as f64;
            assert!((share - up_to).abs() < 0.01, "{edge}: {share} for {up_to}");
        }
    }
}
