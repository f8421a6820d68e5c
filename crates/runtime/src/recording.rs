//! Records events to the file that `HEARTH_WATCH` names, if it does: see the crate `hearth_watch`.
//!
//! When off, recording costs a component's run one branch. Wake-ups within compiled code, where one
//! component makes another ready, are found in the worker's queue when the run is over
//! (`carrier/workers/recorded_runs.rs`).

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use hearth_sys::affinity;
use hearth_watch::{Carrying, Made, NO_WORKER, Recorder, Wait, bytes_for};

use crate::abi::{self, Component, literal};
use crate::ground::sync::lock_std as lock;
use crate::ground::{options, settings};
use crate::seats::registry;
use crate::seats::seat::{Seat, Waiting, seat_of};

const FILE: &str = "HEARTH_WATCH";
const WINDOW: &str = "HEARTH_WATCH_WINDOW";
/// Default size of the window of kept events, in bytes.
const WINDOW_BYTES: u64 = 64 << 20;
/// Largest window: a larger one is a mistake, since all of it may be used.
const WINDOW_MOST: u64 = 1 << 40;

/// The direction of a port that sends, as compiled code has it.
const OUT: u32 = 1;

/// A port: its component's number and its own.
pub(crate) type Port = (u64, u16);

/// Process-wide: only a compiled program is recorded.
static ON: AtomicBool = AtomicBool::new(false);
static RECORDER: OnceLock<Recorder> = OnceLock::new();
/// The recorder's numbers for component types, by their addresses.
static NAMES: Mutex<Option<HashMap<usize, u32>>> = Mutex::new(None);

thread_local! {
    /// The component whose code the thread runs; 0 for none.
    static RUNNING: Cell<u64> = const { Cell::new(0) };
    /// The wait that this component is about to begin, by the general protocol.
    static NEXT_WAIT: Cell<Wait> = const { Cell::new(Wait::Unknown) };
}

/// Tells whether events are recorded.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    // Relaxed: set before the first component is made.
    ON.load(Ordering::Relaxed)
}

/// The recorder, if there is one.
pub(crate) fn recorder() -> Option<&'static Recorder> {
    is_on().then(|| RECORDER.get()).flatten()
}

/// Starts recording if the environment asks for it. A mistake there ends the program.
pub(crate) fn begin() -> bool {
    let Some(name) = std::env::var_os(FILE).filter(|name| !name.is_empty()) else {
        return false;
    };
    let name = name.to_string_lossy().into_owned();
    let refuse = |reason: String| settings::refuse(FILE, &name, &reason);
    if options::get().simulation.is_some() {
        refuse(
            "a simulation has no times of its own; leave out --simulate, or look at its schedule"
                .to_owned(),
        );
    }
    let window = settings::read(
        WINDOW,
        || WINDOW_BYTES,
        |text| match text.parse() {
            Ok(bytes) if bytes <= WINDOW_MOST => Ok(bytes),
            _ => Err(format!(
                "it takes a number of bytes from 0 to {WINDOW_MOST}"
            )),
        },
    );
    let file = match open(&name, window) {
        Ok(file) => file,
        Err(reason) => refuse(reason),
    };
    let carrying = match options::get().carrying {
        options::Carrying::Workers => Carrying::Workers,
        options::Carrying::Threads => Carrying::Threads,
    };
    match Recorder::begin(&file, carrying, usize::MAX) {
        Ok(recorder) => {
            let _ = RECORDER.set(recorder);
            ON.store(true, Ordering::Relaxed);
            true
        }
        Err(refused) => {
            refuse(refused.to_string());
            false
        }
    }
}

/// Opens the file at its final length. A file that holds anything but a recording is left alone.
fn open(name: &str, window: u64) -> Result<File, String> {
    let cannot = |error: std::io::Error| format!("the file cannot be written: {error}");
    let mut options = OpenOptions::new();
    let mut file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(name)
        .map_err(cannot)?;
    let length = file.metadata().map_err(cannot)?.len();
    let mut first = [0; 8];
    if length > 0 {
        file.read_exact(&mut first).map_err(cannot)?;
    }
    let is_fresh = length > 0 && first == [0; 8];
    if is_fresh && length >= bytes_for(0) {
        // The waiting reader has made it, of the length it wants.
        return Ok(file);
    }
    if length > 0 && !is_fresh && &first != b"HEARTHWA" {
        return Err("the file holds something else; name a new one".to_owned());
    }
    file.set_len(0).map_err(cannot)?;
    file.set_len(bytes_for(window)).map_err(cannot)?;
    Ok(file)
}

/// Records that a component was made.
///
/// # Safety
/// The component is fully made and alive; `creator` is null or runs the calling code.
pub(crate) unsafe fn made(creator: *mut Component, component: *mut Component) {
    let Some(recorder) = recorder() else {
        return;
    };
    // SAFETY: as the caller promises; types and their names are static.
    unsafe {
        let seat = seat_of(component);
        let of = (*component).r#type;
        let identity = seat.identity();
        let name = *lock(&NAMES)
            .get_or_insert_default()
            .entry(of.addr())
            .or_insert_with(|| {
                let ports: Vec<_> = abi::ports(of)
                    .iter()
                    .map(|port| literal(port.name))
                    .collect();
                let ports: Vec<&str> = ports.iter().map(AsRef::as_ref).collect();
                recorder.name(&literal((*of).name), &ports)
            });
        let made = Made {
            name,
            number: identity.number,
            is_service: identity.service,
            is_main: registry::is_main(seat),
            creator: creator.as_mut().map_or(0, |creator| seat_of(creator).id),
            ports: abi::ports(of).len() as u16,
        };
        recorder.made(seat.id, &made);
        for (port, nth) in abi::ports(of).iter().zip(0..) {
            let payload = &*port.payload;
            let bytes = (!payload.kind.is_reference()).then_some(payload.size);
            recorder.port(seat.id, nth, port.direction == OUT, bytes);
        }
    }
}

/// Records a sample, which stands for several waits of a component at a half-channel, at the
/// component's port if the half-channel is one.
pub(crate) fn sampled(seat: &Seat, at: Option<Port>, stands_for: u64, bytes: Option<usize>) {
    if let Some(recorder) = recorder()
        && let Some((owner, port)) = at
        && owner == seat.id
    {
        recorder.sampled(owner, port, stands_for, bytes.map(|bytes| bytes as u64));
    }
}

/// Records how much of its heap a component uses, if it has one.
pub(crate) fn look_at_heap(id: u64, used: impl FnOnce() -> Option<u64>) {
    if let Some(recorder) = recorder()
        && let Some(bytes) = used()
    {
        recorder.heap(id, bytes);
    }
}

/// Records a failure as it is printed.
pub(crate) fn failure(text: &str) {
    if let Some(recorder) = recorder() {
        recorder.failure(text);
    }
}

/// Records the core of the calling thread, which is a worker's.
pub(crate) fn look_at_core(recorder: &Recorder, worker: usize) {
    if let Some(core) = affinity::current() {
        recorder.worker_on_core(worker, core);
    }
}

/// Records that the calling thread has made a component ready.
///
/// # Safety
/// The component is alive, and does not run before this returns.
#[cold]
pub(crate) unsafe fn ready(component: *mut Component) {
    if let Some(recorder) = recorder() {
        // SAFETY: as the caller promises.
        let id = unsafe { seat_of(component) }.id;
        recorder.ready(id, recorder.now(), running());
    }
}

/// Returns the component whose code the calling thread runs; 0 for none.
pub(crate) fn running() -> u64 {
    RUNNING.with(Cell::get)
}

/// Sets the component whose code the calling thread runs from now on; 0 for none.
pub(crate) fn set_running(id: u64) {
    RUNNING.with(|running| running.set(id));
}

/// Notes that the running component is about to wait by an offer, at a half-channel that may be one
/// of its own ports.
pub(crate) fn will_wait(seat: &Seat, waiting: Waiting, at: impl FnOnce() -> Option<Port>) {
    if !is_on() {
        return;
    }
    let port = || {
        let (owner, port) = at()?;
        (owner == seat.id).then_some(port)
    };
    let wait = match waiting {
        Waiting::Send => Wait::Send(port()),
        Waiting::Receive | Waiting::Acknowledge => Wait::Receive(port()),
        Waiting::Select => Wait::Select,
        Waiting::Outside(_) => Wait::Outside,
    };
    NEXT_WAIT.with(|next| next.set(wait));
}

/// Takes the last note of [`will_wait`] on this thread.
pub(crate) fn take_wait() -> Wait {
    NEXT_WAIT.with(|next| next.replace(Wait::Unknown))
}

/// Records that two half-channels were connected, if both are ports.
pub(crate) fn connected(ports: impl FnOnce() -> Option<(Port, Port)>) {
    if let Some(recorder) = recorder()
        && let Some((a, b)) = ports()
    {
        recorder.connected(a, b);
    }
}

/// Records that a component with a thread of its own is resumed.
pub(crate) fn thread_runs(seat: &Seat) {
    if let Some(recorder) = recorder() {
        set_running(seat.id);
        if let Some(core) = affinity::current() {
            recorder.on_core(seat.id, core);
        }
        recorder.runs(seat.id, NO_WORKER, recorder.now());
    }
}

/// Records that such a component has returned, and waits or is over.
///
/// # Safety
/// The component is alive, and its thread calls.
pub(crate) unsafe fn thread_returns(
    component: *mut Component,
    waits: impl FnOnce() -> Option<Wait>,
) {
    if let Some(recorder) = recorder() {
        set_running(0);
        let now = recorder.now();
        // SAFETY: as the caller promises.
        unsafe {
            let id = seat_of(component).id;
            match waits() {
                Some(wait) => recorder.waits(id, (*component).heap, wait, now),
                None => recorder.ended(id, now),
            };
        }
    }
}

/// Records that a detached component stands by until its thread has its worker again.
///
/// # Safety
/// The component runs the calling code.
pub(crate) unsafe fn stands_by(component: *mut Component) {
    if let Some(recorder) = recorder() {
        // SAFETY: as the caller promises.
        let id = unsafe { seat_of(component) }.id;
        recorder.stands_by(id, recorder.now());
    }
}

/// Records that it resumes, with that worker.
///
/// # Safety
/// As for `stands_by`.
pub(crate) unsafe fn goes_on(component: *mut Component, worker: usize) {
    if let Some(recorder) = recorder() {
        // SAFETY: as the caller promises.
        let id = unsafe { seat_of(component) }.id;
        recorder.runs(id, worker as u16, recorder.now());
    }
}
