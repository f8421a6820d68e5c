//! The service around a service.

use std::io;
use std::mem;
use std::sync::Arc;

use hearth_net::{Input, Left, Next, Output, Peer, SecondWriter, Service};
use rustls::Error;

use super::sealed::{Sealed, Second};
use super::shared::Tls;

/// A service whose connections are encrypted, or some of them, or none.
pub struct Layer<S> {
    inner: S,
    tls: Option<Encryption>,
}

/// Encryption of connections.
struct Encryption {
    tls: Arc<Tls>,
    /// Whether connections to a place are encrypted, by its number; to others they are.
    places: Vec<bool>,
    bounds: Bounds,
    refused: Box<Refused>,
}

/// A hook that is told of a connection that is closed, and why.
type Refused = dyn Fn(&Peer, &Error) + Send + Sync;

/// Bounds for one encrypted connection, beside those of the event server.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Decrypted bytes that may gather that the service inside does not consume.
    pub input_bytes: usize,
    /// Size at which the output of the service inside is full.
    pub output_bytes: usize,
}

/// A thread's equipment.
pub struct Worker<W> {
    inner: W,
    /// Decrypted bytes of one call.
    plain: Vec<u8>,
    /// Output of the service inside.
    output: Output,
}

/// A connection.
pub enum Session<T> {
    /// One that is not encrypted.
    Plain(T),
    /// An encrypted one.
    Secure(Box<Secure<T>>),
}

/// An encrypted connection.
pub struct Secure<T> {
    inner: T,
    peer: Peer,
    sealed: Arc<Sealed>,
    /// Decrypted bytes not consumed.
    left: Left,
    has_more_to_do: bool,
    /// Encrypted output of the call that asked for a second writer, which sends it first.
    held: Vec<u8>,
}

impl<S: Service> Layer<S> {
    /// A service without encryption.
    pub fn plain(inner: S) -> Layer<S> {
        Layer { inner, tls: None }
    }

    /// A service with encrypted connections at some places. `refused` is told of each connection
    /// that is closed as it breaks the rules, and why.
    pub fn encrypted(
        inner: S,
        tls: Arc<Tls>,
        places: Vec<bool>,
        bounds: Bounds,
        refused: impl Fn(&Peer, &Error) + Send + Sync + 'static,
    ) -> Layer<S> {
        let tls = Encryption {
            tls,
            places,
            bounds,
            refused: Box::new(refused),
        };
        Layer {
            inner,
            tls: Some(tls),
        }
    }

    /// Encryption at a place, if there is any.
    fn encryption_at(&self, place: usize) -> Option<&Encryption> {
        let tls = self.tls.as_ref()?;
        let is_encrypted = tls.places.get(place).copied().unwrap_or(true);
        is_encrypted.then_some(tls)
    }

    fn serve_secure(
        &self,
        worker: &mut Worker<S::Worker>,
        secure: &mut Secure<S::Session>,
        input: &mut Input<'_>,
        output: &mut Output,
    ) -> Next {
        output.buffer().append(&mut secure.held);
        worker.plain.clear();
        // More has perhaps come while there was something to do.
        let mut may_receive = !input.bytes().is_empty();
        if !secure.has_more_to_do {
            match secure.sealed.receive(input, &mut worker.plain) {
                Ok(is_more) => may_receive = is_more,
                Err(error) => {
                    self.refuse(secure, &error);
                    secure.sealed.deliver(output.buffer());
                    return Next::Close;
                }
            }
        }
        let mut next = self.serve_plain(worker, secure);
        secure.has_more_to_do = next == Next::Again;
        if next == Next::More && may_receive {
            next = Next::Again;
        }
        if next == Next::More && secure.sealed.is_ended() {
            next = Next::Close;
        }
        secure.sealed.send(worker.output.bytes());
        worker.output.buffer().clear();
        if next == Next::Close {
            secure.sealed.end();
        }
        secure.sealed.deliver(output.buffer());
        if next == Next::Share {
            secure.held = mem::take(output.buffer());
        }
        next
    }

    /// Calls the service inside, if there is something for it.
    fn serve_plain(&self, worker: &mut Worker<S::Worker>, secure: &mut Secure<S::Session>) -> Next {
        let Worker {
            inner,
            plain,
            output,
        } = worker;
        if plain.is_empty() && !secure.has_more_to_do {
            return Next::More;
        }
        let is_ended = secure.sealed.is_ended();
        if secure.left.is_empty() {
            let mut input = Input::new(plain).ending(is_ended);
            let next = self.call(inner, &mut secure.inner, &mut input, output);
            secure.left.append(&plain[input.consumed()..]);
            return next;
        }
        secure.left.append(plain);
        let mut input = Input::new(secure.left.bytes()).ending(is_ended);
        let next = self.call(inner, &mut secure.inner, &mut input, output);
        let consumed = input.consumed();
        secure.left.consume(consumed);
        next
    }

    fn call(
        &self,
        worker: &mut S::Worker,
        session: &mut S::Session,
        input: &mut Input<'_>,
        output: &mut Output,
    ) -> Next {
        let next = self.inner.serve(worker, session, input, output);
        let is_stuck = next == Next::More && input.consumed() == 0;
        let is_full = |tls: &Encryption| input.bytes().len() >= tls.bounds.input_bytes;
        if is_stuck && self.tls.as_ref().is_some_and(is_full) {
            return match self.inner.too_long(worker, session, input, output) {
                Next::More if input.consumed() == 0 => Next::Close,
                next => next,
            };
        }
        next
    }

    #[cold]
    fn refuse(&self, secure: &Secure<S::Session>, error: &Error) {
        let Some(encryption) = &self.tls else {
            return;
        };
        if secure.sealed.is_handshaking() {
            encryption.tls.note_failure();
        }
        (encryption.refused)(&secure.peer, error);
    }
}

impl<S: Service> Service for Layer<S> {
    type Worker = Worker<S::Worker>;
    type Session = Session<S::Session>;

    fn worker(&self, number: usize) -> Self::Worker {
        Worker {
            inner: self.inner.worker(number),
            plain: Vec::new(),
            output: Output::new(self.tls.as_ref().map_or(0, |tls| tls.bounds.output_bytes)),
        }
    }

    fn open(&self, worker: &mut Self::Worker, peer: &Peer) -> Self::Session {
        let inner = self.inner.open(&mut worker.inner, peer);
        let Some(encryption) = self.encryption_at(peer.place) else {
            return Session::Plain(inner);
        };
        Session::Secure(Box::new(Secure {
            inner,
            peer: peer.clone(),
            sealed: Sealed::new(encryption.tls.connection()),
            left: Left::default(),
            has_more_to_do: false,
            held: Vec::new(),
        }))
    }

    #[inline]
    fn serve(
        &self,
        worker: &mut Self::Worker,
        session: &mut Self::Session,
        input: &mut Input<'_>,
        output: &mut Output,
    ) -> Next {
        match session {
            Session::Plain(session) => self.inner.serve(&mut worker.inner, session, input, output),
            Session::Secure(secure) => self.serve_secure(worker, secure, input, output),
        }
    }

    fn share(
        &self,
        worker: &mut Self::Worker,
        session: &mut Self::Session,
        writer: io::Result<SecondWriter>,
    ) {
        match session {
            Session::Plain(session) => self.inner.share(&mut worker.inner, session, writer),
            Session::Secure(secure) => {
                let writer = writer.map(|writer| {
                    secure.sealed.share(writer, mem::take(&mut secure.held));
                    SecondWriter::through(Second(Arc::clone(&secure.sealed)))
                });
                self.inner
                    .share(&mut worker.inner, &mut secure.inner, writer);
            }
        }
    }

    fn too_long(
        &self,
        worker: &mut Self::Worker,
        session: &mut Self::Session,
        input: &mut Input<'_>,
        output: &mut Output,
    ) -> Next {
        match session {
            Session::Plain(session) => {
                self.inner
                    .too_long(&mut worker.inner, session, input, output)
            }
            // A record is shorter than any input that is too long.
            Session::Secure(_) => Next::Close,
        }
    }

    fn is_amid(&self, session: &Self::Session) -> bool {
        match session {
            Session::Plain(session) => self.inner.is_amid(session),
            Session::Secure(secure) => {
                !secure.left.is_empty()
                    || secure.has_more_to_do
                    || self.inner.is_amid(&secure.inner)
            }
        }
    }

    fn close(&self, worker: &mut Self::Worker, session: Self::Session) {
        let inner = match session {
            Session::Plain(inner) => inner,
            Session::Secure(secure) => secure.inner,
        };
        self.inner.close(&mut worker.inner, inner);
    }

    fn refusal(&self) -> &[u8] {
        self.inner.refusal()
    }

    fn tick(&self) {
        self.inner.tick();
    }
}
