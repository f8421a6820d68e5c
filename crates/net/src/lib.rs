//! Event servers: one server core under every pattern of threads and every way to wait for
//! connections.
//!
//! A [`Service`] says what the bytes of a connection mean. A [`Server`] says which threads work
//! ([`Pattern`]) and how they wait ([`Mechanism`]), and neither knows of the other. This crate
//! never knows what the bytes mean.
//!
//! Modules depend one way, in this order: `service`, `choices`, `error`, `options`, `counters`,
//! `connection`, `poller`, `common`, `listen`, `pattern`, `acceptor`, `drain`, `server`.
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//! use std::time::Duration;
//! use hearth_net::{Input, Mechanism, Next, Output, Pattern, Peer, Server, Service};
//!
//! struct Echo;
//!
//! impl Service for Echo {
//!     type Worker = ();
//!     type Session = ();
//!     fn worker(&self, _: usize) {}
//!     fn open(&self, _: &mut (), _: &Peer) {}
//!     fn serve(&self, _: &mut (), _: &mut (), input: &mut Input, output: &mut Output) -> Next {
//!         output.write(input.bytes());
//!         input.consume(input.bytes().len());
//!         Next::More
//!     }
//! }
//!
//! let server = Server::builder()
//!     .pattern(Pattern::Sharded)
//!     .mechanism(Mechanism::Edge)
//!     .tcp("127.0.0.1:0")
//!     .start(Echo)?;
//! let mut client = TcpStream::connect(server.tcp_addresses()[0])?;
//! client.write_all(b"hello")?;
//! let mut reply = [0; 5];
//! client.read_exact(&mut reply)?;
//! assert_eq!(&reply, b"hello");
//! server.stop(Duration::from_secs(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod acceptor;
mod choices;
mod common;
mod connection;
mod counters;
mod drain;
mod error;
mod listen;
mod options;
mod pattern;
mod poller;
mod server;
mod service;

pub use choices::{Mechanism, Pattern, UnknownName, WhenFull};
pub use connection::left::Left;
pub use counters::{Counters, Operation, Times};
pub use drain::Stopped;
pub use error::StartError;
pub use options::Builder;
pub use pattern::Adapted;
pub use server::Server;
pub use service::{Address, Input, Next, Output, Peer, SecondWriter, Service, WriteAtOnce};
