//! The allocators that are there: those as published, Hearth's own, and others' that are installed.

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde::{Deserialize, Serialize};

use crate::StudyError;

/// The variable that names the folder of the objects of `hearth-allocators`.
pub const VARIABLE: &str = "HEARTH_ALLOCATORS";

/// Origin of an allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Built here after the source.
    AsPublished,
    /// The C library's.
    System,
    /// A third party's.
    Peer,
    /// Hearth's.
    Ours,
}

/// An allocator that a program can be run with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocator {
    /// Its name in the study.
    pub id: String,
    /// Its origin.
    pub kind: Kind,
    /// The preloaded object; `None` for the C library's own.
    pub object: Option<PathBuf>,
}

/// Allocators that a study runs with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The allocators, in the order of [`Kind`].
    pub allocators: Vec<Allocator>,
    /// The meter.
    pub meter: Option<PathBuf>,
    /// The program of loads.
    pub workload: Option<PathBuf>,
    /// Notes on what is missing, in sentences without a full stop.
    pub notes: Vec<String>,
}

/// Those as published: their ids and the objects' names.
const PUBLISHED: [(&str, &str); 5] = [
    ("best-fit", "libbest_fit.so"),
    ("first-fit", "libfirst_fit.so"),
    ("half-fit", "libhalf_fit.so"),
    ("tlsf", "libtlsf.so"),
    ("nmart", "libnmart.so"),
];

/// Allocators in Debian's packages: their ids, the objects' names, the packages.
const PACKAGED: [(&str, &str, &str); 3] = [
    ("jemalloc", "libjemalloc.so.2", "libjemalloc2"),
    (
        "tcmalloc",
        "libtcmalloc_minimal.so.4",
        "libtcmalloc-minimal4",
    ),
    ("mimalloc", "libmimalloc.so.2.0", "libmimalloc2.0"),
];

/// Debian's folders of libraries, on the machines that Hearth runs on.
const LIBRARIES: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
];

/// Looks for everything.
///
/// Objects are in `objects` if it is given, else in the folder that `HEARTH_ALLOCATORS` names, else
/// where Cargo or an installation puts them, seen from the running command. Peers that benchmarks
/// have built are in `target/peers/lib`.
///
/// # Errors
/// One of those wanted is not there.
pub fn find(objects: Option<&Path>, wanted: &[String]) -> Result<Found, StudyError> {
    let beside = env::current_exe()
        .ok()
        .and_then(|path| Some(path.parent()?.to_owned()));
    let objects = match (objects, env::var_os(VARIABLE)) {
        (Some(given), _) => vec![given.to_owned()],
        (None, Some(named)) => vec![PathBuf::from(named)],
        (None, None) => beside.iter().flat_map(|folder| near(folder)).collect(),
    };
    let first = |name: &str| {
        let mut places = objects.iter().map(|folder| folder.join(name));
        places.find(|place| place.is_file())
    };
    let mut found = Found {
        allocators: Vec::new(),
        meter: first("libmeter.so"),
        workload: first("workload"),
        notes: Vec::new(),
    };
    let is_wanted = |id: &str| wanted.is_empty() || wanted.iter().any(|name| name == id);
    let mut missing = Vec::new();
    for (id, name) in PUBLISHED {
        match first(name) {
            Some(object) => found
                .allocators
                .push(one(id, Kind::AsPublished, Some(object))),
            None => missing.push(id),
        }
    }
    if !missing.is_empty() || found.meter.is_none() || found.workload.is_none() {
        found.notes.push(format!(
            "{} not there: build with `cargo build --release -p hearth-allocators --examples`, or \
             name their folder in {VARIABLE}",
            match missing.as_slice() {
                [] => "the meter or the load is".to_owned(),
                missing => format!("{} are", missing.join(", ")),
            }
        ));
    }
    found.allocators.push(one("system", Kind::System, None));
    peers(&mut found, beside.as_deref());
    let ours = beside
        .iter()
        .map(|folder| folder.join("libhearth_malloc.so"));
    match objects
        .iter()
        .map(|folder| folder.join("libhearth_malloc.so"))
        .chain(ours)
        .find(|p| p.is_file())
    {
        Some(object) => found
            .allocators
            .push(one("hearth", Kind::Ours, Some(object))),
        None => found
            .notes
            .push("libhearth_malloc.so is not there, and left out: build with `cargo build --release -p hearth-malloc`".into()),
    }
    for id in wanted {
        if !found.allocators.iter().any(|allocator| allocator.id == *id) {
            return Err(StudyError::NotThere {
                what: "allocator",
                given: id.clone(),
                known: found.allocators.into_iter().map(|one| one.id).collect(),
            });
        }
    }
    found
        .allocators
        .retain(|allocator| is_wanted(&allocator.id));
    Ok(found)
}

fn one(id: &str, kind: Kind, object: Option<PathBuf>) -> Allocator {
    Allocator {
        id: id.to_owned(),
        kind,
        object,
    }
}

/// Folders in which objects may be, seen from the command's.
fn near(folder: &Path) -> Vec<PathBuf> {
    vec![
        folder.join("examples"),
        folder.join("../lib/hearth/allocators"),
        folder.to_owned(),
        // Tests are a level below.
        folder.join("../examples"),
    ]
}

/// Others' allocators: Debian's, and those that benchmarks have built.
fn peers(found: &mut Found, beside: Option<&Path>) {
    let mut absent = Vec::new();
    for (id, name, package) in PACKAGED {
        let mut places = LIBRARIES.iter().map(|folder| Path::new(folder).join(name));
        match places.find(|place| place.is_file()) {
            Some(object) => found.allocators.push(one(id, Kind::Peer, Some(object))),
            None => absent.push(package),
        }
    }
    if !absent.is_empty() {
        found.notes.push(format!(
            "not installed, and left out: {}; for example: apt-get install {}",
            absent.join(", "),
            absent.join(" ")
        ));
    }
    let built = beside.map(|folder| folder.join("../peers/lib"));
    let folders = built.into_iter().chain([PathBuf::from("target/peers/lib")]);
    let listed = folders
        .filter_map(|folder| fs::read_dir(folder).ok())
        .next();
    let mut objects: Vec<PathBuf> = listed
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(".so"))
        .collect();
    objects.sort();
    for object in objects {
        let name = object
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let id = name.strip_prefix("lib").unwrap_or(&name).to_owned();
        let id = match found.allocators.iter().any(|known| known.id == id) {
            true => format!("{id}-built"),
            false => id,
        };
        found.allocators.push(one(&id, Kind::Peer, Some(object)));
    }
}
