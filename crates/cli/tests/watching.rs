//! `hearth run --trace`, `--report`, and `hearth top`.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Instant;

use hearth_sys::process::Process;
use hearth_watch::trace::{self, Trace};
use support::{Outcome, PATIENCE, empty_folder, hearth, outcome};

/// 300 times one computes for three times as long as the other, which answers. Both wait each time:
/// who answers for the question, who asks for the answer.
const WORK: &str = r#"type IOut is interface (out integer o; in integer answer)
type IIn is interface (in integer i; out integer reply)

component Source presents IOut {
  n = 0
  x = 1
  constructor() { }
  behaviour {
    for k = 1 .. 60000 do { x := x * 1103515245 + 12345 }
    n := n + 1
    send x on o
    receive y from answer
    x := x + y
    if n == 300 then { stop }
  }
}

component Sink presents IIn {
  n = 0
  x = 1
  constructor() { }
  behaviour {
    receive v from i
    x := x + v
    for k = 1 .. 20000 do { x := x * 1103515245 + 12345 }
    n := n + 1
    send x on reply
    if n == 300 then { stop }
  }
}

s = new Source()
t = new Sink()
connect s.o to t.i
connect s.answer to t.reply
"#;

/// Waits for a message that never comes.
const DEADLOCK: &str = r#"type IIn is interface (in integer i)

component Sink presents IIn {
  constructor() { }
  behaviour {
    receive v from i
    printInt(v)
  }
}

t = new Sink()
"#;

/// Waits for input until it is told to stop, and says when it has begun.
const WAITS: &str = r#"type INone is interface ()

component Reader presents INone {
  constructor() { printString("ready\n") }
  behaviour {
    printString(getString())
  }
}

c = new Reader()
"#;

fn program(folder: &str, text: &str) -> PathBuf {
    let path = empty_folder(folder).join("program.isf");
    fs::write(&path, text).expect("the folder is there");
    path
}

fn run(program: &Path, words: &[&str], trace: &Path) -> Outcome {
    let mut command = hearth();
    command.arg("run").arg(program).args(words);
    command.arg("--trace").arg(trace);
    outcome(&mut command, None).expect("it ends")
}

fn read(path: &Path) -> Trace {
    let bytes = fs::read(path).expect("it was written");
    trace::read(&bytes).expect("it is a trace")
}

/// Lengths of the slices with a name, on the track with a name.
fn times(trace: &Trace, track: &str, slice: &str) -> Vec<u64> {
    let uuid = trace
        .packet
        .iter()
        .filter_map(|packet| packet.track_descriptor.as_ref())
        .find(|descriptor| descriptor.name() == track)
        .unwrap_or_else(|| panic!("no track {track}"))
        .uuid();
    let mut found = Vec::new();
    let mut begun = None;
    for packet in &trace.packet {
        let Some(event) = &packet.track_event else {
            continue;
        };
        if event.track_uuid() != uuid {
            continue;
        }
        match event.r#type() {
            trace::TYPE_SLICE_BEGIN => {
                begun = (event.name() == slice).then(|| packet.timestamp());
            }
            trace::TYPE_SLICE_END => {
                found.extend(begun.take().map(|from| packet.timestamp() - from))
            }
            _ => {}
        }
    }
    found
}

/// The usual one in which it computes: the system may have had the core in some, and in up to half
/// of them it only goes from one wait to the next.
fn usual(trace: &Trace, track: &str) -> f64 {
    let mut times = times(trace, track, "running");
    times.sort_unstable();
    times[times.len() * 3 / 4] as f64
}

#[test]
fn times_are_in_proportion_to_the_work() {
    let program = program("watching-work", WORK);
    for carrier in ["workers", "threads"] {
        let path = program.with_file_name(format!("{carrier}.pftrace"));
        let ended = run(&program, &["--carrier", carrier], &path);
        assert_eq!(ended.code(), Some(0), "{ended:?}");
        let trace = read(&path);
        let ratio = usual(&trace, "Source") / usual(&trace, "Sink");
        // A thread each competes with other tests for cores, and each wait for one is in its run.
        let good = match carrier {
            "workers" => 1.5..6.0,
            _ => 1.0..100.0,
        };
        assert!(good.contains(&ratio), "{carrier}: {ratio}");
    }
}

#[test]
fn a_deadlock_has_its_trace_and_its_code() {
    let program = program("watching-deadlock", DEADLOCK);
    let path = program.with_extension("pftrace");
    let ended = run(&program, &[], &path);
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    assert!(ended.stderr.contains("deadlock"));
    assert_eq!(times(&read(&path), "Sink", "receives from i").len(), 1);
}

/// Each answers the other before it asks.
const RING: &str = r#"type IEcho is interface (in integer a ; out integer b)

component Echo presents IEcho {
  constructor() { }
  behaviour {
    receive v from a
    send v on b
  }
}

one = new Echo()
other = new Echo()
connect one.b to other.a
connect other.b to one.a
"#;

#[test]
fn a_page_begins_with_what_went_wrong() {
    let wrong = |folder, text| {
        let program = program(folder, text);
        let path = program.with_extension("html");
        let mut command = hearth();
        command.arg("run").arg(&program).arg("--report").arg(&path);
        let ended = outcome(&mut command, None).expect("it ends");
        assert_eq!(ended.code(), Some(1), "{ended:?}");
        let page = fs::read_to_string(&path).expect("it was written");
        let (before, after) = page.split_once("<h2>What went wrong</h2>").expect(&page);
        assert!(!before.contains("<h2>"), "it comes first");
        let printed = after
            .split_once("<pre>")
            .and_then(|(_, rest)| rest.split_once("</pre>"));
        let (printed, after) = printed.expect("as printed");
        for line in ended.stderr.lines() {
            let line = line.trim_start_matches("hearth: ");
            assert!(printed.contains(line), "{line} is missing in {printed}");
        }
        after.to_owned()
    };
    let after = wrong("watching-ring", RING);
    let (picture, rest) = after.split_once("</figure>").expect("a picture");
    assert!(picture.contains("Who waits for whom"), "{picture}");
    for name in [">Echo#1<", ">Echo#2<", ">receives from a<"] {
        assert!(picture.contains(name), "{picture}");
    }
    assert!(
        rest.contains("it ended with code 1: deadlock: every component"),
        "{rest}"
    );

    let raises = "zero = 0\nprintInt(1 / zero)\n";
    let after = wrong("watching-exception", raises);
    assert!(after.contains("it ended with code 1: "), "{after}");
    assert!(!after.contains("Who waits for whom"), "{after}");
}

#[test]
fn a_signal_leaves_a_whole_trace_and_a_page_that_says_so() {
    let program = program("watching-signal", WAITS);
    let path = program.with_extension("pftrace");
    let page = program.with_extension("html");
    for (signal, code, end) in [
        ("-INT", 130, "was interrupted"),
        ("-TERM", 143, "was told to end"),
        ("-KILL", 137, "was killed by signal 9"),
    ] {
        let _ = fs::remove_file(&path);
        let mut child = hearth()
            .arg("run")
            .arg(&program)
            .arg("--trace")
            .arg(&path)
            .arg("--report")
            .arg(&page)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it has one"))
            .read_line(&mut line)
            .expect("it says something");
        assert_eq!(line, "ready\n");
        let whom = match signal {
            // The command could do nothing any more.
            "-KILL" => child_of(child.id()),
            _ => child.id(),
        };
        let sent = Command::new("kill")
            .arg(signal)
            .arg(whom.to_string())
            .status();
        assert!(sent.is_ok_and(|status| status.success()));
        // `wait` would close the input, which ends the program, too.
        let _input = child.stdin.take();
        assert_eq!(
            child.wait().expect("it ends").code(),
            Some(code),
            "{signal}"
        );
        let trace = read(&path);
        assert!(!times(&trace, "Reader", "running").is_empty(), "{signal}");
        let page = fs::read_to_string(&page).expect("it is written");
        assert!(page.contains(&format!("; it {end}.")), "{signal}");
    }
}

#[test]
fn who_kills_the_command_kills_the_program() {
    let program = program("watching-killed", WAITS);
    let mut child = hearth()
        .arg("run")
        .arg(&program)
        .arg("--report")
        .arg(program.with_extension("html"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut output = BufReader::new(child.stdout.take().expect("it has one"));
    let mut line = String::new();
    output.read_line(&mut line).expect("it says something");
    assert_eq!(line, "ready\n");
    let running = child_of(child.id());
    // The program waits for input for as long as this is open.
    let _input = child.stdin.take();
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    // The last who could write has ended.
    let (send, over) = channel();
    std::thread::spawn(move || send.send(output.read_to_end(&mut Vec::new()).is_ok()));
    assert_eq!(over.recv_timeout(PATIENCE), Ok(true), "it runs on");
    // A process that ends closes its files a moment before.
    let begin = Instant::now();
    while Process::of(running).is_ok() {
        assert!(begin.elapsed() < PATIENCE, "it runs on");
        std::thread::yield_now();
    }
}

fn child_of(process: u32) -> u32 {
    let path = format!("/proc/{process}/task/{process}/children");
    let text = fs::read_to_string(path).expect("the kernel tells");
    text.trim().parse().expect("it has one child")
}

#[test]
fn what_does_not_fit_is_counted() {
    let program = program("watching-window", WORK);
    let path = program.with_extension("pftrace");
    // 16 chunks of 4 KiB are the least: as much as 4064 events, of which this has fewer.
    let ended = run(&program, &["--watch-window", "0"], &path);
    assert_eq!(ended.code(), Some(0));
    assert_eq!(ended.stderr, "");
    fs::write(
        &program,
        WORK.replace("300", "9000").replace("0000 do", " do"),
    )
    .expect("it is ours");
    let ended = run(&program, &["--watch-window", "0"], &path);
    let told = ended.stderr;
    assert!(
        told.contains("events are missing: they do not fit into 0 bytes"),
        "{told}"
    );
}

#[test]
fn what_cannot_be_is_refused() {
    let program = program("watching-refused", DEADLOCK);
    let nowhere = program.with_file_name("nowhere").join("t.pftrace");
    let ended = run(&program, &[], &nowhere);
    assert_eq!(ended.code(), Some(3));
    assert!(ended.stderr.contains("there is no directory"));
    let ended = run(&program, &["--simulate", "1"], &nowhere);
    assert_eq!(ended.code(), Some(2));
    let mut command = hearth();
    command
        .arg("run")
        .arg(&program)
        .env("HEARTH_WATCH", &program);
    let ended = outcome(&mut command, None).expect("it ends");
    assert_eq!(ended.code(), Some(2));
    let told = ended.stderr;
    assert!(told.contains("the file holds something else"), "{told}");
    assert_eq!(fs::read_to_string(&program).expect("it is there"), DEADLOCK);
}

/// The work, beside 150 components that end at once, so that not all have a row.
fn many() -> String {
    let (declared, begun) = WORK.split_once("s = new").expect("it begins them");
    format!(
        "{declared}type INone is interface ()\n\ncomponent Idle presents INone {{\n  constructor() {{ }}\n  \
         behaviour {{ stop }}\n}}\n\ns = new{begun}for k = 1 .. 150 do {{ other = new Idle() }}\n"
    )
}

#[test]
fn a_page_tells_of_components_and_channels() {
    let program = program("watching-page", &many());
    for carrier in ["workers", "threads"] {
        let path = program.with_file_name(format!("{carrier}.html"));
        let mut command = hearth();
        command
            .arg("run")
            .arg(&program)
            .args(["--carrier", carrier]);
        command.arg("--report").arg(&path);
        let ended = outcome(&mut command, None).expect("it ends");
        assert_eq!(ended.code(), Some(0), "{ended:?}");
        let page = fs::read_to_string(&path).expect("it was written");
        for wanted in [
            "<!doctype html>",
            "<title>program: its run</title>",
            "153 components on ",
            "<td>Source</td>",
            "<td>Sink</td>",
            "more, together</td>",
            "Who ran when",
            "ended with code 0",
            "</html>",
        ] {
            assert!(page.contains(wanted), "{carrier}: no {wanted}");
        }
        // One too many where both ends waited to be connected: `Channel::messages`.
        let row = "<td>Source.o</td><td>Sink.i</td><td class=\"right\">";
        let messages = page
            .split(row)
            .nth(1)
            .and_then(|rest| rest.split('<').next());
        let messages: u32 = messages
            .and_then(|text| text.parse().ok())
            .unwrap_or_default();
        assert!(
            (300..=301).contains(&messages),
            "{carrier}: {messages} messages"
        );
        for unwanted in ["<script", "http://localhost", "https://"] {
            assert!(!page.contains(unwanted), "{carrier}: {unwanted}");
        }
        let has_workers = page.contains("Busy share of each worker");
        assert_eq!(has_workers, carrier == "workers");
    }
}

/// The page of a run with these options.
fn page(program: &Path, words: &[&str]) -> String {
    let path = program.with_extension("html");
    let mut command = hearth();
    command.arg("run").arg(program).args(words);
    command.arg("--report").arg(&path);
    let ended = outcome(&mut command, None).expect("it ends");
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    fs::read_to_string(&path).expect("it was written")
}

#[test]
fn what_was_expected_stands_beside_what_was_seen() {
    let program = program("watching-plan", WORK);
    let seen = page(&program, &["--place", "talk"]);
    for wanted in [
        "<h2>Expected and seen</h2>",
        "by the plan of talk",
        "How far off",
        "The busiest core was busy for ",
        "of 2 components ran mostly where the plan has them",
        "<td>Source → Sink</td>",
        "<td>Sink → Source</td>",
        "What cannot be compared, and why",
    ] {
        assert!(seen.contains(wanted), "no {wanted}");
    }
    // A plan of its own, and none.
    let plan = program.with_file_name("plan.json");
    let mut command = hearth();
    command.arg("place").arg(&program).arg("--plan").arg(&plan);
    assert_eq!(
        outcome(&mut command, None).expect("it ends").code(),
        Some(0)
    );
    let seen = page(&program, &["--place", &plan.to_string_lossy()]);
    assert!(seen.contains("by the plan in "), "{seen}");
    assert!(
        seen.contains("ran mostly where the plan has them"),
        "{seen}"
    );
    let seen = page(&program, &["--place", "single"]);
    assert!(seen.contains("the policy single, without a plan"), "{seen}");
    assert!(
        !seen.contains("ran mostly where the plan has them"),
        "{seen}"
    );
}

/// One gives strings of 100 letters, and keeps as many as it gave; the other waits for them.
const STRINGS: &str = r#"type IOut is interface (out string o)
type IIn is interface (in string i)

component Source presents IOut {
  n = 0
  kept = new integer[5000] of 7
  constructor() { }
  behaviour {
    n := n + 1
    send "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789" on o
    if n == 200 then { stop }
  }
}

component Sink presents IIn {
  n = 0
  constructor() { }
  behaviour {
    receive text from i
    n := n + 1
    if n == 200 then { stop }
  }
}

s = new Source()
t = new Sink()
connect s.o to t.i
"#;

#[test]
fn heaps_and_bytes_are_told() {
    let program = program("watching-bytes", STRINGS);
    let recorded = |words: &[&str]| {
        let file = program.with_extension("watch");
        let _ = fs::remove_file(&file);
        let mut command = hearth();
        command.arg("run").arg(&program).args(words);
        command.env("HEARTH_WATCH", &file);
        let ended = outcome(&mut command, None).expect("it ends");
        assert_eq!(ended.code(), Some(0), "{ended:?}");
        let file = fs::File::open(&file).expect("it was written");
        hearth_watch::Recording::of_file(&file).expect("it can be read")
    };
    for carrier in ["workers", "threads"] {
        let recording = recorded(&["--carrier", carrier]);
        let source = recording
            .components
            .iter()
            .find(|one| one.of == "Source")
            .expect("it was made");
        // Its array, of 4 bytes each.
        assert!(source.heap_bytes > 20_000, "{source:?}");
        let channel = &hearth_watch::figures::channels(&recording)[0];
        // Both may have waited for the first before they were connected.
        assert!(matches!(channel.messages(), 200 | 201), "{channel:?}");
        let sender = recording.component(channel.ends[0].0);
        assert_eq!(sender.map(|one| one.of.as_str()), Some("Source"));
        // 100 letters, and what the object takes itself. Nobody may have been seen to wait for one.
        if let Some(bytes) = channel.value.bytes() {
            assert!((100.0..150.0).contains(&bytes), "{carrier}: {channel:?}");
        }
    }
    let shared = recorded(&["--heaps", "shared"]);
    // What is left of it when all have ended.
    assert!(shared.heap_shared.is_some());
    assert!(page(&program, &["--heaps", "shared"]).contains("All components share one heap"));
}

/// It goes to the second core and back, whenever it has waited.
const GOES: &str = r#"type IGoer is interface (in integer i)
type IGiver is interface (out integer o)

component Goer presents IGoer {
  n = 0
  sum = 0
  constructor() { }
  behaviour {
    setCore($1)
    receive a from i
    setCore($0)
    receive b from i
    sum := sum + a + b
    n := n + 1
    if n == 20 then { stop }
  }
}

component Giver presents IGiver {
  n = 0
  constructor() { }
  behaviour {
    send n on o
    n := n + 1
    if n == 40 then { stop }
  }
}

g = new Goer()
h = new Giver()
connect h.o to g.i
"#;

#[test]
fn moves_are_told_everywhere() {
    let program = program("watching-moves", GOES);
    let path = program.with_extension("pftrace");
    let html = program.with_extension("html");
    let ended = run(
        &program,
        &["--workers", "2", "--report", &html.to_string_lossy()],
        &path,
    );
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    if is_one_core() {
        return;
    }
    let trace = read(&path);
    let marks: Vec<&str> = trace
        .packet
        .iter()
        .filter_map(|packet| packet.track_event.as_ref())
        .filter(|event| event.r#type() == trace::TYPE_INSTANT)
        .map(|event| event.name())
        .collect();
    assert!(
        marks.contains(&"moves from worker 0 to worker 1"),
        "{marks:?}"
    );
    let page = fs::read_to_string(&html).expect("it was written");
    assert!(page.contains("<td>Goer</td><td>worker 0</td><td>worker 1</td>"));
    assert!(page.contains("class=\"moment\""));
    let file = program.with_extension("watch");
    let mut command = hearth();
    command.arg("run").arg(&program).args(["--workers", "2"]);
    command.env("HEARTH_WATCH", &file);
    assert_eq!(
        outcome(&mut command, None).expect("it ends").code(),
        Some(0)
    );
    let mut command = hearth();
    command.arg("top").arg(&file);
    let told = outcome(&mut command, None).expect("it ends").stdout;
    assert!(told.contains("Goer: worker "), "{told}");
    assert!(
        told.lines().all(|line| line.chars().count() <= 80),
        "{told}"
    );
}

/// There is nowhere to go.
fn is_one_core() -> bool {
    !hearth_sys::affinity::allowed().contains(&1)
}

#[test]
fn top_tells_what_components_do() {
    let program = program("watching-top", WAITS);
    let mut child = hearth()
        .arg("run")
        .arg(&program)
        .arg("--watch")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it has one"))
        .read_line(&mut line)
        .expect("it says something");
    let number = child.id().to_string();
    let top = |words: &[&str]| {
        let mut command = hearth();
        command.arg("top").args(words);
        outcome(&mut command, None).expect("it ends")
    };
    let told = top(&[&number]);
    assert_eq!(told.code(), Some(0), "{told:?}");
    assert!(told.stdout.contains("Reader "), "{told:?}");
    assert!(told.stdout.lines().all(|line| line.chars().count() <= 80));
    let told = top(&[&number, "--json"]);
    let document: serde_json::Value = serde_json::from_str(&told.stdout).expect("it is JSON");
    assert_eq!(document["process"], child.id());
    assert_eq!(document["ended"], serde_json::Value::Null);
    let components = document["components"].as_array().expect("it is a list");
    assert!(components.iter().any(|one| one["name"] == "Reader"));
    assert!(top(&[&number]).stdout.contains("it is still running."));
    drop(child.stdin.take());
    let _ = child.kill();
    let _ = child.wait();
    let told = top(&[&std::process::id().to_string()]);
    assert_eq!(told.code(), Some(2));
    assert!(told.stderr.contains("hearth run --watch"), "{told:?}");
}

#[test]
fn top_finds_the_program_that_a_command_waits_for() {
    let program = program("watching-child", WAITS);
    let page = program.with_file_name("page.html");
    let mut child = hearth()
        .arg("run")
        .arg(&program)
        .arg("--report")
        .arg(&page)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it has one"))
        .read_line(&mut line)
        .expect("it says something");
    let mut command = hearth();
    command.arg("top").arg(child.id().to_string());
    let told = outcome(&mut command, None).expect("it ends");
    drop(child.stdin.take());
    let _ = child.wait();
    assert_eq!(told.code(), Some(0), "{told:?}");
    assert!(told.stdout.contains("Reader "), "{told:?}");
}

#[test]
fn top_reads_a_recording_that_is_over() {
    let program = program("watching-file", DEADLOCK);
    let file = program.with_file_name("run.watch");
    let mut command = hearth();
    command.arg("run").arg(&program).env("HEARTH_WATCH", &file);
    assert_eq!(
        outcome(&mut command, None).expect("it ends").code(),
        Some(1)
    );
    let mut command = hearth();
    command.arg("top").arg(&file).arg("--once");
    let told = outcome(&mut command, None).expect("it ends");
    assert_eq!(told.code(), Some(0), "{told:?}");
    assert!(told.stdout.contains("receives from i"), "{told:?}");
    assert!(told.stdout.contains("ended with code 1"), "{told:?}");
    let mut command = hearth();
    command.arg("top").arg(&program);
    let told = outcome(&mut command, None).expect("it ends");
    assert_eq!(told.code(), Some(2));
    assert!(told.stderr.contains("not a recording of a run"), "{told:?}");
    assert!(told.stderr.contains(".isf: this is"), "{told:?}");
}
