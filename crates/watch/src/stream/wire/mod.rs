//! Chunks over TCP, from a program to a receiver that writes them into a file.
//!
//! ```text
//! sender                                   receiver
//! magic, session, frames stored so far ──→
//!                                      ←── frames that it has of these
//! length, some whole chunks            ──→ writes them into the session's file
//!                                      ←── frames stored so far, or a refusal
//!                     …
//! a length of 0: it has ended          ──→
//! ```
//!
//! The sender waits for each answer, so it knows of each frame whether it is stored. If the
//! connection breaks before the answer, the sender counts the frame as lost, and says at the next
//! one how many are stored: the receiver cuts its file back to these. So both sides always have the
//! same account. A receiver that was started anew has no frames; then the sender begins a new file.
//!
//! Nothing is encrypted, and nobody is asked who they are.

mod receiver;
mod sender;

pub use receiver::{Received, Receiver};
pub use sender::TcpSink;

use std::io::{self, Read, Write};
use std::time::Duration;

const MAGIC: u64 = u64::from_le_bytes(*b"HEARTHT1");
/// Answer to a frame that the receiver could not write.
const REFUSED: u64 = u64::MAX;
/// Longest frame: a block, packed at worst, with a head, all names and accounts.
const FRAME_MAX: usize = 1 << 26;
/// Time for the other side to answer; then the connection counts as broken.
const PATIENCE: Duration = Duration::from_secs(5);

fn read_u64(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn write_u64s<const N: usize>(to: &mut impl Write, values: [u64; N]) -> io::Result<()> {
    let bytes: Vec<u8> = values.into_iter().flat_map(u64::to_le_bytes).collect();
    to.write_all(&bytes)
}
