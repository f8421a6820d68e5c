//! A single-threaded program stays single-threaded, whatever it allocates: a table of calls that
//! depend on the number of threads matches the system malloc's (`alone.c`), and Python may fork.

use std::path::PathBuf;
use std::process::Command;

use hearth_testing::toolchain::End;

use crate::support::{Profile, command, finish, library, passes};

const MODES: [&str; 2] = ["", "all"];

#[test]
fn single_thread_calls_behave_as_with_the_system_malloc() {
    let expected = finish(&mut command("alone.c", "table", None));
    assert_eq!(expected.end, End::Exit(0), "{expected:?}");
    // An empty table would match, too.
    assert!(expected.stdout.lines().count() > 30, "{expected:?}");
    for mode in MODES {
        let mut with = command("alone.c", "table", Some(Profile::Release));
        let ran = finish(with.env("HEARTH_HARDEN", mode));
        let rows = expected.stdout.lines().zip(ran.stdout.lines());
        let differences: Vec<String> = rows
            .filter(|(without, with)| without != with)
            .map(|(without, with)| format!("without: {without}\n   with: {with}"))
            .collect();
        assert!(differences.is_empty(), "{mode}\n{}", differences.join("\n"));
        assert_eq!(ran, expected, "{mode}");
    }
}

#[test]
fn a_single_threaded_program_stays_single_threaded() {
    for mode in MODES {
        for profile in [Profile::Release, Profile::Development] {
            let mut counted = command("alone.c", "count", Some(profile));
            passes(counted.env("HEARTH_HARDEN", mode));
        }
    }
    passes(&mut command("alone.c", "count", None));
}

/// Python interpreters from 3.12 on: the one on the path, and pyenv's.
fn pythons() -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("python3")];
    let kept = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".pyenv/versions"));
    let versions = kept.and_then(|folder| std::fs::read_dir(folder).ok());
    let programs = versions.into_iter().flatten().flatten();
    found.extend(programs.map(|version| version.path().join("bin/python3")));
    found.retain(|python| {
        let asked = Command::new(python)
            .args(["-c", "import sys; sys.exit(sys.version_info < (3, 12))"])
            .output();
        asked.is_ok_and(|asked| asked.status.success())
    });
    found
}

/// From 3.12 on Python warns at a fork of a process with more than one thread.
#[test]
fn python_forks_without_a_warning() {
    const PROGRAM: &str = "
import os, warnings
warnings.simplefilter('always')
for _ in range(3):
    kept = [bytearray(300 << 10) for _ in range(60)] + [bytearray(600 + i % 3000) for i in range(20000)]
    del kept
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
print('passed')
";
    // Without such a Python, `a_single_threaded_program_stays_single_threaded` shows the same.
    for python in pythons() {
        let mut forks = Command::new(python);
        forks.args(["-c", PROGRAM]).env("PYTHONMALLOC", "malloc");
        forks.env("LD_PRELOAD", library(Profile::Release));
        let ran = finish(&mut forks);
        // As an error the warning would be lost: Python clears it after the fork.
        assert_eq!(ran.stderr, "", "{forks:?}");
        assert_eq!(ran.stdout, "passed\n", "{forks:?}");
    }
}
