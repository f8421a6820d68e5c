//! Encrypted connections: a service around a service.
//!
//! The [`Layer`] takes the place of a [`hearth_net::Service`] and contains another. The event
//! server brings it encrypted bytes, it brings the service inside plain ones, and neither knows of
//! the other. [`Settings`] are memcached's options, from which [`Tls`] loads certificates, and
//! loads them again while connections live.

mod layer;
mod sealed;
mod sessions;
mod settings;
mod shared;

pub use layer::{Bounds, Layer};
pub use settings::{KeyFormat, Settings, VerifyMode};
pub use shared::{NoTls, Tls};
