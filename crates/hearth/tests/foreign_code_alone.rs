//! The program's own code that the runtime calls, with one worker.

#![forbid(unsafe_code)]

mod strangers;

fn start() -> hearth::Hearth {
    hearth::Hearth::builder().workers(1).start().unwrap()
}
