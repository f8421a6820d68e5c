//! The controller: which probes are on, and the one writer.
//!
//! A process has one monitor at a time, since its probes are statics.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hearth_beside::Beside;
use hearth_sys::affinity;
use hearth_sys::file_lock;
use hearth_sys::refused::Refused;
use hearth_sys::shared::memory_file;
use hearth_text::cause;
use hearth_watch::stream::{
    FileSink, Head, Journal, NAME, Shape, Sink, TcpSink, WholeFileSink, Writer,
};

use crate::here;
use crate::options::{Core, Destination, Mode, Options};
use crate::probe::{Probe, probes};
use crate::rules::{Rule, is_on};
use crate::switches;

/// Time between two looks for a command from outside.
const LISTEN_EVERY: Duration = Duration::from_millis(100);

/// The monitor that runs.
struct Running {
    number: u32,
    journal: &'static Journal,
    rules: Vec<Rule>,
    /// Numbers of names, by the names.
    names: HashMap<&'static str, u32>,
    /// The writer of threads that fill blocks.
    synchronous: Option<Arc<Mutex<AnyWriter>>>,
}

type AnyWriter = Writer<Box<dyn Sink + Send>>;

static RUNNING: Mutex<Option<Running>> = Mutex::new(None);
static NUMBERS: AtomicU32 = AtomicU32::new(0);
/// Action after probes were switched.
static SWITCHED: OnceLock<fn()> = OnceLock::new();

fn running() -> MutexGuard<'static, Option<Running>> {
    lock(&RUNNING)
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running monitor. Dropped, it ends.
#[must_use = "the monitor ends when this is dropped"]
pub struct Monitor {
    journal: &'static Journal,
    thread: Option<JoinHandle<()>>,
    writer: Arc<Mutex<AnyWriter>>,
    memory: Option<Chunks>,
    /// The journal's file, if it has a place in the file system.
    kept_at: Option<PathBuf>,
}

/// Reason for which a monitor does not begin.
#[derive(Debug)]
pub enum NotBegun {
    /// Another one runs.
    Second,
    /// The file cannot be made, or another monitor writes it
    /// ([`WouldBlock`](io::ErrorKind::WouldBlock)).
    File(PathBuf, io::Error),
    /// Nobody receives at an address.
    Address(String, io::Error),
    /// There is no memory for blocks, or no thread.
    Refused(Refused),
}

/// Account of a monitor at its end.
#[derive(Debug, Default)]
pub struct Report {
    /// Records emitted.
    pub emitted: u64,
    /// Records lost; the others are stored.
    pub lost: u64,
    /// The chunks, for [`Destination::Memory`].
    pub chunks: Vec<u8>,
    /// The last reason for which the file took no more.
    pub failure: Option<io::Error>,
    /// The journal that is still needed, since the file does not have everything.
    pub journal: Option<PathBuf>,
}

impl Monitor {
    /// Begins a monitor, and switches probes on by its rules.
    ///
    /// # Errors
    /// Another one runs, or the file or the memory for blocks cannot be had.
    pub fn begin(options: Options) -> Result<Monitor, NotBegun> {
        let monitor = here::quietly(|| Monitor::begin_quietly(options));
        tell_of_switches();
        monitor
    }

    fn begin_quietly(options: Options) -> Result<Monitor, NotBegun> {
        // Probes before the monitor, as where a probe is passed for the first time.
        let probes = probes();
        let mut running = running();
        if running.is_some() {
            return Err(NotBegun::Second);
        }
        let number = 1 + NUMBERS.fetch_add(1, Ordering::Relaxed);
        let memory = matches!(options.to, Destination::Memory).then(Chunks::default);
        let sink = sink(&options.to, memory.as_ref())?;
        let (kept_at, file) = journal_file(&options, number)?;
        let journal = match &options.to {
            Destination::Aggregate(_) => Journal::begin_tallies(&file, options.bytes()),
            _ => Journal::begin(&file, Shape::for_bytes(options.bytes()), options.law),
        };
        let journal = journal.map_err(NotBegun::Refused)?;
        if let Some(path) = options.file() {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            journal.note_file(path.as_os_str().as_bytes());
        }
        let mut writer = Writer::new(
            journal,
            sink,
            head(&options, kept_at.as_deref()),
            options.encoding,
        );
        // The head is in the file at once: it names the journal, should the program be killed.
        writer.account();
        let writer = Arc::new(Mutex::new(writer));
        let is_synchronous = options.mode == Mode::Synchronous;
        let thread = start(journal, Arc::clone(&writer), options.core, is_synchronous)
            .map_err(NotBegun::Refused)?;
        let monitor = running.insert(Running {
            number,
            journal,
            rules: options.rules,
            names: HashMap::new(),
            synchronous: is_synchronous.then(|| Arc::clone(&writer)),
        });
        for probe in &*probes {
            monitor.switch(probe);
        }
        Ok(Monitor {
            journal,
            thread: Some(thread),
            writer,
            memory,
            kept_at,
        })
    }

    /// Adds a rule, and switches probes by it. Returns how many probes are on, of those passed so
    /// far.
    pub fn rule(&self, rule: Rule) -> usize {
        add_rule(rule)
    }

    /// Ends the monitor: all probes are off, what was recorded is stored. Calls that began and have
    /// not ended stay so. The calling thread's records and those of ended threads are complete;
    /// what other threads emit during this belongs to no account.
    pub fn finish(mut self) -> Report {
        self.end()
    }

    fn end(&mut self) -> Report {
        let report = here::quietly(|| self.end_quietly());
        tell_of_switches();
        report
    }

    fn end_quietly(&mut self) -> Report {
        let Some(thread) = self.thread.take() else {
            return Report::default();
        };
        {
            let probes = probes();
            *running() = None;
            probes.iter().for_each(|probe| probe.set_off());
        }
        here::close();
        self.journal.close();
        // A writer that panicked has lost its blocks, and the journal says so.
        let _ = thread.join();
        let mut writer = lock(&self.writer);
        // A connection may break at the very end, and come back.
        let is_whole = writer.finish() || writer.finish();
        if is_whole && let Some(path) = &self.kept_at {
            let _ = std::fs::remove_file(path);
        }
        let totals = writer.totals();
        Report {
            emitted: totals.iter().map(|total| total.emitted).sum::<u64>()
                + self.journal.homeless(),
            lost: totals.iter().map(|total| total.lost()).sum::<u64>() + self.journal.homeless(),
            chunks: self.memory.as_ref().map(Chunks::take).unwrap_or_default(),
            failure: writer.failure(),
            journal: self.kept_at.clone().filter(|_| !is_whole),
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.end();
    }
}

impl Running {
    fn switch(&mut self, probe: &Probe) {
        let name = match is_on(&self.rules, probe.name()) {
            true => self.number_of(probe.name()),
            false => None,
        };
        match name {
            Some(name) => probe.set_on(self.number, name),
            None => probe.set_off(),
        }
    }

    /// The number of a name. None if there are too many.
    fn number_of(&mut self, name: &'static str) -> Option<u32> {
        if let Some(&number) = self.names.get(name) {
            return Some(number);
        }
        let number = self.journal.name(name)?;
        self.names.insert(name, number);
        Some(number)
    }
}

/// Switches a probe by the rules of the monitor that runs. The caller has the list of probes.
pub(crate) fn switch(probe: &Probe) {
    match &mut *running() {
        Some(running) => running.switch(probe),
        None => probe.set_off(),
    }
}

fn add_rule(rule: Rule) -> usize {
    let on = here::quietly(|| add_rule_quietly(rule));
    tell_of_switches();
    on
}

fn add_rule_quietly(rule: Rule) -> usize {
    let probes = probes();
    let mut running = running();
    if let Some(running) = &mut *running {
        let is_on = rule.is_on();
        let matching: Vec<&Probe> = probes
            .iter()
            .copied()
            .filter(|probe| rule.matches(probe.name()) && probe.is_on() != is_on)
            .collect();
        running.rules.push(rule);
        for probe in matching {
            running.switch(probe);
        }
    }
    probes.iter().filter(|probe| probe.is_on()).count()
}

/// All that a monitor locks, but for its journal.
pub(crate) struct Held {
    probes: MutexGuard<'static, Vec<&'static Probe>>,
    running: MutexGuard<'static, Option<Running>>,
}

pub(crate) fn hold() -> Held {
    let probes = probes();
    let running = running();
    Held { probes, running }
}

impl Held {
    /// Forgets the monitor, in the child of a fork.
    pub(crate) fn end_in_child(mut self) {
        self.probes.iter().for_each(|probe| probe.set_off());
        // Its writer may be locked by a thread that is not there any more.
        std::mem::forget(self.running.take());
    }
}

/// Has an action run each time that rules have changed, without any lock. The first one stays.
#[cfg_attr(
    not(feature = "tracing"),
    expect(dead_code, reason = "for a front end")
)]
pub(crate) fn after_switches(action: fn()) {
    let _ = SWITCHED.set(action);
}

fn tell_of_switches() {
    if let Some(action) = SWITCHED.get() {
        action();
    }
}

/// The journal of a monitor, if it is the one that runs.
pub(crate) fn journal_of(number: u32) -> Option<&'static Journal> {
    let running = running();
    let running = running.as_ref().filter(|running| running.number == number);
    running.map(|running| running.journal)
}

/// The number of the monitor that runs; 0 for none.
pub(crate) fn number() -> u32 {
    running().as_ref().map_or(0, |running| running.number)
}

/// The number of a name. None if there is no monitor, or if there are too many.
pub(crate) fn number_of(name: &'static str) -> Option<u32> {
    running().as_mut()?.number_of(name)
}

/// Stores full blocks in the calling thread, if the monitor is synchronous.
pub(crate) fn store_now(journal: &'static Journal) {
    let writer = running()
        .as_ref()
        .and_then(|running| running.synchronous.clone());
    if let Some(writer) = writer {
        let mut writer = lock(&writer);
        while let Some(full) = journal.try_next() {
            writer.store(full);
        }
    }
}

// ---- beginning --------------------------------------------------------------------------------

fn head(options: &Options, journal: Option<&Path>) -> Head {
    let executable = || std::env::current_exe().unwrap_or_default();
    let program = options.program.clone();
    Head {
        process: std::process::id(),
        law: options.law,
        program: program.unwrap_or_else(|| executable().display().to_string()),
        journal: journal
            .map(|path| path.display().to_string())
            .unwrap_or_default(),
    }
}

/// The journal's file. It has a place in the file system if records go to a file: in memory if the
/// system has such a place, so that no disk is written to for it; otherwise beside the file.
fn journal_file(options: &Options, number: u32) -> Result<(Option<PathBuf>, File), NotBegun> {
    let memory = Path::new("/dev/shm");
    let (path, beside) = match (&options.to, options.file()) {
        (_, Some(path)) => (path, path.with_file_name("")),
        (Destination::Tcp(_), _) => (memory, std::env::temp_dir()),
        _ => {
            let bytes = Shape::for_bytes(options.bytes()).bytes();
            let file = memory_file(NAME, bytes).map_err(NotBegun::Refused)?;
            return Ok((None, file));
        }
    };
    let mut failure = None;
    for folder in [memory, &beside] {
        match new_file(folder, number) {
            Ok((path, file)) => return Ok((Some(path), file)),
            Err(error) => failure = Some(error),
        }
    }
    let error = failure.unwrap_or_else(|| io::ErrorKind::NotFound.into());
    Err(NotBegun::File(path.to_owned(), error))
}

/// Makes a journal's file, which only its user may open. Everybody may write into `/dev/shm`, so a
/// file or link that is there already is left alone; a killed process of the same number may have
/// left it.
fn new_file(folder: &Path, number: u32) -> io::Result<(PathBuf, File)> {
    const TRIES: u32 = 100;
    let mut options = File::options();
    options.read(true).write(true).create_new(true).mode(0o600);
    let process = std::process::id();
    let mut tries = (0..TRIES).map(|nth| {
        let name = match nth {
            0 => format!("hearth-{process}-{number}.{NAME}"),
            nth => format!("hearth-{process}-{number}-{nth}.{NAME}"),
        };
        let path = folder.join(name);
        options.open(&path).map(|file| (path, file))
    });
    let is_taken = |tried: &io::Result<_>| {
        tried
            .as_ref()
            .is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists)
    };
    let first = tries.find(|tried| !is_taken(tried));
    first.unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))
}

fn sink(to: &Destination, memory: Option<&Chunks>) -> Result<Box<dyn Sink + Send>, NotBegun> {
    Ok(match (to, memory) {
        (Destination::File(path), _) => {
            let file = own_file(path);
            let file = file.map_err(|error| NotBegun::File(path.clone(), error))?;
            Box::new(FileSink::new(file))
        }
        (Destination::Aggregate(path), _) => {
            let file = own_file(path);
            let file = file.map_err(|error| NotBegun::File(path.clone(), error))?;
            Box::new(WholeFileSink::new(path.clone(), file, lock_file))
        }
        (Destination::Tcp(address), _) => {
            let sink = TcpSink::connect(address);
            Box::new(sink.map_err(|error| NotBegun::Address(address.clone(), error))?)
        }
        (_, Some(chunks)) => Box::new(chunks.clone()),
        _ => Box::new(io::sink()),
    })
}

/// An empty file that no other monitor writes. What is no regular file is taken as it is.
fn own_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let file = options
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    if file.metadata()?.is_file() {
        lock_file(&file)?;
        file.set_len(0)?;
    }
    Ok(file)
}

fn lock_file(file: &File) -> io::Result<()> {
    match file_lock::try_lock(file) {
        Ok(false) => Err(io::Error::new(
            io::ErrorKind::WouldBlock,
            "another monitor writes it",
        )),
        // Some file systems have no locks.
        _ => Ok(()),
    }
}

/// Chunks in memory, which the monitor and its writer share.
#[derive(Clone, Default)]
struct Chunks(Arc<Mutex<Vec<u8>>>);

impl Chunks {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut lock(&self.0))
    }
}

impl Sink for Chunks {
    fn store(&mut self, chunks: &[u8]) -> io::Result<()> {
        lock(&self.0).extend(chunks);
        Ok(())
    }
}

/// Starts the monitor's thread: it stores what is full, or only keeps accounts, and listens.
fn start(
    journal: &'static Journal,
    writer: Arc<Mutex<AnyWriter>>,
    core: Core,
    is_synchronous: bool,
) -> Result<JoinHandle<()>, Refused> {
    let builder = thread::Builder::new().name("hearth-monitor".into());
    let thread = builder.spawn(move || {
        // However it ends: threads that wait for a block must not wait for a writer that is gone.
        let _closes = Closes(journal);
        if let Core::One(core) = core {
            let _ = affinity::pin_current(core);
        }
        here::quietly(|| {
            let is_modelled = core == Core::Modelled && !is_synchronous;
            let mut beside = is_modelled.then(|| Beside::new(journal.block_bytes()));
            while write(journal, &writer, is_synchronous) {
                if let Some(beside) = &mut beside {
                    settle(beside, &mut lock(&writer));
                }
                if let Some(rule) = switches::heard(journal) {
                    let on = add_rule(rule);
                    switches::answer(journal, on);
                }
            }
        });
    });
    thread.map_err(|error| {
        let next = "raise the limit (ulimit -u)";
        Refused::new("start", "a monitor's thread", &error, next)
    })
}

/// Moves the writer's thread, which calls this, near the threads that record.
fn settle(beside: &mut Beside, writer: &mut AnyWriter) {
    for (cpu, blocks) in writer.filled() {
        beside.count(cpu, blocks);
    }
    if let Some(place) = beside.settle() {
        writer.note_place(place);
    }
}

/// Closes a journal when it is dropped.
struct Closes(&'static Journal);

impl Drop for Closes {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn write(journal: &'static Journal, writer: &Mutex<AnyWriter>, is_synchronous: bool) -> bool {
    if !is_synchronous {
        return lock(writer).step(LISTEN_EVERY);
    }
    let is_open = journal.wait_for_end(LISTEN_EVERY);
    lock(writer).account_if_time();
    is_open
}

impl fmt::Display for NotBegun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotBegun::Second => f.write_str("a monitor runs already; finish it first"),
            NotBegun::File(path, error) => {
                write!(
                    f,
                    "could not make {} ({error}); name another file",
                    path.display()
                )
            }
            NotBegun::Address(address, error) => write!(
                f,
                "could not reach {address} ({}); start a receiver there: hearth watch --listen \
                 {address}",
                cause(error)
            ),
            NotBegun::Refused(refused) => refused.fmt(f),
        }
    }
}

impl std::error::Error for NotBegun {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_journal_is_a_new_file() {
        let folder = std::env::temp_dir().join(format!("hearth-journals-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let victim = folder.join("victim");
        fs::write(&victim, "precious").expect("it is written");
        let (first, _) = new_file(&folder, 7).expect("a file");
        fs::remove_file(&first).expect("it is there");
        std::os::unix::fs::symlink(&victim, &first).expect("a link in its place");
        let (second, file) = new_file(&folder, 7).expect("another file");
        assert_ne!(first, second);
        assert!(second.extension().is_some_and(|end| end == NAME));
        let mode = std::os::unix::fs::MetadataExt::mode(&file.metadata().expect("data"));
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(
            fs::read_to_string(&victim).expect("it is there"),
            "precious"
        );
        fs::remove_dir_all(&folder).expect("it is there");
    }
}
