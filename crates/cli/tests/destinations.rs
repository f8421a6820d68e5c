//! Destinations of recorded calls as their users reach them: a receiver on another machine, a
//! collector of OpenTelemetry while the program runs, sums. The programs are this one again as a
//! child.

mod support;

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use hearth_monitor::{Monitor, Options, call};
use serde_json::Value;
use support::{Killed, PATIENCE, empty_folder, run_in, text};

/// Number of a program's outer calls: two records each.
const CALLS: u64 = 10_000;

/// A program that records calls: half of them at once, the others when its input ends.
#[test]
fn program() {
    let Some(options) = Options::of_env().expect("choices") else {
        return;
    };
    let monitor = Monitor::begin(options).expect("it begins");
    let half = || {
        for _ in 0..CALLS / 2 {
            call!("Shop.serve");
        }
    };
    half();
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    half();
    let report = monitor.finish();
    assert_eq!(report.emitted, 2 * CALLS);
}

/// Starts the program with these choices. It goes on when its input is closed.
fn start(choices: &str) -> Killed {
    let mut command = Command::new(env::current_exe().expect("this program"));
    command
        .args(["--exact", "program", "--nocapture"])
        .env("HEARTH_MONITOR", choices)
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    Killed(command.spawn().expect("it starts"))
}

/// Lets a program go on, and waits for its end.
fn end(mut program: Killed) {
    drop(program.0.stdin.take());
    assert!(program.0.wait().expect("it ends").success());
}

/// A command that runs during its test, and what it says.
struct Running {
    command: Killed,
    from: BufReader<ChildStderr>,
}

impl Running {
    fn start(arguments: &[&str], folder: &Path) -> Running {
        let mut command = support::hearth();
        command
            .args(arguments)
            .current_dir(folder)
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        let from = BufReader::new(child.stderr.take().expect("it is piped"));
        Running {
            command: Killed(child),
            from,
        }
    }

    /// The next thing that it says.
    fn says(&mut self) -> String {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("text");
        line
    }

    fn interrupt(&self) {
        let process = self.command.0.id().to_string();
        let sent = Command::new("kill").args(["-INT", &process]).status();
        assert!(sent.expect("there is a kill").success());
    }

    fn end(&mut self) -> Option<i32> {
        self.command.0.wait().expect("it ends").code()
    }
}

/// The figures of a file, whose account is exact.
fn figures(file: &str, folder: &Path) -> Value {
    let output = run_in(folder, &["watch", file, "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let number = |key: &str| document[key].as_u64().expect("a number");
    assert_eq!(number("emitted"), number("stored") + number("lost"));
    document
}

fn address_of(listening: &str) -> &str {
    let address = listening.trim().rsplit(' ').next();
    address.expect("an address")
}

#[test]
fn a_receiver_writes_a_file_for_each_program() {
    let folder = empty_folder("destinations-listen");
    let arguments = ["watch", "--listen", "127.0.0.1:0", "--into", "%p.calls"];
    let arguments = [arguments.as_slice(), &["--count", "2"]].concat();
    let mut receiver = Running::start(&arguments, &folder);
    let listening = receiver.says();
    assert!(listening.contains("listening at 127.0.0.1:"), "{listening}");
    let to = format!("tcp://{},law=block", address_of(&listening));
    let programs = [start(&to), start(&to)];
    let files = programs
        .each_ref()
        .map(|program| format!("{}.calls", program.0.id()));
    programs.into_iter().for_each(end);
    assert_eq!(receiver.end(), Some(0));
    for file in files {
        let figures = figures(&file, &folder);
        assert_eq!(
            (&figures["stored"], &figures["ended"]),
            (&(2 * CALLS).into(), &true.into())
        );
    }
}

#[test]
fn a_receiver_that_is_interrupted_leaves_a_readable_file() {
    let folder = empty_folder("destinations-interrupted");
    let arguments = ["watch", "--listen", "127.0.0.1:0", "--into", "shop.calls"];
    let mut receiver = Running::start(&arguments, &folder);
    let listening = receiver.says();
    let program = start(&format!("tcp://{}", address_of(&listening)));
    let begins = receiver.says();
    assert!(begins.contains("records go to shop.calls"), "{begins}");
    let begin = Instant::now();
    while !run_in(&folder, &["watch", "shop.calls", "--json"])
        .status
        .success()
    {
        assert!(begin.elapsed() < support::PATIENCE, "no records come");
    }
    receiver.interrupt();
    receiver.end();
    let before = figures("shop.calls", &folder);
    assert_eq!(before["ended"], false);
    // The program does not care.
    end(program);
}

#[test]
fn a_program_without_a_receiver_says_so() {
    // A port that was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let mut command = support::hearth();
    command.args(["watch", "--listen", "203.0.113.1:4000"]);
    let output = command.output().expect("the command starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("cannot listen at 203.0.113.1:4000"));
    let refused = Monitor::begin(Options::to_tcp(&free.expect("an address").to_string()));
    let error = refused.err().expect("nobody receives").to_string();
    assert!(error.contains("hearth watch --listen"), "{error}");
}

/// A collector that takes everything: the paths of requests, as they come.
fn collector() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, requests) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut to = stream.try_clone().expect("a socket");
            let mut from = BufReader::new(stream);
            let (mut line, mut path, mut length) = (String::new(), String::new(), 0);
            while from.read_line(&mut line).is_ok_and(|bytes| bytes > 2) {
                if let Some(rest) = line.strip_prefix("POST ") {
                    path = rest.split(' ').next().unwrap_or_default().to_owned();
                }
                let lower = line.to_ascii_lowercase();
                if let Some(value) = lower.strip_prefix("content-length: ") {
                    length = value.trim().parse().expect("a number");
                }
                line.clear();
            }
            let _ = from.read_exact(&mut vec![0; length]);
            let _ =
                to.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            if sender.send(path).is_err() {
                return;
            }
        }
    });
    (address, requests)
}

/// A program that runs, the command that sends its calls, and the collector's further requests.
fn following(folder: &Path) -> (Killed, Running, Receiver<String>) {
    let file = folder.join("shop.calls");
    let program = start(&format!("file={}", file.display()));
    while !file.exists() {
        thread::yield_now();
    }
    let (url, requests) = collector();
    let arguments = ["watch", "shop.calls", "--as", "otlp"];
    let arguments = [&arguments[..], &["--to", &url, "--follow"]].concat();
    let sender = Running::start(&arguments, folder);
    let first = requests.recv_timeout(PATIENCE);
    assert_eq!(first.expect("a request while it runs"), "/v1/traces");
    (program, sender, requests)
}

#[test]
fn calls_are_sent_while_the_program_runs() {
    let folder = empty_folder("destinations-follow");
    let (program, mut sender, requests) = following(&folder);
    end(program);
    let told = sender.says();
    assert_eq!(sender.end(), Some(0), "{told}");
    assert!(
        told.contains(&format!("{CALLS} calls and 0 gaps as spans in")),
        "{told}"
    );
    assert!(told.contains("; the program has ended"), "{told}");
    while requests.recv_timeout(PATIENCE).expect("figures") != "/v1/metrics" {}
}

#[test]
fn a_sender_that_is_interrupted_leaves_the_program_alone() {
    let folder = empty_folder("destinations-follow-interrupted");
    let (program, mut sender, _requests) = following(&folder);
    sender.interrupt();
    sender.end();
    end(program);
    assert_eq!(figures("shop.calls", &folder)["stored"], 2 * CALLS);
}

#[test]
fn sums_are_shown_as_sums() {
    let folder = empty_folder("destinations-sums");
    end(start(&format!(
        "aggregate={}",
        folder.join("shop.calls").display()
    )));
    let figures = figures("shop.calls", &folder);
    assert_eq!(figures["probes"][0]["calls"], CALLS);
    let shown = text(&run_in(&folder, &["watch", "shop.calls"]).stdout);
    assert!(
        shown.contains("Calls were added up while the program ran"),
        "{shown}"
    );
    assert!(
        shown.contains("Shop.serve") && shown.contains("20 000 counted, 0 lost"),
        "{shown}"
    );
    let output = run_in(&folder, &["watch", "shop.calls", "--page", "shop.html"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = fs::read_to_string(folder.join("shop.html")).expect("a page");
    assert!(page.contains("added up while the program ran") && page.contains("Shop.serve"));
    for form in ["csv", "perfetto", "sequence"] {
        let output = run_in(&folder, &["watch", "shop.calls", "--as", form]);
        assert_eq!(output.status.code(), Some(2), "{form}");
        let error = text(&output.stderr);
        assert!(error.contains("record with file=NAME"), "{error}");
    }
}
