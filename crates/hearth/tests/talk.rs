//! Components come to whom they talk with, carried by workers. One test in a process of its own: it
//! is about all workers, and about what is seen of all components.

mod places;

#[test]
fn pairs_that_talk_come_together() {
    let hearth = hearth::Hearth::builder().workers(2);
    places::pairs_come_together(hearth, |place| place.worker);
}
