//! `epoll`: the kernel keeps the set.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use hearth_sys::bell::Bell;
use hearth_sys::ready::{Interest, Ready, Reports, Trigger};

use super::{BELL, Poller, Waiters, Wake};
use crate::connection::{Flags, Waits};
use crate::options::Mechanism;

pub(crate) struct Epoll {
    ready: Ready,
    bell: Bell,
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
        let (ready, bell) = (Ready::new(1)?, Bell::new()?);
        ready.add(bell.as_fd(), BELL, Interest::Read)?;
        Ok(Epoll {
            ready,
            bell,
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

    fn remove(&self, of: BorrowedFd<'_>, _: u64) {
        // At worst it is not there.
        let _ = self.ready.remove(of);
    }

    fn wait(
        &self,
        reports: &mut Reports,
        time: Option<Duration>,
        mut each: impl FnMut(u64, Flags),
    ) -> bool {
        let mut is_rung = false;
        for report in self.ready.wait_shared(reports, time) {
            match report.key {
                BELL => is_rung = self.bell.hear(),
                key => each(key, report.into()),
            }
        }
        is_rung
    }
}

impl Wake for Epoll {
    fn ring(&self) {
        self.bell.ring();
    }
}
