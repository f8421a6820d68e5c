//! A log of every allocation of every component, as JSON lines in the file that `HEARTH_HEAP_LOG`
//! names.
//!
//! ```json
//! {"ns":10432,"component":"Sender#2","event":"allocate","block":"0x7f1200030940","bytes":48}
//! {"ns":11201,"component":"Reader#3","event":"free","block":"0x7f1200030940"}
//! ```
//!
//! `ns` counts from the first event. A block allocated by one component and freed by another was
//! moved to the latter. A lock keeps the lines in the order of events, so logging is slow.

use std::ffi::c_void;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Mutex;
use std::time::Instant;

use crate::abi::Component;
use crate::ground::sync::lock_std as lock;
use crate::ground::{exits, output, settings};
use crate::seats::{registry, seat};

struct Log {
    file: BufWriter<File>,
    begin: Instant,
}

/// Open from the first allocation to the end, if logging is on.
static LOG: Mutex<Option<Log>> = Mutex::new(None);

/// Opens the log. Ends the program if the file cannot be written.
pub(super) fn begin(name: &str) {
    let file = File::create(name).unwrap_or_else(|error| {
        let reason = format!("the file cannot be written: {error}");
        settings::refuse("HEARTH_HEAP_LOG", name, &reason)
    });
    *lock(&LOG) = Some(Log {
        file: BufWriter::new(file),
        begin: Instant::now(),
    });
    exits::at_exit(end);
}

/// Writes the rest.
fn end(_: i32) {
    if let Some(mut log) = lock(&LOG).take() {
        let _ = log.file.flush();
    }
}

pub(super) fn allocated(component: *mut Component, block: *mut c_void, size: usize) {
    write(component, "allocate", block, Some(size));
}

pub(super) fn freed(component: *mut Component, block: *mut c_void) {
    write(component, "free", block, None);
}

fn write(component: *mut Component, event: &str, block: *mut c_void, size: Option<usize>) {
    let mut log = lock(&LOG);
    let Some(open) = log.as_mut() else {
        return;
    };
    let ns = open.begin.elapsed().as_nanos();
    let name = if component.is_null() {
        "the program".to_owned()
    } else {
        // SAFETY: components that allocate are alive.
        registry::name_of(unsafe { seat::seat_of(component) })
    };
    let bytes = size.map_or(String::new(), |size| format!(",\"bytes\":{size}"));
    let written = writeln!(
        open.file,
        "{{\"ns\":{ns},\"component\":\"{name}\",\"event\":\"{event}\",\"block\":\"{block:p}\"{bytes}}}"
    );
    if let Err(error) = written {
        *log = None;
        output::complain(&format!("HEARTH_HEAP_LOG: the log ends here: {error}"));
    }
}
