//! A Unix socket to listen on, its file, and the lock of that file.
//!
//! The path always leads to a socket that listens: it is bound under a temporary name beside it, listens, and is then
//! renamed. A lock in a third file decides which of several processes does this.

use regatta_sys::net::BACKLOG;
use rustix::{
    fs::OFlags,
    io::Errno,
    net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
        sockopt::socket_peercred,
    },
};
use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, Permissions, TryLockError},
    io::{self, Read, Write},
    os::{
        fd::OwnedFd,
        unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::Arc,
};

/// What follows the path in the name under which the socket is bound.
const TEMPORARY: &str = ".new";
/// What follows the path in the name of the file with the lock.
const LOCK: &str = ".lock";
/// Maximum length of the name of a socket, in bytes (`sun_path` in unix(7); Linux needs no zero at its end).
const LONGEST: usize = 108;

/// A listening Unix socket. Its file is removed when this is dropped; the file with its lock remains.
#[derive(Debug)]
pub struct UnixSocket {
    socket: Arc<OwnedFd>,
    path: PathBuf,
    /// Which file it is: its device and its number there.
    file: (u64, u64),
    /// Unlocked when it is closed, after the file of the socket was removed.
    lock: File,
}

impl UnixSocket {
    /// Listens on a socket with this path. `mode`: the permissions of its file; a client needs the one to write. A file
    /// that a process has left behind which no longer listens is replaced. The lock is in a file with the same path and
    /// `.lock`, which has the number of the process that holds it.
    ///
    /// # Errors
    /// Another process listens there, the path is that of a file of another kind or too long (more than 104 bytes), or those of
    /// the file system.
    pub fn listen(path: &Path, mode: u32) -> io::Result<UnixSocket> {
        let temporary = beside(path, TEMPORARY);
        let address = SocketAddrUnix::new(&temporary).map_err(|error| match error {
            Errno::NAMETOOLONG => too_long(path),
            error => error.into(),
        })?;
        // Nothing is created beside a file of another kind.
        is_socket(path)?;
        let lock = lock(path)?;
        if is_socket(path)? {
            refuse_live(path)?;
        }
        // A process with the lock may have died before the rename.
        if is_socket(&temporary)? {
            fs::remove_file(&temporary)?;
        }
        let socket = stream()?;
        bind(&socket, &address)?;
        let metadata = fs::symlink_metadata(&temporary)?;
        let file = (metadata.dev(), metadata.ino());
        let mut socket = UnixSocket { socket: Arc::new(socket), path: temporary, file, lock };
        // Nobody can connect before it listens, so nobody can with other permissions.
        fs::set_permissions(&socket.path, Permissions::from_mode(mode))?;
        listen(&socket.socket, BACKLOG)?;
        fs::rename(&socket.path, path)?;
        path.clone_into(&mut socket.path);
        Ok(socket)
    }

    /// The socket.
    pub fn socket(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.socket)
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        // A program that knows nothing of the lock may have replaced the file.
        let is_own = |found: fs::Metadata| (found.dev(), found.ino()) == self.file;
        if fs::symlink_metadata(&self.path).is_ok_and(is_own) {
            let _ = fs::remove_file(&self.path);
        }
        let _ = self.lock.set_len(0);
    }
}

/// The path with something at its end.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    name.into()
}

fn too_long(path: &Path) -> io::Error {
    let (length, longest) = (path.as_os_str().len(), LONGEST - TEMPORARY.len());
    let why = format!("the path of a socket may have {longest} bytes, and this one has {length}");
    io::Error::new(io::ErrorKind::InvalidFilename, why)
}

fn stream() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// Whether there is a socket with this path; `false` if there is no file. Fails if it is of another kind.
fn is_socket(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => Ok(true),
        Ok(_) => {
            let path = path.display();
            let why = format!("{path} is not a socket; remove that file, or choose another path");
            Err(io::Error::new(io::ErrorKind::AlreadyExists, why))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Takes the lock of this path, and writes the number of this process into its file.
fn lock(path: &Path) -> io::Result<File> {
    let path = beside(path, LOCK);
    let named = |error: io::Error| {
        io::Error::new(error.kind(), format!("the lock file {}: {error}", path.display()))
    };
    // A link to another file could have been put there.
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
    let mut file = options.open(&path).map_err(named)?;
    match file.try_lock() {
        Ok(()) => {
            let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
            written.map_err(named)?;
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // It may not have written it yet.
            let _ = file.take(20).read_to_string(&mut holder);
            Err(in_use(holder.trim().parse().ok()))
        }
        Err(TryLockError::Error(error)) => Err(named(error)),
    }
}

/// Fails if a process listens on the socket with this path. It has no lock.
fn refuse_live(path: &Path) -> io::Result<()> {
    let socket = stream()?;
    match connect(&socket, &SocketAddrUnix::new(path)?) {
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(()),
        Ok(()) => {
            let holder = socket_peercred(&socket).ok();
            Err(in_use(holder.map(|holder| holder.pid.as_raw_nonzero().get())))
        }
        // Its queue is full.
        Err(Errno::AGAIN) => Err(in_use(None)),
        Err(error) => Err(error.into()),
    }
}

fn in_use(holder: Option<i32>) -> io::Error {
    let holder = holder.map_or(String::new(), |pid| format!(" (pid {pid})"));
    let why = format!("another process{holder} listens there; stop it, or choose another path");
    io::Error::new(io::ErrorKind::AddrInUse, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        os::unix::{
            fs::symlink,
            net::{UnixListener, UnixStream},
        },
        sync::{
            Barrier,
            atomic::{AtomicBool, Ordering::SeqCst},
        },
        thread,
    };

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
        let pid = format!("another process (pid {}) listens there", std::process::id());
        assert!(error.to_string().starts_with(&pid), "{error}");
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
        assert_eq!(fs::read_dir(&place.0).unwrap().count(), 1, "nothing was created");
    }

    #[test]
    fn of_many_simultaneous_starts_one_listens_and_the_path_always_answers() {
        let place = Place::new("unix-many");
        for _ in 0..20 {
            // The file of a process that has died.
            let address = SocketAddrUnix::new(place.path()).unwrap();
            bind(stream().unwrap(), &address).unwrap();
            let (start, path, one_listens) =
                (Barrier::new(30), &place.path(), AtomicBool::new(false));
            let start_one = || {
                start.wait();
                let listens = UnixSocket::listen(path, 0o600);
                one_listens.fetch_or(listens.is_ok(), SeqCst);
                let answers = !one_listens.load(SeqCst) || UnixStream::connect(path).is_ok();
                answers.then_some(listens)
            };
            let all: Vec<_> = thread::scope(|scope| {
                let all: Vec<_> = (0..30).map(|_| scope.spawn(start_one)).collect();
                let ended = all.into_iter().map(|one| one.join().unwrap());
                ended.map(|listens| listens.expect("the path answers")).collect()
            });
            assert_eq!(all.iter().filter(|one| one.is_ok()).count(), 1);
            UnixStream::connect(path).unwrap();
            drop(all);
            assert!(!path.exists() && !beside(path, TEMPORARY).exists());
        }
    }

    #[test]
    fn a_process_that_listens_without_the_lock_is_not_replaced() {
        let place = Place::new("unix-foreign");
        let _foreign = UnixListener::bind(place.path()).unwrap();
        let error = UnixSocket::listen(&place.path(), 0o600).unwrap_err();
        let pid = format!("another process (pid {}) listens there", std::process::id());
        assert!(error.to_string().starts_with(&pid), "{error}");
        UnixStream::connect(place.path()).unwrap();
    }

    #[test]
    fn a_temporary_name_that_was_left_behind_is_reused() {
        let place = Place::new("unix-temporary");
        let temporary = beside(&place.path(), TEMPORARY);
        drop(UnixListener::bind(&temporary).unwrap());
        let _socket = UnixSocket::listen(&place.path(), 0o600).unwrap();
        UnixStream::connect(place.path()).unwrap();
        assert!(!temporary.exists());
    }

    #[test]
    fn a_path_must_leave_room_for_the_temporary_name() {
        let place = Place::new("unix-long");
        let folder = place.0.as_os_str().len() + 1;
        let path = |length: usize| place.0.join("x".repeat(length - folder));
        let error = UnixSocket::listen(&path(105), 0o600).unwrap_err().to_string();
        assert_eq!(error, "the path of a socket may have 104 bytes, and this one has 105");
        let _socket = UnixSocket::listen(&path(104), 0o600).unwrap();
        UnixStream::connect(path(104)).unwrap();
    }

    #[test]
    fn a_link_in_place_of_the_lock_is_not_followed() {
        let place = Place::new("unix-link");
        let other = place.0.join("other");
        fs::write(&other, "precious").unwrap();
        symlink(&other, beside(&place.path(), LOCK)).unwrap();
        let error = UnixSocket::listen(&place.path(), 0o600).unwrap_err().to_string();
        assert!(error.starts_with("the lock file ") && error.contains("socket.lock: "), "{error}");
        assert_eq!(fs::read_to_string(&other).unwrap(), "precious");
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
