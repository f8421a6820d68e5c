//! Listening sockets.

use std::io;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fs, os::unix::net::UnixStream};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::error::StartError;
use crate::options::Builder;

/// A listening socket. That of a path removes its file when dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) socket: Socket,
    /// Number of its name among those asked for; see [`crate::Peer`].
    pub(crate) place: usize,
    path: Option<PathBuf>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // At worst it is gone already.
            let _ = fs::remove_file(path);
        }
    }
}

impl Listener {
    pub(crate) fn tcp_address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()?.as_socket()
    }

    pub(crate) fn is_tcp(&self) -> bool {
        self.path.is_none()
    }

    fn at(mut self, place: usize) -> Listener {
        self.place = place;
        self
    }

    fn tcp(address: SocketAddr, backlog: i32) -> io::Result<Listener> {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        socket.set_reuse_address(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.bind(&address.into())?;
        Listener::listening(socket, backlog, None)
    }

    fn unix(path: &Path, rights: u32, backlog: i32) -> io::Result<Listener> {
        let is_left_over = fs::symlink_metadata(path)
            .is_ok_and(|file| file.file_type().is_socket())
            && UnixStream::connect(path)
                .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        if is_left_over {
            fs::remove_file(path)?;
        }
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.bind(&SockAddr::unix(path)?)?;
        fs::set_permissions(path, fs::Permissions::from_mode(rights))?;
        Listener::listening(socket, backlog, Some(path.to_owned()))
    }

    fn listening(socket: Socket, backlog: i32, path: Option<PathBuf>) -> io::Result<Listener> {
        socket.listen(backlog)?;
        socket.set_nonblocking(true)?;
        Ok(Listener {
            socket,
            place: 0,
            path,
        })
    }
}

/// Opens all listening sockets asked for.
pub(crate) fn listeners(options: &Builder) -> Result<Vec<Listener>, StartError> {
    let mut found = Vec::new();
    // Addresses of a family that this machine lacks, such as IPv6 where it is off: no error if
    // others work.
    let mut missing = None;
    for (place, name) in options.tcp.iter().enumerate() {
        let failed = |error| StartError::Listen {
            address: name.clone(),
            error,
        };
        for address in name.to_socket_addrs().map_err(failed)? {
            match Listener::tcp(address, options.backlog) {
                Ok(listener) => found.push(listener.at(place)),
                Err(error) if is_of_no_family(address, &error) => missing = Some(failed(error)),
                Err(error) => return Err(failed(error)),
            }
        }
    }
    for (number, (path, rights)) in options.unix.iter().enumerate() {
        let listener =
            Listener::unix(path, *rights, options.backlog).map_err(|error| StartError::Listen {
                address: path.display().to_string(),
                error,
            })?;
        found.push(listener.at(options.tcp.len() + number));
    }
    if found.is_empty() {
        return Err(missing.unwrap_or(StartError::NoListener));
    }
    Ok(found)
}

/// True for Linux's `EAFNOSUPPORT`, and for its answer about IPv6's loopback address where IPv6 is
/// turned off.
fn is_of_no_family(address: SocketAddr, error: &io::Error) -> bool {
    const NO_FAMILY: i32 = 97;
    let is_off = address == SocketAddr::from((Ipv6Addr::LOCALHOST, address.port()))
        && error.kind() == io::ErrorKind::AddrNotAvailable;
    error.raw_os_error() == Some(NO_FAMILY) || is_off
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_that_is_not_there_is_told_from_an_address_that_is_not() {
        let six = |text: &str| text.parse::<SocketAddr>().unwrap();
        let off = io::Error::from_raw_os_error(99);
        assert!(is_of_no_family(six("[::1]:7000"), &off));
        assert!(!is_of_no_family(six("[2001:db8::1]:7000"), &off));
        assert!(!is_of_no_family(six("192.0.2.1:7000"), &off));
        let without = io::Error::from_raw_os_error(97);
        assert!(is_of_no_family(six("[2001:db8::1]:7000"), &without));
    }

    #[test]
    fn what_is_wrong_with_a_path_is_told_of_a_path() {
        let path = "/nowhere/at/all";
        let error = Listener::unix(Path::new(path), 0o700, 1).unwrap_err();
        let address = path.to_owned();
        let told = StartError::Listen { address, error }.to_string();
        assert!(
            told.ends_with("give a path in an existing folder"),
            "{told}"
        );
    }
}
