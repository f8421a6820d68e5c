//! Paths through a grid of several layers, by Lee's algorithm.
//!
//! A transaction reads the whole grid, spreads a wave from one point until it is at another, and
//! marks the way back. It is long, its sets are large, and it conflicts with every other. The
//! source of the description lets the grid's reads go early; here they count.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use hearth_stm::{Algorithm, Halt, Queue, Stm, Tx, Var};

use super::{Kernel, Random, Size};

pub(super) struct Parameters {
    /// Cells along each of the three axes.
    pub(super) sides: [usize; 3],
    pub(super) paths: usize,
}

impl Parameters {
    pub(super) const fn of(size: Size) -> Parameters {
        match size {
            Size::Small => Parameters {
                sides: [12, 12, 2],
                paths: 10,
            },
            Size::Published => Parameters {
                sides: [32, 32, 3],
                paths: 96,
            },
        }
    }
}

const FREE: u32 = 0;
/// An end of a path, before the path is there.
const END: u32 = u32::MAX;

pub(super) struct Labyrinth<A: Algorithm> {
    stm: Stm<A>,
    sides: [usize; 3],
    /// The number of the path through each cell, plus 1.
    grid: Vec<Var<u32>>,
    ends: Vec<[usize; 2]>,
    work: Queue<u32>,
    /// Cells of each path; none if there is no way.
    paths: Mutex<Vec<(u32, Option<Vec<usize>>)>>,
}

impl<A: Algorithm> Labyrinth<A> {
    pub(super) fn new(stm: Stm<A>, size: Size, seed: u64) -> Labyrinth<A> {
        let Parameters { sides, paths } = Parameters::of(size);
        let cells = sides.iter().product();
        let mut places: Vec<usize> = (0..cells).collect();
        Random::new(seed).shuffle(&mut places);
        let ends: Vec<[usize; 2]> = places[..2 * paths].as_chunks().0.to_vec();
        let mut grid: Vec<Var<u32>> = (0..cells).map(|_| Var::new(FREE)).collect();
        for &end in ends.iter().flatten() {
            grid[end].set_mut(END);
        }
        let work = Queue::new();
        for path in 0..paths as u32 {
            stm.atomically(|tx| work.push(tx, path));
        }
        Labyrinth {
            stm,
            sides,
            grid,
            ends,
            work,
            paths: Mutex::default(),
        }
    }

    fn route<'v>(&'v self, tx: &mut Tx<'v, A>, path: u32) -> Result<Option<Vec<usize>>, Halt> {
        let cells = tx.fold(&self.grid, Vec::new(), |mut cells, cell| {
            cells.push(cell);
            cells
        })?;
        let found = way(self.sides, &cells, self.ends[path as usize]);
        for &cell in found.iter().flatten() {
            tx.write(&self.grid[cell], path + 1)?;
        }
        Ok(found)
    }
}

/// Cells beside a cell.
fn neighbours(sides: [usize; 3], cell: usize) -> impl Iterator<Item = usize> {
    let strides = [1, sides[0], sides[0] * sides[1]];
    (0..3).flat_map(move |axis| {
        let at = cell / strides[axis] % sides[axis];
        let below = (at > 0).then(|| cell - strides[axis]);
        let above = (at + 1 < sides[axis]).then(|| cell + strides[axis]);
        below.into_iter().chain(above)
    })
}

/// A shortest way between two cells through free ones.
fn way(sides: [usize; 3], cells: &[u32], [from, to]: [usize; 2]) -> Option<Vec<usize>> {
    // The cell from which the wave came.
    let mut came: Vec<usize> = vec![usize::MAX; cells.len()];
    came[from] = from;
    let mut front = VecDeque::from([from]);
    while let Some(cell) = front.pop_front() {
        if cell == to {
            break;
        }
        for next in neighbours(sides, cell) {
            if came[next] == usize::MAX && (cells[next] == FREE || next == to) {
                came[next] = cell;
                front.push_back(next);
            }
        }
    }
    if came[to] == usize::MAX {
        return None;
    }
    let mut way = vec![to];
    let mut at = to;
    while at != from {
        at = came[at];
        way.push(at);
    }
    Some(way)
}

impl<A: Algorithm> Kernel for Labyrinth<A> {
    fn work(&self, _thread: usize) {
        let mut own = Vec::new();
        while let Some(path) = self.stm.atomically(|tx| self.work.pop(tx)) {
            own.push((path, self.stm.atomically(|tx| self.route(tx, path))));
        }
        let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        paths.extend(own);
    }

    fn check(&self) -> Result<(), String> {
        let read = |var: &Var<u32>| self.stm.atomically(|tx| tx.read(var));
        let cells: Vec<u32> = self.grid.iter().map(read).collect();
        let paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        if paths.len() != self.ends.len() {
            return Err(format!("{} of {} were tried", paths.len(), self.ends.len()));
        }
        let mut marked = 0;
        for (path, found) in paths.iter() {
            let ends = self.ends[*path as usize];
            let Some(found) = found else {
                // Paths are never taken away, so there is none now either.
                if way(self.sides, &cells, ends).is_some() {
                    return Err(format!("path {path} was not found, and there is one"));
                }
                continue;
            };
            marked += found.len();
            let is_joined =
                |pair: &[usize]| neighbours(self.sides, pair[0]).any(|it| it == pair[1]);
            let is_whole = found.first() == Some(&ends[1])
                && found.last() == Some(&ends[0])
                && found.windows(2).all(is_joined)
                && found.iter().all(|&cell| cells[cell] == path + 1);
            if !is_whole {
                return Err(format!("path {path} is broken"));
            }
        }
        let taken = cells.iter().filter(|&&cell| cell != FREE && cell != END);
        match taken.count() == marked {
            true => Ok(()),
            false => Err("the grid has marks of no path".to_owned()),
        }
    }
}
