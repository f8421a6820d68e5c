//! The protocol as a service of `hearth-net`.

use std::io;
use std::sync::Arc;

use hearth_net::{Input, Next, Output, Peer, SecondWriter, Service, WriteAtOnce};

use super::about::Server;
use super::known::Known;
use crate::protocol::{About, Session, Then};
use crate::store::Worker;
use crate::store::watch::{Sink, Topics};

/// The service of one server.
pub(super) struct Cachet(pub(super) Arc<Server>);

/// A connection: its number, and its session.
pub(super) struct Connected {
    known: Arc<Known>,
    session: Session,
    /// The topics that it is to be told of, until it is.
    watches: Topics,
    /// Whether it is closed for a mistake.
    is_faulty: bool,
}

/// A watcher's connection.
struct Told(SecondWriter);

impl Sink for Told {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }
}

impl Service for Cachet {
    type Worker = Worker;
    type Session = Connected;

    fn worker(&self, _number: usize) -> Worker {
        Worker::new(self.0.counters_for_one())
    }

    fn open(&self, _worker: &mut Worker, peer: &Peer) -> Connected {
        Connected {
            known: self.0.note_connection(peer),
            session: match self.0.users() {
                Some(_) => Session::of_stranger(),
                None => Session::new(),
            },
            watches: Topics::default(),
            is_faulty: false,
        }
    }

    #[inline]
    fn serve(
        &self,
        worker: &mut Worker,
        connected: &mut Connected,
        input: &mut Input<'_>,
        output: &mut Output,
    ) -> Next {
        let server = &*self.0;
        let before = output.bytes().len();
        worker.connection = connected.known.id;
        let served = connected.session.serve(
            (server.store(), worker, server as &dyn About),
            input.bytes(),
            server.options().requests_per_event,
            output.buffer(),
        );
        input.consume(served.consumed);
        worker.counters.bytes_read.add(served.consumed as u64);
        worker
            .counters
            .bytes_written
            .add((output.bytes().len() - before) as u64);
        let second = server.store().clock().now();
        connected.known.note(second, connected.session.is_amid());
        match served.then {
            Then::More => Next::More,
            Then::Again => Next::Again,
            Then::Watch(topics) => {
                connected.watches = topics;
                Next::Share
            }
            Then::Close => {
                connected.is_faulty = !connected.session.has_quit();
                Next::Close
            }
            Then::Stop { gracefully } => {
                server.ask_to_stop(gracefully);
                Next::Close
            }
        }
    }

    fn share(
        &self,
        _worker: &mut Worker,
        connected: &mut Connected,
        writer: io::Result<SecondWriter>,
    ) {
        let watch = self.0.store().watch();
        let id = connected.known.id;
        let added =
            writer.and_then(|writer| watch.add(id, connected.watches, Arc::new(Told(writer))));
        match added {
            Ok(()) => connected.known.note_watching(),
            Err(error) => self.0.tell(1, || format!("<{id} cannot watch: {error}")),
        }
    }

    fn is_amid(&self, connected: &Connected) -> bool {
        connected.session.is_amid()
    }

    fn close(&self, worker: &mut Worker, mut connected: Connected) {
        connected.session.end(worker);
        self.0.store().settle(worker);
        self.0
            .forget_connection(&connected.known, connected.is_faulty);
    }

    fn refusal(&self) -> &[u8] {
        self.0.note_rejected();
        b"ERROR Too many open connections\r\n"
    }
}
