//! A connection's session: parsing across reads, and pending answers.

use super::command::{ANSWERS_MAX, About, Asked, Context, Keys, Kind, Storing, refusal};
use super::survey::Survey;
use super::words::{Words, signed_32};
use super::{classic, meta};
use crate::items::Fresh;
use crate::store::watch::Topics;
use crate::store::{Condition, Mode, Refused, Share, Store, Worker};

/// Longest line before its end has come, unless it asks for many keys.
const LINE_MAX: usize = 2048;
/// Longest line of many keys: what a client can make the server keep.
pub const LINE_OF_KEYS_MAX: usize = 4 << 20;
/// Spaces allowed before a command of such a line.
const SPACES_MAX: usize = 100;
/// Longest text of user and password.
const USER_MAX: i32 = 2048;
const VALUE_MAX: i32 = i32::MAX - 2;
const UNAUTHENTICATED: &[u8] = b"CLIENT_ERROR unauthenticated\r\n";

/// The connection's next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It needs more input.
    More,
    /// There is more to do, but the turn is over.
    Again,
    /// It is to be closed once the answers are sent.
    Close,
    /// It is to be told of events on these topics.
    Watch(Topics),
    /// The server is to stop.
    Stop {
        /// Whether connections may finish first.
        gracefully: bool,
    },
}

/// Result of serving some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Number of bytes consumed.
    pub consumed: usize,
    /// The next action.
    pub then: Then,
}

/// A connection.
#[derive(Debug, Default)]
pub struct Session {
    state: State,
    /// Number of bytes at the front of the next input without the end of their line. A line of many
    /// keys may come byte by byte, and would otherwise be searched each time.
    searched: usize,
    /// It has not said yet which user it is, and must.
    is_stranger: bool,
    has_quit: bool,
}

#[derive(Debug, Default)]
enum State {
    /// Expects a line.
    #[default]
    Line,
    /// Expects a value and its end of line.
    Value(Box<Awaited>),
    /// Skips this many bytes.
    Swallow(usize),
    /// Answers the keys of a complete line, up to where the input begins.
    Keys(Keys),
    /// Lists items.
    Survey(Box<Survey>),
    /// Expects this many bytes: a user and a password, and an end of line.
    User(usize),
    /// Ignores everything, as it is told of events.
    Watching,
}

/// An incomplete value.
#[derive(Debug)]
struct Awaited {
    fresh: Fresh,
    storing: Storing,
    /// The line that announced it, if it decides the answer.
    line: Vec<u8>,
    /// Returned with this.
    _share: Share,
}

impl Session {
    /// A new connection.
    #[must_use]
    pub fn new() -> Session {
        Session::default()
    }

    /// A new connection that must say which user it is.
    #[must_use]
    pub fn of_stranger() -> Session {
        Session {
            is_stranger: true,
            ..Session::default()
        }
    }

    /// True if it was closed because it asked for that.
    #[must_use]
    pub fn has_quit(&self) -> bool {
        self.has_quit
    }

    /// True in the middle of a command.
    #[must_use]
    pub fn is_amid(&self) -> bool {
        !matches!(self.state, State::Line | State::Watching)
    }

    /// Serves input, at most `commands` commands, and appends the answers to `out`. Unconsumed
    /// bytes must be passed again, with what follows them.
    pub fn serve(
        &mut self,
        (store, worker, about): (&Store, &mut Worker, &dyn About),
        input: &[u8],
        commands: usize,
        out: &mut Vec<u8>,
    ) -> Served {
        let mut context = Context {
            store,
            worker,
            about,
            out,
        };
        let mut consumed = 0;
        let mut left = commands;
        let then = loop {
            if left == 0 || context.out.len() > ANSWERS_MAX {
                break if consumed < input.len() || self.has_more_to_say() {
                    Then::Again
                } else {
                    Then::More
                };
            }
            let rest = &input[consumed..];
            if rest.is_empty() && !self.has_more_to_say() {
                break Then::More;
            }
            let is_line = matches!(self.state, State::Line);
            match self.step(&mut context, rest) {
                Step::Done(bytes) => consumed += bytes,
                Step::Short(bytes) => {
                    consumed += bytes;
                    break Then::More;
                }
                Step::Pause(bytes) => {
                    consumed += bytes;
                    break Then::Again;
                }
                Step::End(then) => {
                    consumed = input.len();
                    break then;
                }
            }
            left -= usize::from(is_line);
        };
        if then == Then::Again {
            context.worker.counters.conn_yields.bump();
        }
        store.settle(context.worker);
        Served { consumed, then }
    }

    /// True if a reply is unfinished that needs no further input.
    fn has_more_to_say(&self) -> bool {
        matches!(self.state, State::Survey(_))
    }

    /// Frees an unfinished command when the connection closes.
    pub fn end(&mut self, worker: &mut Worker) {
        if let State::Value(awaited) = std::mem::take(&mut self.state) {
            worker.keep(Some(awaited.fresh.give_up()));
        }
    }

    fn step(&mut self, context: &mut Context<'_>, input: &[u8]) -> Step {
        match &mut self.state {
            State::Line => self.line(context, input),
            State::Swallow(missing) => {
                let bytes = input.len().min(*missing);
                *missing -= bytes;
                if *missing == 0 {
                    self.state = State::Line;
                }
                Step::Done(bytes)
            }
            State::User(bytes) => {
                let bytes = *bytes;
                self.user(context, input, bytes)
            }
            State::Watching => Step::Done(input.len()),
            State::Keys(list) => {
                let list = *list;
                self.keys(context, input, list)
            }
            State::Survey(survey) => {
                if survey.go_on(context) {
                    return Step::Pause(0);
                }
                self.state = State::Line;
                Step::Done(0)
            }
            State::Value(awaited) => {
                let bytes = input.len().min(awaited.fresh.missing());
                awaited.fresh.push(&input[..bytes]);
                if awaited.fresh.missing() > 0 {
                    return Step::Short(bytes);
                }
                if let State::Value(awaited) = std::mem::take(&mut self.state) {
                    let Awaited {
                        fresh,
                        storing,
                        line,
                        _share,
                    } = *awaited;
                    finish(context, fresh, storing, &line);
                }
                Step::Done(bytes)
            }
        }
    }

    /// Answers more keys of a complete line of which nothing was looked at before.
    fn keys(&mut self, context: &mut Context<'_>, input: &[u8], list: Keys) -> Step {
        let Some(end) = memchr::memchr(b'\n', input) else {
            return Step::Short(0);
        };
        let line = &input[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Asked::Keys { left, list } = classic::go_on(context, line, list) {
            self.state = State::Keys(list);
            return Step::Pause(line.len() - left);
        }
        self.state = State::Line;
        Step::Done(end + 1)
    }

    /// Checks a user and a password.
    fn user(&mut self, context: &mut Context<'_>, input: &[u8], bytes: usize) -> Step {
        let Some(said) = input.get(..bytes) else {
            return Step::Short(0);
        };
        self.state = State::Line;
        let counters = &context.worker.counters;
        let answer: &[u8] = match said.strip_suffix(b"\r\n") {
            None => b"CLIENT_ERROR bad command line termination\r\n",
            Some(said) => {
                counters.auth_cmds.bump();
                let is_known = context.about.users().is_none_or(|users| users.know(said));
                self.is_stranger = !is_known;
                if is_known {
                    b"STORED\r\n"
                } else {
                    counters.auth_errors.bump();
                    b"CLIENT_ERROR authentication failure\r\n"
                }
            }
        };
        context.out.extend_from_slice(answer);
        Step::Done(bytes)
    }

    fn line(&mut self, context: &mut Context<'_>, input: &[u8]) -> Step {
        let searched = std::mem::take(&mut self.searched).min(input.len());
        let Some(end) = memchr::memchr(b'\n', &input[searched..]).map(|end| searched + end) else {
            self.searched = input.len();
            return match may_go_on(input) {
                true => Step::Short(0),
                false => Step::End(Then::Close),
            };
        };
        let line = &input[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let begun = end + 1;
        if self.is_stranger {
            self.state = stranger(context, line);
            return Step::Done(begun);
        }
        match command(context, line) {
            Asked::Done => Step::Done(begun),
            Asked::Watch(topics) => {
                self.state = State::Watching;
                Step::End(Then::Watch(topics))
            }
            Asked::Close => {
                self.has_quit = line.trim_ascii_start().starts_with(b"quit");
                Step::End(Then::Close)
            }
            Asked::Stop { gracefully } => Step::End(Then::Stop { gracefully }),
            Asked::Swallow(bytes) => {
                self.state = State::Swallow(bytes);
                Step::Done(begun)
            }
            Asked::Keys { left, list } => {
                self.state = State::Keys(list);
                Step::Pause(line.len() - left)
            }
            Asked::Survey(survey) => {
                self.state = State::Survey(survey);
                Step::Done(begun)
            }
            Asked::Value { mut fresh, storing } => {
                let rest = &input[begun..];
                if let Some(value) = rest.get(..fresh.missing()) {
                    fresh.push(value);
                    finish(context, fresh, storing, line);
                    return Step::Done(begun + value.len());
                }
                let Some(share) = context.store.share_for(&fresh) else {
                    self.state = State::Swallow(fresh.missing());
                    refuse_to_wait(context, fresh, storing);
                    return Step::Done(begun);
                };
                fresh.push(rest);
                let line = if storing.kind == Kind::Meta {
                    line.to_vec()
                } else {
                    Vec::new()
                };
                self.state = State::Value(Box::new(Awaited {
                    fresh,
                    storing,
                    line,
                    _share: share,
                }));
                Step::Short(input.len())
            }
        }
    }
}

/// Result of one step, with the number of bytes consumed.
enum Step {
    Done(usize),
    Short(usize),
    /// There is more to do with the input, once the answers are sent.
    Pause(usize),
    End(Then),
}

/// Handles the line of a client that has not said which user it is: only a `set` may say so, whose
/// key and numbers mean nothing.
#[cold]
fn stranger(context: &mut Context<'_>, line: &[u8]) -> State {
    let words = Words::of(line);
    let bytes = signed_32(words.get(4)).filter(|_| words.get(0) == b"set");
    let bytes = bytes.filter(|bytes| (0..VALUE_MAX).contains(bytes));
    if let Some(bytes @ 0..=USER_MAX) = bytes {
        return State::User(bytes as usize + 2);
    }
    context.out.extend_from_slice(UNAUTHENTICATED);
    bytes.map_or(State::Line, |bytes| State::Swallow(bytes as usize + 2))
}

/// True if a line without its end may continue.
fn may_go_on(input: &[u8]) -> bool {
    if input.len() <= LINE_MAX {
        return true;
    }
    let spaces = input.iter().take_while(|&&byte| byte == b' ').count();
    let command = &input[spaces..];
    spaces <= SPACES_MAX
        && input.len() <= LINE_OF_KEYS_MAX
        && (command.starts_with(b"get ") || command.starts_with(b"gets "))
}

#[inline]
fn command(context: &mut Context<'_>, line: &[u8]) -> Asked {
    // By far the most frequent command, whose keys may be more than there are words.
    if let Some(keys) = line.strip_prefix(b"get ") {
        return classic::get(context, keys, false);
    }
    let words = Words::of(line);
    let first = words.get(0);
    if let [b'm', kind] = first {
        return meta::command(context, *kind, &words);
    }
    classic::command(context, line, &words)
}

fn finish(context: &mut Context<'_>, fresh: Fresh, storing: Storing, line: &[u8]) {
    if !fresh.bytes().ends_with(b"\r\n") {
        context.worker.keep(Some(fresh.give_up()));
        if storing.kind != (Kind::Classic { is_quiet: true }) {
            context
                .out
                .extend_from_slice(b"CLIENT_ERROR bad data chunk\r\n");
        }
        return;
    }
    match storing.kind {
        Kind::Classic { is_quiet } => {
            let stored =
                context
                    .store
                    .store(context.worker, fresh, storing.mode, storing.condition);
            if !is_quiet {
                context.out.extend_from_slice(classic::answer(stored));
            }
        }
        Kind::Meta => meta::finish_set(context, fresh, storing, &Words::of(line)),
    }
}

/// Gives up an incomplete item, as too many values are under way. Answers and acts as without
/// memory.
#[cold]
fn refuse_to_wait(context: &mut Context<'_>, fresh: Fresh, storing: Storing) {
    if storing.kind != (Kind::Classic { is_quiet: true }) {
        context.out.extend_from_slice(refusal(Refused::NoMemory));
    }
    context.worker.counters.store_no_memory.bump();
    let how = match storing.kind {
        Kind::Classic { .. } => (storing.mode, storing.condition),
        Kind::Meta => (Mode::Set, Condition::default()),
    };
    let key = (fresh.key().to_vec(), fresh.hash());
    context.worker.keep(Some(fresh.give_up()));
    classic::refuse(context, (&key.0, key.1), how, Refused::NoMemory);
}
