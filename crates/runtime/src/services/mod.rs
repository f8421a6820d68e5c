//! What the prelude's native procedures do: the standard procedures, and the devices behind the
//! standard services.
//!
//! Reading order: the pure parts (`text`, `numbers`, `fourier`, `framing`), which know nothing of
//! components.

mod fourier;
mod framing;
mod numbers;
mod text;
