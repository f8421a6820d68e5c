//! Storage: a log of integers that grows at its end and is read from any place.
//!
//! Each integer takes four bytes, low byte first. Offsets count integers. Reading advances the
//! offset; writing goes to the end and leaves the offset alone; erasing takes everything.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Mutex;

use crate::ground::exits;
use crate::ground::settings::{self, after};
use crate::ground::sync::lock_std as lock;

const VARIABLE: &str = "HEARTH_DEVICE_STORAGE";
/// Bytes of an integer.
const WIDTH: u64 = 4;

enum Medium {
    /// Lost when the program ends.
    Memory(Vec<i32>),
    File(File),
}

struct Log {
    medium: Medium,
    /// Start of the next read.
    offset: u64,
}

static LOG: Mutex<Option<Log>> = Mutex::new(None);

/// Reads the log from the offset on: `count` integers, zeros where the log ends before that. Past
/// the end: a single zero.
pub(crate) fn read(count: usize) -> Vec<i32> {
    with(|log| log.read(count))
}

/// Reads from an offset of the caller's choice.
pub(crate) fn read_at(offset: u32, count: usize) -> Vec<i32> {
    with(|log| {
        log.offset = u64::from(offset);
        log.read(count)
    })
}

/// Appends to the end.
pub(crate) fn write(values: &[i32]) {
    with(|log| {
        let end = log.length()?;
        log.write_at(end, values)
    });
}

/// Overwrites at an offset, or leaves a gap of zeros.
pub(crate) fn write_at(offset: u32, values: &[i32]) {
    with(|log| log.write_at(u64::from(offset), values));
}

/// Erases everything.
pub(crate) fn erase() {
    with(Log::erase);
}

/// Zeros a part, as far as the log goes.
pub(crate) fn erase_part(offset: u32, count: u32) {
    with(|log| {
        let end = log.length()?.min(u64::from(offset) + u64::from(count));
        let zeros = vec![0; end.saturating_sub(u64::from(offset)) as usize];
        log.write_at(u64::from(offset), &zeros)
    });
}

/// Returns the start of the next read.
pub(crate) fn offset() -> u32 {
    with(|log| Ok(u32::try_from(log.offset).unwrap_or(u32::MAX)))
}

/// Sets the start of the next read.
pub(crate) fn set_offset(offset: u32) {
    with(|log| {
        log.offset = u64::from(offset);
        Ok(())
    });
}

fn with<R>(action: impl FnOnce(&mut Log) -> io::Result<R>) -> R {
    let mut log = lock(&LOG);
    action(log.get_or_insert_with(open)).unwrap_or_else(|error| {
        exits::unfit(&format!(
            "storage: could not use the file of {VARIABLE} ({error})"
        ))
    })
}

fn open() -> Log {
    let medium = match settings::read(VARIABLE, || None, parse) {
        None => Medium::Memory(Vec::new()),
        Some(path) => {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path);
            match file {
                Ok(file) => Medium::File(file),
                Err(error) => settings::refuse(
                    VARIABLE,
                    &path.display().to_string(),
                    &format!(
                        "could not open the file ({error}); give a file that can be written, or `memory`"
                    ),
                ),
            }
        }
    };
    Log { medium, offset: 0 }
}

/// Parses `memory`, or a file.
fn parse(text: &str) -> Result<Option<PathBuf>, String> {
    if text == "memory" {
        return Ok(None);
    }
    Ok(Some(PathBuf::from(after(text, "file").unwrap_or(text))))
}

impl Log {
    /// Returns its length in integers.
    fn length(&self) -> io::Result<u64> {
        match &self.medium {
            Medium::Memory(values) => Ok(values.len() as u64),
            Medium::File(file) => Ok(file.metadata()?.len() / WIDTH),
        }
    }

    fn read(&mut self, count: usize) -> io::Result<Vec<i32>> {
        let length = self.length()?;
        if self.offset >= length || count == 0 {
            return Ok(vec![0]);
        }
        let there = count.min((length - self.offset) as usize);
        let mut values = match &self.medium {
            Medium::Memory(values) => {
                let start = self.offset as usize;
                values[start..start + there].to_vec()
            }
            Medium::File(file) => {
                let mut bytes = vec![0; there * WIDTH as usize];
                file.read_exact_at(&mut bytes, self.offset * WIDTH)?;
                let words = bytes.chunks_exact(WIDTH as usize);
                words
                    .map(|word| i32::from_le_bytes([word[0], word[1], word[2], word[3]]))
                    .collect()
            }
        };
        self.offset += there as u64;
        values.resize(count, 0);
        Ok(values)
    }

    fn write_at(&mut self, offset: u64, new: &[i32]) -> io::Result<()> {
        match &mut self.medium {
            Medium::Memory(values) => {
                let start = offset as usize;
                if values.len() < start + new.len() {
                    values.resize(start + new.len(), 0);
                }
                values[start..start + new.len()].copy_from_slice(new);
                Ok(())
            }
            Medium::File(file) => {
                let bytes: Vec<u8> = new.iter().flat_map(|value| value.to_le_bytes()).collect();
                file.write_all_at(&bytes, offset * WIDTH)
            }
        }
    }

    fn erase(&mut self) -> io::Result<()> {
        self.offset = 0;
        match &mut self.medium {
            Medium::Memory(values) => {
                values.clear();
                Ok(())
            }
            Medium::File(file) => file.set_len(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(name: &str) -> [Log; 2] {
        let path =
            std::env::temp_dir().join(format!("hearth-storage-{name}-{}", std::process::id()));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .unwrap();
        // The open file is all we need.
        std::fs::remove_file(path).unwrap();
        [Medium::Memory(Vec::new()), Medium::File(file)].map(|medium| Log { medium, offset: 0 })
    }

    #[test]
    fn what_is_written_is_read_in_order() {
        for mut log in logs("order") {
            assert_eq!(log.read(3).unwrap(), [0]);
            log.write_at(0, &[1, -2, i32::MIN]).unwrap();
            let end = log.length().unwrap();
            log.write_at(end, &[4]).unwrap();
            assert_eq!(log.read(2).unwrap(), [1, -2]);
            assert_eq!(log.read(5).unwrap(), [i32::MIN, 4, 0, 0, 0]);
            assert_eq!(log.read(5).unwrap(), [0]);
            log.offset = 3;
            assert_eq!(log.read(1).unwrap(), [4]);
        }
    }

    #[test]
    fn a_gap_reads_as_zeros_and_erasing_takes_all() {
        for mut log in logs("gap") {
            log.write_at(2, &[7]).unwrap();
            assert_eq!(log.read(3).unwrap(), [0, 0, 7]);
            log.erase().unwrap();
            assert_eq!((log.length().unwrap(), log.offset), (0, 0));
        }
    }

    #[test]
    fn settings() {
        assert_eq!(parse("memory"), Ok(None));
        assert_eq!(parse("file:a"), Ok(Some(PathBuf::from("a"))));
        assert_eq!(parse("/x/y"), Ok(Some(PathBuf::from("/x/y"))));
    }
}
