//! A trace in the Common Trace Format 1.8: a directory with a description and a stream a thread.
//!
//! An event is `call_begin` or `call_end`, as recorded; a call whose beginning is unknown has the
//! latter only. A gap is a packet without events, from the last record before it to the first
//! behind, whose count of discarded events has grown: so a reader reports the loss at its place.
//! A stream that begins with a gap has one more packet before, as a reader knows of differences
//! only.
//!
//! ```text
//! packet: magic, uuid, stream class and stream | times, sizes, discarded, number, thread | events
//! event:  u8 class | u64 time | u32 probe
//! ```
//!
//! All fields are little-endian and aligned to bytes. Times are nanoseconds since the beginning;
//! the clock's offset is the wall's time then.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::{Unwritten, mix};
use crate::recorded::{Caller, Recorded};
use crate::steps::Step;

/// CTF's mark at the beginning of a packet.
const MAGIC: u32 = 0xc1fc_1fc1;
/// Bytes of events after which a packet ends.
const PACKET: usize = 64 << 10;
/// Number of a probe that has no name; names' numbers are smaller.
const NAMELESS: u32 = u32::MAX;
const BEGIN: u8 = 0;
const END: u8 = 1;

/// Writes a trace into a directory, which it makes unless it is there and empty.
///
/// # Errors
/// Reading or writing fails, or the directory has something in it.
pub fn ctf(recorded: &Recorded, directory: &Path) -> Result<(), Unwritten> {
    fs::create_dir_all(directory).map_err(|error| at(directory, &error))?;
    let mut present = fs::read_dir(directory).map_err(|error| at(directory, &error))?;
    if present.next().is_some() {
        let error = io::Error::from(io::ErrorKind::DirectoryNotEmpty);
        return Err(at(directory, &error).into());
    }
    let uuid = uuid(recorded);
    let metadata = directory.join("metadata");
    fs::write(&metadata, described(recorded, uuid)).map_err(|error| at(&metadata, &error))?;
    let mut streams: BTreeMap<u32, Stream> = BTreeMap::new();
    let mut result: io::Result<()> = Ok(());
    recorded.visit(|step| {
        if result.is_ok() {
            let number = step.thread();
            let stream = streams
                .entry(number)
                .or_insert_with(|| Stream::new(recorded, directory, number, uuid));
            result = stream.step(step);
        }
    })?;
    result?;
    for stream in streams.values_mut() {
        stream.flush()?;
    }
    Ok(())
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// A thread's stream.
struct Stream {
    path: PathBuf,
    uuid: u128,
    number: u32,
    /// The kernel's number of the thread.
    id: u32,
    name: String,
    /// Events of the packet that is not written yet, and the time of its first.
    events: Vec<u8>,
    begin: u64,
    /// Time of the last event or gap.
    last: u64,
    /// Number of events discarded so far.
    discarded: u64,
    /// Number of packets written.
    packets: u64,
}

impl Stream {
    fn new(recorded: &Recorded, directory: &Path, number: u32, uuid: u128) -> Stream {
        let (id, name) = match recorded.caller(number) {
            Caller::Thread(id, name) => (id, name),
            Caller::Component(name) => (number, name),
        };
        Stream {
            path: directory.join(format!("thread-{number}")),
            uuid,
            number,
            id,
            // A zero ends a string.
            name: name.replace('\0', ""),
            events: Vec::new(),
            begin: 0,
            last: 0,
            discarded: 0,
            packets: 0,
        }
    }

    fn step(&mut self, step: Step<'_>) -> io::Result<()> {
        match step {
            Step::Begins { name, ns, .. } => self.event(BEGIN, ns, name),
            Step::Ends { call, .. } => match call.end {
                Some(ns) => self.event(END, ns, call.name.unwrap_or(NAMELESS)),
                None => Ok(()),
            },
            Step::Appears { .. } => Ok(()),
            Step::Gap {
                from, to, records, ..
            } => {
                self.flush()?;
                let from = from.max(self.last);
                if self.packets == 0 {
                    self.packet((from, from))?;
                }
                self.discarded += records;
                self.last = to.max(from);
                self.packet((from, self.last))
            }
        }
    }

    fn event(&mut self, class: u8, ns: u64, name: u32) -> io::Result<()> {
        // Readers refuse time that goes back.
        let ns = ns.max(self.last);
        if self.events.is_empty() {
            self.begin = ns;
        }
        self.last = ns;
        self.events.push(class);
        self.events.extend(ns.to_le_bytes());
        self.events.extend(name.to_le_bytes());
        match self.events.len() >= PACKET {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.events.is_empty() {
            true => Ok(()),
            false => self.packet((self.begin, self.last)),
        }
    }

    /// Writes a packet with the events that are kept.
    fn packet(&mut self, (begin, end): (u64, u64)) -> io::Result<()> {
        let mut bytes = Vec::new();
        bytes.extend(MAGIC.to_le_bytes());
        bytes.extend(self.uuid.to_be_bytes());
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend(u64::from(self.number).to_le_bytes());
        bytes.extend(begin.to_le_bytes());
        bytes.extend(end.to_le_bytes());
        // Both sizes, the counts, the thread's numbers, its name.
        let bytes_behind = 2 * 8 + 2 * 8 + 2 * 4 + self.name.len() + 1 + self.events.len();
        let bits = 8 * (bytes.len() + bytes_behind) as u64;
        for value in [bits, bits, self.discarded, self.packets] {
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.id.to_le_bytes());
        bytes.extend(self.name.as_bytes());
        bytes.push(0);
        bytes.append(&mut self.events);
        debug_assert_eq!(8 * bytes.len() as u64, bits);
        self.packets += 1;
        // Threads may outnumber the files that a process may have open.
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path);
        file.and_then(|mut file| file.write_all(&bytes))
            .map_err(|error| at(&self.path, &error))
    }
}

/// A number of the trace, the same whenever the recording is written.
fn uuid(recorded: &Recorded) -> u128 {
    let high = mix(recorded.began_at());
    let low = mix(high ^ u64::from(recorded.process()));
    // Version 8, made by a rule of one's own; variant 1.
    let number = u128::from(high) << 64 | u128::from(low);
    number & !(0xf << 76) & !(0b11 << 62) | 0x8 << 76 | 0b10 << 62
}

/// The description of the trace in TSDL, CTF's language for it.
fn described(recorded: &Recorded, uuid: u128) -> String {
    const SECOND: u64 = 1_000_000_000;
    let began = recorded.began_at();
    let hex = format!("{uuid:032x}");
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    let mut names = String::new();
    for (number, name) in recorded.names() {
        let _ = writeln!(names, "\t{} = {number},", quoted(name));
    }
    let _ = writeln!(names, "\t\"?\" = {NAMELESS}");
    format!(
        r#"/* CTF 1.8 */

typealias integer {{ size = 8; align = 8; signed = false; }} := uint8_t;
typealias integer {{ size = 32; align = 8; signed = false; }} := uint32_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := uint64_t;

trace {{
	major = 1;
	minor = 8;
	uuid = "{uuid}";
	byte_order = le;
	packet.header := struct {{
		uint32_t magic;
		uint8_t uuid[16];
		uint32_t stream_id;
		uint64_t stream_instance_id;
	}};
}};

env {{
	tracer_name = "hearth";
	program = {program};
	process = {process};
	law_of_loss = "{law}";
	records_without_a_thread = {homeless};
}};

clock {{
	name = "since_beginning";
	description = "Nanoseconds since the beginning of the recording";
	freq = {SECOND};
	offset_s = {seconds};
	offset = {rest};
}};

typealias integer {{
	size = 64; align = 8; signed = false;
	map = clock.since_beginning.value;
}} := ns_t;

enum probe : uint32_t {{
{names}}};

stream {{
	id = 0;
	packet.context := struct {{
		ns_t timestamp_begin;
		ns_t timestamp_end;
		uint64_t content_size;
		uint64_t packet_size;
		uint64_t events_discarded;
		uint64_t packet_seq_num;
		uint32_t thread;
		uint32_t tid;
		string {{ encoding = UTF8; }} thread_name;
	}};
	event.header := struct {{
		uint8_t id;
		ns_t timestamp;
	}};
}};

event {{
	name = "call_begin";
	id = {BEGIN};
	stream_id = 0;
	fields := struct {{ enum probe name; }};
}};

event {{
	name = "call_end";
	id = {END};
	stream_id = 0;
	fields := struct {{ enum probe name; }};
}};
"#,
        uuid = parts.join("-"),
        program = quoted(recorded.program()),
        process = recorded.process(),
        law = recorded.law().name(),
        homeless = recorded.homeless(),
        seconds = began / SECOND,
        rest = began % SECOND,
    )
}

/// A literal of TSDL.
fn quoted(text: &str) -> String {
    let mut literal = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => literal.extend(['\\', letter]),
            letter if letter.is_control() => literal.push('?'),
            letter => literal.push(letter),
        }
    }
    literal.push('"');
    literal
}
