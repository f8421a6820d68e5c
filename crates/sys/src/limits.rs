//! Limits of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::refused::Refused;

/// Limit of open descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// The limit in force.
    pub soft: u64,
    /// The value to which the process may raise it.
    pub hard: u64,
}

/// Reads the limit of open descriptors.
pub fn open_files() -> OpenFiles {
    let limit = getrlimit(Resource::Nofile);
    OpenFiles {
        soft: limit.current.unwrap_or(u64::MAX),
        hard: limit.maximum.unwrap_or(u64::MAX),
    }
}

/// Allows `wanted` open descriptors, by raising the soft limit if necessary.
///
/// # Errors
/// The hard limit does not allow it.
pub fn allow_open_files(wanted: u64) -> Result<(), Refused> {
    let OpenFiles { soft, hard } = open_files();
    if soft >= wanted {
        return Ok(());
    }
    let limit = Rlimit {
        current: Some(wanted),
        maximum: Some(hard.max(wanted)),
    };
    setrlimit(Resource::Nofile, limit).map_err(|error| {
        Refused::new(
            "have open",
            format!("{wanted} files, where {hard} are allowed"),
            &error.into(),
            "ask for fewer connections, or raise the limit (ulimit -n, or LimitNOFILE= in a unit)",
        )
    })
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
