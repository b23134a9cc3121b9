//! TCP with the blocking calls of `std::net`. Only the coroutine waits, not the thread.
//!
//! A stream or listener belongs to the scheduler that created it, and cannot leave its thread.

use crate::current;
use crate::readiness::{Interest, Source};
use crate::scheduler::{Core, ticks};
use crate::timer::NEVER;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::cell::Cell;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

/// The registration of a descriptor in the scheduler. It is removed on drop, before the descriptor
/// is closed.
struct Registration {
    core: Rc<Core>,
    source: Rc<Source>,
    number: usize,
}

impl Registration {
    fn new(core: Rc<Core>, fd: BorrowedFd<'_>, writable: bool) -> io::Result<Registration> {
        let (source, number) = core.poller().add(fd, writable)?;
        Ok(Registration { core, source, number })
    }

    /// Waits for readiness and makes a system call, until it does not return EAGAIN or EINTR.
    #[inline]
    fn attempt<T>(
        &self,
        interest: Interest,
        timeout: u64,
        mut call: impl FnMut() -> Result<T, Errno>,
    ) -> io::Result<T> {
        loop {
            let waited = self.core.wait(&self.source, interest, timeout);
            let late = waited.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut);
            if !late {
                waited?;
            }
            // Tries even after the timeout: the event may still be queued in the kernel, behind
            // others.
            match call() {
                Ok(value) => return Ok(value),
                Err(Errno::AGAIN) if late => return Err(io::ErrorKind::TimedOut.into()),
                Err(Errno::AGAIN) => self.source.would_block(interest),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.core.poller().forget(self.number);
    }
}

/// A listening socket.
pub struct TcpListener {
    // Declared before the descriptor, so that it is dropped first.
    registration: Registration,
    fd: OwnedFd,
}

impl TcpListener {
    /// Takes over a listening socket, which becomes non-blocking.
    ///
    /// # Errors
    /// Fails if the kernel refuses to watch the socket (`EPOLL_CTL_ADD`: memory,
    /// `max_user_watches`).
    ///
    /// # Panics
    /// Panics outside of [`run`](crate::run).
    pub fn from_std(listener: std::net::TcpListener) -> io::Result<TcpListener> {
        listener.set_nonblocking(true)?;
        let fd = OwnedFd::from(listener);
        let registration = Registration::new(current::get(), fd.as_fd(), false)?;
        Ok(TcpListener { registration, fd })
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    /// Those of `accept4` and of [`from_std`](Self::from_std). If descriptors have run out (`EMFILE`,
    /// `ENFILE`), the connection stays in the queue, and the next call retries immediately:
    /// [`sleep`](crate::sleep) in between. `ResourceBusy` if another coroutine already waits.
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (fd, address) = self.registration.attempt(Interest::Read, NEVER, || {
            loop {
                match rustix::net::acceptfrom_with(&self.fd, flags) {
                    // This client gave up while it was queued; the next may not have.
                    Err(Errno::CONNABORTED) => {}
                    other => return other,
                }
            }
        })?;
        let address = address.and_then(|address| SocketAddr::try_from(address).ok());
        let address = address.ok_or_else(|| {
            io::Error::other("green: accept4 returned no IP address; is this a TCP listener?")
        })?;
        let registration = Registration::new(self.registration.core.clone(), fd.as_fd(), true)?;
        let timeouts = (Cell::new(NEVER), Cell::new(NEVER));
        let (read_timeout, write_timeout) = timeouts;
        Ok((TcpStream { registration, fd, read_timeout, write_timeout }, address))
    }
}

/// A connection. One coroutine at a time may wait to read, and one to write.
pub struct TcpStream {
    // Declared before the descriptor, so that it is dropped first.
    registration: Registration,
    fd: OwnedFd,
    /// In ticks; `NEVER` if there is none.
    read_timeout: Cell<u64>,
    write_timeout: Cell<u64>,
}

impl TcpStream {
    /// Connects, like [`std::net::TcpStream::connect_timeout`].
    ///
    /// # Errors
    /// Those of socket(2), connect(2) and [`TcpListener::from_std`]; `TimedOut` after the timeout;
    /// `InvalidInput` if it is zero.
    ///
    /// # Panics
    /// Panics outside of [`run`](crate::run).
    pub fn connect_timeout(address: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
        let timeout = timeout_ticks(Some(timeout))?;
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        match rustix::net::connect(&fd, &address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        // It becomes writable when the attempt succeeds or fails (connect(2), EINPROGRESS).
        let registration = Registration::new(current::get(), fd.as_fd(), false)?;
        let waited = registration.core.wait(&registration.source, Interest::Write, timeout);
        if let Err(error) = waited {
            // The event may still be queued in the kernel, behind others.
            let mut fds = [PollFd::new(&fd, PollFlags::OUT)];
            match rustix::event::poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
                Ok(1..) => {}
                _ => return Err(error),
            }
        }
        rustix::net::sockopt::socket_error(&fd)??;
        let (read_timeout, write_timeout) = (Cell::new(NEVER), Cell::new(NEVER));
        Ok(TcpStream { registration, fd, read_timeout, write_timeout })
    }

    /// Waits until a read would not block: on data, end of input or an error. It needs no buffer,
    /// and makes no system call unless it times out.
    ///
    /// # Errors
    /// `TimedOut` after the read timeout. `ResourceBusy` if another coroutine already waits to read.
    pub fn wait_readable(&self) -> io::Result<()> {
        let Registration { core, source, .. } = &self.registration;
        match core.wait(source, Interest::Read, self.read_timeout.get()) {
            // The event may still be queued in the kernel, behind others.
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
                match rustix::event::poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
                    Ok(1..) => Ok(()),
                    _ => Err(error),
                }
            }
            waited => waited,
        }
    }

    /// Reads what is available, without waiting.
    ///
    /// # Errors
    /// Those of a read, and `WouldBlock` if nothing is available.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = rustix::net::recv(&self.fd, buffer, RecvFlags::empty());
        let source = &self.registration.source;
        match read {
            Ok((_, 0)) => source.read_ended(),
            Err(Errno::AGAIN) => source.would_block(Interest::Read),
            _ => {}
        }
        Ok(read?.1)
    }

    /// Sets how long a read may wait before it fails with `TimedOut`, rounded up to whole
    /// milliseconds; `None` means forever. Measured from the start of the turn in which the read
    /// began.
    ///
    /// # Errors
    /// `InvalidInput` if zero, as in `std`.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.read_timeout.set(timeout_ticks(timeout)?);
        Ok(())
    }

    /// Sets how long a write may wait, like [`TcpStream::set_read_timeout`].
    ///
    /// # Errors
    /// `InvalidInput` if zero, as in `std`.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.write_timeout.set(timeout_ticks(timeout)?);
        Ok(())
    }

    /// Sets whether small writes are sent at once (`TCP_NODELAY`).
    ///
    /// # Errors
    /// Those of `setsockopt`.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        Ok(rustix::net::sockopt::set_tcp_nodelay(&self.fd, nodelay)?)
    }

    /// Like [`Write::write`], for the last bytes before a shutdown. The kernel may delay them, to send
    /// them and the FIN in one packet (`MSG_MORE`). It never waits.
    ///
    /// # Errors
    /// Those of a write, and `WouldBlock` if the send buffer is full.
    pub fn write_last(&self, bytes: &[u8]) -> io::Result<usize> {
        let sent = rustix::net::send(&self.fd, bytes, SendFlags::NOSIGNAL | SendFlags::MORE);
        if sent.is_ok_and(|sent| sent < bytes.len()) || sent == Err(Errno::AGAIN) {
            self.registration.source.used_up(Interest::Write);
        }
        Ok(sent?)
    }

    pub(crate) fn core(&self) -> &Rc<Core> {
        &self.registration.core
    }

    pub(crate) fn source(&self) -> &Source {
        &self.registration.source
    }
}

fn timeout_ticks(timeout: Option<Duration>) -> io::Result<u64> {
    match timeout {
        None => Ok(NEVER),
        Some(Duration::ZERO) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "green: a timeout must be longer than zero; use None to wait forever",
        )),
        Some(timeout) => Ok(ticks(timeout)),
    }
}

impl Read for &TcpStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let room = buffer.len();
        let Registration { source, .. } = &self.registration;
        let read = self.registration.attempt(Interest::Read, self.read_timeout.get(), || {
            rustix::net::recv(&self.fd, &mut *buffer, RecvFlags::empty())
        });
        let length = read?.1;
        if length == 0 {
            source.read_ended();
        } else if length < room {
            source.used_up(Interest::Read);
        }
        Ok(length)
    }
}

impl Write for &TcpStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let registration = &self.registration;
        let length = registration.attempt(Interest::Write, self.write_timeout.get(), || {
            rustix::net::send(&self.fd, bytes, SendFlags::NOSIGNAL)
        })?;
        if length < bytes.len() {
            registration.source.used_up(Interest::Write);
        }
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for TcpStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}

impl Write for TcpStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for TcpStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsFd for TcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Waits until a pollable descriptor (e.g. an eventfd or a pipe) is readable or hung up. It reads
/// nothing.
///
/// # Errors
/// `AlreadyExists` if another coroutine of this scheduler waits for it, or if it is a socket of
/// this module. `PermissionDenied` for a regular file, which is always readable.
///
/// # Panics
/// Panics outside of [`run`](crate::run).
pub fn wait_fd_readable(fd: impl AsFd) -> io::Result<()> {
    /// Removes the descriptor from the epoll set, however the wait ends.
    struct Watched<'a> {
        core: &'a Core,
        fd: BorrowedFd<'a>,
        number: usize,
    }
    impl Drop for Watched<'_> {
        fn drop(&mut self) {
            self.core.poller().remove(self.fd, self.number);
        }
    }
    let (core, fd) = (current::get(), fd.as_fd());
    let (source, number) = core.poller().add(fd, false)?;
    let _watched = Watched { core: &core, fd, number };
    core.wait(&source, Interest::Read, NEVER)
}
