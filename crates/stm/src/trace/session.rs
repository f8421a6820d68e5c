//! A session: a journal, and the thread that stores what comes into it.

use std::io;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use hearth_beside::Beside;
use hearth_sys::refused::Refused;
use hearth_sys::shared;
use hearth_watch::stream::{Encoding, Head, Journal, Law, Shape, Sink, Writer};

use super::recorder::Target;

/// Longest time until a full block is looked for.
const PATIENCE: Duration = Duration::from_millis(100);

/// Pause of the writer while most blocks are free. To be woken for each block costs the thread that
/// hands it over a switch, if both share a core. Usual blocks fill at 40 million records a second
/// in 0.1 ms, so a pause leaves some ten.
const PAUSE: Duration = Duration::from_millis(1);

/// First name of a journal with traces of transactions: what a reader knows them by.
pub const MARK: &str = "hearth-stm transactions";

/// Choices of a session.
#[derive(Clone, Debug)]
pub struct Options {
    /// Consequence of events that come faster than they are stored.
    pub law: Law,
    /// Bytes of blocks. More blocks than threads are needed.
    pub buffer_bytes: u64,
    /// Form of the records in the file.
    pub encoding: Encoding,
    /// The journal's file, which outlives a process that is killed. In memory without a name if
    /// there is none.
    pub journal: Option<PathBuf>,
    /// The program's name.
    pub program: String,
}

impl Default for Options {
    /// Nothing is lost: threads wait. 16 MiB of blocks, records packed by the column.
    fn default() -> Options {
        Options {
            law: Law::Block,
            buffer_bytes: 16 << 20,
            encoding: Encoding::Columns,
            journal: None,
            program: String::new(),
        }
    }
}

/// Account of a session at its end.
#[derive(Debug)]
pub struct Account<S> {
    /// Records emitted.
    pub emitted: u64,
    /// Records lost; the others are stored.
    pub lost: u64,
    /// The last reason for which the sink took no more.
    pub failure: Option<io::Error>,
    /// The sink; none if the writer panicked.
    pub sink: Option<S>,
}

/// A journal with its writer. Dropped, it ends.
pub struct Session<S: Sink + Send + 'static> {
    journal: &'static Journal,
    writer: Option<JoinHandle<Writer<S>>>,
    kept_at: Option<PathBuf>,
}

impl<S: Sink + Send + 'static> Session<S> {
    /// Begins a session whose records go to a sink.
    ///
    /// # Errors
    /// The memory for blocks or the thread cannot be had.
    pub fn begin(sink: S, options: Options) -> Result<Session<S>, Refused> {
        let shape = Shape::for_bytes(options.buffer_bytes);
        let file = match &options.journal {
            None => shared::memory_file("hearth-stm", shape.bytes())?,
            Some(path) => std::fs::File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .open(path)
                .map_err(|error| {
                    let next = "give another path for the journal";
                    Refused::new("make", path.display().to_string(), &error, next)
                })?,
        };
        let journal = Journal::begin(&file, shape, options.law)?;
        journal.name(MARK);
        let head = Head {
            process: std::process::id(),
            law: options.law,
            program: options.program,
            journal: options
                .journal
                .as_ref()
                .map_or_else(String::new, |path| path.display().to_string()),
        };
        let mut writer = Writer::new(journal, sink, head, options.encoding);
        let work = move || {
            let mut beside = Beside::new(journal.block_bytes());
            while writer.step(PATIENCE) {
                for (cpu, blocks) in writer.filled() {
                    beside.count(cpu, blocks);
                }
                if let Some(place) = beside.settle() {
                    writer.note_place(place);
                }
                if journal.blocks_free() > journal.blocks() / 2 && !journal.is_closed() {
                    std::thread::sleep(PAUSE);
                }
            }
            writer.finish();
            writer
        };
        let writer = std::thread::Builder::new()
            .name("stm-trace".into())
            .spawn(work)
            .map_err(|error| {
                let next = "allow the process more threads";
                Refused::new("start", "the thread that stores traces", &error, next)
            })?;
        Ok(Session {
            journal,
            writer: Some(writer),
            kept_at: options.journal,
        })
    }

    /// Destination for [`Stm::traces`](crate::Stm::traces).
    #[must_use]
    pub fn target(&self) -> Target {
        Target::journal(self.journal)
    }

    /// The journal.
    #[must_use]
    pub fn journal(&self) -> &'static Journal {
        self.journal
    }

    /// Ends the session and gives its account. Threads that ended, and those that closed their
    /// recorder, are complete; what others record from here on belongs to no account.
    pub fn end(mut self) -> Account<S> {
        let writer = self.stop();
        let mut account = Account {
            emitted: self.journal.homeless(),
            lost: self.journal.homeless(),
            failure: None,
            sink: None,
        };
        if let Some(mut writer) = writer {
            for total in writer.totals() {
                account.emitted += total.emitted;
                account.lost += total.lost();
            }
            account.failure = writer.failure();
            account.sink = Some(writer.into_sink());
        }
        account
    }

    fn stop(&mut self) -> Option<Writer<S>> {
        let writer = self.writer.take()?;
        self.journal.close();
        let writer = writer.join().ok()?;
        if let Some(path) = &self.kept_at
            && writer.is_whole()
        {
            let _ = std::fs::remove_file(path);
        }
        Some(writer)
    }
}

impl<S: Sink + Send + 'static> Drop for Session<S> {
    fn drop(&mut self) {
        self.stop();
    }
}
