//! New connections: accepted, or opened for the engine. Also pauses of accepting, and the stop.

use super::{ACCEPTS, FAILURE, LISTENER, Reactor, State};
use crate::{
    between::mail::Mail,
    host::{PAUSE, Place},
};
use regatta_engine::{Conn, Engine};
use regatta_sys::{Interest, Readiness, net};
use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};

impl<E: Engine, R: Readiness, M: Mail<E::Letter>> Reactor<'_, E, R, M> {
    pub(super) fn accept(&mut self) -> io::Result<()> {
        for _ in 0..ACCEPTS {
            let Some(listener) = &self.seat.listener else { return Ok(()) };
            let Some(place) = self.seat.places.take() else { return self.pause() };
            match net::accept(listener) {
                Ok(socket) => {
                    self.hear_first()?;
                    if let Some(because) = self.readiness.refusal(socket.as_fd()) {
                        self.refusals.add(self.core.now().instant, because);
                        continue;
                    }
                    let Some(place) = self.host.admit(place, &socket) else { continue };
                    if E::CONNECTS {
                        // Fails only for a connection that is gone, which is noticed below.
                        let _ = net::detect_vanished_peers(&socket);
                    }
                    let conn = self.core.accept();
                    // The first request has often arrived already. So the connection is read before
                    // it is watched, and one that is finished at once is never watched.
                    self.insert(conn, socket, Some(place), true);
                    self.serve(conn)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if net::is_transient(&error) => {}
                // Out of descriptors or memory: clients wait in the accept queue.
                Err(_) => return self.pause(),
            }
        }
        if self.edge {
            self.resume_at = Some(self.core.now().instant); // no other event reports the rest
        }
        Ok(())
    }

    pub(super) fn insert(
        &mut self,
        conn: Conn,
        socket: OwnedFd,
        place: Option<Place>,
        connected: bool,
    ) {
        let state = State {
            watched: None,
            readable: connected,
            writable: connected,
            ended: false,
            connecting: !connected,
            again: false,
            held: false,
        };
        self.sockets.insert(conn, socket, place, state);
    }

    /// Stops accepting for a while.
    pub(super) fn pause(&mut self) -> io::Result<()> {
        if let (Some(listener), false) = (&self.seat.listener, self.paused) {
            self.readiness.remove(listener.as_fd())?;
            self.paused = true;
        }
        self.resume_at = Some(self.core.now().instant + PAUSE);
        Ok(())
    }

    pub(super) fn resume(&mut self) -> io::Result<()> {
        self.resume_at = None;
        match &self.seat.listener {
            Some(listener) if self.paused => {
                self.readiness.add(listener.as_fd(), LISTENER, Interest::READ)?;
                self.paused = false;
                Ok(())
            }
            _ => self.accept(),
        }
    }

    /// Opens the connections that the engine has requested. Those that it requests meanwhile are
    /// opened in the next turn.
    pub(super) fn connect(&mut self) -> io::Result<()> {
        for _ in 0..self.core.connects() {
            let Some((conn, to)) = self.core.next_connect() else { break };
            match net::connect(to) {
                Ok(socket) => self.insert(conn, socket, None, false),
                Err(error) => self.core.not_opened(conn, &error),
            }
            self.flush_one(conn)?;
        }
        Ok(())
    }

    /// Accepts no more clients, and starts to drain those that are connected.
    pub(super) fn stop(&mut self) -> io::Result<()> {
        self.readiness.remove(self.host.stop.as_fd())?;
        if let (Some(listener), false) = (self.seat.listener.take(), self.paused) {
            self.readiness.remove(listener.as_fd())?;
        }
        self.resume_at = None;
        let drain = self.host.drain_time();
        if drain.is_zero() {
            self.end_input();
        } else {
            self.readiness.add(self.host.stop.failure(), FAILURE, Interest::READ)?;
            self.core.drain(drain, rand::random());
        }
        Ok(())
    }

    /// Another part of the server has failed: the drain ends.
    pub(super) fn fail(&mut self) -> io::Result<()> {
        self.readiness.remove(self.host.stop.failure())?;
        if self.core.is_draining() {
            self.end_input();
        }
        Ok(())
    }

    /// Shuts down the input of all clients. Input that has arrived is still answered.
    pub(super) fn end_input(&mut self) {
        self.core.stop(self.host.grace);
        for conn in self.core.to_drain() {
            if let Some(slot) = self.sockets.get(conn) {
                // A connection that is already gone reports it at its next read.
                let _ = net::shutdown_read(&slot.fd);
            }
        }
    }
}
