//! Addresses of servers, and connections to them.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// An address of the network.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

/// Default port: memcached's.
pub const PORT: u16 = 11211;

impl std::str::FromStr for Target {
    type Err = String;

    /// Parses `HOST`, `HOST:PORT` or `unix:PATH`.
    fn from_str(text: &str) -> Result<Target, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => Err("'unix:' needs the path of a socket after it".into()),
                path => Ok(Target::Unix(path.into())),
            };
        }
        let with_port = text.to_socket_addrs();
        let mut found = match with_port {
            Ok(found) => found,
            Err(_) => (text, PORT).to_socket_addrs().map_err(|error| {
                format!("'{text}' is not a server: {error}; write HOST:PORT or unix:PATH")
            })?,
        };
        found
            .next()
            .map(Target::Tcp)
            .ok_or_else(|| format!("'{text}' has no address"))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Tcp(address) => write!(f, "{address}"),
            Target::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A non-blocking connection.
#[derive(Debug)]
pub enum Stream {
    /// Over the network.
    Tcp(TcpStream),
    /// Within the machine.
    Unix(UnixStream),
}

impl Target {
    /// Connects; over the network, with a timeout.
    ///
    /// # Errors
    /// The server or the system refused.
    pub fn connect(&self, within: Duration) -> io::Result<Stream> {
        match self {
            Target::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, within)?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                Ok(Stream::Tcp(stream))
            }
            Target::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_nonblocking(true)?;
                Ok(Stream::Unix(stream))
            }
        }
    }
}

impl Stream {
    /// The descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(into),
            Stream::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_by_host_port_or_path() {
        let at = |text: &str| text.parse::<Target>().map(|target| target.to_string());
        assert_eq!(at("127.0.0.1:80").unwrap(), "127.0.0.1:80");
        assert_eq!(at("127.0.0.1").unwrap(), "127.0.0.1:11211");
        assert_eq!(at("unix:/tmp/s").unwrap(), "unix:/tmp/s");
        assert!(at("unix:").is_err());
        assert!(at("127.0.0.1:999999").is_err());
    }
}
