//! No core belongs to two programs: processes invade and retreat at random, and are killed,
//! stopped, forked and replaced at any moment, while somebody also damages the registry. A referee
//! in shared memory sees whom a core belongs to. Deep, it is a million operations.

mod support;

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

use hearth_claim::{Claim, ClaimError, Constraints, Core};
use hearth_sys::shared;
use support::site;

const FOLDER: &str = "HEARTH_TEST_FOLDER";
const CORES: u32 = 8;
const PLAYERS: usize = 8;

/// Words of the referee.
const OPERATIONS: usize = 0;
const VIOLATIONS: usize = 1;
const ENDS: usize = 2;
/// The process that has a core, by the core.
const OWNERS: usize = 16;
/// Times of operations by their logarithm, ns.
const TIMES: usize = 64;
const WORDS: usize = 128;

fn referee(folder: &Path) -> &'static [AtomicU64] {
    let mut options = File::options();
    let file = options.read(true).write(true).create(true).truncate(false);
    let file = file.open(folder.join("referee")).expect("a file");
    file.set_len(WORDS as u64 * 8).expect("its length");
    shared::map(&file, WORDS * 8).expect("it is mapped")
}

fn has_ended(process: u64) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else {
        return true;
    };
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    matches!(state, Some('Z' | 'X'))
}

struct Player {
    referee: &'static [AtomicU64],
    claim: Claim,
    marked: Vec<Core>,
    random: fastrand::Rng,
}

impl Player {
    fn begin(folder: &Path) -> Player {
        let referee = referee(folder);
        let own = u64::from(std::process::id());
        for core in 0..CORES as usize {
            // What this process had before it was replaced.
            let _ =
                referee[OWNERS + core].compare_exchange(own, 0, Ordering::SeqCst, Ordering::SeqCst);
        }
        Player {
            referee,
            claim: Claim::within(&folder.join("claims"), site(), "player").expect("it begins"),
            marked: Vec::new(),
            random: fastrand::Rng::new(),
        }
    }

    /// Tells the referee of cores that the claim has got.
    fn mark(&mut self) {
        let own = u64::from(std::process::id());
        for core in self.claim.cores().to_vec() {
            if self.marked.contains(&core) {
                continue;
            }
            self.marked.push(core);
            let owner = &self.referee[OWNERS + core.0 as usize];
            let before = owner.swap(own, Ordering::SeqCst);
            if before != 0 && before != own && !has_ended(before) {
                self.referee[VIOLATIONS].fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    fn unmark(&mut self, cores: &[Core]) {
        self.marked.retain(|core| !cores.contains(core));
        let own = u64::from(std::process::id());
        for core in cores {
            let owner = &self.referee[OWNERS + core.0 as usize];
            if owner
                .compare_exchange(own, 0, Ordering::SeqCst, Ordering::SeqCst)
                .is_err()
            {
                self.referee[VIOLATIONS].fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    fn timed<R>(&mut self, operation: impl FnOnce(&mut Claim) -> R) -> R {
        let begin = Instant::now();
        let result = operation(&mut self.claim);
        let ns = begin.elapsed().as_nanos() as u64;
        self.referee[TIMES + ns.ilog2() as usize].fetch_add(1, Ordering::Relaxed);
        self.referee[OPERATIONS].fetch_add(1, Ordering::Relaxed);
        result
    }

    fn step(&mut self, folder: &Path) {
        match self.random.u32(..4000) {
            0 => {
                let cores = self.marked.clone();
                self.unmark(&cores);
                self.claim.retreat_from(&cores).expect("it gives back");
                self.claim =
                    Claim::within(&folder.join("claims"), site(), "again").expect("begins");
            }
            1 => {
                let _ = Command::new("true").status();
            }
            2 => self.fork(),
            3 => {
                // The next image has no cores.
                let error = player(folder).exec();
                panic!("{error}");
            }
            4..2000 => {
                let least = self.random.u32(1..=3);
                let wish = Constraints::cores(least..=least + self.random.u32(..4));
                let wish = if self.random.bool() {
                    wish.scatter()
                } else {
                    wish
                };
                match self.timed(|claim| claim.invade(wish)) {
                    Ok(_) | Err(ClaimError::Crowded) => self.mark(),
                    Err(error) => panic!("{error}"),
                }
            }
            _ => {
                let count = self.random.usize(..=self.marked.len());
                self.random.shuffle(&mut self.marked);
                let cores = self.marked[..count].to_vec();
                self.unmark(&cores);
                self.timed(|claim| claim.retreat_from(&cores))
                    .expect("it gives back");
            }
        }
    }

    /// A child has no claim.
    fn fork(&mut self) {
        // SAFETY: the program has one thread; the child calls what it needs and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let refused = self.claim.invade(Constraints::cores(1..=1));
            let is_right = matches!(refused, Err(ClaimError::Forked));
            // SAFETY: it ends the child, without destructors.
            unsafe { libc::_exit(i32::from(!is_right)) };
        }
        let mut status = 0;
        // SAFETY: the child is ours.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        if status != 0 {
            self.referee[VIOLATIONS].fetch_add(1, Ordering::SeqCst);
        }
    }
}

fn player(folder: &Path) -> Command {
    let mut command = Command::new(env::current_exe().expect("this program"));
    command
        .args(["--exact", "plays", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .stdout(Stdio::null());
    command
}

/// A player, if this process is one. It plays on the test's thread while the main thread waits.
#[test]
fn plays() {
    let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let mut player = Player::begin(&folder);
    while player.referee[ENDS].load(Ordering::Relaxed) == 0 {
        player.step(&folder);
    }
}

struct Table {
    folder: PathBuf,
    players: Vec<Child>,
}

impl Drop for Table {
    fn drop(&mut self) {
        for player in &mut self.players {
            let _ = player.kill();
            let _ = player.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Table {
    fn new(name: &str) -> Table {
        let place = if Path::new("/dev/shm").is_dir() {
            "/dev/shm"
        } else {
            "/tmp"
        };
        let folder = Path::new(place).join(format!("hearth-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("claims")).expect("a folder");
        let players = (0..PLAYERS).map(|_| player(&folder).spawn().expect("it starts"));
        let players = players.collect();
        Table { folder, players }
    }

    fn signal(&self, which: usize, signal: i32) {
        let process = i32::try_from(self.players[which].id()).expect("a number");
        // SAFETY: it sends a signal to a child that has not been waited for.
        unsafe { libc::kill(process, signal) };
    }

    fn kill(&mut self, which: usize) {
        let _ = self.players[which].kill();
        let _ = self.players[which].wait();
    }

    fn restart(&mut self, which: usize) {
        self.kill(which);
        self.players[which] = player(&self.folder).spawn().expect("it starts");
    }

    /// Plays until so many operations were done, with something done in between.
    fn play(&mut self, operations: u64, mut between: impl FnMut(&mut Table, &mut fastrand::Rng)) {
        let referee = referee(&self.folder);
        let mut random = fastrand::Rng::new();
        let begin = Instant::now();
        while referee[OPERATIONS].load(Ordering::Relaxed) < operations {
            between(self, &mut random);
            for which in 0..PLAYERS {
                if let Ok(Some(status)) = self.players[which].try_wait() {
                    panic!("a player ended with {status}");
                }
            }
            let patience = Duration::from_secs(300 + operations / 500);
            assert!(begin.elapsed() < patience, "they do not play");
        }
        assert_eq!(referee[VIOLATIONS].load(Ordering::SeqCst), 0);
    }
}

fn operations() -> u64 {
    match env::var_os("HEARTH_TEST_DEEP") {
        Some(_) => 1_000_000,
        None => 10_000,
    }
}

fn disturb(table: &mut Table, random: &mut fastrand::Rng) {
    thread::sleep(Duration::from_millis(random.u64(1..10)));
    let which = random.usize(..PLAYERS);
    if random.u32(..4) == 0 {
        table.restart(which);
    } else {
        table.signal(which, libc::SIGSTOP);
        thread::sleep(Duration::from_millis(random.u64(..10)));
        table.signal(which, libc::SIGCONT);
    }
}

#[test]
fn no_core_belongs_to_two() {
    if env::var_os(FOLDER).is_some() {
        return;
    }
    let mut table = Table::new("exclusive");
    table.play(operations(), disturb);
    let referee = referee(&table.folder);
    let times: Vec<u64> = (0..64)
        .map(|at| referee[TIMES + at].load(Ordering::Relaxed))
        .collect();
    let all: u64 = times.iter().sum();
    let within = |part: f64| {
        let mut seen = 0;
        let is_there = |count: &u64| {
            seen += count;
            seen as f64 >= part * all as f64
        };
        let at = times.iter().position(is_there).unwrap_or_default();
        2_f64.powi(at as i32 + 1) / 1e3
    };
    let told = format!(
        "half within {:.1} µs, 99 % within {:.1}\n",
        within(0.5),
        within(0.99)
    );
    let _ = std::io::stderr().write_all(told.as_bytes());
    // Whoever is killed loses its cores.
    (0..PLAYERS).for_each(|which| table.kill(which));
    let begin = Instant::now();
    let mut claim = Claim::within(&table.folder.join("claims"), site(), "last").expect("begins");
    let grant = claim
        .invade(Constraints::cores(CORES..=CORES))
        .expect("it answers");
    assert!(grant.is_enough(), "{grant:?}");
    assert!(begin.elapsed() < Duration::from_secs(5));
}

/// Somebody writes into the newest state, shortens or removes it, or removes all states.
#[test]
fn a_damaged_registry_is_made_anew() {
    if env::var_os(FOLDER).is_some() {
        return;
    }
    let mut table = Table::new("damaged");
    table.play(operations() / 5, |table, random| {
        disturb(table, random);
        let states = || -> Vec<PathBuf> {
            let files = fs::read_dir(table.folder.join("claims")).expect("a folder");
            let files = files.flatten().map(|file| file.path());
            let mut states: Vec<PathBuf> = files
                .filter(|path| path.extension().is_some_and(|end| end == "state"))
                .collect();
            states.sort();
            states
        };
        match random.u32(..20) {
            0 => states().iter().for_each(|path| drop(fs::remove_file(path))),
            1 => {
                if let Some(newest) = states().last() {
                    let _ = fs::write(newest, "nonsense");
                }
            }
            2 => {
                if let Some(newest) = states().last()
                    && let Ok(file) = File::options().write(true).open(newest)
                {
                    let _ = file.set_len(20);
                }
            }
            3 => {
                // The one before says that cores are free which were taken since.
                if let Some(newest) = states().last() {
                    let _ = fs::remove_file(newest);
                }
            }
            _ => {}
        }
    });
}
