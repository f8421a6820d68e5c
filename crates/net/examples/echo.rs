//! An echo server: `cargo run --release -p hearth-net --example echo -- 127.0.0.1:7000 sharded edge
//! 2`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::process::ExitCode;
use std::time::Duration;

use hearth_net::{Input, Next, Output, Peer, Server, Service};

struct Echo;

impl Service for Echo {
    type Worker = ();
    type Session = ();

    fn worker(&self, _: usize) {}

    fn open(&self, (): &mut (), _: &Peer) {}

    fn serve(&self, (): &mut (), (): &mut (), input: &mut Input<'_>, output: &mut Output) -> Next {
        output.write(input.bytes());
        input.consume(input.bytes().len());
        Next::More
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let mut word = |default: &str| words.next().unwrap_or_else(|| default.to_owned());
    let server = Server::builder()
        .tcp(word("127.0.0.1:7000"))
        .pattern(word("sharded").parse()?)
        .mechanism(word("edge").parse()?)
        .threads(word("1").parse()?)
        .connections_max(20_000)
        .start(Echo)?;
    println!(
        "{:?}; a line or the end of the input ends it",
        server.tcp_addresses()
    );
    std::io::stdin().read_line(&mut String::new())?;
    let stopped = server.stop(Duration::from_secs(1));
    println!("{stopped:?}");
    Ok(())
}
