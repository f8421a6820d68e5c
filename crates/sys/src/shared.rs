//! Shared memory that outlives its process: a file's, mapped as atomic words.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicU64;

use rustix::fs::MemfdFlags;

use crate::refused::Refused;

/// Makes a file of `bytes` without a place in the file system, which programs started later
/// inherit. It uses memory as it is touched. Mappings of it are named `/memfd:NAME (deleted)`.
///
/// # Errors
/// The system has no such files, or too little address space.
pub fn memory_file(name: &str, bytes: u64) -> Result<File, Refused> {
    let refused = |error: std::io::Error| {
        let next = "look at the limits (ulimit -n, ulimit -f)";
        let object = format!("a file in memory of {bytes} bytes");
        Refused::new("make", object, &error, next)
    };
    let name = CString::new(name.replace('\0', "?")).unwrap_or_default();
    let descriptor = rustix::fs::memfd_create(name, MemfdFlags::empty());
    let file = File::from(descriptor.map_err(|error| refused(error.into()))?);
    file.set_len(bytes).map_err(refused)?;
    Ok(file)
}

/// Maps the first bytes of a file for as long as the process lives. Everybody who maps the file
/// sees the same words. Shortening the file takes them away; a later access ends the process.
///
/// # Errors
/// The file cannot be mapped, or is not open for both reading and writing.
pub fn map(file: &File, bytes: usize) -> Result<&'static [AtomicU64], Refused> {
    // SAFETY: a new mapping at an address of the system's choice disturbs nobody.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if start == libc::MAP_FAILED {
        let object = format!("{bytes} bytes of a file");
        let next = "name a file on a local disk or in memory";
        return Err(Refused::last("map", object, next));
    }
    // SAFETY: mapped for good, aligned to a page, and any bits are a word; no thread has these
    // addresses but by this slice, and other processes only change the words' values.
    Ok(unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>(), bytes / 8) })
}

/// Words of a file, mapped until this is dropped, for files of which a process sees many. As with
/// [`map`], shortening the file takes them away.
#[derive(Debug)]
pub struct Words {
    start: *const AtomicU64,
    count: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and its words are atomic.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    /// Maps the first words of a file.
    ///
    /// # Errors
    /// As for [`map`].
    pub fn of(file: &File, count: usize) -> Result<Words, Refused> {
        let words = map(file, count * 8)?;
        let start = words.as_ptr();
        Ok(Words { start, count })
    }
}

impl std::ops::Deref for Words {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: mapped until the value is dropped, which the borrow forbids; see `map`.
        unsafe { std::slice::from_raw_parts(self.start, self.count) }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `of`, which gave it to nobody else, and no borrow of it
        // outlives the value.
        unsafe { libc::munmap(self.start.cast_mut().cast(), self.count * 8) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::Ordering;

    #[test]
    fn what_is_written_is_in_the_file() {
        let file = memory_file("a test", 8192).expect("there is memory");
        let words = map(&file, 8192).expect("it can be mapped");
        assert_eq!(words.len(), 1024);
        words[7].store(77, Ordering::Relaxed);
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, 56).expect("it can be read");
        assert_eq!(u64::from_ne_bytes(bytes), 77);
    }
}
