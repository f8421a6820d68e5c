//! Components among themselves, on two workers.

mod cases;

fn start() -> hearth::Hearth {
    hearth::Hearth::builder().workers(2).start().unwrap()
}
