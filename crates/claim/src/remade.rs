//! Things whose size is settled when they are made, such as pools of threads, made anew when a
//! claim changes.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::steward::Team;
use crate::threads::move_own_threads;

/// Maker of a thing of a size: it gets the claim's CPUs.
type Make<T> = dyn FnMut(&[usize]) -> Option<T> + Send;

/// A thing that is made anew for each number of CPUs, for pools that cannot grow and shrink.
///
/// Who uses the present one goes on with it; who asks afterwards gets the new one, and the old one
/// is dropped when its last user is done. So a parallel section keeps the number of threads that it
/// began with, which meanwhile share the CPUs that are left, and the next one has the right number.
/// Cut long work into sections, as short as what others may wait for.
///
/// ```no_run
/// use hearth_claim::{Claim, Constraints, Remade};
/// # struct Pool;
/// # fn pool_of(threads: usize) -> Option<Pool> { Some(Pool) }
///
/// let pool = Remade::new(|cpus: &[usize]| pool_of(cpus.len()));
/// let tended = Claim::begin("render")?.tend(pool.team())?;
/// tended.invade(Constraints::cores(1..=8))?;
/// if let Some(pool) = pool.now() {
///     // … a section in this pool …
/// }
/// # Ok::<(), hearth_claim::ClaimError>(())
/// ```
pub struct Remade<T> {
    inside: Arc<Inside<T>>,
}

struct Inside<T> {
    now: RwLock<Option<Arc<T>>>,
    make: Mutex<Box<Make<T>>>,
}

impl<T: Send + Sync + 'static> Remade<T> {
    /// Begins without one: the claim's first CPUs make it. `make` may fail by None; then the former
    /// one stays.
    #[must_use]
    pub fn new(make: impl FnMut(&[usize]) -> Option<T> + Send + 'static) -> Remade<T> {
        Remade {
            inside: Arc::new(Inside {
                now: RwLock::new(None),
                make: Mutex::new(Box::new(make)),
            }),
        }
    }

    /// The present one. None while the claim has no CPUs.
    #[must_use]
    pub fn now(&self) -> Option<Arc<T>> {
        let now = self.inside.now.read();
        now.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The part that a claim tells of its CPUs, for [`crate::Claim::tend`]. It moves all threads of
    /// the process onto these, those of former pools too; new ones begin there.
    #[must_use]
    pub fn team(&self) -> impl Team + 'static {
        let inside = Arc::clone(&self.inside);
        let mut before: Vec<usize> = Vec::new();
        move |cpus: &[usize]| {
            move_own_threads(&before, cpus);
            before = cpus.to_vec();
            inside.resize(cpus);
        }
    }
}

impl<T> Inside<T> {
    fn resize(&self, cpus: &[usize]) {
        let made = match cpus.is_empty() {
            true => None,
            false => {
                let make = self.make.lock();
                let made = make.unwrap_or_else(PoisonError::into_inner)(cpus);
                let Some(made) = made else { return };
                Some(Arc::new(made))
            }
        };
        let now = self.now.write();
        let before = std::mem::replace(&mut *now.unwrap_or_else(PoisonError::into_inner), made);
        // Its threads may take a while to end: not while others wait for the lock.
        drop(before);
    }
}

impl<T> fmt::Debug for Remade<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Remade").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_keep_theirs_and_others_get_the_new_one() {
        let numbers = Remade::new(|cpus: &[usize]| (cpus.len() < 4).then_some(cpus.len()));
        let team = &numbers.inside;
        assert_eq!(numbers.now(), None);
        team.resize(&[0, 1]);
        let used = numbers.now().expect("it has CPUs");
        team.resize(&[1]);
        assert_eq!((*used, numbers.now().as_deref()), (2, Some(&1)));
        let dropped = Arc::downgrade(&used);
        drop(used);
        assert!(dropped.upgrade().is_none());
        team.resize(&[0, 1, 2, 3]);
        assert_eq!(numbers.now().as_deref(), Some(&1), "the maker failed");
        team.resize(&[]);
        assert_eq!(numbers.now(), None);
    }
}
