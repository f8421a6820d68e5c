//! The published channels of this node and of others.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;

use super::link::Kept;
use super::wire::{self, Notice};
use crate::abi::literal;
use crate::ground::sync::lock_std as lock;
use crate::services::node;

static PUBLISHED: Mutex<BTreeMap<Vec<u8>, Kept>> = Mutex::new(BTreeMap::new());

/// Publishes a channel. False if the name is taken.
#[must_use]
pub(super) fn add(name: &[u8], channel: Kept) -> bool {
    let mut published = lock(&PUBLISHED);
    if published.contains_key(name) {
        return false;
    }
    published.insert(name.to_vec(), channel);
    let list: Vec<Notice> = published
        .iter()
        .map(|(name, channel)| notice(name, channel))
        .collect();
    // Under the lock, so that the list never loses another component's channel.
    write(&list).unwrap_or_else(|error| node::unusable(&error));
    true
}

fn notice(name: &[u8], channel: &Kept) -> Notice {
    let channel = channel.get();
    // SAFETY: types are static, and their codes literals.
    let code = unsafe { literal((*channel.payload()).code) }.into_owned();
    Notice {
        direction: channel.direction,
        code,
        name: name.to_vec(),
    }
}

/// Finds the channel published under a name.
pub(super) fn find(name: &[u8]) -> Option<Kept> {
    lock(&PUBLISHED).get(name).cloned()
}

fn file_of(address: u32) -> PathBuf {
    node::nodes().join(format!("{address}.channels"))
}

/// Replaces the file whole: readers see the old list or the new one.
fn write(list: &[Notice]) -> io::Result<()> {
    let file = file_of(node::own().address);
    let fresh = file.with_extension("new");
    fs::write(&fresh, wire::write_notices(list))?;
    fs::rename(fresh, file)
}

/// Returns a living node's published channels, ordered by name.
pub(super) fn of_node(address: u32) -> Vec<Notice> {
    // No file: the node has published nothing.
    fs::read(file_of(address)).map_or_else(|_| Vec::new(), |bytes| wire::read_notices(&bytes))
}
