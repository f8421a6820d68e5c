//! Environment variables, read before there is a heap: without the C library where possible, and
//! without allocating.

use crate::ground::os;

/// The value of a variable, given as its name with `=`, as much as fits. Reads the environment of
/// the process's start, as the C library may not have begun; without `/proc` it reads the C
/// library's.
pub(crate) fn value<'a>(name: &[u8], buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    if is_privileged() {
        return None;
    }
    let mut search = Search {
        name,
        matched: Some(0),
        is_found: false,
        length: 0,
    };
    if !os::each_piece(b"/proc/self/environ\0", |piece| search.go_on(piece, buffer)) && !cfg!(miri)
    {
        each_variable(|variable| search.go_on(variable, buffer));
    }
    search.is_found.then_some(&buffer[..search.length])
}

/// Whether the process has more rights than the user who started it. Its variables come from that
/// user and are ignored then: they would lock memory and choose checks on behalf of somebody else.
fn is_privileged() -> bool {
    // SAFETY: reads a value that the kernel passed at the start.
    !cfg!(miri) && os::quietly(|| unsafe { libc::getauxval(libc::AT_SECURE) }) != 0
}

/// Passes the C library's variables, each with its terminating zero, until `wants_more` returns
/// false. There are none before the C library has begun.
fn each_variable(mut wants_more: impl FnMut(&[u8]) -> bool) {
    unsafe extern "C" {
        static mut environ: *const *const libc::c_char;
    }
    // SAFETY: null, or pointers to text up to a null. As for `getenv`, nobody may change the
    // environment while others allocate.
    unsafe {
        let mut place = (&raw const environ).read();
        while !place.is_null() && !(*place).is_null() {
            if !wants_more(core::ffi::CStr::from_ptr(*place).to_bytes_with_nul()) {
                return;
            }
            place = place.add(1);
        }
    }
}

/// A search for one variable through pieces of the environment.
struct Search<'a> {
    name: &'a [u8],
    /// Length of the name matched in this entry so far; None if the entry is another variable.
    matched: Option<usize>,
    is_found: bool,
    /// Length of the value found so far.
    length: usize,
}

impl Search<'_> {
    /// Reads the next piece. False once the value is complete.
    fn go_on(&mut self, piece: &[u8], value: &mut [u8]) -> bool {
        for &byte in piece {
            if self.is_found {
                if byte == 0 || self.length == value.len() {
                    return false;
                }
                value[self.length] = byte;
                self.length += 1;
                continue;
            }
            self.matched = match self.matched {
                _ if byte == 0 => Some(0),
                Some(matched) if self.name[matched] == byte => Some(matched + 1),
                _ => None,
            };
            self.is_found = self.matched == Some(self.name.len());
        }
        true
    }
}

/// Parses a decimal number that takes up the whole text.
pub(crate) fn decimal(text: &[u8]) -> Option<usize> {
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    text.iter().try_fold(0, |number: usize, byte| {
        byte.is_ascii_digit()
            .then(|| number * 10 + usize::from(byte - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::Search;

    /// The value found when the text comes in pieces of this size.
    fn found<'a>(text: &[u8], bytes: usize, value: &'a mut [u8]) -> Option<&'a [u8]> {
        let mut search = Search {
            name: b"HEARTH_A=",
            matched: Some(0),
            is_found: false,
            length: 0,
        };
        for piece in text.chunks(bytes) {
            if !search.go_on(piece, value) {
                break;
            }
        }
        search.is_found.then_some(&value[..search.length])
    }

    #[test]
    fn variables_are_found_across_pieces() {
        let text = b"A=1\0HEARTH_=2\0NOT_HEARTH_A=3\0HEARTH_AB=4\0HEARTH_A=5 =6\0HEARTH_A=7\0";
        for bytes in 1..=text.len() {
            let mut value = vec![0; 100];
            assert_eq!(found(text, bytes, &mut value), Some(&b"5 =6"[..]));
            assert_eq!(found(text, bytes, &mut value[..2]), Some(&b"5 "[..]));
            assert_eq!(found(&text[..43], bytes, &mut value), None);
            assert_eq!(found(&text[text.len() - 3..], bytes, &mut value), None);
            let empty = b"HEARTH_A=\0B=2\0";
            assert_eq!(found(empty, bytes, &mut value), Some(&b""[..]));
        }
    }
}
