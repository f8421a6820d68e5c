//! A mesh of triangles refined where they are too large.
//!
//! After the place of Yada among the published kernels, with a simpler rule than Ruppert's: a
//! triangle whose longest edge is too long for its place is cut through the middle of that edge,
//! and so is the neighbour there; if the neighbour has a longer edge, that goes first. A
//! transaction takes a triangle from a queue, walks over longer and longer edges to the last, cuts
//! the two triangles there, and queues what is still too large. What it reads and writes is the
//! cavity.

use std::sync::{Mutex, PoisonError};

use hearth_stm::{Algorithm, Halt, Queue, Slab, Stm, Tx};

use super::{Kernel, Random, Size};

/// Side of the square that is meshed.
const SIDE: i64 = 1 << 24;
/// Corners of the first mesh lie on multiples of this, so that halves of edges are whole numbers
/// many times over.
const GRAIN: i64 = 1 << 12;

pub(super) struct Parameters {
    /// Cells of the first mesh along a side, of two triangles each.
    pub(super) cells: usize,
    /// Shortest limit for an edge, as a part of the side.
    pub(super) finest: i64,
}

impl Parameters {
    pub(super) const fn of(size: Size) -> Parameters {
        match size {
            Size::Small => Parameters {
                cells: 6,
                finest: 40,
            },
            // 648 triangles, where the published mesh has 633 elements.
            Size::Published => Parameters {
                cells: 18,
                finest: 200,
            },
        }
    }
}

// Words of a vertex in its slab.
const X: usize = 1;
const Y: usize = 2;
/// No triangle: the border.
const NONE: u32 = 0;

/// A triangle: corners against the clock's sense, and the neighbour opposite of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Triangle {
    corners: [u32; 3],
    neighbours: [u32; 3],
}

/// An edge's length, squared, and its corners: no two edges are alike.
type Edge = (i64, u32, u32);

pub(super) struct Yada<A: Algorithm> {
    stm: Stm<A>,
    vertices: Slab,
    /// Six numbers in words 1 to 3.
    triangles: Slab,
    finest: i64,
    work: Queue<u32>,
    all: Mutex<Vec<u32>>,
}

impl<A: Algorithm> Yada<A> {
    pub(super) fn new(stm: Stm<A>, size: Size, seed: u64) -> Yada<A> {
        let Parameters { cells, finest } = Parameters::of(size);
        let mut random = Random::new(seed);
        let yada = Yada {
            stm,
            vertices: Slab::with_capacity(16 * cells * cells),
            triangles: Slab::with_capacity(32 * cells * cells),
            finest,
            work: Queue::new(),
            all: Mutex::default(),
        };
        let all = yada.first_mesh(cells, &mut random);
        for &triangle in &all {
            yada.stm.atomically(|tx| yada.queue_if_large(tx, triangle));
        }
        *yada.all.lock().unwrap_or_else(PoisonError::into_inner) = all;
        yada
    }

    /// A grid whose inner corners are pushed about.
    fn first_mesh(&self, cells: usize, random: &mut Random) -> Vec<u32> {
        let step = SIDE / cells as i64 / GRAIN * GRAIN;
        let place = |number: usize| match number {
            0 => (0, 0),
            _ if number == cells => (SIDE, 0),
            _ => (number as i64 * step, step / GRAIN / 4),
        };
        let mut corners = Vec::new();
        for row in 0..=cells {
            for column in 0..=cells {
                let mut push = |(at, by): (i64, i64)| match by {
                    0 => at,
                    by => at + (random.below(2 * by as usize) as i64 - by) * GRAIN,
                };
                let (x, y) = (push(place(column)), push(place(row)));
                corners.push(self.stm.atomically(|tx| self.new_vertex(tx, x, y)));
            }
        }
        let all: Vec<u32> = (0..2 * cells * cells)
            .map(|_| self.stm.atomically(|tx| self.triangles.allocate(tx)))
            .collect();
        // Triangles 2c and 2c + 1 of a cell lie below and above its diagonal.
        let at = |row: i64, column: i64, upper: usize| {
            let is_in = |number: i64| (0..cells as i64).contains(&number);
            match is_in(row) && is_in(column) {
                true => all[2 * (row as usize * cells + column as usize) + upper],
                false => NONE,
            }
        };
        for row in 0..cells as i64 {
            for column in 0..cells as i64 {
                let corner = |up: i64, right: i64| {
                    corners[((row + up) * (cells as i64 + 1) + column + right) as usize]
                };
                let (lower, upper) = (at(row, column, 0), at(row, column, 1));
                let below = Triangle {
                    corners: [corner(0, 0), corner(0, 1), corner(1, 1)],
                    neighbours: [at(row, column + 1, 1), upper, at(row - 1, column, 1)],
                };
                let above = Triangle {
                    corners: [corner(0, 0), corner(1, 1), corner(1, 0)],
                    neighbours: [at(row + 1, column, 0), at(row, column - 1, 0), lower],
                };
                self.stm.atomically(|tx| {
                    self.put(tx, lower, below)?;
                    self.put(tx, upper, above)
                });
            }
        }
        all
    }

    fn new_vertex<'v>(&'v self, tx: &mut Tx<'v, A>, x: i64, y: i64) -> Result<u32, Halt> {
        let vertex = self.vertices.allocate(tx)?;
        tx.write(self.vertices.word(vertex, X), x as u64)?;
        tx.write(self.vertices.word(vertex, Y), y as u64)?;
        Ok(vertex)
    }

    fn vertex<'v>(&'v self, tx: &mut Tx<'v, A>, vertex: u32) -> Result<(i64, i64), Halt> {
        let words = [X, Y].map(|word| self.vertices.word(vertex, word));
        let (x, y) = tx.read_pair(words[0], words[1])?;
        Ok((x as i64, y as i64))
    }

    fn put<'v>(&'v self, tx: &mut Tx<'v, A>, at: u32, of: Triangle) -> Result<(), Halt> {
        let numbers = [of.corners, of.neighbours].concat();
        for (word, pair) in numbers.chunks(2).enumerate() {
            let value = u64::from(pair[0]) | u64::from(pair[1]) << 32;
            tx.write(self.triangles.word(at, word + 1), value)?;
        }
        Ok(())
    }

    fn triangle<'v>(&'v self, tx: &mut Tx<'v, A>, at: u32) -> Result<Triangle, Halt> {
        let mut numbers = [0; 6];
        for word in 0..3 {
            let value = tx.read(self.triangles.word(at, word + 1))?;
            (numbers[2 * word], numbers[2 * word + 1]) = (value as u32, (value >> 32) as u32);
        }
        let [a, b, c, one, two, three] = numbers;
        Ok(Triangle {
            corners: [a, b, c],
            neighbours: [one, two, three],
        })
    }

    /// The longest edge, and the corner opposite of it.
    fn longest<'v>(&'v self, tx: &mut Tx<'v, A>, of: Triangle) -> Result<(Edge, usize), Halt> {
        let mut places = [(0, 0); 3];
        for (place, corner) in places.iter_mut().zip(of.corners) {
            *place = self.vertex(tx, corner)?;
        }
        let edge = |opposite: usize| {
            let (one, other) = ((opposite + 1) % 3, (opposite + 2) % 3);
            let (dx, dy) = (
                places[one].0 - places[other].0,
                places[one].1 - places[other].1,
            );
            let corners = (of.corners[one], of.corners[other]);
            let ends = (corners.0.min(corners.1), corners.0.max(corners.1));
            ((dx * dx + dy * dy, ends.0, ends.1), opposite)
        };
        Ok([edge(0), edge(1), edge(2)]
            .into_iter()
            .max()
            .unwrap_or(edge(0)))
    }

    /// Whether a triangle's longest edge is too long for where it is: edges may be a tenth of the
    /// distance from the middle, and not shorter than the finest.
    fn is_large<'v>(&'v self, tx: &mut Tx<'v, A>, at: u32) -> Result<bool, Halt> {
        let triangle = self.triangle(tx, at)?;
        let ((squared, one, other), _) = self.longest(tx, triangle)?;
        let (one, other) = (self.vertex(tx, one)?, self.vertex(tx, other)?);
        let (dx, dy) = ((one.0 + other.0 - SIDE) / 2, (one.1 + other.1 - SIDE) / 2);
        let finest = SIDE / self.finest;
        Ok(squared > (finest * finest).max((dx * dx + dy * dy) / 100))
    }

    fn queue_if_large<'v>(&'v self, tx: &mut Tx<'v, A>, at: u32) -> Result<(), Halt> {
        match self.is_large(tx, at)? {
            true => self.work.push(tx, at),
            false => Ok(()),
        }
    }

    /// Cuts what is in the way of a triangle's refinement, and gives the new triangles.
    fn refine<'v>(&'v self, tx: &mut Tx<'v, A>, at: u32) -> Result<Vec<u32>, Halt> {
        if !self.is_large(tx, at)? {
            return Ok(Vec::new());
        }
        let mut here = at;
        loop {
            let triangle = self.triangle(tx, here)?;
            let (edge, opposite) = self.longest(tx, triangle)?;
            let other = triangle.neighbours[opposite];
            if other != NONE {
                let neighbour = self.triangle(tx, other)?;
                if self.longest(tx, neighbour)?.0 != edge {
                    here = other;
                    continue;
                }
            }
            let new = self.cut(tx, here, opposite, other)?;
            let mut touched = vec![here];
            touched.extend(new.iter().copied().chain((other != NONE).then_some(other)));
            if !touched.contains(&at) {
                touched.push(at);
            }
            for triangle in touched {
                self.queue_if_large(tx, triangle)?;
            }
            return Ok(new);
        }
    }

    /// Cuts a triangle through its edge opposite of a corner, and the neighbour there.
    fn cut<'v>(
        &'v self,
        tx: &mut Tx<'v, A>,
        here: u32,
        opposite: usize,
        other: u32,
    ) -> Result<Vec<u32>, Halt> {
        let triangle = self.triangle(tx, here)?;
        let ends = [1, 2].map(|step| triangle.corners[(opposite + step) % 3]);
        let (one, two) = (self.vertex(tx, ends[0])?, self.vertex(tx, ends[1])?);
        let middle = self.new_vertex(tx, (one.0 + two.0) / 2, (one.1 + two.1) / 2)?;
        let new_here = self.triangles.allocate(tx)?;
        if other == NONE {
            self.halve(tx, [here, new_here], opposite, middle, [NONE, NONE])?;
            return Ok(vec![new_here]);
        }
        let neighbour = self.triangle(tx, other)?;
        let back = (0..3).find(|&corner| neighbour.neighbours[corner] == here);
        let back = back.unwrap_or(0);
        let new_other = self.triangles.allocate(tx)?;
        // The halves at the first end are `here` and the neighbour's second half.
        self.halve(tx, [here, new_here], opposite, middle, [new_other, other])?;
        self.halve(tx, [other, new_other], back, middle, [new_here, here])?;
        Ok(vec![new_here, new_other])
    }

    /// Makes two triangles of one: the first has the first end of the edge. `across` are their
    /// neighbours over its halves.
    fn halve<'v>(
        &'v self,
        tx: &mut Tx<'v, A>,
        [first, second]: [u32; 2],
        opposite: usize,
        middle: u32,
        across: [u32; 2],
    ) -> Result<(), Halt> {
        let old = self.triangle(tx, first)?;
        let corner = |step: usize| old.corners[(opposite + step) % 3];
        let neighbour = |step: usize| old.neighbours[(opposite + step) % 3];
        let (top, one, two) = (corner(0), corner(1), corner(2));
        let (beside_two, beside_one) = (neighbour(1), neighbour(2));
        let halves = [
            Triangle {
                corners: [top, one, middle],
                neighbours: [across[0], second, beside_one],
            },
            Triangle {
                corners: [top, middle, two],
                neighbours: [across[1], beside_two, first],
            },
        ];
        self.put(tx, first, halves[0])?;
        self.put(tx, second, halves[1])?;
        if beside_two != NONE {
            let mut outer = self.triangle(tx, beside_two)?;
            for neighbour in &mut outer.neighbours {
                if *neighbour == first {
                    *neighbour = second;
                }
            }
            self.put(tx, beside_two, outer)?;
        }
        Ok(())
    }

    /// Doubled area of a triangle; negative if its corners go the wrong way round.
    fn area(places: [(i64, i64); 3]) -> i64 {
        let [a, b, c] = places;
        (b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0)
    }
}

impl<A: Algorithm> Kernel for Yada<A> {
    fn work(&self, _thread: usize) {
        let mut own = Vec::new();
        while let Some(at) = self.stm.atomically(|tx| self.work.pop(tx)) {
            own.extend(self.stm.atomically(|tx| self.refine(tx, at)));
        }
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(own);
    }

    fn check(&self) -> Result<(), String> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let mut area = 0;
        for &at in all.iter() {
            let (triangle, places, is_large) = self.stm.atomically(|tx| {
                let triangle = self.triangle(tx, at)?;
                let mut places = [(0, 0); 3];
                for (place, corner) in places.iter_mut().zip(triangle.corners) {
                    *place = self.vertex(tx, corner)?;
                }
                Ok((triangle, places, self.is_large(tx, at)?))
            });
            if is_large {
                return Err(format!("triangle {at} is too large"));
            }
            let own = Self::area(places);
            if own <= 0 {
                return Err(format!("triangle {at} is turned over"));
            }
            area += own;
            for (opposite, &other) in triangle.neighbours.iter().enumerate() {
                let ends = [1, 2].map(|step| triangle.corners[(opposite + step) % 3]);
                let neighbour = self.stm.atomically(|tx| self.triangle(tx, other));
                let is_joined = other == NONE
                    || neighbour.neighbours.contains(&at)
                        && ends.iter().all(|end| neighbour.corners.contains(end));
                if !is_joined {
                    return Err(format!("triangles {at} and {other} do not fit"));
                }
            }
        }
        match area == 2 * SIDE * SIDE {
            true => Ok(()),
            false => Err(format!("the mesh has an area of {area}")),
        }
    }
}
