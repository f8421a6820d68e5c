//! `Placement::Spread` puts components on CPUs in turn, and leaves services alone.

use hearth::{Hearth, Placement, block_on, channel};

#[test]
fn components_go_in_turn_over_the_cpus() {
    let cpus = hearth_sys::affinity::allowed();
    let hearth = Hearth::builder()
        .workers(cpus.len())
        .placement(Placement::Spread)
        .start()
        .unwrap();
    let waiting: Vec<_> = (0..2 * cpus.len())
        .map(|_| {
            let (out, into) = channel::<i32>();
            let component = hearth.spawn(async move { into.recv().await });
            (out, component)
        })
        .collect();
    let found: Vec<_> = hearth.placements().iter().map(|place| place.cpu).collect();
    let expected: Vec<_> = cpus.iter().chain(&cpus).copied().map(Some).collect();
    assert_eq!(found, expected);
    for (out, component) in waiting {
        drop(out);
        assert!(block_on(component).unwrap().is_err());
    }
}
