//! Waiting for a future on a thread.

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::Thread;

/// Unparks a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future on the calling thread, which sleeps meanwhile. Not in a component: its worker
/// would sleep too, and all components with it.
///
/// ```
/// use hearth::{Hearth, block_on};
///
/// let hearth = Hearth::start()?;
/// let component = hearth.spawn(async { 6 * 7 });
/// assert_eq!(block_on(component)?, 42);
/// # Ok::<(), hearth::Error>(())
/// ```
///
/// # Panics
/// In a component.
pub fn block_on<F: IntoFuture>(future: F) -> F::Output {
    assert!(
        !hearth_runtime::embed::is_inside(),
        "a component awaits; it does not block its worker"
    );
    let mut future = pin!(future.into_future());
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
