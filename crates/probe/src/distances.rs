//! Distances of memory nodes from cores, by the node-distance source's method (nMART evaluation,
//! section 6.2): memory bound to a node, a thread pinned to a core, the time to touch and copy.
//!
//! The source copies 256 MB a hundred times for each core and node. Here the buffer and the number
//! of copies follow the available time; the formula is the source's.

use hearth_sys::mapping::{HugePages, MapOptions, Mapping};
use hearth_sys::policy::Policy;
use hearth_sys::procfs;

use crate::context::{Context, Deadline, Rounds, Stop, start};
use crate::disturbance::{Batch, Before};
use crate::statistics::Measured;

/// Distances among nodes. Rows are memory nodes, columns the nodes of cores.
#[derive(Clone, Debug, PartialEq)]
pub struct Distances {
    /// The system's numbers of the memory nodes: the rows.
    pub memory_nodes: Vec<usize>,
    /// The system's numbers of the nodes whose cores were used: the columns.
    pub cpu_nodes: Vec<usize>,
    /// Seconds to touch and copy the source's 256 MiB, scaled from the buffer used.
    pub seconds: Vec<Vec<Measured>>,
    /// Ten times the time relative to the row's least: 10 is nearest. Not rounded.
    pub fine: Vec<Vec<f64>>,
}

impl Distances {
    /// Distances on the source's scale, rounded to the nearest whole number, as in its generator's
    /// listing. Its four-node table was cut off instead: see [`Distances::truncated`].
    pub fn rounded(&self) -> Vec<Vec<u16>> {
        self.whole(f64::round)
    }

    /// Distances on the source's scale, cut off to whole numbers.
    pub fn truncated(&self) -> Vec<Vec<u16>> {
        self.whole(f64::floor)
    }

    fn whole(&self, to_whole: fn(f64) -> f64) -> Vec<Vec<u16>> {
        let row = |row: &Vec<f64>| row.iter().map(|&d| to_whole(d) as u16).collect();
        self.fine.iter().map(row).collect()
    }
}

/// Distance(i, j) = 10 · mean(memory i, cores of node j) / the smallest mean in row i. A row
/// without a positive number has no distances: they are NaN.
pub fn fine(means: &[Vec<f64>]) -> Vec<Vec<f64>> {
    means
        .iter()
        .map(|row| {
            let positive = row.iter().copied().filter(|mean| *mean > 0.0);
            let least = positive.fold(f64::NAN, f64::min);
            row.iter().map(|mean| 10.0 * (mean / least)).collect()
        })
        .collect()
}

/// The source's buffer.
const SOURCE_BYTES: f64 = 256.0 * 1024.0 * 1024.0;
const LARGEST: usize = 256 << 20;
const SMALLEST: usize = 8 << 20;
/// Least buffer, on a node that is nearly full; sizes are multiples of it.
const LEAST: usize = 256 << 10;

/// Size of the buffer: as requested, but at most a quarter of the node's free memory, since memory
/// is bound to it and the kernel would rather kill than take it elsewhere.
fn fitting(system: &dyn hearth_sys::System, memory_node: usize, wanted: usize) -> usize {
    let left = procfs::available_on_node(system, memory_node);
    let most = left.map_or(usize::MAX, |bytes| (bytes / 4) as usize);
    (wanted.min(most) & !(LEAST - 1)).max(LEAST)
}

/// Nodes being measured.
#[derive(Debug)]
pub struct Survey {
    memory_nodes: Vec<usize>,
    /// Nodes with their measurable cores.
    cpu_nodes: Vec<(usize, Vec<usize>)>,
    rounds: Vec<Vec<Rounds>>,
}

impl Survey {
    /// Nodes without samples: those with memory, and those with cores among `cores`, by the
    /// kernel's lists. None where there are fewer than two memory nodes or no core's node is known.
    pub fn new(system: &dyn hearth_sys::System, cores: &[usize]) -> Option<Survey> {
        let memory_nodes = system.memory_nodes().ok().filter(|nodes| nodes.len() > 1)?;
        let names = system.list("/sys/devices/system/node").ok()?;
        let mut cpu_nodes: Vec<(usize, Vec<usize>)> = names
            .iter()
            .filter_map(|name| {
                let node: usize = name.strip_prefix("node")?.parse().ok()?;
                let path = format!("/sys/devices/system/node/{name}/cpulist");
                let listed = procfs::parse_list(&system.read(&path).ok()?);
                let here: Vec<usize> = listed.into_iter().filter(|c| cores.contains(c)).collect();
                (!here.is_empty()).then_some((node, here))
            })
            .collect();
        cpu_nodes.sort_unstable();
        if cpu_nodes.is_empty() {
            return None;
        }
        let row = vec![Rounds::default(); cpu_nodes.len()];
        Some(Survey {
            rounds: vec![row; memory_nodes.len()],
            memory_nodes,
            cpu_nodes,
        })
    }

    /// Measures every memory node from one core of every node, a different core in every visit, for
    /// about `seconds`.
    ///
    /// # Errors
    /// If cancelled, if a core or node went away, or if there is no memory.
    pub fn visit(&mut self, context: &mut Context<'_>, seconds: f64) -> Result<(), Stop> {
        let cells = self.memory_nodes.len() * self.cpu_nodes.len();
        let each = seconds / cells.max(1) as f64;
        // Mapping, touching and copying once takes about a second a gigabyte, three times.
        let bytes = (each / 4.0 * 1e9) as usize;
        let wanted = bytes.clamp(SMALLEST, LARGEST);
        for (row, &memory_node) in self.memory_nodes.clone().iter().enumerate() {
            let bytes = fitting(context.system, memory_node, wanted);
            for column in 0..self.cpu_nodes.len() {
                let (_, cores) = &self.cpu_nodes[column];
                let core = cores[context.random.usize(..cores.len())];
                let (batch, disturbed) = context.watched(&[core], |context| {
                    cell(context, memory_node, core, bytes, each)
                })?;
                let mut all = Batch::default();
                all.add_window(batch, disturbed);
                let round = context.finish(all);
                self.rounds[row][column].add(round);
            }
        }
        Ok(())
    }

    /// The distances; None if a cell has no result.
    pub fn sum_up(&self) -> Option<Distances> {
        let mut seconds = Vec::new();
        for row in &self.rounds {
            let cells: Option<Vec<Measured>> = row
                .iter()
                .map(|cell| Some(cell.sum_up()?.scaled(SOURCE_BYTES / 1e9)))
                .collect();
            seconds.push(cells?);
        }
        let means: Vec<Vec<f64>> = seconds
            .iter()
            .map(|row| row.iter().map(|cell| cell.value).collect())
            .collect();
        Some(Distances {
            memory_nodes: self.memory_nodes.clone(),
            cpu_nodes: self.cpu_nodes.iter().map(|(node, _)| *node).collect(),
            fine: fine(&means),
            seconds,
        })
    }
}

/// Nanoseconds a byte to touch and copy once, small pages as in the source's time.
fn cell(
    context: &Context<'_>,
    memory_node: usize,
    core: usize,
    bytes: usize,
    seconds: f64,
) -> Result<Batch, Stop> {
    let end = Deadline::after(context.system, seconds);
    let system = context.system;
    let clock = context.clock;
    // A thread of its own, so that its memory policy ends with it.
    std::thread::scope(|scope| {
        let work = start(scope, || -> Result<Batch, Stop> {
            let _pinned = system.pin(core)?;
            system.place_memory(&Policy::Bind(vec![memory_node]))?;
            let options = MapOptions {
                prefault: false,
                huge: HugePages::Refused,
                ..MapOptions::small(bytes)
            };
            let mut batch = Batch::of_chunks(bytes);
            loop {
                let mut memory = Mapping::new(options)?;
                let before = Before::now();
                let begin = clock.ticks_ordered();
                memory.prefault();
                let words = memory.words_mut();
                let (from, to) = words.split_at_mut(words.len() / 2);
                to.copy_from_slice(from);
                std::hint::black_box(&to);
                batch.add_chunk(clock.ns(clock.ticks_ordered() - begin), &before);
                if end.is_over() || context.cancel.load(std::sync::atomic::Ordering::Relaxed) {
                    return Ok(batch);
                }
            }
        })?;
        work.join().expect("a copy does not panic")
    })
}
