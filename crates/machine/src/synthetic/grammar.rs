//! Parser of descriptions. The grammar is in the parent's text.

use std::str::FromStr;

use super::{CacheItem, Description, DescriptionError, Numbering, Per, THREADS_MAX};
use crate::topology::{Bytes, CacheKind, OsThread, parse_list};

/// The items as found.
#[derive(Default)]
struct Items {
    packages: Option<u32>,
    cores: Option<Vec<u32>>,
    threads: Option<u32>,
    nodes: Option<u32>,
    memory_nodes: Option<u32>,
    memory: Option<Vec<Bytes>>,
    caches: Vec<CacheItem>,
    offline: Option<Vec<OsThread>>,
    distances: Option<Vec<Vec<u32>>>,
    numbering: Option<Numbering>,
}

impl FromStr for Description {
    type Err = DescriptionError;

    fn from_str(text: &str) -> Result<Description, DescriptionError> {
        let mut items = Items::default();
        for item in split(text) {
            items.read(&item)?;
        }
        items.finish()
    }
}

/// The items in lower case with single blanks. A comma before a digit continues a list of numbers
/// if the item is one (`offline 3,8-9`).
fn split(text: &str) -> Vec<String> {
    let text = text.to_ascii_lowercase();
    let mut items: Vec<String> = Vec::new();
    for part in text.split(',') {
        let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_range = !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_digit() || matches!(b, b'-' | b':' | b'/'));
        match items.last_mut() {
            Some(last) if is_range && last.starts_with("offline ") => {
                last.push(',');
                last.push_str(&part);
            }
            _ => items.push(part),
        }
    }
    items
}

impl Items {
    fn read(&mut self, item: &str) -> Result<(), DescriptionError> {
        let wrong = |expected| DescriptionError::Item {
            item: item.to_owned(),
            expected,
        };
        let words: Vec<&str> = item.split(' ').collect();
        match words[..] {
            [n, "package" | "packages"] => {
                let count = count(n).ok_or(wrong("a number of packages, `2 packages`"))?;
                set(&mut self.packages, count, item)
            }
            [n, "core" | "cores"] => {
                let counts = n.split('/').map(count).collect::<Option<Vec<u32>>>();
                let counts = counts.ok_or(wrong("numbers of cores, `4 cores` or `8/4 cores`"))?;
                set(&mut self.cores, counts, item)
            }
            [n, "thread" | "threads"] => {
                let count = count(n).ok_or(wrong("a number of threads a core, `2 threads`"))?;
                set(&mut self.threads, count, item)
            }
            [n, "node" | "nodes"] => {
                let count = count(n).ok_or(wrong("a number of nodes, `2 nodes`"))?;
                set(&mut self.nodes, count, item)
            }
            [n, "memory", "node" | "nodes"] => {
                let count = count(n).ok_or(wrong("a number of nodes, `1 memory node`"))?;
                set(&mut self.memory_nodes, count, item)
            }
            ["memory", sizes] => {
                let sizes = sizes.split('/').map(size).collect::<Option<Vec<Bytes>>>();
                let sizes = sizes.ok_or(wrong("sizes, `memory 4G` or `memory 4G/2G/0`"))?;
                set(&mut self.memory, sizes, item)
            }
            ["offline", list] => {
                let numbers = parse_list(list).map_err(|_| wrong("a list, `offline 3,8-9`"))?;
                let numbers = numbers.into_iter().map(OsThread).collect();
                set(&mut self.offline, numbers, item)
            }
            ["distances", ..] => {
                let rows = distances(&words[1..].join(" "));
                let rows = rows.ok_or(wrong("rows of numbers above 0, `distances 10 20/20 10`"))?;
                set(&mut self.distances, rows, item)
            }
            ["numbering", how] => {
                let how = match how {
                    "adjacent" => Numbering::Adjacent,
                    "spread" => Numbering::Spread,
                    "dealt" => Numbering::Dealt,
                    _ => return Err(wrong("`numbering adjacent`, `spread` or `dealt`")),
                };
                set(&mut self.numbering, how, item)
            }
            [name, ..] if name.starts_with('l') => {
                let cache = cache(&words).ok_or(wrong(
                    "a cache, `l2 1M per core`, `l3 16M per 4 cores line 64 ways 16`",
                ))?;
                let is_same = |c: &CacheItem| (c.level, c.kind) == (cache.level, cache.kind);
                if self.caches.iter().any(is_same) {
                    return Err(DescriptionError::Twice {
                        item: item.to_owned(),
                    });
                }
                self.caches.push(cache);
                Ok(())
            }
            _ => Err(wrong(
                "an item like `2 packages`, `4 cores`, `2 threads`, `2 nodes`, `memory 4G`, \
                 `l2 1M per core`, `offline 3`, `distances 10 20/20 10` or `numbering spread`",
            )),
        }
    }

    fn finish(self) -> Result<Description, DescriptionError> {
        let listed = self.cores.as_ref().map_or(1, Vec::len);
        // `8/4 cores` tells the number of packages.
        let packages = self.packages.map_or(listed, |n| n as usize);
        let mut cores = self.cores.unwrap_or_else(|| vec![1]);
        match cores[..] {
            [all] => cores = vec![all; packages],
            _ if listed == packages => {}
            _ => {
                return Err(DescriptionError::Length {
                    what: "numbers of cores",
                    found: listed,
                    expected: packages,
                });
            }
        }
        let mut memory = self.memory.unwrap_or_default();
        if memory.windows(2).all(|pair| pair[0] == pair[1]) {
            let nodes = self.nodes.unwrap_or(super::small(packages)) as usize
                + self.memory_nodes.unwrap_or(0) as usize;
            // Equal sizes shrink to one, unless their number is a mistake to report.
            if memory.len() == nodes {
                memory.truncate(1);
            }
        }
        let mut caches = self.caches;
        caches.sort_by_key(|cache| (cache.level, cache.kind));
        Ok(Description {
            threads: self.threads.unwrap_or(1),
            nodes: self.nodes.unwrap_or(super::small(packages)),
            memory_nodes: self.memory_nodes.unwrap_or(0),
            memory,
            caches,
            offline: self.offline.unwrap_or_default(),
            distances: self.distances,
            numbering: self.numbering.unwrap_or_default(),
            cores,
        })
    }
}

fn set<T>(slot: &mut Option<T>, value: T, item: &str) -> Result<(), DescriptionError> {
    if slot.is_some() {
        return Err(DescriptionError::Twice {
            item: item.to_owned(),
        });
    }
    *slot = Some(value);
    Ok(())
}

fn count(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_number)?;
    (1..=THREADS_MAX).contains(&number).then_some(number)
}

fn size(text: &str) -> Option<Bytes> {
    Bytes::parse(&text.to_ascii_uppercase())
}

fn distances(text: &str) -> Option<Vec<Vec<u32>>> {
    let row = |row: &str| {
        row.split_whitespace()
            .map(count)
            .collect::<Option<Vec<u32>>>()
    };
    text.split('/').map(row).collect()
}

/// `l1d 32k per core line 64 ways 8`, as words.
fn cache(words: &[&str]) -> Option<CacheItem> {
    let (name, rest) = words.split_first()?;
    let name = name.strip_prefix('l')?;
    let (digits, kind) = match name.strip_suffix('d') {
        Some(digits) => (digits, CacheKind::Data),
        None => match name.strip_suffix('i') {
            Some(digits) => (digits, CacheKind::Instruction),
            None => (name, CacheKind::Unified),
        },
    };
    let level = u8::try_from(count(digits)?).ok()?;
    let (size_text, rest) = rest.split_first()?;
    let (per, mut rest) = match rest {
        ["per", "thread", rest @ ..] => (Per::Thread, rest),
        ["per", "core", rest @ ..] => (Per::Cores(1), rest),
        ["per", "node", rest @ ..] => (Per::Node, rest),
        ["per", "package", rest @ ..] => (Per::Package, rest),
        ["per", run, "core" | "cores", rest @ ..] => (Per::Cores(count(run)?), rest),
        _ => return None,
    };
    let mut item = CacheItem {
        level,
        kind,
        size: size(size_text).filter(|size| size.0 > 0)?,
        per,
        line: 64,
        ways: None,
    };
    if let ["line", bytes, tail @ ..] = rest {
        item.line = count(bytes).filter(|line| line.is_power_of_two())?;
        rest = tail;
    }
    if let ["ways", ways, tail @ ..] = rest {
        item.ways = Some(count(ways)?);
        rest = tail;
    }
    rest.is_empty().then_some(item)
}
