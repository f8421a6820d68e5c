//! A small model of a fair scheduler, for machines that are not at hand. Its figures are of the
//! model, and say nothing of any kernel.
//!
//! Time goes in ticks. Each core has a queue whose threads take turns, a slice of [`SLICE`] ticks
//! each. Others' threads were there first, one a core as far as cores go; those of the program come
//! to the shortest queues. A core with nothing to do takes a waiting thread from the longest queue,
//! if threads may move; that is all that is here of Linux's balancing. A section's work is divided
//! at its begin (static), or in grains that threads take one by one (stealing).

use std::collections::VecDeque;

/// Ticks of a section's work altogether. A 32nd part of it still has a dozen slices.
const WORK: u32 = 16_000;
/// Ticks of a turn.
const SLICE: u32 = 40;
/// Ticks of a grain of stolen work.
const GRAIN: u32 = 20;

/// A section on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scene {
    /// Cores, one at least.
    pub cores: usize,
    /// Others' threads, always ready.
    pub foreign: usize,
    /// The section's threads, one at least.
    pub threads: usize,
    /// Whether work moves between threads.
    pub is_stolen: bool,
    /// Whether threads move to cores with nothing to do.
    pub moves: bool,
}

/// Outcome of a section.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Its time, where the same work takes one thread alone 1.
    pub time: f64,
    /// CPU time that others got meanwhile, of what they have without the section.
    pub others: f64,
}

/// A thread: of others, or the section's with the ticks that it has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thread {
    Other,
    Own(u32),
}

struct Core {
    queue: VecDeque<Thread>,
    turn: u32,
}

/// Runs a section once.
#[must_use]
pub fn run(scene: Scene) -> Outcome {
    let cores = scene.cores.max(1);
    let mut machine: Vec<Core> = (0..cores)
        .map(|_| Core {
            queue: VecDeque::new(),
            turn: 0,
        })
        .collect();
    for at in 0..scene.foreign {
        machine[at % cores].queue.push_back(Thread::Other);
    }
    let threads = scene.threads.max(1) as u32;
    let mut pool = if scene.is_stolen { WORK } else { 0 };
    let mut left = 0;
    for thread in 0..threads {
        let part = WORK * (thread + 1) / threads - WORK * thread / threads;
        let own = match scene.is_stolen {
            true => take(&mut pool),
            false => part,
        };
        if own > 0 {
            left += 1;
            if let Some(core) = machine.iter_mut().min_by_key(|core| core.queue.len()) {
                core.queue.push_back(Thread::Own(own));
            }
        }
    }
    let (mut ticks, mut of_others) = (0u32, 0u32);
    while left > 0 {
        if scene.moves {
            balance(&mut machine);
        }
        for core in &mut machine {
            match core.queue.front_mut() {
                None => continue,
                Some(Thread::Other) => of_others += 1,
                Some(Thread::Own(rest)) => {
                    *rest -= 1;
                    if *rest == 0 {
                        *rest = take(&mut pool);
                    }
                }
            }
            core.turn += 1;
            let is_done = core.queue.front() == Some(&Thread::Own(0));
            if is_done {
                core.queue.pop_front();
                left -= 1;
            }
            if is_done || core.turn >= SLICE {
                core.turn = 0;
                if !is_done {
                    core.queue.rotate_left(1);
                }
            }
        }
        ticks += 1;
    }
    let alone = f64::from(ticks) * scene.foreign.min(cores) as f64;
    Outcome {
        time: f64::from(ticks) / f64::from(WORK),
        others: match scene.foreign {
            0 => 1.0,
            _ => f64::from(of_others) / alone,
        },
    }
}

fn take(pool: &mut u32) -> u32 {
    let grain = GRAIN.min(*pool);
    *pool -= grain;
    grain
}

/// Cores with nothing to do take the thread that has waited longest in the longest queue.
fn balance(machine: &mut [Core]) {
    for at in 0..machine.len() {
        if !machine[at].queue.is_empty() {
            continue;
        }
        let longest = (0..machine.len()).max_by_key(|from| machine[*from].queue.len());
        let Some(from) = longest.filter(|from| machine[*from].queue.len() > 1) else {
            return;
        };
        if let Some(thread) = machine[from].queue.remove(1) {
            machine[at].queue.push_back(thread);
            machine[at].turn = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use hearth_published::oversubscription::{bounds, share};

    use super::*;

    fn time(threads: usize, foreign: usize, is_stolen: bool, moves: bool) -> f64 {
        let scene = Scene {
            cores: 8,
            foreign,
            threads,
            is_stolen,
            moves,
        };
        run(scene).time
    }

    #[test]
    fn times_are_between_the_papers_bounds() {
        for foreign in [0, 1, 4, 7] {
            for threads in 1..=32 {
                let (low, high) = bounds(threads as u32, foreign as u32, 8);
                // A slice more or less.
                let slack = f64::from(3 * SLICE) / f64::from(WORK);
                for moves in [false, true] {
                    let time = time(threads, foreign, false, moves);
                    let is_between = (low - slack..=high + slack).contains(&time);
                    assert!(
                        is_between,
                        "{threads} beside {foreign}: {low} {time} {high}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_first_jump_shows_and_later_ones_are_smaller() {
        for (foreign, first) in [(0, 9), (4, 5)] {
            let step =
                |at: usize| time(at, foreign, false, true) / time(at - 1, foreign, false, true);
            assert!(step(first) > 1.15, "{}", step(first));
            assert!(step(first + 8) < step(first));
            assert!((2..first).all(|at| step(at) < 1.0));
        }
    }

    #[test]
    fn stealing_wipes_it_out() {
        for (foreign, first) in [(0, 9), (4, 5)] {
            let ratio = time(first, foreign, true, true) / time(first - 1, foreign, true, true);
            assert!(ratio < 1.05, "{ratio}");
        }
    }

    #[test]
    fn others_lose_what_the_program_gains() {
        let run = |threads| {
            run(Scene {
                cores: 8,
                foreign: 4,
                threads,
                is_stolen: true,
                moves: true,
            })
        };
        assert!(run(4).others > 0.99);
        let many = run(16);
        let left = 8.0 * (1.0 - share(16, 4)) / 4.0;
        assert!((many.others - left).abs() < 0.1, "{many:?} {left}");
    }
}
