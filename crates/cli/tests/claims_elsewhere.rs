//! `hearth claim` where a new user may try it first: without rights, in containers, where nothing
//! may be written, and ended by Ctrl-C.
//!
//! What needs root or namespaces is left out where they cannot be had.

mod support;

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Killed, PATIENCE, empty_folder, text};

const HEARTH: &str = env!("CARGO_BIN_EXE_hearth");
/// The user and group nobody.
const NOBODY: u32 = 65_534;

/// A script in mounts and process numbers of its own, as root of a container. None if this system
/// makes none for this user. The script finds the command as `$0`.
fn contained(script: &str) -> Option<Output> {
    let made = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "--pid", "--fork"]);
        command.args(["--mount-proc", "sh", "-c", script, HEARTH]);
        clean(&mut command).output()
    };
    let is_possible = made("mount -t tmpfs none /tmp").is_ok_and(|output| output.status.success());
    is_possible.then(|| made(script).expect("it starts"))
}

fn clean(command: &mut Command) -> &mut Command {
    for name in ["HEARTH_CLAIMS", "MAKEFLAGS", "OMP_NUM_THREADS"] {
        command.env_remove(name);
    }
    command
}

fn hearth(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = support::hearth();
    command.args(arguments).env("HEARTH_CLAIMS", folder);
    command
}

fn holders(folder: &Path) -> Vec<Value> {
    let output = hearth(folder, &["claims", "--json"]).output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    document["holders"].as_array().expect("holders").clone()
}

/// The folder, which other users can reach. None if this one is not root.
fn of_root(name: &str) -> Option<PathBuf> {
    let folder = std::env::temp_dir().join(format!("hearth-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).expect("it is made");
    let mut command = Command::new("true");
    let can_be_nobody = command.uid(NOBODY).status().is_ok();
    if !can_be_nobody {
        let _ = fs::remove_dir_all(&folder);
    }
    can_be_nobody.then_some(folder)
}

/// The command as nobody, who has a copy of it: its folder may be closed to others.
fn as_nobody(place: &Path, registry: &Path, arguments: &[&str]) -> Output {
    let program = place.join("hearth");
    if !program.exists() {
        fs::copy(HEARTH, &program).expect("it is copied");
    }
    let mut command = Command::new(program);
    command.args(arguments).env("HEARTH_CLAIMS", registry);
    command.uid(NOBODY).gid(NOBODY).current_dir("/");
    command.output().expect("it starts")
}

#[test]
fn a_user_without_rights_claims_cores() {
    let Some(place) = of_root("claims-nobody") else {
        return;
    };
    let registry = place.join("registry");
    fs::create_dir(&registry).expect("it is made");
    fs::set_permissions(&registry, Permissions::from_mode(0o777)).expect("it is ours");
    let arguments = ["claim", "--cores", "1..2", "--", "sh", "-c", "nproc; id -u"];
    let output = as_nobody(&place, &registry, &arguments);
    assert_eq!(text(&output.stderr), "");
    let said = text(&output.stdout);
    assert!(said.ends_with(&format!("\n{NOBODY}\n")), "{said}");
    let output = as_nobody(&place, &registry, &["cores", "--milliseconds", "50"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    fs::remove_dir_all(&place).expect("it is ours");
}

#[test]
fn another_users_registry_is_told() {
    let Some(place) = of_root("claims-other") else {
        return;
    };
    for (mode, can_look) in [(0o700, false), (0o755, true)] {
        let registry = place.join(format!("registry-{mode:o}"));
        fs::create_dir(&registry).expect("it is made");
        fs::set_permissions(&registry, Permissions::from_mode(mode)).expect("it is ours");
        let output = as_nobody(&place, &registry, &["claim", "--cores", "1", "--", "true"]);
        assert_eq!(output.status.code(), Some(3), "{mode:o}");
        let error = text(&output.stderr);
        assert!(error.contains("ermission denied"), "{error}");
        assert!(error.contains("may write to in HEARTH_CLAIMS"), "{error}");
        let output = as_nobody(&place, &registry, &["claims"]);
        assert_eq!(
            output.status.success(),
            can_look,
            "{}",
            text(&output.stderr)
        );
    }
    fs::remove_dir_all(&place).expect("it is ours");
}

#[test]
fn a_place_that_cannot_be_written_to_is_told() {
    let script = "mount -t tmpfs none /tmp && mount -t tmpfs -o ro none /dev/shm && \
        \"$0\" claim --cores 1 -- sh -c 'ls -d /tmp/hearth-claims-0*' && mount -o remount,ro /tmp && \
        \"$0\" claim --cores 1 -- true";
    let Some(output) = contained(script) else {
        return;
    };
    // The second place serves where the first does not.
    let said = text(&output.stdout);
    assert!(said.starts_with("/tmp/hearth-claims-0"), "{said}");
    let error = text(&output.stderr);
    assert!(error.contains("read-only"), "{error}");
    assert!(error.contains("may write to in HEARTH_CLAIMS"), "{error}");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn containers_that_share_the_place_do_not_share_claims() {
    let script = "mount -t tmpfs none /dev/shm && chmod 1777 /dev/shm && \
        \"$0\" claim --cores 1 -- sh -c '\"$0\" claims --json; \
        unshare --pid --fork --mount-proc \"$0\" claims --json; ls /dev/shm' \"$0\"";
    let Some(output) = contained(script) else {
        return;
    };
    assert_eq!(text(&output.stderr), "");
    let said = text(&output.stdout);
    let mut documents = serde_json::Deserializer::from_str(&said).into_iter::<Value>();
    let mut next = || documents.next().expect("a document").expect("JSON");
    let (inside, deeper) = (next(), next());
    assert_eq!(
        inside["holders"].as_array().map(Vec::len),
        Some(1),
        "{said}"
    );
    assert_eq!(
        deeper["holders"].as_array().map(Vec::len),
        Some(0),
        "{said}"
    );
    let rest = &said[documents.byte_offset()..];
    assert!(rest.trim().starts_with("hearth-claims-0-"), "{rest}");
}

#[test]
fn a_missing_proc_is_told() {
    let script = "mount -t tmpfs none /dev/shm && mount -t tmpfs none /proc && \
        \"$0\" claim --cores 1 -- true";
    let Some(output) = contained(script) else {
        return;
    };
    let error = text(&output.stderr);
    assert!(error.contains("mount /proc"), "{error}");
    assert_eq!(output.status.code(), Some(3));
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal as a terminal does: to all processes of a group.
fn interrupt(child: &Child) {
    let group = format!("-{}", child.id());
    let sent = Command::new("kill").args(["-INT", "--", &group]).status();
    assert!(sent.expect("kill is there").success());
}

#[test]
fn an_interrupted_command_leaves_no_claim() {
    let folder = empty_folder("claims-interrupted");
    let script = "exec sleep 1000";
    let arguments = [
        "claim",
        "--cores",
        "1..2",
        "--jobserver",
        "--",
        "sh",
        "-c",
        script,
    ];
    let mut command = hearth(&folder, &arguments);
    command.process_group(0).env_remove("MAKEFLAGS");
    let mut claims = Killed(command.spawn().expect("it starts"));
    wait_until("it claims nothing", || holders(&folder).len() == 1);
    // One that waits for cores is interrupted, too, and waits for nothing any more.
    let mut waits = hearth(
        &folder,
        &["claim", "--cores", "99", "--wait", "300", "--", "true"],
    );
    waits.process_group(0).stderr(Stdio::piped());
    let mut waits = Killed(waits.spawn().expect("it starts"));
    wait_until("it asks for nothing", || holders(&folder).len() == 2);
    interrupt(&waits.0);
    assert_eq!(waits.0.wait().expect("it ends").signal(), Some(2));
    wait_until("it waits still", || holders(&folder).len() == 1);
    interrupt(&claims.0);
    assert_eq!(claims.0.wait().expect("it ends").signal(), Some(2));
    wait_until("the claim stays", || holders(&folder).is_empty());
    // The steward ends with it, and its files go.
    wait_until("files stay", || {
        let names = fs::read_dir(&folder).expect("a folder").flatten();
        let mut names = names.map(|entry| entry.file_name().into_string().expect("a name"));
        names.all(|name| name.ends_with(".state"))
    });
}

#[test]
fn claims_on_a_screen_end_by_an_interruption() {
    let folder = empty_folder("claims-screen");
    let script = ["-qec", &format!("{HEARTH} claims"), "/dev/null"];
    let mut command = Command::new("script");
    command
        .args(script)
        .env("HEARTH_CLAIMS", &folder)
        .env("TERM", "xterm");
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    // A part of util-linux that not every system has.
    let Ok(child) = child else { return };
    let mut screen = Killed(child);
    let mut shown = String::new();
    let mut output = screen.0.stdout.take().expect("its output");
    let mut bytes = [0; 4096];
    while !shown.contains("q leaves") {
        let length = output.read(&mut bytes).expect("it shows something");
        assert_ne!(length, 0, "it ended: {shown}");
        shown.push_str(&text(&bytes[..length]));
    }
    let mut keys = screen.0.stdin.take().expect("its keys");
    keys.write_all(b"\x03").expect("it reads keys");
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("it ends");
    assert!(screen.0.wait().expect("it ends").success(), "{rest}");
    // The screen is as it was before.
    assert!(rest.contains("\x1b[?1049l"), "{rest:?}");
}
