//! Components on threads of their own move to their peers.

mod places;

#[test]
fn pairs_that_talk_come_together() {
    places::pairs_come_together(
        hearth::Hearth::builder().carrier(hearth::Carrier::Threads),
        |place| place.cpu,
    );
}
