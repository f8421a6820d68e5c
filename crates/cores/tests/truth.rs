//! The estimate beside the truth, in scripted situations: how much CPU time does a program get that
//! runs a thread on each of its CPUs? Only deep, for it needs a machine without other work; control
//! groups need root.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

use hearth_cores::Cores;
use hearth_sys::{affinity, clock};

const ROLE: &str = "HEARTH_TEST_ROLE";
/// Time for the estimate, and for the truth.
const WINDOW: Duration = Duration::from_millis(200);
const TRUTH: Duration = Duration::from_millis(500);
/// Longest time of an estimate, with what it reads before and after the window.
const ESTIMATE_MAX: Duration = Duration::from_secs(1);
/// Largest difference between both, in CPUs. On two CPUs a whole one would say nothing.
const NEAR: f64 = 0.25;

/// A program beside the one that asks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Neighbour {
    threads: usize,
    /// Share of the time in which its threads want to run.
    duty: f64,
    nice: i32,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the session of the one that asks, or in its control group.
    Beside,
    /// In another session.
    Session,
    /// In a control group of this weight, 1024 being usual.
    Group(u32),
}

/// A situation of the program that asks.
#[derive(Clone, Debug, Default)]
struct Situation {
    /// Its CPUs; all if there is none.
    cpus: Vec<usize>,
    /// Control groups around it, the outermost first: the weight and the quota in CPUs.
    groups: Vec<(u32, Option<f64>)>,
    neighbours: Vec<Neighbour>,
}

/// Uses CPU time until the end: all of it, or a share in steps of 5 ms.
fn work(duty: f64, end: &AtomicBool) {
    const STEP: Duration = Duration::from_millis(5);
    while !end.load(Ordering::Relaxed) {
        let begin = Instant::now();
        while begin.elapsed() < STEP.mul_f64(duty) {
            std::hint::black_box(begin);
        }
        if duty < 1.0 {
            thread::sleep(STEP.mul_f64(1.0 - duty));
        }
    }
}

/// Runs threads until the input ends or a time has passed. The CPU time that they had, in CPUs.
fn run(threads: usize, duty: f64, time: Option<Duration>) -> f64 {
    let end = AtomicBool::new(false);
    let (begin, used) = (Instant::now(), clock::process_ns(std::process::id()));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| work(duty, &end));
        }
        match time {
            Some(time) => thread::sleep(time),
            None => drop(io::stdin().read_to_end(&mut Vec::new())),
        }
        end.store(true, Ordering::Relaxed);
    });
    let used = clock::process_ns(std::process::id()).zip(used);
    let passed = begin.elapsed().as_nanos() as f64;
    used.map_or(0.0, |(now, then)| (now - then) as f64 / passed)
}

/// A child: a neighbour, or the program that asks.
#[test]
fn child() {
    let Ok(role) = env::var(ROLE) else { return };
    let mut words = role.split(' ');
    let mut next = || words.next().expect("a word").to_owned();
    if next() == "neighbour" {
        let (threads, duty) = (next().parse(), next().parse());
        run(threads.expect("a number"), duty.expect("a number"), None);
        return;
    }
    let cpus: Vec<usize> = words.map(|cpu| cpu.parse().expect("a number")).collect();
    if !cpus.is_empty() {
        affinity::allow_current(&cpus).expect("they are there");
    }
    // Neighbours need a moment to begin.
    thread::sleep(Duration::from_millis(100));
    let begin = Instant::now();
    let cores = Cores::measured(WINDOW);
    assert!(begin.elapsed() < ESTIMATE_MAX, "{:?}", begin.elapsed());
    let truth = run(cores.allowed.len(), 1.0, Some(TRUTH));
    let _ = writeln!(io::stdout(), "\nfound {} {truth}", cores.obtainable);
}

/// Control groups of a situation, of the first version.
struct Groups(Vec<PathBuf>);

impl Groups {
    const ROOT: &str = "/sys/fs/cgroup/cpu";

    fn are_there() -> bool {
        let folder = Path::new(Groups::ROOT).join(format!("hearth-test-{}", std::process::id()));
        let made = fs::create_dir(&folder);
        let _ = fs::remove_dir(&folder);
        made.is_ok()
    }

    fn make(&mut self, folder: PathBuf, (weight, quota): (u32, Option<f64>)) -> PathBuf {
        fs::create_dir(&folder).expect("root makes groups");
        fs::write(folder.join("cpu.shares"), weight.to_string()).expect("a weight");
        if let Some(cpus) = quota {
            let quota = (cpus * 100_000.0).round().to_string();
            fs::write(folder.join("cpu.cfs_quota_us"), quota).expect("a quota");
        }
        self.0.push(folder.clone());
        folder
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for folder in self.0.iter().rev() {
            // Members that have just ended may still be there.
            for _ in 0..100 {
                if fs::remove_dir(folder).is_ok() {
                    break;
                }
                thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// A child in a control group, in a session of its own or not.
fn start(role: &str, group: Option<&Path>, has_session: bool, nice: i32) -> Child {
    let mut command = Command::new(env::current_exe().expect("this program"));
    command
        .args(["--exact", "child", "--nocapture"])
        .env(ROLE, role)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let group = group.map(|group| group.join("cgroup.procs"));
    let enter = move || {
        if let Some(group) = &group {
            fs::write(group, "0")?;
        }
        // SAFETY: both calls take numbers.
        unsafe {
            if has_session && libc::setsid() < 0 {
                return Err(io::Error::last_os_error());
            }
            libc::setpriority(libc::PRIO_PROCESS, 0, nice);
        }
        Ok(())
    };
    // SAFETY: between fork and exec it makes system calls, and allocates for a path, which no other
    // thread of this test does meanwhile.
    unsafe { command.pre_exec(enter) };
    command.spawn().expect("it starts")
}

/// The estimate and the truth.
fn outcome(situation: &Situation, nth: usize) -> (f64, f64) {
    let mut groups = Groups(Vec::new());
    let name = |what: &str| format!("hearth-{}-{nth}-{what}", std::process::id());
    let mut folder = PathBuf::from(Groups::ROOT);
    for (depth, limits) in situation.groups.iter().enumerate() {
        folder = groups.make(folder.join(name(&format!("own{depth}"))), *limits);
    }
    let own_group = (!situation.groups.is_empty()).then_some(folder);
    let mut neighbours = Vec::new();
    for (which, neighbour) in situation.neighbours.iter().enumerate() {
        let group = match neighbour.place {
            Place::Beside => own_group.clone(),
            Place::Session => None,
            Place::Group(weight) => {
                let folder = Path::new(Groups::ROOT).join(name(&format!("other{which}")));
                Some(groups.make(folder, (weight, None)))
            }
        };
        let role = format!("neighbour {} {}", neighbour.threads, neighbour.duty);
        let has_session = neighbour.place != Place::Beside;
        neighbours.push(start(&role, group.as_deref(), has_session, neighbour.nice));
    }
    let cpus = situation.cpus.iter().map(|cpu| format!(" {cpu}"));
    let role = format!("asking{}", cpus.collect::<String>());
    let asking = start(&role, own_group.as_deref(), false, 0);
    let output = asking.wait_with_output().expect("it ends");
    for mut neighbour in neighbours {
        drop(neighbour.stdin.take());
        neighbour.wait().expect("it ends");
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = text.lines().find_map(|line| line.strip_prefix("found "));
    let (estimate, truth) = found
        .and_then(|found| found.split_once(' '))
        .expect("figures");
    let number = |text: &str| text.parse().expect("a number");
    (number(estimate), number(truth))
}

fn neighbour(threads: usize, duty: f64, place: Place) -> Neighbour {
    Neighbour {
        threads,
        duty,
        nice: 0,
        place,
    }
}

/// Neighbours of few and of many threads, and of some that rest in between.
fn crowds(place: Place, count: usize) -> Vec<Vec<Neighbour>> {
    let whole = [1, count, 2 * count].map(|threads| vec![neighbour(threads, 1.0, place)]);
    let part = [neighbour(count, 0.5, place), neighbour(1, 0.25, place)];
    whole.into_iter().chain(part.map(|one| vec![one])).collect()
}

fn situations_without_groups(all: &[usize]) -> Vec<Situation> {
    let count = all.len();
    let half = all[..count.div_ceil(2)].to_vec();
    let meek = Neighbour {
        nice: 10,
        ..neighbour(count, 1.0, Place::Beside)
    };
    let mut crowds = [crowds(Place::Beside, count), crowds(Place::Session, count)].concat();
    crowds.extend([vec![], vec![meek]]);
    let with = |cpus: &Vec<usize>| {
        let cpus = cpus.clone();
        crowds.iter().map(move |neighbours| Situation {
            cpus: cpus.clone(),
            groups: Vec::new(),
            neighbours: neighbours.clone(),
        })
    };
    [Vec::new(), half].iter().flat_map(with).collect()
}

fn situations_with_groups(count: usize) -> Vec<Situation> {
    let mut found = Vec::new();
    let mut add = |groups: &[(u32, Option<f64>)], neighbours: Vec<Neighbour>| {
        found.push(Situation {
            cpus: Vec::new(),
            groups: groups.to_vec(),
            neighbours,
        });
    };
    for groups in [
        [(1024, Some(0.5))].as_slice(),
        &[(1024, Some(count as f64 - 0.5))],
        &[(1024, Some(0.75)), (1024, None)],
        &[(1024, None), (512, Some(0.4))],
    ] {
        add(groups, Vec::new());
        add(groups, vec![neighbour(count, 1.0, Place::Session)]);
    }
    for (own, other) in [
        (1024, 1024),
        (512, 1024),
        (2048, 1024),
        (1024, 10_240),
        (102, 1024),
    ] {
        for threads in [1, 2 * count] {
            add(
                &[(own, None)],
                vec![neighbour(threads, 1.0, Place::Group(other))],
            );
        }
    }
    add(&[(1024, Some(1.0))], vec![neighbour(1, 1.0, Place::Beside)]);
    let beside = neighbour(1, 0.5, Place::Beside);
    let heavy = neighbour(count, 1.0, Place::Group(2048));
    add(&[(512, None), (1024, Some(1.0))], vec![beside, heavy]);
    found
}

#[test]
fn the_estimate_is_near_the_truth() {
    if env::var_os(ROLE).is_some() || env::var_os("HEARTH_TEST_DEEP").is_none() {
        return;
    }
    let all = affinity::allowed();
    let mut situations = situations_without_groups(&all);
    if Groups::are_there() {
        situations.extend(situations_with_groups(all.len()));
    }
    let (mut far, mut table) = (0, String::from("estimate, truth, situation\n"));
    for (nth, situation) in situations.iter().enumerate() {
        let (estimate, truth) = outcome(situation, nth);
        let is_far = (estimate - truth).abs() > NEAR;
        far += usize::from(is_far);
        let mark = if is_far { "!" } else { " " };
        table.push_str(&format!(
            "{mark} {estimate:5.2} {truth:5.2}  {situation:?}\n"
        ));
    }
    let _ = io::stderr().write_all(table.as_bytes());
    assert!(
        far <= situations.len() / 20,
        "{far} of {} are far",
        situations.len()
    );
}
