//! Components, channels, carriers and services behind a C ABI.
//!
//! A component is a struct that starts with [`abi::Component`] and a function that resumes it. The
//! runtime's part of it is its [`seat`](seats::seat::Seat). Components meet at half-channels
//! ([`channel`]); a carrier resumes them and parks them while they wait; [`external`] is the door
//! for timers, input and devices, and idle carriers wait for those. The contract with compiled
//! programs is the crate [`hearth_abi`].
//!
//! The crate is divided into rooms; each uses only the rooms above it in this table:
//!
//! | room | what lives there |
//! |---|---|
//! | `ground` | atomics and locks, options, output, the ways a process ends |
//! | `seats` | the runtime's part of a component: seat, offer, registry, exceptions |
//! | `hooks` | the tables by which the exchange calls the rooms above it |
//! | `recording` | writes events to a file when `HEARTH_WATCH` asks for it |
//! | `outside` | detects that nothing runs; waits for descriptors and timers |
//! | `exchange` | values, channels, carriers, components; tickets and timers |
//! | `futures` | calls and rounds of loops that run beside others |
//! | `placer` | places components: the first choice, and moves at run time |
//! | `report` | the deadlock report |
//! | `simulator` | runs a program on one thread, by a schedule that can be replayed |
//! | `portable` | values as bytes, for other nodes |
//! | `services` | the prelude's natives and devices |
//! | `remote` | channels between nodes |
//! | `program` | assembles all of this for a compiled program |
//! | `embed` | assembles it for a program in Rust |
//!
//! Of Insense this crate knows values and exceptions, nothing of syntax or typing. It alone decides
//! when the process ends.

#![cfg_attr(
    loom,
    allow(
        dead_code,
        unused_imports,
        reason = "models leave the carriers and the outside out"
    )
)]

pub use hearth_abi as abi;

mod ground;

mod seats;

mod hooks;
mod recording;

mod outside;

mod exchange;

mod futures;

#[cfg(not(loom))]
mod placer;
mod report;
#[cfg(not(loom))]
mod simulator;

#[cfg(not(loom))]
mod portable;
#[cfg(not(loom))]
pub mod services;

#[cfg(not(loom))]
pub mod remote;

#[cfg(not(loom))]
pub mod embed;
#[cfg(not(loom))]
mod program;

#[cfg(not(loom))]
pub mod census;
// The multi-threaded part, for the loom models.
#[cfg(loom)]
#[path = "embed/errands/mod.rs"]
mod errands;

pub use exchange::carrier::Worker;
pub use exchange::{channel, external};
pub use ground::output;
pub use seats::seat;

/// The functions of `hearth.h`, for Rust code that makes components by hand.
pub mod c {
    pub use crate::exchange::block::{hearth_component_release, hearth_component_retain};
    pub use crate::exchange::channel::{
        hearth_acknowledge, hearth_channel_new, hearth_channel_release, hearth_channel_retain,
        hearth_connect, hearth_disconnect, hearth_receive, hearth_release_sender, hearth_select,
        hearth_select_waits, hearth_send,
    };
    pub use crate::exchange::collection::hearth_collect;
    pub use crate::exchange::component::{
        hearth_component_new, hearth_component_start, hearth_next_pass_slow, hearth_port_assign,
        hearth_port_of, hearth_stop,
    };
    pub use crate::exchange::timers::{hearth_set_rtimer, hearth_set_timer, hearth_unset_timer};
    pub use crate::exchange::values::heap::{hearth_alloc, hearth_alloc_zeroed, hearth_free};
    pub use crate::exchange::values::object::{
        hearth_array_new, hearth_box_new, hearth_copy, hearth_destroy, hearth_string_equal,
    };
    pub use crate::exchange::values::trace::{hearth_trace, hearth_trace_held};
    #[cfg(not(loom))]
    pub use crate::futures::{
        Grain, Record, Rounds, hearth_await, hearth_beside, hearth_grain_now,
        hearth_may_run_beside, hearth_piece_ended, hearth_run_rounds,
    };
    #[cfg(not(loom))]
    pub use crate::placer::initial::hearth_set_core;
    #[cfg(not(loom))]
    pub use crate::program::{
        hearth_argument, hearth_argument_count, hearth_main, hearth_probe_begins,
        hearth_probe_ends, hearth_probed_main,
    };
    pub use crate::seats::exceptions::{hearth_raise, hearth_raise_index};
}
