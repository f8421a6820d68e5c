//! Sockets that others connect to.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fs, os::unix::net::UnixStream};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::error::StartError;
use crate::options::Builder;

/// A socket that others connect to; that of a path takes its file along.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) socket: Socket,
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
        Ok(Listener { socket, path })
    }
}

/// All that are asked for.
pub(crate) fn listeners(options: &Builder) -> Result<Vec<Listener>, StartError> {
    let mut found = Vec::new();
    for name in &options.tcp {
        let failed = |error| StartError::Listen {
            address: name.clone(),
            error,
        };
        for address in name.to_socket_addrs().map_err(failed)? {
            found.push(Listener::tcp(address, options.backlog).map_err(failed)?);
        }
    }
    for (path, rights) in &options.unix {
        let listener =
            Listener::unix(path, *rights, options.backlog).map_err(|error| StartError::Listen {
                address: path.display().to_string(),
                error,
            })?;
        found.push(listener);
    }
    if found.is_empty() {
        return Err(StartError::NoListener);
    }
    Ok(found)
}
