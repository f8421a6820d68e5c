//! Back ends that work here.

use rustix::process::{PidfdFlags, getpid, pidfd_open};

use crate::description::BackEnd;
use crate::error::GangError;
use crate::{group, tree};

/// A back end, tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The back end.
    pub back_end: BackEnd,
    /// Reason for which it does not work, as a clause. None if it does.
    pub obstacle: Option<String>,
}

/// Tries all back ends, without stopping anybody. Those first that are chosen first.
#[must_use]
pub fn probe() -> Vec<Tried> {
    let tried = BackEnd::ALL.map(|back_end| Tried {
        back_end,
        obstacle: obstacle(back_end),
    });
    tried.to_vec()
}

fn obstacle(back_end: BackEnd) -> Option<String> {
    match back_end {
        BackEnd::Gate => None,
        BackEnd::Stop if !tree::tells_of_children() => {
            Some("the kernel does not list the children of processes".into())
        }
        BackEnd::Stop => {
            let descriptor = pidfd_open(getpid(), PidfdFlags::empty());
            descriptor
                .is_err()
                .then(|| "the kernel has no descriptors of processes".into())
        }
        BackEnd::Freezer => freezer_obstacle(),
    }
}

fn freezer_obstacle() -> Option<String> {
    let Some(home) = group::home() else {
        return Some("control groups of the second version are not mounted".into());
    };
    // A number that no set has: they count from 0.
    match group::make(&home, std::process::id(), u32::MAX) {
        Ok(made) => {
            group::remove(&made);
            None
        }
        Err(error) => Some(format!(
            "no group can be made in {}: {}",
            home.display(),
            hearth_text::cause(&error)
        )),
    }
}

/// The back end to use: the one asked for, or the first that works for any program.
pub(crate) fn choose(asked: Option<BackEnd>) -> Result<BackEnd, GangError> {
    if let Some(asked) = asked {
        return match obstacle(asked) {
            None => Ok(asked),
            Some(why) => Err(GangError::BackEnd(asked.name(), why)),
        };
    }
    let mut for_any = [BackEnd::Stop, BackEnd::Freezer].into_iter();
    let found = for_any.find(|one| obstacle(*one).is_none());
    found.ok_or(GangError::NoBackEnd)
}
