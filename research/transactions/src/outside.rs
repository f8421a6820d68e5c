//! Instrumentation from outside, as the baseline: the kernel's user-space probes.
//!
//! The source's baseline is a tool on Pin, which rewrites the functions of the memory while the
//! program runs. Here [`Outside`] makes the seam's calls functions that do nothing, and
//! [`Probes`] puts a probe on each: a breakpoint, after which the kernel stores an event with the
//! function's arguments in a buffer of the core, which a thread drains. Why not another: valgrind
//! runs threads one at a time, so that no two transactions ever meet; a tracer by ptrace stops a
//! thread for two switches an event.

use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hearth_stm::trace::{Aborted, Tracer};

/// The tracer whose calls are functions that others can see.
#[derive(Default)]
pub struct Outside;

// Each keeps its arguments, lest the compiler make one function of several.

#[inline(never)]
extern "C" fn seen_start(descriptor: usize, counter: u64) {
    black_box((1_u8, descriptor, counter));
}

#[inline(never)]
extern "C" fn seen_commit(descriptor: usize, counter: u64) {
    black_box((2_u8, descriptor, counter));
}

#[inline(never)]
extern "C" fn seen_abort(descriptor: usize, counter: u64) {
    black_box((3_u8, descriptor, counter));
}

#[inline(never)]
extern "C" fn seen_read(address: usize) {
    black_box((4_u8, address));
}

#[inline(never)]
extern "C" fn seen_write(address: usize, value: u64) {
    black_box((5_u8, address, value));
}

impl Tracer for Outside {
    type Shared = ();

    #[inline]
    fn start(&mut self, descriptor: usize, counter: u64) {
        seen_start(descriptor, counter);
    }

    #[inline]
    fn read(&mut self, address: usize) {
        seen_read(address);
    }

    #[inline]
    fn write(&mut self, address: usize, value: u64) {
        seen_write(address, value);
    }

    #[inline]
    fn commit(&mut self, descriptor: usize, counter: u64) {
        seen_commit(descriptor, counter);
    }

    #[inline]
    fn abort(&mut self, descriptor: usize, counter: u64, _: Aborted) {
        seen_abort(descriptor, counter);
    }
}

/// A function's name, its address, and the registers of its arguments.
fn functions(is_full: bool) -> Vec<(&'static str, usize, &'static str)> {
    let two: [(_, extern "C" fn(usize, u64)); 3] = [
        ("start", seen_start),
        ("commit", seen_commit),
        ("abort", seen_abort),
    ];
    let mut all: Vec<_> = two
        .into_iter()
        .map(|(name, function)| (name, function as usize, "one=%di two=%si"))
        .collect();
    if is_full {
        let read: extern "C" fn(usize) = seen_read;
        let write: extern "C" fn(usize, u64) = seen_write;
        all.push(("read", read as usize, "one=%di"));
        all.push(("write", write as usize, "one=%di two=%si"));
    }
    all
}

/// Bytes of the kernel's buffer for a core, in KiB.
const BUFFER_KIB: u32 = 8192;
/// `O_NONBLOCK`.
const NONBLOCKING: i32 = 0o4000;
const ROOTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Probes on the functions of this process's [`Outside`]; they go with this value.
pub struct Probes {
    root: PathBuf,
    instance: PathBuf,
    group: String,
    names: Vec<&'static str>,
    bytes: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    drain: Option<JoinHandle<()>>,
}

impl Probes {
    /// Puts probes on starts, commits and aborts; if `is_full`, on reads and writes as well.
    ///
    /// # Errors
    /// The system has no such probes, or not for this user.
    pub fn attach(is_full: bool) -> Result<Probes, String> {
        if !cfg!(target_arch = "x86_64") {
            return Err("the registers of this processor's arguments are not known".to_owned());
        }
        let root = ROOTS
            .into_iter()
            .map(PathBuf::from)
            .find(|root| root.join("uprobe_events").exists())
            .ok_or(
                "there are no uprobe_events; as root: mount -t tracefs nodev /sys/kernel/tracing",
            )?;
        let group = format!("hearth_{}", std::process::id());
        let instance = root.join("instances").join(&group);
        let mut probes = Probes {
            root,
            instance,
            group,
            names: Vec::new(),
            bytes: Arc::default(),
            is_over: Arc::default(),
            drain: None,
        };
        let begun = probes.begin(is_full);
        begun.map_err(|error| format!("probes cannot be placed: {error}"))?;
        Ok(probes)
    }

    fn begin(&mut self, is_full: bool) -> io::Result<()> {
        fs::create_dir(&self.instance)?;
        fs::write(self.instance.join("buffer_size_kb"), BUFFER_KIB.to_string())?;
        for (name, address, arguments) in functions(is_full) {
            let (file, offset) = place_of(address)?;
            let group = &self.group;
            self.order(&format!("p:{group}/{name} {file}:{offset:#x} {arguments}"))?;
            self.names.push(name);
        }
        self.switch(true)?;
        let mut pipes = Vec::new();
        for core in fs::read_dir(self.instance.join("per_cpu"))? {
            let mut options = OpenOptions::new();
            options.read(true).custom_flags(NONBLOCKING);
            pipes.push(options.open(core?.path().join("trace_pipe_raw"))?);
        }
        let (bytes, is_over) = (Arc::clone(&self.bytes), Arc::clone(&self.is_over));
        self.drain = Some(thread::spawn(move || drain(pipes, &bytes, &is_over)));
        Ok(())
    }

    /// Writes a line into the list of probes. Without appending it would replace all others'.
    fn order(&self, line: &str) -> io::Result<()> {
        let path = self.root.join("uprobe_events");
        let mut list = OpenOptions::new().append(true).open(path)?;
        list.write_all(line.as_bytes())
    }

    fn switch(&self, on: bool) -> io::Result<()> {
        let switch = self.instance.join("events").join(&self.group);
        fs::write(switch.join("enable"), if on { "1" } else { "0" })
    }

    /// Takes the probes away, and gives the bytes that came and the events that were lost.
    #[must_use]
    pub fn end(mut self) -> (u64, u64) {
        self.stop();
        (self.bytes.load(Ordering::Relaxed), self.lost())
    }

    fn stop(&mut self) {
        // Without a switch there are no probes.
        let _ = self.switch(false);
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(drain) = self.drain.take() {
            // What it counted until it panicked stays.
            let _ = drain.join();
        }
    }

    fn lost(&self) -> u64 {
        let cores = fs::read_dir(self.instance.join("per_cpu"));
        let stats = cores.into_iter().flatten().flatten();
        let texts = stats.map(|core| fs::read_to_string(core.path().join("stats")));
        let of = |text: String| -> u64 {
            let lines = text.lines();
            let lost = lines.filter_map(|line| {
                let (name, count) = line.split_once(": ")?;
                let is_lost = ["overrun", "dropped events"].contains(&name);
                is_lost.then(|| count.trim().parse::<u64>().ok())?
            });
            lost.sum()
        };
        texts.map_while(Result::ok).map(of).sum()
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        self.stop();
        for name in &self.names {
            // One that cannot be taken away is not in anybody's way: its file's function is called
            // by this program only.
            let _ = self.order(&format!("-:{}/{name}", self.group));
        }
        let _ = fs::remove_dir(&self.instance);
    }
}

/// The file that a function of this process is in, and where in it.
fn place_of(address: usize) -> io::Result<(String, usize)> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let place = |line: &str| {
        let mut words = line.split_whitespace();
        let (begin, end) = words.next()?.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        let (begin, end) = (number(begin)?, number(end)?);
        let offset = number(words.nth(1)?)?;
        let file = words.nth(2)?;
        let is_in = (begin..end).contains(&address) && Path::new(file).is_absolute();
        is_in.then(|| (file.to_owned(), address - begin + offset))
    };
    let found = maps.lines().find_map(place);
    found.ok_or_else(|| io::Error::other("the program is in no file"))
}

fn drain(mut pipes: Vec<File>, bytes: &AtomicU64, is_over: &AtomicBool) {
    let mut page = vec![0; 1 << 16];
    loop {
        // Looked at before the last round, so that nothing is left behind it.
        let is_last = is_over.load(Ordering::Relaxed);
        let mut is_idle = true;
        for pipe in &mut pipes {
            match pipe.read(&mut page) {
                Ok(count) if count > 0 => {
                    bytes.fetch_add(count as u64, Ordering::Relaxed);
                    is_idle = false;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => is_idle = false,
                _ => {}
            }
        }
        if is_idle && is_last {
            return;
        }
        if is_idle {
            thread::sleep(Duration::from_millis(1));
        }
    }
}
