//! Listening Unix sockets: on a path or an abstract name, shared by all workers, and closed without losing a
//! connection.

use std::io;
use std::net::Shutdown;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, SockRef, Socket, Type};

/// A Unix socket that listens until [`SharedUnixListener::close`].
#[derive(Debug)]
pub(super) struct SharedUnixListener {
    listener: UnixListener,
    /// File of the socket; `None` for an abstract name.
    file: Option<SocketFile>,
}

impl SharedUnixListener {
    /// Listens on a path, or on a name in the abstract namespace if it begins with `@`.
    ///
    /// Replaces a stale socket file, which a killed process leaves behind. The permissions of the directory and the
    /// umask of the process decide which users may connect, as for any file.
    ///
    /// # Errors
    ///
    /// `AddrInUse` if another process listens there, or if the path is another kind of file; else the error of binding.
    pub(super) fn open(path: &str) -> io::Result<Self> {
        let (listener, file) = match path.strip_prefix('@') {
            Some(name) => {
                let address = SocketAddr::from_abstract_name(name.as_bytes())?;
                (UnixListener::bind_addr(&address)?, None)
            }
            None => {
                remove_stale(path)?;
                let listener = UnixListener::bind(path)?;
                (listener, SocketFile::at(path))
            }
        };
        listener.set_nonblocking(true)?;
        Ok(Self { listener, file })
    }

    /// Wraps a socket that another process has bound to this path.
    pub(super) fn inherited(path: &str, listener: UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let file = match path.strip_prefix('@') {
            Some(_) => None,
            None => SocketFile::at(path),
        };
        Ok(Self { listener, file })
    }

    /// Duplicates the socket for a further worker.
    ///
    /// # Errors
    ///
    /// If the process has no file descriptor left.
    pub(super) fn share(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }

    /// Refuses new connections, for all workers at once, and removes the socket's file.
    ///
    /// Queued connections can still be accepted; dropping the socket alone would reset them.
    pub(super) fn close(self) {
        if let Some(file) = &self.file {
            file.remove();
        }
        if let Err(error) = SockRef::from(&self.listener).shutdown(Shutdown::Read) {
            tracing::debug!(%error, "a Unix socket that closes cannot refuse new connections");
        }
    }
}

/// File of a bound Unix socket.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    /// Device and inode: another process may have replaced the file by its own.
    identity: (u64, u64),
}

impl SocketFile {
    fn at(path: &str) -> Option<Self> {
        let identity = identity(Path::new(path)).ok()?;
        let path = path.into();
        Some(Self { path, identity })
    }

    fn remove(&self) {
        let removed = match identity(&self.path) {
            Ok(identity) if identity == self.identity => std::fs::remove_file(&self.path),
            Ok(_) => return,
            Err(error) => Err(error),
        };
        if let Err(error) = removed {
            tracing::debug!(path = %self.path.display(), %error, "cannot remove the file of a socket");
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = std::fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

fn remove_stale(path: &str) -> io::Result<()> {
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !found.file_type().is_socket() {
        let message = "the path is a file that is no socket";
        return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
    }
    // A blocking socket would wait here while the accept queue of another process is full.
    let client = Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)?;
    match client.connect(&SockAddr::unix(path)?) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
        Ok(()) | Err(_) => Err(io::ErrorKind::AddrInUse.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn in_use(path: &str) -> bool {
        SharedUnixListener::open(path).unwrap_err().kind() == ErrorKind::AddrInUse
    }

    #[test]
    fn only_a_stale_socket_file_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sock");
        let path = path.to_str().unwrap();
        let first = SharedUnixListener::open(path).unwrap();
        assert!(in_use(path), "the first one listens");
        drop(first);
        SharedUnixListener::open(path).unwrap().close();
        std::fs::write(path, "precious").unwrap();
        assert!(in_use(path));
        assert_eq!(std::fs::read(path).unwrap(), b"precious");
    }

    #[test]
    fn full_accept_queue_of_another_process_means_in_use() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sock");
        let address = SockAddr::unix(&path).unwrap();
        let other = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        other.bind(&address).unwrap();
        other.listen(0).unwrap();
        let _queued = UnixStream::connect(&path).unwrap();
        assert!(in_use(path.to_str().unwrap()));
    }

    #[test]
    fn closed_socket_refuses_new_connections_and_keeps_queued_ones() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sock");
        let linked = directory.path().join("b.sock");
        let shared = SharedUnixListener::open(path.to_str().unwrap()).unwrap();
        std::fs::hard_link(&path, &linked).unwrap();
        let worker = shared.share().unwrap();
        let _queued = UnixStream::connect(&path).unwrap();
        shared.close();
        assert!(!path.exists());
        let late = UnixStream::connect(&linked).unwrap_err();
        assert_eq!(late.kind(), ErrorKind::ConnectionRefused);
        worker.accept().expect("the queued connection");
        assert_eq!(worker.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    #[test]
    fn socket_file_of_another_process_is_not_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sock");
        let shared = SharedUnixListener::open(path.to_str().unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let _other = UnixListener::bind(&path).unwrap();
        shared.close();
        UnixStream::connect(&path).expect("the other one still listens");
    }
}
