//! Command lines and their meaning.

use std::path::PathBuf;

use clap::{CommandFactory, Parser};

use crate::tls::{KeyFormat, VerifyMode};

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
fn encryption_is_set_by_memcacheds_names() {
    let told = options(
        "-Z -l 127.0.0.1,notls:127.0.0.1:7;notls:localhost -o ssl_chain_cert=/c,ssl_key=/k,\
         ssl_keyformat=2,ssl_verify_mode=1,ssl_ca_cert=/a,ssl_min_version=3,ssl_wbuf_size=8 \
         -o ssl_ciphers=ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256,ssl_session_cache",
    );
    let told = told.expect("all are known");
    let places: Vec<_> = told.places().map(|at| (at.name, at.is_encrypted)).collect();
    assert_eq!(
        places,
        [
            ("127.0.0.1", true),
            ("127.0.0.1:7", false),
            ("localhost", false)
        ]
    );
    let tls = told.tls.expect("it was asked for");
    assert_eq!(tls.chain, PathBuf::from("/c"));
    assert_eq!(tls.key, Some("/k".into()));
    assert_eq!(tls.authorities, Some("/a".into()));
    assert_eq!(
        (tls.key_format, tls.verify),
        (KeyFormat::Der, VerifyMode::Request)
    );
    assert_eq!((tls.version_name(), tls.buffer_kb), ("tlsv1.3", 8));
    assert!(tls.resumes);
    let old = tls
        .suites()
        .iter()
        .filter(|one| one.tls13().is_none())
        .count();
    assert_eq!((tls.suites().len() - old, old), (3, 2));
    let told = options("-o no_maxconns_fast").expect("it is known");
    assert!(told.tls.is_none());
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
        ("-Z", "ssl_chain_cert=FILE"),
        ("-Z -s /x -o ssl_chain_cert=c", "omit -Z or -s"),
        ("-o ssl_chain_cert=c", "add -Z"),
        ("-l notls:127.0.0.1", "add -Z"),
        ("-Z -o ssl_chain_cert", "ssl_chain_cert=…"),
        ("-Z -o ssl_chain_cert=", "ssl_chain_cert=…"),
        (
            "-Z -o ssl_chain_cert=c,ssl_keyformat=ENGINE",
            "give PEM or DER",
        ),
        (
            "-Z -o ssl_chain_cert=c,ssl_keyformat=2",
            "give ssl_key=FILE",
        ),
        ("-Z -o ssl_chain_cert=c,ssl_verify_mode=4", "0, 1, 2 or 3"),
        (
            "-Z -o ssl_chain_cert=c,ssl_verify_mode=2",
            "ssl_ca_cert=FILE",
        ),
        ("-Z -o ssl_chain_cert=c,ssl_min_version=1", "give 2 or 3"),
        ("-Z -o ssl_chain_cert=c,ssl_min_version=4", "TLS 1.3"),
        (
            "-Z -o ssl_chain_cert=c,ssl_ciphers=HIGH",
            "ECDHE-RSA-AES128-GCM-SHA256",
        ),
        ("-Z -o ssl_chain_cert=c,ssl_kernel_tls", "leave it away"),
        ("-Z -o ssl_chain_cert=c,ssl_wbuf_size=x", "kilobytes"),
        ("-Z -o ssl_chain_cert=c,ssl_nonsense", "cachet --help"),
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
