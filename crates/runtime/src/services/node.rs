//! This program as a node among others.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use hearth_sys::file_lock;

use super::claims::{self, Claim};
use crate::ground::exits;
use crate::ground::settings;

const ADDRESS: &str = "HEARTH_NODE";
const NETWORK: &str = "HEARTH_NETWORK";

/// Largest address: addresses fit sixteen bits, as the motes' did, whose last one stood for all.
const LAST: u32 = 65534;

/// This program's node.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) address: u32,
    _claim: Claim,
}

/// Returns this node. The first call makes it known to others.
pub(crate) fn own() -> &'static Node {
    static NODE: OnceLock<Node> = OnceLock::new();
    NODE.get_or_init(|| {
        let node = claim_address();
        // Published by an earlier node with this address.
        let _ = std::fs::remove_file(nodes().join(format!("{}.channels", node.address)));
        node
    })
}

fn claim_address() -> Node {
    match wanted() {
        Some(address) => {
            match claims::take(nodes(), address).unwrap_or_else(|error| unusable(&error)) {
                Some(claim) => Node {
                    address,
                    _claim: claim,
                },
                None => exits::unfit(&format!(
                    "another program runs as node {address} in {}; set {ADDRESS} to another address, \
                 or {NETWORK} to another directory",
                    network().display()
                )),
            }
        }
        None => match claims::take_first_free(nodes(), 1, LAST)
            .unwrap_or_else(|error| unusable(&error))
        {
            Some((address, claim)) => Node {
                address,
                _claim: claim,
            },
            None => exits::unfit(&format!(
                "all {LAST} node addresses are taken; set {NETWORK} to another directory"
            )),
        },
    }
}

/// Returns the address as far as it is known without telling other nodes: the requested one, or 1.
pub(crate) fn likely_address() -> u32 {
    wanted().unwrap_or(1)
}

fn wanted() -> Option<u32> {
    static WANTED: OnceLock<Option<u32>> = OnceLock::new();
    *WANTED.get_or_init(|| settings::read(ADDRESS, || None, |text| parse_address(text).map(Some)))
}

fn parse_address(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(address @ 1..=LAST) => Ok(address),
        _ => Err(format!(
            "a node's address is a whole number from 1 to {LAST}"
        )),
    }
}

/// Returns the directory in which the nodes of a network find each other.
pub(crate) fn network() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY
        .get_or_init(|| settings::read(NETWORK, default_network, |text| Ok(PathBuf::from(text))))
}

fn default_network() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(directory) if Path::new(&directory).is_dir() => Path::new(&directory).join("hearth"),
        _ => std::env::temp_dir().join(format!("hearth-{}", file_lock::user())),
    }
}

/// Returns the directory of nodes' claims.
pub(crate) fn nodes() -> &'static Path {
    static NODES: OnceLock<PathBuf> = OnceLock::new();
    NODES.get_or_init(|| directory("nodes"))
}

/// Returns a directory of the network, made if missing.
pub(crate) fn directory(name: &str) -> PathBuf {
    let path = network().join(name);
    claims::make_directory(&path).unwrap_or_else(|error| unusable(&error));
    path
}

/// Ends the program: the network's directory is unusable.
pub(crate) fn unusable(error: &std::io::Error) -> ! {
    exits::unfit(&format!(
        "could not use {} to find other nodes ({error}); set {NETWORK} to a directory of your own",
        network().display()
    ))
}

/// Returns the addresses of all living nodes, ascending.
pub(crate) fn living() -> Vec<u32> {
    claims::taken(nodes())
}

/// Tells whether a node of this address lives.
pub(crate) fn lives(address: u32) -> bool {
    claims::is_taken(nodes(), address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!(parse_address("1"), Ok(1));
        assert_eq!(parse_address("65534"), Ok(LAST));
        for bad in ["0", "65535", "-1", "x", "1.5"] {
            assert_eq!(
                parse_address(bad).unwrap_err(),
                "a node's address is a whole number from 1 to 65534"
            );
        }
    }
}
