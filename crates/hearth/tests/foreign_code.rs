//! Code of the program's that the runtime calls, with two workers.

#![forbid(unsafe_code)]

mod strangers;

fn start() -> hearth::Hearth {
    hearth::Hearth::builder().workers(2).start().unwrap()
}
