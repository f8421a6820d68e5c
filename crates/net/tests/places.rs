//! Each connection knows the place that it came to.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use hearth_net::{Address, Input, Next, Output, Peer, Server, Service};

/// Answers anything with the number of the place, and whether it is a path.
struct Places;

impl Service for Places {
    type Worker = ();
    type Session = Peer;

    fn worker(&self, _: usize) {}

    fn open(&self, (): &mut (), peer: &Peer) -> Peer {
        peer.clone()
    }

    fn serve(&self, (): &mut (), peer: &mut Peer, input: &mut Input<'_>, out: &mut Output) -> Next {
        input.consume(input.bytes().len());
        let kind = match peer.address {
            Address::Tcp(_) => b't',
            Address::Unix => b'u',
        };
        out.write(&[b'0' + peer.place as u8, kind]);
        Next::More
    }
}

fn place(mut stream: impl Read + Write) -> String {
    stream.write_all(b"?").unwrap();
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).unwrap();
    String::from_utf8(answer.to_vec()).unwrap()
}

#[test]
fn places_are_counted_in_the_order_given_with_paths_after_addresses() {
    let path = |number| {
        let name = format!("net-places-{}-{number}", std::process::id());
        std::env::temp_dir().join(name)
    };
    let server = Server::builder()
        .unix(path(0), 0o700)
        .tcp("127.0.0.1:0")
        .tcp("localhost:0")
        .unix(path(1), 0o700)
        .threads(1)
        .start(Places)
        .unwrap();
    let addresses = server.tcp_addresses();
    assert_eq!(place(TcpStream::connect(addresses[0]).unwrap()), "0t");
    // A name may mean several addresses.
    for address in &addresses[1..] {
        assert_eq!(place(TcpStream::connect(address).unwrap()), "1t");
    }
    assert_eq!(place(UnixStream::connect(path(0)).unwrap()), "2u");
    assert_eq!(place(UnixStream::connect(path(1)).unwrap()), "3u");
}
