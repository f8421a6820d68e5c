//! The ring and the end of a record, under every interleaving that the model checker can reach.
//!
//! The models run [`Ring`], [`Record`], [`run_taken`] and [`wait_for`] as they ship: taking back
//! against stealing, waiting against ending, sleeping against waking, younger records run by a
//! waiting owner, and parts of a record taken from the thread that runs it. They leave out the
//! helpers' sleep (a missed wake-up costs time, no result), the grains, and the generated code.

use std::ptr;
use std::sync::Arc;

use loom::thread;

use super::record::Record;
use super::ring::Ring;
use super::{run_taken, wait_for};
use crate::abi::Component;
use crate::ground::sync::Guarded;

/// A record with a result, as generated code has it.
#[repr(C)]
struct Call {
    record: Record,
    result: Guarded<u32>,
    /// A call beside in it.
    inner: Option<(Arc<Ring>, *mut Call)>,
}

unsafe extern "C" fn run(record: *mut Record, _: *mut Component, _: u32) {
    // SAFETY: the record is that of a call, and the calling thread has it.
    unsafe {
        let call = record.cast::<Call>();
        if let Some((ring, inner)) = &(*call).inner {
            let slot = begin(ring, *inner);
            finish(ring, *inner, slot);
            (*call).result.with_mut(|result| *result += 10);
        }
        (*call).result.with_mut(|result| *result += 1);
    }
}

/// A call on the heap: models keep their records until every thread has ended.
fn call(inner: Option<(Arc<Ring>, *mut Call)>) -> *mut Call {
    Box::into_raw(Box::new(Call {
        record: Record::new(run, ptr::null_mut(), 1, false),
        result: Guarded::new(0),
        inner,
    }))
}

fn begin(ring: &Ring, call: *mut Call) -> Option<usize> {
    ring.push(call.cast())
}

/// Waits for a call, as `hearth_await` does.
fn finish(ring: &Ring, call: *mut Call, slot: Option<usize>) {
    // SAFETY: the call is this thread's.
    unsafe {
        match slot {
            Some(slot) => {
                let came_back = ring.take_back(slot);
                if !came_back {
                    wait_for(call.cast(), slot, ptr::null_mut(), ring);
                }
                ring.close(slot);
                if came_back {
                    run(call.cast(), ptr::null_mut(), 1);
                }
            }
            None => run(call.cast(), ptr::null_mut(), 1),
        }
    }
}

/// The call has been run once, and its owner sees it.
fn expect(call: *mut Call, expected: u32) {
    // SAFETY: the owner has waited for it.
    unsafe { (*call).result.with(|result| assert_eq!(*result, expected)) };
}

/// Steals once from a ring, and runs what it finds with its own.
fn steal(from: &Ring, own: &Ring) {
    if let Some(record) = from.steal() {
        // SAFETY: this thread has taken it.
        unsafe { run_taken(record, ptr::null_mut(), own) };
    }
}

struct Sent<T>(T);
// SAFETY: the models say which thread uses what; loom verifies it for the results.
unsafe impl<T> Send for Sent<T> {}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn loom_a_record_is_run_once() {
    check(|| {
        let ring = Arc::new(Ring::new());
        let one = call(None);
        let own = Arc::new(Ring::new());
        let thief = {
            let (ring, own) = (Arc::clone(&ring), Arc::clone(&own));
            thread::spawn(move || steal(&ring, &own))
        };
        let slot = begin(&ring, one);
        finish(&ring, one, slot);
        expect(one, 1);
        thief.join().unwrap();
        // SAFETY: every thread has ended.
        drop(unsafe { Box::from_raw(one) });
    });
}

#[test]
fn loom_two_thieves_and_a_slot_used_twice() {
    check(|| {
        let ring = Arc::new(Ring::new());
        let (one, two) = (call(None), call(None));
        let own = Arc::new(Ring::new());
        let thief = {
            let (ring, own) = (Arc::clone(&ring), Arc::clone(&own));
            thread::spawn(move || {
                steal(&ring, &own);
                steal(&ring, &own);
            })
        };
        let slot = begin(&ring, one);
        finish(&ring, one, slot);
        let slot = begin(&ring, two);
        finish(&ring, two, slot);
        expect(one, 1);
        expect(two, 1);
        thief.join().unwrap();
        // SAFETY: every thread has ended.
        drop(unsafe { (Box::from_raw(one), Box::from_raw(two)) });
    });
}

#[test]
fn loom_a_waiting_owner_runs_its_younger_records() {
    check(|| {
        let ring = Arc::new(Ring::new());
        let (one, two) = (call(None), call(None));
        let own = Arc::new(Ring::new());
        let thief = {
            let (ring, own) = (Arc::clone(&ring), Arc::clone(&own));
            thread::spawn(move || steal(&ring, &own))
        };
        let first = begin(&ring, one);
        let second = begin(&ring, two);
        finish(&ring, one, first);
        expect(one, 1);
        finish(&ring, two, second);
        expect(two, 1);
        thief.join().unwrap();
        // SAFETY: every thread has ended.
        drop(unsafe { (Box::from_raw(one), Box::from_raw(two)) });
    });
}

#[test]
fn loom_a_waiting_owner_takes_a_part_of_what_it_waits_for() {
    check(|| {
        let ring = Arc::new(Ring::new());
        let other = Arc::new(Ring::new());
        let inner = call(None);
        let outer = call(None);
        let thief = {
            let (ring, other) = (Arc::clone(&ring), Arc::clone(&other));
            let given = Sent((outer, inner));
            thread::spawn(move || {
                let given = given;
                let (outer, inner) = given.0;
                if let Some(record) = ring.steal() {
                    // SAFETY: this thread has taken it.
                    unsafe {
                        (*outer).inner = Some((Arc::clone(&other), inner));
                        run_taken(record, ptr::null_mut(), &other);
                    }
                }
            })
        };
        let slot = begin(&ring, outer);
        finish(&ring, outer, slot);
        // SAFETY: the owner has waited for it.
        let is_nested = unsafe { (*outer).result.with(|result| *result) } == 11;
        if is_nested {
            expect(inner, 1);
        } else {
            expect(outer, 1);
        }
        thief.join().unwrap();
        // SAFETY: every thread has ended.
        drop(unsafe { (Box::from_raw(outer), Box::from_raw(inner)) });
    });
}
