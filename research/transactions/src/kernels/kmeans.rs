//! Points grouped around centres.
//!
//! Threads find the centre nearest to each point and add the point to that centre's sums in a short
//! transaction. Fewer centres make more conflicts. Coordinates are integers, so sums do not depend
//! on the order of additions, and the result is that of one thread to the last bit.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Barrier, PoisonError, RwLock};

use hearth_stm::{Algorithm, Stm, Var};

use super::{Kernel, Random, Size};

/// Points that a thread takes at once.
const CHUNK: u64 = 3;
const LOOPS_MAX: usize = 500;
/// Fraction bits of a coordinate.
const SCALE: f64 = 65_536.0;

/// Number of centres.
#[derive(Clone, Copy)]
pub(super) enum Contention {
    Low,
    High,
}

pub(super) struct Parameters {
    pub(super) centres: usize,
    /// Share of the points that may change their centre in the last round.
    pub(super) threshold: f64,
    pub(super) points: usize,
    pub(super) dimensions: usize,
    /// Centres around which the points were made.
    pub(super) made: usize,
}

impl Parameters {
    pub(super) const fn of(size: Size, contention: Contention) -> Parameters {
        let centres = match contention {
            Contention::Low => 40,
            Contention::High => 15,
        };
        let points = match size {
            Size::Small => 128,
            Size::Published => 2048,
        };
        Parameters {
            centres,
            threshold: 0.05,
            points,
            dimensions: 16,
            made: 16,
        }
    }
}

pub(super) struct Kmeans<A: Algorithm> {
    stm: Stm<A>,
    parameters: Parameters,
    /// Coordinates, point by point.
    points: Vec<i64>,
    /// The centre of each point.
    member: Vec<AtomicU32>,
    centres: RwLock<Vec<f64>>,
    /// The centres before the first round.
    first: Vec<f64>,
    /// For each centre the number of its points and the sums of their coordinates.
    sums: Vec<Var<i64>>,
    /// The next point that nobody has.
    next: Var<u64>,
    /// Points that have changed their centre in this round.
    changed: Var<u64>,
    goes_on: AtomicBool,
    barrier: Barrier,
}

impl<A: Algorithm> Kmeans<A> {
    pub(super) fn new(
        stm: Stm<A>,
        size: Size,
        contention: Contention,
        threads: usize,
        seed: u64,
    ) -> Kmeans<A> {
        let parameters = Parameters::of(size, contention);
        let mut random = Random::new(seed);
        let Parameters {
            dimensions, made, ..
        } = parameters;
        let around: Vec<i64> = (0..made * dimensions)
            .map(|_| random.below(SCALE as usize) as i64)
            .collect();
        let mut points = Vec::new();
        for _ in 0..parameters.points {
            let centre = random.below(made) * dimensions;
            for coordinate in &around[centre..centre + dimensions] {
                points.push(coordinate + random.below(SCALE as usize / 8) as i64);
            }
        }
        let sums = parameters.centres * (dimensions + 1);
        let first = first_centres(&parameters, &points, seed);
        Kmeans {
            stm,
            centres: RwLock::new(first.clone()),
            first,
            member: (0..parameters.points)
                .map(|_| AtomicU32::new(u32::MAX))
                .collect(),
            points,
            sums: (0..sums).map(|_| Var::new(0)).collect(),
            next: Var::new(0),
            changed: Var::new(0),
            goes_on: AtomicBool::new(true),
            barrier: Barrier::new(threads),
            parameters,
        }
    }

    fn round(&self) {
        let centres = self.centres.read().unwrap_or_else(PoisonError::into_inner);
        let Parameters {
            dimensions, points, ..
        } = self.parameters;
        let mut changed = 0;
        loop {
            let begin = self
                .stm
                .atomically(|tx| tx.update(&self.next, |next| next + CHUNK));
            let begin = (begin - CHUNK) as usize;
            if begin >= points {
                break;
            }
            for number in begin..(begin + CHUNK as usize).min(points) {
                let point = &self.points[number * dimensions..(number + 1) * dimensions];
                let nearest = nearest(&centres, point);
                let before = self.member[number].swap(nearest as u32, Ordering::Relaxed);
                changed += u64::from(before != nearest as u32);
                let sums = &self.sums[nearest * (dimensions + 1)..][..dimensions + 1];
                self.stm.atomically(|tx| {
                    tx.update(&sums[0], |count| count + 1)?;
                    for (sum, coordinate) in sums[1..].iter().zip(point) {
                        tx.update(sum, |sum| sum + coordinate)?;
                    }
                    Ok(())
                });
            }
        }
        self.stm
            .atomically(|tx| tx.update(&self.changed, |sum| sum + changed));
    }

    /// Moves the centres, and begins a new round or ends the last.
    fn turn(&self) {
        let (sums, changed) = self.stm.atomically(|tx| {
            let mut sums = Vec::with_capacity(self.sums.len());
            for sum in &self.sums {
                sums.push(tx.read(sum)?);
                tx.write(sum, 0)?;
            }
            let changed = tx.read(&self.changed)?;
            tx.write(&self.changed, 0)?;
            tx.write(&self.next, 0)?;
            Ok((sums, changed))
        });
        let mut centres = self.centres.write().unwrap_or_else(PoisonError::into_inner);
        move_centres(&mut centres, &sums, self.parameters.dimensions);
        let goes_on = changed as f64 / self.parameters.points as f64 > self.parameters.threshold;
        self.goes_on.store(goes_on, Ordering::Relaxed);
    }
}

/// The first centres are points.
fn first_centres(parameters: &Parameters, points: &[i64], seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed ^ 0xce17);
    let mut centres = Vec::new();
    for _ in 0..parameters.centres {
        let begin = random.below(parameters.points) * parameters.dimensions;
        let point = &points[begin..begin + parameters.dimensions];
        centres.extend(point.iter().map(|&coordinate| coordinate as f64));
    }
    centres
}

fn nearest(centres: &[f64], point: &[i64]) -> usize {
    let mut best = (f64::INFINITY, 0);
    for (number, centre) in centres.chunks(point.len()).enumerate() {
        let pairs = centre.iter().zip(point);
        let distance = pairs
            .map(|(one, &other)| (one - other as f64).powi(2))
            .sum();
        if distance < best.0 {
            best = (distance, number);
        }
    }
    best.1
}

fn move_centres(centres: &mut [f64], sums: &[i64], dimensions: usize) {
    let each = sums.chunks(dimensions + 1);
    for (centre, sums) in centres.chunks_mut(dimensions).zip(each) {
        // A centre without points stays.
        if sums[0] > 0 {
            for (coordinate, &sum) in centre.iter_mut().zip(&sums[1..]) {
                *coordinate = sum as f64 / sums[0] as f64;
            }
        }
    }
}

impl<A: Algorithm> Kernel for Kmeans<A> {
    fn work(&self, _thread: usize) {
        for _ in 0..LOOPS_MAX {
            self.round();
            if self.barrier.wait().is_leader() {
                self.turn();
            }
            self.barrier.wait();
            if !self.goes_on.load(Ordering::Relaxed) {
                break;
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        let Parameters {
            dimensions,
            threshold,
            points,
            centres: number,
            ..
        } = self.parameters;
        let centres = self.centres.read().unwrap_or_else(PoisonError::into_inner);
        // The same by one thread, without transactions: from the same first centres.
        let mut own = self.first.clone();
        let mut member = vec![u32::MAX; points];
        for _ in 0..LOOPS_MAX {
            let mut sums = vec![0; number * (dimensions + 1)];
            let mut changed = 0;
            for (point, member) in self.points.chunks(dimensions).zip(&mut member) {
                let nearest = nearest(&own, point);
                changed += usize::from(*member != nearest as u32);
                *member = nearest as u32;
                let sums = &mut sums[nearest * (dimensions + 1)..][..dimensions + 1];
                sums[0] += 1;
                for (sum, coordinate) in sums[1..].iter_mut().zip(point) {
                    *sum += coordinate;
                }
            }
            move_centres(&mut own, &sums, dimensions);
            if changed as f64 / points as f64 <= threshold {
                break;
            }
        }
        let found: Vec<u32> = self
            .member
            .iter()
            .map(|it| it.load(Ordering::Relaxed))
            .collect();
        match found == member && *centres == own {
            true => Ok(()),
            false => Err("the centres are not those that one thread finds".to_owned()),
        }
    }
}
