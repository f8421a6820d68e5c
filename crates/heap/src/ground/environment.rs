//! What the process's environment says: read before there is a heap, so without the C library, and without
//! allocating.

use crate::ground::os;

/// What the environment has for a name, given with its `=`, as much as fits. The environment of the process's
/// start, as the C library's may not be there yet; or else that one, where there is no `/proc`.
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

/// Does the process have rights that who started it has not? Its environment is that one's, and says nothing then:
/// it would lock memory and choose what is looked at for somebody else.
fn is_privileged() -> bool {
    // SAFETY: reads what the kernel told when the process began.
    !cfg!(miri) && os::quietly(|| unsafe { libc::getauxval(libc::AT_SECURE) }) != 0
}

/// Does something with the C library's environment, variable by variable with their ends, as long as that wants
/// more. There is none before the C library has begun.
fn each_variable(mut wants_more: impl FnMut(&[u8]) -> bool) {
    unsafe extern "C" {
        static mut environ: *const *const libc::c_char;
    }
    // SAFETY: null, or pointers to text up to a null. Who changes it meanwhile may not do so while others allocate,
    // as `getenv` has it.
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

/// A search for a variable, piece by piece.
struct Search<'a> {
    name: &'a [u8],
    /// So much of the name was found of this entry; None if it is another's.
    matched: Option<usize>,
    is_found: bool,
    /// So much of its value.
    length: usize,
}

impl Search<'_> {
    /// Looks at the next piece. False if no more are needed.
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

/// A decimal number, all of the text.
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

    /// What is found if the text comes in pieces of so many bytes.
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
