//! Reading programs, with a clear line for everything that can be wrong with a file.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;

use hearth_terminal::Failure;
use hearth_text::{cause, near};

/// Offsets into a text are 32 bits wide, and no program comes near this.
const SIZE_MAX_BYTES: u64 = 256 * 1024 * 1024;

/// A program's text and how messages name it.
#[derive(Debug)]
pub struct Source {
    /// Its path, or `<stdin>`.
    pub name: String,
    pub text: String,
}

impl Source {
    /// True if there is nothing but blanks.
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }
}

/// Reads a program; `-` is standard input.
pub fn read(path: &Path) -> Result<Source, Failure> {
    let name = name_of(path);
    let read = if is_standard_input(path) {
        read_to_limit(std::io::stdin().lock())
    } else {
        read_to_limit(open(path, &name)?)
    };
    let bytes = read.map_err(|error| unreadable(&name, &error))?;
    if bytes.len() as u64 > SIZE_MAX_BYTES {
        return Err(Failure::input(format!(
            "{name} is larger than {} MiB, which no program is",
            SIZE_MAX_BYTES / (1024 * 1024)
        )));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source { name, text }),
        Err(error) => Err(not_text(&name, error.as_bytes(), error.utf8_error())),
    }
}

/// Reads a program like [`read`], and refuses an empty one.
pub fn read_program(path: &Path) -> Result<Source, Failure> {
    let source = read(path)?;
    if source.is_blank() {
        return Err(Failure::input(format!(
            "{} is empty; `hearth new DIR` makes a program to start from",
            source.name
        )));
    }
    Ok(source)
}

/// The name of a file in messages.
pub fn name_of(path: &Path) -> String {
    if is_standard_input(path) {
        return "<stdin>".into();
    }
    path.display().to_string()
}

/// True of `-`.
pub fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn read_to_limit(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(SIZE_MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn open(path: &Path, name: &str) -> Result<File, Failure> {
    match fs::metadata(path) {
        Ok(facts) if facts.is_dir() => return Err(directory(path, name)),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(missing(path, name)),
        Err(error) => return Err(unreadable(name, &error)),
    }
    File::open(path).map_err(|error| unreadable(name, &error))
}

fn unreadable(name: &str, error: &std::io::Error) -> Failure {
    Failure::input(format!("cannot read {name}: {}", cause(error)))
}

fn directory(path: &Path, name: &str) -> Failure {
    let mut programs = programs_in(path);
    programs.sort();
    let advice = match programs.as_slice() {
        [] => "a program is a file, named *.isf by custom".to_owned(),
        [only] => format!("did you mean {}?", path.join(only).display()),
        [first, ..] => format!(
            "it holds {} programs, {} among them",
            programs.len(),
            path.join(first).display()
        ),
    };
    Failure::input(format!("{name} is a directory; {advice}"))
}

fn missing(path: &Path, name: &str) -> Failure {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Failure::input(format!(
            "there is no {name}: there is no directory {}",
            folder.display()
        ));
    }
    let wanted = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let programs = programs_in(folder);
    let with_ending = format!("{wanted}.isf");
    let near = programs
        .iter()
        .find(|&program| *program == with_ending)
        .map(String::as_str)
        .or_else(|| near::nearest(&wanted, programs.iter().map(String::as_str)))
        .or_else(|| near::nearest(&with_ending, programs.iter().map(String::as_str)));
    let advice = match near {
        Some(near) => format!("; did you mean {}?", path.with_file_name(near).display()),
        None => String::new(),
    };
    Failure::input(format!("there is no {name}{advice}"))
}

/// The names of the programs in a folder, as far as it can be read.
fn programs_in(folder: &Path) -> Vec<String> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".isf"))
        .collect()
}

fn not_text(name: &str, bytes: &[u8], error: std::str::Utf8Error) -> Failure {
    let good = error.valid_up_to();
    let (line, column) = line_column(&bytes[..good]);
    let advice = if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        "this looks like UTF-16; `iconv -f utf-16 -t utf-8` converts it"
    } else if bytes[..bytes.len().min(4)] == *b"\x7fELF" {
        "this is an executable, not a program text"
    } else {
        "a program is UTF-8 text; `iconv -f latin1 -t utf-8` converts older files"
    };
    Failure::input(format!(
        "{name}:{line}:{column}: byte 0x{:02X} is not UTF-8; {advice}",
        bytes[good]
    ))
}

/// Line and column just behind a valid text, both from 1; columns count characters.
fn line_column(before: &[u8]) -> (usize, usize) {
    let text = String::from_utf8_lossy(before);
    let lines = hearth_lang::source::LineIndex::new(&text);
    let (line, column) = lines.line_column(text.len() as u32);
    let start = text.len() - (column as usize - 1);
    (line as usize, text[start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        assert_eq!(line_column(b""), (1, 1));
        assert_eq!(line_column("a\nbé".as_bytes()), (2, 3));
        assert_eq!(line_column(b"a\r\nb\rc"), (3, 2));
    }
}
