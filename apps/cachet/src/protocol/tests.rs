//! The protocols: examples, and comparison with memcached itself.

#[allow(clippy::print_stderr, reason = "it says why it does nothing")]
mod beside;
mod bounds;
mod examples;
mod grammar;

use hearth_sys::clock::Clock as Ticks;

use super::About;
use super::{Session, Then};
use crate::store::counters::Counters;
use crate::store::{AllCounters, Settings, Store, Worker};

/// A server of which there are only its counters.
struct Alone(AllCounters);

impl About for Alone {
    fn counters(&self) -> Counters {
        self.0.sum()
    }
    fn reset_counters(&self) {
        self.0.reset();
    }
}

/// The state of a connection once everything was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    Amid,
    Closed,
}

/// One server, with one connection after the other.
struct Bench {
    store: Store,
    worker: Worker,
    about: Alone,
    /// The longest answer of one call, in bytes.
    most: usize,
}

impl Bench {
    /// With one lock, so that values get consecutive numbers, as in memcached.
    fn new() -> Bench {
        Bench::with(Settings::default())
    }

    fn with(settings: Settings) -> Bench {
        let settings = Settings {
            lock_power: 0,
            hash_power: 4,
            ..settings
        };
        let about = Alone(AllCounters::default());
        let worker = Worker::new(about.0.one_more());
        let store = Store::new(settings, Ticks::monotonic()).expect("there is memory");
        Bench {
            store,
            worker,
            about,
            most: 0,
        }
    }

    /// Sends `pieces` over one connection and returns the answer, and whether the connection was
    /// closed or waits for the rest of a value.
    fn talk<'a>(&mut self, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<u8>, End) {
        let (mut session, mut out, mut waiting) = (Session::new(), Vec::new(), Vec::new());
        let mut all = Vec::new();
        for piece in pieces {
            waiting.extend_from_slice(piece);
            loop {
                let use_of = (&self.store, &mut self.worker, &self.about as &dyn About);
                let served = session.serve(use_of, &waiting, 3, &mut out);
                waiting.drain(..served.consumed);
                // All output is sent before the next call.
                self.most = self.most.max(out.len());
                all.append(&mut out);
                match served.then {
                    Then::More => break,
                    Then::Again => {}
                    Then::Watch(_) => {
                        all.extend_from_slice(b"OK\r\n");
                        break;
                    }
                    Then::Close | Then::Stop { .. } => {
                        session.end(&mut self.worker);
                        return (all, End::Closed);
                    }
                }
            }
        }
        let end = if session.is_amid() {
            End::Amid
        } else {
            End::Open
        };
        session.end(&mut self.worker);
        (all, end)
    }

    fn says(&mut self, sent: &str) -> String {
        String::from_utf8_lossy(&self.talk([sent.as_bytes()]).0).into_owned()
    }
}
