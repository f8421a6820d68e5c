//! A program that has more rights than who starts it does not ask that one's environment.

use std::env;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Set for the program that is started.
const STARTED: &str = "TEST_PRIVILEGED";
/// Somebody without rights.
const NOBODY: u32 = 65534;

/// Of what started it: does the program run for somebody else?
fn is_for_another() -> bool {
    // SAFETY: reads what the kernel told when the process began.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

#[test]
fn the_environment_of_a_privileged_program_is_not_asked() {
    if env::var_os(STARTED).is_some() {
        writeln!(io::stdout(), "privileged: {}", is_for_another()).expect("somebody reads");
        hearth_heap::begin();
        return;
    }
    // SAFETY: the call takes nothing.
    if unsafe { libc::geteuid() } != 0 {
        // Only root makes such programs for others.
        return;
    }
    let folder = env::temp_dir().join(format!("hearth-privileged-{}", std::process::id()));
    fs::create_dir(&folder).expect("it is new");
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("it is ours");
    let program = folder.join("program");
    let own = env::current_exe().expect("there is one");
    fs::copy(own, &program).expect("it can be read");
    fs::set_permissions(&program, Permissions::from_mode(0o4755)).expect("it is ours");
    let start = |user: u32| {
        Command::new(&program)
            .args(["--exact", "--nocapture"])
            .arg("the_environment_of_a_privileged_program_is_not_asked")
            .env(STARTED, "1")
            .env("HEARTH_HARDEN", "nonsense")
            .current_dir("/")
            .uid(user)
            .output()
    };
    let (for_nobody, for_root) = (start(NOBODY), start(0));
    fs::remove_dir_all(&folder).expect("it is ours");
    let said = for_root.expect("it starts");
    assert!(!said.status.success(), "its own environment is asked");
    let Ok(said) = for_nobody else {
        // Nobody may come to the folder.
        return;
    };
    let text = String::from_utf8_lossy(&said.stdout);
    if !text.contains("privileged: false") {
        let error = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{text}{error}");
    }
}
