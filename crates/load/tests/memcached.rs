//! The program against memcached, where memcached is installed.

#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

struct Server(Child, String);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a memcached, or prints one line with the reason why not.
fn memcached(options: &[&str]) -> Option<Server> {
    let port = TcpListener::bind("127.0.0.1:0")
        .ok()?
        .local_addr()
        .ok()?
        .port();
    let started = Command::new("memcached")
        .args(["-l", "127.0.0.1", "-U", "0", "-u", "root", "-t", "2", "-p"])
        .arg(port.to_string())
        .args(options)
        .stderr(Stdio::null())
        .spawn();
    let Ok(child) = started else {
        eprintln!(
            "skipped: there is no memcached; install it, for example: apt-get install memcached"
        );
        return None;
    };
    let server = Server(child, format!("127.0.0.1:{port}"));
    for _ in 0..200 {
        if TcpStream::connect(&server.1).is_ok() {
            return Some(server);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("memcached does not listen at {}", server.1);
}

fn load(server: &Server, options: &[&str]) -> (i32, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_cachet-load"))
        .arg(&server.1)
        .args(["-w", "50ms", "-s", "600ms", "--json", "-"])
        .args(options)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let json = serde_json::from_str(&text).unwrap_or_else(|_| {
        panic!("{text}{}", String::from_utf8_lossy(&output.stderr));
    });
    (output.status.code().unwrap_or(-1), json)
}

#[test]
fn memcached_is_found_honest_amid_chaos_in_both_protocols() {
    let Some(server) = memcached(&["-m", "256"]) else {
        return;
    };
    for protocol in ["text", "meta"] {
        let options = [
            "--verify",
            "--keeps-all",
            "--chaos",
            "-c",
            "50",
            "-t",
            "2",
            "-n",
            "2000",
            "--value-size",
            "24-3000",
            "--protocol",
            protocol,
        ];
        let (code, json) = load(&server, &options);
        let verified = &json["runs"][0]["verified"];
        assert_eq!(code, 0, "{verified}");
        assert!(verified["looked_at"].as_u64() > Some(1000), "{verified}");
        assert_eq!(json["runs"][0]["unanswered"], 0);
    }
}

#[test]
fn a_small_memory_loses_values_but_shows_no_wrong_ones() {
    let Some(server) = memcached(&["-m", "4"]) else {
        return;
    };
    let options = ["--verify", "-c", "20", "-n", "20k", "--spread", "zipf"];
    let (code, json) = load(&server, &options);
    let run = &json["runs"][0];
    assert_eq!(code, 0, "{run}");
    assert!(run["replies"]["misses"].as_u64() > Some(0), "{run}");
}

#[test]
fn the_process_of_the_server_is_watched() {
    let Some(server) = memcached(&[]) else { return };
    let process = server.0.id().to_string();
    let (code, json) = load(&server, &["--pid", &process, "-n", "1000", "--repeat", "2"]);
    assert_eq!(code, 0);
    for run in json["runs"].as_array().unwrap() {
        assert!(run["server"]["cores"].as_f64() > Some(0.0), "{run}");
        assert!(
            run["generator"]["ns_per_request"].as_f64() > Some(0.0),
            "{run}"
        );
    }
}
