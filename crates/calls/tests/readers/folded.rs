//! Folded stacks, read by inferno.

use hearth_calls::formats::folded;
use hearth_calls::{Recorded, Tree};
use inferno::flamegraph::{self, Options};

use crate::fixture::{Temporary, lossy, whole};

fn check(recorded: &Recorded) {
    let tree = Tree::of(recorded).expect("it is read");
    let mut text = Vec::new();
    folded(recorded, &tree, &mut text).expect("it is written");
    let text = String::from_utf8(text).expect("text");
    let mut picture = Vec::new();
    let mut options = Options::default();
    options.count_name = "ns".into();
    flamegraph::from_lines(&mut options, text.lines(), &mut picture).expect("inferno draws it");
    let picture = String::from_utf8(picture).expect("text");
    // Inferno puts the number of nanoseconds of all stacks at the root.
    let own: u64 = tree.nodes.iter().map(|node| node.own).sum();
    let all = picture.split("<title>all (").nth(1).expect("a root");
    let digits: String = all.split(' ').next().unwrap_or_default().replace(',', "");
    assert_eq!(digits, own.to_string(), "{text}");
    assert!(picture.contains("<title>Shop::handle ("), "{picture}");
}

#[test]
fn inferno_draws_whole_recordings() {
    check(&whole(&Temporary::new()));
}

#[test]
fn inferno_draws_recordings_with_losses() {
    check(&lossy(&Temporary::new()));
}
