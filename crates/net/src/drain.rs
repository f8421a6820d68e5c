//! Draining a stopped server: its threads have ended, and one thread does what is left.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hearth_sys::epoll::{Epoll, Interest};

use crate::common::Common;
use crate::connection::{Connection, Flags, Station, Waits, part};
use crate::counters::{Meter, Watching};
use crate::service::Service;

/// Result of stopping a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Connections closed after all requests were answered.
    pub done: usize,
    /// Connections that were cut off or broke.
    pub cut: usize,
}

/// Answers pending input, sends pending output, and closes, until the time is over.
pub(crate) fn drain<S: Service>(
    common: &Arc<Common<S>>,
    connections: Vec<Connection<S::Session>>,
    grace: Duration,
) -> Stopped {
    if connections.is_empty() {
        return Stopped { done: 0, cut: 0 };
    }
    let (number, count) = (common.workers, connections.len());
    let meter = Meter::new(&common.desks[number + 1], Watching::Nothing);
    let mut drain = Drain {
        common,
        station: Station::new(
            &common.service,
            number,
            meter,
            &common.second,
            &common.options,
        ),
        ready: Epoll::new(128).ok(),
        left: connections.into_iter().map(Some).collect(),
        count,
        turns: VecDeque::new(),
        stopped: Stopped { done: 0, cut: 0 },
    };
    drain.run(Instant::now() + grace);
    drain.stopped
}

struct Drain<'a, S: Service> {
    common: &'a Common<S>,
    station: Station<'a, S>,
    /// Without it nothing is waited for, and connections not done at once are cut.
    ready: Option<Epoll>,
    left: Vec<Option<Connection<S::Session>>>,
    /// Number of connections left.
    count: usize,
    /// Connections with more to do, which take turns.
    turns: VecDeque<usize>,
    stopped: Stopped,
}

impl<S: Service> Drain<'_, S> {
    fn run(&mut self, until: Instant) {
        for key in 0..self.left.len() {
            let Some(connection) = &mut self.left[key] else {
                continue;
            };
            // Turns granted before are over.
            connection.has_turn = false;
            if let Some(ready) = &self.ready {
                let _ = ready.add(connection.fd(), key as u64, Interest::Nothing);
            }
            // Look at each once, however late it is.
            self.step(key, Flags::READ);
        }
        let mut reports = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.count == 0 {
                break;
            }
            let time = match self.turns.is_empty() {
                true => left,
                false => Duration::ZERO,
            };
            match self.ready.as_mut() {
                Some(ready) => reports.extend(ready.wait(Some(time))),
                None if self.turns.is_empty() => break,
                None => {}
            }
            for report in reports.drain(..) {
                let (key, flags) = (report.key as usize, Flags::from(report));
                match &mut self.left[key] {
                    Some(connection) if connection.has_turn => connection.hear(flags),
                    _ => self.step(key, flags),
                }
            }
            for _ in 0..self.turns.len() {
                if let Some(key) = self.turns.pop_front() {
                    self.step(key, Flags::default());
                }
            }
        }
        for key in 0..self.left.len() {
            self.close(key, false);
        }
    }

    /// Takes a connection's next step. One that wants another turn has it after the others.
    fn step(&mut self, key: usize, flags: Flags) {
        let Some(connection) = &mut self.left[key] else {
            return;
        };
        let waits = connection.drive(&mut self.station, flags);
        connection.armed = waits;
        connection.has_turn = waits == Waits::ForTurn;
        let is_idle = connection.is_idle(self.station.service);
        let interest = match waits {
            Waits::ForEver => return self.close(key, is_idle),
            Waits::ToRead if is_idle => return self.close(key, true),
            Waits::ToRead => Interest::Read,
            Waits::ToWrite => Interest::Write,
            Waits::ForTurn => {
                self.turns.push_back(key);
                Interest::Nothing
            }
        };
        if let Some(ready) = &self.ready {
            // A connection that cannot be waited for is cut at the end.
            let _ = ready.change(connection.fd(), key as u64, interest);
        }
    }

    fn close(&mut self, key: usize, is_done: bool) {
        let Some(connection) = self.left[key].take() else {
            return;
        };
        self.count -= 1;
        match is_done {
            true => self.stopped.done += 1,
            false => self.stopped.cut += 1,
        }
        if let Some(ready) = &self.ready {
            // A copy of its descriptor elsewhere would keep it in the set.
            let _ = ready.remove(connection.fd());
        }
        if is_done {
            part(&connection.socket);
        }
        self.station.close(connection);
        self.common.gone();
    }
}
