//! Closing the connection of a member.

use crate::host::{PAUSE, Stop};
use regatta_engine::{Flow, Limits};
use regatta_sys::{net, queue};
use std::{io, net::TcpStream, thread, time::Instant};

/// Shuts down our sending side and keeps reading for a while, so that a reset does not overtake the
/// last bytes. After [`Flow::ClosedByClient`] it does not read, and during a stop it does nothing. `cut`: the
/// server has shut down the input.
pub(super) fn finish(stream: &TcpStream, flow: Flow, cut: bool, stop: &Stop) -> io::Result<()> {
    if stop.is_set() {
        return Ok(());
    }
    net::shutdown_write(stream)?;
    let due = Instant::now() + Limits::LINGER;
    let mut allowed = Limits::LINGER_BYTES;
    let mut discard = [0; 1024];
    while flow == Flow::Close && Instant::now() < due {
        net::set_read_timeout(stream, due.saturating_duration_since(Instant::now()))?;
        match net::read(stream, &mut discard) {
            Ok(read) if (1..allowed).contains(&read) => allowed -= read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The end of input is our own then, and does not prove that the client has received
            // everything.
            Ok(0) if cut && queue::unacknowledged(stream).is_ok_and(|bytes| bytes > 0) => {
                thread::sleep(PAUSE / 4);
            }
            _ => break,
        }
    }
    Ok(())
}
