//! Statistics and control commands.

use std::fmt::Display;

use super::command::{Asked, Context, Say};
use super::survey::{self, Survey};
use super::words::Words;

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
        word @ (b"on" | b"off") => {
            context.store.details().set_on(word == b"on");
            answer(context, b"OK\r\n")
        }
        b"dump" => {
            context.store.details().write(context.out);
            answer(context, b"END\r\n")
        }
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
        ("auth_cmds", &sum.auth_cmds),
        ("auth_errors", &sum.auth_errors),
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
    let (chains, table_bytes) = store.tables();
    say("hash_power_level", &chains.ilog2());
    say("hash_bytes", &table_bytes);
    // Each stripe grows at once, when it is locked anyway.
    say("hash_is_expanding", &0);
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
    say("lrutail_reflocked", &moves.skipped.get());
    say("direct_reclaims", &moves.direct.get());
    say("malloc_fails", &moves.not_given.get());
    let watch = store.watch();
    // Events are written to watchers' buffers at once, so none is dropped before.
    say("log_worker_dropped", &0);
    say("log_worker_written", &watch.events.get());
    say("log_watcher_skipped", &watch.skipped.get());
    say("log_watcher_sent", &watch.sent.get());
    say("log_watchers", &watch.watchers());
    let (running, starts) = store.crawls_so_far();
    say("lru_crawler_running", &u32::from(running));
    say("lru_crawler_starts", &starts);
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
    say("items:1:evicted_nonzero", &moves.evicted_nonzero.get());
    say("items:1:evicted_time", &moves.evicted_time.get());
    say("items:1:outofmemory", &moves.refusals.get());
    say("items:1:tailrepairs", &0);
    say("items:1:reclaimed", &moves.reclaimed.get());
    say("items:1:expired_unfetched", &moves.expired_unfetched.get());
    say("items:1:evicted_unfetched", &moves.evicted_unfetched.get());
    say("items:1:evicted_active", &moves.evicted_active.get());
    let (reclaimed, looked_at) = context.store.crawled();
    say("items:1:crawler_reclaimed", &reclaimed);
    say("items:1:crawler_items_checked", &looked_at);
    say("items:1:lrutail_reflocked", &moves.skipped.get());
    say("items:1:moves_to_cold", &moves.to_cold.get());
    say("items:1:moves_to_warm", &moves.to_warm.get());
    say("items:1:moves_within_lru", &moves.within.get());
    say("items:1:direct_reclaims", &moves.direct.get());
}

/// Reports all memory as one class, whose chunks have the mean size of the blocks in use: programs
/// that draw memcached's memory find the same names.
fn slabs(context: &Context<'_>, say: &mut Say<'_>) {
    const PAGE: usize = 1 << 20;
    let (held, sum) = (context.store.holdings(), context.about.counters());
    let count: usize = held.items.iter().sum();
    if let Some(chunk) = held.charged.checked_div(count) {
        let chunk = chunk.max(1);
        let free = held.owned.saturating_sub(held.charged) / chunk;
        say("1:chunk_size", &chunk);
        say("1:chunks_per_page", &(PAGE / chunk).max(1));
        say("1:total_pages", &held.owned.div_ceil(PAGE));
        say("1:total_chunks", &(count + free));
        say("1:used_chunks", &count);
        say("1:free_chunks", &free);
        say("1:free_chunks_end", &0);
        let counted = [
            ("get_hits", &sum.get_hits),
            ("cmd_set", &sum.cmd_set),
            ("delete_hits", &sum.delete_hits),
            ("incr_hits", &sum.incr_hits),
            ("decr_hits", &sum.decr_hits),
            ("cas_hits", &sum.cas_hits),
            ("cas_badval", &sum.cas_badval),
            ("touch_hits", &sum.touch_hits),
        ];
        for (name, counter) in counted {
            say(&format!("1:{name}"), &counter.get());
        }
    }
    say("active_slabs", &usize::from(count > 0));
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
