//! One line that says what takes so long, on terminals only, and gone afterwards.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Work that is over before this is not worth a line.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often the sign that something moves moves.
const BEAT: Duration = Duration::from_millis(120);

/// Shows its line, after a while, until it is dropped.
pub(crate) struct Progress {
    ticker: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    pub(crate) fn start(what: &'static str) -> Self {
        if !std::io::stderr().is_terminal() {
            return Progress { ticker: None };
        }
        let (done, over) = channel::<()>();
        let ticker = std::thread::spawn(move || {
            let mut wait = PATIENCE;
            let mut signs = ['|', '/', '-', '\\'].into_iter().cycle();
            // Ends when the sender is dropped.
            while over.recv_timeout(wait) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                let sign = signs.next().unwrap_or('|');
                eprint!("\r{sign} {what} ");
                let _ = std::io::stderr().flush();
                wait = BEAT;
            }
            if wait == BEAT {
                eprint!("\r\x1b[K");
            }
        });
        Progress {
            ticker: Some((done, ticker)),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((done, ticker)) = self.ticker.take() {
            drop(done);
            // A ticker that panicked has nothing to say that matters here.
            let _ = ticker.join();
        }
    }
}
