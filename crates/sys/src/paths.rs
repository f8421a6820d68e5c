//! Paths of files that belong to a machine rather than to a program.

use std::ffi::OsString;
use std::path::PathBuf;

/// The machine's profile: `$HEARTH_PROFILE`, else `hearth/profile.json` in `$XDG_CONFIG_HOME`, else
/// in `~/.config`. `hearth probe` writes it there, and everything else reads it there. None if the
/// environment names neither these nor a home directory.
pub fn profile_path() -> Option<PathBuf> {
    profile_path_in(|name| std::env::var_os(name))
}

/// The same path for a given environment. Empty variables count as absent, and so does an
/// `XDG_CONFIG_HOME` that is not an absolute path, as its specification demands.
pub fn profile_path_in(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name| {
        let value = variable(name).filter(|value| !value.is_empty())?;
        Some(PathBuf::from(value))
    };
    if let Some(named) = path("HEARTH_PROFILE") {
        return Some(named);
    }
    let configuration = path("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let configuration = configuration.or_else(|| Some(path("HOME")?.join(".config")))?;
    Some(configuration.join("hearth/profile.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Option<PathBuf> {
        profile_path_in(|name| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.into())
        })
    }

    #[test]
    fn the_nearest_say_wins() {
        let home = ("HOME", "/home/a");
        assert_eq!(with(&[]), None);
        assert_eq!(
            with(&[home]),
            Some("/home/a/.config/hearth/profile.json".into())
        );
        assert_eq!(
            with(&[home, ("XDG_CONFIG_HOME", "/c")]),
            Some("/c/hearth/profile.json".into())
        );
        assert_eq!(
            with(&[home, ("XDG_CONFIG_HOME", "c")]),
            Some("/home/a/.config/hearth/profile.json".into())
        );
        assert_eq!(
            with(&[home, ("HEARTH_PROFILE", "p.json")]),
            Some("p.json".into())
        );
        assert_eq!(
            with(&[home, ("HEARTH_PROFILE", "")]),
            Some("/home/a/.config/hearth/profile.json".into())
        );
    }
}
