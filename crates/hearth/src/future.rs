//! The futures that operations return, by name, for those who store them.
//!
//! ```
//! use hearth::future::Receive;
//! use hearth::{Hearth, block_on, channel};
//!
//! let hearth = Hearth::start()?;
//! let (out, into) = channel::<u8>();
//! hearth.spawn(async move { out.send(5).await });
//! let reader = hearth.spawn(async move {
//!     let receive: Receive<'_, u8> = into.recv();
//!     receive.await
//! });
//! assert_eq!(block_on(reader)?, Ok(5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use hearth_runtime::embed::{Receive, Select, Send, Wait};

pub use crate::component::Join;
pub use crate::insense::Ending;
