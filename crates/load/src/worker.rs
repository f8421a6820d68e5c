//! One thread of the generator, which drives its connections, however many.
//!
//! A round: wait for readable connections; read each once, which takes all its replies; make the
//! requests that these allow, or that are due; write each connection once. So a request costs one
//! read and one write with one request under way on a connection, less with more, and all
//! connections ready at the same time share the wait.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hearth_sys::clock::{steady_ns, thread_ns};
use hearth_sys::epoll::{Epoll, Interest, Readiness};

use crate::arrivals::Arrivals;
use crate::content::Content;
use crate::keys::{Draw, KeyText};
use crate::line::{Line, Request, Written};
use crate::model::{Bar, Model};
use crate::plan::{LoadPlan, Pacing, Per};
use crate::random::Random;
use crate::tally::Tally;
use crate::wire::{END, Kind, Outcome, Parsed, Protocol};

/// Largest number of connections that one wait returns.
const REPORTS: usize = 256;
/// Largest read; longer replies take several.
const READ_MAX: usize = 256 * 1024;
/// Time until a broken connection is opened again.
const RETRY_NS: u64 = 50_000_000;
/// Timeout of reconnecting; meanwhile the thread's other connections wait.
const RECONNECT_WITHIN: Duration = Duration::from_millis(200);
/// Longest time between two looks at whether to stop.
const LOOK_NS: u64 = 100_000_000;

/// The measurement: counts requests due, and replies received, from the beginning until before the
/// end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) start_ns: u64,
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
}

impl Window {
    fn holds(&self, ns: u64) -> bool {
        (self.begin_ns..self.end_ns).contains(&ns)
    }
}

/// The requests to make.
#[derive(Debug)]
pub(crate) enum Work {
    /// A write to each of these keys, once.
    Fill {
        next: u64,
        end: u64,
        /// Keys to repeat, as their connection broke.
        again: Vec<u64>,
    },
    /// The plan's mix.
    Mix,
}

/// State shared by the threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared<'a> {
    pub(crate) plan: &'a LoadPlan,
    pub(crate) content: &'a Content,
    pub(crate) model: Option<&'a Model>,
    pub(crate) stop: &'a AtomicBool,
}

/// Times at which requests are made.
#[derive(Debug)]
enum Moments {
    /// Requests as soon as a connection is free.
    Closed,
    /// By any connection of the pool, when due.
    Pool {
        arrivals: Arrivals,
        free: VecDeque<usize>,
        /// Since when the pool is not empty.
        since_ns: u64,
    },
    /// By each connection for itself, when due; connections that may make a request are queued by
    /// due time.
    Each {
        arrivals: Vec<Arrivals>,
        queue: BinaryHeap<Reverse<(u64, usize)>>,
    },
}

/// A thread's part of a run.
#[derive(Debug)]
pub(crate) struct Worker<'a> {
    shared: Shared<'a>,
    ready: Epoll,
    lines: Vec<Line>,
    broken: VecDeque<(u64, usize)>,
    outstanding: usize,
    work: Work,
    moments: Moments,
    window: Window,
    draw: Draw,
    random: Random,
    key_text: KeyText,
    key: Vec<u8>,
    buffer: Vec<u8>,
    /// True during the measurement.
    counts: bool,
    under_way: usize,
    /// Time of the last reply.
    heard_ns: u64,
    writes: u64,
    pub(crate) tally: Tally,
}

impl<'a> Worker<'a> {
    /// Thread `number`, with its connections.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub(crate) fn new(
        shared: Shared<'a>,
        number: usize,
        lines: Vec<Line>,
        work: Work,
    ) -> io::Result<Worker<'a>> {
        let plan = shared.plan;
        let ready = Epoll::new(REPORTS)?;
        for (place, line) in lines.iter().enumerate() {
            if let Some(stream) = &line.stream {
                ready.add(stream.fd(), place as u64, Interest::Read)?;
            }
        }
        let random = Random::new(plan.seed.wrapping_mul(1_000_003) + number as u64);
        let first = plan.keys / plan.threads as u64 * number as u64;
        Ok(Worker {
            shared,
            ready,
            lines,
            broken: VecDeque::new(),
            outstanding: plan.outstanding,
            work,
            moments: Moments::Closed,
            window: Window {
                start_ns: 0,
                begin_ns: 0,
                end_ns: u64::MAX,
            },
            draw: Draw::new(plan.spread, plan.keys, first),
            random,
            key_text: KeyText::new(&plan.prefix, plan.keys),
            key: Vec::new(),
            buffer: vec![0; READ_MAX],
            counts: false,
            under_way: 0,
            heard_ns: 0,
            writes: 0,
            tally: Tally::default(),
        })
    }

    /// Runs until the window has ended and the requests under way then are answered, or patience
    /// ends; or until the work is done.
    pub(crate) fn run(&mut self, window: Window, pacing: Pacing, number: usize) {
        self.window = window;
        self.moments = self.moments_of(pacing, number);
        hearth_sys::schedule::set_lateness(1);
        let patience = self.shared.plan.patience.as_nanos() as u64;
        let give_up_ns = window.end_ns.saturating_add(patience);
        let mut ready: Vec<Readiness> = Vec::with_capacity(REPORTS);
        let mut cpu = None;
        let mut now = steady_ns();
        self.heard_ns = now;
        for place in 0..self.lines.len() {
            self.go_on(place, now);
        }
        loop {
            let counted = self.counts;
            self.counts = window.holds(now);
            match (counted, self.counts) {
                (false, true) => cpu = Some((thread_ns(), now)),
                (true, false) => self.end_counting(cpu, now),
                _ => {}
            }
            let is_deaf = matches!(self.work, Work::Fill { .. })
                && now.saturating_sub(self.heard_ns) > patience;
            if self.is_done(now)
                || now >= give_up_ns
                || is_deaf
                || self.shared.stop.load(Ordering::Relaxed)
            {
                break;
            }
            let time = Duration::from_nanos(self.wait_ns(now));
            ready.clear();
            ready.extend(self.ready.wait(Some(time)));
            self.tally.calls += u64::from(self.counts);
            now = steady_ns();
            for one in &ready {
                let place = one.key as usize;
                if one.can_read {
                    self.receive(place);
                } else if one.can_write {
                    self.send(place);
                }
            }
            now = steady_ns().max(now);
            self.mend(now);
            self.make_due(now);
        }
        if self.counts {
            self.end_counting(cpu, now.min(window.end_ns));
        }
        self.give_up(now);
    }

    fn moments_of(&mut self, pacing: Pacing, number: usize) -> Moments {
        let plan = self.shared.plan;
        let start_ns = self.window.start_ns;
        match (pacing, &self.work) {
            (Pacing::Closed, _) | (_, Work::Fill { .. }) => Moments::Closed,
            (
                Pacing::Open {
                    rate,
                    gaps,
                    per: Per::Overall,
                },
                Work::Mix,
            ) => {
                let rate = rate / plan.threads as f64;
                let phase = number as f64 / plan.threads as f64;
                let random = &mut self.random;
                Moments::Pool {
                    arrivals: Arrivals::new(rate, gaps, start_ns, phase, random),
                    free: VecDeque::with_capacity(self.lines.len()),
                    since_ns: 0,
                }
            }
            (
                Pacing::Open {
                    rate,
                    gaps,
                    per: Per::Connection,
                },
                Work::Mix,
            ) => {
                let rate = rate / plan.connections as f64;
                let random = &mut self.random;
                let arrivals = (0..self.lines.len())
                    .map(|_| {
                        let phase = random.unit();
                        Arrivals::new(rate, gaps, start_ns, phase, random)
                    })
                    .collect();
                Moments::Each {
                    arrivals,
                    queue: BinaryHeap::with_capacity(self.lines.len()),
                }
            }
        }
    }

    fn end_counting(&mut self, cpu: Option<(u64, u64)>, now: u64) {
        let Some((cpu_ns, since_ns)) = cpu else {
            return;
        };
        let used = thread_ns() - cpu_ns;
        self.tally.own_cpu_ns = used;
        self.tally.busiest = used as f64 / now.saturating_sub(since_ns).max(1) as f64;
    }

    /// Number of keys of the work not yet written.
    pub(crate) fn unfilled(&self) -> u64 {
        match &self.work {
            Work::Fill { next, end, again } => end - next + again.len() as u64,
            Work::Mix => 0,
        }
    }

    /// True if nothing is under way and nothing to come.
    fn is_done(&self, now: u64) -> bool {
        if self.under_way > 0 {
            return false;
        }
        if let Work::Fill { next, end, again } = &self.work {
            return next >= end && again.is_empty();
        }
        now >= self.window.end_ns
            && self
                .next_due_ns()
                .is_none_or(|due| due >= self.window.end_ns)
    }

    /// The next due time, even if no connection can make the request.
    fn next_due_ns(&self) -> Option<u64> {
        match &self.moments {
            Moments::Closed => None,
            Moments::Pool { arrivals, .. } => Some(arrivals.due_ns()),
            Moments::Each { arrivals, .. } => arrivals.iter().map(Arrivals::due_ns).min(),
        }
    }

    fn wait_ns(&self, now: u64) -> u64 {
        let window = &self.window;
        let due = match &self.moments {
            Moments::Closed => None,
            Moments::Pool { free, .. } if free.is_empty() => None,
            Moments::Pool { arrivals, .. } => Some(arrivals.due_ns()),
            Moments::Each { queue, .. } => queue.peek().map(|Reverse((due, _))| *due),
        };
        let due = due.filter(|due| *due < window.end_ns);
        let retry = self.broken.front().map(|(retry, _)| *retry);
        let border = [window.begin_ns, window.end_ns]
            .into_iter()
            .find(|ns| *ns > now);
        [due, retry, border]
            .into_iter()
            .flatten()
            .map(|ns| ns.saturating_sub(now))
            .fold(LOOK_NS, u64::min)
    }

    /// Makes the requests that are due.
    fn make_due(&mut self, now: u64) {
        loop {
            let end_ns = self.window.end_ns;
            let (place, due, since) = match &mut self.moments {
                Moments::Closed => return,
                Moments::Pool {
                    arrivals,
                    free,
                    since_ns,
                } => {
                    let due = arrivals.due_ns();
                    if due > now || due >= end_ns {
                        return;
                    }
                    // Connections that broke while they waited come back when they are reconnected.
                    let Some(place) = pop_whole(free, &mut self.lines) else {
                        return;
                    };
                    arrivals.advance(&mut self.random);
                    (place, due, *since_ns)
                }
                Moments::Each { arrivals, queue } => {
                    let Some(Reverse((due, place))) = queue.peek().copied() else {
                        return;
                    };
                    if due > now || due >= end_ns {
                        return;
                    }
                    queue.pop();
                    if self.lines[place].stream.is_none() {
                        self.lines[place].is_waiting = false;
                        continue;
                    }
                    arrivals[place].advance(&mut self.random);
                    (place, due, self.lines[place].free_ns)
                }
            };
            self.lines[place].is_waiting = false;
            if self.window.holds(due) {
                self.tally.slip.record(now - due);
                self.tally
                    .own_slip
                    .record(now.saturating_sub(due.max(since)));
            }
            self.make_mixed(place, due, now);
            self.go_on(place, now);
        }
    }

    /// Makes the requests that a connection may make now, and writes them.
    fn go_on(&mut self, place: usize, now: u64) {
        while self.lines[place].stream.is_some()
            && self.lines[place].pending.len() < self.outstanding
        {
            match &mut self.moments {
                Moments::Closed => {
                    if !self.make_next(place, now) {
                        break;
                    }
                }
                Moments::Pool { free, since_ns, .. } => {
                    let line = &mut self.lines[place];
                    if !line.is_waiting {
                        line.is_waiting = true;
                        if free.is_empty() {
                            *since_ns = now;
                        }
                        free.push_back(place);
                    }
                    break;
                }
                Moments::Each { arrivals, queue } => {
                    let line = &mut self.lines[place];
                    if !line.is_waiting {
                        line.is_waiting = true;
                        line.free_ns = now;
                        queue.push(Reverse((arrivals[place].due_ns(), place)));
                    }
                    break;
                }
            }
        }
        self.send(place);
    }

    /// Makes the next request of a closed loop; false if there is none.
    fn make_next(&mut self, place: usize, now: u64) -> bool {
        match &mut self.work {
            Work::Mix if now >= self.window.end_ns => return false,
            Work::Mix => self.make_mixed(place, now, now),
            Work::Fill { next, end, again } => {
                let key = match again.pop() {
                    Some(key) => key,
                    None if next < end => {
                        *next += 1;
                        *next - 1
                    }
                    None => return false,
                };
                self.make(place, Kind::Set, key, now, now);
            }
        }
        true
    }

    fn make_mixed(&mut self, place: usize, meant_ns: u64, now: u64) {
        let is_get = matches!(self.shared.plan.protocol, Protocol::Echo { .. })
            || self.random.unit() < self.shared.plan.gets;
        let kind = if is_get { Kind::Get } else { Kind::Set };
        let key = self.draw.next(&mut self.random);
        self.make(place, kind, key, meant_ns, now);
    }

    fn make(&mut self, place: usize, kind: Kind, key: u64, meant_ns: u64, now: u64) {
        let Shared {
            plan,
            content,
            model,
            ..
        } = self.shared;
        let line = &mut self.lines[place];
        if !matches!(plan.protocol, Protocol::Echo { .. }) {
            self.key.clear();
            let size = plan.key_sizes.of_key(key);
            self.key_text.append(key, size, &mut self.key);
        }
        let note = match kind {
            Kind::Get => {
                plan.protocol.get(&self.key, &mut line.out);
                model.map_or(0, |model| model.read_begins(key).0)
            }
            Kind::Set => {
                self.writes += 1;
                let version = model.map_or(self.writes, |model| model.write_begins(key));
                let size = plan.value_sizes.of_value(key, version);
                plan.protocol.set(&self.key, size, &mut line.out);
                content.append(key, version, size, &mut line.out);
                line.out.extend_from_slice(END);
                version
            }
        };
        line.pending.push_back(Request {
            kind,
            key,
            meant_ns,
            made_ns: now,
            note,
        });
        self.under_way += 1;
    }

    fn send(&mut self, place: usize) {
        let line = &mut self.lines[place];
        if line.out.is_empty() {
            return;
        }
        match line.flush() {
            Ok((written, count)) => {
                let asks = written == Written::Part;
                if asks != line.asks_to_write {
                    line.asks_to_write = asks;
                    let interest = match asks {
                        true => Interest::ReadWrite,
                        false => Interest::Read,
                    };
                    if let Some(stream) = &line.stream {
                        // In the set since it was connected, so this cannot fail.
                        let _ = self.ready.change(stream.fd(), place as u64, interest);
                    }
                }
                if self.counts {
                    self.tally.calls += 1;
                    self.tally.bytes_sent += count as u64;
                }
            }
            Err(error) => self.lose(place, &why(&error)),
        }
    }

    /// Reads once and handles the replies.
    fn receive(&mut self, place: usize) {
        let line = &mut self.lines[place];
        let Some(stream) = &mut line.stream else {
            return;
        };
        let had = line.rest.len();
        if self.buffer.len() < had + READ_MAX / 2 {
            self.buffer.resize(had + READ_MAX, 0);
        }
        let count = match stream.read(&mut self.buffer[had..]) {
            Ok(0) => return self.lose(place, "closed by the server"),
            Ok(count) => count,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                return;
            }
            Err(error) => return self.lose(place, &why(&error)),
        };
        // After the read, so that no reply counts as older than it is.
        let now = steady_ns();
        self.heard_ns = now;
        if self.counts {
            self.tally.calls += 1;
            self.tally.bytes_received += count as u64;
        }
        let end = had + count;
        if end < line.needed {
            let new = &self.buffer[had..end];
            line.rest.extend_from_slice(new);
            return;
        }
        self.buffer[..had].copy_from_slice(&line.rest);
        line.rest.clear();
        match self.take_replies(place, end, now) {
            Ok(taken) => {
                let line = &mut self.lines[place];
                line.rest.extend_from_slice(&self.buffer[taken..end]);
                self.go_on(place, now);
            }
            Err(place_of_nonsense) => {
                let bytes = &self.buffer[place_of_nonsense..end.min(place_of_nonsense + 40)];
                let text = format!(
                    "nonsense from the server: {:?}",
                    bytes.escape_ascii().to_string()
                );
                // A server without room for a connection may say so at any time. Other bytes that
                // answer no request, such as another key's value, count as a wrong reply.
                if self.shared.model.is_some() && !bytes.starts_with(b"ERROR") {
                    let asked = self.lines[place].pending.front();
                    self.tally
                        .verified
                        .astray(asked.map(|request| request.key), &text);
                }
                self.lose(place, &text);
            }
        }
    }

    /// Takes complete replies from the front of the buffer. Returns their length, or where they end
    /// and nonsense begins.
    fn take_replies(&mut self, place: usize, end: usize, now: u64) -> Result<usize, usize> {
        let protocol = self.shared.plan.protocol;
        let is_echo = matches!(protocol, Protocol::Echo { .. });
        let mut at = 0;
        self.lines[place].needed = 0;
        while at < end {
            let Some(request) = self.lines[place].pending.front().copied() else {
                return Err(at);
            };
            if !is_echo && request.kind == Kind::Get {
                self.key.clear();
                let size = self.shared.plan.key_sizes.of_key(request.key);
                self.key_text.append(request.key, size, &mut self.key);
            }
            match protocol.parse(request.kind, &self.key, &self.buffer[at..end]) {
                Parsed::Part(needed) => {
                    self.lines[place].needed = needed;
                    break;
                }
                Parsed::Nonsense => return Err(at),
                Parsed::Whole(length, outcome) => {
                    self.lines[place].pending.pop_front();
                    self.under_way -= 1;
                    self.complete(&request, &outcome, at, now);
                    at += length;
                }
            }
        }
        Ok(at)
    }

    fn complete(&mut self, request: &Request, outcome: &Outcome, at: usize, now: u64) {
        if self.window.holds(now) {
            self.tally.replies.count(outcome);
        }
        if self.window.holds(request.meant_ns) {
            let took_ns = now - request.meant_ns;
            self.tally.times(request.kind).record(took_ns);
            if !matches!(self.moments, Moments::Closed) {
                self.tally.service.record(now - request.made_ns);
            }
        }
        if let Outcome::Error(line) = outcome {
            let line = &self.buffer[at + line.start..at + line.end];
            let text = line.escape_ascii().to_string();
            Tally::count_text(&mut self.tally.errors, &text, 1);
        }
        if let Some(model) = self.shared.model {
            self.verify(model, request, outcome, at, now);
        }
    }

    fn verify(&mut self, model: &Model, request: &Request, outcome: &Outcome, at: usize, now: u64) {
        let key = request.key;
        let seen = match outcome {
            Outcome::Hit(place) => {
                let value = &self.buffer[at + place.start..at + place.end];
                model.read_sees(self.shared.content, key, Bar(request.note), value)
            }
            Outcome::Miss => model.read_misses(Bar(request.note)),
            Outcome::Stored => {
                model.write_ends(key, request.note, request.made_ns, now);
                Ok(())
            }
            Outcome::NotStored | Outcome::Error(_) if request.kind == Kind::Set => {
                model.write_refused(key, request.note);
                Ok(())
            }
            Outcome::NotStored | Outcome::Error(_) | Outcome::Echoed => Ok(()),
        };
        self.tally.verified.looked_at += 1;
        if let Err(wrong) = seen {
            self.tally.verified.wrong(key, &wrong);
        }
    }

    /// Handles a broken connection: its requests are lost, and it is reconnected later.
    fn lose(&mut self, place: usize, why: &str) {
        let lost = self.lines[place].abandon();
        self.under_way -= lost.len();
        let now = steady_ns();
        Tally::count_text(&mut self.tally.broken, why, 1);
        self.tally.lost_on_the_way += lost.len() as u64;
        for request in lost {
            if let Work::Fill { again, .. } = &mut self.work {
                again.push(request.key);
            } else {
                self.leave_unanswered(&request, now);
            }
        }
        self.broken.push_back((now + RETRY_NS, place));
    }

    fn leave_unanswered(&mut self, request: &Request, now: u64) {
        if self.window.holds(request.meant_ns) {
            self.tally.unanswered += 1;
            // A lower bound of its latency.
            let waited_ns = now - request.meant_ns;
            self.tally.times(request.kind).record(waited_ns);
        }
    }

    /// Reconnects what broke long enough ago.
    fn mend(&mut self, now: u64) {
        while let Some((retry_ns, place)) = self.broken.front().copied() {
            if retry_ns > now {
                return;
            }
            self.broken.pop_front();
            let connected = self.shared.plan.target.connect(RECONNECT_WITHIN);
            let added = connected.and_then(|stream| {
                self.ready.add(stream.fd(), place as u64, Interest::Read)?;
                Ok(stream)
            });
            match added {
                Ok(stream) => {
                    self.lines[place].stream = Some(stream);
                    self.go_on(place, steady_ns());
                }
                Err(error) => {
                    let text = format!("cannot connect again: {error}");
                    Tally::count_text(&mut self.tally.broken, &text, 1);
                    self.broken.push_back((now + RETRY_NS, place));
                }
            }
        }
    }

    /// Stops waiting: a request due in the window without a reply counts with the time it has
    /// waited, so that a server that stops for good does not look fast.
    fn give_up(&mut self, now: u64) {
        let now = now.max(self.window.begin_ns);
        for place in 0..self.lines.len() {
            let pending = std::mem::take(&mut self.lines[place].pending);
            for request in &pending {
                self.leave_unanswered(request, now);
            }
        }
        let mut never_made = match std::mem::replace(&mut self.moments, Moments::Closed) {
            Moments::Closed => Vec::new(),
            Moments::Pool { arrivals, .. } => vec![arrivals],
            Moments::Each { arrivals, .. } => arrivals,
        };
        let until_ns = self.window.end_ns.min(now);
        for arrivals in &mut never_made {
            while arrivals.due_ns() < until_ns {
                let due = arrivals.due_ns();
                if due >= self.window.begin_ns {
                    self.tally.unanswered += 1;
                    self.tally.gets.record(now - due);
                }
                arrivals.advance(&mut self.random);
            }
        }
    }
}

/// Takes the first connection of the pool that is not broken.
fn pop_whole(free: &mut VecDeque<usize>, lines: &mut [Line]) -> Option<usize> {
    while let Some(place) = free.pop_front() {
        if lines[place].stream.is_some() {
            return Some(place);
        }
        lines[place].is_waiting = false;
    }
    None
}

/// Formats a connection's error without the numbers that differ between machines.
fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionReset => "reset by the server".into(),
        io::ErrorKind::BrokenPipe => "closed by the server".into(),
        _ => error.to_string(),
    }
}
