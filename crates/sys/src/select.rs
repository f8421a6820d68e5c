//! `select`: sets of bits, copied into the kernel and back.
//!
//! The sets are as long as necessary, whatever the C library's `FD_SETSIZE`; the kernel takes any
//! length up to the table of descriptors.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// Descriptors in a word.
pub const WORD_BITS: usize = 64;

/// Waits until a descriptor of `readable` can be read, one of `writable` can be written, or the
/// time has passed; forever without a time. Leaves in the sets those that can. A descriptor is a
/// bit; the lowest bit of the first word is 0. Returns how many bits are left in both: 0, and empty
/// sets, after the time or a signal.
///
/// # Errors
/// A descriptor of the sets is not open.
///
/// # Panics
/// If the sets differ in length.
pub fn select(
    readable: &mut [u64],
    writable: &mut [u64],
    time: Option<Duration>,
) -> io::Result<usize> {
    assert_eq!(readable.len(), writable.len(), "two sets of one length");
    let mut time = time.map(|time| libc::timespec {
        tv_sec: time.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: time.subsec_nanos().into(),
    });
    let time = time
        .as_mut()
        .map_or(std::ptr::null_mut(), std::ptr::from_mut);
    // SAFETY: both sets have as many bits as is said; the kernel writes into them and the time,
    // which live until the call returns; no set of exceptions and no mask of signals is given.
    let count = unsafe {
        libc::syscall(
            libc::SYS_pselect6,
            readable.len() * WORD_BITS,
            readable.as_mut_ptr(),
            writable.as_mut_ptr(),
            std::ptr::null_mut::<u64>(),
            time,
            std::ptr::null::<libc::c_void>(),
        )
    };
    if let Ok(count) = usize::try_from(count) {
        return Ok(count);
    }
    let error = io::Error::last_os_error();
    if error.kind() != io::ErrorKind::Interrupted {
        return Err(error);
    }
    readable.fill(0);
    writable.fill(0);
    Ok(0)
}

/// The word and the bit of a descriptor.
pub fn place(descriptor: RawFd) -> (usize, u64) {
    let number = descriptor as usize;
    (number / WORD_BITS, 1 << (number % WORD_BITS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn those_that_are_ready_are_left() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let (word, bit) = place(near.as_raw_fd());
        let mut readable = vec![0; word + 1];
        let mut writable = vec![0; word + 1];
        readable[word] = bit;
        assert_eq!(
            select(&mut readable, &mut writable, Some(Duration::ZERO)).unwrap(),
            0
        );
        assert_eq!(readable[word], 0);
        far.write_all(b"a").unwrap();
        (readable[word], writable[word]) = (bit, bit);
        assert_eq!(select(&mut readable, &mut writable, None).unwrap(), 2);
        assert_eq!((readable[word], writable[word]), (bit, bit));
    }
}
