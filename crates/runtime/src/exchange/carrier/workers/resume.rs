//! The loop of a worker's thread: pick, settle, resume.

use std::ptr;

use super::runner::{self, Lost, Runner};
#[cfg(loom)]
use super::world;
use super::{Worker, all, home_of, set_home};
use crate::abi::{Component, MOVED, Step};
use crate::exchange::channel::{self, hub, light, link, peek};
#[cfg(not(loom))]
use crate::exchange::component;
use crate::exchange::values::heap;
use crate::ground::sync::Ordering;
use crate::hooks;
use crate::recording;
use crate::seats::seat::seat_of;
use crate::seats::waiting;

impl Worker {
    /// Runs components until the runner has lost the worker.
    pub(super) fn run(&'static self, runner: &'static Runner) -> Lost {
        self.share_after_detaching();
        self.mine.sharing.begin();
        self.tell_core();
        loop {
            let Some(component) = self.pick(runner) else {
                // Release: as in `resume`.
                runner.current.store(ptr::null_mut(), Ordering::Release);
                self.rest();
                if self.runtime().is_over() {
                    return Lost::Over;
                }
                self.mine.sharing.begin();
                continue;
            };
            // SAFETY: it was ready, and is in no queue any more.
            unsafe {
                if self.mine.sampler.is_due(self.mine.picks.get()) {
                    self.look_at(component);
                }
                match waiting::waiting_of(component) {
                    waiting::NOTHING => {}
                    waiting::RETURNS => {
                        // Its run is measured from here on: the queue has changed.
                        self.mine.sharing.begin();
                        self.begin_run();
                        self.mark_queue();
                        runner::hand_over(self, runner, component);
                        return Lost::HandedOver;
                    }
                    _ => settle(component),
                }
                if (*component).destination != 0 && self.send_off(component) {
                    self.mine.sampler.forget();
                    continue;
                }
                self.begin_run();
                let step = match recording::is_on() {
                    false => self.resume(runner, component),
                    true => self.resume_watched(runner, component),
                };
                if step == Step::Blocked {
                    self.share(component);
                    self.let_come(component);
                    continue;
                }
                // It has ended, possibly detached.
                let is_kept = self.is_kept(runner);
                if is_kept {
                    if recording::is_on() {
                        self.tell_last_ready(component);
                    }
                    self.share(component);
                }
                #[cfg(not(loom))]
                component::end(component, step);
                #[cfg(loom)]
                world::ended(step);
                runner.current.store(ptr::null_mut(), Ordering::Relaxed);
                if !is_kept {
                    return Lost::Detached;
                }
            }
        }
    }

    /// Ends the last sampled run, starts sampling this one, or both.
    ///
    /// # Safety
    /// The component was ready, and is in no queue any more.
    #[cold]
    #[inline(never)]
    unsafe fn look_at(&'static self, component: *mut Component) {
        let sampler = &self.mine.sampler;
        // SAFETY: as the caller promises.
        unsafe {
            let begins = sampler.ends_and_begins();
            if let Some(mean_ns) = sampler.mean_ns() {
                self.mine.sharing.turn(mean_ns);
            }
            if !begins {
                return;
            }
            if waiting::waiting_of(component) == waiting::RETURNS {
                sampler.put_off(1);
                return;
            }
            let waited_at = peek::place_of(component);
            settle(component);
            sampler.begin(component, self.shared.index, |chance| {
                waited_at.and_then(|channel| peek::wait_at(component, channel, chance))
            });
        }
    }

    /// Runs a component until it waits or ends.
    ///
    /// # Safety
    /// The component is ready, settled, and in no queue.
    pub(super) unsafe fn resume(
        &'static self,
        runner: &'static Runner,
        component: *mut Component,
    ) -> Step {
        // SAFETY: as the caller promises, it is this thread's until it blocks or ends.
        unsafe {
            let rounds = runner.rounds.load(Ordering::Relaxed);
            runner
                .rounds
                .store(rounds.wrapping_add(1), Ordering::Relaxed);
            // Release, with Acquire in `at_work`: the code of the one before has come to its end.
            runner.current.store(component, Ordering::Release);
            // From here on the monitor may detach this thread; a wait makes this null again.
            // Release, with Acquire in `detach`: the next owner of the worker sees the queue as it
            // is.
            self.running.store(component, Ordering::Release);
            ((*(*component).r#type).resume)(component)
        }
    }

    /// Gives a component to the worker that it migrates to. False if that is this one.
    ///
    /// # Safety
    /// As for `resume`; it has a destination.
    pub(super) unsafe fn send_off(&self, component: *mut Component) -> bool {
        // SAFETY: as the caller promises. Other threads do not read the home of a ready component.
        unsafe {
            let index = (*component).destination as usize - 1;
            (*component).destination = 0;
            if index == self.shared.index {
                return false;
            }
            let home = &all()[index];
            {
                let _hold = (*home_of(component)).hold();
                set_home(component, home);
            }
            heap::follow(component, home.shared.core);
            // Afterwards: threads that link or localize its half-channels from here on go by the
            // new home.
            hub::make_all_shared(component);
            #[cfg(loom)]
            world::share_movers(home);
            (hooks::get().moved)(seat_of(component).id);
            if let Some(recorder) = recording::recorder() {
                let id = seat_of(component).id;
                recorder.moved(id, self.shared.index as u16, index as u16);
            }
            // It has been settled, and may have released the half-channels of its wait since.
            (*component).history |= MOVED;
            home.post(component);
            true
        }
    }
}

/// Ends a ready component's waits. Its worker calls this before it resumes the component.
///
/// # Safety
/// The component is ready and in no queue, and the caller runs its worker.
pub(super) unsafe fn settle(component: *mut Component) {
    // SAFETY: as the caller promises.
    unsafe {
        match waiting::waiting_of(component) {
            waiting::NOTHING => {}
            waiting::SELECTED => light::settle(component),
            waiting::LINKED => link::settle(component),
            _ => channel::settle(seat_of(component)),
        }
    }
}
