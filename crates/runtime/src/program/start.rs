//! Runs a compiled program, from `main` to the end of the process.

use std::ffi::{CStr, c_char, c_int};

use hearth_sys::privileges;

use super::{ending, signals};
use crate::abi::{ABI, Component, Program, Value};
use crate::exchange::values::heap;
use crate::exchange::{block, component, external};
use crate::ground::options::{self, RuntimeOptions};
use crate::ground::{exits, output, settings};
use crate::services::devices::lines;
use crate::{futures, hooks, recording, simulator};

/// Runs a compiled program. Does not return: the thread that notices that the program is over ends
/// the process.
///
/// # Safety
/// As the header says: `program` is valid, and `argc` and `argv` are those of `main`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_main(
    program: *const Program,
    argc: c_int,
    argv: *mut *mut c_char,
) -> c_int {
    // SAFETY: `main` begins, and no other thread is there that knows of the environment.
    unsafe { privileges::forget_callers_variables("HEARTH_") };
    // SAFETY: as the caller promises.
    let program = unsafe { &*program };
    if program.abi != ABI {
        exits::unfit(&format!(
            "this program was compiled for version {} of the runtime and linked with version \
             {ABI}; build it again",
            program.abi,
        ));
    }
    // SAFETY: as the caller promises.
    let arguments = unsafe { arguments_of(argc, argv) };
    hooks::install(&ending::HOOKS);
    match settings::check_names().and_then(|()| read_options(program, arguments)) {
        Ok(options) => options::set(options),
        Err(message) => {
            output::complain(&message);
            exits::end(exits::USAGE);
        }
    }
    std::panic::set_hook(Box::new(|panic| tell_bug(&panic.to_string())));
    // With one thread this query takes no time, with two the kernel takes milliseconds.
    hearth_sys::membarrier::is_available();
    if recording::begin() {
        exits::at_exit(|code| {
            if let Some(recorder) = recording::recorder() {
                heap::tell_all(recorder);
                recorder.ends(code);
            }
        });
    }
    signals::watch();
    signals::watch_stacks();
    futures::begin();
    if simulator::begin(program, lines::come_soon) {
        loop {
            std::thread::park();
        }
    }
    // SAFETY: a valid program has a main sequence.
    unsafe {
        let main = component::make(std::ptr::null_mut(), program.main, -1);
        component::start(main);
        block::release(main);
    }
    loop {
        std::thread::park();
    }
}

unsafe fn arguments_of(argc: c_int, argv: *mut *mut c_char) -> Vec<Vec<u8>> {
    let count = usize::try_from(argc).unwrap_or(0);
    let mut arguments = Vec::new();
    // The first is the program's own name.
    for index in 1..count {
        // SAFETY: `argv` has `argc` strings.
        let text = unsafe { CStr::from_ptr(*argv.add(index)) };
        arguments.push(text.to_bytes().to_vec());
    }
    arguments
}

fn read_options(program: &Program, arguments: Vec<Vec<u8>>) -> Result<RuntimeOptions, String> {
    let mut options = options::from_environment()?;
    options.compat_original = program.compat_original;
    options.arguments = arguments;
    Ok(options)
}

/// Reports a broken invariant of our own.
fn tell_bug(what: &str) {
    output::complain(&format!(
        "this is a bug in hearth, not in the program: {what}\nhearth: please report it with this \
         message, the program and `uname -a` (version {})",
        env!("CARGO_PKG_VERSION"),
    ));
    exits::leave(exits::BUG);
}

/// Returns the number of arguments given to the program.
///
/// # Safety
/// None is needed; the signature is the contract's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_argument_count(_self: *mut Component) -> i32 {
    i32::try_from(options::get().arguments.len()).unwrap_or(i32::MAX)
}

/// Returns an argument, from 0; empty when there is none. Counted once.
///
/// # Safety
/// `self` runs this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_argument(
    this: *mut Component,
    index: i32,
) -> *mut std::ffi::c_void {
    let arguments = &options::get().arguments;
    let text = usize::try_from(index)
        .ok()
        .and_then(|index| arguments.get(index));
    let value: Value = external::text_in(this, text.map_or(&[], Vec::as_slice));
    // SAFETY: text is a reference.
    unsafe { value.pointer }
}
