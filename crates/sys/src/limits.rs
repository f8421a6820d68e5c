//! Limits the system sets this process.

use crate::refused::Refused;

/// How many descriptors the process may have open, and how many it may allow itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// The limit in force.
    pub soft: u64,
    /// What the process may raise it to.
    pub hard: u64,
}

/// The limit of open descriptors.
pub fn open_files() -> OpenFiles {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the call writes the structure given.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    OpenFiles {
        soft: limit.rlim_cur,
        hard: limit.rlim_max,
    }
}

/// Sees to it that `wanted` descriptors may be open, which raises the limit in force if it must.
///
/// # Errors
/// That is more than this process may allow itself.
pub fn allow_open_files(wanted: u64) -> Result<(), Refused> {
    let OpenFiles { soft, hard } = open_files();
    if soft >= wanted {
        return Ok(());
    }
    let limit = libc::rlimit {
        rlim_cur: wanted,
        rlim_max: hard.max(wanted),
    };
    // SAFETY: the call reads the structure given.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } == 0 {
        return Ok(());
    }
    Err(Refused::last(
        "have open",
        format!("{wanted} files, where {hard} are allowed"),
        "ask for fewer connections, or raise the limit (ulimit -n, or LimitNOFILE= in a unit)",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allowed_is_granted_and_the_impossible_told() {
        let before = open_files();
        assert!(before.soft <= before.hard);
        allow_open_files(before.soft).unwrap();
        assert_eq!(open_files(), before);
        let refused = allow_open_files(u64::MAX - 1).unwrap_err().to_string();
        assert!(refused.contains("ulimit -n"), "{refused}");
    }
}
