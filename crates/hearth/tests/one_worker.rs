//! Components among themselves, on one worker.

mod cases;

fn start() -> hearth::Hearth {
    hearth::Hearth::builder().workers(1).start().unwrap()
}
