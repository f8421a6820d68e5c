//! The prelude's native procedures: the standard procedures, and the devices behind the standard
//! services.
//!
//! Reading order: [`natives`], the functions that compiled code calls; [`devices`], which they
//! open; [`mailbox`], which hands arrivals to components; and the pure parts, [`text`],
//! [`numbers`], [`fourier`] and [`framing`], which know nothing of components.

pub(crate) mod claims;
pub(crate) mod devices;
mod fourier;
mod framing;
pub(crate) mod mailbox;
pub mod natives;
pub(crate) mod node;
mod numbers;
mod text;
pub(crate) mod values;
