//! The protocol as a service of `hearth-net`.

use std::sync::Arc;

use hearth_net::{Input, Next, Output, Peer, Service};

use super::about::Server;
use crate::protocol::{About, Session, Then};
use crate::store::Worker;

/// The service of one server.
pub(super) struct Cachet(pub(super) Arc<Server>);

/// A connection: its number, and its session.
pub(super) struct Connected {
    id: u64,
    session: Session,
}

impl Service for Cachet {
    type Worker = Worker;
    type Session = Connected;

    fn worker(&self, _number: usize) -> Worker {
        Worker::new(self.0.counters_for_one())
    }

    fn open(&self, _worker: &mut Worker, peer: &Peer) -> Connected {
        Connected {
            id: self.0.note_connection(peer),
            session: Session::new(),
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
        match served.then {
            Then::More => Next::More,
            Then::Again => Next::Again,
            Then::Close => Next::Close,
            Then::Stop { gracefully } => {
                server.ask_to_stop(gracefully);
                Next::Close
            }
        }
    }

    fn is_amid(&self, connected: &Connected) -> bool {
        connected.session.is_amid()
    }

    fn close(&self, worker: &mut Worker, mut connected: Connected) {
        connected.session.end(worker);
        self.0.store().settle(worker);
        self.0.forget_connection(connected.id);
    }

    fn refusal(&self) -> &[u8] {
        self.0.note_rejected();
        b"ERROR Too many open connections\r\n"
    }
}
