//! Statistics and control commands.

use std::fmt::Display;

use super::command::{Asked, Context, Say};
use super::survey::{self, Survey};
use super::words::{Words, signed_32, unsigned_32};

pub(super) fn answer(context: &mut Context<'_>, text: &[u8]) -> Asked {
    context.out.extend_from_slice(text);
    Asked::Done
}

/// Handles `stats` and its arguments.
pub(super) fn stats(context: &mut Context<'_>, words: &Words<'_>) -> Asked {
    let about = context.about;
    let mut lines = Vec::new();
    let mut say = |name: &str, value: &dyn Display| {
        lines.extend_from_slice(format!("STAT {name} {value}\r\n").as_bytes());
    };
    match words.get(1) {
        b"" => general(context, &mut say),
        b"settings" => about.settings(&mut say),
        b"conns" => about.connections(&mut say),
        b"items" => items(context, &mut say),
        b"slabs" => slabs(context, &mut say),
        b"hearth" => hearth(context, &mut say),
        b"sizes" => return Asked::Survey(Survey::sizes()),
        // Sizes are computed when asked for, and cost nothing before.
        b"sizes_enable" => return answer(context, b"STAT sizes_status enabled\r\n"),
        b"sizes_disable" => return answer(context, b"STAT sizes_status disabled\r\n"),
        b"extstore" => {}
        b"reset" => {
            about.reset_counters();
            context.store.reset_counted();
            return answer(context, b"RESET\r\n");
        }
        b"detail" => return detail(context, words),
        b"cachedump" => return survey::cache_dump(context, words),
        _ => return answer(context, b"ERROR\r\n"),
    }
    context.out.append(&mut lines);
    answer(context, b"END\r\n")
}

fn detail(context: &mut Context<'_>, words: &Words<'_>) -> Asked {
    match words.get(2) {
        // Prefixes of keys are not counted, so there is nothing to turn on.
        b"on" | b"off" => answer(context, b"OK\r\n"),
        b"dump" => answer(context, b"END\r\n"),
        _ => answer(context, b"CLIENT_ERROR usage: stats detail on|off|dump\r\n"),
    }
}

fn general(context: &Context<'_>, say: &mut Say<'_>) {
    let (store, about) = (context.store, context.about);
    let (sum, held, clock) = (about.counters(), store.holdings(), store.clock());
    say("pid", &std::process::id());
    say("uptime", &clock.uptime());
    say("time", &clock.unix_now());
    say(
        "version",
        &concat!("1.6.18-cachet-", env!("CARGO_PKG_VERSION")),
    );
    say("pointer_size", &usize::BITS);
    about.process(say);
    let counted = [
        ("cmd_get", &sum.cmd_get),
        ("cmd_set", &sum.cmd_set),
        ("cmd_flush", &sum.cmd_flush),
        ("cmd_touch", &sum.cmd_touch),
        ("cmd_meta", &sum.cmd_meta),
        ("get_hits", &sum.get_hits),
        ("get_misses", &sum.get_misses),
        ("get_expired", &sum.get_expired),
        ("get_flushed", &sum.get_flushed),
        ("delete_misses", &sum.delete_misses),
        ("delete_hits", &sum.delete_hits),
        ("incr_misses", &sum.incr_misses),
        ("incr_hits", &sum.incr_hits),
        ("decr_misses", &sum.decr_misses),
        ("decr_hits", &sum.decr_hits),
        ("cas_misses", &sum.cas_misses),
        ("cas_hits", &sum.cas_hits),
        ("cas_badval", &sum.cas_badval),
        ("touch_hits", &sum.touch_hits),
        ("touch_misses", &sum.touch_misses),
        ("store_too_large", &sum.store_too_large),
        ("store_no_memory", &sum.store_no_memory),
        ("bytes_read", &sum.bytes_read),
        ("bytes_written", &sum.bytes_written),
        ("conn_yields", &sum.conn_yields),
        ("conn_http", &sum.conn_http),
        ("total_items", &sum.total_items),
    ];
    for (name, counter) in counted {
        say(name, &counter.get());
    }
    say("limit_maxbytes", &held.limit);
    say("hash_bytes", &store.table_bytes());
    say("bytes", &held.bytes);
    say("curr_items", &held.items.iter().sum::<usize>());
    let moves = store.moves();
    let moved = [
        ("evictions", &moves.evictions),
        ("reclaimed", &moves.reclaimed),
        ("expired_unfetched", &moves.expired_unfetched),
        ("evicted_unfetched", &moves.evicted_unfetched),
        ("evicted_active", &moves.evicted_active),
        ("moves_to_cold", &moves.to_cold),
        ("moves_to_warm", &moves.to_warm),
        ("moves_within_lru", &moves.within),
    ];
    for (name, counter) in moved {
        say(name, &counter.get());
    }
    let (reclaimed, looked_at) = store.crawled();
    say("crawler_reclaimed", &reclaimed);
    say("crawler_items_checked", &looked_at);
}

/// Reports all items as one class, as blocks have the size that items need.
fn items(context: &Context<'_>, say: &mut Say<'_>) {
    let (held, moves) = (context.store.holdings(), context.store.moves());
    let now = context.store.clock().now();
    let count: usize = held.items.iter().sum();
    if count == 0 {
        return;
    }
    let age = |segment: usize| held.oldest[segment].map_or(0, |used| now.saturating_sub(used));
    say("items:1:number", &count);
    say("items:1:number_hot", &held.items[0]);
    say("items:1:number_warm", &held.items[1]);
    say("items:1:number_cold", &held.items[2]);
    say("items:1:number_temp", &0);
    say("items:1:age_hot", &age(0));
    say("items:1:age_warm", &age(1));
    say("items:1:age", &age(2));
    say("items:1:mem_requested", &held.bytes);
    say("items:1:evicted", &moves.evictions.get());
    say("items:1:outofmemory", &moves.refusals.get());
    say("items:1:reclaimed", &moves.reclaimed.get());
    say("items:1:expired_unfetched", &moves.expired_unfetched.get());
    say("items:1:evicted_unfetched", &moves.evicted_unfetched.get());
    say("items:1:evicted_active", &moves.evicted_active.get());
    say("items:1:crawler_reclaimed", &context.store.crawled().0);
    say("items:1:moves_to_cold", &moves.to_cold.get());
    say("items:1:moves_to_warm", &moves.to_warm.get());
    say("items:1:moves_within_lru", &moves.within.get());
}

fn slabs(context: &Context<'_>, say: &mut Say<'_>) {
    let held = context.store.holdings();
    say("active_slabs", &0);
    say("total_malloced", &held.owned);
}

/// Reports the measurements of the allocation section.
fn hearth(context: &Context<'_>, say: &mut Say<'_>) {
    let ((measured, section), held) = (context.store.measured(), context.store.holdings());
    say("section_mode", &context.store.settings().running.mode);
    say("section_way", &format!("{:?}", section.way).to_lowercase());
    say("section_entries", &measured.entries);
    say("section_ticks", &measured.ticks);
    say(
        "section_ticks_mean",
        &(measured.ticks / measured.entries.max(1)),
    );
    say("section_delegated", &section.delegated);
    say("section_contended", &section.contended);
    say("section_wait_ticks", &section.wait_ticks);
    if let Some(busy) = section.server_busy_percent() {
        say("section_server_busy_percent", &format!("{busy:.1}"));
    }
    for (i, line) in context.store.explain().lines().enumerate() {
        say(&format!("section_why_{i}"), &line);
    }
    say("heap_owned", &held.owned);
    say("heap_bytes", &held.charged);
}

/// Handles commands that tune memcached's own machinery.
pub(super) fn control(context: &mut Context<'_>, words: &Words<'_>) -> Asked {
    let text: &[u8] = match words.get(0) {
        b"lru" => lru(context, words),
        b"lru_crawler" => return crawler(context, words),
        b"slabs" => slabs_control(words),
        b"watch" => b"ERROR watching is not supported by this server\r\n",
        _ => b"Error TLS not enabled\r\n",
    };
    answer(context, text)
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
            if hot.saturating_add(warm) > 80 {
                return b"ERROR hot and warm pcts must not exceed 80\r\n";
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
            (Some(_), Some(_)) => b"NOSPARE source class has no spare pages\r\n",
            _ => FORMAT,
        },
        _ => ERROR,
    }
}

/// The answer to a class that does not exist.
pub(super) const BAD_CLASS: &[u8] = b"BADCLASS invalid class id\r\n";

/// True for the only class, or all.
pub(super) fn is_class(word: &[u8]) -> bool {
    matches!(word, b"all" | b"hash" | b"1")
}

fn crawler(context: &mut Context<'_>, words: &Words<'_>) -> Asked {
    match (words.get(1), words.len()) {
        (b"enable", _) => context.store.set_crawler(true),
        (b"disable", _) => context.store.set_crawler(false),
        (b"crawl" | b"metadump", 3..) if !context.store.crawls() => {
            return answer(context, b"CLIENT_ERROR lru crawler disabled\r\n");
        }
        // The clock's thread does it.
        (b"crawl", 3..) if is_class(words.get(2)) => context.store.ask_for_crawl(),
        (b"crawl", 3..) => return answer(context, BAD_CLASS),
        (b"sleep" | b"tocrawl", 3..) => {
            if unsigned_32(words.get(2)).is_none() {
                return answer(context, b"CLIENT_ERROR bad command line format\r\n");
            }
        }
        (b"metadump", 3..) => return survey::meta_dump(context, words),
        _ => return answer(context, ERROR),
    }
    answer(context, OK)
}
