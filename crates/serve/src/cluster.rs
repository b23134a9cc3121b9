//! `cluster`: a process per core, each with callbacks over an epoll(7) and a listener of its own
//! (SO_REUSEPORT). What the processes share is the count of open connections, no more.

use crate::{
    children::{Children, Side, leave},
    host::{Host, Places, Seat, ServeError},
    reactor,
};
use regatta_engine::Sessions;
use regatta_service::Program;
use regatta_sys::epoll::Epoll;

pub(crate) fn run<P: Program>(program: P, host: &Host) -> Result<(), ServeError> {
    let mut children = Children::new()?;
    let listeners = host.listen_per_core()?;
    let places = Places::new(host)?;
    for i in 0..listeners.len() {
        if children.fork(host)? == Side::Child {
            leave(move || {
                // The other listeners close: connections of a core that is gone are not queued here.
                let listener = listeners.into_iter().nth(i);
                let pool = host.pool()?; // each process has one of its own
                let seat = Seat { listener, places, pool, letters: None };
                Ok(reactor::run(Sessions::new(program), host, seat, Epoll::edge_triggered()?)?)
            });
        }
    }
    host.ready(&listeners[0])?;
    drop(listeners);
    let watched = children.watch(host);
    host.stop.set(); // also where a child has ended: the others finish what they owe
    children.drain(host)?;
    watched
}
