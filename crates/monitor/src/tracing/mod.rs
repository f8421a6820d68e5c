//! Spans of programs that use the crate `tracing`, as calls. This takes the feature `tracing`.
//!
//! A span's call site is a probe with the name `target::name`, such as `server::store::read`; rules
//! switch it as any other. Each entering of a span begins a call, and its exit ends it. A program
//! that has spans already needs one line:
//!
//! ```
//! use hearth_monitor::Options;
//!
//! # let file = std::env::temp_dir().join(format!("spans-{}.calls", std::process::id()));
//! let monitor = hearth_monitor::tracing::init(Options::to_file(&file).on("*"))?;
//! tracing::info_span!("handle").in_scope(|| 1 + 1);
//! assert_eq!(monitor.finish().emitted, 2);
//! # std::fs::remove_file(&file)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! or [`init_of_env`], which reads `HEARTH_MONITOR` and does nothing without it. Choose between
//!
//! - [`Subscriber`], which `init` installs: it alone, without a registry. A span's number is that
//!   of its call site, so a span allocates nothing and takes no lock. The crate `tracing` skips
//!   spans whose probes are off at the cost of two loads.
//! - [`Layer`], beside other layers of a `tracing_subscriber::Registry`, which finds the span of
//!   each number. Spans that are off still cost what the registry takes.
//!
//! # What it costs
//!
//! `cargo run --release -p hearth-monitor --features tracing --example spans`, on a virtual machine
//! of two Xeon cores that were busy with other work; medians of 21 runs of 300,000 calls:
//!
//! | a call with a span, over the same without | off | on, stored nowhere |
//! |---|---|---|
//! | no subscriber | 1.5 ns | |
//! | a registry without layers | 136 ns | |
//! | [`Layer`] over a registry | 104 ns | 153 ns |
//! | [`Subscriber`] | 1.5 ns | 52 ns |
//!
//! # What a call is
//!
//! - The span of an `async` function is entered at each poll and left at each wait. These are as
//!   many calls, each as long as the poll, and one more as the future is dropped; the time between
//!   them is nobody's.
//! - A span that is never entered is no call.
//! - With [`Subscriber`], a span that was made while its probe was off stays unseen when it is
//!   entered later.
//! - Spans that a thread leaves in another order than it entered them: the inner one ends with the
//!   outer one ([`unguarded`](crate::unguarded)).
//! - An event is a call that ends at once, with the name `target::event FILE:LINE`. The rule
//!   `off=*::event *` leaves events out. Fields of spans and events are not recorded.
//! - Up to 12,288 call sites have a probe; further ones are not seen.

mod layer;
mod sites;
mod subscriber;

pub use layer::Layer;
pub use subscriber::{NotInstalled, Subscriber, init, init_of_env};
