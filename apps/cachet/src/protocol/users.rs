//! Users that may connect, and their passwords.

use std::fmt;

/// Most users, as in memcached.
const USERS_MAX: usize = 8;
/// Longest line of the file that names them.
const LINE_MAX: usize = 255;

/// Users and their passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct Users(Vec<(Vec<u8>, Vec<u8>)>);

impl fmt::Debug for Users {
    /// Shows how many, and no passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} users", self.0.len())
    }
}

/// Reason why a text names no users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoUsers {
    /// It has no lines.
    #[error("it names no user: write a line user:password for each, at most {USERS_MAX}")]
    Empty,
    /// A line has no colon.
    #[error("line {0} has no colon: write user:password")]
    NoColon(usize),
    /// A line is too long.
    #[error("line {0} has more than {LINE_MAX} bytes: shorten it")]
    Long(usize),
    /// There are too many lines.
    #[error("it names more than {USERS_MAX} users: leave at most so many")]
    Many,
}

impl Users {
    /// Parses lines `user:password`. A password may have colons.
    ///
    /// # Errors
    /// A line is wrong, or there are too many.
    pub fn of(text: &[u8]) -> Result<Users, NoUsers> {
        let mut users = Vec::new();
        for (i, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            if line.len() > LINE_MAX {
                return Err(NoUsers::Long(i + 1));
            }
            let Some(colon) = memchr::memchr(b':', line) else {
                return Err(NoUsers::NoColon(i + 1));
            };
            users.push((line[..colon].to_vec(), line[colon + 1..].to_vec()));
        }
        match users.len() {
            0 => Err(NoUsers::Empty),
            1..=USERS_MAX => Ok(Users(users)),
            _ => Err(NoUsers::Many),
        }
    }

    /// True if a text, `user password`, names one of them. The time does not tell how much of a
    /// password is right.
    #[must_use]
    pub fn know(&self, said: &[u8]) -> bool {
        let mut words = said
            .split(|&byte| byte == b' ')
            .filter(|word| !word.is_empty());
        let (Some(user), Some(password)) = (words.next(), words.next()) else {
            return false;
        };
        self.0.iter().fold(false, |is_known, known| {
            is_known | (is_same(&known.0, user) & is_same(&known.1, password))
        })
    }
}

/// Compares all bytes, wherever the first difference is.
fn is_same(known: &[u8], said: &[u8]) -> bool {
    let differs = known
        .iter()
        .zip(said)
        .fold(0, |differs, (one, other)| differs | (one ^ other));
    known.len() == said.len() && std::hint::black_box(differs) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_read_from_lines() {
        let users = Users::of(b"bob:secret\n\nann:pw:x\r\n").expect("two users");
        for (said, is_known) in [
            (&b"bob secret"[..], true),
            (b"  bob   secret ", true),
            (b"ann pw:x", true),
            (b"ann pw", false),
            (b"bob pw:x", false),
            (b"bob", false),
            (b"", false),
            (b"bob secretx", false),
        ] {
            assert_eq!(users.know(said), is_known, "{}", said.escape_ascii());
        }
        assert_eq!(format!("{users:?}"), "2 users");
        assert_eq!(Users::of(b"\n"), Err(NoUsers::Empty));
        assert_eq!(Users::of(b"a:b\nbob\n"), Err(NoUsers::NoColon(2)));
        assert_eq!(Users::of(&b"a:b\n".repeat(9)), Err(NoUsers::Many));
        assert_eq!(Users::of(&b":".repeat(256)), Err(NoUsers::Long(1)));
    }
}
