//! Command lines and their meaning.

use clap::{CommandFactory, Parser};

use super::{Arguments, Pattern, ServerOptions, Wanted};

fn options(line: &str) -> Result<ServerOptions, String> {
    let words = std::iter::once("cachet").chain(line.split_whitespace());
    let arguments = Arguments::try_parse_from(words).map_err(|error| error.to_string())?;
    match arguments.wanted() {
        Ok(Wanted::Server(options)) => Ok(*options),
        Ok(other) => Err(format!("{other:?}")),
        Err(wrong) => Err(wrong.to_string()),
    }
}

#[test]
fn the_definition_is_sound() {
    Arguments::command().debug_assert();
}

#[test]
fn options_mean_what_they_mean_to_memcached() {
    let told =
        options("-p 0 -l 127.0.0.1,::1 -m 100 -I 2m -c 10 -t 2 -R 5 -vv -M -A -a 660 -u root -U 0");
    let told = told.expect("all are known");
    assert_eq!(
        (told.port, told.memory, told.item_size),
        (0, 100 << 20, 2 << 20)
    );
    assert_eq!(
        (told.connections, told.threads, told.requests_per_event),
        (10, 2, 5)
    );
    assert_eq!(
        (told.listen.len(), told.verbosity, told.unix_mask),
        (2, 2, 0o660)
    );
    assert!(told.disable_evictions && told.enable_shutdown && told.maxconns_fast);
    let told = options(
        "-o no_maxconns_fast,hashpower=20,idle_timeout=5,slab_chunk_max=1,modern,no_lru_crawler",
    );
    let told = told.expect("all are known");
    assert!(!told.maxconns_fast && !told.crawls);
    assert_eq!((told.hash_power, told.idle_timeout), (20, 5));
    let told = options("-o no_lru_crawler,lru_crawler").expect("it is known");
    assert!(told.crawls);
    let told = options("-t auto").expect("it is known");
    assert_eq!((told.pattern, told.mechanism), (Pattern::Adaptive, None));
}

/// The options that memcached 1.6.18 names in its help, and those that it accepts besides.
#[test]
fn whatever_memcached_takes_to_tune_itself_is_taken() {
    for word in [
        "maxconns_fast",
        "hashpower=16",
        "tail_repair_time=30",
        "hash_algorithm=murmur3",
        "no_lru_crawler",
        "lru_crawler_sleep=100",
        "lru_crawler_tocrawl=0",
        "read_buf_mem_limit=100",
        "no_lru_maintainer",
        "hot_lru_pct=20",
        "warm_lru_pct=40",
        "hot_max_factor=0.20",
        "warm_max_factor=2.00",
        "temporary_ttl=61",
        "idle_timeout=0",
        "slab_chunk_max=512",
        "watcher_logbuf_size=256",
        "worker_logbuf_size=64",
        "track_sizes",
        "no_hashexpand",
        "modern",
        "no_modern",
        "sock_cookie_id=1",
        "slab_sizes=100-200-300",
        "no_chunked_items",
        "slab_reassign",
        "no_slab_reassign",
        "slab_automove=1",
        "no_slab_automove",
        "slab_automove_ratio=0.8",
        "slab_automove_window=30",
        "slab_automove_freeratio=0.01",
        "no_maxconns_fast",
        "lru_crawler",
        "lru_maintainer",
        "inline_ascii_resp",
        "no_inline_ascii_resp",
        "resp_obj_mem_limit=1",
        "drop_privileges",
        "no_drop_privileges",
    ] {
        let told = options(&format!("-o {word}"));
        assert!(told.is_ok(), "{word}: {told:?}");
    }
}

#[test]
fn what_is_wrong_is_told_with_what_to_do() {
    for (line, told) in [
        ("-U 11211", "omit -U"),
        (
            "--mechanism io_uring --pattern leader",
            "use edge with leader",
        ),
        ("-S", "omit -S"),
        ("-Z", "omit -Z"),
        ("-e /mnt/items", "omit -e"),
        ("-N 4", "omit -N"),
        ("-I 2048m", "from 1k to 1024m"),
        ("-I 64m", "-m more"),
        ("-o hashpower", "-o hashpower=NUM"),
        ("-o ext_path=/x", "leave it away"),
        ("-o nonsense", "cachet --help"),
        ("-t 0", "from 1 on"),
        ("-m x", "suffix"),
        ("-a 9", "octal"),
        ("-o hot_lru_pct=50,warm_lru_pct=50", "cold items"),
    ] {
        let wrong = options(line).expect_err("it is wrong");
        assert!(wrong.contains(told), "{line}: {wrong}");
    }
}
