//! Names of functions: from the symbols of the executable and of shared objects.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use cpp_demangle::{DemangleOptions, Symbol};
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

/// Objects that the process has mapped, and their functions.
#[derive(Default)]
pub(crate) struct Symbols {
    mappings: Vec<Mapping>,
    objects: Option<HashMap<String, Functions>>,
}

/// A part of a file in memory.
struct Mapping {
    begin: u64,
    end: u64,
    /// Place of the beginning in the file.
    offset: u64,
    path: String,
}

/// Functions of an object.
#[derive(Default)]
struct Functions {
    /// Parts of the file: place, length, address in the object.
    segments: Vec<(u64, u64, u64)>,
    /// Address in the object, length and name, by address.
    functions: Vec<(u64, u64, Box<str>)>,
}

impl Symbols {
    pub(crate) const fn new() -> Symbols {
        Symbols {
            mappings: Vec::new(),
            objects: None,
        }
    }

    /// The name of the function at an address: without parameters if it is C++, and the object with
    /// the place there if it has no symbol.
    pub(crate) fn name(&mut self, address: u64) -> String {
        let at = self.mapping(address).or_else(|| {
            // A library was loaded since.
            self.mappings = mappings();
            self.mapping(address)
        });
        let Some(mapping) = at.map(|at| &self.mappings[at]) else {
            return format!("{address:#x}");
        };
        let objects = self.objects.get_or_insert_default();
        let object = objects
            .entry(mapping.path.clone())
            .or_insert_with(|| Functions::of(Path::new(&mapping.path)).unwrap_or_default());
        let place = address - mapping.begin + mapping.offset;
        match object.name(place) {
            Some(symbol) => readable(symbol),
            None => {
                let file = mapping.path.rsplit('/').next().unwrap_or_default();
                format!("{file}+{place:#x}")
            }
        }
    }

    fn mapping(&self, address: u64) -> Option<usize> {
        let holds = |mapping: &Mapping| (mapping.begin..mapping.end).contains(&address);
        self.mappings.iter().position(holds)
    }
}

/// The parts of files that can be executed.
fn mappings() -> Vec<Mapping> {
    let text = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    text.lines().filter_map(mapping).collect()
}

/// Reads a line such as `55d0-55d8 r-xp 00001000 fe:00 1234   /usr/bin/program`.
fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (begin, end) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let offset = words.next()?;
    let path = words.nth(2)?.trim_start();
    let number = |text| u64::from_str_radix(text, 16).ok();
    (rights.contains('x') && path.starts_with('/')).then_some(Mapping {
        begin: number(begin)?,
        end: number(end)?,
        offset: number(offset)?,
        path: path.to_owned(),
    })
}

impl Functions {
    fn of(path: &Path) -> Option<Functions> {
        let bytes = fs::read(path).ok()?;
        let file = object::File::parse(&*bytes).ok()?;
        let segments = file.segments().map(|segment| {
            let (place, length) = segment.file_range();
            (place, length, segment.address())
        });
        // The table for the loader names what others may call, and stays in a stripped file.
        let mut found: Vec<_> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
            .filter_map(|symbol| {
                let name = symbol.name().ok().filter(|name| !name.is_empty())?;
                let rank = (symbol.is_local(), symbol.is_weak(), name.len(), name);
                Some((symbol.address(), rank, symbol.size()))
            })
            .collect();
        // Of several names the one that is global, strong and short.
        found.sort_unstable();
        found.dedup_by_key(|(address, ..)| *address);
        let functions = found
            .into_iter()
            .map(|(address, (.., name), size)| (address, size, name.into()));
        Some(Functions {
            segments: segments.collect(),
            functions: functions.collect(),
        })
    }

    /// The symbol of the function that covers a place of the file.
    fn name(&self, place: u64) -> Option<&str> {
        let address = self.segments.iter().find_map(|&(begin, length, address)| {
            let inside = place.checked_sub(begin)?;
            (inside < length).then_some(address + inside)
        })?;
        let behind = self
            .functions
            .partition_point(|&(begin, ..)| begin <= address);
        let (begin, length, name) = self.functions.get(behind.checked_sub(1)?)?;
        (address == *begin || address - begin < *length).then_some(name)
    }
}

/// A symbol as people write it: demangled, without parameters, and without the suffixes of copies
/// that a compiler makes (`.isra.0`).
fn readable(symbol: &str) -> String {
    let plain = symbol.split('.').next().filter(|plain| !plain.is_empty());
    let plain = plain.unwrap_or(symbol);
    let options = DemangleOptions::new().no_params().no_return_type();
    let name = Symbol::new(plain)
        .ok()
        .and_then(|symbol| symbol.demangle_with_options(&options).ok());
    name.unwrap_or_else(|| plain.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_become_readable() {
        for (symbol, expected) in [
            ("main", "main"),
            ("luaV_execute", "luaV_execute"),
            ("copy.isra.0", "copy"),
            ("_ZN6Server6handleEi", "Server::handle"),
            ("_ZNK5Queue4sizeEv.part.0", "Queue::size"),
            ("_ZN5QueueIiE4pushERKi", "Queue<int>::push"),
            ("_ZN12_GLOBAL__N_15helloEv", "(anonymous namespace)::hello"),
            ("_Z?", "_Z?"),
        ] {
            assert_eq!(readable(symbol), expected);
        }
    }

    #[test]
    fn a_function_of_this_program_has_its_name() {
        let mut symbols = Symbols::default();
        let address = mappings as *const () as u64;
        assert!(symbols.name(address).contains("mappings"));
        assert_eq!(symbols.name(16), "0x10");
    }

    #[test]
    fn lines_of_maps_are_read() {
        let line = "7f00-7f80 r-xp 00001000 fe:00 1234                       /a b/program";
        let mapping = mapping(line).expect("a file's part");
        assert_eq!(
            (mapping.begin, mapping.end, mapping.offset),
            (0x7f00, 0x7f80, 0x1000)
        );
        assert_eq!(mapping.path, "/a b/program");
        assert!(super::mapping("7f00-7f80 rw-p 00000000 00:00 0 ").is_none());
    }
}
