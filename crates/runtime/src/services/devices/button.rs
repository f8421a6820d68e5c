//! The button: a signal, a FIFO, or a list of times.

use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use hearth_sys::{descriptor, signal};

use crate::abi::{Component, Site, Step, Value};
use crate::exchange::timers;
use crate::ground::exits;
use crate::ground::settings::{self, after};
use crate::hooks::simulation;
use crate::outside::poller::{self, Then};
use crate::services::mailbox::Mailbox;

const VARIABLE: &str = "HEARTH_DEVICE_BUTTON";
/// Presses kept until some component receives them. A finger is slower than this.
const ROOM: usize = 64;

/// The value of a press in the program.
const PRESSED: i32 = 1;

struct Press;

static PRESSES: Mailbox<Press> =
    Mailbox::new("the button", ROOM, |_, Press| Value::of_integer(PRESSED));

#[derive(Debug, PartialEq)]
enum Source {
    Off,
    Signal,
    Fifo(PathBuf),
    /// Seconds after the first wait for the button, ascending.
    Times(Vec<Duration>),
}

/// Receives the next press.
///
/// # Safety
/// `this` runs the calling native, which returns the step at once.
pub(crate) unsafe fn next(this: *mut Component, site: *const Site) -> Step {
    static OPENED: Once = Once::new();
    OPENED.call_once(open);
    // SAFETY: as the caller promises.
    unsafe { PRESSES.ask(this, site) }
}

fn open() {
    match settings::read(VARIABLE, || Source::Signal, parse) {
        Source::Off => PRESSES.close(),
        Source::Signal => {
            let watched = signal::arrivals(signal::USER_1).and_then(|signals| {
                signals.set_nonblocking(true)?;
                press_for_each(signal::NOTICE, Arc::new(signals))
            });
            watched.unwrap_or_else(|error| {
                exits::unfit(&format!(
                    "could not watch for the button's signal ({error})"
                ))
            });
        }
        Source::Fifo(path) => press_by_fifo(&path),
        Source::Times(times) if simulation::is_on() => simulate(&times),
        Source::Times(times) => press_at(timers::now(), times.into_iter()),
    }
}

fn parse(text: &str) -> Result<Source, String> {
    match text {
        "off" => return Ok(Source::Off),
        "SIGUSR1" => return Ok(Source::Signal),
        _ => {}
    }
    if let Some(path) = after(text, "fifo") {
        return match std::fs::metadata(path) {
            Ok(about) if about.file_type().is_fifo() => Ok(Source::Fifo(PathBuf::from(path))),
            Ok(_) => Err(format!("{path} is no FIFO; make one with mkfifo")),
            Err(error) => Err(format!(
                "could not open {path} ({error}); make it with mkfifo"
            )),
        };
    }
    if let Some(list) = after(text, "times") {
        return parse_times(list);
    }
    Err("the button is `off`, `SIGUSR1`, `fifo:PATH` or `times:SECONDS,…`".to_owned())
}

fn parse_times(list: &str) -> Result<Source, String> {
    let time = |text: &str| {
        let seconds: f64 = text.trim().parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    };
    match list.split(',').map(time).collect::<Option<Vec<_>>>() {
        Some(times) if times.is_sorted() => Ok(Source::Times(times)),
        Some(_) => Err("the times must be in ascending order".to_owned()),
        None => Err("after `times:` come seconds, separated by commas".to_owned()),
    }
}

/// Presses at the times left after `start`.
fn press_at(start: Instant, mut left: std::vec::IntoIter<Duration>) {
    let Some(time) = left.next() else {
        PRESSES.close();
        return;
    };
    timers::call_at(start + time, move || {
        PRESSES.deliver(Press);
        press_at(start, left);
    });
}

/// Schedules the presses by a simulation's clock.
fn simulate(times: &[Duration]) {
    for &time in times {
        simulation::after(time, || {
            PRESSES.deliver(Press);
        });
    }
    let end = times.last().copied().unwrap_or_default();
    simulation::after(end, || PRESSES.close());
}

/// Reads a press from each line. The FIFO is opened for writing too, so that it never ends.
fn press_by_fifo(path: &Path) {
    let watched = descriptor::open_unblocked(path, true)
        .and_then(|fifo| press_for_each(b'\n', Arc::new(fifo)));
    watched.unwrap_or_else(|error| {
        exits::unfit(&format!(
            "could not open the button's FIFO {} ({error})",
            path.display()
        ))
    });
}

/// Presses once for each byte of this value, until the source ends. Reading from it does not wait.
fn press_for_each<S>(wanted: u8, source: Arc<S>) -> std::io::Result<()>
where
    S: AsFd + Send + Sync + 'static,
    for<'a> &'a S: Read,
{
    let watched = Arc::clone(&source);
    poller::watch(watched, move || {
        let mut bytes = [0; 64];
        match (&*source).read(&mut bytes) {
            Ok(count) if count > 0 => {
                for _ in bytes[..count].iter().filter(|&&byte| byte == wanted) {
                    PRESSES.deliver(Press);
                }
                Then::Again
            }
            Err(error)
                if [ErrorKind::Interrupted, ErrorKind::WouldBlock].contains(&error.kind()) =>
            {
                Then::Again
            }
            Ok(_) | Err(_) => {
                PRESSES.close();
                Then::Over
            }
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings() {
        let seconds = |list: &[f64]| {
            Source::Times(list.iter().map(|&s| Duration::from_secs_f64(s)).collect())
        };
        assert_eq!(parse("off"), Ok(Source::Off));
        assert_eq!(parse("SIGUSR1"), Ok(Source::Signal));
        assert_eq!(parse("times:0.1,0.25, 3"), Ok(seconds(&[0.1, 0.25, 3.0])));
        assert!(parse("times:2,1").unwrap_err().contains("ascending"));
        assert!(parse("times:x").unwrap_err().contains("seconds"));
        assert!(parse("times:-1").unwrap_err().contains("seconds"));
        assert!(parse("fifo:/no/such").unwrap_err().contains("mkfifo"));
        assert!(parse("fifo:/dev/null").unwrap_err().contains("no FIFO"));
        assert!(parse("sigusr1").unwrap_err().contains("`SIGUSR1`"));
    }
}
