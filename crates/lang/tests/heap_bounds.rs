//! Small programs of which the answer is known, each kind of bound and of none.

use hearth_lang::analysis::heap_bound::{HeapBound, block_bytes};
use hearth_lang::compile::{CompileOptions, check, heap_bounds};
use hearth_lang::source::LineIndex;

/// The bound of a component's heap, or why there is none and the line that makes it so.
fn bound(text: &str, component: &str) -> Result<u64, (String, u32)> {
    let found = check(text, &CompileOptions::default()).diagnostics;
    assert!(found.iter().all(|d| !d.is_error()), "{found:?}\n{text}");
    let bounds = heap_bounds(text, "program.isf", &CompileOptions::default());
    let (_, bound) = bounds
        .into_iter()
        .find(|(name, _)| name == component)
        .unwrap_or_else(|| panic!("there is no {component}"));
    match bound {
        HeapBound::Bounded(room) => {
            assert!(room.largest <= room.bytes);
            Ok(room.bytes)
        }
        HeapBound::Unbounded(reason) => {
            let line = LineIndex::new(text).line(reason.span.start);
            Err((reason.text, line))
        }
    }
}

/// The bound of the only component, which has this text.
fn of_one(inside: &str) -> Result<u64, (String, u32)> {
    bound(
        &format!(
            "type I is interface(in integer[] numbers ; in any box ; in string word)\n\
             type Pair is struct(integer[] a, b)\n\
             component C presents I {{\n{inside}\n}}\nc = new C()\n"
        ),
        "C",
    )
}

const ENDS: &str = "constructor() { }\nbehaviour { stop }";

/// An array of so many integers.
fn integers(count: u64) -> u64 {
    block_bytes(16 + 4 * count)
}

#[test]
fn blocks_have_sizes_of_their_own() {
    let expected = [
        (0, 0),
        (1, 16),
        (256, 256),
        (257, 320),
        (1024, 1024),
        (1025, 1280),
        (4097, 5120),
        (16_385, 20_480),
        (65_537, 81_920),
        (262_144, 262_144),
        (262_145, 327_680),
        (4 << 20, 4 << 20),
        ((4 << 20) + 1, 8 << 20),
    ];
    for (bytes, block) in expected {
        assert_eq!(block_bytes(bytes), block, "{bytes}");
    }
    assert_eq!(block_bytes(u64::MAX), u64::MAX);
}

#[test]
fn scalars_literals_and_channels_take_nothing() {
    let text = format!("n = 1\ns = \"word\"\nout_ = new out integer\n{ENDS}");
    assert_eq!(of_one(&text), Ok(0));
}

#[test]
fn members_count_with_all_that_is_in_them() {
    let array = |member: &str| of_one(&format!("{member}\n{ENDS}"));
    assert_eq!(array("a = new integer[100] of 0"), Ok(integers(100)));
    let rows = block_bytes(16 + 8 * 3) + 3 * integers(50);
    assert_eq!(array("a = new integer[3][50] of 0"), Ok(rows));
    // The arrays belong to the struct alone when the initialiser has ended.
    let pair = "p = new Pair(new integer[10] of 0, new integer[20] of 0)";
    let of_pair = block_bytes(8 + 16) + integers(10) + integers(20);
    assert!(array(pair).is_ok_and(|bytes| bytes >= of_pair && bytes <= 2 * of_pair));
}

#[test]
fn variables_count_while_they_are_there() {
    let one = of_one(
        "constructor() { }\n\
         behaviour { { a = new integer[100] of 0 ; a[0] := 1 ; receive n from numbers\n\
         printInt(a[0]) }\n{ b = new integer[200] of 0 ; receive m from numbers ; printInt(b[0]) }\n\
         stop }",
    );
    // Never both; and one that comes by the channel, of which nobody makes any.
    assert_eq!(one, Ok(integers(200)));
}

#[test]
fn what_a_loop_leaves_counts_in_the_next_round() {
    let one = of_one(
        "constructor() { }\n\
         behaviour { a = new integer[10] of 0\n\
         for i = 1 .. 9 do { receive n from numbers ; a := new integer[300] of i }\n\
         printInt(a[0]) ; stop }",
    );
    // One family for the old and the new, which are there together for a moment.
    assert_eq!(one, Ok(2 * integers(300)));
}

#[test]
fn what_is_long_elsewhere_is_long_there_alone() {
    let one = of_one(
        "large = new integer[10000] of 0\nsmall = new integer[10] of 0\n\
         constructor() { }\nbehaviour { large[0] := small[0] ; stop }",
    );
    assert_eq!(one, Ok(integers(10_000) + integers(10)));
    let joined = of_one(
        "large = new integer[10000] of 0\nsmall = new integer[10] of 0\n\
         constructor() { }\nbehaviour { small := large ; stop }",
    );
    assert_eq!(joined, Ok(2 * integers(10_000)));
}

#[test]
fn procedures_count_with_what_they_are_called_from() {
    let one = of_one(
        "proc inner() : integer { a = new integer[1000] of 0 ; receive n from numbers\n\
         return a[n[0]] }\n\
         proc outer() : integer { a = new integer[500] of 0 ; return a[inner()] }\n\
         constructor() { }\nbehaviour { printInt(outer()) ; stop }",
    );
    assert_eq!(one, Ok(integers(1000) + integers(500)));
}

#[test]
fn a_result_is_counted_where_it_goes() {
    let one = of_one(
        "proc make() : integer[] { a = new integer[1000] of 0 ; return a }\n\
         constructor() { }\nbehaviour { a = make() ; receive n from numbers ; printInt(a[0]) ; stop }",
    );
    assert!(one.is_ok_and(|bytes| (integers(1000)..=2 * integers(1000)).contains(&bytes)));
}

#[test]
fn handlers_find_what_the_body_held() {
    let one = of_one(
        "constructor() { }\n\
         behaviour { a = new integer[10] of 0\n\
         try { a := new integer[700] of 0 ; printInt(a[a[0]]) ; receive n from numbers }\n\
         except { b = new integer[300] of 0 ; receive n from numbers ; printInt(b[0] + a[0]) }\n\
         stop }",
    );
    // `b` beside `a`, and before that the old `a` beside the new one.
    assert!(one.is_ok_and(|bytes| bytes >= 2 * integers(700) && bytes <= 3 * integers(700)));
}

#[test]
fn a_procedure_that_calls_itself_must_hold_nothing() {
    let recursive = |held: &str| {
        bound(
            &format!(
                "type down is proc(integer)\ntype I is interface(out integer o)\n\
                 component C presents I {{\n\
                 proc down(integer n) {{ {held} ; if n > 0 then {{ down(n - 1) }} }}\n\
                 member = new integer[10] of 0\n\
                 constructor() {{ }}\nbehaviour {{ down(10) ; stop }}\n}}\nc = new C()\n"
            ),
            "C",
        )
    };
    assert_eq!(recursive("printInt(n)"), Ok(integers(10)));
    let refused = Err(("`down` may call itself any number of times".to_owned(), 4));
    let held = "a = new integer[100] of n ; printInt(a[0])";
    assert_eq!(recursive(held), refused);
    // Its frames are in the heap.
    assert_eq!(recursive("send n on o"), refused);
}

#[test]
fn frames_of_values_that_may_wait_are_in_the_heap() {
    let called = |body: &str| {
        bound(
            &format!(
                "type I is interface(out integer o)\ntype P is proc(integer)\n\
                 component C presents I {{\nk = 0\n\
                 proc work(integer n) {{ {body} }}\n\
                 proc run(proc(integer) p) {{ p(1) ; p(2) }}\n\
                 constructor() {{ }}\nbehaviour {{ run(work) ; stop }}\n}}\nc = new C()\n"
            ),
            "C",
        )
    };
    let value = block_bytes(24);
    assert_eq!(called("k := n"), Ok(value));
    // A value that is bound to no component takes nothing.
    assert_eq!(called("printInt(n)"), Ok(0));
    let with_frame = called("send n on o ; send n on o");
    assert!(
        with_frame.clone().is_ok_and(|bytes| bytes > value),
        "{with_frame:?}"
    );
}

#[test]
fn what_natives_make_has_no_bound() {
    let read = of_one("constructor() { }\nbehaviour { s = getString() ; printString(s) ; stop }");
    assert_eq!(
        read,
        Err(("the result of `getString` can be of any size".to_owned(), 5))
    );
    // Where it is passed on, too.
    let text = "type I is interface(in string words)\n\
                component C presents I { constructor() { } ; behaviour { receive w from words ; stop } }\n\
                c = new C()\nwords = new out string\nconnect words to c.words\n\
                send getString() on words\n";
    assert_eq!(bound(text, "C").map_err(|(_, line)| line), Err(6));
    let literal = text.replace("getString()", "\"literal\"");
    assert_eq!(bound(&literal, "C"), Ok(0));
}

#[test]
fn boxes_hold_the_largest_that_is_boxed() {
    let boxed = |text: &str| {
        of_one(&format!(
            "constructor() {{ }}\nbehaviour {{ b = any({text}) ; receive c from box ; printAny(b) ; stop }}"
        ))
    };
    let of_box = block_bytes(24);
    // One of its own, and one that may come.
    assert_eq!(boxed("7"), Ok(2 * of_box));
    let array = boxed("new integer[100] of 0");
    let both = 2 * (of_box + integers(100));
    assert!(
        array
            .clone()
            .is_ok_and(|bytes| (both..=both + integers(100)).contains(&bytes)),
        "{array:?}"
    );
    let nested = Err(("the boxed value may hold boxes in turn".to_owned(), 5));
    assert_eq!(boxed("any(7)"), nested);
}

#[test]
fn other_nodes_send_what_they_like() {
    let published = |way: &str| {
        bound(
            &format!(
                "type I is interface(in integer[] numbers)\n\
                 component C presents I {{\nconstructor() {{ }}\n\
                 behaviour {{ receive n from numbers ; printInt(n[0]) ; stop }}\n}}\n\
                 c = new C()\n{way}\n"
            ),
            "C",
        )
    };
    assert_eq!(published(""), Ok(0));
    let refused = |line| {
        let text = "messages between programs can be of any size and number";
        Err((text.to_owned(), line))
    };
    assert_eq!(published("publish c.numbers as \"n\""), refused(7));
    assert_eq!(published("connect c.numbers to \"n\" on $1"), refused(7));
}

/// `Maker` makes arrays and sends each away for good; `Taker` keeps the last.
fn moved(count: &str) -> String {
    format!(
        "type IMaker is interface(out integer[] arrays)\n\
         type ITaker is interface(in integer[] arrays)\n\
         component Maker presents IMaker {{\nconstructor() {{ }}\n\
         behaviour {{ array = new integer[100] of 1 ; send array on arrays }}\n}}\n\
         component Taker presents ITaker {{\nlast = new integer[1] of 0\nconstructor() {{ }}\n\
         behaviour {{ receive array from arrays ; last := array }}\n}}\n\
         m = new Maker()\n{count}"
    )
}

#[test]
fn what_others_hold_stays_where_it_was_made() {
    let taker = 2 * integers(100);
    let connect = "connect m.arrays to t.arrays\n";
    let one = moved(&format!("t = new Taker()\n{connect}"));
    assert_eq!(bound(&one, "Taker"), Ok(taker));
    assert_eq!(bound(&one, "Maker"), Ok(integers(100) + taker));
    let five = moved(&format!(
        "for i = 1 .. 5 do {{ t = new Taker()\n{connect} }}\n"
    ));
    assert_eq!(bound(&five, "Maker"), Ok(integers(100) + 5 * taker));
    assert_eq!(bound(&five, "Taker"), Ok(taker));
    let any = moved(&format!(
        "for i = 1 .. parseInt(\"5\") do {{ t = new Taker()\n{connect} }}\n"
    ));
    let (text, line) = bound(&any, "Maker").expect_err("there is no bound");
    assert!(
        text.ends_with("there may be any number of `Taker`"),
        "{text}"
    );
    assert_eq!(line, 5);
    assert_eq!(bound(&any, "Taker"), Ok(taker));
}

#[test]
fn a_copy_is_its_receivers() {
    let text = moved("t = new Taker()\nconnect m.arrays to t.arrays\n").replace(
        "send array on arrays",
        "send array on arrays ; printInt(array[0])",
    );
    assert_eq!(bound(&text, "Maker"), Ok(integers(100)));
}

#[test]
fn loops_that_wrap_or_are_steered_make_any_number() {
    let made = |head: &str, body: &str| {
        let text = format!(
            "for i = {head} do {{ t = new Taker()\nconnect m.arrays to t.arrays\n{body} }}\n"
        );
        bound(&moved(&text), "Maker").map(|bytes| (bytes - integers(100)) / (2 * integers(100)))
    };
    assert_eq!(made("1 .. 3", ""), Ok(3));
    assert_eq!(made("3 .. 1 : -1", ""), Ok(3));
    assert_eq!(made("1 .. 10 : 4", ""), Ok(3));
    assert_eq!(made("5 .. 4", ""), Ok(0));
    assert!(made("1 .. 3", "i := 1").is_err());
    assert!(made("1 .. 2147483647", "").is_err());
}

#[test]
fn arguments_are_there_before_the_members() {
    let text = "type I is interface(in integer a)\n\
                component C presents I {\nmember = new integer[10] of 0\n\
                constructor(integer[] given) { member := given }\nbehaviour { stop }\n}\n\
                c = new C(new integer[500] of 0)\n";
    assert_eq!(bound(text, "C"), Ok(2 * integers(500)));
}
