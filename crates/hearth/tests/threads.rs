//! Components among themselves, each on a thread of its own.

mod cases;

fn start() -> hearth::Hearth {
    hearth::Hearth::builder()
        .carrier(hearth::Carrier::Threads)
        .start()
        .unwrap()
}
