//! The program's own code at each point where the runtime calls it: destructors, wakers, and
//! futures that are polled or dropped elsewhere, or forgotten. The table is
//! `docs/internals/foreign-code.md`.
//!
//! All of it is safe code, so it may break nothing but itself. A read of freed memory may show only
//! in a tool: `./x memcheck` runs these tests in one.

mod elsewhere;
mod forgotten;
mod panics;
mod storm;
mod values;
mod wakers;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use hearth::error::{JoinError, TryReceiveError};
use hearth::{Component, Hearth, In, Out, block_on, connect};

pub(crate) type Deed = Box<dyn FnOnce() + Send>;

/// Does something when it is dropped. The text shows whether the value is whole.
pub(crate) struct OnDrop {
    pub(crate) text: String,
    deed: Option<Deed>,
}

impl OnDrop {
    pub(crate) fn new(deed: impl FnOnce() + Send + 'static) -> OnDrop {
        OnDrop {
            text: "a text that is on the heap".to_owned(),
            deed: Some(Box::new(deed)),
        }
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        if let Some(deed) = self.deed.take() {
            deed();
        }
        assert_eq!(self.text, "a text that is on the heap");
    }
}

/// A waker that does something when it is first woken, or when its last copy is dropped.
#[derive(Default)]
pub(crate) struct Strange {
    on_wake: Mutex<Option<Deed>>,
    on_drop: Mutex<Option<Deed>>,
}

impl Strange {
    pub(crate) fn waking(deed: impl FnOnce() + Send + 'static) -> Waker {
        let strange = Strange::default();
        *strange.on_wake.lock().unwrap() = Some(Box::new(deed));
        Arc::new(strange).into()
    }

    pub(crate) fn dropped(deed: impl FnOnce() + Send + 'static) -> Waker {
        let strange = Strange::default();
        *strange.on_drop.lock().unwrap() = Some(Box::new(deed));
        Arc::new(strange).into()
    }
}

impl Wake for Strange {
    fn wake(self: Arc<Self>) {
        let deed = self.on_wake.lock().unwrap().take();
        if let Some(deed) = deed {
            deed();
        }
    }
}

impl Drop for Strange {
    fn drop(&mut self) {
        let deed = self.on_drop.get_mut().unwrap().take();
        if let Some(deed) = deed {
            deed();
        }
    }
}

/// Polls once with this waker.
pub(crate) fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// Polls once with a waker that does nothing. The future must be pending.
pub(crate) fn begin<F: Future + Unpin>(future: &mut F) {
    assert!(poll(future, Waker::noop()).is_pending());
}

/// Makes an out and an in that belong to the calling component, connected.
pub(crate) fn own_pair<T: Send + 'static>() -> (Out<T>, In<T>) {
    let (out, into) = (Out::new(), In::new());
    connect(&out, &into);
    // Both exist from now on, on one worker.
    assert!(matches!(into.try_recv(), Err(TryReceiveError::Empty)));
    (out, into)
}

/// Repeats for faults that show now and then. Miri sees them the first time.
pub(crate) const ROUNDS: usize = if cfg!(miri) { 1 } else { 20 };

/// Reuses the memory that was freed last.
pub(crate) fn take_what_is_free() {
    if cfg!(miri) {
        return;
    }
    let others: Vec<Vec<u64>> = (0..200).map(|_| vec![0x4141_4141_4141_4141; 9]).collect();
    drop(std::hint::black_box(others));
}

/// Waits once, after handing out the component's own waker.
pub(crate) async fn park(mut to: impl FnMut(&Waker)) {
    let mut is_over = false;
    poll_fn(|context| {
        if std::mem::replace(&mut is_over, true) {
            return Poll::Ready(());
        }
        to(context.waker());
        Poll::Pending
    })
    .await;
}

/// Lets other components run once.
pub(crate) async fn pause() {
    park(Waker::wake_by_ref).await;
}

/// Runs a future in a component until it has begun to wait, then stops it, and returns how it
/// ended.
pub(crate) fn stopped<F, Fut>(hearth: &Hearth, body: F) -> Result<(), JoinError>
where
    F: FnOnce() -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    let (says, said) = mpsc::channel();
    let body = body();
    let component: Component<()> = hearth.spawn(async move {
        body.await;
        says.send(()).unwrap();
        std::future::pending::<()>().await;
    });
    // The channel also ends if the component does.
    let _ = said.recv();
    // On one worker, this component runs only after the other one has begun to wait.
    block_on(hearth.spawn(async {})).unwrap();
    component.stop();
    block_on(component)
}
