//! The environment that counts: the process's own, and not another user's.

use std::env;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

/// Marks the started program.
const STARTED: &str = "TEST_ENVIRONMENT";
/// A user without rights.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    // SAFETY: the call takes nothing.
    unsafe { libc::geteuid() == 0 }
}

/// The started program: its first allocation ends it if it reads the environment.
#[test]
fn begins() {
    if env::var_os(STARTED).is_some() {
        // SAFETY: reads what the kernel told when the process began.
        let is_for_another = unsafe { libc::getauxval(libc::AT_SECURE) != 0 };
        writeln!(io::stdout(), "for another: {is_for_another}").expect("somebody reads");
        hearth_heap::begin();
    }
}

fn starting(program: &std::path::Path) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--exact", "--nocapture", "begins"])
        .env(STARTED, "1")
        .env("HEARTH_HARDEN", "nonsense")
        .current_dir("/");
    command
}

/// A program with more rights than the user who starts it ignores that user's environment. Only
/// root makes such programs.
#[test]
fn that_of_a_privileged_program_is_not_asked() {
    if !is_root() {
        return;
    }
    let folder = env::temp_dir().join(format!("hearth-environment-{}", std::process::id()));
    fs::create_dir(&folder).expect("it is new");
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("it is ours");
    let program = folder.join("program");
    let own = env::current_exe().expect("there is one");
    fs::copy(own, &program).expect("it can be read");
    fs::set_permissions(&program, Permissions::from_mode(0o4755)).expect("it is ours");
    let for_nobody = starting(&program).uid(NOBODY).output();
    let for_root = starting(&program).output();
    fs::remove_dir_all(&folder).expect("it is ours");
    let said = for_root.expect("it starts");
    assert!(!said.status.success(), "its own environment is asked");
    let Ok(said) = for_nobody else {
        // Others cannot enter the folder.
        return;
    };
    let text = String::from_utf8_lossy(&said.stdout);
    if !text.contains("for another: false") {
        let error = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{text}{error}");
    }
}

/// Hardening works without `/proc`, or fails with a message. Only root takes `/proc` away.
#[test]
fn it_is_found_where_there_is_no_proc() {
    if !is_root() {
        return;
    }
    let own = env::current_exe().expect("there is one");
    let mut command = starting(&own);
    let take_away = || {
        // SAFETY: mounts of this process alone are changed, by calls that take texts which end.
        let is_done = unsafe {
            libc::unshare(libc::CLONE_NEWNS) == 0
                && libc::mount(
                    ptr::null(),
                    c"/".as_ptr(),
                    ptr::null(),
                    libc::MS_REC | libc::MS_PRIVATE,
                    ptr::null(),
                ) == 0
                && libc::umount2(c"/proc".as_ptr(), libc::MNT_DETACH) == 0
        };
        if is_done {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    };
    // SAFETY: system calls only.
    unsafe { command.pre_exec(take_away) };
    // A root without that right, in a container, shows nothing.
    if let Ok(said) = command.output() {
        let error = String::from_utf8_lossy(&said.stderr);
        assert!(error.contains("nonsense is not a mode"), "{error}");
    }
}
