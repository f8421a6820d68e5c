//! Who listens: new connections, as many as may be open, to the workers in turn.

use std::fs;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use hearth_sys::ready::{Interest, Ready};

use super::NoServer;
use super::about::Server;
use super::stream::Stream;
use super::worker::Inbox;
use crate::options::Options;

/// When there are no descriptors, or as many connections as may be, one looks again after so long.
const PAUSE: Duration = Duration::from_millis(10);
/// So often one looks whether the server stops.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug)]
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// All places where a server listens.
#[derive(Debug)]
pub(super) struct Listeners {
    all: Vec<(Listener, String)>,
}

impl Listeners {
    pub(super) fn bind(options: &Options) -> Result<Listeners, NoServer> {
        let mut all = Vec::new();
        if let Some(path) = &options.unix_socket {
            let at = path.display().to_string();
            // What an earlier server has left.
            let is_left = fs::metadata(path)
                .is_ok_and(|found| std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()));
            if is_left {
                let _ = fs::remove_file(path);
            }
            let mask = !options.unix_mask & 0o777;
            let bound = hearth_sys::service::with_umask(mask, || UnixListener::bind(path));
            let listener = bound.map_err(|error| NoServer::Listen(at.clone(), error))?;
            all.push((Listener::Unix(listener), at));
            return Ok(Listeners { all });
        }
        for place in places(options)? {
            let listener = TcpListener::bind(place)
                .map_err(|error| NoServer::Listen(place.to_string(), error))?;
            let at = listener
                .local_addr()
                .map_or(place, |known| known)
                .to_string();
            all.push((Listener::Tcp(listener), at));
        }
        Ok(Listeners { all })
    }

    pub(super) fn addresses(&self) -> Vec<String> {
        self.all.iter().map(|(_, at)| at.clone()).collect()
    }
}

/// The addresses to listen at: all of this machine if none is named.
fn places(options: &Options) -> Result<Vec<SocketAddr>, NoServer> {
    if options.listen.is_empty() {
        // A socket for IPv6 takes IPv4, too, unless the system has no IPv6.
        let any = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), options.port);
        return Ok(match TcpListener::bind(SocketAddr::new(any.ip(), 0)) {
            Ok(_) => vec![any],
            Err(_) => vec![SocketAddr::from(([0, 0, 0, 0], options.port))],
        });
    }
    let mut places = Vec::new();
    for name in &options.listen {
        let found = match name.parse::<IpAddr>() {
            Ok(address) => Ok(vec![SocketAddr::new(address, options.port)]),
            Err(_) if name.contains(':') => name.to_socket_addrs().map(Iterator::collect),
            Err(_) => (name.as_str(), options.port)
                .to_socket_addrs()
                .map(Iterator::collect),
        };
        places.extend(found.map_err(|error| NoServer::Listen(name.clone(), error))?);
    }
    Ok(places)
}

/// Accepts until the server stops.
pub(super) fn run(server: &Server, listeners: Listeners, inboxes: &[Inbox]) {
    let mut ready = match Ready::new(listeners.all.len()) {
        Ok(ready) => ready,
        Err(error) => return server.complain(&format!("nobody can listen: {error}")),
    };
    for (i, (listener, _)) in listeners.all.iter().enumerate() {
        let descriptor = match listener {
            Listener::Tcp(listener) => {
                let _ = listener.set_nonblocking(true);
                listener.as_fd()
            }
            Listener::Unix(listener) => {
                let _ = listener.set_nonblocking(true);
                listener.as_fd()
            }
        };
        if let Err(error) = ready.add(descriptor, i as u64, Interest::Read) {
            return server.complain(&format!("nobody can listen: {error}"));
        }
    }
    let mut next = 0;
    while !server.stops() {
        if !server.options().maxconns_fast && server.is_full() {
            // Who knocks waits until somebody goes.
            server.note_full();
            std::thread::park_timeout(PAUSE);
            continue;
        }
        let told: Vec<usize> = ready
            .wait(Some(LOOK))
            .map(|report| report.key as usize)
            .collect();
        for i in told {
            let (listener, at) = &listeners.all[i];
            if !accept_all(server, listener, at, inboxes, &mut next) {
                std::thread::park_timeout(PAUSE);
            }
        }
    }
}

/// False if the system has no descriptors left.
fn accept_all(
    server: &Server,
    listener: &Listener,
    at: &str,
    inboxes: &[Inbox],
    next: &mut usize,
) -> bool {
    loop {
        if !server.options().maxconns_fast && server.is_full() {
            return true;
        }
        let accepted = match listener {
            Listener::Tcp(listener) => listener.accept().map(|(stream, _)| Stream::Tcp(stream)),
            Listener::Unix(listener) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
        };
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
            // It went away before it was looked at.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                server.complain_once(&format!("a connection cannot be accepted: {error}"));
                return false;
            }
        };
        if server.is_full() {
            refuse(server, &stream);
            continue;
        }
        let id = server.note_connection(&stream, at);
        inboxes[*next].give(stream, id);
        *next = (*next + 1) % inboxes.len();
    }
}

fn refuse(server: &Server, stream: &Stream) {
    server.note_rejected();
    let told = b"ERROR Too many open connections\r\n";
    // A new socket has room for a line; who does not get it sees the end.
    let _ = match stream {
        Stream::Tcp(stream) => (&mut &*stream).write(told),
        Stream::Unix(stream) => (&mut &*stream).write(told),
    };
}
