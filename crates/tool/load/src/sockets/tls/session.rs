//! TLS on one connection: translates between the socket's bytes and those that the protocol reads and
//! writes. Non-blocking: no call waits for the socket, and [`Session::has_to_write`] reports whether
//! records remain to be written.

use super::Tls;
use crate::sockets::socket::{self, Received};
use regatta_record::TlsSpoken;
use rustix::{fd::BorrowedFd, io::Errno};
use rustls::{ClientConnection, Error, ProtocolVersion};
use std::io::{self, ErrorKind, IoSlice, Read, Write};

/// One connection's TLS.
pub(crate) struct Session {
    tls: ClientConnection,
    /// The server has sent `close_notify`.
    ended: bool,
}

/// Why TLS on a connection failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A system call failed.
    System(Errno),
    /// The received bytes violate the protocol, or the certificate is not accepted.
    Protocol(Error),
    /// The stream ended without `close_notify` (RFC 8446, section 6.1), so its end may have been cut
    /// off.
    CutOff,
}

impl Session {
    /// Size of one read from the socket, in bytes. Together with an incomplete record from before, it
    /// contains at most [`Session::PLAIN`] bytes of plaintext.
    pub const SEALED: usize = 32 * 1024;
    /// Size of the plaintext buffer that [`Session::receive`] needs, in bytes.
    pub const PLAIN: usize = 64 * 1024;

    pub fn new(tls: &Tls) -> Result<Self, Error> {
        let tls = ClientConnection::new(tls.config.clone(), tls.name.clone())?;
        Ok(Session { tls, ended: false })
    }

    /// Returns the negotiated parameters, once the handshake is complete.
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

    /// Whether the handshake is not complete yet.
    pub fn is_opening(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Whether the server has closed its side, and everything before that was received.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether something waits for room in the socket.
    pub fn has_to_write(&self) -> bool {
        self.tls.wants_write()
    }

    /// Reads once from the socket into `sealed`, and decrypts all complete records into `plain`, which
    /// is at least [`Session::PLAIN`] long. No plaintext stays in the session, because the poller would
    /// not report it. If the end of the stream came with the bytes, [`Session::has_ended`] returns true.
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
            // Reading from memory fails only if the session's buffer is full. It is not, because
            // complete records are taken out at once.
            self.tls.read_tls(&mut sealed).map_err(|error| Fault::Protocol(error_of(error)))?;
            let state = match self.tls.process_new_packets() {
                Ok(state) => state,
                Err(error) => {
                    // Sends the alert, if the server still reads.
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

    /// Sends pending records, then as much of `bytes` as the socket accepts. Returns how many bytes of
    /// them were taken: none during the handshake.
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

    /// Sends `close_notify`, if the handshake is complete and the socket has room for it.
    pub fn end(mut self, socket: BorrowedFd<'_>) {
        if !self.is_opening() {
            self.tls.send_close_notify();
            let _ = self.flush(socket);
        }
    }

    /// Writes pending records until none remain or the socket is full.
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

/// Lets rustls write several records to a socket at once.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Roots;
    use rustix::fd::AsFd;
    use rustls::{
        ServerConfig, ServerConnection, SupportedProtocolVersion,
        crypto::ring,
        pki_types::{PrivateKeyDer, pem::PemObject},
        version,
    };
    use std::os::unix::net::UnixStream;

    /// A client session and a server connection over a socket pair, after the handshake.
    struct Pair {
        session: Session,
        ours: UnixStream,
        server: ServerConnection,
        theirs: UnixStream,
        sealed: Vec<u8>,
        plain: Vec<u8>,
    }

    impl Pair {
        fn new(version: &'static SupportedProtocolVersion) -> Pair {
            let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
            let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes());
            let config = ServerConfig::builder_with_provider(ring::default_provider().into())
                .with_protocol_versions(&[version])
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![made.cert.der().clone()], key.unwrap());
            let (ours, theirs) = UnixStream::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            theirs.set_nonblocking(true).unwrap();
            let mut pair = Pair {
                session: Session::new(&Tls::new("localhost", &Roots::Unchecked).unwrap()).unwrap(),
                ours,
                server: ServerConnection::new(config.unwrap().into()).unwrap(),
                theirs,
                sealed: vec![0; Session::SEALED],
                plain: vec![0; Session::PLAIN],
            };
            for _ in 0..10 {
                pair.session.send(pair.ours.as_fd(), b"").unwrap();
                // Bytes that are not there yet come with the next iteration.
                let _ = pair.server.complete_io(&mut pair.theirs);
                pair.receive().unwrap();
            }
            assert!(!pair.session.is_opening() && !pair.server.is_handshaking());
            pair
        }

        fn receive(&mut self) -> Result<Received, Fault> {
            self.session.receive(self.ours.as_fd(), &mut self.sealed, &mut self.plain)
        }

        /// Encrypts each text as one record.
        fn seal(&mut self, texts: &[&[u8]]) -> Vec<u8> {
            let mut sealed = Vec::new();
            for text in texts {
                self.server.writer().write_all(text).unwrap();
                self.server.write_tls(&mut sealed).unwrap();
            }
            sealed
        }
    }

    #[test]
    fn records_may_be_split_anywhere_and_complete_ones_are_decrypted_at_once() {
        for version in [&version::TLS12, &version::TLS13] {
            let mut pair = Pair::new(version);
            let texts: [&[u8]; 2] = [b"one", b"and another"];
            let ends: Vec<_> = (1..=2).map(|n| pair.seal(&texts[..n]).len()).collect();
            // These records only measured the lengths, and are never received.
            let mut pair = Pair::new(version);
            for cut in 0..=ends[1] {
                let sealed = pair.seal(&texts);
                assert_eq!(sealed.len(), ends[1]);
                let whole: Vec<u8> = match () {
                    () if cut >= ends[1] => texts.concat(),
                    () if cut >= ends[0] => texts[0].to_vec(),
                    () => Vec::new(),
                };
                let mut came = Vec::new();
                for (i, part) in [&sealed[..cut], &sealed[cut..]].into_iter().enumerate() {
                    pair.theirs.write_all(part).unwrap();
                    match pair.receive().unwrap() {
                        Received::Bytes(n) => came.extend_from_slice(&pair.plain[..n]),
                        Received::Nothing => {}
                        Received::End => panic!("unexpected end of input"),
                    }
                    if i == 0 {
                        assert_eq!(came, whole, "cut at {cut}");
                    }
                }
                assert_eq!(came, texts.concat(), "cut at {cut}");
            }
        }
    }

    #[test]
    fn the_longest_records_are_all_received_after_a_part_of_another() {
        let mut pair = Pair::new(&version::TLS13);
        let text = vec![b'x'; 16 * 1024];
        let sealed = pair.seal(&[&text, &text, &text]);
        let mut came = 0;
        for part in [&sealed[..text.len()], &sealed[text.len()..]] {
            pair.theirs.write_all(part).unwrap();
            while let Received::Bytes(n) = pair.receive().unwrap() {
                assert!(pair.plain[..n].iter().all(|byte| *byte == b'x'));
                came += n;
            }
        }
        assert_eq!(came, 3 * text.len());
    }

    #[test]
    fn an_end_without_close_notify_is_a_fault() {
        let mut pair = Pair::new(&version::TLS13);
        pair.server.send_close_notify();
        let sealed = pair.seal(&[b""]);
        pair.theirs.write_all(&sealed).unwrap();
        assert_eq!(pair.receive().unwrap(), Received::End);
        let mut pair = Pair::new(&version::TLS13);
        let sealed = pair.seal(&[b"last"]);
        pair.theirs.write_all(&sealed).unwrap();
        drop(pair.theirs);
        let came = pair.session.receive(pair.ours.as_fd(), &mut pair.sealed, &mut pair.plain);
        assert_eq!(came.unwrap(), Received::Bytes(4));
        let came = pair.session.receive(pair.ours.as_fd(), &mut pair.sealed, &mut pair.plain);
        assert!(matches!(came, Err(Fault::CutOff)), "{came:?}");
    }

    #[test]
    fn a_changed_byte_is_a_fault() {
        let mut pair = Pair::new(&version::TLS13);
        let mut sealed = pair.seal(&[b"text"]);
        *sealed.last_mut().unwrap() ^= 1;
        pair.theirs.write_all(&sealed).unwrap();
        let came = pair.receive();
        assert!(matches!(came, Err(Fault::Protocol(Error::DecryptError))), "{came:?}");
    }

    /// The socket accepts only a part: the rest is sent later, and no byte twice.
    #[test]
    fn a_partial_write_continues() {
        let mut pair = Pair::new(&version::TLS13);
        let text: Vec<u8> = (0..2_000_000_u32).map(|i| i as u8).collect();
        let (mut taken, mut came, mut cuts) = (0, Vec::new(), 0);
        let ends = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while came.len() < text.len() {
            assert!(std::time::Instant::now() < ends, "{} bytes came", came.len());
            taken += pair.session.send(pair.ours.as_fd(), &text[taken..]).unwrap();
            cuts += usize::from(pair.session.has_to_write());
            while pair.server.read_tls(&mut pair.theirs).is_ok_and(|n| n > 0) {
                pair.server.process_new_packets().unwrap();
                let _ = pair.server.reader().read_to_end(&mut came);
            }
        }
        assert!(came == text && cuts > 0, "cut {cuts} times");
        assert!(!pair.session.has_to_write());
    }
}
