//! Records over TCP. Each program is this one again as a child, as a process has one monitor at a
//! time; the receiver is here.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::{env, fs, process, thread};

use hearth_monitor::{Monitor, Options, call};
use hearth_watch::stream::{Head, Law, Log, Received, Receiver};

const ADDRESS: &str = "HEARTH_TEST_ADDRESS";
const LAW: &str = "HEARTH_TEST_LAW";
const CALLS: u64 = 40_000;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("hearth-tcp-{}-{name}", process::id());
        let folder = env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        Folder(folder)
    }

    fn file(&self, process: u32) -> PathBuf {
        self.0.join(format!("{process}.calls"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn child(role: &str, address: SocketAddr, law: Law) -> Child {
    Command::new(env::current_exe().expect("this program"))
        .args(["--exact", role, "--nocapture"])
        .env(ADDRESS, address.to_string())
        .env(LAW, law.name())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts")
}

fn role() -> Option<(String, Law)> {
    let address = env::var(ADDRESS).ok()?;
    let law = env::var(LAW).ok()?.parse().ok()?;
    Some((address, law))
}

fn inner(number: u64) -> u64 {
    call!("Server.inner");
    std::hint::black_box(number + 1)
}

fn outer(number: u64) -> u64 {
    call!("Server.outer");
    inner(number) + inner(number + 1)
}

/// Emitted, stored and lost records of a file, and whether it has its end.
fn account(file: &Path) -> (u64, u64, u64, bool) {
    let mut log = Log::open(file).expect("a stream");
    while log.next_chunk().is_some() {}
    assert_eq!(log.damages, Vec::<String>::new());
    let accounts = log.accounts();
    let sum = |of: fn(&(hearth_watch::stream::Total, u64)) -> u64| accounts.iter().map(of).sum();
    let emitted = sum(|(total, _)| total.emitted);
    let stored = sum(|(_, stored)| *stored);
    (
        emitted,
        stored,
        sum(|(total, _)| total.lost()),
        log.has_ended,
    )
}

/// Receives until so many programs have ended.
fn receive(receiver: &Receiver, folder: &Folder, programs: usize) {
    let mut ended = 0;
    let name = |head: &Head| folder.file(head.process);
    receiver.run(&name, |news| {
        ended += usize::from(matches!(news, Received::Ends(..)));
        ended == programs
    });
}

#[test]
fn threads_call() {
    let Some((address, law)) = role() else { return };
    let options = Options::to_tcp(&address).on("*").law(law).buffer(1 << 20);
    let monitor = Monitor::begin(options).expect("it begins");
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..CALLS).map(outer).fold(0, u64::wrapping_add));
        }
    });
    let report = monitor.finish();
    assert_eq!(report.emitted, 2 * CALLS * 6);
    assert!(report.journal.is_none(), "{:?}", report.failure);
}

#[test]
fn programs_send_at_the_same_time() {
    let folder = Folder::new("programs");
    let receiver = Receiver::at("127.0.0.1:0").expect("a port");
    let mut children: Vec<Child> = Law::ALL
        .into_iter()
        .map(|law| child("threads_call", receiver.address(), law))
        .collect();
    receive(&receiver, &folder, children.len());
    for (child, law) in children.iter_mut().zip(Law::ALL) {
        assert!(child.wait().expect("it ends").success());
        let (emitted, stored, lost, has_ended) = account(&folder.file(child.id()));
        assert_eq!((emitted, has_ended), (2 * CALLS * 6, true), "{law}");
        assert_eq!(emitted, stored + lost, "{law}");
        assert!(law != Law::Block || lost == 0, "{law}: {lost} lost");
    }
}

/// Passes connections on, and breaks each later than the one before: some within a frame, others
/// within an answer.
fn break_connections(listener: &TcpListener, to: SocketAddr) {
    for (nth, near) in listener.incoming().enumerate() {
        let (Ok(near), Ok(far)) = (near, TcpStream::connect(to)) else {
            return;
        };
        let (up, down) = match nth % 2 {
            0 => (usize::MAX, 11 + 8 * nth),
            _ => (7_000 + 9_000 * nth, usize::MAX),
        };
        let pass = move |mut from: &TcpStream, mut to: &TcpStream, most: usize| {
            let (mut bytes, mut passed) = ([0; 1_000], 0);
            while passed < most {
                let room = bytes.len().min(most - passed);
                match from.read(&mut bytes[..room]) {
                    Ok(read @ 1..) if to.write_all(&bytes[..read]).is_ok() => passed += read,
                    _ => break,
                }
            }
            let _ = from.shutdown(Shutdown::Both);
            let _ = to.shutdown(Shutdown::Both);
        };
        thread::scope(|scope| {
            scope.spawn(|| pass(&near, &far, up));
            pass(&far, &near, down);
        });
    }
}

#[test]
fn broken_connections_lose_nothing_but_what_is_counted() {
    for law in [Law::Block, Law::DropNewest, Law::DropOldest] {
        let folder = Folder::new(law.name());
        let receiver = Receiver::at("127.0.0.1:0").expect("a port");
        let between = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (address, to) = (between.local_addr().expect("its"), receiver.address());
        // It ends with this program.
        thread::spawn(move || break_connections(&between, to));
        let mut child = child("threads_call", address, law);
        receive(&receiver, &folder, 1);
        assert!(child.wait().expect("it ends").success(), "{law}");
        let (emitted, stored, lost, has_ended) = account(&folder.file(child.id()));
        assert_eq!((emitted, has_ended), (2 * CALLS * 6, true), "{law}");
        assert_eq!(emitted, stored + lost, "{law}");
    }
}

#[test]
fn calls_before_and_after() {
    let Some((address, law)) = role() else { return };
    let options = Options::to_tcp(&address).on("*").law(law).buffer(1 << 20);
    let monitor = Monitor::begin(options).expect("it begins");
    let say = |word: &str| writeln!(std::io::stdout(), "{word}").expect("somebody listens");
    let mut line = String::new();
    loop {
        (0..10_000).map(outer).fold(0, u64::wrapping_add);
        line.clear();
        say("\ncalled");
        if std::io::stdin().read_line(&mut line).unwrap_or(0) == 0 {
            break;
        }
    }
    let report = monitor.finish();
    say(&format!(
        "\nemitted {} lost {}",
        report.emitted, report.lost
    ));
}

#[test]
fn a_receiver_that_comes_back_begins_a_new_file() {
    use std::io::{BufRead, BufReader};
    let folder = Folder::new("again");
    let first = Receiver::at("127.0.0.1:0").expect("a port");
    let address = first.address();
    let mut child = child("calls_before_and_after", address, Law::DropNewest);
    let mut input = child.stdin.take().expect("a pipe");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let (sender, said) = mpsc::channel();
    thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    let wait_for = |word: &str| {
        let mut words = said.iter();
        words
            .find(|line| line.starts_with(word))
            .expect("it says so")
    };
    let (once, twice) = (folder.0.join("once.calls"), folder.0.join("twice.calls"));
    // The first ends as soon as the program has begun, and has stored something by then.
    first.run(&|_| once.clone(), |news| {
        matches!(news, Received::Begins(..))
    });
    drop(first);
    wait_for("called");
    input.write_all(b"\n").expect("it listens");
    wait_for("called");
    // Its port may be in use for a moment, by the broken connection.
    let second = loop {
        match Receiver::at(address) {
            Ok(receiver) => break receiver,
            Err(_) => thread::yield_now(),
        }
    };
    input.write_all(b"\n").expect("it listens");
    drop(input);
    second.run(&|_| twice.clone(), |news| {
        matches!(news, Received::Ends(..))
    });
    let said = wait_for("emitted");
    assert!(child.wait().expect("it ends").success());
    let numbers: Vec<u64> = said
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect();
    let [emitted, lost] = numbers[..] else {
        panic!("{said}");
    };
    let (its, second, its_lost, has_ended) = account(&twice);
    assert_eq!((its, its_lost, has_ended), (emitted, lost, true));
    assert_eq!(emitted, 3 * 10_000 * 6);
    // The second file is readable by itself, and what went to the first is a gap there.
    // The first receiver may have ended before it answered that a block is stored.
    let found = account(&once).1 + second + lost;
    assert!(
        (emitted..emitted + 5_000).contains(&found),
        "{found} of {emitted}"
    );
}

#[test]
fn a_bad_address_is_an_error() {
    for (address, message) in [
        // A port that nobody has.
        ("127.0.0.1:1", "hearth watch --listen 127.0.0.1:1"),
        (
            "no-such-host.invalid:90",
            "could not reach no-such-host.invalid:90",
        ),
        ("nowhere", "could not reach nowhere"),
    ] {
        let error = Monitor::begin(Options::to_tcp(address))
            .err()
            .expect(address);
        assert!(error.to_string().contains(message), "{error}");
    }
}
