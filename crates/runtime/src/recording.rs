//! What happens is written down, if `HEARTH_WATCH` names a file: see the crate `hearth_watch`.
//!
//! Off, it costs a component's run one branch. What happens within compiled code, where one
//! component makes another ready, is found in the worker's queue when the run is over
//! (`carrier/workers/watched.rs`).

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
/// Bytes of events that are kept, if nobody says.
const WINDOW_BYTES: u64 = 64 << 20;
/// More is a mistake: it may all be used.
const WINDOW_MOST: u64 = 1 << 40;

/// The direction of a port that sends, as compiled code has it.
const OUT: u32 = 1;

/// A port: its component's number and its own.
pub(crate) type Port = (u64, u16);

/// Of the process: only a compiled program is recorded.
static ON: AtomicBool = AtomicBool::new(false);
static RECORDER: OnceLock<Recorder> = OnceLock::new();
/// The recorder's numbers for component types, by their addresses.
static NAMES: Mutex<Option<HashMap<usize, u32>>> = Mutex::new(None);

thread_local! {
    /// The component whose code the thread runs; 0 for none.
    static RUNNING: Cell<u64> = const { Cell::new(0) };
    /// What that one is about to wait for by the general protocol.
    static NEXT_WAIT: Cell<Wait> = const { Cell::new(Wait::Unknown) };
}

/// Is anything written?
#[inline(always)]
pub(crate) fn is_on() -> bool {
    // Relaxed: set before the first component is made.
    ON.load(Ordering::Relaxed)
}

/// The recorder, if there is one.
pub(crate) fn recorder() -> Option<&'static Recorder> {
    is_on().then(|| RECORDER.get()).flatten()
}

/// Begins to write, if the environment says so. What is wrong with it ends the program.
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

/// The file, as long as it is to become. One that holds anything but a recording is left alone.
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
        // Made by whoever waits for it, of the length that is wanted.
        return Ok(file);
    }
    if length > 0 && !is_fresh && &first != b"HEARTHWA" {
        return Err("the file holds something else; name a new one".to_owned());
    }
    file.set_len(0).map_err(cannot)?;
    file.set_len(bytes_for(window)).map_err(cannot)?;
    Ok(file)
}

/// A component was made.
///
/// # Safety
/// It was, whole, and is alive; `creator` is null or runs the calling code.
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

/// A sample stands for so many waits of a component at a half-channel: of its port, if it is one.
pub(crate) fn sampled(
    seat: &Seat,
    at: impl FnOnce() -> Option<Port>,
    stands_for: u64,
    bytes: Option<usize>,
) {
    if let Some(recorder) = recorder()
        && let Some((owner, port)) = at()
        && owner == seat.id
    {
        recorder.sampled(owner, port, stands_for, bytes.map(|bytes| bytes as u64));
    }
}

/// Notes what a component's heap has in use, if it has one.
pub(crate) fn look_at_heap(id: u64, used: impl FnOnce() -> Option<u64>) {
    if let Some(recorder) = recorder()
        && let Some(bytes) = used()
    {
        recorder.heap(id, bytes);
    }
}

/// The calling thread is a worker's.
pub(crate) fn look_at_core(recorder: &Recorder, worker: usize) {
    if let Some(core) = affinity::current() {
        recorder.worker_on_core(worker, core);
    }
}

/// A component can go on, as the calling thread knows.
///
/// # Safety
/// It is alive, and does not run before this returns.
#[cold]
pub(crate) unsafe fn ready(component: *mut Component) {
    if let Some(recorder) = recorder() {
        // SAFETY: as the caller promises.
        let id = unsafe { seat_of(component) }.id;
        recorder.ready(id, recorder.now(), running());
    }
}

/// The component whose code the calling thread runs; 0 for none.
pub(crate) fn running() -> u64 {
    RUNNING.with(Cell::get)
}

/// From here on the calling thread runs the code of this one, or of none.
pub(crate) fn set_running(id: u64) {
    RUNNING.with(|running| running.set(id));
}

/// The running component is about to wait by an offer, at a half-channel that may be a port of its
/// own.
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

/// What [`will_wait`] was told last on this thread, once.
pub(crate) fn take_wait() -> Wait {
    NEXT_WAIT.with(|next| next.replace(Wait::Unknown))
}

/// Two half-channels were connected: their ports, if both are such.
pub(crate) fn connected(ports: impl FnOnce() -> Option<(Port, Port)>) {
    if let Some(recorder) = recorder()
        && let Some((a, b)) = ports()
    {
        recorder.connected(a, b);
    }
}

/// A component with a thread of its own is resumed.
pub(crate) fn thread_runs(seat: &Seat) {
    if let Some(recorder) = recorder() {
        set_running(seat.id);
        if let Some(core) = affinity::current() {
            recorder.on_core(seat.id, core);
        }
        recorder.runs(seat.id, NO_WORKER, recorder.now());
    }
}

/// It has returned, and waits or is over.
///
/// # Safety
/// It is alive, and its thread calls.
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

/// A detached component stands by until its thread has its worker again.
///
/// # Safety
/// It runs the calling code.
pub(crate) unsafe fn stands_by(component: *mut Component) {
    if let Some(recorder) = recorder() {
        // SAFETY: as the caller promises.
        let id = unsafe { seat_of(component) }.id;
        recorder.stands_by(id, recorder.now());
    }
}

/// It goes on, with that worker.
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
