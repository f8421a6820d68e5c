//! Writes a recording, from all threads of a program.
//!
//! | what | written by | when |
//! |---|---|---|
//! | a component's words | the component's holder: its carrier, or the party that readies it | between its state changes |
//! | its ports' waits | the same | the same |
//! | ports' peers | the connecting thread | by compare-and-exchange, once |
//! | a worker's words | its thread | |
//! | chunks | see `pen.rs` | |
//! | names, remarks, failures | the holder of the lock `naming` | |
//! | a move | the thread that took its place by an addition | a place recurs after 4096 moves |
//! | sizes of values | the component's holder | |
//! | the rest of the header | any thread | by addition |

use std::fs::File;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use hearth_sys::clock::{Source, Stamps};
use hearth_sys::{Linux, Refused, shared};

use crate::layout::{
    Between, COLLECTED, COMPONENT, COMPONENTS, COMPONENTS_MAX, CYCLE, CYCLE_MAX, Carrying,
    FAILURE_WORDS, FAILURES, MAGIC, MOVE, MOVES, MOVES_MAX, NAME_WORDS_MAX, NAMES, NO_WORKER, PORT,
    PORTS, PORTS_MAX, Packed, REMARK, REMARK_BYTES, REMARKS, REMARKS_MAX, State, VERSION, WORKER,
    WORKERS, WORKERS_MAX, Wait, chunks_in, component, event, header, port, worker,
};
use crate::pen;

/// Writes events and totals.
#[derive(Debug)]
pub struct Recorder {
    words: &'static [AtomicU64],
    stamps: Stamps,
    naming: Mutex<()>,
}

/// Properties of a new component.
#[derive(Clone, Copy, Debug, Default)]
pub struct Made {
    /// From [`Recorder::name`].
    pub name: u32,
    /// Its number within its type, from 1.
    pub number: u32,
    /// Part of the language's environment.
    pub is_service: bool,
    /// The main sequence.
    pub is_main: bool,
    /// Number of its creator; 0 for none.
    pub creator: u64,
    /// Number of its ports.
    pub ports: u16,
}

impl Recorder {
    /// Begins a recording in a file that already has its final length.
    ///
    /// # Errors
    /// If the file is too short, or cannot be mapped.
    pub fn begin(file: &File, carrying: Carrying, workers: usize) -> Result<Recorder, Refused> {
        let refused = |error: &io::Error| {
            let next = "name another file";
            Refused::new("begin", "a recording".to_owned(), error, next)
        };
        let bytes = file.metadata().map_err(|error| refused(&error))?.len();
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let Some(chunks) = chunks_in(bytes / 8) else {
            return Err(refused(&io::ErrorKind::InvalidInput.into()));
        };
        let words = shared::map(file, bytes)?;
        let recorder = Recorder {
            words,
            stamps: Stamps::here(&Linux),
            naming: Mutex::new(()),
        };
        let begin = recorder.stamps.moment();
        let is_counter = recorder.stamps.source() == Source::Tsc;
        for (at, value) in [
            (header::VERSION, VERSION),
            (header::CHUNKS, chunks as u64),
            (header::SOURCE, u64::from(is_counter)),
            (header::BEGIN_TICKS, begin.ticks),
            (header::BEGIN_NS, begin.ns),
            (header::LATEST_TICKS, begin.ticks),
            (header::LATEST_NS, begin.ns),
            (header::CARRYING, u64::from(carrying == Carrying::Threads)),
            (header::WORKERS, workers.min(WORKERS_MAX) as u64),
            (header::PROCESS, u64::from(std::process::id())),
        ] {
            words[at].store(value, Ordering::Relaxed);
        }
        // Release: a reader that sees the magic number sees the rest.
        words[header::MAGIC].store(MAGIC, Ordering::Release);
        Ok(recorder)
    }

    /// The present time, in ticks.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        self.stamps.ticks()
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.words[at]
    }

    fn add(&self, at: usize, value: u64) {
        let word = self.word(at);
        // Only the present owner of the object writes it.
        let now = word.load(Ordering::Relaxed).wrapping_add(value);
        word.store(now, Ordering::Relaxed);
    }

    /// The words of a component, if it has any.
    fn component(&self, id: u64) -> Option<usize> {
        let nth = usize::try_from(id.checked_sub(1)?).ok()?;
        (nth < COMPONENTS_MAX).then_some(COMPONENTS + nth * COMPONENT)
    }

    fn event(&self, at: u64, kind: u64, id: u64, detail: u32) {
        let id = u32::try_from(id).unwrap_or(u32::MAX);
        let what = kind | u64::from(detail & 0xff_ffff) << 8 | u64::from(id) << 32;
        pen::write(self.words, at, what);
    }

    /// Stores the name of a type and of its ports, and returns a number for them; 0 when there is
    /// no room.
    pub fn name(&self, of: &str, ports: &[&str]) -> u32 {
        let mut text = of.replace('\0', "?");
        for port in ports {
            text.push('\0');
            text.push_str(port);
        }
        let _naming = self.naming.lock();
        let used = self.word(header::NAME_WORDS).load(Ordering::Relaxed) as usize;
        let length = 1 + text.len().div_ceil(8);
        if used + length > NAME_WORDS_MAX {
            return 0;
        }
        let first = NAMES + used;
        self.word(first).store(text.len() as u64, Ordering::Relaxed);
        self.write_text(first + 1, &text);
        // Release: a reader that sees the length sees the name.
        self.word(header::NAME_WORDS)
            .store((used + length) as u64, Ordering::Release);
        used as u32 + 1
    }

    /// Records that the calling thread created a component.
    pub fn made(&self, id: u64, made: &Made) {
        let at = self.now();
        self.word(header::MADE).fetch_max(id, Ordering::Relaxed);
        let creator = u32::try_from(made.creator).unwrap_or(u32::MAX);
        self.event(at, event::MADE, id, creator);
        let Some(base) = self.component(id) else {
            return;
        };
        let ports = u64::from(made.ports);
        let first = match ports {
            0 => 0,
            _ => self.word(header::PORTS).fetch_add(ports, Ordering::Relaxed),
        };
        let has_ports = ports > 0 && first + ports <= PORTS_MAX as u64;
        let of_ports = if has_ports { first | ports << 32 } else { 0 };
        let state = Packed {
            state: State::Made,
            worker: NO_WORKER,
            is_service: made.is_service,
            is_main: made.is_main,
        };
        let identity = u64::from(made.name) | u64::from(made.number) << 32;
        for (word, value) in [
            (component::IDENTITY, identity),
            (component::SINCE, at),
            (component::MADE_AT, at),
            (component::CREATOR, made.creator),
            (component::PORTS, of_ports),
        ] {
            self.word(base + word).store(value, Ordering::Relaxed);
        }
        // Release: a reader that sees the state sees the name.
        self.word(base + component::STATE)
            .store(state.word(), Ordering::Release);
    }

    /// Ends the present state of a component, and returns its duration. None if it has no words.
    fn leave_state(&self, id: u64, at: u64) -> Option<(usize, Packed, u64)> {
        let base = self.component(id)?;
        // Acquire pairs with the Release of the last change.
        let packed = Packed::of_word(self.word(base + component::STATE).load(Ordering::Acquire))?;
        let since = self
            .word(base + component::SINCE)
            .swap(at, Ordering::Relaxed);
        let total = match packed.state {
            State::Running => component::RUNNING,
            State::Ready => component::READY,
            State::Waiting(_) => component::WAITING,
            State::Made | State::Ended => return Some((base, packed, 0)),
        };
        // Clocks of two cores may differ by some ticks.
        let took = at.saturating_sub(since);
        self.add(base + total, took);
        if packed.state == State::Running {
            self.ran_at(base, packed.worker, took);
        }
        if let State::Waiting(wait) = packed.state
            && let Some(place) = self.port_of(base, wait.port())
        {
            self.add(place + port::WAITS, 1);
            self.add(place + port::WAITED, took);
        }
        Some((base, packed, took))
    }

    /// Updates the place where it mostly runs, as a majority vote: a place gains the time run there
    /// and loses the time run elsewhere, so one with more than half of the time remains.
    fn ran_at(&self, base: usize, worker: u16, took: u64) {
        let place = match worker {
            NO_WORKER => self.word(base + component::SEEN_ON).load(Ordering::Relaxed),
            worker => u64::from(worker) + 1,
        };
        let mostly = self.word(base + component::MOSTLY);
        let lead = self.word(base + component::LEAD);
        let before = lead.load(Ordering::Relaxed);
        let now = match mostly.load(Ordering::Relaxed) == place {
            true => before + took,
            false if took <= before => before - took,
            false => {
                mostly.store(place, Ordering::Relaxed);
                took - before
            }
        };
        lead.store(now, Ordering::Relaxed);
    }

    fn port_of(&self, base: usize, port: Option<u16>) -> Option<usize> {
        let of_ports = self.word(base + component::PORTS).load(Ordering::Relaxed);
        let port = u64::from(port?);
        let place = (of_ports & 0xffff_ffff) + port;
        (port < of_ports >> 32).then_some(PORTS + place as usize * PORT)
    }

    fn enter_state(&self, base: usize, packed: Packed) {
        self.word(base + component::STATE)
            .store(packed.word(), Ordering::Release);
    }

    /// Records that a new or waiting component became ready. Ignored for one that is ready or runs,
    /// so it may be called twice. `by` is the number of the component that caused it, or 0.
    pub fn ready(&self, id: u64, at: u64, by: u64) {
        let by = u32::try_from(by)
            .ok()
            .filter(|by| by >> 24 == 0)
            .unwrap_or(0);
        let Some(base) = self.component(id) else {
            return self.event(at, event::READY, id, by);
        };
        let state = self.word(base + component::STATE).load(Ordering::Acquire);
        let waits = Packed::of_word(state)
            .is_some_and(|packed| matches!(packed.state, State::Made | State::Waiting(_)));
        if !waits {
            return;
        }
        self.event(at, event::READY, id, by);
        if let Some((base, packed, _)) = self.leave_state(id, at) {
            let state = State::Ready;
            self.enter_state(base, Packed { state, ..packed });
        }
    }

    /// Records that a component starts to run, on a worker or [`NO_WORKER`].
    pub fn runs(&self, id: u64, worker: u16, at: u64) {
        self.event(at, event::RUNS, id, u32::from(worker));
        if let Some((base, packed, _)) = self.leave_state(id, at) {
            self.add(base + component::RUNS, 1);
            let state = State::Running;
            self.enter_state(
                base,
                Packed {
                    state,
                    worker,
                    ..packed
                },
            );
        }
    }

    /// Records that a component leaves its worker while it could continue.
    pub fn stands_by(&self, id: u64, at: u64) {
        self.event(at, event::READY, id, 0);
        if let Some((base, packed, _)) = self.leave_state(id, at) {
            let state = State::Ready;
            self.enter_state(base, Packed { state, ..packed });
        }
    }

    /// Records that a component's code has returned, and waits. Returns the ticks that it ran since
    /// it was resumed.
    pub fn waits(&self, id: u64, heap: u32, wait: Wait, at: u64) -> u64 {
        self.event(at, event::WAITS, id, wait.packed());
        let left = self.leave_state(id, at);
        if let Some((base, packed, _)) = left {
            self.word(base + component::HEAP)
                .store(u64::from(heap), Ordering::Relaxed);
            self.word(base + component::WAITED_FOR)
                .store(u64::from(wait.packed()), Ordering::Relaxed);
            let state = State::Waiting(wait);
            self.enter_state(base, Packed { state, ..packed });
        }
        left.map_or(0, |(_, _, took)| took)
    }

    /// Records that a component has ended. Returns the ticks that it ran since it was resumed.
    pub fn ended(&self, id: u64, at: u64) -> u64 {
        self.event(at, event::ENDED, id, 0);
        let left = self.leave_state(id, at);
        if let Some((base, packed, _)) = left {
            self.word(base + component::ENDED_AT)
                .store(at, Ordering::Relaxed);
            let state = State::Ended;
            self.enter_state(base, Packed { state, ..packed });
        }
        left.map_or(0, |(_, _, took)| took)
    }

    /// Records that a component has moved from one worker to another.
    pub fn moved(&self, id: u64, from: u16, to: u16) {
        let between = Between::new(usize::from(from), usize::from(to));
        self.note_move(event::MOVED, id, between);
        if let Some(base) = self.component(id) {
            self.add(base + component::MOVES, 1);
        }
    }

    /// Records the core of a component's own thread, which calls.
    pub fn on_core(&self, id: u64, core: usize) {
        let Some(base) = self.component(id) else {
            return;
        };
        let seen = self.word(base + component::SEEN_ON);
        if let Some(from) = changed(seen, core) {
            self.note_move(event::THREAD_MOVED, id, Between::new(from, core));
            self.add(base + component::MOVES, 1);
        }
    }

    /// Records the core of a worker's thread, which calls.
    pub fn worker_on_core(&self, index: usize, core: usize) {
        if index >= WORKERS_MAX {
            return;
        }
        let base = WORKERS + index * WORKER;
        if let Some(from) = changed(self.word(base + worker::SEEN_ON), core) {
            let between = Between::new(from, core);
            self.note_move(event::WORKER_MOVED, index as u64, between);
            self.add(base + worker::MOVES, 1);
        }
    }

    #[cold]
    fn note_move(&self, kind: u64, id: u64, between: Between) {
        let at = self.now();
        self.event(at, kind, id, between.packed());
        let nth = self.word(header::MOVES).fetch_add(1, Ordering::Relaxed);
        let base = MOVES + nth as usize % MOVES_MAX * MOVE;
        let id = u32::try_from(id).unwrap_or(u32::MAX);
        // Taken by no writer while it changes.
        self.word(base + 1).store(0, Ordering::Relaxed);
        self.word(base).store(at, Ordering::Release);
        let what = kind | u64::from(between.packed()) << 8 | u64::from(id) << 32;
        self.word(base + 1).store(what, Ordering::Release);
    }

    /// Records a remark about the whole program. Texts beyond some hundred bytes are cut.
    pub fn remark(&self, text: &str) {
        let text = cut(text, REMARK_BYTES);
        let at = self.now();
        let _naming = self.naming.lock();
        let nth = self.word(header::REMARKS).load(Ordering::Relaxed);
        let base = REMARKS + nth as usize % REMARKS_MAX * REMARK;
        self.word(base).store(at, Ordering::Relaxed);
        self.word(base + 1)
            .store(text.len() as u64, Ordering::Relaxed);
        self.write_text(base + 2, text);
        // Release: a reader that sees the count sees the text.
        self.word(header::REMARKS).store(nth + 1, Ordering::Release);
        self.event(at, event::REMARK, 0, nth as u32);
    }

    /// Records a failure as it was printed. Texts beyond 32 KiB in all are cut.
    pub fn failure(&self, text: &str) {
        let _naming = self.naming.lock();
        let bytes = self.word(header::FAILURE_BYTES);
        let used = bytes.load(Ordering::Relaxed) as usize;
        let left = (FAILURE_WORDS * 8).saturating_sub(used + 1);
        if left == 0 {
            return;
        }
        let text = cut(text, left);
        let with_end = text
            .bytes()
            .map(|byte| if byte == 0 { b'?' } else { byte })
            .chain([0]);
        for (at, byte) in (used..).zip(with_end) {
            let word = self.word(FAILURES + at / 8);
            let mut bytes = word.load(Ordering::Relaxed).to_ne_bytes();
            bytes[at % 8] = byte;
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
        // Release: a reader that sees the length sees the text.
        bytes.store((used + text.len() + 1) as u64, Ordering::Release);
    }

    /// Records the components of a deadlock that wait for each other in a ring.
    pub fn cycle(&self, ids: &[u64]) {
        for (at, &id) in ids.iter().take(CYCLE_MAX).enumerate() {
            self.word(CYCLE + at).store(id, Ordering::Relaxed);
        }
        self.word(header::CYCLE)
            .store(ids.len() as u64, Ordering::Release);
    }

    /// Records a collection of components that nobody could wake: how many it ended, the
    /// nanoseconds that it took, and the most for which it held up a worker. With a remark, unless
    /// there were none.
    pub fn collected(&self, components: u64, ns: u64, held_ns_max: u64) {
        self.word(header::COLLECTING_HELD_NS)
            .fetch_max(held_ns_max, Ordering::Relaxed);
        self.add(header::COLLECTED, components);
        self.add(header::COLLECTING_NS, ns);
        self.add(header::COLLECTIONS, 1);
        if components > 0 {
            let ms = ns as f64 / 1e6;
            self.remark(&format!(
                "{COLLECTED}{components} components that nobody could wake, in {ms:.1} ms"
            ));
        }
    }

    fn write_text(&self, from: usize, text: &str) {
        for (nth, bytes) in text.as_bytes().chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.word(from + nth)
                .store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
    }

    /// Records the bytes of blocks in a component's heap, as seen by its present owner.
    pub fn heap(&self, id: u64, bytes: u64) {
        let Some(base) = self.component(id) else {
            return;
        };
        self.word(base + component::HEAP_LAST)
            .store(bytes, Ordering::Relaxed);
        let most = self.word(base + component::HEAP_BYTES);
        if most.load(Ordering::Relaxed) < bytes {
            most.store(bytes, Ordering::Relaxed);
        }
    }

    /// Records the heaps, by number, at the end: those of components that have not ended.
    pub fn heaps(&self, bytes_of: impl Fn(u32) -> Option<u64>) {
        let made = self.word(header::MADE).load(Ordering::Relaxed);
        for id in 1..=made.min(COMPONENTS_MAX as u64) {
            let Some(base) = self.component(id) else {
                continue;
            };
            let state = self.word(base + component::STATE).load(Ordering::Acquire);
            let is_over = Packed::of_word(state).is_none_or(|packed| packed.state == State::Ended);
            let number = self.word(base + component::HEAP).load(Ordering::Relaxed) as u32;
            if !is_over
                && number != 0
                && let Some(bytes) = bytes_of(number)
            {
                self.heap(id, bytes);
            }
        }
    }

    /// Records the bytes of blocks in the heap that all components share.
    pub fn shared_heap(&self, bytes: u64) {
        self.word(header::HEAP_SHARED)
            .store(bytes + 1, Ordering::Relaxed);
    }

    /// Records a port of a component that was just made; `value_bytes` is the size of all values
    /// there, if they have the same.
    pub fn port(&self, id: u64, port: u16, is_send: bool, value_bytes: Option<u32>) {
        if let Some(place) = self.place_of_port(id, port) {
            let kind = u64::from(value_bytes.unwrap_or(0)) | (1 + u64::from(is_send)) << 32;
            self.word(place + port::KIND).store(kind, Ordering::Relaxed);
        }
    }

    /// Whether sampling the size of a value at a port is useful: where values differ, and few are
    /// known or it is time again.
    pub fn wants_size(&self, id: u64, port: u16, is_time: bool) -> bool {
        const ENOUGH: u64 = 16;
        self.place_of_port(id, port).is_some_and(|place| {
            let word = |at| self.word(place + at).load(Ordering::Relaxed);
            word(port::KIND) as u32 == 0 && (is_time || word(port::SIZED) < ENOUGH)
        })
    }

    /// Records a sampled wait. A component that is about to be resumed has waited at a port with
    /// this outcome; the sample stands for this many such waits. `bytes` is the size of the value,
    /// if known.
    pub fn sampled(&self, id: u64, port: u16, stands_for: u64, bytes: Option<u64>) {
        let Some((base, place)) = self.component(id).zip(self.place_of_port(id, port)) else {
            return;
        };
        if let Some(bytes) = bytes {
            self.add(place + port::SIZED, 1);
            self.add(place + port::SIZED_BYTES, bytes);
        }
        // The others are counted one by one.
        let last = self
            .word(base + component::WAITED_FOR)
            .load(Ordering::Relaxed);
        if Wait::unpacked(last as u32) == Wait::Select {
            self.add(place + port::SELECTED, stands_for);
        }
    }

    fn place_of_port(&self, id: u64, port: u16) -> Option<usize> {
        self.component(id)
            .and_then(|base| self.port_of(base, Some(port)))
    }

    /// Records that two ports were connected, each given by its component's number and its position
    /// there.
    pub fn connected(&self, a: (u64, u16), b: (u64, u16)) {
        for ((id, port), (other, other_port)) in [(a, b), (b, a)] {
            if let Some(place) = self.place_of_port(id, port) {
                let peer = other & 0xffff_ffff | u64::from(other_port) << 32;
                // Only the first: the report names it, and their number.
                let _ = self.word(place + port::PEER).compare_exchange(
                    0,
                    peer,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                self.word(place + port::CONNECTIONS)
                    .fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Records that a worker's thread begins, on a core if it is pinned.
    pub fn worker(&self, index: usize, core: Option<usize>) {
        if index < WORKERS_MAX {
            let core = core.map_or(0, |core| core as u64 + 1);
            self.word(WORKERS + index * WORKER + worker::CORE)
                .store(core, Ordering::Relaxed);
        }
    }

    /// Records that a worker, whose thread calls, has run a component for this many ticks.
    pub fn worked(&self, index: usize, ticks: u64) {
        if index < WORKERS_MAX {
            self.add(WORKERS + index * WORKER + worker::BUSY, ticks);
            self.add(WORKERS + index * WORKER + worker::RUNS, 1);
        }
    }

    /// Records the exit code of the program.
    pub fn ends(&self, code: i32) {
        let now = self.stamps.moment();
        self.word(header::LATEST_NS)
            .store(now.ns, Ordering::Relaxed);
        self.word(header::LATEST_TICKS)
            .store(now.ticks, Ordering::Relaxed);
        let code = u64::from(code.unsigned_abs()) + 1;
        self.word(header::END).store(code, Ordering::Release);
    }
}

/// Stores a core, and returns the one before if it differs.
fn changed(seen: &AtomicU64, core: usize) -> Option<usize> {
    let core = core as u64 + 1;
    let before = seen.load(Ordering::Relaxed);
    if before == core {
        return None;
    }
    seen.store(core, Ordering::Relaxed);
    before.checked_sub(1).map(|before| before as usize)
}

/// The part of a text that fits this many bytes.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
