//! One line that says what takes so long, on terminals only, and gone afterwards.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

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

/// A bar for work that knows how much of it is done; on terminals only, and gone afterwards.
pub(crate) struct Bar {
    is_shown: bool,
    begin: Instant,
    last: Option<String>,
}

/// The cells of a bar.
const BAR_CELLS: usize = 24;
/// Before this share is done, no guess of the time left is worth showing.
const GUESS_FROM: f64 = 0.08;

impl Bar {
    pub(crate) fn start() -> Self {
        Bar {
            is_shown: std::io::stderr().is_terminal(),
            begin: Instant::now(),
            last: None,
        }
    }

    /// Shows how much is done, from 0 to 1, and what is being done. Writes only what changed, as
    /// writing disturbs who measures.
    pub(crate) fn show(&mut self, fraction: f64, what: &str) {
        if !self.is_shown {
            return;
        }
        let line = bar_line(fraction, what, self.begin.elapsed().as_secs_f64());
        if self.last.as_ref() != Some(&line) {
            eprint!("\r{line}\x1b[K");
            let _ = std::io::stderr().flush();
            self.last = Some(line);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.last.is_some() {
            eprint!("\r\x1b[K");
        }
    }
}

fn bar_line(fraction: f64, what: &str, elapsed_s: f64) -> String {
    let fraction = if fraction.is_finite() {
        fraction.clamp(0.0, 1.0)
    } else {
        0.0
    };
    let full = (fraction * BAR_CELLS as f64) as usize;
    let (full, empty) = ("#".repeat(full), "-".repeat(BAR_CELLS - full));
    let percent = 100.0 * fraction;
    let left = if fraction < GUESS_FROM {
        String::new()
    } else {
        let left = elapsed_s * (1.0 - fraction) / fraction;
        format!("  {left:.0} s left")
    };
    format!("[{full}{empty}] {percent:3.0} %  {what}{left}")
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

#[cfg(test)]
mod tests {
    use super::bar_line;

    #[test]
    fn bars() {
        assert_eq!(
            bar_line(0.0, "noise", 0.0),
            "[------------------------]   0 %  noise"
        );
        assert_eq!(
            bar_line(0.5, "noise", 30.0),
            "[############------------]  50 %  noise  30 s left"
        );
        assert_eq!(
            bar_line(7.0, "noise", 60.0),
            "[########################] 100 %  noise  0 s left"
        );
        assert_eq!(
            bar_line(f64::NAN, "", 0.0),
            "[------------------------]   0 %  "
        );
    }
}
