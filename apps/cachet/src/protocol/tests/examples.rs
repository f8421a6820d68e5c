//! Example dialogues with their exact answers.

use super::{Bench, End};
use crate::store::Settings;

#[test]
fn a_line_without_an_end_closes_the_connection_unless_it_asks_for_keys() {
    let mut bench = Bench::new();
    assert_eq!(
        bench.talk([&b"x".repeat(2048)[..]]),
        (Vec::new(), End::Open)
    );
    assert_eq!(
        bench.talk([&b"x".repeat(2049)[..]]),
        (Vec::new(), End::Closed)
    );
    let mut many = b"get ".to_vec();
    many.extend_from_slice(&b"k ".repeat(5000));
    assert_eq!(
        bench.talk([&many[..], b"\r\n"]),
        (b"END\r\n".to_vec(), End::Open)
    );
}

/// A dialogue on one connection: pairs of input and answer.
fn check(talk: &[(&str, &str)]) {
    let mut bench = Bench::new();
    for (sent, expected) in talk {
        assert_eq!(bench.says(sent), *expected, "to {sent:?}");
    }
}

#[test]
fn a_request_of_http_closes_the_connection_unanswered() {
    for request in [
        "GET / HTTP/1.0\r\n",
        "POST /x HTTP/1.1\r\nset a 0 0 1\r\n1\r\n",
        "  DELETE   /a HTTP/2  \r\n",
        "HTTP/1.1\r\n",
    ] {
        let mut bench = Bench::new();
        let rest = "version\r\nset b 0 0 1\r\n1\r\n";
        let sent = format!("{request}{rest}");
        assert_eq!(
            bench.talk([sent.as_bytes()]),
            (Vec::new(), End::Closed),
            "{request:?}"
        );
        assert_eq!(bench.says("get a b\r\n"), "END\r\n", "{request:?} stored");
        assert_eq!(bench.about.0.sum().conn_http.get(), 1);
    }
    for (mistake, answer) in [
        ("get / HTTP/1.0\r\n", "END\r\n"),
        ("set a HTTP/1.1\r\n", "ERROR\r\n"),
        ("flush_all 1 2 HTTP/1.1\r\n", "ERROR\r\n"),
        ("GET / HTTP/1.0 x\r\n", "ERROR\r\n"),
        ("mm HTTP/1.0\r\n", "ERROR\r\n"),
    ] {
        assert_eq!(Bench::new().says(mistake), answer, "to {mistake:?}");
    }
}

#[test]
fn a_wrong_delete_with_noreply_is_quiet() {
    check(&[
        ("delete k 5 noreply\r\n", ""),
        ("delete k noreply noreply\r\n", ""),
        ("delete k 0 noreply\r\nmn\r\n", "MN\r\n"),
        (
            "delete k 0 noreplyx\r\n",
            "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n",
        ),
    ]);
}

#[test]
fn a_number_that_becomes_shorter_leaves_spaces() {
    check(&[
        ("set n 7 0 2\r\n10\r\n", "STORED\r\n"),
        ("decr n 7\r\n", "3\r\n"),
        ("get n\r\n", "VALUE n 7 2\r\n3 \r\nEND\r\n"),
        ("decr n 100\r\n", "0\r\n"),
        (
            "incr n 18446744073709551615\r\n",
            "18446744073709551615\r\n",
        ),
        ("incr n 2\r\n", "1\r\n"),
        (
            "get n\r\n",
            "VALUE n 7 20\r\n1                   \r\nEND\r\n",
        ),
        ("ma n MD D5 v\r\n", "VA 1\r\n0\r\n"),
    ]);
}

#[test]
fn a_time_given_to_a_number_counts_however_long_it_becomes() {
    check(&[
        ("set n 0 0 1\r\n9\r\n", "STORED\r\n"),
        ("ma n T60 t v\r\n", "VA 2 t60\r\n10\r\n"),
        ("mg n t\r\n", "HD t60\r\n"),
        ("ma n t T30\r\n", "HD t60\r\n"),
        ("mg n t\r\n", "HD t30\r\n"),
    ]);
}

#[test]
fn a_token_that_is_too_long_counts_as_a_use_unless_a_flag_looks_first() {
    let token = "O".repeat(34);
    for (flags, is_fetched) in [
        ("", true),
        ("t v ", true),
        ("u ", false),
        ("h ", false),
        ("T60 ", false),
    ] {
        let mut bench = Bench::new();
        assert!(bench.says("set n 0 0 1\r\n1\r\n").contains("STORED"));
        let refused = bench.says(&format!("mg n {flags}{token}\r\n"));
        assert_eq!(refused, "CLIENT_ERROR opaque token too long\r\n");
        let about = bench.says("me n\r\n");
        assert_eq!(about.contains("fetch=yes"), is_fetched, "{flags}: {about}");
    }
}

#[test]
fn a_time_behind_a_token_that_is_too_long_is_not_given() {
    let token = "O".repeat(34);
    check(&[
        ("set n 0 0 1\r\n1\r\n", "STORED\r\n"),
        (
            &format!("ma n {token} T-1\r\n"),
            "CLIENT_ERROR opaque token too long\r\n",
        ),
        ("get n\r\n", "VALUE n 0 1\r\n2\r\nEND\r\n"),
        (
            &format!("ma n T-1 {token}\r\n"),
            "CLIENT_ERROR opaque token too long\r\n",
        ),
        ("get n\r\n", "END\r\n"),
    ]);
}

#[test]
fn a_key_that_is_too_long_costs_no_other_answers() {
    let long = "k".repeat(251);
    check(&[
        ("set a 0 0 1\r\nx\r\n", "STORED\r\n"),
        (
            &format!("get a\r\nget a {long}\r\nget a\r\n"),
            "VALUE a 0 1\r\nx\r\nEND\r\nCLIENT_ERROR bad command line format\r\n\
             VALUE a 0 1\r\nx\r\nEND\r\n",
        ),
    ]);
}

#[test]
fn what_is_too_large_is_swallowed_and_what_was_there_is_gone() {
    let large = "x".repeat((1 << 20) + 1);
    let line = |command: &str, rest: &str| {
        format!(
            "{command} big 0 0 {}{rest}\r\n{large}\r\nmn\r\n",
            large.len()
        )
    };
    check(&[
        ("set big 0 0 1\r\nx\r\n", "STORED\r\n"),
        (
            &line("append", ""),
            "SERVER_ERROR object too large for cache\r\nMN\r\n",
        ),
        ("get big\r\n", "VALUE big 0 1\r\nx\r\nEND\r\n"),
        (
            &line("set", ""),
            "SERVER_ERROR object too large for cache\r\nMN\r\n",
        ),
        ("get big\r\n", "END\r\n"),
        (&line("set", " noreply"), "MN\r\n"),
        (
            &format!("ms big {}\r\n{large}\r\nmn\r\n", large.len()),
            "SERVER_ERROR object too large for cache\r\nMN\r\n",
        ),
    ]);
}

#[test]
fn a_large_value_comes_in_pieces_and_goes_as_one() {
    let mut bench = Bench::new();
    let value: Vec<u8> = (0..900_000_u32).map(|i| (i * 7) as u8).collect();
    let mut sent = format!("set big 5 0 {}\r\n", value.len()).into_bytes();
    sent.extend_from_slice(&value);
    sent.extend_from_slice(b"\r\nget big\r\n");
    let mut expected = format!("STORED\r\nVALUE big 5 {}\r\n", value.len()).into_bytes();
    expected.extend_from_slice(&value);
    expected.extend_from_slice(b"\r\nEND\r\n");
    assert_eq!(bench.talk(sent.chunks(4099)), (expected, End::Open));
    // A client that goes in the middle of a value leaves nothing behind.
    assert_eq!(bench.talk([&sent[..1000]]), (Vec::new(), End::Amid));
    bench.store.free_kept(&mut bench.worker);
    assert_eq!(bench.store.holdings().items, [1, 0, 0]);
}

#[test]
fn flush_all_forgets_now_or_later() {
    let mut bench = Bench::new();
    assert_eq!(
        bench.says("set a 0 0 1\r\nx\r\nflush_all\r\nget a\r\n"),
        "STORED\r\nOK\r\nEND\r\n"
    );
    let later = "set a 0 0 1\r\nx\r\nflush_all 5\r\nget a\r\n";
    assert_eq!(
        bench.says(later),
        "STORED\r\nOK\r\nVALUE a 0 1\r\nx\r\nEND\r\n"
    );
    let found = "VALUE a 0 1\r\nx\r\nEND\r\n";
    bench.store.clock().advance(3);
    bench.store.tick();
    assert_eq!(bench.says("get a\r\n"), found);
    // The last second before the moment.
    bench.store.clock().advance(1);
    bench.store.tick();
    assert_eq!(bench.says("get a\r\n"), "END\r\n");
    // What is stored afterwards stays.
    assert_eq!(bench.says("set a 0 0 1\r\nx\r\n"), "STORED\r\n");
    bench.store.clock().advance(1);
    bench.store.tick();
    assert_eq!(bench.says("get a\r\n"), found);
    // A second before now is now.
    assert_eq!(bench.says("flush_all 1\r\nget a\r\n"), "OK\r\nEND\r\n");
    // A later command takes the place of an earlier one; a wrong one does not.
    for (second, told, after) in [
        ("flush_all 100", "OK\r\n", found),
        ("flush_all", "OK\r\n", "END\r\n"),
        ("flush_all -1", "OK\r\n", "END\r\n"),
        (
            "flush_all x",
            "CLIENT_ERROR invalid exptime argument\r\n",
            "END\r\n",
        ),
        ("flush_all 100 noreply", "", found),
    ] {
        let sent = format!("set a 0 0 1\r\nx\r\nflush_all 5\r\n{second}\r\n");
        assert_eq!(bench.says(&sent), format!("STORED\r\nOK\r\n{told}"));
        bench.store.clock().advance(10);
        bench.store.tick();
        assert_eq!(bench.says("get a\r\n"), after, "{second}");
    }
}

#[test]
fn commands_are_counted_as_memcached_counts_them() {
    let mut bench = Bench::new();
    let mut counted = |sent: &str| -> Vec<String> {
        let before = bench.says("stats\r\n");
        bench.says(sent);
        let after = bench.says("stats\r\n");
        let names = ["cmd_get", "get_", "touch_", "cmd_touch", "incr_", "decr_"];
        let names = [&names[..], &["total_items", "cmd_flush"]].concat();
        let is_one = |line: &&str| {
            let name = line.strip_prefix("STAT ");
            name.is_some_and(|name| names.iter().any(|one| name.starts_with(one)))
        };
        let lines = before.lines().zip(after.lines());
        let changed = lines.filter(|(old, new)| old != new);
        changed
            .map(|(_, new)| new)
            .filter(is_one)
            .filter_map(|line| Some(line.split(' ').nth(1)?.to_owned()))
            .collect()
    };
    counted("set a 0 0 1\r\nx\r\nset n 0 0 1\r\n1\r\n");
    for (sent, expected) in [
        ("get a", &["cmd_get", "get_hits"][..]),
        ("get x", &["cmd_get", "get_misses"]),
        ("gat 0 a", &["cmd_touch", "touch_hits"]),
        ("gat 0 x", &["cmd_touch", "touch_misses"]),
        ("mg a", &["cmd_get", "get_hits"]),
        ("mg a T0", &["cmd_touch", "touch_hits"]),
        ("mg x T0", &["cmd_get", "get_misses"]),
        ("mg new N0", &["cmd_get", "get_hits", "total_items"]),
        ("incr n 1", &["incr_hits"]),
        ("incr x 1", &["incr_misses"]),
        ("decr x 1", &["decr_misses"]),
        ("incr a 1", &[]),
        ("ma n C1", &[]),
        ("ma newer N0", &["total_items"]),
        ("flush_all", &["cmd_flush"]),
        ("flush_all x", &["cmd_flush"]),
        ("get a", &["cmd_get", "get_misses", "get_flushed"]),
    ] {
        assert_eq!(counted(&format!("{sent}\r\n")), expected, "{sent}");
    }
}

#[test]
fn the_sections_of_statistics_end() {
    let mut bench = Bench::new();
    bench.says("set a 0 0 1\r\nx\r\n");
    for of in [
        "",
        " settings",
        " items",
        " slabs",
        " sizes",
        " conns",
        " hearth",
        " extstore",
    ] {
        let answer = bench.says(&format!("stats{of}\r\n"));
        assert!(answer.ends_with("END\r\n"), "{answer}");
        assert!(
            answer
                .lines()
                .rev()
                .skip(1)
                .all(|line| line.starts_with("STAT ")),
            "{answer}"
        );
    }
    assert!(bench.says("stats\r\n").contains("STAT curr_items 1\r\n"));
    assert!(bench.says("stats\r\n").contains("STAT cmd_set 1\r\n"));
    assert_eq!(bench.says("stats reset\r\n"), "RESET\r\n");
    assert!(bench.says("stats\r\n").contains("STAT cmd_set 0\r\n"));
    let dump = bench.says("lru_crawler metadump all\r\n");
    assert!(dump.starts_with("key=a exp=-1 la="), "{dump}");
}

/// A value of so many bytes under a key, as a request and as an answer.
fn stored(key: &str, bytes: usize) -> (String, String) {
    let value = "v".repeat(bytes);
    (
        format!("set {key} 0 0 {bytes}\r\n{value}\r\n"),
        format!("VALUE {key} 0 {bytes}\r\n{value}\r\n"),
    )
}

#[test]
fn a_command_for_many_keys_answers_no_more_at_once_than_may_wait_and_one_more() {
    let mut bench = Bench::new();
    let (sent, one) = stored("k", 300_000);
    assert_eq!(bench.says(&sent), "STORED\r\n");
    let count = 50;
    let expected = format!("{}END\r\nMN\r\n", one.repeat(count));
    let keys = " k".repeat(count);
    for asks in [
        format!("get{keys}\r\nmn\r\n"),
        format!("get{keys} \nmn\r\n"),
        format!("  get{keys}\r\nmn\r\n"),
        format!("gat 0{keys}\r\nmn\r\n"),
        format!("get{keys} x y\0 z\r\nmn\r\n"),
    ] {
        for pieces in [asks.len(), 7] {
            let pieces = asks.as_bytes().chunks(pieces);
            let (answer, end) = bench.talk(pieces);
            assert!(answer == expected.as_bytes() && end == End::Open, "{asks}");
        }
    }
    assert!(bench.most > 1 << 20, "nothing was much");
    assert!(bench.most < (1 << 20) + one.len() + 10, "{}", bench.most);
    // Numbers and counts are answered as always; `gat` counts as a touch alone.
    let with_cas = bench.says(&format!("gets{keys}\r\n"));
    assert_eq!(with_cas.matches("VALUE k 0 300000 ").count(), count);
    assert!(bench.says("stats\r\n").contains("STAT get_hits 450\r\n"));
}

#[test]
fn a_key_that_is_too_long_after_much_that_is_found_costs_the_whole_answer() {
    let mut bench = Bench::new();
    assert_eq!(bench.says(&stored("k", 300_000).0), "STORED\r\n");
    let keys = format!("{} {}", " k".repeat(50), "x".repeat(251));
    for command in ["get", "gets", "gat 0"] {
        assert_eq!(
            bench.says(&format!("{command}{keys}\r\nmn\r\n")),
            "CLIENT_ERROR bad command line format\r\nMN\r\n"
        );
    }
}

#[test]
fn lists_of_items_are_made_piece_by_piece() {
    let mut bench = Bench::new();
    let count = 30_000;
    let sent: String = (0..count)
        .map(|i| format!("set key{i} 0 0 1 noreply\r\nx\r\n"))
        .collect();
    assert_eq!(bench.says(&sent), "");
    let dump = bench.says("lru_crawler metadump all\r\nmn\r\n");
    let mut lines: Vec<&str> = dump.lines().collect();
    assert_eq!((lines.pop(), lines.pop()), (Some("MN"), Some("END")));
    let key = |line: &&str| line.split(' ').next().map(str::to_owned);
    let keys: std::collections::HashSet<_> = lines.iter().map(key).collect();
    assert_eq!((lines.len(), keys.len()), (count, count));
    // About four thousand at once.
    assert!(bench.most < 400_000, "{} bytes at once", bench.most);
    let listed = |answer: String| answer.matches("ITEM key").count();
    assert_eq!(listed(bench.says("stats cachedump 1 10\r\n")), 10);
    assert_eq!(listed(bench.says("stats cachedump 1 0\r\n")), count);
    assert_eq!(bench.says("stats cachedump 2 0\r\n"), "END\r\n");
    let sizes = bench.says("stats sizes\r\nmn\r\n");
    assert!(
        sizes.starts_with("STAT 96 30000\r\nEND\r\nMN\r\n"),
        "{sizes}"
    );
}

#[test]
fn who_lists_nothing_is_told_so() {
    check(&[
        ("lru_crawler metadump all\r\nmn\r\n", "END\r\nMN\r\n"),
        ("stats sizes\r\n", "END\r\n"),
        ("lru_crawler crawl all\r\n", "OK\r\n"),
        ("lru_crawler crawl 99\r\n", "BADCLASS invalid class id\r\n"),
        ("lru_crawler disable\r\n", "OK\r\n"),
        (
            "lru_crawler crawl all\r\nlru_crawler metadump all\r\n",
            "CLIENT_ERROR lru crawler disabled\r\nCLIENT_ERROR lru crawler disabled\r\n",
        ),
    ]);
}

#[test]
fn a_limit_in_bytes_is_refused() {
    check(&[
        (
            "cache_memlimit 7\r\n",
            "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n",
        ),
        (
            "cache_memlimit 1073741824\r\n",
            "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n",
        ),
        ("cache_memlimit 64\r\n", "OK\r\n"),
        ("cache_memlimit -5\r\n", "ERROR\r\n"),
    ]);
}

/// The same answers as memcached 1.6.18 with `-M`.
#[test]
fn where_there_is_no_memory_each_command_says_so_in_its_own_words() {
    let mut bench = Bench::with(Settings {
        memory: 1 << 20,
        evicts: false,
        ..Settings::default()
    });
    bench.says("set n 0 0 1\r\n9\r\n");
    for length in [1000, 1] {
        let mut number = 0;
        while bench.says(&stored(&format!("{length}k{number}"), length).0) == "STORED\r\n" {
            number += 1;
        }
    }
    let new = "SERVER_ERROR Out of memory allocating new item\r\n";
    let long = "O".repeat(40);
    for (sent, expected) in [
        ("incr n 1\r\n", "SERVER_ERROR out of memory\r\n"),
        ("ma n\r\n", "SERVER_ERROR out of memory\r\n"),
        ("decr n 1\r\n", "8\r\n"),
        ("ma q N0\r\n", new),
        (&format!("ma q N0 {long}\r\n"), new),
        ("mg q N30\r\n", "EN\r\n"),
        ("mg q N30 v k O123\r\n", "EN kq O123\r\n"),
        ("mg q N30 v k q\r\nmn\r\n", "MN\r\n"),
        (
            "ms q 2\r\nxx\r\n",
            "SERVER_ERROR out of memory storing object\r\n",
        ),
    ] {
        assert_eq!(bench.says(sent), expected, "to {sent:?}");
    }
}

/// A key with a line end must not let one client forge the answer that another reads next.
#[test]
fn a_key_that_is_no_text_is_never_told_as_text() {
    // "a\r\nX b", "q\r\nX b", "q\r\nX c", "r\r\nX c".
    check(&[
        ("ms YQ0KWCBi 1 b\r\n9\r\n", "HD\r\n"),
        ("mg YQ0KWCBi b k v\r\n", "VA 1 kYQ0KWCBi b\r\n9\r\n"),
        ("ma YQ0KWCBi b\r\n", "HD\r\n"),
        ("mg YQ0KWCBi b k v\r\n", "VA 2 kYQ0KWCBi b\r\n10\r\n"),
        ("mg cQ0KWCBi b k v N30\r\n", "VA 0 kcQ0KWCBi b W\r\n\r\n"),
        ("ma cQ0KWCBj b N0 J5 k v\r\n", "VA 1 kcQ0KWCBj b\r\n5\r\n"),
        ("mg cQ0KWCBj b k v\r\n", "VA 1 kcQ0KWCBj b\r\n5\r\n"),
        ("ms cg0KWCBj 1 b\r\n9\r\n", "HD\r\n"),
        ("ms cg0KWCBj 1 b MA\r\n9\r\n", "HD\r\n"),
        ("mg cg0KWCBj b k\r\n", "HD kcg0KWCBj b\r\n"),
    ]);
    let mut bench = Bench::new();
    bench
        .says("ms YQ0KWCBi 1 b\r\n9\r\nma YQ0KWCBi b\r\nmg cQ0KWCBi b N30\r\nset t 0 0 1\r\nx\r\n");
    assert_eq!(
        bench.says("stats cachedump 1 0\r\n"),
        "ITEM t [1 b; 0 s]\r\nEND\r\n"
    );
    for key in ["YQ0KWCBi", "cQ0KWCBi"] {
        let told = bench.says(&format!("me {key} b\r\n"));
        assert!(told.starts_with(&format!("ME {key} exp=")), "{told:?}");
        assert_eq!(told.matches('\n').count(), 1, "{told:?}");
    }
    let told = bench.says("lru_crawler metadump all\r\n");
    assert!(told.contains("key=a%0D%0AX%20b "), "{told:?}");
}

#[test]
fn keys_are_counted_by_their_prefix() {
    let mut bench = Bench::new();
    for (sent, expected) in [
        ("get a:1\r\nstats detail dump\r\n", "END\r\nEND\r\n"),
        ("stats detail on\r\n", "OK\r\n"),
        ("set a:1 0 0 1\r\nx\r\n", "STORED\r\n"),
        (
            "set a:1 x 0 1\r\n",
            "CLIENT_ERROR bad command line format\r\n",
        ),
        ("get a:1 a:2 :3 none\r\n", "VALUE a:1 0 1\r\nx\r\nEND\r\n"),
        ("gat 0 a:1\r\n", "VALUE a:1 0 1\r\nx\r\nEND\r\n"),
        ("delete b:1\r\n", "NOT_FOUND\r\n"),
        (
            "stats detail dump\r\n",
            "PREFIX  get 1 hit 0 set 0 del 0\r\nPREFIX a get 3 hit 2 set 1 del 0\r\n\
             PREFIX b get 0 hit 0 set 0 del 1\r\nEND\r\n",
        ),
        (
            "stats detail off\r\nget a:1\r\n",
            "OK\r\nVALUE a:1 0 1\r\nx\r\nEND\r\n",
        ),
        ("stats reset\r\nstats detail dump\r\n", "RESET\r\nEND\r\n"),
    ] {
        assert_eq!(bench.says(sent), expected, "to {sent:?}");
    }
}

#[test]
fn without_numbers_no_value_has_the_one_that_is_asked_for() {
    let mut bench = Bench::with(Settings {
        shows_numbers: false,
        ..Settings::default()
    });
    for (sent, expected) in [
        ("set a 0 0 1\r\nx\r\n", "STORED\r\n"),
        ("gets a\r\n", "VALUE a 0 1 0\r\nx\r\nEND\r\n"),
        ("cas a 0 0 1 0\r\ny\r\n", "EXISTS\r\n"),
        ("cas b 0 0 1 0\r\ny\r\n", "NOT_FOUND\r\n"),
        ("ms a 1 MA C5 c\r\ny\r\n", "HD c0\r\n"),
        ("ms a 1 MR C5 c\r\ny\r\n", "EX c0\r\n"),
        ("ms b 1 ME C5 c\r\ny\r\n", "HD c0\r\n"),
        ("ms b 1 I C5 c\r\ny\r\n", "EX c0\r\n"),
        ("mg a c v\r\n", "VA 2 c0\r\nxy\r\n"),
        (
            "ma n N0 J5 c\r\nma n C4\r\nma n C0 c\r\n",
            "HD c0\r\nEX\r\nHD c0\r\n",
        ),
        (
            "md n I C4\r\nmd n I C0\r\nmd n C0\r\n",
            "EX\r\nHD\r\nHD\r\n",
        ),
    ] {
        assert_eq!(bench.says(sent), expected, "to {sent:?}");
    }
    // What was flushed stays so: the numbers inside go on.
    assert_eq!(bench.says("flush_all\r\nget a\r\n"), "OK\r\nEND\r\n");
    assert_eq!(
        bench.says("set a 0 0 1\r\nz\r\nget a\r\n"),
        "STORED\r\nVALUE a 0 1\r\nz\r\nEND\r\n"
    );
}

#[test]
fn control_commands_are_checked_as_memcached_checks_them() {
    check(&[
        ("mg k \u{ff}\r\n", "CLIENT_ERROR duplicate flag\r\n"),
        ("me YQ bx\r\n", "EN\r\n"),
        (
            "md k b c f h k l q s t u v I N0 J1 D1 R5 F1 x\r\n",
            "CLIENT_ERROR options flags too long\r\n",
        ),
        (
            "mg Yg== b c f h k l s t u v I N0 J1 D1 R5 F1 C1\r\n",
            "VA 0 c1 f0 h0 kb l0 s0 t-1 W\r\n\r\n",
        ),
        (
            "ms k 1 b c f h k l q s t u v I N0 J1 D1 R5 F1\r\nx\r\n",
            "CLIENT_ERROR options flags too long\r\nERROR\r\n",
        ),
        ("md -YQ== b k\r\n", "NF kYQ== b\r\n"),
        (
            "lru tune 10 20 0.2 0\r\n",
            "ERROR hot/warm age factors must be greater than 0\r\n",
        ),
        (
            "lru tune 10 20 x 1\r\nlru tune 10 20 0.2\tx 1 y\r\n",
            "ERROR\r\nOK\r\n",
        ),
        ("lru mode flat noreply\r\n", ""),
        (
            "lru_crawler sleep 1000001\r\n",
            "CLIENT_ERROR sleep must be one second or less\r\n",
        ),
        ("lru_crawler crawl 1,2\r\n", "OK\r\n"),
        (
            "lru_crawler metadump 1,x\r\n",
            "BADCLASS invalid class id\r\n",
        ),
        (
            "lru_crawler metadump 2,3\r\n",
            "NOTSTARTED no items to crawl\r\n",
        ),
        ("lru_crawler metadump all x\r\n", "ERROR\r\n"),
        (
            "stats cachedump 64 1\r\n",
            "CLIENT_ERROR Illegal slab id\r\n",
        ),
        (
            "slabs reassign 1 70\r\n",
            "BADCLASS invalid src or dst class id\r\n",
        ),
        ("slabs automove 1 noreply\r\n", ""),
        (
            "set a 0 0 1\r\nx\r\nms Cg== 1 b\r\nx\r\n",
            "STORED\r\nHD\r\n",
        ),
        (
            "lru_crawler enable x\r\nlru_crawler disable x\r\n",
            "ERROR\r\nERROR\r\n",
        ),
        ("gat 0\0x a\r\n", "END\r\n"),
    ]);
    let mut bench = Bench::new();
    bench.says("set a 0 0 1\r\nx\r\nms Cg== 1 b\r\nx\r\n");
    let dump = bench.says("lru_crawler mgdump all\r\n");
    let mut lines: Vec<_> = dump.split_terminator("\r\n").collect();
    assert_eq!(lines.pop(), Some("EN"));
    lines.sort_unstable();
    assert_eq!(lines, ["mg Cg== b", "mg a"]);
}

#[test]
fn watching_begins_a_packet_and_ends_the_conversation() {
    let mut bench = Bench::new();
    assert_eq!(
        bench.says("mn\r\nwatch\r\nmn\r\n"),
        "MN\r\nERROR cannot pipeline other commands before watch\r\nMN\r\n"
    );
    assert_eq!(bench.says("watch fetchers x\r\nmn\r\n"), "ERROR\r\nMN\r\n");
    assert_eq!(bench.says("watch fetchers mutations\r\nmn\r\n"), "OK\r\n");
}
