//! TLS on one connection: between the bytes that the socket carries and those that the protocol
//! reads and writes. Non-blocking: every call does what can be done now, and
//! [`Session::has_to_write`] tells what is left.

use super::Tls;
use crate::socket::{self, Received};
use regatta_record::TlsSpoken;
use rustix::{fd::BorrowedFd, io::Errno};
use rustls::{ClientConnection, Error, ProtocolVersion};
use std::io::{self, ErrorKind, IoSlice, Read, Write};

/// One connection's TLS.
pub(crate) struct Session {
    tls: ClientConnection,
    /// The server has said that nothing more will come.
    ended: bool,
}

/// Why TLS on a connection cannot go on.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The system said so.
    System(Errno),
    /// What came is not the TLS that was expected.
    Protocol(Error),
    /// The stream ended without the server's word that this is its end (`close_notify`, RFC 8446
    /// section 6.1): what was to come after it may have been cut off.
    CutOff,
}

impl Session {
    /// Bytes as they come from the socket, in one read. With what may be left of a record that is
    /// not whole yet, they hold no more plaintext than [`Session::PLAIN`].
    pub const SEALED: usize = 32 * 1024;
    /// Room that [`Session::receive`] needs.
    pub const PLAIN: usize = 64 * 1024;

    pub fn new(tls: &Tls) -> Result<Self, Error> {
        let tls = ClientConnection::new(tls.config.clone(), tls.name.clone())?;
        Ok(Session { tls, ended: false })
    }

    /// What was agreed on, once the handshake is through.
    pub fn spoken(&self, tls: &Tls) -> TlsSpoken {
        let version = match self.tls.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => "1.3",
            _ => "1.2",
        };
        let cipher = self.tls.negotiated_cipher_suite().map(|suite| suite.suite());
        TlsSpoken {
            version: version.into(),
            cipher: cipher.and_then(|cipher| cipher.as_str()).unwrap_or_default().into(),
            checked: tls.is_checked(),
        }
    }

    /// Whether the handshake is still to be done.
    pub fn is_opening(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Whether the server has ended its side, all that came before having been received.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether something waits for room in the socket.
    pub fn has_to_write(&self) -> bool {
        self.tls.wants_write()
    }

    /// Reads once from the socket into `sealed`, and gives all that this brings to light into
    /// `plain`, at least [`Session::PLAIN`] long: nothing stays behind that no readiness would tell
    /// of. After bytes the end, if it came with them, is told by [`Session::has_ended`].
    pub fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        sealed: &mut [u8],
        plain: &mut [u8],
    ) -> Result<Received, Fault> {
        let mut sealed = match socket::receive_some(socket, sealed).map_err(Fault::System)? {
            Received::Bytes(n) => &sealed[..n],
            Received::Nothing => return Ok(Received::Nothing),
            Received::End => return Err(Fault::CutOff),
        };
        let mut came = 0;
        while !sealed.is_empty() && !self.ended {
            // From memory this cannot fail but for want of room, of which there is enough: what is
            // whole is taken out at once.
            self.tls.read_tls(&mut sealed).map_err(|error| Fault::Protocol(error_of(error)))?;
            let state = match self.tls.process_new_packets() {
                Ok(state) => state,
                Err(error) => {
                    // The server is told why, if it still listens.
                    let _ = self.flush(socket);
                    return Err(Fault::Protocol(error));
                }
            };
            self.ended = state.peer_has_closed();
            let length = state.plaintext_bytes_to_read();
            self.tls
                .reader()
                .read_exact(&mut plain[came..came + length])
                .map_err(|error| Fault::Protocol(error_of(error)))?;
            came += length;
        }
        Ok(match came {
            0 if self.ended => Received::End,
            0 => Received::Nothing,
            n => Received::Bytes(n),
        })
    }

    /// Sends what is left from before, then as much of `bytes` as the socket takes; returns how
    /// many of them were taken. While the handshake lasts that is none.
    pub fn send(&mut self, socket: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Fault> {
        self.flush(socket).map_err(Fault::System)?;
        let mut taken = 0;
        while taken < bytes.len() && !self.is_opening() && !self.has_to_write() {
            let n = self.tls.writer().write(&bytes[taken..]);
            taken += n.map_err(|error| Fault::Protocol(error_of(error)))?;
            self.flush(socket).map_err(Fault::System)?;
        }
        Ok(taken)
    }

    /// Tells the server that nothing more will come, if the socket has room for that.
    pub fn end(mut self, socket: BorrowedFd<'_>) {
        if !self.is_opening() {
            self.tls.send_close_notify();
            let _ = self.flush(socket);
        }
    }

    /// Writes until nothing is left or the socket is full.
    fn flush(&mut self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Wire(socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
            }
        }
        Ok(())
    }
}

/// A socket as rustls writes to it: several records at once.
struct Wire<'a>(BorrowedFd<'a>);

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match socket::send_pieces(self.0, pieces)? {
            0 => Err(ErrorKind::WouldBlock.into()),
            n => Ok(n),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn error_of(error: io::Error) -> Error {
    Error::General(error.to_string())
}
