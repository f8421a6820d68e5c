//! Components come to whom they talk with, each with a thread of its own.

mod places;

#[test]
fn pairs_that_talk_come_together() {
    places::pairs_come_together(hearth::Hearth::builder().threads(), |place| place.cpu);
}
