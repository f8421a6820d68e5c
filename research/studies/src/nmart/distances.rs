//! Distances of nodes from each other: the source's measuring tool, its generator, and its order.
//!
//! Its tool writes a file for each memory node, a line `epoch<TAB>processor<TAB>seconds` for each
//! copy; its generator reads four of them and writes a C header. Here any number of nodes goes.
//! Rows are memory nodes and columns the nodes whose processors copied; the kernel asks from the
//! processor's node to the memory's, so that its table is the transpose. Neither of the source's
//! ways to whole numbers keeps the order (its own four-node table is cut off, its eight-node table
//! rounded): orders come from the means themselves.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use hearth_probe::distances::fine;
use hearth_sys::System;
use hearth_sys::mapping::{MapOptions, Mapping};
use hearth_sys::policy::{self, Policy};

use crate::StudyError;

/// Rounding of a fine table to whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// Cut off: the source's four-node table.
    Truncated,
    /// Rounded to the nearest: its listing, and its eight-node table.
    Rounded,
}

/// Mean seconds by memory node and processors' node, from the tool's files, one a memory node.
/// `node_of` gives a processor's node. Lines that cannot be read are left out; where there is
/// nothing the mean is not a number.
#[must_use]
pub fn means(
    files: &[String],
    nodes: usize,
    node_of: impl Fn(usize) -> Option<usize>,
) -> Vec<Vec<f64>> {
    let row = |file: &String| {
        let mut by_processor: Vec<(usize, f64, f64)> = Vec::new();
        for line in file.lines() {
            let mut words = line.split('\t').skip(1);
            let (Some(Ok(processor)), Some(Ok(seconds))) = (
                words.next().map(str::parse::<usize>),
                words.next().map(str::parse::<f64>),
            ) else {
                continue;
            };
            match by_processor
                .iter_mut()
                .find(|(known, ..)| *known == processor)
            {
                Some((_, sum, count)) => (*sum, *count) = (*sum + seconds, *count + 1.0),
                None => by_processor.push((processor, seconds, 1.0)),
            }
        }
        // The mean of a node's processors, each by its own mean.
        let of_node = |node: usize| {
            let own = by_processor
                .iter()
                .filter(|(processor, ..)| node_of(*processor) == Some(node));
            let (sum, count) = own.fold((0.0, 0.0), |(sum, count), (_, seconds, copies)| {
                (sum + seconds / copies, count + 1.0)
            });
            sum / count
        };
        (0..nodes).map(of_node).collect()
    };
    files.iter().map(row).collect()
}

/// Ten times each row's share of its least, in whole numbers, the diagonal 10.
#[must_use]
pub fn table(means: &[Vec<f64>], whole: Whole) -> Vec<Vec<u16>> {
    let to_whole = |distance: &f64| match whole {
        Whole::Truncated => distance.floor() as u16,
        Whole::Rounded => distance.round() as u16,
    };
    let fine = fine(means);
    let mut table: Vec<Vec<u16>> = fine
        .iter()
        .map(|row| row.iter().map(to_whole).collect())
        .collect();
    for (node, row) in table.iter_mut().enumerate() {
        if let Some(own) = row.get_mut(node) {
            *own = 10;
        }
    }
    table
}

/// Rows for columns.
#[must_use]
pub fn transpose<T: Copy>(table: &[Vec<T>]) -> Vec<Vec<T>> {
    let columns = table.first().map_or(0, Vec::len);
    (0..columns)
        .map(|column| {
            table
                .iter()
                .filter_map(|row| row.get(column).copied())
                .collect()
        })
        .collect()
}

/// The header for the kernel, of a table from the processor's node to the memory's.
#[must_use]
pub fn header(table: &[Vec<u16>]) -> String {
    let mut text = String::from("#ifndef NUMA_DISTANCE_TABLE_H\n#define NUMA_DISTANCE_TABLE_H\n\n");
    let columns = table.first().map_or(0, Vec::len);
    let _ = writeln!(text, "#define NUMA_DISTANCE_ROWS {}", table.len());
    let _ = writeln!(text, "#define NUMA_DISTANCE_COLUMNS {columns}\n");
    text += "static const u16 numa_distance_table[NUMA_DISTANCE_ROWS][NUMA_DISTANCE_COLUMNS] = {\n";
    for row in table {
        let row: Vec<String> = row.iter().map(u16::to_string).collect();
        let _ = writeln!(text, "\t{{ {} }},", row.join(", "));
    }
    text + "};\n\n#endif\n"
}

/// Orders for each node all nodes, the nearest first, itself in front; of equally far ones the
/// lower number. `means` are by memory node and processors' node: the order is asked from the
/// latter.
#[must_use]
pub fn orders(means: &[Vec<f64>]) -> Vec<Vec<usize>> {
    transpose(means)
        .iter()
        .enumerate()
        .map(|(own, from)| {
            let mut nodes: Vec<usize> = (0..from.len()).collect();
            nodes.sort_by(|&a, &b| {
                (a != own)
                    .cmp(&(b != own))
                    .then(from[a].total_cmp(&from[b]))
                    .then(a.cmp(&b))
            });
            nodes
        })
        .collect()
}

/// Behaviour of the measuring tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The mode of its text: memory is bound to a node, and every processor copies there.
    Bound,
    /// The mode of its listing: each processor touches a buffer first, and every processor copies
    /// it.
    FirstTouch,
}

/// Extent of the tool's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// The buffer. The source's text says 256 MB, its listing 5 MB.
    pub bytes: usize,
    /// Copies for each processor. 100, and 40.
    pub repeats: u32,
}

/// A file of the tool: what it is of, and its lines.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// A memory node, or the processor that touched first.
    pub of: usize,
    /// `epoch<TAB>processor<TAB>seconds`.
    pub lines: String,
}

/// Runs the tool. `None` if it was asked to stop.
///
/// # Errors
/// The system has no memory on a node, or will not pin or bind.
pub fn measure(
    system: &dyn System,
    mode: Mode,
    memory_nodes: &[usize],
    effort: Effort,
    cancel: &AtomicBool,
) -> Result<Option<Vec<Measured>>, StudyError> {
    let processors = system.allowed().map_err(|error| StudyError::Machine {
        why: error.to_string(),
    })?;
    let origins = match mode {
        Mode::Bound => memory_nodes.to_vec(),
        Mode::FirstTouch => processors.clone(),
    };
    let mut found = Vec::new();
    for of in origins {
        let mut lines = String::new();
        // What is bound is touched by every processor in turn, afresh; else by its own once.
        let mut touched = match mode {
            Mode::Bound => None,
            Mode::FirstTouch => {
                let _pinned = system.pin(of)?;
                let mut buffer = Mapping::new(MapOptions::small(effort.bytes))?;
                buffer.prefault();
                Some(buffer)
            }
        };
        for &processor in &processors {
            let _pinned = system.pin(processor)?;
            for _ in 0..effort.repeats {
                // Relaxed: says only that it is to stop.
                if cancel.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                let begin = Instant::now();
                match &mut touched {
                    Some(buffer) => copy_half(buffer),
                    None => {
                        let mut buffer = Mapping::new(MapOptions::small(effort.bytes))?;
                        if memory_nodes.len() > 1 {
                            policy::set_mapping(&mut buffer, &Policy::Bind(vec![of]))?;
                        }
                        buffer.prefault();
                        copy_half(&mut buffer);
                    }
                }
                let seconds = begin.elapsed().as_secs_f64();
                let epoch = SystemTime::UNIX_EPOCH
                    .elapsed()
                    .map_or(0, |since| since.as_secs());
                let _ = writeln!(lines, "{epoch}\t{processor}\t{seconds:.9}");
            }
        }
        found.push(Measured { of, lines });
    }
    Ok(Some(found))
}

/// The upper half over the lower.
fn copy_half(buffer: &mut Mapping) {
    let words = buffer.words_mut();
    let half = words.len() / 2;
    words.copy_within(half.., 0);
    std::hint::black_box(words.first());
}
