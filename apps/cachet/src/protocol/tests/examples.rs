//! What is known by example.

use super::Bench;

#[test]
fn a_line_without_an_end_closes_the_connection_unless_it_asks_for_keys() {
    let mut bench = Bench::new();
    assert_eq!(bench.talk([&b"x".repeat(2048)[..]]), (Vec::new(), false));
    assert_eq!(bench.talk([&b"x".repeat(2049)[..]]), (Vec::new(), true));
    let mut many = b"get ".to_vec();
    many.extend_from_slice(&b"k ".repeat(5000));
    assert_eq!(bench.talk([&many[..], b"\r\n"]), (b"END\r\n".to_vec(), false));
}
