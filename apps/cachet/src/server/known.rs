//! Connections as statistics and watchers see them.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use hearth_net::{Address, Peer};

const READS: u8 = 0;
const AMID: u8 = 1;
const WATCHES: u8 = 2;

/// A connection that has said something. Its thread writes, relaxed, what statistics read.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) id: u64,
    pub(super) peer: Peer,
    /// Second of its last command.
    served: AtomicU32,
    state: AtomicU8,
}

impl Known {
    pub(super) fn new(id: u64, peer: Peer, second: u32) -> Known {
        Known {
            id,
            peer,
            served: AtomicU32::new(second),
            state: AtomicU8::new(READS),
        }
    }

    /// Notes that it was served.
    #[inline]
    pub(super) fn note(&self, second: u32, is_amid: bool) {
        self.served.store(second, Ordering::Relaxed);
        if self.state.load(Ordering::Relaxed) != WATCHES {
            self.state
                .store(if is_amid { AMID } else { READS }, Ordering::Relaxed);
        }
    }

    /// Notes that it watches from now on.
    pub(super) fn note_watching(&self) {
        self.state.store(WATCHES, Ordering::Relaxed);
    }

    /// Second of its last command.
    pub(super) fn served(&self) -> u32 {
        self.served.load(Ordering::Relaxed)
    }

    /// Name of its state, as memcached has it.
    pub(super) fn state(&self) -> &'static str {
        match self.state.load(Ordering::Relaxed) {
            AMID => "conn_nread",
            WATCHES => "conn_watch",
            _ => "conn_read",
        }
    }

    /// The other end, for statistics.
    pub(super) fn address(&self) -> String {
        name_of(&self.peer.address)
    }

    /// The other end, for watchers.
    pub(super) fn facts(&self) -> String {
        match &self.peer.address {
            Address::Tcp(address) => {
                format!(
                    "rip={} rport={} transport=tcp",
                    address.ip(),
                    address.port()
                )
            }
            Address::Unix => "rip= rport=0 transport=local".into(),
        }
    }
}

/// A name of an address, as statistics show it.
pub(super) fn name_of(address: &Address) -> String {
    match address {
        Address::Tcp(address) if address.is_ipv6() => format!("tcp6:{address}"),
        Address::Tcp(address) => format!("tcp:{address}"),
        Address::Unix => "unix".into(),
    }
}
