//! One line that says what takes so long, on terminals only, and gone afterwards.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Work that is over before this is not worth a line.
const PATIENCE: Duration = Duration::from_millis(500);
/// Interval at which the progress sign moves.
const BEAT: Duration = Duration::from_millis(120);

/// Shows its line, after a while, until it is dropped.
pub struct Progress {
    ticker: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    pub fn start(what: &'static str) -> Self {
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
pub struct Bar(ProgressBar);

/// The steps of a bar: more than a terminal can show.
const BAR_STEPS: f64 = 1000.0;

impl Bar {
    pub fn start() -> Self {
        let style = "[{bar:24}] {percent:>3} %  {msg}  {eta} left";
        let style = ProgressStyle::with_template(style)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("#>-");
        // Nothing ticks: it is drawn only when it is told something, as drawing disturbs who
        // measures.
        Bar(ProgressBar::new(BAR_STEPS as u64).with_style(style))
    }

    /// Shows the part that is done, from 0 to 1, and the present work.
    pub fn show(&mut self, fraction: f64, what: &str) {
        self.0.set_message(what.to_owned());
        self.0
            .set_position((BAR_STEPS * fraction.clamp(0.0, 1.0)) as u64);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
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
