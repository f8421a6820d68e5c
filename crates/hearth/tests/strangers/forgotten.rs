//! Forgotten futures, half-channels and handles.

use super::{ROUNDS, begin, own_pair, pause, stopped, take_what_is_free};
use crate::start;
use hearth::error::{JoinError, TryReceiveError};
use hearth::{In, Out, block_on, channel, connect, select};
use std::sync::Arc;
use std::sync::mpsc;

/// The kind of operation that is begun and forgotten.
#[derive(Clone, Copy, Debug)]
enum Begun {
    Send,
    Receive,
    Select,
}

const ALL: [Begun; 3] = [Begun::Send, Begun::Receive, Begun::Select];

/// Begins an operation on half-channels that only the calling component has, forgets its future,
/// and drops all of them.
fn begin_and_forget(begun: Begun) {
    let (out, into) = own_pair::<String>();
    let (other_out, other) = own_pair::<[u64; 3]>();
    match begun {
        Begun::Send => {
            let mut send = out.send("nobody will have it".to_owned());
            begin(&mut send);
            std::mem::forget(send);
        }
        Begun::Receive => {
            let mut receive = into.recv();
            begin(&mut receive);
            std::mem::forget(receive);
        }
        Begun::Select => {
            let mut select = select((&into, &other));
            begin(&mut select);
            std::mem::forget(select);
        }
    }
    drop((out, into, other_out, other));
    take_what_is_free();
}

#[test]
fn a_half_channel_is_there_while_its_forgotten_operation_is() {
    let hearth = start();
    for begun in ALL {
        for _ in 0..ROUNDS {
            let end = stopped(&hearth, || async move { begin_and_forget(begun) });
            assert_eq!(end, Err(JoinError::Stopped), "{begun:?}");
        }
    }
}

#[test]
fn one_who_forgot_an_operation_is_woken_at_a_half_channel_that_is_gone() {
    let hearth = start();
    for begun in ALL {
        let component = hearth.spawn(async move {
            begin_and_forget(begun);
            // Its waker calls off the wait, which takes the place of the operation.
            pause().await;
            pause().await;
            take_what_is_free();
        });
        assert_eq!(block_on(component), Ok(()), "{begun:?}");
    }
}

/// Two components use a half-channel. One forgets its operation, the other drops the half-channel.
#[test]
fn a_shared_half_channel_is_dropped_by_another_component() {
    let hearth = start();
    for _ in 0..ROUNDS {
        let (says, said) = mpsc::channel();
        let (out, into) = (Arc::new(Out::<String>::new()), Arc::new(In::new()));
        connect(&out, &into);
        let (shared, other) = (Arc::clone(&out), Arc::clone(&into));
        let first = hearth.spawn(async move {
            // Both exist from now on, on one worker.
            assert_eq!(other.try_recv(), Err(TryReceiveError::Empty));
            drop(other);
            let mut send = shared.send("nobody will have it".to_owned());
            begin(&mut send);
            std::mem::forget(send);
            drop(shared);
            says.send(()).unwrap();
            std::future::pending::<()>().await;
        });
        said.recv().unwrap();
        let second = hearth.spawn(async move {
            drop(out);
            drop(into);
            take_what_is_free();
        });
        assert_eq!(block_on(second), Ok(()));
        first.stop();
        assert_eq!(block_on(first), Err(JoinError::Stopped));
    }
}

/// A value for a forgotten receive is dropped with its component, once.
#[test]
fn a_value_for_a_forgotten_receive_goes_with_its_component() {
    let hearth = start();
    let (out, into) = channel::<Arc<()>>();
    let value = Arc::new(());
    let copy = Arc::clone(&value);
    let (says, said) = mpsc::channel();
    let component = hearth.spawn(async move {
        let mut receive = into.recv();
        begin(&mut receive);
        std::mem::forget(receive);
        says.send(()).unwrap();
        std::future::pending::<()>().await;
        drop(into);
    });
    said.recv().unwrap();
    assert!(
        block_on(hearth.spawn(async move { out.send(copy).await }))
            .unwrap()
            .is_ok()
    );
    component.stop();
    assert_eq!(block_on(component), Err(JoinError::Stopped));
    assert_eq!(Arc::strong_count(&value), 1);
}

/// Leaked half-channels stay connected, and leaked components run on.
#[test]
fn half_channels_and_handles_may_leak() {
    let hearth = start();
    let (out, into) = channel::<u64>();
    let sender = hearth.spawn(async move {
        out.send(1).await.unwrap();
        std::mem::forget(out);
    });
    let receiver = hearth.spawn(async move { into.recv().await.unwrap() });
    assert_eq!(block_on(receiver), Ok(1));
    assert_eq!(block_on(sender), Ok(()));
    let (says, said) = mpsc::channel();
    let component = hearth.spawn(async move {
        pause().await;
        says.send(()).unwrap();
    });
    std::mem::forget(component.join());
    said.recv().unwrap();
}
