//! Connects nodes: a socket for each node that has published something.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once, OnceLock};
use std::time::{Duration, Instant};

use super::link::{self, Kept};
use super::published;
use super::wire::{Message, Status};
use crate::abi::literal;
use crate::exchange::channel::{self, Channel, Direction};
use crate::exchange::timers;
use crate::ground::helpers;
use crate::outside::idle::Visit;
use crate::outside::poller::{self, Then, Watch};
use crate::portable;
use crate::seats::waits;
use crate::services::node;

/// Time limit of a request or an answer, in all. Nodes are on one machine; only a stopped one takes
/// longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Most visitors served at once, each by a thread; others wait at the door. A silent visitor is
/// dropped after [`PATIENCE`].
const VISITORS: usize = 64;

/// Visitors being served.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// A served visitor's room, until it is dropped; it came by this door.
struct Room(Watch);

impl Room {
    fn take(door: Watch) -> Room {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        Room(door)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
        // Others may wait for the room. A thread that has just found no room has paused the door's
        // watch, or is about to: the resume takes effect in both cases, as it re-arms the watch.
        poller::resume(self.0);
    }
}

/// Makes this node reachable for others.
pub(super) fn open() {
    static OPENED: Once = Once::new();
    OPENED.call_once(|| {
        let path = socket_of(node::own().address);
        // Left by an earlier node with this address.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap_or_else(|error| node::unusable(&error));
        if let Err(error) = listener.set_nonblocking(true) {
            node::unusable(&error);
        }
        waits::expect_visitors();
        let (listener, watch) = (Arc::new(listener), Watch::reserve());
        let accepting = Arc::clone(&listener);
        poller::watch_as(watch, listener, move || accept(&accepting, watch))
            .unwrap_or_else(|error| node::unusable(&error));
    });
}

/// Hands the visitors at the door to helpers.
fn accept(listener: &UnixListener, watch: Watch) -> Then {
    while INSIDE.load(Ordering::SeqCst) < VISITORS {
        match listener.accept() {
            Ok((stream, _)) => {
                let room = Room::take(watch);
                helpers::hand(move || attend(stream, room));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Then::Again,
            // The visitor has left again, or no descriptors are left: give others time to close
            // some. The visitor notices.
            Err(_) => {
                let later = timers::now() + Duration::from_millis(10);
                timers::call_at(later, move || poller::resume(watch));
                return Then::Later;
            }
        }
    }
    Then::Later
}

/// Returns a node's socket path. Such paths have at most 107 bytes; through the open directory it
/// is always short enough.
fn socket_of(address: u32) -> PathBuf {
    static DIRECTORY: OnceLock<File> = OnceLock::new();
    let directory = DIRECTORY
        .get_or_init(|| File::open(node::nodes()).unwrap_or_else(|error| node::unusable(&error)));
    PathBuf::from(format!(
        "/proc/self/fd/{}/{address}.socket",
        directory.as_raw_fd()
    ))
}

/// Reads a stream until a deadline.
struct Until<'a>(&'a UnixStream, Instant);

impl Read for Until<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.1.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.0.set_read_timeout(Some(left))?;
        (&mut &*self.0).read(bytes)
    }
}

/// Receives a request or an answer. Later messages have no deadline.
fn hear(stream: &UnixStream) -> io::Result<Message> {
    let message = Message::receive(Until(stream, Instant::now() + PATIENCE))?;
    stream.set_read_timeout(None)?;
    Ok(message)
}

/// Sends a message to a peer that may not listen.
fn tell(stream: &UnixStream, message: &Message) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    message.send(stream)?;
    stream.set_write_timeout(None)
}

/// Serves a visitor.
fn attend(stream: UnixStream, _room: Room) {
    let Ok(request) = hear(&stream) else {
        return;
    };
    let _request = link::Request::begin();
    let status = match request {
        Message::Connect {
            direction,
            code,
            name,
        } => match offered(direction, &code, &name) {
            Ok(channel) => {
                if answer(&stream, Status::Well).is_ok() {
                    link::start(stream, channel);
                }
                return;
            }
            Err(status) => status,
        },
        Message::Join {
            name,
            address,
            other,
        } => match published::find(&name) {
            Some(channel) => connect(&channel, &other, address),
            None => Status::ChannelUnknown,
        },
        Message::Part { name } => match published::find(&name) {
            Some(channel) => {
                let _visit = Visit::begin();
                channel::disconnect(channel.get());
                Status::Well
            }
            None => Status::ChannelUnknown,
        },
        Message::Answer(_) | Message::Value(_) | Message::Taken(_) => return,
    };
    // A visitor that has left does not care.
    let _ = answer(&stream, status);
}

fn answer(stream: &UnixStream, status: Status) -> io::Result<()> {
    tell(stream, &Message::Answer(status))
}

/// Finds the published channel, if one of the caller's kind may be connected to it.
fn offered(direction: Direction, code: &str, name: &[u8]) -> Result<Kept, Status> {
    let channel = published::find(name).ok_or(Status::ChannelUnknown)?;
    let local = channel.get();
    let fits = local.direction != direction && code_of(local) == code && may_travel(local);
    if fits {
        Ok(channel)
    } else {
        Err(Status::Incompatible)
    }
}

fn code_of(channel: &Channel) -> String {
    // SAFETY: types are static, and their codes literals.
    unsafe { literal((*channel.payload()).code) }.into_owned()
}

fn may_travel(channel: &Channel) -> bool {
    // SAFETY: types are static.
    !portable::leave_no_node(unsafe { &*channel.payload() })
}

/// Connects a channel of this node to a published one of another.
pub(super) fn connect(channel: &Kept, name: &[u8], address: u32) -> Status {
    let local = channel.get();
    if !may_travel(local) {
        return Status::Incompatible;
    }
    let request = Message::Connect {
        direction: local.direction,
        code: code_of(local),
        name: name.to_vec(),
    };
    match converse(address, &request) {
        Ok(stream) => {
            link::start(stream, channel.clone());
            Status::Well
        }
        Err(status) => status,
    }
}

/// Connects two channels of other nodes to each other.
pub(super) fn join(name: &[u8], address: u32, other: &[u8], other_address: u32) -> Status {
    let request = Message::Join {
        name: name.to_vec(),
        address: other_address,
        other: other.to_vec(),
    };
    converse(address, &request).err().unwrap_or(Status::Well)
}

/// Removes all peers of a node's published channel.
pub(super) fn part(name: &[u8], address: u32) -> Status {
    let request = Message::Part {
        name: name.to_vec(),
    };
    converse(address, &request).err().unwrap_or(Status::Well)
}

/// Sends a request; if it went well, the stream may become a link.
fn converse(address: u32, request: &Message) -> Result<UnixStream, Status> {
    if !node::lives(address) {
        return Err(Status::NodeUnreachable);
    }
    // A node without a socket has published nothing.
    let stream = UnixStream::connect(socket_of(address)).map_err(|_| Status::ChannelUnknown)?;
    tell(&stream, request).map_err(|_| Status::Unknown)?;
    match hear(&stream) {
        Ok(Message::Answer(Status::Well)) => Ok(stream),
        Ok(Message::Answer(status)) => Err(status),
        Ok(_) | Err(_) => Err(Status::Unknown),
    }
}
