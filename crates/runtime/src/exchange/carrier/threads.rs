//! A kernel thread for each component: it resumes the component, and sleeps while it is blocked.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use hearth_sys::{affinity, stack};

use super::STACK_BYTES;
use crate::abi::{Component, Step};
use crate::exchange::carrier::traffic::ThreadSampler;
use crate::exchange::channel::peek;
use crate::exchange::{channel, component, values::heap};
use crate::ground::runtime::{self, Part};
use crate::ground::sync::lock_std as lock;
use crate::ground::{exits, options};
use crate::hooks;
use crate::outside::idle;
use crate::outside::idle::Visit;
use crate::outside::poller::{self, Ready};
use crate::recording;
use crate::seats::parker::Parker;
use crate::seats::registry;
use crate::seats::seat::{Seat, seat_of};

/// Resumes a blocked component.
///
/// # Safety
/// Its wait was completed or interrupted by the caller. The seat may be gone afterwards.
pub(crate) unsafe fn wake(seat: *const Seat) {
    if recording::is_on() {
        // SAFETY: this wait has no other waker.
        unsafe { recording::ready((*seat).component()) };
    }
    // Counted in before it can run: the count must not reach zero in between.
    // SAFETY: this wait has no other waker, so the seat is alive until woken.
    unsafe { Parker::wake(&raw const (*seat).parker, idle::enter_woken) };
}

/// Waits for the one `wake`: for a model's thread, which is not counted.
#[cfg(all(test, loom))]
pub(crate) fn wait(seat: &Seat) {
    seat.parker.wait(|| {});
}

/// Starts a component on a thread of its own.
pub(crate) fn launch(component: *mut Component) {
    struct Passenger(*mut Component);
    // SAFETY: the new thread gets the whole component; the starter keeps a reference at most.
    unsafe impl Send for Passenger {}
    impl Passenger {
        fn carry(self) {
            carry(self.0);
        }
    }

    if recording::is_on() {
        // SAFETY: not started, so the component is the caller's.
        unsafe { recording::ready(component) };
    }
    (hooks::get().starts)();
    idle::enter_woken();
    let passenger = Passenger(component);
    if let Err(error) = runtime::spawn("", STACK_BYTES, move || passenger.carry()) {
        // SAFETY: not started, so the component is as the caller left it.
        let name = registry::name_of(unsafe { seat_of(component) });
        exits::unfit(&format!(
            "could not start a thread for component {name} ({error}) with {} running: each \
             component needs one; create fewer, or raise the limits (ulimit -u, \
             kernel.threads-max, vm.max_map_count)",
            registry::running(),
        ));
    }
    heap::has_threads();
}

/// A component's thread.
struct Listing {
    thread: u32,
    /// The core it was pinned to.
    core: Option<usize>,
}

/// The threads of movable components, by the components' numbers. Kept while traffic is sampled, or
/// a report of the components' cores is possible.
static THREADS: Part<Mutex<BTreeMap<u64, Listing>>> = Part::new(Mutex::default);

/// Moves the thread of a component to a core. False if the component has no thread here, for
/// example because it has ended.
pub(crate) fn move_thread(id: u64, core: usize) -> bool {
    // Under the lock, so that the number cannot pass to another thread.
    let mut threads = lock(&THREADS);
    let listing = threads.get_mut(&id);
    let is_listed = listing.is_some();
    if let Some(listing) = listing {
        // Refused only for a core that is offline or outside the process's own set.
        let is_there = affinity::allow_thread(listing.thread, &[core]).is_ok();
        if is_there && listing.core.replace(core) != Some(core) {
            (hooks::get().moved)(id);
        }
    }
    is_listed
}

/// Retains the entries of components that have a thread here.
pub(crate) fn keep_running<T>(known: &mut BTreeMap<u64, T>) {
    let threads = lock(&THREADS);
    known.retain(|id, _| threads.contains_key(id));
}

/// The core that a component's thread was pinned to, if any.
pub(super) fn core_of(id: u64) -> Option<usize> {
    lock(&THREADS).get(&id)?.core
}

/// Lists the calling thread under a component until dropped.
struct Listed(u64);

impl Listed {
    fn new(seat: &Seat) -> Listed {
        let thread = affinity::thread_id();
        let core = None;
        lock(&THREADS).insert(seat.id, Listing { thread, core });
        Listed(seat.id)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        lock(&THREADS).remove(&self.0);
    }
}

/// The core that a component with a thread of its own starts on, if it matters: its `destination`,
/// since it has no worker to migrate to.
fn core_for(seat: &Seat) -> Option<usize> {
    // SAFETY: the component is about to run on the calling thread.
    let destination = unsafe { (*seat.component()).destination };
    destination.checked_sub(1).map(usize::from)
}

/// Carries a component on this thread until it ends.
fn carry(component: *mut Component) {
    // SAFETY: `component::start` gave the running component a reference of its own.
    let seat = unsafe { seat_of(component) };
    let is_listed = options::get().watches_traffic() || options::get().is_embedded;
    let _listed = is_listed.then(|| Listed::new(seat));
    if let Some(core) = core_for(seat) {
        keep_current(seat, core);
    }
    let owner = std::ptr::from_ref(seat).expose_provenance();
    let step = stack::watch(STACK_BYTES, owner, || resume_to_the_end(component, seat));
    // SAFETY: it has ended, and only counted references refer to it.
    unsafe { component::end(component, step) };
    idle::leave();
}

fn resume_to_the_end(component: *mut Component, seat: &Seat) -> Step {
    let mut sampler = ThreadSampler::new(options::get().watches_traffic(), seat.id);
    let mut glimpse = None;
    loop {
        if recording::is_on() {
            // SAFETY: this thread carries the component.
            recording::look_at_heap(seat.id, || unsafe { heap::used(component) });
            recording::thread_runs(seat);
        }
        // SAFETY: the type's own function, on the only thread that carries the component.
        let step = unsafe { ((*(*component).r#type).resume)(component) };
        // SAFETY: this thread carries the component.
        unsafe {
            recording::thread_returns(component, || {
                (step == Step::Blocked).then(|| peek::wait_of(component))
            });
        }
        if let Some(glimpse) = glimpse.take() {
            sampler.end(glimpse);
        }
        if step != Step::Blocked {
            return step;
        }
        seat.parker.wait(idle::leave);
        // SAFETY: woken, so the component is ours again.
        unsafe {
            if sampler.is_due() {
                let waited_at = peek::place_of(component);
                channel::settle(seat);
                glimpse = Some(sampler.begin(component, |chance| {
                    waited_at.and_then(|channel| peek::wait_at(component, channel, chance))
                }));
            } else {
                channel::settle(seat);
            }
        }
    }
}

/// Pins the calling component's thread to a core. Cores outside the process's set are ignored.
pub(crate) fn keep_current(seat: &Seat, core: usize) {
    // Refused only for a core that is offline or outside the process's own set.
    if affinity::pin_current(core).is_ok()
        && let Some(listing) = lock(&THREADS).get_mut(&seat.id)
    {
        listing.core = Some(core);
    }
}

/// Called when there is something outside to wait for: the first call starts a thread that waits.
pub(super) fn see_to_outside() {
    static STARTED: Part<AtomicBool> = Part::new(AtomicBool::default);
    if STARTED.load(Ordering::Relaxed) || STARTED.swap(true, Ordering::Relaxed) {
        return;
    }
    // Handlers read values from other nodes, as deep as allowed.
    if let Err(error) = runtime::spawn("poller", STACK_BYTES, wait_for_outside) {
        exits::unfit(&format!(
            "could not start the thread for timers and descriptors ({error}); raise ulimit -u"
        ));
    }
}

fn wait_for_outside() {
    let mut ready = Ready::new();
    while !runtime::current().is_over() {
        poller::wait(&mut ready);
        if poller::has_come(&ready) {
            let _visit = Visit::begin();
            poller::serve(&mut ready);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_those_that_ended_goes() {
        // No component of another test has this number.
        let id = u64::MAX - 1;
        let thread = affinity::thread_id();
        lock(&THREADS).insert(id, Listing { thread, core: None });
        let mut known: BTreeMap<u64, u32> = (0..1000).map(|back| (u64::MAX - back, 7)).collect();
        keep_running(&mut known);
        assert_eq!(known, BTreeMap::from([(id, 7)]));
        lock(&THREADS).remove(&id);
        keep_running(&mut known);
        assert!(known.is_empty());
        assert!(!move_thread(id, 0));
    }
}
