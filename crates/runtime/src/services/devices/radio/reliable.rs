//! Packets that are sent again until they are answered.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Condvar, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use crate::abi::Value;
use crate::external::Ticket;
use crate::services::devices;
use crate::sync::lock_std as lock;

/// How often a packet is sent, and how long each sending waits for the answer.
const TRIES: u32 = 6;
const PATIENCE: Duration = Duration::from_millis(50);

struct Unanswered {
    ticket: Ticket,
    packet: Vec<u8>,
    to: SocketAddr,
    tries_left: u32,
    next: Instant,
}

static UNANSWERED: Mutex<Option<HashMap<u32, Unanswered>>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

/// Completes the ticket with whether the packet, sent once already, gets an answer.
pub(super) fn expect(number: u32, packet: Vec<u8>, to: SocketAddr, ticket: Ticket) {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| devices::start_thread("radio repeats", run));
    let next = Instant::now() + PATIENCE;
    let entry = Unanswered {
        ticket,
        packet,
        to,
        tries_left: TRIES - 1,
        next,
    };
    lock(&UNANSWERED)
        .get_or_insert_default()
        .insert(number, entry);
    CHANGED.notify_one();
}

/// An answer has come.
pub(super) fn answered(number: u32) {
    let entry = lock(&UNANSWERED).get_or_insert_default().remove(&number);
    if let Some(entry) = entry {
        entry.ticket.complete(|_| Value::of_bool(true));
    }
}

fn run() {
    let mut unanswered = lock(&UNANSWERED);
    loop {
        let now = Instant::now();
        let map = unanswered.get_or_insert_default();
        let due = map
            .iter()
            .filter(|(_, entry)| entry.next <= now)
            .map(|(&number, _)| number);
        let due: Vec<u32> = due.collect();
        let mut lost = Vec::new();
        for number in due {
            let Some(entry) = map.get_mut(&number) else {
                continue;
            };
            if entry.tries_left > 0 {
                entry.tries_left -= 1;
                entry.next = now + PATIENCE;
                super::transmit(&entry.packet, entry.to);
            } else {
                lost.extend(map.remove(&number));
            }
        }
        let wait = map
            .values()
            .map(|entry| entry.next.saturating_duration_since(now))
            .min();
        if !lost.is_empty() {
            drop(unanswered);
            for entry in lost {
                entry.ticket.complete(|_| Value::of_bool(false));
            }
            unanswered = lock(&UNANSWERED);
            continue;
        }
        unanswered = match wait {
            None => CHANGED
                .wait(unanswered)
                .unwrap_or_else(PoisonError::into_inner),
            Some(time) => {
                CHANGED
                    .wait_timeout(unanswered, time)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
        };
    }
}
