//! Probes that the compiler put into a program. The linker leaves this out of all other programs.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use hearth_monitor::components::{self, Calls, Who};
use hearth_monitor::{Monitor, Options, Probe};
use hearth_sys::privileges;
use hearth_sys::signal::{self, Signals};

use super::start::hearth_main;
use crate::abi::{self, Component, Program};
use crate::ground::{exits, output};
use crate::seats::seat::seat_of;

const _: () = assert!(Probe::OFF == abi::PROBE_OFF);
const _: () = assert!(size_of::<Calls>() == size_of::<abi::Calls>());
const _: () = assert!(align_of::<Calls>() <= align_of::<abi::Calls>());

static MONITOR: Mutex<Option<Monitor>> = Mutex::new(None);
/// Held while a probe is passed for the first time.
static MEETING: Mutex<()> = Mutex::new(());

/// Runs a compiled program that has probes, as [`hearth_main`] runs others. Calls are recorded if
/// the environment says where.
///
/// # Safety
/// As for `hearth_main`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_probed_main(
    program: *const Program,
    argc: c_int,
    argv: *mut *mut c_char,
) -> c_int {
    // SAFETY: as in `hearth_main`.
    unsafe { privileges::forget_callers_variables("HEARTH_") };
    match Options::of_env() {
        // SAFETY: as the caller promises, and a program's name is a literal.
        Ok(Some(options)) => begin(options.program(unsafe { text((*program).name) })),
        Ok(None) => {}
        Err(misread) => refuse(&misread.to_string()),
    }
    // SAFETY: as the caller promises.
    unsafe { hearth_main(program, argc, argv) }
}

fn begin(options: Options) {
    if options.keeps_sums() {
        refuse(
            "HEARTH_MONITOR: no sums are kept of calls that go from thread to thread; record them \
             (file=NAME), and `hearth watch` adds them up",
        );
    }
    // As `hearth_main` has it: before the first thread, which leaves signals to others.
    hearth_sys::membarrier::is_available();
    Signals::of(&[signal::INTERRUPT, signal::TERMINATE, signal::own()]).block();
    match Monitor::begin(options.of_components()) {
        Ok(monitor) => *lock(&MONITOR) = Some(monitor),
        Err(error) => refuse(&error.to_string()),
    }
    exits::at_exit(|code| {
        // The panic may hold what the monitor's end needs. Readers find its journal.
        if code == exits::BUG {
            return;
        }
        let Some(monitor) = lock(&MONITOR).take() else {
            return;
        };
        let report = monitor.finish();
        if let (Some(failure), Some(journal)) = (report.failure, report.journal) {
            output::complain(&format!(
                "the file of calls took not everything ({failure}); free some space, and keep {} \
                 with it",
                journal.display()
            ));
        }
    });
}

fn refuse(why: &str) -> ! {
    output::complain(why);
    exits::end(exits::USAGE)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes the beginning of a call, if its probe is on. True: its end is to be noted.
///
/// # Safety
/// `this` runs the calling code, and ends with a [`abi::Calls`]; `probe` is static, and its name a
/// literal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_probe_begins(
    this: *mut Component,
    probe: *const abi::Probe,
) -> bool {
    // SAFETY: as the caller promises.
    let (probe, seat, calls) = unsafe { (probe_of(&*probe), seat_of(this), calls_of(this)) };
    components::begin(probe, seat.id, calls, || Who {
        // SAFETY: the component is alive, its type static, and the name a literal.
        kind: unsafe { text((*(*this).r#type).name) },
        nth: seat.identity().number,
    })
}

/// Notes the end of the innermost call of a component.
///
/// # Safety
/// As for [`hearth_probe_begins`], which has returned true for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_probe_ends(this: *mut Component, probe: *const abi::Probe) {
    // SAFETY: as the caller promises.
    let (probe, seat, calls) = unsafe { (probe_of(&*probe), seat_of(this), calls_of(this)) };
    components::end(probe, seat.id, calls);
}

/// The state of a component's calls, at the end of its struct.
///
/// # Safety
/// As for [`hearth_probe_begins`].
unsafe fn calls_of<'a>(this: *mut Component) -> &'a mut Calls {
    // SAFETY: the component is alive, and types are static.
    let end = unsafe { (*(*this).r#type).size };
    let place = this.wrapping_byte_add(end - size_of::<Calls>());
    // SAFETY: the state is there, as the C code asserts, and only the code that the component runs
    // uses it.
    unsafe { &mut *place.cast::<Calls>() }
}

/// # Safety
/// The text is a literal.
unsafe fn text(literal: *const c_char) -> &'static str {
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(literal) };
    text.to_str().unwrap_or("?")
}

/// The probe of a place. Places of one name have one each.
///
/// # Safety
/// The place is static, and its name a literal.
unsafe fn probe_of(place: &abi::Probe) -> &'static Probe {
    // Acquire: with the address comes the probe.
    let known = place.place.load(Ordering::Acquire).cast::<Probe>();
    // SAFETY: only `meet` stores into it, and it stores leaked probes.
    match unsafe { known.cast_const().as_ref() } {
        Some(probe) => probe,
        // SAFETY: as the caller promises.
        None => unsafe { meet(place) },
    }
}

/// Makes the probe of a place that is passed for the first time.
///
/// # Safety
/// As for [`probe_of`].
#[cold]
unsafe fn meet(place: &abi::Probe) -> &'static Probe {
    let _meeting = lock(&MEETING);
    let known = place.place.load(Ordering::Acquire).cast::<Probe>();
    // SAFETY: as in `probe_of`.
    if let Some(probe) = unsafe { known.cast_const().as_ref() } {
        return probe;
    }
    // SAFETY: as the caller promises.
    let name = unsafe { text(place.name) };
    let probe: &'static Probe = Box::leak(Box::new(Probe::new(name)));
    place
        .place
        .store(ptr::from_ref(probe).cast_mut().cast(), Ordering::Release);
    probe
}
