//! Kernel threads at both ends of blocking channels.

use std::thread;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Channels of a library. An operation can only fail because the other end is gone, which is a bug.
pub trait Library {
    type Sender: Send + 'static;
    type Receiver: Send + 'static;

    fn channel() -> (Self::Sender, Self::Receiver);
    fn send(to: &Self::Sender, value: i32);
    fn receive(from: &Self::Receiver) -> i32;
}

pub struct Kanal;

impl Library for Kanal {
    type Sender = kanal::Sender<i32>;
    type Receiver = kanal::Receiver<i32>;

    fn channel() -> (Self::Sender, Self::Receiver) {
        kanal::bounded(0)
    }

    fn send(to: &Self::Sender, value: i32) {
        to.send(value).expect("a receiver");
    }

    fn receive(from: &Self::Receiver) -> i32 {
        from.recv().expect("a sender")
    }
}

pub struct Crossbeam;

impl Library for Crossbeam {
    type Sender = crossbeam_channel::Sender<i32>;
    type Receiver = crossbeam_channel::Receiver<i32>;

    fn channel() -> (Self::Sender, Self::Receiver) {
        crossbeam_channel::bounded(0)
    }

    fn send(to: &Self::Sender, value: i32) {
        to.send(value).expect("a receiver");
    }

    fn receive(from: &Self::Receiver) -> i32 {
        from.recv().expect("a sender")
    }
}

/// The checksum; None if there is no such row.
pub fn run<L: Library>(row: &str, rounds: i32) -> Option<i32> {
    match row {
        "ping-pong" => Some(ping_pong::<L>(rounds)),
        "stream" => Some(stream::<L>(rounds)),
        _ => None,
    }
}

/// Binds the calling thread to the place-th of the cores it may use. If that is refused, the
/// system keeps choosing.
fn keep_on(place: usize) {
    let this = Pid::from_raw(0);
    let Ok(allowed) = sched_getaffinity(this) else {
        return;
    };
    let cores: Vec<usize> = (0..CpuSet::count())
        .filter(|&core| allowed.is_set(core).unwrap_or(false))
        .collect();
    let mut one = CpuSet::new();
    if one.set(cores[place % cores.len()]).is_ok() {
        let _ = sched_setaffinity(this, &one);
    }
}

/// Runs it beside the calling thread, each on its core.
fn beside(run: impl FnOnce() + Send + 'static) {
    thread::spawn(move || {
        keep_on(1);
        run();
    });
}

fn ping_pong<L: Library>(rounds: i32) -> i32 {
    let (to_pong, ball) = L::channel();
    let (to_ping, back) = L::channel();
    beside(move || {
        for _ in 0..rounds {
            L::send(&to_ping, L::receive(&ball) + 1);
        }
    });
    keep_on(0);
    let mut value = 0;
    for _ in 0..rounds {
        L::send(&to_pong, value);
        value = L::receive(&back);
    }
    value
}

fn stream<L: Library>(rounds: i32) -> i32 {
    let (to, next) = L::channel();
    beside(move || {
        for i in 1..=rounds {
            L::send(&to, i);
        }
    });
    keep_on(0);
    (0..rounds).fold(0, |sum: i32, _| sum.wrapping_add(L::receive(&next)))
}

/// Four threads send, one waits for all of them with flume's own selector.
pub fn flume_selector(rounds: i32) -> i32 {
    let inlets = [(); 4].map(|()| {
        let (to, next) = flume::bounded(0);
        thread::spawn(move || {
            for i in 1..=rounds {
                assert!(to.send(i).is_ok(), "a receiver");
            }
        });
        next
    });
    let [a, b, c, d] = &inlets;
    let (mut sum, mut left) = (0i32, 4 * rounds);
    let mut open = [true; 4];
    while left > 0 {
        let mut selector = flume::Selector::new();
        for (which, inlet) in [a, b, c, d].into_iter().enumerate() {
            // A sender that has sent all is gone, and would be chosen for ever.
            if open[which] {
                selector = selector.recv(inlet, move |value| (which, value));
            }
        }
        match selector.wait() {
            (_, Ok(value)) => {
                sum = sum.wrapping_add(value);
                left -= 1;
            }
            (which, Err(_)) => open[which] = false,
        }
    }
    sum
}
