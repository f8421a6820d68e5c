//! Peers in Rust that Hearth's components are measured against: `rust-peers LIBRARY ROW ROUNDS`.
//!
//! The same shapes as `research/benches/runtime/*.isf`. LIBRARY says which channels and what
//! carries those at their ends:
//!
//! | library | channels | carried by |
//! |---|---|---|
//! | `kanal`, `flume` | rendezvous, async | tokio, one thread |
//! | `tokio` | mpsc of one place, the least it has | tokio, one thread |
//! | `kanal-2`, `tokio-2` | as these | tokio, two threads |
//! | `kanal-threads`, `crossbeam` | rendezvous, blocking | a thread each, on a core of its own |
//! | `flume-selector` | rendezvous, blocking | a thread each |

mod tasks;
mod threads;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [library, row, rounds] = &words[..] else {
        return usage();
    };
    let Ok(rounds) = rounds.parse() else {
        return usage();
    };
    let found = match library.as_str() {
        "kanal" => tasks::run::<tasks::Kanal>(row, rounds, 1),
        "kanal-2" => tasks::run::<tasks::Kanal>(row, rounds, 2),
        "flume" => tasks::run::<tasks::Flume>(row, rounds, 1),
        "tokio" => tasks::run::<tasks::Tokio>(row, rounds, 1),
        "tokio-2" => tasks::run::<tasks::Tokio>(row, rounds, 2),
        "kanal-threads" => threads::run::<threads::Kanal>(row, rounds),
        "crossbeam" => threads::run::<threads::Crossbeam>(row, rounds),
        "flume-selector" if row == "fan-in" => Some(threads::flume_selector(rounds)),
        _ => None,
    };
    match found {
        Some(checksum) => {
            println!("{checksum}");
            ExitCode::SUCCESS
        }
        None => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: rust-peers LIBRARY ROW ROUNDS");
    ExitCode::from(2)
}
