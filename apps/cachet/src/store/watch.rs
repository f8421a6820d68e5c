//! Watchers: connections that are told what happens.
//!
//! While nobody watches, an event costs one relaxed load. While somebody does, an event is written
//! as a line into a buffer of each watcher, under one lock, and a thread of its own sends the
//! buffers. So a slow watcher delays nobody: what does not fit its buffer is dropped and counted.
//!
//! | field | writer | reader |
//! |---|---|---|
//! | `wanted` | under the lock | all, relaxed: they may miss what is just happening |
//! | `inner` | under the lock | under the lock |
//! | counters | under the lock | all, relaxed |

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::counters::Counter;

/// Bytes of lines that may wait for one watcher, as in memcached (`watcher_logbuf_size`).
pub const WAITING_MAX: usize = 256 << 10;
/// Time between two attempts to write to a watcher that does not read.
const RETRY: Duration = Duration::from_millis(10);

/// Topics of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Topics(u32);

impl Topics {
    /// Items asked for.
    pub const FETCHERS: Topics = Topics(1);
    /// Items stored, or refused.
    pub const MUTATIONS: Topics = Topics(2);
    /// Items evicted.
    pub const EVICTIONS: Topics = Topics(4);
    /// Connections opened and closed.
    pub const CONNEVENTS: Topics = Topics(8);
    /// Passes of the crawler.
    pub const SYSEVENTS: Topics = Topics(16);

    /// Parses a name. Those of events that cannot happen here mean no topic.
    #[must_use]
    pub fn named(name: &[u8]) -> Option<Topics> {
        Some(match name {
            b"fetchers" => Topics::FETCHERS,
            b"mutations" => Topics::MUTATIONS,
            b"evictions" => Topics::EVICTIONS,
            b"connevents" => Topics::CONNEVENTS,
            b"sysevents" => Topics::SYSEVENTS,
            b"rawcmds" | b"proxyreqs" | b"proxyevents" | b"proxyuser" => Topics(0),
            _ => return None,
        })
    }

    /// These topics and others.
    #[must_use]
    pub fn with(self, others: Topics) -> Topics {
        Topics(self.0 | others.0)
    }

    fn has(self, others: Topics) -> bool {
        self.0 & others.0 != 0
    }
}

/// A place to write lines to.
pub trait Sink: Send + Sync {
    /// Writes what can go at once. Returns the number of bytes.
    ///
    /// # Errors
    /// None can go now, or never again.
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;
}

struct Watcher {
    id: u64,
    topics: Topics,
    sink: Arc<dyn Sink>,
    waiting: Vec<u8>,
    /// Bytes with the thread that sends.
    under_way: usize,
    /// Lines dropped since the last that was not.
    skipped: u64,
}

#[derive(Default)]
struct Inner {
    watchers: Vec<Watcher>,
    last_event: u64,
    is_served: bool,
}

/// All watchers of a store.
#[derive(Default)]
pub struct Watch {
    wanted: AtomicU32,
    inner: Mutex<Inner>,
    changed: Condvar,
    /// Events that somebody watched.
    pub events: Counter,
    /// Lines put into buffers.
    pub sent: Counter,
    /// Lines dropped because a watcher was slow.
    pub skipped: Counter,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if somebody watches a topic.
    #[inline]
    #[must_use]
    pub fn wants(&self, topic: Topics) -> bool {
        self.wanted.load(Ordering::Relaxed) & topic.0 != 0
    }

    /// Number of watchers.
    #[must_use]
    pub fn watchers(&self) -> usize {
        self.lock().watchers.len()
    }

    /// Adds a watcher, who is first told `OK`. Starts the thread that sends, if there is none.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn add(self: &Arc<Watch>, id: u64, topics: Topics, sink: Arc<dyn Sink>) -> io::Result<()> {
        let mut inner = self.lock();
        if !inner.is_served {
            let watch = Arc::clone(self);
            thread::Builder::new()
                .name("cachet-watch".into())
                .spawn(move || watch.serve())?;
            inner.is_served = true;
        }
        inner.watchers.push(Watcher {
            id,
            topics,
            sink,
            waiting: b"OK\r\n".to_vec(),
            under_way: 0,
            skipped: 0,
        });
        self.note(&inner);
        Ok(())
    }

    /// Removes a watcher.
    pub fn remove(&self, id: u64) {
        let mut inner = self.lock();
        inner.watchers.retain(|watcher| watcher.id != id);
        self.note(&inner);
    }

    /// Removes all watchers, which ends the thread that sends.
    pub fn end(&self) {
        let mut inner = self.lock();
        inner.watchers.clear();
        self.note(&inner);
    }

    fn note(&self, inner: &Inner) {
        let all = inner
            .watchers
            .iter()
            .fold(0, |all, watcher| all | watcher.topics.0);
        self.wanted.store(all, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Tells those who watch a topic of an event, which `write` describes.
    #[cold]
    pub fn tell(&self, topic: Topics, write: impl FnOnce(&mut Vec<u8>)) {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let mut inner = self.lock();
        inner.last_event += 1;
        let (seconds, us) = (now.as_secs(), now.subsec_micros());
        let mut line = format!("ts={seconds}.{us:06} gid={} type=", inner.last_event).into_bytes();
        write(&mut line);
        line.push(b'\n');
        self.events.bump();
        for watcher in &mut inner.watchers {
            if watcher.topics.has(topic) {
                self.put(watcher, &line);
            }
        }
        self.changed.notify_all();
    }

    fn put(&self, watcher: &mut Watcher, line: &[u8]) {
        let said = match watcher.skipped {
            0 => String::new(),
            skipped => format!("skipped={skipped}\n"),
        };
        let bytes = watcher.under_way + watcher.waiting.len() + said.len() + line.len();
        if bytes > WAITING_MAX {
            watcher.skipped += 1;
            self.skipped.bump();
            return;
        }
        watcher.skipped = 0;
        watcher.waiting.extend_from_slice(said.as_bytes());
        watcher.waiting.extend_from_slice(line);
        self.sent.bump();
    }

    /// Sends until there is no watcher.
    fn serve(&self) {
        let mut inner = self.lock();
        while !inner.watchers.is_empty() {
            if inner
                .watchers
                .iter()
                .all(|watcher| watcher.waiting.is_empty())
            {
                inner = self
                    .changed
                    .wait(inner)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            drop(inner);
            let is_stuck = !self.send();
            inner = self.lock();
            if is_stuck && !inner.watchers.is_empty() {
                // Events would wake it at once, so it waits without them.
                drop(inner);
                thread::park_timeout(RETRY);
                inner = self.lock();
            }
        }
        inner.is_served = false;
    }

    /// Sends what can go at once. False if nothing could.
    fn send(&self) -> bool {
        let mut inner = self.lock();
        let work: Vec<_> = inner
            .watchers
            .iter_mut()
            .filter(|watcher| !watcher.waiting.is_empty())
            .map(|watcher| {
                let bytes = std::mem::take(&mut watcher.waiting);
                watcher.under_way = bytes.len();
                (watcher.id, Arc::clone(&watcher.sink), bytes)
            })
            .collect();
        drop(inner);
        let mut has_sent = false;
        for (id, sink, mut bytes) in work {
            let is_broken = match sink.try_write(&bytes) {
                Ok(count) => {
                    has_sent |= count > 0;
                    bytes.drain(..count);
                    false
                }
                Err(error) => !matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ),
            };
            if is_broken {
                // Its connection's end removes it, too, if this does not.
                self.remove(id);
                has_sent = true;
                continue;
            }
            let mut inner = self.lock();
            if let Some(watcher) = inner.watchers.iter_mut().find(|watcher| watcher.id == id) {
                bytes.append(&mut watcher.waiting);
                watcher.waiting = bytes;
                watcher.under_way = 0;
            }
        }
        has_sent
    }
}

/// Writes a key as watchers and lists show it: other bytes than letters, digits and `-._~` by their
/// numbers.
pub fn write_key(out: &mut Vec<u8>, key: &[u8]) {
    for &byte in key {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(byte);
        } else {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many bytes, and no more until told.
    #[derive(Default)]
    struct Slow {
        room: Mutex<usize>,
        got: Mutex<Vec<u8>>,
    }

    impl Sink for Slow {
        fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
            let mut room = self.room.lock().expect("no panic");
            if *room == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let count = bytes.len().min(*room);
            *room -= count;
            self.got
                .lock()
                .expect("no panic")
                .extend_from_slice(&bytes[..count]);
            Ok(count)
        }
    }

    fn text(slow: &Slow) -> String {
        String::from_utf8(slow.got.lock().expect("no panic").clone()).expect("text")
    }

    #[test]
    fn a_slow_watcher_loses_lines_and_is_told_how_many() {
        let watch = Arc::new(Watch::default());
        assert!(!watch.wants(Topics::FETCHERS));
        let (slow, fast) = (Arc::new(Slow::default()), Arc::new(Slow::default()));
        *fast.room.lock().expect("no panic") = usize::MAX;
        watch
            .add(1, Topics::FETCHERS, Arc::clone(&slow) as _)
            .expect("a thread");
        watch
            .add(2, Topics::MUTATIONS, Arc::clone(&fast) as _)
            .expect("a thread");
        assert!(watch.wants(Topics::FETCHERS) && !watch.wants(Topics::EVICTIONS));
        let long = vec![b'x'; 1000];
        for _ in 0..1000 {
            watch.tell(Topics::FETCHERS, |out| out.extend_from_slice(&long));
        }
        let skipped = watch.skipped.get();
        assert!((700..1000).contains(&skipped), "{skipped}");
        assert_eq!(watch.sent.get() + skipped, 1000);
        *slow.room.lock().expect("no panic") = usize::MAX;
        while !text(&slow).contains("gid=200 ") {
            thread::yield_now();
        }
        watch.tell(Topics::FETCHERS, |out| out.extend_from_slice(b"last"));
        while !text(&slow).ends_with("type=last\n") {
            thread::yield_now();
        }
        let told = text(&slow);
        assert!(told.starts_with("OK\r\nts="), "{}", &told[..100]);
        assert_eq!(told.matches("gid=").count() as u64, 1001 - skipped);
        assert!(
            told.contains(&format!("\nskipped={skipped}\nts=")),
            "it is told"
        );
        while text(&fast) != "OK\r\n" {
            thread::yield_now();
        }
        watch.remove(1);
        assert!(!watch.wants(Topics::FETCHERS));
        watch.end();
        while watch.lock().is_served {
            thread::yield_now();
        }
    }

    #[test]
    fn keys_are_shown_without_bytes_that_a_line_cannot_hold() {
        let mut out = Vec::new();
        write_key(&mut out, b"a-b_~.9 %\n\xff");
        assert_eq!(out, b"a-b_~.9%20%25%0A%FF");
    }
}
