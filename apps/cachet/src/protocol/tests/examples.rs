//! What is known by example.

use super::{Bench, End};

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

/// What one connection sends, and what it is answered.
fn check(talk: &[(&str, &str)]) {
    let mut bench = Bench::new();
    for (sent, expected) in talk {
        assert_eq!(bench.says(sent), *expected, "to {sent:?}");
    }
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
    // Who goes amid a value leaves nothing behind.
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
    bench.store.clock().advance(4);
    bench.store.tick(&mut bench.worker);
    assert_eq!(bench.says("get a\r\n"), "VALUE a 0 1\r\nx\r\nEND\r\n");
    bench.store.clock().advance(1);
    bench.store.tick(&mut bench.worker);
    assert_eq!(bench.says("get a\r\n"), "END\r\n");
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
