//! Plans are followed, and refused where they do not fit. One test in a process of its own: it is
//! about the settings that come first.

use hearth::place::{Plan, Station};
use hearth::{Component, Error, Hearth, Placement, block_on, channel};
use hearth_sys::affinity;

fn refused(builder: hearth::Builder) -> String {
    match builder.start() {
        Err(Error::Placement { message }) => message,
        other => panic!("not refused: {other:?}"),
    }
}

/// Some that wait until they are let go.
fn waiting(hearth: Hearth, name: &str) -> (hearth::Out<i32>, Component<()>) {
    let (out, into) = channel::<i32>();
    let component = hearth.component(name).spawn(async move {
        let _ = into.recv().await;
    });
    (out, component)
}

fn where_is(places: &[Station], name: &str) -> Vec<Option<usize>> {
    let of_name = places
        .iter()
        .filter(|place| place.component.split('#').next() == Some(name));
    of_name.map(|place| place.cpu).collect()
}

#[test]
fn plans_are_followed_or_refused() {
    let all = affinity::allowed();
    let first = all[0] as u32;
    let beyond = 4095;
    // The policy has its own ways.
    let plan = Plan::new().put("Reader", first);
    let message = refused(Hearth::builder().placement(Placement::Spread).plan(plan));
    assert_eq!(
        message,
        "Placement::Spread places every component itself; a plan goes with Placement::Os or \
         Placement::Talk"
    );
    // No such CPU.
    let message = refused(Hearth::builder().plan(Plan::new().put("Reader", beyond)));
    let said = "the plan puts Reader on CPU 4095, which this process may not use; it may use ";
    assert!(message.starts_with(said), "{message}");
    // No bound workers.
    let plan = Plan::new().put("Reader", first);
    let message = refused(Hearth::builder().workers(all.len() + 1).plan(plan));
    assert!(message.contains("are bound to none of them"), "{message}");
    // No profile.
    let message = refused(Hearth::builder().placement(Placement::Talk).machine("{"));
    let said = "the machine's profile cannot be used: ";
    assert!(message.starts_with(said), "{message}");
    if let [_, second, ..] = all[..] {
        // A CPU that has no worker.
        let plan = Plan::new().put("Reader", second as u32);
        let message = refused(Hearth::builder().workers(1).plan(plan));
        assert!(message.contains("which has no worker"), "{message}");
        // A CPU that was taken away.
        affinity::allow_current(&all[..1]).unwrap();
        let plan = Plan::new().put("Reader", second as u32);
        let message = refused(Hearth::builder().plan(plan));
        let said = format!(
            "the plan puts Reader on CPU {second}, which this process may not use; it may use {first}:"
        );
        assert!(message.starts_with(&said), "{message}");
        affinity::allow_current(&all).unwrap();
    }

    // One that fits.
    let last = *all.last().unwrap();
    let plan = Plan::new()
        .put("Reader", last as u32)
        .put("Worker#2", last as u32)
        .put("Worker", first)
        .put("Lane#7", last as u32)
        .put("Own", first)
        .put("Raeder", first);
    let hearth = Hearth::builder()
        .workers(all.len())
        .plan(plan)
        .start()
        .unwrap();
    let missing = hearth.missing_of_plan();
    assert_eq!(missing.len(), 6, "nobody is made yet: {missing:?}");
    let names = ["Reader", "Worker", "Worker", "Lane#7", "Other"];
    let all_waiting: Vec<_> = names.iter().map(|name| waiting(hearth, name)).collect();
    assert_eq!(hearth.missing_of_plan(), ["Own", "Raeder"]);
    let places = hearth.places();
    assert_eq!(places.len(), names.len());
    assert_eq!(where_is(&places, "Reader"), [Some(last)]);
    assert_eq!(where_is(&places, "Worker"), [Some(all[0]), Some(last)]);
    assert_eq!(where_is(&places, "Lane"), [Some(last)]);
    assert!(places.iter().all(|place| place.moves == 0), "{places:?}");
    for (out, component) in all_waiting {
        drop(out);
        block_on(component).unwrap();
    }
    // Placed by its own word, it is there all the same.
    let own = hearth.component("Own").core(last as u32).spawn(async {});
    block_on(own).unwrap();
    assert_eq!(block_on(hearth.wait()), Ok(()));
    assert!(hearth.places().is_empty());
    // Those that have ended were there.
    assert_eq!(hearth.missing_of_plan(), ["Raeder"]);
}
