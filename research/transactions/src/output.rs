//! Ways of a thread's records into its file.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;

use hearth_beside::Beside;

use crate::codec::Codec;
use crate::record::{BYTES, Record};
use crate::ring::Ring;

/// Bytes of a packed block's header: thread, sequence number, raw size, packed size.
pub(crate) const HEADER: usize = 16;

/// Form of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text: one formatted write an event, without a buffer.
    Ascii,
    /// Records as they are, through a buffer of so many.
    Binary(usize),
    /// Blocks of so many records, which the worker packs itself.
    Inline(usize, Codec),
    /// Blocks of so many records, which compressors pack, so many for each worker.
    Compressors(usize, Codec, usize),
}

/// Destination of all threads of a run.
pub struct Plan {
    /// A folder for the files; without one the bytes are written to nowhere, and counted.
    pub folder: Option<PathBuf>,
    /// Their form.
    pub form: Form,
    threads: AtomicU32,
    bytes: Arc<AtomicU64>,
}

impl Plan {
    /// A destination that no thread has used.
    #[must_use]
    pub fn new(folder: Option<PathBuf>, form: Form) -> Plan {
        Plan {
            folder,
            form,
            threads: AtomicU32::new(0),
            bytes: Arc::default(),
        }
    }

    /// Bytes written so far. Threads that have ended have written all of theirs.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn file(&self, name: &str) -> Target {
        let path = match &self.folder {
            Some(folder) => folder.join(name),
            None => PathBuf::from("/dev/null"),
        };
        let file = File::options().create(true).append(true).open(&path);
        Target {
            file: file.unwrap_or_else(|error| panic!("{}: {error}", path.display())),
            bytes: Arc::clone(&self.bytes),
        }
    }
}

/// A file whose bytes are counted.
struct Target {
    file: File,
    bytes: Arc<AtomicU64>,
}

impl Target {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let written = self.file.write_all(bytes);
        written.unwrap_or_else(|error| panic!("a trace's file takes no more: {error}"));
    }

    fn put_block(&mut self, (thread, number): (u32, u32), codec: Codec, raw: &[u8]) {
        let packed = codec.pack(raw).unwrap_or_else(|error| panic!("{error}"));
        let mut block = Vec::with_capacity(HEADER + packed.len());
        for part in [thread, number, raw.len() as u32, packed.len() as u32] {
            block.extend(part.to_le_bytes());
        }
        block.extend(packed);
        self.put(&block);
    }
}

/// Destination of full buffers.
enum Outlet {
    Text(Target),
    File(Target),
    Packed {
        target: Target,
        codec: Codec,
        thread: u32,
        blocks: u32,
    },
    Ring {
        ring: Arc<Ring>,
        compressors: Vec<JoinHandle<()>>,
    },
}

/// A thread's output.
pub(crate) struct Output {
    buffer: Vec<u8>,
    bytes_max: usize,
    outlet: Outlet,
}

impl Output {
    /// The output of the calling thread; its compressors start.
    pub(crate) fn of_thread(plan: &Plan) -> Output {
        let thread = plan.threads.fetch_add(1, Ordering::Relaxed);
        let (elements, outlet) = match plan.form {
            Form::Ascii => (0, Outlet::Text(plan.file(&format!("{thread}.txt")))),
            Form::Binary(elements) => {
                let outlet = Outlet::File(plan.file(&format!("{thread}.bin")));
                (elements, outlet)
            }
            Form::Inline(elements, codec) => {
                let outlet = Outlet::Packed {
                    target: plan.file(&format!("{thread}-0.blocks")),
                    codec,
                    thread,
                    blocks: 0,
                };
                (elements, outlet)
            }
            Form::Compressors(elements, codec, number) => {
                let number = number.max(1);
                // The worker has one block from the start.
                let ring = Arc::new(Ring::new(number, elements * BYTES));
                let start = |nth: usize| {
                    let mut target = plan.file(&format!("{thread}-{nth}.blocks"));
                    let ring = Arc::clone(&ring);
                    std::thread::spawn(move || {
                        let mut beside = Beside::new(elements * BYTES);
                        while let Some(full) = ring.take_full() {
                            if let Some(cpu) = full.cpu {
                                beside.count(cpu, 1);
                            }
                            beside.settle();
                            target.put_block((thread, full.number), codec, &full.block);
                            ring.give_back(full.block);
                        }
                    })
                };
                let compressors = (0..number).map(start).collect();
                (elements, Outlet::Ring { ring, compressors })
            }
        };
        let bytes_max = elements.max(1) * BYTES;
        Output {
            buffer: Vec::with_capacity(bytes_max),
            bytes_max,
            outlet,
        }
    }

    /// Writes a record.
    #[inline]
    pub(crate) fn put(&mut self, record: Record) {
        if let Outlet::Text(target) = &mut self.outlet {
            return target.put(record.line().as_bytes());
        }
        record.put(&mut self.buffer);
        if self.buffer.len() >= self.bytes_max {
            self.flush();
        }
    }

    #[cold]
    #[inline(never)]
    fn flush(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        match &mut self.outlet {
            Outlet::Text(_) => {}
            Outlet::File(target) => target.put(&self.buffer),
            Outlet::Packed {
                target,
                codec,
                thread,
                blocks,
            } => {
                target.put_block((*thread, *blocks), *codec, &self.buffer);
                *blocks += 1;
            }
            Outlet::Ring { ring, .. } => {
                ring.hand_over(std::mem::take(&mut self.buffer));
                self.buffer = ring.take_free();
            }
        }
        self.buffer.clear();
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.flush();
        if let Outlet::Ring { ring, compressors } = &mut self.outlet {
            ring.close();
            for compressor in compressors.drain(..) {
                // One that panicked has said so, and its blocks are missing.
                let _ = compressor.join();
            }
        }
    }
}

/// Blocks of a file, each with its sequence number, unpacked.
pub(crate) fn blocks_of(mut bytes: &[u8], codec: Codec) -> io::Result<Vec<(u32, Vec<u8>)>> {
    let mut blocks = Vec::new();
    while let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() {
        let part = |nth: usize| {
            let mut part = [0; 4];
            part.copy_from_slice(&header[4 * nth..4 * nth + 4]);
            u32::from_le_bytes(part)
        };
        let (packed, rest) = rest
            .split_at_checked(part(3) as usize)
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        blocks.push((part(1), codec.unpack(packed, part(2) as usize)?));
        bytes = rest;
    }
    Ok(blocks)
}
