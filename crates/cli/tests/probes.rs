//! Probes that the compiler puts into programs: every call is recorded, and programs behave as
//! without them.

mod support;

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use serde_json::Value;
use support::{empty_folder, files, hearth, root, run_in, text};

/// Two servers and two clients; procedures of components and outside, procedures that wait and
/// call such, one as a value, an exception, selects and stops.
const SHOP: &str = r#"
type IServer is interface (in integer requests; out integer replies)
type IClient is interface (out integer asks; in integer answers)

proc twice(integer x) : integer { return x + x }

component Server presents IServer {
    served = 0
    proc work(integer x) : integer {
        served := served + 1
        if x == 7 then { throw DivisionByZeroException }
        return twice(x)
    }
    constructor() { }
    behaviour {
        select {
            receive r from requests : {
                answer = 0
                try {
                    answer := work(r)
                } except DivisionByZeroException { answer := 1 }
                send answer on replies
            }
        }
        if served == 200 then { stop }
    }
}

component Client presents IClient {
    n = 0
    proc ask(integer x) : integer {
        send x on asks
        receive y from answers
        return y
    }
    proc again(integer x) : integer {
        first = ask(x)
        other = ask
        return other(x)
    }
    constructor() { }
    behaviour {
        y = again(n)
        n := n + 1
        if n == 100 then {
            printInt(y)
            printString("\n")
            stop
        }
    }
}
s = new Server()
c = new Client()
connect s.requests to c.asks
connect s.replies to c.answers
s2 = new Server()
c2 = new Client()
connect s2.requests to c2.asks
connect s2.replies to c2.answers
"#;

/// The figures of a file of calls.
fn figures(file: &str, folder: &Path) -> Value {
    let output = run_in(folder, &["watch", file, "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Number of calls by name.
fn calls(figures: &Value) -> BTreeMap<String, u64> {
    let probes = figures["probes"].as_array().expect("probes").iter();
    probes
        .map(|probe| {
            let name = probe["name"].as_str().expect("a name").to_owned();
            (name, probe["calls"].as_u64().expect("calls"))
        })
        .collect()
}

fn shop(name: &str) -> std::path::PathBuf {
    let folder = empty_folder(name);
    fs::write(folder.join("shop.isf"), SHOP).expect("it is written");
    folder
}

#[test]
fn every_call_is_recorded() {
    let folder = shop("probes-all");
    for carrier in ["workers", "threads"] {
        let output = run_in(
            &folder,
            &[
                "run",
                "shop.isf",
                "--calls",
                "shop.calls",
                "--carrier",
                carrier,
            ],
        );
        assert_eq!(text(&output.stderr), "");
        assert_eq!(text(&output.stdout), "198\n198\n");
        let figures = figures("shop.calls", &folder);
        assert_eq!(figures["lost"], 0);
        let expected = [
            ("Client.again", 200),
            ("Client.answers.receive", 400),
            ("Client.ask", 400),
            ("Client.asks.send", 400),
            ("Client.behaviour", 200),
            ("Client.constructor", 2),
            ("Server.behaviour", 400),
            ("Server.constructor", 2),
            ("Server.replies.send", 400),
            ("Server.select", 400),
            ("Server.work", 400),
            ("main", 1),
            ("twice", 396),
        ];
        let expected = expected.map(|(name, calls)| (name.to_owned(), calls));
        assert_eq!(calls(&figures), BTreeMap::from(expected), "{carrier}");
        // Two records a call, and two that name each component.
        let all: u64 = calls(&figures).values().sum();
        assert_eq!(figures["emitted"], 2 * all + 2 * 5, "{carrier}");
    }
}

#[test]
fn patterns_choose() {
    let folder = shop("probes-some");
    let output = run_in(
        &folder,
        &[
            "run",
            "shop.isf",
            "--calls",
            "shop.calls",
            "--probes",
            "Server.w*",
            "--probes",
            "*.send",
        ],
    );
    assert_eq!(text(&output.stderr), "");
    let calls = calls(&figures("shop.calls", &folder));
    let names: Vec<&str> = calls.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["Client.asks.send", "Server.replies.send", "Server.work"]
    );

    // At run time, fewer of those.
    let mut command = hearth();
    command
        .args(["run", "shop.isf", "--probes", "*"])
        .env(
            "HEARTH_MONITOR",
            "file=fewer.calls,law=block,on=Client.*,off=*.send",
        )
        .current_dir(&folder);
    assert!(command.status().expect("it starts").success());
    let calls = self::calls(&figures("fewer.calls", &folder));
    assert!(calls.keys().all(|name| name.starts_with("Client.")));
    assert!(!calls.contains_key("Client.asks.send") && calls["Client.ask"] == 400);
}

#[test]
fn mistakes_are_told() {
    let folder = shop("probes-mistakes");
    let told = |arguments: &[&str], code: i32, message: &str| {
        let output = run_in(&folder, arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        let error = text(&output.stderr);
        assert!(error.contains(message), "{arguments:?}: {error}");
    };
    let nothing = "no call in shop.isf matches --probes 'Servr.*'; its calls are Client.again";
    told(
        &["run", "shop.isf", "--probes", "Servr.*", "--calls", "a"],
        2,
        nothing,
    );
    told(&["build", "shop.isf", "--probes", "Servr.*"], 2, nothing);
    told(&["run", "shop.isf", "--calls", "a,b"], 2, "has a comma");
    told(
        &["run", "shop.isf", "--calls", "no/such/folder"],
        3,
        "no/such",
    );
    told(
        &["run", "shop.isf", "--probes", "*"],
        0,
        "--probes has no effect",
    );
    let mut command = hearth();
    command
        .args(["run", "shop.isf", "--probes", "*"])
        .env("HEARTH_MONITOR", "lwa=block")
        .current_dir(&folder);
    let output = command.output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("could not read HEARTH_MONITOR: 'lwa'"));
}

/// Ctrl-C while the writer is behind: what was recorded is stored before the process ends.
#[test]
fn an_interrupted_program_ends_its_recording() {
    let folder = empty_folder("probes-interrupted");
    let endless = SHOP
        .replace("served == 200", "served == 0 - 1")
        .replace("n == 100 then", "n == 0 - 1 then");
    fs::write(folder.join("shop.isf"), endless).expect("it is written");
    let built = run_in(&folder, &["build", "shop.isf", "--probes", "*"]);
    assert!(built.status.success(), "{}", text(&built.stderr));
    let mut command = std::process::Command::new(folder.join("shop"));
    let file = folder.join("shop.calls");
    command.env("HEARTH_MONITOR", format!("file={}", file.display()));
    let mut program = command.spawn().expect("it starts");
    while fs::metadata(&file).map_or(0, |data| data.len()) < 6_000_000 {
        std::thread::yield_now();
    }
    let interrupt = std::process::Command::new("kill")
        .args(["-INT", &program.id().to_string()])
        .status();
    assert!(interrupt.expect("there is a kill").success());
    assert_eq!(program.wait().expect("it ends").code(), Some(130));
    let output = run_in(&folder, &["watch", "shop.calls"]);
    let shown = text(&output.stdout);
    assert!(!shown.contains("did not end in order"), "{shown}");
}

/// A program with more rights than the user who starts it takes no choices from that user. Only
/// root makes such programs.
#[test]
fn the_choices_of_a_user_with_fewer_rights_are_ignored() {
    const NOBODY: u32 = 65534;
    let folder = shop("probes-privileged");
    let built = run_in(&folder, &["build", "shop.isf", "--probes", "*"]);
    assert!(built.status.success(), "{}", text(&built.stderr));
    // Others need not be able to enter the folder of tests.
    let open = env::temp_dir().join(format!("hearth-privileged-{}", std::process::id()));
    fs::create_dir(&open).expect("it is new");
    fs::set_permissions(&open, Permissions::from_mode(0o777)).expect("it is ours");
    let privileged = |from: &Path, name: &str| {
        let program = open.join(name);
        fs::copy(from, &program).expect("it is copied");
        fs::set_permissions(&program, Permissions::from_mode(0o4755)).expect("it is ours");
        std::process::Command::new(&program)
    };
    let mut id = privileged("/usr/bin/id".as_ref(), "id");
    let id = id.arg("-u").uid(NOBODY).output();
    let mut program = privileged(&folder.join("shop"), "shop");
    let calls = open.join("shop.calls");
    program
        .env("HEARTH_MONITOR", format!("file={}", calls.display()))
        .env("HEARTH_WORKERS", "nonsense")
        .current_dir("/");
    let for_itself = program.output().expect("it starts");
    let _ = fs::remove_file(&calls);
    let for_nobody = program.uid(NOBODY).output();
    let is_recorded = calls.exists();
    fs::remove_dir_all(&open).expect("it is ours");
    assert_eq!(for_itself.status.code(), Some(2), "{for_itself:?}");
    // Other users cannot become nobody, and some file systems give no rights.
    if id.is_ok_and(|output| text(&output.stdout) == "0\n") {
        let output = for_nobody.expect("it starts");
        assert!(output.status.success() && !is_recorded, "{output:?}");
    }
}

/// A program without probes has nothing of a monitor in it.
#[test]
fn programs_without_probes_carry_nothing() {
    let folder = shop("probes-none");
    let mut sizes = Vec::new();
    for (probes, out) in [(&[][..], "plain"), (&["--probes", "*"], "probed")] {
        let arguments = [&["build", "shop.isf", "-o", out], probes].concat();
        let output = run_in(&folder, &arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let program = fs::read(folder.join(out)).expect("it is built");
        let has = |word: &str| {
            program
                .windows(word.len())
                .any(|part| part == word.as_bytes())
        };
        assert_eq!(has("HEARTH_MONITOR"), out == "probed");
        assert_eq!(has("hearth-journal"), out == "probed");
        sizes.push(program.len());
    }
    assert!(sizes[0] < sizes[1], "{sizes:?}");
}

/// A program's output is the same with probes. All programs are tried by deep tests only.
#[test]
fn programs_behave_as_without() {
    let folder = empty_folder("probes-corpus");
    let nth = if env::var_os("HEARTH_TEST_DEEP").is_some() {
        1
    } else {
        5
    };
    let programs = files("examples", &[".isf"]).into_iter();
    let programs = programs.chain(files("tests/workloads", &[".isf"]));
    let mut tried = 0;
    for program in programs
        .filter(|program| program.with_extension("stdout").exists())
        .step_by(nth)
    {
        let options = fs::read_to_string(program.with_extension("options")).unwrap_or_default();
        let options: Vec<&str> = options
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        let calls = folder.join("program.calls");
        let path = program.display().to_string();
        let mut command = hearth();
        command
            .args(["run", &path, "--calls"])
            .arg(&calls)
            .args(options)
            .current_dir(program.parent().unwrap_or(root()))
            .env_remove("HEARTH_MONITOR");
        if let Ok(input) = fs::File::open(program.with_extension("stdin")) {
            command.stdin(input);
        }
        let output = command.output().expect("it starts");
        let expected = fs::read_to_string(program.with_extension("stdout")).expect("text");
        assert_eq!(
            text(&output.stdout),
            expected,
            "{path}: {}",
            text(&output.stderr)
        );
        let figures = figures(&calls.display().to_string(), &folder);
        let sum = |key: &str| figures[key].as_u64().expect("a number");
        assert_eq!(sum("emitted"), sum("stored") + sum("lost"), "{path}");
        tried += 1;
    }
    assert!(tried >= 3, "{tried} programs");
}
