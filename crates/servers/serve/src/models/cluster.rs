//! `cluster`: a process per core, each with callbacks, its own epoll(7) and its own listener
//! (SO_REUSEPORT). The processes share the count of open connections. If their sessions post to
//! each other, a mesh of sockets connects the processes.

use crate::{
    between::{letters::Letters, membership::PushSessionFactory, mesh::Sockets},
    children::{Children, Side, leave},
    host::{Host, Places, Seat, ServeError},
    models::reactor,
};
use regatta_engine::Sessions;
use regatta_service::Program;
use regatta_sys::epoll::Epoll;
use std::{io, os::fd::OwnedFd};

pub(crate) fn run<P: Program>(program: P, host: &Host) -> Result<(), ServeError> {
    let processes = Processes::start(
        host,
        |(), _, listener, places| {
            let pool = host.pool()?; // each process has its own
            let letters = None::<Letters<_>>;
            let seat = Seat { listener: Some(listener), places, pool, letters };
            Ok(reactor::run(Sessions::new(program.clone()), host, seat, Epoll::edge_triggered()?)?)
        },
        (),
    )?;
    processes.run()
}

/// Starts the processes of a server whose sessions post to each other. `begin` is called in each of them, with its
/// number.
pub(crate) fn start_members<F: PushSessionFactory>(
    start: F,
    host: &Host,
    begin: impl Fn(usize) -> io::Result<()>,
) -> Result<Processes<'_>, ServeError> {
    let mesh = Sockets::new(host.cores.get())?;
    Processes::start(
        host,
        |mesh: Sockets, core, listener, places| {
            begin(core)?;
            let letters = Some(mesh.of(core));
            let seat = Seat { listener: Some(listener), places, pool: None, letters };
            Ok(reactor::run(Sessions::new(start.clone()), host, seat, Epoll::edge_triggered()?)?)
        },
        mesh,
    )
}

/// The processes of a running server.
pub(crate) struct Processes<'h> {
    host: &'h Host,
    children: Children,
}

impl<'h> Processes<'h> {
    /// Starts the processes. Each one gets `shared`, its index, its listener and the connection
    /// limit of all.
    fn start<S>(
        host: &'h Host,
        serve: impl Fn(S, usize, OwnedFd, Places) -> Result<(), ServeError>,
        shared: S,
    ) -> Result<Self, ServeError> {
        let mut children = Children::new()?;
        let mut listeners = host.listen_per_core()?;
        let places = Places::new(host.connections)?;
        for core in 0..listeners.len() {
            if children.fork(host)? == Side::Child {
                leave(move || {
                    // Close the other listeners, so that connections of a core that is gone are not
                    // queued here.
                    let listener = listeners.swap_remove(core);
                    drop(listeners);
                    serve(shared, core, listener, places)
                });
            }
        }
        host.ready(&listeners[0])?;
        Ok(Processes { host, children })
    }

    /// Waits until the host stops or a process has ended. Then all processes end.
    pub(crate) fn run(mut self) -> Result<(), ServeError> {
        let watched = self.children.watch(self.host);
        // If a child has ended before a stop, the others finish their pending replies.
        if watched.is_err() {
            self.host.stop.fail();
        }
        let drained = self.children.drain_parts(self.host);
        watched.and(drained)
    }
}
