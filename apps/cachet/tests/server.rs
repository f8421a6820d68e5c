//! The server as its clients see it: over sockets, with whole and divided requests, well and badly
//! behaved.

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use support::{ask, connect, mechanisms, read_on, read_to, start, statistic, wait_for};

#[test]
fn requests_come_whole_in_pieces_and_many_at_once() {
    let allocations = ["lock", "combine", "message", "auto"].map(|a| format!("--allocation {a}"));
    for options in allocations.into_iter().chain(mechanisms()) {
        let server = start(&options);
        let mut stream = connect(&server);
        ask(&mut stream, b"set a 0 0 1\r\nx\r\n", b"STORED\r\n");
        for byte in b"set b 7 0 3\r\nxyz\r\n" {
            stream.write_all(&[*byte]).expect("it reads");
        }
        ask(&mut stream, b"", b"STORED\r\n");
        // More than one turn serves.
        let count = 1000;
        ask(
            &mut stream,
            &b"get b\r\n".repeat(count),
            &b"VALUE b 7 3\r\nxyz\r\nEND\r\n".repeat(count),
        );
        server.stop(false);
    }
}

#[test]
fn a_socket_of_this_machine_serves_too() {
    let path = std::env::temp_dir().join(format!("cachet-test-{}", std::process::id()));
    let server = start(&format!("-s {}", path.display()));
    let mut stream = UnixStream::connect(&path).expect("it listens");
    stream.write_all(b"mn\r\nquit\r\n").expect("it reads");
    let mut answer = Vec::new();
    stream
        .read_to_end(&mut answer)
        .expect("it answers and closes");
    assert_eq!(answer, b"MN\r\n");
    server.stop(true);
    assert!(!path.exists());
}

#[test]
fn who_does_not_read_holds_up_nobody_and_gets_all_in_the_end() {
    mechanisms().for_each(|options| slow_reader(&format!("-t 1 {options}")));
}

fn slow_reader(options: &str) {
    let server = start(options);
    let mut slow = connect(&server);
    let value = vec![b'v'; 500_000];
    let mut sent = format!("set big 0 0 {}\r\n", value.len()).into_bytes();
    sent.extend_from_slice(&value);
    sent.extend_from_slice(b"\r\n");
    ask(&mut slow, &sent, b"STORED\r\n");
    let count = 60;
    slow.write_all(&b"get big\r\n".repeat(count))
        .expect("it reads");
    let mut other = connect(&server);
    ask(&mut other, b"mn\r\n", b"MN\r\n");
    let mut one = format!("VALUE big 0 {}\r\n", value.len()).into_bytes();
    one.extend_from_slice(&value);
    one.extend_from_slice(b"\r\nEND\r\n");
    for _ in 0..count {
        let mut answer = vec![0; one.len()];
        slow.read_exact(&mut answer).expect("it answers");
        assert!(answer == one);
    }
    ask(&mut slow, b"mn\r\n", b"MN\r\n");
    server.stop(false);
}

#[test]
fn what_is_much_more_than_may_wait_comes_whole() {
    for options in mechanisms() {
        let server = start(&format!("-t 1 {options}"));
        let mut stream = connect(&server);
        let value = "v".repeat(500_000);
        let sent = format!("set big 0 0 {}\r\n{value}\r\n", value.len());
        ask(&mut stream, sent.as_bytes(), b"STORED\r\n");
        let count = 60;
        let one = format!("VALUE big 0 {}\r\n{value}\r\n", value.len());
        let all = format!("{}END\r\nMN\r\n", one.repeat(count));
        for command in ["get", "gat 0"] {
            let sent = format!("{command}{}\r\nmn\r\n", " big".repeat(count));
            stream.write_all(sent.as_bytes()).expect("it reads");
            // A client that does not read yet delays no other.
            let mut other = connect(&server);
            ask(&mut other, b"mn\r\n", b"MN\r\n");
            ask(&mut stream, b"", all.as_bytes());
        }
        let few = 10_000;
        let sent: String = (0..few)
            .map(|i| format!("set k{i} 0 0 1 noreply\r\nx\r\n"))
            .collect();
        ask(&mut stream, format!("{sent}mn\r\n").as_bytes(), b"MN\r\n");
        stream
            .write_all(b"lru_crawler metadump all\r\nquit\r\n")
            .expect("it reads");
        let mut dump = String::new();
        stream.read_to_string(&mut dump).expect("it answers");
        assert!(dump.ends_with("\nEND\r\n"));
        assert_eq!(dump.matches("key=").count(), few + 1);
        server.stop(false);
    }
}

#[test]
fn connections_are_counted_whether_or_not_they_say_something() {
    let server = start("-o idle_timeout=1");
    let mut stream = connect(&server);
    let silent = [connect(&server), connect(&server)];
    wait_for("three connections", || {
        statistic(&mut stream, "curr_connections") == 3
    });
    assert_eq!(statistic(&mut stream, "total_connections"), 3);
    wait_for("the end of those that are silent", || {
        statistic(&mut stream, "idle_kicks") == 2
    });
    drop(silent);
    assert_eq!(statistic(&mut stream, "curr_connections"), 1);
    ask(&mut stream, b"stats reset\r\n", b"RESET\r\n");
    assert_eq!(statistic(&mut stream, "total_connections"), 0);
    assert_eq!(statistic(&mut stream, "idle_kicks"), 0);
    server.stop(false);
}

#[test]
fn settings_are_told_as_they_are_now() {
    let server = start("");
    let mut stream = connect(&server);
    ask(&mut stream, b"cache_memlimit 100\r\n", b"OK\r\n");
    ask(&mut stream, b"lru tune 10 30 0.1 1.0\r\n", b"OK\r\n");
    ask(&mut stream, b"lru_crawler disable\r\n", b"OK\r\n");
    stream
        .write_all(b"stats settings\r\nquit\r\n")
        .expect("it reads");
    let mut told = String::new();
    stream.read_to_string(&mut told).expect("it answers");
    for line in [
        "maxbytes 104857600",
        "hot_lru_pct 10",
        "warm_lru_pct 30",
        "lru_crawler no",
    ] {
        assert!(told.contains(&format!("STAT {line}\r\n")), "{line}: {told}");
    }
    server.stop(false);
}

#[test]
fn a_server_that_is_dropped_ends() {
    let server = start("");
    let mut stream = connect(&server);
    ask(&mut stream, b"mn\r\n", b"MN\r\n");
    drop(server);
    assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0);
}

/// The program, started by a shell after some commands, with a Unix socket.
struct Program {
    child: Child,
    socket: PathBuf,
}

impl Program {
    fn start(name: &str, before: &str, options: &str) -> Program {
        let socket = std::env::temp_dir().join(format!("cachet-{name}-{}", std::process::id()));
        let command = format!(
            "{before}; exec {} -s {} {options}",
            env!("CARGO_BIN_EXE_cachet"),
            socket.display()
        );
        let child = Command::new("sh")
            .args(["-c", &command])
            .stderr(Stdio::piped())
            .spawn()
            .expect("there is a shell");
        Program { child, socket }
    }

    fn connect(&mut self) -> UnixStream {
        let mut stream = None;
        wait_for("a socket", || {
            assert_eq!(self.child.try_wait().expect("a child"), None, "it ended");
            stream = UnixStream::connect(&self.socket).ok();
            stream.is_some()
        });
        let stream = stream.expect("it listens");
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .expect("a time");
        stream
    }

    /// Stops it and returns its error output.
    fn end(mut self) -> String {
        let _ = self.child.kill();
        let mut told = String::new();
        let errors = self.child.stderr.as_mut().expect("it was asked for");
        errors.read_to_string(&mut told).expect("it is text");
        told
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.socket);
    }
}

#[test]
fn memory_that_cannot_be_kept_in_memory_serves_nevertheless() {
    // `-u nobody`: the superuser could lock more than the limit. Rings need more locked memory than
    // this limit allows.
    let options = "-u nobody -k -t 1 --mechanism edge";
    let mut program = Program::start("locked", "ulimit -l 64", options);
    let mut stream = program.connect();
    stream.write_all(b"mn\r\n").expect("it reads");
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).expect("it answers");
    assert_eq!(&answer, b"MN\r\n");
    let told = program.end();
    assert!(told.contains("-k does nothing"), "{told}");
}

#[test]
fn many_threads_get_the_descriptors_that_they_need() {
    // The limit allows what -c and 40 threads need, and almost nothing more.
    let mut program = Program::start("threads", "ulimit -S -n 80", "-u nobody -t 40 -c 50");
    let mut all: Vec<UnixStream> = (0..50).map(|_| program.connect()).collect();
    for stream in &mut all {
        stream.write_all(b"mn\r\n").expect("it reads");
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).expect("it answers");
        assert_eq!(&answer, b"MN\r\n");
    }
    drop(all);
    program.end();
}

#[test]
fn those_that_vanish_leave_nothing_behind() {
    let server = start("-t 1");
    for _ in 0..200 {
        let mut stream = connect(&server);
        stream
            .write_all(b"set gone 0 0 100000\r\nsome of it")
            .expect("it reads");
        let mut half = connect(&server);
        half.write_all(b"get gone and never an e")
            .expect("it reads");
        half.shutdown(Shutdown::Both).expect("it is open");
    }
    let mut stream = connect(&server);
    wait_for("the others' end", || {
        statistic(&mut stream, "curr_connections") == 1
    });
    // The memory that was kept is freed when something is stored.
    ask(&mut stream, b"set a 0 0 1\r\nx\r\n", b"STORED\r\n");
    assert_eq!(statistic(&mut stream, "curr_items"), 1);
    server.stop(false);
}

#[test]
fn more_connections_than_may_be_are_told_so() {
    let server = start("-c 10");
    let mut kept: Vec<TcpStream> = (0..10).map(|_| connect(&server)).collect();
    for stream in &mut kept {
        ask(stream, b"mn\r\n", b"MN\r\n");
    }
    let mut answer = Vec::new();
    // The connection may be closed before its input is read.
    let _ = connect(&server).read_to_end(&mut answer);
    assert_eq!(answer, b"ERROR Too many open connections\r\n");
    assert_eq!(statistic(&mut kept[0], "rejected_connections"), 1);
    // It still accepts, to refuse.
    assert_eq!(statistic(&mut kept[0], "accepting_conns"), 1);
    assert_eq!(statistic(&mut kept[0], "listen_disabled_num"), 0);
    kept.pop();
    wait_for("room", || {
        let mut stream = connect(&server);
        let mut answer = [0; 4];
        let _ = stream.write_all(b"mn\r\n");
        stream.read_exact(&mut answer).is_ok() && &answer == b"MN\r\n"
    });
    server.stop(false);
}

#[test]
fn those_above_the_limit_wait_if_they_are_not_refused() {
    let server = start("-c 2 -o no_maxconns_fast");
    let mut kept: Vec<TcpStream> = (0..2).map(|_| connect(&server)).collect();
    for stream in &mut kept {
        ask(stream, b"mn\r\n", b"MN\r\n");
    }
    wait_for("a pause", || {
        statistic(&mut kept[0], "accepting_conns") == 0
    });
    assert_eq!(statistic(&mut kept[0], "listen_disabled_num"), 1);
    assert_eq!(statistic(&mut kept[0], "time_in_listen_disabled_us"), 0);
    let mut third = connect(&server);
    third.write_all(b"mn\r\n").expect("the system takes it");
    kept.pop();
    ask(&mut third, b"", b"MN\r\n");
    assert!(statistic(&mut third, "time_in_listen_disabled_us") > 0);
    // Nobody is refused, so that is not counted.
    third.write_all(b"stats\r\n").expect("it reads");
    assert!(!read_to(&mut third, "END\r\n").contains("rejected"));
    wait_for("the next pause", || {
        statistic(&mut third, "listen_disabled_num") == 2
    });
    ask(&mut third, b"stats reset\r\n", b"RESET\r\n");
    assert_eq!(statistic(&mut third, "listen_disabled_num"), 0);
    server.stop(false);
}

#[test]
fn stopping_lets_what_is_begun_come_to_its_end() {
    let server = start("");
    let mut idle = connect(&server);
    ask(&mut idle, b"mn\r\n", b"MN\r\n");
    let mut amid = connect(&server);
    ask(&mut amid, b"mn\r\nset a 0 0 3\r\nx", b"MN\r\n");
    let mut begun = connect(&server);
    ask(&mut begun, b"mn\r\nget", b"MN\r\n");
    let stopping = std::thread::spawn(move || server.stop(true));
    assert_eq!(idle.read(&mut [0; 1]).expect("an end"), 0);
    ask(&mut amid, b"yz\r\n", b"STORED\r\n");
    assert_eq!(amid.read(&mut [0; 1]).expect("an end"), 0);
    ask(&mut begun, b" b\r\n", b"END\r\n");
    assert_eq!(begun.read(&mut [0; 1]).expect("an end"), 0);
    stopping.join().expect("it ends");
}

#[test]
fn two_thousand_connections_are_served() {
    let server = start("-c 2100 -t 2");
    let wanted = 2000 * 2 + 100;
    if hearth_sys::limits::allow_open_files(wanted).is_err() {
        return;
    }
    let mut all: Vec<TcpStream> = (0..2000).map(|_| connect(&server)).collect();
    for (i, stream) in all.iter_mut().enumerate() {
        let sent = format!("set k{i} 0 0 1\r\nx\r\nget k{i}\r\n");
        let expected = format!("STORED\r\nVALUE k{i} 0 1\r\nx\r\nEND\r\n");
        ask(stream, sent.as_bytes(), expected.as_bytes());
    }
    assert_eq!(statistic(&mut all[0], "curr_connections"), 2000);
    drop(all);
    server.stop(false);
}

#[test]
fn who_tells_what_nobody_reads_serves_nevertheless() {
    let mut program = Program::start("told", "true", "-u nobody -t 1 -vv");
    // Its messages about each connection go to a pipe whose other end is closed.
    let mut stream = program.connect();
    drop(program.child.stderr.take());
    for _ in 0..3 {
        stream.write_all(b"mn\r\n").expect("it reads");
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).expect("it answers");
        assert_eq!(&answer, b"MN\r\n");
        stream = program.connect();
    }
}

#[test]
fn more_connections_than_any_system_has_are_refused() {
    for options in ["-c 18446744073709551615", "-c 18446744073709551600 -t 4"] {
        let ended = Command::new(env!("CARGO_BIN_EXE_cachet"))
            .args(["-p", "0", "-l", "127.0.0.1", "-u", "nobody"])
            .args(options.split(' '))
            .output()
            .expect("it starts");
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(3), "{told}");
        assert!(told.contains("ask for fewer connections"), "{told}");
    }
}

#[test]
fn watchers_are_told_what_happens() {
    for options in mechanisms() {
        let server = start(&format!("-m 2 -I 512k {options}"));
        let mut watcher = connect(&server);
        watcher
            .write_all(b"watch fetchers mutations evictions connevents\r\nget a\r\n")
            .expect("it reads");
        assert_eq!(read_to(&mut watcher, "\n"), "OK\r\n");
        let mut stream = connect(&server);
        ask(&mut stream, b"get a%\r\n", b"END\r\n");
        ask(&mut stream, b"set a 0 100 1\r\nx\r\n", b"STORED\r\n");
        ask(&mut stream, b"add a 0 0 1\r\nx\r\n", b"NOT_STORED\r\n");
        ask(&mut stream, b"mg a s\r\n", b"HD s1\r\n");
        ask(&mut stream, b"append a 0 0 1\r\ny\r\n", b"STORED\r\n");
        ask(&mut stream, b"mg made N30\r\n", b"HD W\r\n");
        let large = format!("cas a 0 0 600000 1\r\n{}\r\n", "v".repeat(600_000));
        let refused = b"SERVER_ERROR object too large for cache\r\n";
        ask(&mut stream, large.as_bytes(), refused);
        // Another than `set` keeps what it cannot replace.
        ask(&mut stream, b"mg a v\r\n", b"VA 2\r\nxy\r\n");
        let value = "v".repeat(100_000);
        let sent = format!("set big 0 0 {}\r\n{value}\r\n", value.len());
        for number in 0..40 {
            let sent = sent.replace("big", &format!("b{number}"));
            ask(&mut stream, sent.as_bytes(), b"STORED\r\n");
        }
        assert_eq!(statistic(&mut stream, "log_watchers"), 1);
        ask(&mut stream, b"quit\r\n", b"");
        let told = read_to(&mut watcher, "type=conn_close");
        for part in [
            " type=conn_new rip=127.0.0.1 rport=",
            " type=item_get key=a%25 status=not_found clsid=0 cfd=",
            " type=item_store key=a status=stored cmd=set ttl=100 clsid=1 cfd=",
            " type=item_store key=a status=not_stored cmd=add ttl=0 clsid=1 cfd=",
            " type=item_get key=a status=found clsid=1 cfd=",
            " type=item_store key=a status=stored cmd=append ttl=100 clsid=1 cfd=",
            " type=item_get key=made status=not_found clsid=0 cfd=",
            " type=item_store key=a status=too_large cmd=cas ttl=0 clsid=1 cfd=",
            " type=eviction key=b0 fetch=no ttl=-1 la=",
            " reason=normal cfd=",
        ] {
            assert!(
                told.contains(part) || read_on(&mut watcher, part),
                "{part}: {told}"
            );
        }
        drop(watcher);
        let mut stream = connect(&server);
        wait_for("the watcher's end", || {
            statistic(&mut stream, "log_watchers") == 0
        });
        server.stop(false);
    }
}

#[test]
fn only_known_users_are_served() {
    let path = std::env::temp_dir().join(format!("cachet-users-{}", std::process::id()));
    std::fs::write(&path, "bob:secret\n").expect("a file");
    let server = start(&format!("-Y {}", path.display()));
    let no: &[u8] = b"CLIENT_ERROR unauthenticated\r\n";
    let mut stream = connect(&server);
    ask(&mut stream, b"get a\r\nmn\r\nwatch\r\n", &no.repeat(3));
    ask(
        &mut stream,
        b"set x 0 0 9\r\nbob wrong\r\n",
        b"CLIENT_ERROR authentication failure\r\n",
    );
    ask(&mut stream, b"get a\r\n", no);
    for byte in b"set x 0 0 10\r\nbob secret\r\n" {
        stream.write_all(&[*byte]).expect("it reads");
    }
    ask(&mut stream, b"", b"STORED\r\n");
    ask(&mut stream, b"get x\r\nmn\r\n", b"END\r\nMN\r\n");
    assert_eq!(statistic(&mut stream, "auth_cmds"), 2);
    assert_eq!(statistic(&mut stream, "auth_errors"), 1);
    // The file is read again when asked for; one that is wrong changes nothing.
    for (text, password) in [("bob:new\n", "new"), ("wrong\n", "new")] {
        std::fs::write(&path, text).expect("a file");
        server.server().read_again();
        let mut stream = connect(&server);
        let sent = format!("set x 0 0 {}\r\nbob {password}\r\n", 4 + password.len());
        ask(&mut stream, sent.as_bytes(), b"STORED\r\n");
    }
    server.stop(false);
    let _ = std::fs::remove_file(&path);
}

#[test]
fn connections_and_memory_are_told_as_dashboards_read_them() {
    let server = start("-D -");
    let mut stream = connect(&server);
    ask(&mut stream, b"set a-b 0 0 1\r\nx\r\n", b"STORED\r\n");
    let mut amid = connect(&server);
    ask(&mut amid, b"mn\r\nset b 0 0 9\r\nx", b"MN\r\n");
    let mut told = |command: &str| {
        stream
            .write_all(format!("{command}\r\n").as_bytes())
            .expect("it reads");
        read_to(&mut stream, "END\r\n")
    };
    let connections = told("stats conns");
    for part in [
        ":listen_addr 127.0.0.1:",
        ":state conn_nread\r\n",
        ":secs_since_last_cmd 0\r\n",
    ] {
        assert!(connections.contains(part), "{part}: {connections}");
    }
    let slabs = told("stats slabs");
    for part in [
        "STAT 1:used_chunks ",
        "STAT 1:cmd_set 1\r\n",
        "STAT active_slabs 1\r\n",
    ] {
        assert!(slabs.contains(part), "{part}: {slabs}");
    }
    assert!(told("stats items").contains("STAT items:1:evicted_nonzero 0\r\n"));
    assert!(told("stats").contains("STAT hash_power_level "));
    let dump = told("stats detail dump");
    assert_eq!(dump, "PREFIX a get 0 hit 0 set 1 del 0\r\nEND\r\n");
    server.stop(false);
}
