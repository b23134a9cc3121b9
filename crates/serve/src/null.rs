//! The null server: sends back what it reads, without looking. An epoll loop with nothing in it,
//! the floor of every race and the measure of the load generator.

use crate::host::{Host, PAUSE, ServeError};
use regatta_sys::{Event, Interest, Readiness, epoll::Epoll, net};
use std::{
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
};

/// Bytes of one read.
const READ: usize = 64 * 1024;
const LISTENER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;

pub(crate) fn run(host: &Host) -> Result<(), ServeError> {
    let listener = host.listen()?;
    let mut epoll = Epoll::new()?;
    epoll.add(host.stop.as_fd(), STOP, Interest::READ)?;
    epoll.add(listener.as_fd(), LISTENER, Interest::READ)?;
    host.ready(&listener)?;
    let mut connections: Vec<Option<OwnedFd>> = Vec::new(); // by descriptor
    let mut events: Vec<Event> = Vec::new();
    let mut bytes = vec![0; READ];
    loop {
        epoll.wait(&mut events, None)?;
        for event in &events {
            match event.token {
                STOP => return Ok(()),
                LISTENER => accept(&listener, &mut epoll, &mut connections)?,
                token => {
                    let Some(socket) = &connections[token as usize] else { continue };
                    let echoed = match net::read(socket, &mut bytes) {
                        Ok(0) => false,
                        // A reply that does not fit is the end: a floor needs no backpressure.
                        Ok(read) => net::write(socket, &bytes[..read]).is_ok_and(|w| w == read),
                        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
                    };
                    if !echoed {
                        connections[token as usize] = None;
                    }
                }
            }
        }
    }
}

fn accept(
    listener: &OwnedFd,
    epoll: &mut Epoll,
    connections: &mut Vec<Option<OwnedFd>>,
) -> io::Result<()> {
    loop {
        match net::accept(listener) {
            Ok(socket) => {
                let token = socket.as_raw_fd() as usize;
                epoll.add(socket.as_fd(), token as u64, Interest::READ)?;
                if connections.len() <= token {
                    connections.resize_with(token + 1, || None);
                }
                connections[token] = Some(socket);
            }
            Err(error) if net::is_transient(&error) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(_) => {
                std::thread::sleep(PAUSE); // out of descriptors
                return Ok(());
            }
        }
    }
}
