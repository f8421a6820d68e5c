//! Control commands, which tune memcached's own machinery.

use super::command::{Asked, Context};
use super::statistics::answer;
use super::survey;
use super::words::{Words, signed_32, unsigned_32};
use crate::store::watch::Topics;

/// Handles commands that tune memcached's own machinery.
pub(super) fn control(context: &mut Context<'_>, words: &Words<'_>) -> Asked {
    let mut is_quiet = words.end_in_noreply();
    let text: &[u8] = match words.get(0) {
        b"lru" => lru(context, words),
        b"lru_crawler" => return crawler(context, words),
        b"slabs" => {
            // As in memcached, whose other command of this name answers always.
            is_quiet &= words.get(1) == b"automove";
            slabs_control(words)
        }
        b"watch" => match watch(context, words) {
            Ok(topics) => return Asked::Watch(topics),
            Err(text) => text,
        },
        b"extstore" => ERROR,
        _ => match context.about.refresh_certs() {
            Ok(()) => OK,
            Err(error) => {
                // As in memcached, which does not ask here whether an answer is wanted.
                return answer(context, format!("{error}\r\n").as_bytes());
            }
        },
    };
    answer(context, if is_quiet { b"" } else { text })
}

/// Parses the topics of `watch`.
///
/// # Errors
/// The answer: the connection stays as it is.
fn watch(context: &Context<'_>, words: &Words<'_>) -> Result<Topics, &'static [u8]> {
    if !context.about.may_watch() {
        return Err(b"CLIENT_ERROR watch commands not allowed\r\n");
    }
    // What the connection is told must not come between an answer and its end.
    if !context.out.is_empty() {
        return Err(b"ERROR cannot pipeline other commands before watch\r\n");
    }
    let names = words.from(1);
    if names.is_empty() {
        return Ok(Topics::FETCHERS);
    }
    names.iter().try_fold(Topics::default(), |all, name| {
        Topics::named(name)
            .map(|topics| all.with(topics))
            .ok_or(ERROR)
    })
}

const ERROR: &[u8] = b"ERROR\r\n";
const OK: &[u8] = b"OK\r\n";

fn lru(context: &Context<'_>, words: &Words<'_>) -> &'static [u8] {
    match (words.get(1), words.len()) {
        (b"tune", 6..) => {
            let (Some(hot), Some(warm)) = (unsigned_32(words.get(2)), unsigned_32(words.get(3)))
            else {
                return ERROR;
            };
            let (Some(hot_age), Some(warm_age)) = (real(words.get(4)), real(words.get(5))) else {
                return ERROR;
            };
            if hot.saturating_add(warm) > 80 {
                return b"ERROR hot and warm pcts must not exceed 80\r\n";
            }
            if hot_age <= 0.0 || warm_age <= 0.0 {
                return b"ERROR hot/warm age factors must be greater than 0\r\n";
            }
            context.store.set_shares(hot as usize, warm as usize);
            OK
        }
        (b"mode", 3..) if matches!(words.get(2), b"flat" | b"segmented") => OK,
        (b"temp_ttl", 3..) if signed_32(words.get(2)).is_some() => OK,
        _ => ERROR,
    }
}

fn slabs_control(words: &Words<'_>) -> &'static [u8] {
    const FORMAT: &[u8] = b"CLIENT_ERROR bad command line format\r\n";
    match (words.get(1), words.len()) {
        (b"automove", 3..) => match unsigned_32(words.get(2)) {
            Some(0..=2) => OK,
            Some(_) => ERROR,
            None => FORMAT,
        },
        (b"reassign", 4) => match (signed_32(words.get(2)), signed_32(words.get(3))) {
            (Some(from), Some(to)) if from == to => b"SAME src and dst class are identical\r\n",
            (Some(from), Some(to)) if !(is_place(from) && is_place(to)) => {
                b"BADCLASS invalid src or dst class id\r\n"
            }
            (Some(_), Some(_)) => b"NOSPARE source class has no spare pages\r\n",
            _ => FORMAT,
        },
        _ => ERROR,
    }
}

/// Largest number of a class in memcached.
pub(super) const CLASS_MAX: u32 = 63;
/// Longest sleep of memcached's crawler in microseconds.
const SLEEP_MAX: u32 = 1_000_000;

/// True for the number of a class, or of the pool of pages that belong to none.
fn is_place(number: i32) -> bool {
    (0..=CLASS_MAX as i32).contains(&number)
}

/// Parses a number with a fraction, after which white space and anything may follow.
fn real(word: &[u8]) -> Option<f64> {
    let word = word.trim_ascii_start();
    let end = word.iter().position(u8::is_ascii_whitespace);
    let number = &word[..end.unwrap_or(word.len())];
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// Choice of classes in a command of the crawler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Classes {
    /// The only one that has items.
    Ours,
    /// Others, which exist in memcached.
    Others,
    /// One that exists nowhere.
    Bad,
}

impl Classes {
    /// Parses a list of numbers, or `all`.
    pub(super) fn of(word: &[u8]) -> Classes {
        if word == b"all" {
            return Classes::Ours;
        }
        let mut classes = Classes::Others;
        for number in word
            .split(|&byte| byte == b',')
            .filter(|word| !word.is_empty())
        {
            match unsigned_32(number) {
                Some(1) => classes = Classes::Ours,
                Some(2..=CLASS_MAX) => {}
                _ => return Classes::Bad,
            }
        }
        classes
    }
}

/// The answer to a class that does not exist.
pub(super) const BAD_CLASS: &[u8] = b"BADCLASS invalid class id\r\n";
/// The answer to classes without items.
pub(super) const NO_ITEMS: &[u8] = b"NOTSTARTED no items to crawl\r\n";

fn crawler(context: &mut Context<'_>, words: &Words<'_>) -> Asked {
    const FORMAT: &[u8] = b"CLIENT_ERROR bad command line format\r\n";
    let text = match (words.get(1), words.len()) {
        (b"enable", 2) => {
            context.store.set_crawler(true);
            OK
        }
        (b"disable", 2) => {
            context.store.set_crawler(false);
            OK
        }
        (b"crawl" | b"metadump" | b"mgdump", 3) if !context.store.crawls() => {
            b"CLIENT_ERROR lru crawler disabled\r\n"
        }
        (b"crawl", 3) if words.get(2) == b"hash" => b"ERROR an unknown error happened\r\n",
        (b"crawl", 3) => match Classes::of(words.get(2)) {
            Classes::Ours => {
                // The clock's thread does it.
                context.store.ask_for_crawl();
                OK
            }
            Classes::Others => NO_ITEMS,
            Classes::Bad => BAD_CLASS,
        },
        (b"sleep", 3) => match unsigned_32(words.get(2)) {
            None => FORMAT,
            Some(us) if us > SLEEP_MAX => b"CLIENT_ERROR sleep must be one second or less\r\n",
            Some(_) => OK,
        },
        (b"tocrawl", 3) => match unsigned_32(words.get(2)) {
            None => FORMAT,
            Some(_) => OK,
        },
        (b"metadump", 3) => return survey::dump(context, words, survey::Form::Meta),
        (b"mgdump", 3) => return survey::dump(context, words, survey::Form::Get),
        _ => ERROR,
    };
    answer(context, text)
}
