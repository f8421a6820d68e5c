//! Errands under every interleaving: each is handled once, by the component or by the thread that
//! brought it.
//!
//! The model checker does not see the purpose of errands: that a half-channel outlives a light wait
//! there follows from a reference that is counted before the owner releases its own, and released
//! by the component between two waits. It sees that no such reference is lost or released twice.

use loom::sync::Arc;
use loom::thread;

use super::Errands;
use crate::ground::sync::{AtomicUsize, Ordering};

/// A counted reference: the number of its releases.
struct Reference(Arc<AtomicUsize>);

impl Drop for Reference {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn loom_each_errand_is_seen_to_once() {
    loom::model(|| {
        let errands = Arc::new(Errands::new());
        let counts: Vec<_> = (0..2).map(|_| Arc::new(AtomicUsize::new(0))).collect();
        let others: Vec<_> = counts
            .iter()
            .map(|count| {
                let (errands, count) = (Arc::clone(&errands), Arc::clone(count));
                thread::spawn(move || drop(errands.leave(Reference(count))))
            })
            .collect();
        // The component: a look between two polls, and its end.
        let seen = match errands.are_there() {
            true => errands.take(),
            false => Vec::new(),
        };
        drop(seen);
        drop(errands.close());
        for other in others {
            other.join().unwrap();
        }
        for count in counts {
            assert_eq!(count.load(Ordering::Relaxed), 1, "given back once");
        }
    });
}

#[test]
fn loom_a_ring_shows_what_was_left_before() {
    loom::model(|| {
        let errands = Arc::new(Errands::new());
        // Set after the errand is left, as by `Bell::ring`.
        let bell = Arc::new(crate::ground::sync::AtomicBool::new(false));
        let other = {
            let (errands, bell) = (Arc::clone(&errands), Arc::clone(&bell));
            thread::spawn(move || {
                assert!(errands.leave(()).is_ok(), "the component has not ended");
                bell.store(true, Ordering::Release);
            })
        };
        if bell.load(Ordering::Acquire) {
            assert!(errands.are_there());
            assert_eq!(errands.take().len(), 1);
        }
        other.join().unwrap();
    });
}
