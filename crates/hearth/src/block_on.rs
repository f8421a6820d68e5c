//! Waiting for a future on a thread.

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake};
use std::thread::Thread;

/// A waker that unparks a thread.
struct Unpark {
    thread: Thread,
    /// Needed beside the thread's own token, which a wait nested in a poll may have taken.
    is_woken: AtomicBool,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        // Release pairs with the Acquire in `block_on`: the future sees what came before the wake.
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Waits for a future on the calling thread, which sleeps meanwhile. Use it outside of components
/// only: in one, its worker would sleep, and all components of the worker with it.
///
/// ```
/// use hearth::{Hearth, block_on};
///
/// let hearth = Hearth::start()?;
/// let component = hearth.spawn(async { 6 * 7 });
/// assert_eq!(block_on(component)?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// Panics in a component, and in a waker or a destructor that the runtime calls.
pub fn block_on<F: IntoFuture>(future: F) -> F::Output {
    assert!(
        !hearth_runtime::embed::is_inside(),
        "a component must not block its worker; use `.await` instead of `block_on`"
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
