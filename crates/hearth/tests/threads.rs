//! Components among themselves, carried by a thread each.

mod cases;

fn start() -> hearth::Hearth {
    hearth::Hearth::builder().threads().start().unwrap()
}
