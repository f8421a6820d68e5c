//! How nodes reach each other: a socket for each node that has published something.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use super::link::{self, Kept};
use super::wire::{Message, Status};
use super::{node, published};
use crate::abi::literal;
use crate::channel::{self, Channel, Direction};
use crate::external;
use crate::helpers;
use crate::idle::Visit;
use crate::poller::{self, Then, Watch};
use crate::portable;
use crate::timers;

/// How long an answer may take. Nodes are on one machine; only one that is stopped takes longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Lets other nodes reach this one.
pub(super) fn open() {
    static OPENED: Once = Once::new();
    OPENED.call_once(|| {
        let path = socket_of(node::own().address);
        // Of an earlier node with this address.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap_or_else(|error| node::unusable(&error));
        if let Err(error) = listener.set_nonblocking(true) {
            node::unusable(&error);
        }
        external::expect_visitors();
        let (listener, watch) = (Arc::new(listener), Watch::reserve());
        let accepting = Arc::clone(&listener);
        poller::watch_as(watch, listener, move || accept(&accepting, watch))
            .unwrap_or_else(|error| node::unusable(&error));
    });
}

/// Has helpers attend to those at the door.
fn accept(listener: &UnixListener, watch: Watch) -> Then {
    loop {
        match listener.accept() {
            Ok((stream, _)) => helpers::hand(move || attend(stream)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Then::Again,
            // A visitor who has left again, or no descriptors left: give others time to close some.
            // The visitor notices.
            Err(_) => {
                let later = timers::now() + Duration::from_millis(10);
                timers::call_at(later, move || poller::resume(watch));
                return Then::Later;
            }
        }
    }
}

/// A socket's path has at most 107 bytes; through the open directory it is always short enough.
fn socket_of(address: u32) -> PathBuf {
    static DIRECTORY: OnceLock<File> = OnceLock::new();
    let directory = DIRECTORY
        .get_or_init(|| File::open(node::nodes()).unwrap_or_else(|error| node::unusable(&error)));
    PathBuf::from(format!(
        "/proc/self/fd/{}/{address}.socket",
        directory.as_raw_fd()
    ))
}

/// Serves a visitor.
fn attend(stream: UnixStream) {
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let Ok(request) = Message::receive(&stream) else {
        return;
    };
    let _ = stream.set_read_timeout(None);
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
    // A visitor who has left does not care.
    let _ = answer(&stream, status);
}

fn answer(stream: &UnixStream, status: Status) -> io::Result<()> {
    Message::Answer(status).send(stream)
}

/// The published channel, if one of the caller's kind may be connected to it.
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

/// Connects a channel of this node to one that another has published.
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

/// Takes away all peers of a channel that a node has published.
pub(super) fn part(name: &[u8], address: u32) -> Status {
    let request = Message::Part {
        name: name.to_vec(),
    };
    converse(address, &request).err().unwrap_or(Status::Well)
}

/// Sends a request; if it went well, the stream may go on as a link.
fn converse(address: u32, request: &Message) -> Result<UnixStream, Status> {
    if !node::lives(address) {
        return Err(Status::NodeUnreachable);
    }
    // A node without a socket has published nothing.
    let stream = UnixStream::connect(socket_of(address)).map_err(|_| Status::ChannelUnknown)?;
    let _ = stream.set_read_timeout(Some(PATIENCE));
    request.send(&stream).map_err(|_| Status::Unknown)?;
    match Message::receive(&stream) {
        Ok(Message::Answer(Status::Well)) => {
            let _ = stream.set_read_timeout(None);
            Ok(stream)
        }
        Ok(Message::Answer(status)) => Err(status),
        Ok(_) | Err(_) => Err(Status::Unknown),
    }
}
