//! New connections: accepted, or opened for the engine. Also pauses of accepting, and the stop.

use super::{Driver, FAILURE, Receiving, State};
use crate::host::{PAUSE, Place};
use regatta_engine::{Conn, Engine};
use regatta_sys::net;
use std::{io, os::fd::OwnedFd, rc::Rc};

impl<E: Engine> Driver<'_, E> {
    pub(super) fn accepted(&mut self, result: io::Result<OwnedFd>, more: bool) -> io::Result<()> {
        self.accepting = more;
        if self.core.is_stopping() {
            if !more {
                self.listener = None;
            }
            return Ok(()); // it is too late: the connection is closed
        }
        match result {
            Ok(socket) => {
                self.parked.push_back(socket);
                if !self.admit()? {
                    self.pause()?;
                }
            }
            Err(error) if net::is_transient(&error) => {}
            Err(_) if self.resume_at.is_some() => {} // cancelled by a pause
            // Out of descriptors or memory: clients wait in the accept queue.
            Err(_) => self.pause()?,
        }
        self.accept()
    }

    /// Gives waiting connections their places. Returns `false` if there are too few.
    pub(super) fn admit(&mut self) -> io::Result<bool> {
        while !self.parked.is_empty() {
            let Some(place) = self.seat.places.take() else { return Ok(false) };
            let Some(socket) = self.parked.pop_front() else { break };
            let Some(place) = self.host.admit(place, &socket) else { continue };
            self.hear_first();
            if E::CONNECTS {
                // Fails only for a connection that is gone, which is noticed below.
                let _ = net::detect_vanished_peers(&socket);
            }
            let conn = self.core.accept();
            self.insert(conn, socket, Some(place), false);
            // The first request has often arrived already, and it may be the only one.
            self.read_now(conn);
            self.post();
            self.serve(conn)?;
        }
        Ok(true)
    }

    pub(super) fn insert(
        &mut self,
        conn: Conn,
        socket: OwnedFd,
        place: Option<Place>,
        connecting: bool,
    ) {
        let state = State {
            receiving: Receiving::No,
            received_in: 0,
            received: 0,
            singly: 0,
            sending: None,
            sent: 0,
            fresh: true,
            changed: false,
            closing: false,
            held: false,
            connecting,
        };
        self.sockets.insert(conn, Rc::new(socket), place, state);
    }

    pub(super) fn accept(&mut self) -> io::Result<()> {
        if let (Some(listener), false, None) = (&self.listener, self.accepting, self.resume_at) {
            self.ring.accept(listener, self.many)?;
            self.accepting = true;
        }
        Ok(())
    }

    /// Stops accepting for a while.
    pub(super) fn pause(&mut self) -> io::Result<()> {
        if self.resume_at.is_none() && self.accepting {
            self.ring.cancel_accept()?;
        }
        self.resume_at = Some(self.core.now().instant + PAUSE);
        Ok(())
    }

    pub(super) fn resume(&mut self) -> io::Result<()> {
        if !self.admit()? || self.seat.places.are_full() {
            return self.pause();
        }
        self.resume_at = None;
        self.accept()
    }

    /// Opens the connections that the engine has requested. Those that it requests meanwhile are
    /// opened in the next turn.
    pub(super) fn connect(&mut self) -> io::Result<()> {
        for _ in 0..self.core.connects() {
            let Some((conn, to)) = self.core.next_connect() else { break };
            match net::connect(to) {
                Ok(socket) => {
                    let key = self.connecting.insert(conn) as u32;
                    self.ring.watch_writable(&socket, key)?;
                    self.insert(conn, socket, None, true);
                }
                Err(error) => self.core.not_opened(conn, &error),
            }
            self.serve(conn)?;
        }
        Ok(())
    }

    /// Handles a connection that was being opened: it is open, failed, or gone.
    pub(super) fn connected(&mut self, key: u32) {
        let conn = self.connecting.remove(key as usize);
        let Some(slot) = self.sockets.get_mut(conn) else { return };
        slot.driver.connecting = false;
        let opened = net::opened(&slot.fd).and_then(|()| net::set_blocking(&slot.fd));
        match opened {
            Ok(()) => self.core.connected(conn),
            Err(_) => self.core.failed(conn),
        }
        self.change(conn);
    }

    /// Accepts no more clients, and starts to drain those that are connected.
    pub(super) fn stop(&mut self) -> io::Result<()> {
        if self.accepting {
            self.ring.cancel_accept()?;
        } else {
            self.listener = None;
        }
        self.parked.clear();
        self.resume_at = None;
        let drain = self.host.drain_time();
        if drain.is_zero() {
            self.end_input();
        } else {
            self.ring.watch(self.host.stop.failure(), FAILURE)?;
            self.core.drain(drain, rand::random());
        }
        Ok(())
    }

    /// Another part of the server has failed: the drain ends.
    pub(super) fn fail(&mut self) {
        if self.core.is_draining() {
            self.end_input();
        }
    }

    /// Shuts down the input of all clients. Input that has arrived is still answered.
    pub(super) fn end_input(&mut self) {
        self.core.stop(self.host.grace);
        for conn in self.core.to_drain() {
            if let Some(slot) = self.sockets.get(conn) {
                // A connection that is already gone reports it at its next receive.
                let _ = net::shutdown_read(&slot.fd);
            }
        }
    }
}
