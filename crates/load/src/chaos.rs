//! Misbehaving clients beside those that are measured: they die in the middle of a request, send
//! halves of requests and noise, ask for much and read slowly.
//!
//! What they write must never be seen. Their half writes carry the version that is never written
//! ([`crate::model::NEVER`]), so a server that stores half a value is caught by the next reader.

use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hearth_sys::descriptor::break_on_close;

use crate::content::Content;
use crate::keys::KeyText;
use crate::model::NEVER;
use crate::plan::LoadPlan;
use crate::random::Random;
use crate::target::{Stream, Target};

/// Number of clients at a time.
const CLIENTS: usize = 32;
/// Number of requests that a client makes whose replies it reads slowly.
const GREEDY: usize = 200;
const CONNECT_WITHIN: Duration = Duration::from_millis(500);
/// Pause between two rounds, so that the measured clients get most of the server.
const PAUSE: Duration = Duration::from_millis(2);

/// Counts of misbehaviour, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Did {
    /// Half a write, after which the connection broke.
    pub half_writes: u64,
    /// Half a line, after which the connection broke or stayed open for a while.
    pub half_lines: u64,
    /// Bytes without a meaning.
    pub noise: u64,
    /// Many requests, whose replies are read slowly or not at all.
    pub slow: u64,
    /// Connections refused by the server or the system.
    pub refused: u64,
}

impl fmt::Display for Did {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "chaos: {} clients died in a write, {} in a line, {} sent noise, {} read slowly, {} were \
             not let in",
            self.half_writes, self.half_lines, self.noise, self.slow, self.refused
        )
    }
}

/// Misbehaving clients at work.
#[derive(Debug)]
pub struct Chaos {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Did>,
}

impl Chaos {
    /// Starts the clients against a server, with keys of the plan.
    pub fn begin(target: Target, plan: LoadPlan) -> Chaos {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = {
            let stop = Arc::clone(&stop);
            thread::spawn(move || Mob::new(target, &plan).run(&stop))
        };
        Chaos { stop, thread }
    }

    /// Stops the clients and returns what they did.
    pub fn end(self) -> Did {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

struct Mob {
    target: Target,
    plan: LoadPlan,
    content: Content,
    key_text: KeyText,
    random: Random,
    /// Connections left open for a while.
    staying: Vec<Stream>,
    did: Did,
}

impl Mob {
    fn new(target: Target, plan: &LoadPlan) -> Mob {
        let (_, value_most) = plan.value_sizes.bounds();
        Mob {
            target,
            content: Content::new(value_most),
            key_text: KeyText::new(&plan.prefix, plan.keys),
            random: Random::new(plan.seed ^ 0x006d_6f62),
            plan: plan.clone(),
            staying: Vec::with_capacity(CLIENTS),
            did: Did::default(),
        }
    }

    fn run(mut self, stop: &AtomicBool) -> Did {
        while !stop.load(Ordering::Relaxed) {
            match self.target.connect(CONNECT_WITHIN) {
                Ok(stream) => self.misbehave(stream),
                Err(_) => self.did.refused += 1,
            }
            self.read_a_little();
            thread::sleep(PAUSE);
        }
        self.did
    }

    /// Has one client misbehave once. Errors are expected.
    fn misbehave(&mut self, mut stream: Stream) {
        let key = self.random.below(self.plan.keys);
        let mut bytes = Vec::new();
        let what = self.random.below(4);
        match what {
            0 => {
                self.did.half_writes += 1;
                self.write_of(key, &mut bytes);
                bytes.truncate(self.cut(bytes.len()));
            }
            1 => {
                self.did.half_lines += 1;
                self.read_of(key, &mut bytes);
                bytes.truncate(self.cut(bytes.len() - 1));
            }
            2 => {
                self.did.noise += 1;
                let length = self.random.below(5000);
                // No newline: a line of noise could by chance be a request.
                bytes.extend((0..length).map(|_| match self.random.number() as u8 {
                    b'\n' | b'\r' => 0x80,
                    byte => byte,
                }));
            }
            _ => {
                self.did.slow += 1;
                for _ in 0..GREEDY {
                    let key = self.random.below(self.plan.keys);
                    self.read_of(key, &mut bytes);
                }
            }
        }
        let _ = stream.write(&bytes);
        if what == 3 || self.random.below(4) == 0 {
            if self.staying.len() == CLIENTS {
                let place = self.random.below(CLIENTS as u64) as usize;
                break_off(self.staying.swap_remove(place));
            }
            self.staying.push(stream);
        } else {
            break_off(stream);
        }
    }

    /// Chooses where to cut: at least one byte, not all.
    fn cut(&mut self, length: usize) -> usize {
        1 + self.random.below(length.max(2) as u64 - 1) as usize
    }

    fn key(&mut self, key: u64) -> Vec<u8> {
        let mut text = Vec::new();
        let size = self.plan.key_sizes.of_key(key);
        self.key_text.append(key, size, &mut text);
        text
    }

    fn read_of(&mut self, key: u64, bytes: &mut Vec<u8>) {
        let text = self.key(key);
        self.plan.protocol.get(&text, bytes);
    }

    fn write_of(&mut self, key: u64, bytes: &mut Vec<u8>) {
        let text = self.key(key);
        let size = self.plan.value_sizes.of_value(key, NEVER);
        self.plan.protocol.set(&text, size, bytes);
        self.content.append(key, NEVER, size, bytes);
    }

    /// Reads, now and then, some of the replies on connections that stay open.
    fn read_a_little(&mut self) {
        let mut bytes = [0; 1000];
        for stream in &mut self.staying {
            if self.random.below(8) == 0 {
                let _ = stream.read(&mut bytes);
            }
        }
    }
}

/// Breaks a connection as a dying process does.
fn break_off(stream: Stream) {
    let _ = break_on_close(stream.fd());
    drop(stream);
}
