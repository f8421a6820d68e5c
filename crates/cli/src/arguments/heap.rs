//! The commands about heaps of running programs.

use std::path::PathBuf;

use clap::{Args, Subcommand, value_parser};

/// Inspect the heaps of a running program from outside.
///
/// The program was started by `hearth run` or with libhearth_malloc.so. It is neither involved nor
/// stopped, so figures are of slightly different moments.
#[derive(Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  hearth heap top 1234                    each second, until q is pressed
  hearth heap show 1234                   once: totals, nodes, heaps, regions
  hearth heap show 1234 --map heap.svg    a picture of all chunks
  hearth heap show 1234 --json"
)]
pub(crate) struct Heap {
    #[command(subcommand)]
    pub(crate) action: HeapAction,
}

#[derive(Subcommand, Debug)]
pub(crate) enum HeapAction {
    Show(HeapShow),
    Top(HeapTop),
}

/// Show the contents of a program's heaps now.
///
/// Live: bytes of blocks in use. In front: blocks that a heap keeps at hand. Idle: memory that no
/// heap uses and that has not been returned to the system.
#[derive(Args, Debug)]
#[command(
    after_help = "\
Examples:
  hearth heap show $(pidof server)
  hearth heap show 1234 --heaps 0 --map heap.svg
  hearth heap show 1234 --json | jq '.spaces[].live_bytes'",
    after_long_help = "\
Examples:
  hearth heap show $(pidof server)
  hearth heap show 1234 --heaps 0 --map heap.svg
  hearth heap show 1234 --json | jq '.spaces[].live_bytes'

With --json standard output is one object:
  process   {pid, name}
  spaces    one for each copy of the allocator in the process, usually one:
    directory           where its description lies in the process, in hexadecimal
    held_bytes          chunks that heaps have, and large blocks
    idle_bytes          chunks that no heap has, with memory behind them
    live_bytes          blocks that the program has: of heaps, large, and mapped
    in_front_bytes      blocks that heaps keep at hand
    large, mapped       {count, bytes}: blocks of whole chunks; blocks that are mappings of their own
    nodes               a list of {node, arenas, held_bytes, brought_away_bytes, idle_bytes, heaps,
                        live_bytes}; brought away are chunks of the node's of which pages were
                        brought to another one, where their heap is
    levels              a list of {level, granule_bytes, block_bytes_max, regions, bytes, taken_bytes}
    heaps               the largest first, all of them: {number, kind, node, live_bytes,
                        in_front_bytes, owned_bytes, resident_bytes, chunks}
The kind of a heap is \"thread\", \"parked\", \"nursery\", \"component\" or \"orphan\". What a level has
taken is in blocks, or in regions of the level below."
)]
pub(crate) struct HeapShow {
    /// The number of the process
    #[arg(value_name = "PID")]
    pub(crate) pid: u32,

    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,

    /// Draw all chunks as SVG, with their owners and how full they are
    #[arg(long, value_name = "FILE")]
    pub(crate) map: Option<PathBuf>,

    /// Show the N largest heaps
    #[arg(long, value_name = "N", default_value = "20", conflicts_with = "json")]
    pub(crate) heaps: usize,
}

/// Show the same each second, in the terminal; the largest heaps first.
///
/// Press q to leave. Without a terminal it writes a line of totals for each reading.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hearth heap top 1234
  hearth heap top 1234 --count 60 > minute.txt")]
pub(crate) struct HeapTop {
    /// The number of the process
    #[arg(value_name = "PID")]
    pub(crate) pid: u32,

    /// End after N readings
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
}
