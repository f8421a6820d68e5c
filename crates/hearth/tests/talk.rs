//! Components on workers move to their peers. The one test needs a process of its own, because it
//! looks at all workers and all components.

mod places;

#[test]
fn pairs_that_talk_come_together() {
    let hearth = hearth::Hearth::builder().workers(2);
    places::pairs_come_together(hearth, |place| place.worker);
}
