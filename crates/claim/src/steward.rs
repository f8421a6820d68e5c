//! A claim that a thread looks after: it takes cores that become free, gives back those that others
//! ask for, and tells the program before and after.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hearth_sys::eventfd::EventFd;
use hearth_sys::signal::Signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;

use crate::constraints::Constraints;
use crate::error::ClaimError;
use crate::{Claim, Grant};

/// Longest time between two looks, s, where the kernel does not tell of changes.
const LOOK_EVERY: i64 = 1;
/// Pause after a look at a registry that cannot be used just now.
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// Pause between two attempts to get cores.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// The part of a program that a claim gives its size.
///
/// All calls come from one thread at a time, and must not ask for or give back cores themselves.
pub trait Team: Send {
    /// Uses these CPUs from now on. Called after cores were got, and *before* cores are given back:
    /// by its return the program must have left the others.
    fn resize(&mut self, cpus: &[usize]);

    /// Some cores have become free, and the claim has fewer than its most. How many of them it
    /// takes.
    fn may_grow(&mut self, free: u32) -> u32 {
        free
    }

    /// Others ask for some of the claim's cores, which it can spare: it has more than its least.
    /// How many it gives back.
    fn asked_back(&mut self, cores: u32) -> u32 {
        cores
    }
}

impl<F: FnMut(&[usize]) + Send> Team for F {
    fn resize(&mut self, cpus: &[usize]) {
        self(cpus);
    }
}

/// A claim with a steward. Dropped, it ends with its claim.
///
/// The child of a fork has neither: the steward is a thread of the parent, which may have had the
/// claim in its hands at that moment. Calls there fail, and nothing is done when it is dropped.
pub struct Tended {
    shared: Arc<Shared>,
    steward: Option<JoinHandle<()>>,
    /// The process that the steward is a thread of.
    process: u32,
}

struct Shared {
    tended: Mutex<Inside>,
    /// The steward is to look, or to end.
    call: EventFd,
}

struct Inside {
    claim: Claim,
    team: Box<dyn Team>,
    /// The CPUs that the team knows of.
    told: Vec<usize>,
    has_ended: bool,
}

impl Claim {
    /// Has a thread look after the claim from now on. It takes cores that become free, up to the
    /// most of the last constraints; gives back those that others ask for, down to the least; and
    /// leaves programs that have ended out of the registry, within milliseconds.
    ///
    /// The team is told of the claim's CPUs before this returns.
    ///
    /// # Errors
    /// The process has no descriptors or threads left.
    pub fn tend(self, team: impl Team + 'static) -> Result<Tended, ClaimError> {
        let folder = self.folder().to_owned();
        let in_folder = |error: io::Error| ClaimError::file(&folder, error);
        let call = EventFd::new().map_err(in_folder)?;
        let changes = watch(&folder).map_err(in_folder)?;
        let mut inside = Inside {
            claim: self,
            team: Box::new(team),
            told: Vec::new(),
            has_ended: false,
        };
        inside.tell(inside.claim.cpus());
        let tended = Mutex::new(inside);
        let shared = Arc::new(Shared { tended, call });
        let for_steward = Arc::clone(&shared);
        let steward = thread::Builder::new().name("hearth-claim".to_owned());
        // The program's signals are for its own threads.
        let steward =
            Signals::all_blocked(|| steward.spawn(move || for_steward.look_after(&changes)));
        Ok(Tended {
            shared,
            steward: Some(steward.map_err(in_folder)?),
            process: std::process::id(),
        })
    }
}

impl Tended {
    /// As [`Claim::invade`]; the team is told.
    ///
    /// # Errors
    /// As there.
    pub fn invade(&self, wish: Constraints) -> Result<Grant, ClaimError> {
        let mut inside = self.inside()?;
        let grant = inside.claim.invade(wish)?;
        inside.tell(grant.cpus.clone());
        Ok(grant)
    }

    /// As [`Claim::invade_within`]; the team is told. The steward answers others meanwhile.
    ///
    /// # Errors
    /// As there.
    pub fn invade_within(&self, wish: Constraints, time: Duration) -> Result<Grant, ClaimError> {
        let begin = Instant::now();
        loop {
            let grant = self.invade(wish.clone())?;
            if grant.is_enough() {
                return Ok(grant);
            }
            if begin.elapsed() >= time {
                self.inside()?.claim.wait_no_more()?;
                return Ok(grant);
            }
            thread::sleep(ASK_EVERY);
        }
    }

    /// As [`Claim::retreat`]; the team is told before. The claim does not grow by itself beyond
    /// what is left, until it asks for more.
    ///
    /// # Errors
    /// As there.
    pub fn retreat(&self, left: usize) -> Result<(), ClaimError> {
        let mut inside = self.inside()?;
        let given = inside.claim.to_give_back(left);
        inside.give_back(&given)?;
        inside.claim.wish_at_most(left)
    }

    /// The claim's CPUs now, ascending. None in the child of a fork.
    #[must_use]
    pub fn cpus(&self) -> Vec<usize> {
        self.inside()
            .map_or_else(|_| Vec::new(), |inside| inside.claim.cpus())
    }

    /// Does something with the claim; the steward waits meanwhile.
    ///
    /// # Errors
    /// This is the child of a fork.
    pub fn with<R>(&self, action: impl FnOnce(&mut Claim) -> R) -> Result<R, ClaimError> {
        let mut inside = self.inside()?;
        let result = action(&mut inside.claim);
        let cpus = inside.claim.cpus();
        inside.tell(cpus);
        Ok(result)
    }

    fn inside(&self) -> Result<MutexGuard<'_, Inside>, ClaimError> {
        match self.process == std::process::id() {
            true => Ok(self.shared.inside()),
            false => Err(ClaimError::Forked),
        }
    }

    /// Whether the steward has ended by itself: the process that it acts for has ended, or manages
    /// its claim itself.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.steward.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until the steward ends by itself, as in [`Tended::has_ended`].
    pub fn wait(mut self) {
        if let Some(steward) = self.steward.take() {
            let _ = steward.join();
        }
    }
}

impl Drop for Tended {
    fn drop(&mut self) {
        let Ok(mut inside) = self.inside() else {
            // The thread is not of this process, nor is what it may have locked.
            std::mem::forget(self.steward.take());
            std::mem::forget(Arc::clone(&self.shared));
            return;
        };
        inside.has_ended = true;
        drop(inside);
        self.shared.call.notify();
        if let Some(steward) = self.steward.take() {
            let _ = steward.join();
        }
    }
}

impl fmt::Debug for Tended {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inside = self.inside();
        let claim = inside.as_ref().map(|inside| &inside.claim);
        to.debug_struct("Tended").field("claim", &claim).finish()
    }
}

impl Shared {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        // A team that panicked has been told.
        self.tended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at each change of the registry, and at each end of a program in it.
    fn look_after(&self, changes: &OwnedFd) {
        loop {
            let mut inside = self.inside();
            if inside.has_ended {
                return;
            }
            match inside.look() {
                Ok(()) => {}
                Err(ClaimError::Ended(_) | ClaimError::TakenOver(_) | ClaimError::Forked) => return,
                // Its folder is full or gone, or others are in the way: that may pass.
                Err(_) => {
                    drop(inside);
                    thread::sleep(RETRY_AFTER);
                    continue;
                }
            }
            let ends = inside.claim.ends();
            drop(inside);
            let mut awaited = vec![
                PollFd::new(&self.call, PollFlags::IN),
                PollFd::new(changes, PollFlags::IN),
            ];
            awaited.extend(ends.iter().map(|end| PollFd::new(end, PollFlags::IN)));
            let longest = Timespec {
                tv_sec: LOOK_EVERY,
                tv_nsec: 0,
            };
            let _ = poll(&mut awaited, Some(&longest));
            self.call.take();
            let mut buffer = [0; 4096];
            while rustix::io::read(changes, &mut buffer).is_ok_and(|bytes| bytes > 0) {}
        }
    }
}

impl Inside {
    /// Does what the state of the registry asks for.
    fn look(&mut self) -> Result<(), ClaimError> {
        if !self.claim.is_alive() {
            return Err(ClaimError::Ended(self.claim.process()));
        }
        let outlook = self.claim.outlook()?;
        if outlook.asked_back > 0 {
            let given = self.team.asked_back(outlook.asked_back);
            let given = given.min(outlook.asked_back) as usize;
            let left = self.claim.cores().len().saturating_sub(given);
            let given = self.claim.to_give_back(left);
            self.give_back(&given)?;
        } else if outlook.can_grow > 0 {
            let taken = self.team.may_grow(outlook.can_grow);
            self.claim.grow(taken.min(outlook.can_grow))?;
        }
        self.tell(self.claim.cpus());
        Ok(())
    }

    /// Gives cores back, once the team has left them.
    fn give_back(&mut self, cores: &[crate::Core]) -> Result<(), ClaimError> {
        if cores.is_empty() {
            return Ok(());
        }
        self.tell(self.claim.cpus_without(cores));
        self.claim.retreat_from(cores)
    }

    fn tell(&mut self, cpus: Vec<usize>) {
        if cpus != self.told {
            self.team.resize(&cpus);
            self.told = cpus;
        }
    }
}

/// A descriptor that is readable when something in a folder changes.
fn watch(folder: &std::path::Path) -> io::Result<OwnedFd> {
    let changes = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
    // States are renamed into their places.
    let what = inotify::WatchFlags::MOVED_TO | inotify::WatchFlags::DELETE_SELF;
    inotify::add_watch(changes.as_fd(), folder, what)?;
    Ok(changes)
}
