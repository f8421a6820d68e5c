//! The program's own code that the runtime calls, with a thread for each component.

#![forbid(unsafe_code)]

mod strangers;

fn start() -> hearth::Hearth {
    hearth::Hearth::builder()
        .carrier(hearth::Carrier::Threads)
        .start()
        .unwrap()
}
