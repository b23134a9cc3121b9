//! What TLS adds to a connection of a load thread: handshakes, decryption before the check, and failures
//! that may end the run.

use super::{driver::Driver, loss::Loss, state::Worker};
use crate::sockets::{
    connection::{Connection, State},
    socket::{self, Received},
    tls::{self, Fault, Session},
};
use regatta_script::Dialect;
use rustix::fd::{AsFd, BorrowedFd};

impl<D: Dialect, V: Driver> Worker<'_, D, V> {
    /// Reads once, decrypts the bytes and checks them; continues a handshake.
    pub(super) fn read_sealed(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        let (Some(socket), Some(session)) = (&connection.socket, &mut connection.tls) else {
            return;
        };
        match session.receive(socket.as_fd(), &mut self.sealed, &mut self.buffer) {
            Ok(Received::Bytes(n)) => {
                self.reads_all = false;
                self.count.received += n as u64;
                self.handle_bytes(slot, n);
            }
            Ok(Received::Nothing) => {}
            Ok(Received::End) => return self.end_of_input(slot),
            Err(fault) => return self.lost(slot, fault.into()),
        }
        // The slot may already hold another connection.
        let connection = &self.connections[slot as usize];
        let Some(session) = &connection.tls else { return };
        if session.has_ended() {
            return self.end_of_input(slot);
        }
        let through = connection.state == State::Connecting && !session.is_opening();
        if through && let Some(tls) = &self.plan.tls {
            self.shared.spoke(|| session.spoken(tls));
        }
        if through || session.has_to_write() {
            self.write(slot);
        }
    }

    /// Reads once from the socket into the buffer, and decrypts if the connection uses TLS.
    pub(super) fn take_in(&mut self, slot: u32) -> Result<Received, Loss> {
        let Connection { socket, tls, .. } = &mut self.connections[slot as usize];
        let Some(socket) = socket else { return Ok(Received::Nothing) };
        match tls {
            None => socket::receive_some(socket, &mut self.buffer).map_err(Loss::Read),
            Some(session) => {
                Ok(session.receive(socket.as_fd(), &mut self.sealed, &mut self.buffer)?)
            }
        }
    }

    /// Ends the run if a TLS failure is permanent. A certificate that is not accepted will not be
    /// accepted the next time, and a server that never answered, on any thread, does not speak TLS.
    pub(super) fn end_if_permanent(&self, state: State, error: &rustls::Error) {
        if state == State::Open {
            return;
        }
        // The gauges may not include this thread's latest replies.
        let never = self.replies == 0 && self.shared.sums().replies == 0;
        if never || tls::is_about_certificate(error) {
            self.shared.end_without_tls(error);
        }
    }
}

/// Sends pending TLS records and as much of `bytes` as possible. Returns how many bytes were taken, and
/// whether anything still waits for room in the socket.
pub(super) fn send_sealed(
    session: &mut Session,
    socket: BorrowedFd<'_>,
    bytes: &[u8],
) -> Result<(usize, bool), Fault> {
    let taken = session.send(socket, bytes)?;
    let left = !session.is_opening() && taken < bytes.len();
    Ok((taken, left || session.has_to_write()))
}

impl From<Fault> for Loss {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::System(errno) => Loss::Read(errno),
            Fault::Protocol(error) => Loss::Tls(error),
            Fault::CutOff => Loss::CutOff,
        }
    }
}
