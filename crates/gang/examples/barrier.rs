//! Two programs of two threads each, which meet at a spinning barrier all the time, on two CPUs:
//! as gangs, and left to the system.
//!
//! ```sh
//! cargo run --release -p hearth-gang --example barrier -- compare SECONDS [BACK_END [SLICE_MS]]
//! ```
//!
//! *Rounds* are barriers passed by all programs, *together* is the part of a program's time
//! during which all its threads ran, *apart* the part of the time during which only one program
//! ran, *skew* is from the first to the last thread's beginning of a turn: all by the threads'
//! own clocks. One program alone, without and with a gang, is what this machine allows: others'
//! work, the hypervisor's too, parts the threads of a single program as well.
#![expect(clippy::print_stdout, reason = "a program to be looked at")]

#[path = "../tests/support/mod.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod support;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use hearth_gang::witness::judge;
use support::{in_folder, part, read};

const USAGE: &str = "barrier compare SECONDS [BACK_END [SLICE_MS]]";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(code) = part(&words) {
        return code;
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (seconds, back_end, slice) = match words[..] {
        ["compare", seconds] => (seconds, "auto", "20"),
        ["compare", seconds, back_end] => (seconds, back_end, "20"),
        ["compare", seconds, back_end, slice] => (seconds, back_end, slice),
        _ => {
            println!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    // In memory, where registries are: writing to a file on a disk waits for the disk at times.
    let memory = Path::new("/dev/shm");
    let place = match memory.is_dir() {
        true => memory.to_owned(),
        false => std::env::temp_dir(),
    };
    let folder = place.join(format!("hearth-barrier-{}", std::process::id()));
    fs::create_dir(&folder).expect("a new folder");
    let options = format!("cores=2,slice={slice},back_end={back_end}");
    let alone = run(&folder, 1, None, seconds);
    run(&folder, 1, Some(&options), seconds);
    let left = run(&folder, 2, None, seconds);
    let ganged = run(&folder, 2, Some(&options), seconds);
    let ratio = |rounds: u64, of: u64| match of {
        0 => "-".to_owned(),
        _ => format!("{:.3}", rounds as f64 / of as f64),
    };
    println!(
        "rounds of two, to those of one program alone, which nothing can exceed: gangs {}, the \
         system {}; gangs to the system {}",
        ratio(ganged, alone),
        ratio(left, alone),
        ratio(ganged, left),
    );
    fs::remove_dir_all(&folder).expect("it is ours");
    ExitCode::SUCCESS
}

/// Runs one or two programs. The rounds of all.
fn run(folder: &Path, programs: usize, options: Option<&str>, seconds: &str) -> u64 {
    let files: Vec<_> = ["a", "b"][..programs]
        .iter()
        .map(|name| folder.join(name))
        .collect();
    let children: Vec<_> = files
        .iter()
        .map(|file| {
            let program = std::env::current_exe().expect("this program");
            let program = program.display().to_string();
            let file = file.display().to_string();
            let spin = ["spin", "barrier", "2", seconds, &file];
            let gang: Vec<&str> = match options {
                None => spin.to_vec(),
                Some(options) => [&["gang", options, &program], &spin[..]].concat(),
            };
            let mut command = in_folder(folder, &gang);
            command.env("GANG_COST", folder.join("cost"));
            command.spawn().expect("it starts")
        })
        .collect();
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    let spun: Vec<_> = files.iter().map(|file| read(file)).collect();
    let rounds: u64 = spun.iter().map(|spun| spun.rounds).sum();
    let threads: Vec<_> = spun.into_iter().map(|spun| spun.threads).collect();
    let verdict = judge(&threads);
    let percent =
        |part: Option<f64>| part.map_or("-".into(), |part| format!("{:.2} %", part * 100.0));
    let micros = |ns: Option<u64>| ns.map_or("-".into(), |ns| format!("{:.0} µs", ns as f64 / 1e3));
    let used: f64 = verdict.used_ns as f64 / 1e9;
    println!(
        "{programs} {:<40} rounds {rounds:>9}  together {} {}  apart {}  skew p50 {} p90 {} p99 {} of \
         {} turns  time with any {used:.2} s",
        options.unwrap_or("by the system alone"),
        percent(verdict.together(0)),
        percent(verdict.together(1)),
        percent(verdict.apart()),
        micros(verdict.skew_ns(0.5)),
        micros(verdict.skew_ns(0.9)),
        micros(verdict.skew_ns(0.99)),
        verdict.skews_ns.len(),
    );
    if options.is_some() {
        let files = fs::read_dir(folder).expect("the folder").flatten();
        let costs = files.filter(|file| file.file_name().to_string_lossy().starts_with("cost"));
        let costs = costs.filter_map(|file| {
            let text = fs::read_to_string(file.path()).ok()?;
            // Not counted again with the next programs.
            fs::remove_file(file.path()).ok()?;
            text.parse::<u64>().ok()
        });
        let costs: u64 = costs.sum();
        println!(
            "CPU time of the processes that made the sets: {:.2} % of a CPU",
            100.0 * costs as f64 / 1e9 / seconds.parse::<f64>().unwrap_or(1.0)
        );
    }
    rounds
}
