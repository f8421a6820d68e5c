//! Kieker's log, read by Kieker's trace reconstruction, the first step of its trace analysis.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use hearth_calls::Recorded;
use hearth_calls::formats::{Kieker, kieker};

use crate::fixture::{Counts, Temporary, lossy, script, whole};

/// Name of a log, which Kieker knows by its form.
const LOG: &str = "kieker-20250101-000000000-UTC-001-hearth.dat";

/// Jars of Kieker, as Maven keeps them; with no such place, one line says how to get them.
fn jars() -> Option<Vec<PathBuf>> {
    let home = std::env::var_os("HOME")?;
    let maven = Path::new(&home).join(".m2/repository");
    let kieker = maven.join("net/kieker-monitoring/kieker/2.0.2/kieker-2.0.2.jar");
    let mut jars = vec![kieker];
    // What it needs; of whichever version.
    for folder in ["org/slf4j/slf4j-api", "org/jctools/jctools-core"] {
        let versions = fs::read_dir(maven.join(folder)).ok()?;
        let all = versions
            .flatten()
            .filter_map(|version| fs::read_dir(version.path()).ok())
            .flatten()
            .flatten()
            .map(|file| file.path())
            .filter(|path| path.extension().is_some_and(|name| name == "jar"));
        jars.push(all.max()?);
    }
    jars.iter().all(|jar| jar.is_file()).then_some(jars)
}

fn written(recorded: &Recorded, directory: &Path) -> Kieker {
    fs::create_dir(directory).expect("a directory");
    let mut map = File::create(directory.join("kieker.map")).expect("a file");
    let mut log = File::create(directory.join(LOG)).expect("a file");
    kieker(recorded, &mut map, &mut log).expect("it is written")
}

/// Numbers of records, of valid traces and of invalid ones, as Kieker counts them.
fn read(directory: &Path) -> Option<[u64; 3]> {
    let Some(jars) = jars() else {
        eprintln!(
            "skipped: there is no Kieker; get it, for example: \
             mvn dependency:get -Dartifact=net.kieker-monitoring:kieker:2.0.2"
        );
        return None;
    };
    let jars = std::env::join_paths(jars).expect("paths");
    let output = Command::new("java")
        .arg("-cp")
        .arg(jars)
        .arg(script("Reconstruct.java"))
        .arg(directory)
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: there is no Java; install it: apt-get install default-jdk-headless");
        return None;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("counted "));
    let Some(line) = line else {
        panic!("{text}{}", String::from_utf8_lossy(&output.stderr));
    };
    let numbers: Vec<u64> = line
        .split(' ')
        .map(|number| number.parse().expect("a number"))
        .collect();
    Some(numbers.try_into().expect("three numbers"))
}

fn check(recorded: &Recorded, directory: &Temporary) -> Kieker {
    let log = directory.path("kieker");
    let counts = written(recorded, &log);
    if let Some([records, valid, invalid]) = read(&log) {
        assert_eq!(
            [records, valid, invalid],
            [counts.records, counts.traces, 0]
        );
        eprintln!("Kieker reconstructs {valid} traces from {records} records");
    }
    let calls = Counts::of(recorded).calls;
    assert_eq!(counts.records + counts.calls_left_out, calls);
    counts
}

#[test]
fn kieker_reconstructs_whole_recordings() {
    let directory = Temporary::new();
    let counts = check(&whole(&directory), &directory);
    assert_eq!((counts.traces, counts.left_out), (9, 0));
}

#[test]
fn kieker_reconstructs_what_is_whole_of_others() {
    let directory = Temporary::new();
    let counts = check(&lossy(&directory), &directory);
    assert!(counts.traces > 0 && counts.left_out > 0, "{counts:?}");
}

/// A canary: Kieker tells a trace that lacks a call.
#[test]
fn kieker_misses_a_call() {
    let directory = Temporary::new();
    let log = directory.path("kieker");
    let counts = written(&whole(&directory), &log);
    let file = log.join(LOG);
    let text = fs::read_to_string(&file).expect("text");
    // The first call within another, of which there are several.
    let (before, behind) = text.split_once("$1;").expect("a record");
    let (_, behind) = behind.split_once('\n').expect("several records");
    fs::write(&file, format!("{before}{behind}")).expect("it is written");
    if let Some(read) = read(&log) {
        assert_eq!(read, [counts.records - 1, counts.traces - 1, 1]);
    }
}
