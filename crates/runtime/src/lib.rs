//! Components, channels, carriers and services behind a C ABI.
//!
//! A component is a struct that starts with [`abi::Component`] and a function that resumes it. The
//! runtime's part of it is its [`seat::Seat`]. Components meet at half-channels ([`channel`]); a
//! carrier ([`carrier`]) resumes them and parks them while they wait; [`external`] is the door for
//! timers, input and devices, and idle carriers wait for those ([`poller`]). The contract with compiled programs is `include/hearth.h`, mirrored in
//! [`abi`].
//!
//! Of Insense this crate knows values and exceptions, nothing of syntax or typing. It alone decides
//! when the process ends ([`exits`]).

#![cfg_attr(
    loom,
    allow(
        dead_code,
        unused_imports,
        reason = "models leave the carriers and the outside out"
    )
)]

pub mod abi;
mod carrier;
#[cfg(not(loom))]
pub mod census;
pub mod channel;
mod choices;
mod component;
#[cfg(not(loom))]
pub mod embed;
// The part of it that several threads share, for its model.
#[cfg(loom)]
#[path = "embed/errands/mod.rs"]
mod errands;
mod exceptions;
mod exits;
pub mod external;
mod heap;
#[cfg(not(loom))]
mod helpers;
mod idle;
pub mod object;
mod offer;
mod options;
pub mod output;
mod placement;
#[cfg(not(loom))]
mod placer;
#[cfg(not(loom))]
mod poller;
#[cfg(not(loom))]
mod portable;
#[cfg(not(loom))]
mod program;
mod registry;
#[cfg(not(loom))]
pub mod remote;
mod report;
pub mod seat;
mod servers;
#[cfg(not(loom))]
pub mod services;
mod settings;
mod signals;
#[cfg_attr(loom, path = "simulator/absent.rs")]
mod simulator;
mod sync;
mod timers;
#[cfg(not(loom))]
mod traffic;
mod watching;

#[cfg(loom)]
mod model;

pub use carrier::Worker;

/// The functions of `include/hearth.h`, for Rust code that makes components by hand.
pub mod c {
    pub use crate::channel::{
        hearth_acknowledge, hearth_channel_new, hearth_channel_release, hearth_channel_retain,
        hearth_connect, hearth_disconnect, hearth_receive, hearth_release_sender, hearth_select,
        hearth_select_waits, hearth_send,
    };
    pub use crate::component::{
        hearth_component_new, hearth_component_release, hearth_component_retain,
        hearth_component_start, hearth_next_pass_slow, hearth_port_assign, hearth_port_of,
        hearth_stop,
    };
    pub use crate::exceptions::{hearth_raise, hearth_raise_index};
    pub use crate::heap::{hearth_alloc, hearth_alloc_zeroed, hearth_free};
    pub use crate::object::{
        hearth_array_new, hearth_box_new, hearth_copy, hearth_destroy, hearth_string_equal,
    };
    pub use crate::placement::hearth_set_core;
    #[cfg(not(loom))]
    pub use crate::program::{hearth_argument, hearth_argument_count, hearth_main};
    pub use crate::timers::{hearth_set_rtimer, hearth_set_timer, hearth_unset_timer};
}
