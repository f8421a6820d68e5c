//! Leader/Followers: all threads are alike; the one that leads waits for one event and lets the next lead before it works.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use socket2::Socket;

use super::shared::{After, Shared};
use super::{Threads, spawn};
use crate::connection::Connection;
use crate::counters::{Operation, add};
use crate::poller::Poller;
use crate::server::{Common, locked};
use crate::service::{Peer, Service};

pub(crate) struct Leader<P, S: Service> {
    shared: Arc<Shared<P, S::Session>>,
    common: Arc<Common<S>>,
}

impl<P: Poller, S: Service> Leader<P, S> {
    pub(crate) fn start(
        common: &Arc<Common<S>>,
        threads: &mut Vec<JoinHandle<()>>,
    ) -> io::Result<Leader<P, S>> {
        let shared = Arc::new(Shared::<P, S::Session>::new(common)?);
        let lead = Arc::new(Mutex::new(()));
        for number in 0..common.options.threads {
            let (shared, lead) = (shared.clone(), lead.clone());
            threads.push(spawn(common, number, move |common, station| {
                let mut reports = shared.poller.reports(1);
                loop {
                    let leads = locked(&lead);
                    if common.is_stopping() {
                        return;
                    }
                    let begun = station.meter.begin();
                    let mut ready = None;
                    let is_rung = shared
                        .poller
                        .wait(&mut reports, None, |key, flags| ready = Some((key, flags)));
                    // Whoever works already hears of it.
                    let ready = ready.filter(|(key, flags)| shared.tell(*key, *flags));
                    station.meter.end(Operation::Obtain, begun);
                    drop(leads);
                    let counts = station.meter.counts();
                    add(&counts.waits, 1);
                    add(&counts.rung, u64::from(is_rung));
                    let Some((key, _)) = ready else { continue };
                    add(&counts.events, 1);
                    while shared.work(common, station, key) == After::Turn {}
                }
            })?);
        }
        Ok(Leader {
            shared,
            common: common.clone(),
        })
    }
}

impl<P: Poller, S: Service> Threads<S> for Leader<P, S> {
    fn adopt(&self, socket: Socket, peer: Peer) -> io::Result<()> {
        self.shared.adopt(socket, peer, self.common.second())
    }

    fn sweep(&self) {
        self.shared.sweep(&self.common);
    }

    fn wake(&self) {
        self.shared.poller.ring();
    }

    fn take_all(&self) -> Vec<Connection<S::Session>> {
        self.shared.take_all()
    }
}
