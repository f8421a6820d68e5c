//! Bounds on what a client can make the server do, at once and repeatedly.

use super::{Bench, Session, Then};
use crate::protocol::About;
use crate::store::Settings;

impl Bench {
    /// Serves `input` in one call: the bytes consumed, what comes next, and the answer.
    fn serve(&mut self, session: &mut Session, input: &[u8]) -> (usize, Then, String) {
        let mut out = Vec::new();
        let use_of = (&self.store, &mut self.worker, &self.about as &dyn About);
        let served = session.serve(use_of, input, 20, &mut out);
        let text = String::from_utf8_lossy(&out).into_owned();
        (served.consumed, served.then, text)
    }
}

/// Otherwise each byte of a line of 4 MiB costs a search of 4 MiB. The test exchanges bytes that
/// were searched, which no client can do: that they are not found shows that there was no second
/// search.
#[test]
fn what_was_looked_through_for_an_end_of_line_is_not_looked_through_again() {
    let (mut bench, mut session) = (Bench::new(), Session::new());
    let mut input = b"get k1 k2 k3".to_vec();
    assert_eq!(bench.serve(&mut session, &input).1, Then::More);
    input[6] = b'\n';
    assert_eq!(
        bench.serve(&mut session, &input),
        (0, Then::More, String::new())
    );
    input[6] = b' ';
    input.extend_from_slice(b"\r\nmn\r\nget");
    let (consumed, then, text) = bench.serve(&mut session, &input);
    assert_eq!((then, text.as_str()), (Then::More, "END\r\nMN\r\n"));
    // The search begins anew with the next line.
    let mut rest = input.split_off(consumed);
    assert_eq!(rest, b"get");
    rest.extend_from_slice(b" k\r\n");
    let all = rest.len();
    assert_eq!(
        bench.serve(&mut session, &rest),
        (all, Then::More, "END\r\n".into())
    );
}

#[test]
fn keys_that_are_not_there_end_a_turn_too() {
    let mut bench = Bench::new();
    bench.says("set last 0 0 1\r\nx\r\n");
    let keys = 50_000;
    for (command, long) in [
        ("get", false),
        ("gets", false),
        ("gat 0", false),
        ("get", true),
    ] {
        let mut input = format!("{command}{} last", " k".repeat(keys)).into_bytes();
        if long {
            input.extend_from_slice(&[b" ", &b"l".repeat(251)[..]].concat());
        }
        input.extend_from_slice(b"\r\nmn\r\n");
        let (mut session, mut all, mut turns) = (Session::new(), String::new(), 0);
        loop {
            let begun = bench.worker.counters.cmd_get.get();
            let (consumed, then, text) = bench.serve(&mut session, &input);
            let looked_for = bench.worker.counters.cmd_get.get() - begun;
            assert!(looked_for <= 5000, "{looked_for} keys in one turn");
            input.drain(..consumed);
            all += &text;
            turns += 1;
            if then == Then::More {
                break;
            }
        }
        if long {
            // It fails the whole command, so it is looked for before anything is sent.
            assert_eq!(all, "CLIENT_ERROR bad command line format\r\nMN\r\n");
            continue;
        }
        assert!(turns > 10, "{turns}");
        assert!(all.starts_with("VALUE last 0 1"), "{all}");
        assert!(all.ends_with("\r\nx\r\nEND\r\nMN\r\n"), "{all}");
    }
}

/// Incomplete values are not evicted, so clients that announce values without sending them must
/// not get all of the memory.
#[test]
fn values_that_never_come_leave_room_for_those_that_do() {
    let mut bench = Bench::with(Settings {
        memory: 8 << 20,
        ..Settings::default()
    });
    bench.says("set old 0 0 3\r\nold\r\n");
    let refused = "SERVER_ERROR out of memory storing object\r\n";
    let (mut half, mut sessions) = (0, Vec::new());
    for number in 0..20 {
        let mut session = Session::new();
        let line = match number % 4 {
            0 => format!("ms h{number} 1000000\r\nx"),
            1 => format!("set h{number} 0 0 1000000 noreply\r\nx"),
            _ => format!("set h{number} 0 0 1000000\r\nx"),
        };
        let (consumed, then, text) = bench.serve(&mut session, line.as_bytes());
        assert_eq!((consumed, then), (line.len(), Then::More));
        let is_quiet = number % 4 == 1;
        let expected = if half < 4 || is_quiet { "" } else { refused };
        assert_eq!(text, expected, "{number}");
        half += 1;
        sessions.push(session);
    }
    // A value that is complete is stored, and the one that it replaces is freed.
    for number in 0..100 {
        let sent = format!("set k{number} 0 0 4\r\nhere\r\n");
        assert_eq!(bench.says(&sent), "STORED\r\n");
    }
    let large = format!("set large 0 0 900000\r\n{}\r\n", "v".repeat(900_000));
    assert_eq!(bench.says(&large), "STORED\r\n");
    // A value that could not be replaced is gone, as when memory is short.
    let mut session = Session::new();
    assert_eq!(
        bench.serve(&mut session, b"set old 0 0 1000000\r\nx").2,
        refused
    );
    assert_eq!(bench.says("get old\r\n"), "END\r\n");
    // The rest of the refused value is skipped.
    let rest = [&b"x".repeat(999_999)[..], b"\r\nmn\r\n"].concat();
    assert_eq!(bench.serve(&mut session, &rest).2, "MN\r\n");
    // A session that had a share finishes, and one that goes gives its share back.
    assert_eq!(
        bench.serve(&mut sessions[0], &rest).2,
        "HD\r\nMN\r\n",
        "what comes in the end is stored"
    );
    for mut session in sessions {
        session.end(&mut bench.worker);
    }
    for number in 0..4 {
        let mut session = Session::new();
        let line = format!("set n{number} 0 0 1000000\r\nx");
        assert_eq!(bench.serve(&mut session, line.as_bytes()).2, "");
        session.end(&mut bench.worker);
    }
}
