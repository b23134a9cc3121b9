//! A Unix socket to listen on, and its file.

use regatta_sys::net::BACKLOG;
use rustix::{
    io::Errno,
    net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
    },
};
use std::{
    fs::{self, Permissions},
    io,
    os::{
        fd::OwnedFd,
        unix::fs::{FileTypeExt, MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::Arc,
};

/// A listening Unix socket. Its file is removed when this is dropped.
#[derive(Debug)]
pub struct UnixSocket {
    socket: Arc<OwnedFd>,
    path: PathBuf,
    /// Which file it is: its device and its number there.
    file: (u64, u64),
}

impl UnixSocket {
    /// Listens on a socket with this path. `mode`: the permissions of its file; a client needs the one to write. A file
    /// that a process has left behind which no longer listens is replaced.
    ///
    /// # Errors
    /// Another process listens there, the path is that of a file of another kind or too long (107 bytes), or those of
    /// the file system.
    pub fn listen(path: &Path, mode: u32) -> io::Result<UnixSocket> {
        let address = SocketAddrUnix::new(path)?;
        remove_abandoned(path, &address)?;
        let socket = stream()?;
        bind(&socket, &address)?;
        let metadata = fs::symlink_metadata(path)?;
        let file = (metadata.dev(), metadata.ino());
        let socket = UnixSocket { socket: Arc::new(socket), path: path.to_owned(), file };
        // Nobody can connect before it listens, so nobody can with other permissions.
        fs::set_permissions(path, Permissions::from_mode(mode))?;
        listen(&socket.socket, BACKLOG)?;
        Ok(socket)
    }

    /// The socket.
    pub fn socket(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.socket)
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        // A later process may have replaced the file, after this one has stopped to listen.
        let is_own = |found: fs::Metadata| (found.dev(), found.ino()) == self.file;
        if fs::symlink_metadata(&self.path).is_ok_and(is_own) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn stream() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// Removes the file of a socket on which no process listens.
fn remove_abandoned(path: &Path, address: &SocketAddrUnix) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => {}
        Ok(_) => {
            let why =
                "a file that is not a socket has this path; remove it, or choose another path";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    match connect(&stream()?, address) {
        Err(Errno::CONNREFUSED) => fs::remove_file(path),
        Err(Errno::NOENT) => Ok(()),
        // Its queue may be full.
        Ok(()) | Err(Errno::AGAIN) => {
            let why = "another process listens on this socket; stop it, or choose another path";
            Err(io::Error::new(io::ErrorKind::AddrInUse, why))
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    /// A path in a folder of its own.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
            fs::create_dir(&folder).unwrap();
            Place(folder)
        }

        fn path(&self) -> PathBuf {
            self.0.join("socket")
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_file_has_its_permissions_and_is_removed_at_the_end() {
        let place = Place::new("unix-mode");
        for mode in [0o600, 0o666] {
            let socket = UnixSocket::listen(&place.path(), mode).unwrap();
            let found = fs::symlink_metadata(place.path()).unwrap();
            assert_eq!(found.mode() & 0o777, mode);
            UnixStream::connect(place.path()).unwrap();
            drop(socket);
            assert!(!place.path().exists());
        }
    }

    #[test]
    fn a_live_socket_is_not_replaced_but_an_abandoned_one_is() {
        let place = Place::new("unix-live");
        let first = UnixSocket::listen(&place.path(), 0o600).unwrap();
        let error = UnixSocket::listen(&place.path(), 0o600).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        UnixStream::connect(place.path()).unwrap();
        // As after a crash: it no longer listens, and its file remains.
        let copy = place.0.join("copy");
        fs::hard_link(place.path(), &copy).unwrap();
        drop(first);
        fs::rename(&copy, place.path()).unwrap();
        let second = UnixSocket::listen(&place.path(), 0o600).unwrap();
        UnixStream::connect(place.path()).unwrap();
        drop(second);
        assert!(!place.path().exists());
    }

    #[test]
    fn a_file_of_another_kind_is_never_replaced() {
        let place = Place::new("unix-file");
        fs::write(place.path(), "precious").unwrap();
        let error = UnixSocket::listen(&place.path(), 0o600).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(place.path()).unwrap(), "precious");
    }

    #[test]
    fn a_file_that_was_replaced_is_not_removed() {
        let place = Place::new("unix-replaced");
        let socket = UnixSocket::listen(&place.path(), 0o600).unwrap();
        fs::remove_file(place.path()).unwrap();
        fs::write(place.path(), "of another").unwrap();
        drop(socket);
        assert!(place.path().exists());
    }
}
