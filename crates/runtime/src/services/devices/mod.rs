//! The simulated devices of a node. The program's first use opens each, as its environment variable
//! says; `docs/devices.md` has the table.

pub(crate) mod button;
pub(crate) mod leds;
pub(crate) mod lines;
pub(crate) mod radio;
pub(crate) mod sensors;
pub(crate) mod storage;

use crate::ground::exits;

/// Starts the thread of a device.
pub(crate) fn start_thread(name: &str, run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().name(name.to_owned());
    if let Err(error) = thread.spawn(run) {
        exits::unfit(&format!(
            "could not start the thread for {name} ({error}); raise ulimit -u"
        ));
    }
}
