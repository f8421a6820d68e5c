//! The monitor's life in a C program: from the first function to the exit.
//!
//! The loader could begin it earlier, but then a shell that starts the instrumented program would
//! have a monitor, too, and the file.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::{fmt, mem};

use hearth_monitor::unguarded::try_quietly;
use hearth_monitor::{Monitor, NotBegun, Options, forks};
use hearth_sys::privileges;
use hearth_sys::signal::Signals;

use crate::calm::{Errno, Uncancelled};
use crate::functions;

/// Whether functions are noted: not known yet, in a child that has not begun, no, yes.
const UNKNOWN: u8 = 0;
const CHILD: u8 = 1;
const OFF: u8 = 2;
const ON: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
static MONITOR: Mutex<Option<Monitor>> = Mutex::new(None);

/// Whether functions are noted.
#[inline]
pub(crate) fn is_on() -> bool {
    match STATE.load(Ordering::Relaxed) {
        ON => true,
        OFF => false,
        _ => begin(),
    }
}

#[cold]
#[inline(never)]
fn begin() -> bool {
    let _errno = Errno::keep();
    let _uncancelled = Uncancelled::begin();
    // Not for functions that this work calls itself.
    try_quietly(|| {
        static FIRST: Once = Once::new();
        match STATE.load(Ordering::Relaxed) {
            // Not through `FIRST`: it may be the copy of one in use by a thread that is not here.
            CHILD => begin_in_child(),
            UNKNOWN => FIRST.call_once(begin_first),
            _ => {}
        }
    });
    STATE.load(Ordering::Relaxed) == ON
}

fn begin_first() {
    // A program with more rights than its caller lets the caller name no files.
    let is_trusted = !privileges::exceed_callers();
    let options = match Options::of_env() {
        Ok(options) => options.filter(|_| is_trusted),
        Err(misread) => {
            say(&format_args!("{misread}; nothing is recorded"));
            None
        }
    };
    let Some(options) = options else {
        STATE.store(OFF, Ordering::Relaxed);
        return;
    };
    // Before the monitor: from here on the child of another thread's fork neither waits for this
    // thread nor writes into its parent's journal.
    // SAFETY: the handlers are functions of this library, which stays loaded: see `build.rs`. An
    // archive stays as long as the object that it is in, which takes them back when it goes.
    let failure = unsafe {
        libc::pthread_atfork(
            Some(before_fork),
            Some(after_in_parent),
            Some(after_in_child),
        )
    };
    if failure != 0 {
        let error = io::Error::from_raw_os_error(failure);
        say(&format_args!(
            "forks cannot be followed ({error}); nothing is recorded"
        ));
        STATE.store(OFF, Ordering::Relaxed);
        return;
    }
    // SAFETY: as before.
    unsafe { libc::atexit(at_exit) };
    start(options);
}

/// Begins a monitor in the child of a fork, with a file of its own.
fn begin_in_child() {
    // Another thread of the child may have been first.
    let was = STATE.compare_exchange(CHILD, OFF, Ordering::Relaxed, Ordering::Relaxed);
    if was.is_ok()
        && let Ok(Some(options)) = Options::of_env()
    {
        start(of_process(options));
    }
}

/// Options for a file whose name ends with the number of the process, unless it says `%p`.
fn of_process(options: Options) -> Options {
    let named = std::env::var_os(hearth_monitor::VARIABLE).unwrap_or_default();
    match options.file() {
        Some(path) if !named.to_string_lossy().contains("%p") => {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{}", std::process::id()));
            options.with_file(name.into())
        }
        _ => options,
    }
}

fn start(options: Options) {
    let begun = Signals::all_blocked(|| match Monitor::begin(options.clone()) {
        // A program that the monitored one has started inherits the variable.
        Err(NotBegun::File(_, error)) if error.kind() == ErrorKind::WouldBlock => {
            Monitor::begin(of_process(options))
        }
        begun => begun,
    });
    let state = match begun {
        Ok(monitor) => {
            *monitor_of_process() = Some(monitor);
            ON
        }
        Err(error) => {
            say(&format_args!("{error}; nothing is recorded"));
            OFF
        }
    };
    STATE.store(state, Ordering::Relaxed);
}

fn monitor_of_process() -> MutexGuard<'static, Option<Monitor>> {
    MONITOR.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn at_exit() {
    // It waits for the monitor's thread, where a thread can be cancelled.
    let _uncancelled = Uncancelled::begin();
    if STATE.swap(OFF, Ordering::Relaxed) != ON {
        return;
    }
    let Some(monitor) = monitor_of_process().take() else {
        return;
    };
    let report = monitor.finish();
    if let (Some(failure), Some(journal)) = (report.failure, report.journal) {
        let journal = journal.display();
        say(&format_args!(
            "the file took not everything ({failure}); free some space, and keep {journal} with it"
        ));
    }
    let refused = functions::lock().refused();
    if refused > 0 {
        say(&format_args!(
            "{refused} calls were not noted, as the program has too many functions; compile fewer \
             files with -finstrument-functions"
        ));
    }
}

/// Writes a line for the user. It is lost if nobody can read it.
fn say(line: &dyn fmt::Display) {
    let _ = writeln!(io::stderr(), "hearth-monitor: {line}");
}

// ---- forks ------------------------------------------------------------------------------------

thread_local! {
    /// The lock of the table of functions during a fork.
    static HELD: RefCell<Option<MutexGuard<'static, functions::Adding>>> =
        const { RefCell::new(None) };
}

extern "C" fn before_fork() {
    // The first use allocates, and must not while the locks are held: an allocator whose functions
    // are instrumented would wait for them.
    let _ = try_quietly(|| HELD.try_with(|_| ()));
    forks::before();
    let held = functions::lock();
    let _ = HELD.try_with(|place| *place.borrow_mut() = Some(held));
}

extern "C" fn after_in_parent() {
    forks::after_in_parent();
    let _ = HELD.try_with(|place| drop(place.borrow_mut().take()));
}

extern "C" fn after_in_child() {
    let was_on = STATE.swap(OFF, Ordering::Relaxed) == ON;
    forks::after_in_child();
    let _ = HELD.try_with(|place| drop(place.borrow_mut().take()));
    // The monitor's thread is not here: its monitor is neither finished nor dropped.
    let monitor = MONITOR.try_lock().map(|mut monitor| monitor.take());
    let is_free = monitor.is_ok();
    mem::forget(monitor);
    let follows = Options::of_env().is_ok_and(|one| one.is_some_and(|one| one.follows_children()));
    if was_on && is_free && follows {
        STATE.store(CHILD, Ordering::Relaxed);
    }
}
