//! Plans are followed, or refused if they do not fit. The one test needs a process of its own,
//! because the first settings count.

use hearth::error::StartError;
use hearth::place::{ComponentPlacement, Plan};
use hearth::{Component, Hearth, Placement, block_on, channel};
use hearth_sys::affinity;

fn refused(builder: hearth::Builder) -> String {
    match builder.start() {
        Err(StartError::Placement(error)) => error.to_string(),
        other => panic!("not refused: {other:?}"),
    }
}

/// Makes a component that waits until its peer is dropped.
fn waiting(hearth: &Hearth, name: &str) -> (hearth::Out<i32>, Component<()>) {
    let (out, into) = channel::<i32>();
    let component = hearth.component(name).spawn(async move {
        let _ = into.recv().await;
    });
    (out, component)
}

fn where_is(places: &[ComponentPlacement], name: &str) -> Vec<Option<usize>> {
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
    // The policy follows no plan.
    let plan = Plan::new().put("Reader", first);
    let message = refused(Hearth::builder().placement(Placement::Spread).plan(plan));
    assert_eq!(
        message,
        "Placement::Spread places every component itself; a plan goes with \
         Placement::WithCreator or Placement::Talk"
    );
    // There is no such CPU.
    let message = refused(Hearth::builder().plan(Plan::new().put("Reader", beyond)));
    let said = "the plan puts Reader on CPU 4095, which this process may not use; it may use ";
    assert!(message.starts_with(said), "{message}");
    // The workers are bound to no CPUs.
    let plan = Plan::new().put("Reader", first);
    let message = refused(Hearth::builder().workers(all.len() + 1).plan(plan));
    assert!(message.contains("are bound to none of them"), "{message}");
    // The text is not a profile.
    let message = refused(Hearth::builder().placement(Placement::Talk).machine("{"));
    let said = "the machine's profile cannot be used: ";
    assert!(message.starts_with(said), "{message}");
    if let [_, second, ..] = all[..] {
        // The CPU has no worker.
        let plan = Plan::new().put("Reader", second as u32);
        let message = refused(Hearth::builder().workers(1).plan(plan));
        assert!(message.contains("which has no worker"), "{message}");
        // The process may no longer use the CPU.
        affinity::allow_current(&all[..1]).unwrap();
        let plan = Plan::new().put("Reader", second as u32);
        let message = refused(Hearth::builder().plan(plan));
        let said = format!(
            "the plan puts Reader on CPU {second}, which this process may not use; it may use {first}:"
        );
        assert!(message.starts_with(&said), "{message}");
        affinity::allow_current(&all).unwrap();
    }

    // A plan that fits is followed.
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
    let missing = hearth.unmatched_plan_names();
    assert_eq!(missing.len(), 6, "nobody is made yet: {missing:?}");
    let names = ["Reader", "Worker", "Worker", "Lane#7", "Other"];
    let all_waiting: Vec<_> = names.iter().map(|name| waiting(&hearth, name)).collect();
    assert_eq!(hearth.unmatched_plan_names(), ["Own", "Raeder"]);
    let places = hearth.placements();
    assert_eq!(places.len(), names.len());
    assert_eq!(where_is(&places, "Reader"), [Some(last)]);
    assert_eq!(where_is(&places, "Worker"), [Some(all[0]), Some(last)]);
    assert_eq!(where_is(&places, "Lane"), [Some(last)]);
    assert!(places.iter().all(|place| place.moves == 0), "{places:?}");
    for (out, component) in all_waiting {
        drop(out);
        block_on(component).unwrap();
    }
    // A component with a CPU of its own counts as made, too.
    let own = hearth.component("Own").core(last as u32).spawn(async {});
    block_on(own).unwrap();
    assert_eq!(block_on(hearth.wait()), Ok(()));
    assert!(hearth.placements().is_empty());
    // Components that have ended count as made.
    assert_eq!(hearth.unmatched_plan_names(), ["Raeder"]);
}
