//! The receiver: writes what programs send, each into a file of its own.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use super::{FRAME_MAX, MAGIC, PATIENCE, REFUSED, read_u64, write_u64s};
use crate::stream::chunk::{Encoding, Head, Said, write_chunk};
use crate::stream::chunks::{Outline, outline};

/// Receives from programs.
pub struct Receiver {
    listener: TcpListener,
    address: SocketAddr,
}

/// News of a receiver.
#[derive(Debug)]
pub enum Received {
    /// A program begins, with its file.
    Begins(Head, PathBuf),
    /// A program has ended in order; its file, and the number of bytes in it.
    Ends(PathBuf, u64),
    /// A connection broke; the program may come back. Without a file it said nothing usable.
    Breaks(Option<PathBuf>, String),
}

/// A program's part, however often its connection breaks.
#[derive(Default)]
struct Session {
    file: Option<(File, PathBuf)>,
    frames: u64,
    bytes: u64,
    /// Length of the file before the last frame.
    bytes_before: u64,
    /// Number of connections so far: earlier ones may not write any more.
    connection: u64,
    has_ended: bool,
}

/// Gives the file for a program that begins.
type Name<'a> = dyn Fn(&Head) -> PathBuf + Sync + 'a;

/// All sessions, and what they need.
struct Shared<'a> {
    sessions: Mutex<HashMap<u64, Arc<Mutex<Session>>>>,
    name: &'a Name<'a>,
    news: mpsc::Sender<Received>,
    /// All connections, to be broken at the end.
    streams: Mutex<Vec<TcpStream>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Receiver {
    /// Receives at an address such as `localhost:4000`; port 0 is a free one.
    ///
    /// # Errors
    /// The address is wrong, unknown, not this machine's, or in use.
    pub fn at(address: impl ToSocketAddrs) -> io::Result<Receiver> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        Ok(Receiver { listener, address })
    }

    /// The address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Receives until `told` says that it is enough. `name` gives the file of a program that
    /// begins; it is overwritten.
    pub fn run(&self, name: &Name<'_>, mut told: impl FnMut(Received) -> bool) {
        let (news, heard) = mpsc::channel();
        let shared = Shared {
            sessions: Mutex::default(),
            name,
            news,
            streams: Mutex::default(),
        };
        let is_over = Mutex::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for stream in self.listener.incoming() {
                    let is_over = lock(&is_over);
                    if *is_over {
                        break;
                    }
                    if let Ok(stream) = stream {
                        lock(&shared.streams).extend(stream.try_clone());
                        let shared = &shared;
                        scope.spawn(move || shared.serve(stream));
                    }
                }
            });
            while let Ok(news) = heard.recv() {
                if told(news) {
                    break;
                }
            }
            *lock(&is_over) = true;
            for stream in lock(&shared.streams).drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
            // It waits for a connection.
            let _ = TcpStream::connect(self.address);
        });
    }
}

impl Shared<'_> {
    fn serve(&self, mut stream: TcpStream) {
        let mut session = None;
        let served = self.serve_session(&mut stream, &mut session);
        if let Err(error) = served {
            let path = session.and_then(|session: Arc<Mutex<Session>>| {
                lock(&session).file.as_ref().map(|(_, path)| path.clone())
            });
            let _ = self.news.send(Received::Breaks(path, error.to_string()));
        }
    }

    fn serve_session(
        &self,
        stream: &mut TcpStream,
        session: &mut Option<Arc<Mutex<Session>>>,
    ) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let unfit = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        if read_u64(stream)? != MAGIC {
            return Err(unfit("it is no program that Hearth monitors"));
        }
        let (number, frames) = (read_u64(stream)?, read_u64(stream)?);
        let its = Arc::clone(lock(&self.sessions).entry(number).or_default());
        *session = Some(Arc::clone(&its));
        let connection = lock(&its).connect(frames)?;
        let has = lock(&its).frames;
        write_u64s(stream, [has])?;
        let is_here = stream.peer_addr()?.ip() == stream.local_addr()?.ip();
        // A program may be silent for as long as it likes, but not within a frame.
        stream.set_read_timeout(None)?;
        let mut frame = Vec::new();
        loop {
            let mut length = [0; 4];
            match stream.read_exact(&mut length) {
                Ok(()) => {}
                Err(error) => return Err(error),
            }
            let length = u32::from_le_bytes(length) as usize;
            if length == 0 {
                let session = lock(&its);
                if let Some((_, path)) = session.file.as_ref().filter(|_| session.has_ended) {
                    let _ = self.news.send(Received::Ends(path.clone(), session.bytes));
                }
                return Ok(());
            }
            if length > FRAME_MAX {
                return Err(unfit("a frame is too long"));
            }
            frame.resize(length, 0);
            stream.read_exact(&mut frame)?;
            let outline = outline(&frame).ok_or_else(|| unfit("a frame is damaged"))?;
            let mut session = lock(&its);
            if session.connection != connection {
                return Ok(());
            }
            let answer = self.store(&mut session, &outline, &mut frame, is_here)?;
            write_u64s(stream, [answer])?;
            session.has_ended |= outline.has_end && answer != REFUSED;
        }
    }

    /// Stores a frame, and gives the answer.
    fn store(
        &self,
        session: &mut Session,
        outline: &Outline,
        frame: &mut Vec<u8>,
        is_here: bool,
    ) -> io::Result<u64> {
        if session.file.is_none() {
            let Some((head, length)) = &outline.head else {
                return Err(io::Error::other("its beginning is missing"));
            };
            let path = (self.name)(head);
            let Ok(file) = File::create(&path) else {
                return Ok(REFUSED);
            };
            if !is_here {
                // The journal is on the program's machine.
                let head = Head {
                    journal: String::new(),
                    ..head.clone()
                };
                let mut chunk = Vec::new();
                write_chunk(&Said::Head(head), Encoding::Raw, &mut chunk);
                frame.splice(..*length, chunk);
            }
            session.file = Some((file, path.clone()));
            let _ = self.news.send(Received::Begins(head.clone(), path));
        }
        Ok(session.append(frame))
    }
}

impl Session {
    /// A connection of a program that counts on so many frames. Returns its number.
    fn connect(&mut self, frames: u64) -> io::Result<u64> {
        if frames + 1 == self.frames {
            // The sender did not get the answer to the last one, and counts it as lost.
            self.cut(self.bytes_before)?;
            self.frames = frames;
            self.has_ended = false;
        } else if frames != self.frames {
            *self = Session {
                connection: self.connection,
                ..Session::default()
            };
        }
        self.connection += 1;
        Ok(self.connection)
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        if let Some((file, _)) = &mut self.file {
            file.set_len(bytes)?;
            file.seek(SeekFrom::Start(bytes))?;
        }
        self.bytes = bytes;
        Ok(())
    }

    fn append(&mut self, frame: &[u8]) -> u64 {
        let Some((file, _)) = &mut self.file else {
            return REFUSED;
        };
        if file.write_all(frame).is_err() {
            let _ = self.cut(self.bytes);
            return REFUSED;
        }
        self.bytes_before = self.bytes;
        self.bytes += frame.len() as u64;
        self.frames += 1;
        self.frames
    }
}
