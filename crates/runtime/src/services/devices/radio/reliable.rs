//! Resends packets until they are answered.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use crate::abi::Value;
use crate::exchange::external::Ticket;
use crate::exchange::timers;
use crate::ground::sync::lock_std as lock;

/// Number of times that a packet is sent, and the wait for the answer to each.
const TRIES: u32 = 6;
const PATIENCE: Duration = Duration::from_millis(50);

struct Unanswered {
    ticket: Ticket,
    packet: Vec<u8>,
    to: SocketAddr,
    tries_left: u32,
}

static UNANSWERED: Mutex<Option<HashMap<u32, Unanswered>>> = Mutex::new(None);

/// Completes the ticket with whether the packet, sent once already, gets an answer.
pub(super) fn expect(number: u32, packet: Vec<u8>, to: SocketAddr, ticket: Ticket) {
    let entry = Unanswered {
        ticket,
        packet,
        to,
        tries_left: TRIES - 1,
    };
    lock(&UNANSWERED)
        .get_or_insert_default()
        .insert(number, entry);
    repeat_later(number);
}

/// Takes an answer.
pub(super) fn answered(number: u32) {
    let entry = lock(&UNANSWERED).get_or_insert_default().remove(&number);
    if let Some(entry) = entry {
        entry.ticket.complete(|_| Value::of_bool(true));
    }
}

fn repeat_later(number: u32) {
    timers::call_at(timers::now() + PATIENCE, move || repeat(number));
}

/// Sends a packet again, or gives it up. An answered one is not in the table any more.
fn repeat(number: u32) {
    let mut unanswered = lock(&UNANSWERED);
    let unanswered_by_number = unanswered.get_or_insert_default();
    let Some(entry) = unanswered_by_number.get_mut(&number) else {
        return;
    };
    if entry.tries_left > 0 {
        entry.tries_left -= 1;
        super::transmit(&entry.packet, entry.to);
        drop(unanswered);
        repeat_later(number);
        return;
    }
    let lost = unanswered_by_number.remove(&number);
    drop(unanswered);
    if let Some(entry) = lost {
        entry.ticket.complete(|_| Value::of_bool(false));
    }
}
