//! Panics end the component in which they happen, and nothing else.

use std::panic::panic_any;
use std::sync::Arc;

use super::{OnDrop, begin, pause, stopped};
use crate::start;
use hearth::error::JoinError;
use hearth::{In, Out, block_on, channel, connect};

fn panicked(message: &str) -> JoinError {
    JoinError::Panicked {
        message: message.to_owned(),
    }
}

#[test]
fn a_component_panics_while_its_operation_waits() {
    let hearth = start();
    let (out, into) = (Out::<String>::new(), Arc::new(In::<String>::new()));
    connect(&out, &into);
    let own = Arc::clone(&into);
    let component = hearth.spawn(async move {
        let mut receive = own.recv();
        begin(&mut receive);
        panic!("in the middle");
    });
    assert_eq!(block_on(component), Err(panicked("in the middle")));
    // The component no longer waits, so the value goes to the next receive.
    let next = hearth.spawn(async move { into.recv().await });
    assert_eq!(
        block_on(hearth.spawn(async move { out.send("next".to_owned()).await.is_ok() })),
        Ok(true)
    );
    assert_eq!(block_on(next), Ok(Ok("next".to_owned())));
}

/// A panic's payload panics when it is dropped, and so does that panic's payload.
#[test]
fn what_a_panic_carries_panics() {
    let hearth = start();
    let component = hearth.spawn(async {
        panic_any(OnDrop::new(|| {
            panic_any(OnDrop::new(|| panic!("a payload's")));
        }));
    });
    let end: Result<(), JoinError> = block_on(component);
    assert_eq!(end, Err(panicked("a panic that carries no text")));
}

/// A value's destructor panics when its operation is called off, and ends the component.
#[test]
fn a_destructor_panics_with_its_operation() {
    let hearth = start();
    let (out, _into) = channel::<OnDrop>();
    let component = hearth.spawn(async move {
        let mut send = out.send(OnDrop::new(|| panic!("a value's")));
        begin(&mut send);
        drop(send);
        pause().await;
    });
    assert_eq!(block_on(component), Err(panicked("a value's")));
}

/// A component panics, and so does a destructor that runs because of it. The second panic ends
/// nothing more.
#[test]
fn a_destructor_panics_while_its_component_does() {
    let hearth = start();
    let (out, _into) = channel::<OnDrop>();
    let component = hearth.spawn(async move {
        let mut send = out.send(OnDrop::new(|| panic!("a value's")));
        begin(&mut send);
        panic!("the component's");
    });
    assert_eq!(block_on(component), Err(panicked("the component's")));
}

/// Destructors of values panic when their component is stopped.
#[test]
fn a_destructor_panics_with_its_component() {
    let hearth = start();
    let (out, _into) = channel::<OnDrop>();
    let end = stopped(&hearth, || async move {
        let mut send = out.send(OnDrop::new(|| panic!("a value's")));
        begin(&mut send);
        std::mem::forget(send);
        std::mem::forget(out);
    });
    assert_eq!(end, Err(JoinError::Stopped));
}

/// The future's own destructors panic.
#[test]
fn the_drop_of_a_future_panics() {
    let hearth = start();
    let end = stopped(&hearth, || async move {});
    assert_eq!(end, Err(JoinError::Stopped));
    let guard = OnDrop::new(|| panic!("a future's"));
    let component = hearth.spawn(async move {
        let _guard = guard;
        std::future::pending::<()>().await;
    });
    component.stop();
    assert_eq!(block_on(component), Err(JoinError::Stopped));
    // A future that is over reports the panic of its own destructors.
    let guard = OnDrop::new(|| panic!("a future's"));
    let component = hearth.spawn(async move {
        let _guard = guard;
        5
    });
    assert_eq!(block_on(component), Err(panicked("a future's")));
}

/// The output of a component panics when it is dropped at the end, without a handle.
#[test]
fn the_drop_of_an_output_panics() {
    let hearth = start();
    let (out, into) = channel::<u32>();
    let component = hearth.spawn(async move {
        let _ = into.recv().await;
        OnDrop::new(|| panic!("an output's"))
    });
    drop(component);
    drop(out);
    // The worker goes on.
    assert_eq!(block_on(hearth.spawn(pause())), Ok(()));
    assert_eq!(block_on(hearth.spawn(async { 1 })), Ok(1));
}
