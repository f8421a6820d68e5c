//! Code of the program's that the runtime calls, with a thread for each component.

#![forbid(unsafe_code)]

mod strangers;

fn start() -> hearth::Hearth {
    hearth::Hearth::builder().threads().start().unwrap()
}
