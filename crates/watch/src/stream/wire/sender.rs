//! The program's side.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::{MAGIC, PATIENCE, REFUSED, read_u64, write_u64s};
use crate::stream::Sink;

/// Time to reach a receiver.
const REACH: Duration = Duration::from_secs(1);
/// Time between two tries.
const TRY_EVERY: Duration = Duration::from_millis(250);

/// A receiver at the other end of a connection, as a destination of chunks.
pub struct TcpSink {
    addresses: Vec<SocketAddr>,
    session: u64,
    stream: Option<TcpStream>,
    tried: Instant,
    /// Frames stored.
    frames: u64,
    /// The receiver has nothing of what was stored.
    is_new: bool,
}

impl TcpSink {
    /// Connects to a receiver at an address such as `localhost:4000`.
    ///
    /// # Errors
    /// The address is wrong or unknown, or nobody receives there.
    pub fn connect(address: &str) -> io::Result<TcpSink> {
        let mut sink = TcpSink {
            addresses: address.to_socket_addrs()?.collect(),
            // Each hasher has keys of its own, which are random.
            session: RandomState::new().hash_one((address, std::process::id())),
            stream: None,
            tried: Instant::now(),
            frames: 0,
            is_new: false,
        };
        sink.reach()?;
        Ok(sink)
    }

    fn reach(&mut self) -> io::Result<()> {
        let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in &self.addresses {
            match TcpStream::connect_timeout(address, REACH).and_then(|it| self.greet(it)) {
                Ok((stream, frames)) => {
                    self.stream = Some(stream);
                    self.is_new |= frames != self.frames;
                    self.frames = frames;
                    return Ok(());
                }
                Err(error) => failure = error,
            }
        }
        self.tried = Instant::now();
        Err(failure)
    }

    fn greet(&self, mut stream: TcpStream) -> io::Result<(TcpStream, u64)> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        write_u64s(&mut stream, [MAGIC, self.session, self.frames])?;
        let frames = read_u64(&mut stream)?;
        if frames != self.frames && frames != 0 {
            let what = "it does not speak as a receiver of Hearth does";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok((stream, frames))
    }

    fn reach_if_time(&mut self) -> io::Result<()> {
        match self.stream {
            Some(_) => Ok(()),
            None if self.tried.elapsed() < TRY_EVERY => Err(io::ErrorKind::NotConnected.into()),
            None => self.reach(),
        }
    }

    fn send(&mut self, chunks: &[u8]) -> io::Result<u64> {
        let Some(stream) = &mut self.stream else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        stream.write_all(&(chunks.len() as u32).to_le_bytes())?;
        stream.write_all(chunks)?;
        read_u64(stream)
    }
}

impl Sink for TcpSink {
    fn store(&mut self, chunks: &[u8]) -> io::Result<()> {
        self.reach_if_time()?;
        let mut answer = match self.is_new {
            // What there is lacks its beginning.
            true => Err(io::Error::other("the receiver was started anew")),
            false => self.send(chunks),
        };
        if answer.is_err() && !self.is_new {
            // The receiver cuts off what it may have of it.
            self.stream = None;
            self.reach()?;
            if !self.is_new {
                answer = self.send(chunks);
            }
        }
        match answer {
            Ok(REFUSED) => Err(io::Error::other("the receiver could not write it")),
            Ok(frames) if frames == self.frames + 1 => {
                self.frames = frames;
                Ok(())
            }
            Ok(_) => {
                self.stream = None;
                Err(io::ErrorKind::InvalidData.into())
            }
            Err(error) => {
                if !self.is_new {
                    self.stream = None;
                }
                Err(error)
            }
        }
    }

    fn is_ready(&mut self) -> bool {
        self.reach_if_time().is_ok()
    }

    fn end(&mut self) {
        if let Some(mut stream) = self.stream.take() {
            // Without it the receiver takes the connection for broken; the file is complete.
            let _ = stream.write_all(&0_u32.to_le_bytes());
        }
    }

    fn begins_anew(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }
}
