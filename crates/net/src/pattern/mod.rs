//! Who waits, and who works.

mod adaptive;
mod courtesy;
mod crew;
mod half_async;
mod leader;
mod rings;
mod sharded;
mod shared;
mod slots;

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use hearth_sys::affinity::Pinned;
use socket2::Socket;

pub(crate) use adaptive::Adaptive;
pub(crate) use crew::Sharded;
pub(crate) use half_async::HalfAsync;
pub(crate) use leader::Leader;

use crate::connection::{Connection, Station};
use crate::counters::{Meter, Watching};
use crate::server::{Adapted, Common};
use crate::service::{Peer, Service};

/// The threads of a server, and how connections get to them.
pub(crate) trait Threads<S: Service>: Send + Sync {
    /// A connection is there, in this second.
    ///
    /// # Errors
    /// It cannot be waited for.
    fn adopt(&self, socket: Socket, peer: Peer, second: u32) -> io::Result<()>;

    /// Another second has begun: who has been silent for too long is to be closed.
    fn sweep(&self);

    /// All are to come to their ends, which the server's flag tells them.
    fn wake(&self);

    /// How it serves, if that changes.
    fn adapted(&self) -> Option<Adapted> {
        None
    }

    /// All connections, when all threads have ended.
    fn take_all(&self) -> Vec<Connection<S::Session>>;
}

/// The threads of a server that is being started.
#[derive(Default)]
pub(crate) struct Starting {
    pub(crate) threads: Vec<JoinHandle<()>>,
    /// Why one of them is not there. Whoever starts the server ends it then, as it always ends.
    pub(crate) refused: Option<io::Error>,
}

impl Starting {
    fn add(&mut self, thread: io::Result<JoinHandle<()>>) {
        match thread {
            Ok(thread) => self.threads.push(thread),
            Err(error) => {
                self.refused.get_or_insert(error);
            }
        }
    }
}

/// Starts a thread that serves, on its core if it has one.
pub(crate) fn spawn<S: Service>(
    common: &Arc<Common<S>>,
    number: usize,
    run: impl FnOnce(&Common<S>, &mut Station<'_, S>) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let common = common.clone();
    thread::Builder::new()
        .name(format!("{}-{number}", common.options.name))
        .spawn(move || {
            let cores = &common.options.cores;
            // A wish: on a core that is not ours the thread runs anywhere.
            let _pinned = (!cores.is_empty())
                .then(|| Pinned::to(cores[number % cores.len()]).ok())
                .flatten();
            let meter = Meter::new(&common.desks[number], Watching::of(&common.options));
            let mut station = Station::new(
                &common.service,
                number,
                meter,
                &common.second,
                &common.options,
            );
            run(&common, &mut station);
        })
}
