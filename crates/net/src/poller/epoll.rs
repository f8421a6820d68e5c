//! `epoll`: the kernel keeps the set.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use hearth_sys::epoll::{self, Interest, Reports, Trigger};
use hearth_sys::eventfd::EventFd;

use super::{Poller, WAKEUP, Waiters, Wake};
use crate::choices::Mechanism;
use crate::connection::{Flags, Waits};

pub(crate) struct Epoll {
    ready: epoll::Epoll,
    wakeup: EventFd,
    trigger: Trigger,
}

fn interest(waits: Waits) -> Interest {
    match waits {
        Waits::ToRead => Interest::Read,
        Waits::ToWrite => Interest::Write,
        Waits::ForTurn | Waits::ForEver => Interest::Nothing,
    }
}

impl Poller for Epoll {
    type Reports = Reports;

    fn new(mechanism: Mechanism, waiters: Waiters) -> io::Result<Epoll> {
        let trigger = match (mechanism, waiters) {
            (Mechanism::Edge, _) => Trigger::Edge,
            (_, Waiters::Owner) => Trigger::Level,
            _ => Trigger::Once,
        };
        let (ready, wakeup) = (epoll::Epoll::new(1)?, EventFd::new()?);
        ready.add(wakeup.as_fd(), WAKEUP, Interest::Read)?;
        Ok(Epoll {
            ready,
            wakeup,
            trigger,
        })
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.ready.as_raw_fd())
    }

    fn reports(&self, most: usize) -> Reports {
        Reports::new(most)
    }

    fn add(&self, of: BorrowedFd<'_>, key: u64) -> io::Result<()> {
        let interest = match self.trigger {
            // Both at once, so that it need never be changed.
            Trigger::Edge => Interest::ReadWrite,
            Trigger::Level | Trigger::Once => Interest::Read,
        };
        self.ready.add_triggered(of, key, interest, self.trigger)
    }

    fn settle(&self, of: BorrowedFd<'_>, key: u64, before: Waits, now: Waits) -> io::Result<bool> {
        let has_to = match self.trigger {
            Trigger::Edge => false,
            Trigger::Level => before != now,
            Trigger::Once => true,
        };
        if has_to {
            self.ready
                .change_triggered(of, key, interest(now), self.trigger)?;
        }
        Ok(has_to)
    }

    fn tells_meanwhile(&self) -> bool {
        self.trigger == Trigger::Edge
    }

    fn remove(&self, of: BorrowedFd<'_>) {
        // At worst it is not there.
        let _ = self.ready.remove(of);
    }

    fn wait(
        &self,
        reports: &mut Reports,
        time: Option<Duration>,
        mut each: impl FnMut(u64, Flags),
    ) -> bool {
        let mut is_woken = false;
        for report in self.ready.wait_shared(reports, time) {
            match report.key {
                WAKEUP => is_woken = self.wakeup.take(),
                key => each(key, report.into()),
            }
        }
        is_woken
    }
}

impl Wake for Epoll {
    fn wake(&self) {
        self.wakeup.notify();
    }
}
