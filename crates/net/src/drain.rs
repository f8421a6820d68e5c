//! The end of a server: its threads are gone, and one thread does what is left.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hearth_sys::ready::{Interest, Ready};

use crate::connection::{Connection, Flags, Station, Waits};
use crate::counters::{Meter, Watching};
use crate::server::{Common, Stopped};
use crate::service::Service;

/// Answers what has come, sends what is not sent, closes; until the time is over.
pub(crate) fn drain<S: Service>(
    common: &Arc<Common<S>>,
    connections: Vec<Connection<S::Session>>,
    grace: Duration,
) -> Stopped {
    let mut stopped = Stopped { done: 0, cut: 0 };
    if connections.is_empty() {
        return stopped;
    }
    let until = Instant::now() + grace;
    let number = common.workers;
    let meter = Meter::new(&common.desks[number + 1], Watching::Nothing);
    let mut station = Station::new(
        &common.service,
        number,
        meter,
        &common.second,
        &common.options,
    );
    let mut ready = Ready::new(128).ok();
    let mut left = Vec::new();
    let mut close = |station: &mut Station<'_, S>, connection: Connection<S::Session>, is_done| {
        match is_done {
            true => stopped.done += 1,
            false => stopped.cut += 1,
        }
        station.close(connection);
        common.gone();
    };
    for mut connection in connections {
        match step(&mut connection, &mut station, Flags::READ, until) {
            Some(is_done) => close(&mut station, connection, is_done),
            None => {
                if let Some(ready) = &ready {
                    // One that cannot be waited for is cut at the end.
                    let _ = ready.add(
                        connection.socket.as_fd(),
                        left.len() as u64,
                        interest(&connection),
                    );
                }
                left.push(Some(connection));
            }
        }
    }
    let mut count = left.len();
    let mut reports = Vec::new();
    while let Some(ready) = ready.as_mut().filter(|_| count > 0) {
        let Some(time) = until
            .checked_duration_since(Instant::now())
            .filter(|time| !time.is_zero())
        else {
            break;
        };
        reports.extend(ready.wait(Some(time)));
        for report in reports.drain(..) {
            let place = &mut left[report.key as usize];
            let Some(connection) = place else { continue };
            let flags = Flags::from(report);
            let ends = step(connection, &mut station, flags, until);
            if let (Some(is_done), Some(connection)) = (ends, place.take_if(|_| ends.is_some())) {
                // A copy of its descriptor elsewhere would keep it in the set.
                let _ = ready.remove(connection.socket.as_fd());
                close(&mut station, connection, is_done);
                count -= 1;
            } else if let Some(connection) = place {
                let now = interest(connection);
                let _ = ready.change(connection.socket.as_fd(), report.key, now);
            }
        }
    }
    for connection in left.into_iter().flatten() {
        close(&mut station, connection, false);
    }
    stopped
}

fn interest<T>(connection: &Connection<T>) -> Interest {
    match connection.armed {
        Waits::ToWrite => Interest::Write,
        _ => Interest::Read,
    }
}

/// One connection's next step: nothing if it is to go on, true if all was done, false if it broke.
fn step<S: Service>(
    connection: &mut Connection<S::Session>,
    station: &mut Station<'_, S>,
    flags: Flags,
    until: Instant,
) -> Option<bool> {
    let mut flags = flags;
    loop {
        let waits = connection.drive(station, flags);
        flags = Flags::default();
        connection.armed = waits;
        match waits {
            Waits::ForEver => return Some(connection.is_idle(station.service)),
            Waits::ToRead if connection.is_idle(station.service) => return Some(true),
            Waits::ToRead | Waits::ToWrite => return None,
            Waits::ForTurn if Instant::now() >= until => return Some(false),
            Waits::ForTurn => {}
        }
    }
}
