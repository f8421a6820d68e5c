//! One run of a program of transactions, with one of all ways to trace it.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hearth_stm::trace::{Options, Recorder, Session, Silent, Tracer};
use hearth_stm::{Algorithm, Lsa, Stm, Traced};
use hearth_sys::{Linux, System as _};
use hearth_watch::stream::Sink;

use crate::codec::Codec;
use crate::kernels::{Bank, BankParameters, Name, Ran, Size, run, run_for};
use crate::output::{Form, Plan};
use crate::outside::{Outside, Probes};
use crate::tracer::Paper;

/// A way to trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracing {
    /// No tracer in the type.
    None,
    /// A tracer that does nothing, which compiles to the same.
    Silent,
    /// Hearth's records; reads and writes as well if full; chunks through a codec if there is one.
    Hearth {
        /// With reads and writes.
        is_full: bool,
        /// The codec behind the columns.
        codec: Option<Codec>,
    },
    /// The source's records.
    Paper {
        /// With reads and writes.
        is_full: bool,
        /// Form of the files.
        form: Form,
    },
    /// Functions that can be seen from outside, with probes on them or none.
    Outside {
        /// With reads and writes, if there are probes.
        probes: Option<bool>,
    },
}

/// Records of the source's smaller buffer.
pub const TEN_K: usize = 10_000;
/// Records of its larger one.
pub const MILLION: usize = 1_000_000;

const fn paper(is_full: bool, form: Form) -> Tracing {
    Tracing::Paper { is_full, form }
}

const fn hearth(is_full: bool, codec: Option<Codec>) -> Tracing {
    Tracing::Hearth { is_full, codec }
}

const FAST: Codec = Codec::Fast;
const STRONG: Codec = Codec::Strong;

/// All ways, by name. The source's are called as it calls them, with LZ4 for LZO and Zstandard for
/// zlib.
pub const CONTENDERS: &[(&str, Tracing)] = &[
    ("untraced", Tracing::None),
    ("silent", Tracing::Silent),
    ("hearth-reduced", hearth(false, None)),
    ("hearth-full", hearth(true, None)),
    ("hearth-reduced-zstd", hearth(false, Some(STRONG))),
    ("hearth-full-zstd", hearth(true, Some(STRONG))),
    ("reduced-bin10k", paper(false, Form::Binary(TEN_K))),
    ("reduced-bin1m", paper(false, Form::Binary(MILLION))),
    (
        "reduced-lz4-1ct",
        paper(false, Form::Compressors(TEN_K, FAST, 1)),
    ),
    (
        "reduced-lz4-3ct",
        paper(false, Form::Compressors(TEN_K, FAST, 3)),
    ),
    ("reduced-zstd", paper(false, Form::Inline(TEN_K, STRONG))),
    ("full-ascii", paper(true, Form::Ascii)),
    ("full-bin1", paper(true, Form::Binary(1))),
    ("full-bin10k", paper(true, Form::Binary(TEN_K))),
    ("full-bin1m", paper(true, Form::Binary(MILLION))),
    ("full-lz4", paper(true, Form::Inline(TEN_K, FAST))),
    (
        "full-lz4-1ct",
        paper(true, Form::Compressors(TEN_K, FAST, 1)),
    ),
    (
        "full-lz4-2ct",
        paper(true, Form::Compressors(TEN_K, FAST, 2)),
    ),
    (
        "full-lz4-3ct",
        paper(true, Form::Compressors(TEN_K, FAST, 3)),
    ),
    ("full-zstd", paper(true, Form::Inline(TEN_K, STRONG))),
    (
        "full-zstd-3ct",
        paper(true, Form::Compressors(TEN_K, STRONG, 3)),
    ),
    ("seen", Tracing::Outside { probes: None }),
    (
        "outside-reduced",
        Tracing::Outside {
            probes: Some(false),
        },
    ),
    ("outside-full", Tracing::Outside { probes: Some(true) }),
];

impl Tracing {
    /// The way of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Tracing> {
        let found = CONTENDERS.iter().find(|(known, _)| *known == name);
        found.map(|(_, tracing)| *tracing)
    }
}

/// Work of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// The bank for a while.
    Bank(Duration),
    /// A kernel to its end.
    Kernel(Name, Size),
}

/// A run to be made.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its work.
    pub load: Load,
    /// Its threads.
    pub threads: usize,
    /// The seed of its input.
    pub seed: u64,
    /// The folder for files; without one all bytes go to nowhere, and are counted.
    pub folder: Option<PathBuf>,
}

/// Outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Time, transactions, conflicts.
    pub ran: Ran,
    /// Bytes of the trace.
    pub bytes: u64,
    /// Events that are missing in it.
    pub lost: u64,
    /// The most memory that the process had, less what it had before, in KiB. Only of a process
    /// that makes one run.
    pub grown_kib: u64,
}

/// Makes a run.
///
/// # Errors
/// The kernel's result is wrong; memory, a file or probes cannot be had.
pub fn measure(tracing: Tracing, task: &Task) -> Result<Outcome, String> {
    let before = peak_kib();
    let (ran, bytes, lost) = match tracing {
        Tracing::None => (go::<Lsa>(Default::default(), task)?, 0, 0),
        Tracing::Silent => (go::<Traced<Lsa, Silent>>((), task)?, 0, 0),
        Tracing::Hearth {
            is_full: false,
            codec,
        } => recorded::<false>(codec, task)?,
        Tracing::Hearth {
            is_full: true,
            codec,
        } => recorded::<true>(codec, task)?,
        Tracing::Paper {
            is_full: false,
            form,
        } => written::<false>(form, task)?,
        Tracing::Paper {
            is_full: true,
            form,
        } => written::<true>(form, task)?,
        Tracing::Outside { probes } => {
            let probes = probes.map(Probes::attach).transpose()?;
            let ran = go::<Traced<Lsa, Outside>>((), task)?;
            let (bytes, lost) = probes.map_or((0, 0), Probes::end);
            (ran, bytes, lost)
        }
    };
    Ok(Outcome {
        ran,
        bytes,
        lost,
        grown_kib: peak_kib().saturating_sub(before),
    })
}

fn go<A: Algorithm>(to: <A::Tracer as Tracer>::Shared, task: &Task) -> Result<Ran, String> {
    let stm = Stm::<A>::with_algorithm().traces(to);
    match task.load {
        Load::Bank(duration) => {
            let bank = Bank::new(stm, BankParameters::PUBLISHED);
            let ran = run_for(&bank, task.threads, duration, task.seed);
            bank.audit().map(|()| ran)
        }
        Load::Kernel(name, size) => {
            let kernel = name.make(stm, size, task.threads, task.seed);
            let ran = run::<A>(&*kernel, task.threads);
            kernel.check().map(|()| ran)
        }
    }
}

/// Counts bytes and stores them if there is a file, packed first if there is a codec.
struct Store {
    bytes: Arc<AtomicU64>,
    codec: Option<Codec>,
    file: Option<File>,
}

impl Sink for Store {
    fn store(&mut self, chunks: &[u8]) -> io::Result<()> {
        let packed = self.codec.map(|codec| codec.pack(chunks)).transpose()?;
        let chunks = packed.as_deref().unwrap_or(chunks);
        self.bytes.fetch_add(chunks.len() as u64, Ordering::Relaxed);
        self.file
            .as_mut()
            .map_or(Ok(()), |file| file.write_all(chunks))
    }
}

fn file_in(folder: Option<&Path>) -> Result<Option<File>, String> {
    let path = folder.map(|folder| folder.join("trace"));
    path.map(|path| File::create(&path).map_err(|error| format!("{}: {error}", path.display())))
        .transpose()
}

fn recorded<const FULL: bool>(
    codec: Option<Codec>,
    task: &Task,
) -> Result<(Ran, u64, u64), String> {
    let bytes = Arc::new(AtomicU64::new(0));
    let store = Store {
        bytes: Arc::clone(&bytes),
        codec,
        file: file_in(task.folder.as_deref())?,
    };
    let session = Session::begin(store, Options::default()).map_err(|error| error.to_string())?;
    let mut ran = go::<Traced<Lsa, Recorder<FULL>>>(session.target(), task)?;
    let ended = Instant::now();
    let account = session.end();
    // A kernel's run is over when its trace is stored, as that of a thread with a file of its own.
    if let Load::Kernel(..) = task.load {
        ran.seconds += ended.elapsed().as_secs_f64();
    }
    match account.failure {
        Some(error) => Err(error.to_string()),
        None => Ok((ran, bytes.load(Ordering::Relaxed), account.lost)),
    }
}

fn written<const FULL: bool>(form: Form, task: &Task) -> Result<(Ran, u64, u64), String> {
    let plan = Arc::new(Plan::new(task.folder.clone(), form));
    let target = Some(Arc::clone(&plan));
    // In a thread of its own, which makes the input and checks the result: a thread stores the rest
    // of its trace when it ends.
    let ran = thread::scope(|scope| {
        let running = scope.spawn(|| go::<Traced<Lsa, Paper<FULL>>>(target, task));
        running
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    Ok((ran, plan.bytes(), 0))
}

/// The most memory that this process has had.
fn peak_kib() -> u64 {
    let status = Linux.read("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.trim().split(' ').next()?.parse().ok());
    number.unwrap_or(0)
}
