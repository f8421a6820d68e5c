//! Adaptive: as sharded, with threads for every mechanism, of which some have the connections and
//! the others sleep. See `docs/internals/adaptive.md`.
//!
//! | field | writer | reader |
//! |---|---|---|
//! | `control` | the governor, under its lock | acceptor, `adapted`: under its lock |
//! | `wakeup` | stopping thread, under `control`'s lock | the governor, waiting with that lock |

mod control;
mod governor;
mod survey;

#[cfg(test)]
mod tests;

use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use socket2::Socket;

use super::crew::{Crew, Post};
use super::threads::{Adapted, Starting, Threads};
use super::{rings, sharded};
use crate::choices::Mechanism;
use crate::common::Common;
use crate::connection::Connection;
use crate::poller::{Epoll, Select};
use crate::service::{Peer, Service};
use hearth_sys::threading::lock_std;

use control::Control;
use governor::Governor;

pub(super) struct Shared {
    control: Mutex<Control>,
    wakeup: Condvar,
}

pub(crate) struct Adaptive<S: Service> {
    crew: Arc<Crew<S::Session>>,
    shared: Arc<Shared>,
    common: Arc<Common<S>>,
}

/// A thread to be started, by its mechanism.
enum Desk<T> {
    Epoll(sharded::ByPoller<Epoll, T>),
    Select(sharded::ByPoller<Select, T>),
    Ring(Box<rings::ByRing<T>>),
}

impl<T: Send + 'static> Desk<T> {
    fn new<S: Service<Session = T>>(
        common: &Common<S>,
        mechanism: Mechanism,
    ) -> io::Result<Desk<T>> {
        Ok(match mechanism {
            Mechanism::Uring => Desk::Ring(rings::desk(common)?.into()),
            Mechanism::Select => Desk::Select(sharded::desk(mechanism)?),
            Mechanism::Level | Mechanism::Edge => Desk::Epoll(sharded::desk(mechanism)?),
        })
    }

    fn post(&self) -> Arc<dyn Post<T>> {
        match self {
            Desk::Epoll(desk) => desk.clone(),
            Desk::Select(desk) => desk.clone(),
            Desk::Ring(by_ring) => by_ring.desk.clone(),
        }
    }

    fn start<S: Service<Session = T>>(
        self,
        common: &Arc<Common<S>>,
        number: usize,
        crew: &Arc<Crew<T>>,
    ) -> io::Result<JoinHandle<()>> {
        match self {
            Desk::Epoll(desk) => sharded::start(common, number, desk, crew),
            Desk::Select(desk) => sharded::start(common, number, desk, crew),
            Desk::Ring(by_ring) => rings::start(common, number, *by_ring, crew),
        }
    }
}

impl<S: Service> Adaptive<S> {
    pub(crate) fn start(
        common: &Arc<Common<S>>,
        starting: &mut Starting,
    ) -> io::Result<Adaptive<S>> {
        let most = common.options.threads;
        let desks: Vec<Desk<S::Session>> = common
            .mechanisms
            .iter()
            .flat_map(|mechanism| std::iter::repeat_n(*mechanism, most))
            .map(|mechanism| Desk::new(common, mechanism))
            .collect::<io::Result<_>>()?;
        let crew = Crew::new(desks.iter().map(Desk::post).collect());
        for (number, desk) in desks.into_iter().enumerate() {
            starting.add(desk.start(common, number, &crew));
        }
        let governor = Governor::new(common, &crew);
        let shared = Arc::new(Shared {
            control: Mutex::new(governor.control(&common.mechanisms, most)),
            wakeup: Condvar::new(),
        });
        starting.add(governor.start(&shared));
        Ok(Adaptive {
            crew,
            shared,
            common: common.clone(),
        })
    }
}

impl<S: Service> Threads<S> for Adaptive<S> {
    fn adopt(&self, socket: Socket, peer: Peer, second: u32) -> io::Result<()> {
        // Under the lock, so that no connection comes to a thread after its order to give all away.
        let control = lock_std(&self.shared.control);
        let posts = &self.crew.posts[control.active()];
        if let Some(post) = posts.iter().min_by_key(|post| post.held()) {
            post.put(vec![Connection::new(socket, peer, second)]);
        }
        Ok(())
    }

    fn sweep(&self) {
        self.crew.wake_all();
    }

    fn wake(&self) {
        self.crew.wake_all();
        // Under the lock: the governor has not looked yet, or waits.
        let _control = lock_std(&self.shared.control);
        self.shared.wakeup.notify_all();
    }

    fn adapted(&self) -> Option<Adapted> {
        let control = lock_std(&self.shared.control);
        let way = control.way();
        Some(Adapted {
            threads: way.threads,
            mechanism: self.common.mechanisms[way.kind],
            spins: way.spins,
            why: control.explain(),
        })
    }

    fn take_all(&self) -> Vec<Connection<S::Session>> {
        self.crew.take_all()
    }
}
