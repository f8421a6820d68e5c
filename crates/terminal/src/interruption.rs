//! Ctrl-C during work that can be left off halfway.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use hearth_sys::signal::{self, Signals};

/// Ctrl-C and a request to end, noticed while measuring.
pub struct Interruption {
    pub flag: Arc<AtomicBool>,
    /// The signal's number, once there was one.
    pub signal: Arc<AtomicU8>,
}

impl Interruption {
    /// From now on the signals raise the flag. A signal that this process was told to ignore, as by
    /// nohup, stays ignored.
    pub fn watch() -> Self {
        let interruption = Interruption {
            flag: Arc::new(AtomicBool::new(false)),
            signal: Arc::new(AtomicU8::new(0)),
        };
        let heeded: Vec<i32> = [signal::INTERRUPT, signal::TERMINATE]
            .into_iter()
            .filter(|&signal| !signal::is_ignored(signal))
            .collect();
        if heeded.is_empty() {
            return interruption;
        }
        let signals = Signals::of(&heeded);
        // Before any thread is started, so that none of them is struck.
        signals.block();
        let (flag, number) = (interruption.flag.clone(), interruption.signal.clone());
        // Waits until the process ends.
        std::thread::spawn(move || {
            if let Ok(signal) = signals.wait() {
                // The number comes first: a thread that sees the flag sees it. Both are
                // sequentially consistent, as the probe's own reads of the flag need not be
                // acquiring.
                number.store(u8::try_from(signal).unwrap_or(0), Ordering::SeqCst);
                flag.store(true, Ordering::SeqCst);
            }
        });
        interruption
    }
}
