//! The program's own code that the runtime calls, with two workers.

#![forbid(unsafe_code)]

mod strangers;

fn start() -> hearth::Hearth {
    hearth::Hearth::builder().workers(2).start().unwrap()
}
