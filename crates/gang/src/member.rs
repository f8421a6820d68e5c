//! Members that know that they are in a set: they pass its gate.

use std::env;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::plan::SetId;
use crate::registry::{Entry, Registry};

/// Variable that names the set to the commands in it: the folder and the set's number.
pub const VARIABLE: &str = "HEARTH_GANG";

/// Time after which a member that waits looks whether anybody is left to open the gate.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A thread's way to its set's gate. Clones are for other threads.
///
/// ```no_run
/// let member = hearth_gang::Member::from_environment();
/// loop {
///     if let Some(member) = &member {
///         member.pass();
///     }
///     // … a piece of work of some microseconds …
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Member {
    set: Arc<Entry>,
    registry: Registry,
}

impl Member {
    pub(crate) fn of(registry: &Registry, id: SetId) -> Option<Member> {
        Some(Member {
            set: Arc::new(registry.entry(id)?),
            registry: registry.clone(),
        })
    }

    /// The set that the process was started in by `hearth gang`. None outside of any.
    #[must_use]
    pub fn from_environment() -> Option<Member> {
        let place = PathBuf::from(env::var_os(VARIABLE).filter(|place| !place.is_empty())?);
        let (process, nth) = place.file_name()?.to_str()?.split_once('-')?;
        let id = SetId {
            process: process.parse().ok()?,
            nth: nth.parse().ok()?,
        };
        let folder = place.parent()?;
        // Only what the user may write to is a set of the user's.
        OpenOptions::new()
            .write(true)
            .open(place.with_extension("words"))
            .ok()?;
        Member::of(&Registry::in_folder(folder), id)
    }

    /// Waits while it is not the set's turn. One relaxed load and a branch if it is.
    ///
    /// Call it at points where a wait harms nobody, outside of critical sections, every hundred
    /// microseconds or more often: the set's skew is the longest time between two calls. Threads
    /// that spin for others of their set call it while they spin.
    #[inline]
    pub fn pass(&self) {
        if !self.set.table.is_open() {
            self.wait_slow();
        }
    }

    /// Whether it is the set's turn.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.set.table.is_open()
    }

    #[cold]
    fn wait_slow(&self) {
        while !self.set.table.is_open() {
            self.set.table.wait(LOOK_EVERY);
            // A gate that nobody will open is none.
            if !self.set.table.is_open() && !self.registry.is_conducted() {
                return;
            }
        }
    }
}

/// The value of [`VARIABLE`] for a set.
pub(crate) fn variable(folder: &Path, id: SetId) -> OsString {
    folder
        .join(format!("{}-{}", id.process, id.nth))
        .into_os_string()
}
