//! Waiting for a future on a thread.

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake};
use std::thread::Thread;

/// Unparks a thread.
struct Unpark {
    thread: Thread,
    /// The token of a thread is one for all: one that waits within another's poll may have taken it.
    is_woken: AtomicBool,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        // Release pairs with the Acquire of who waits: what the waker did before is seen by the future.
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
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
/// In a component, and in a waker or a destructor that the runtime calls.
pub fn block_on<F: IntoFuture>(future: F) -> F::Output {
    assert!(
        !hearth_runtime::embed::is_inside(),
        "a component awaits; it does not block its worker"
    );
    let mut future = pin!(future.into_future());
    let unpark = Arc::new(Unpark {
        thread: std::thread::current(),
        is_woken: AtomicBool::new(false),
    });
    let waker = Arc::clone(&unpark).into();
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        while !unpark.is_woken.swap(false, Ordering::Acquire) {
            std::thread::park();
        }
    }
}
