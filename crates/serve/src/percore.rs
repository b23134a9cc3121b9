//! `percore`: a thread per core, each with callbacks over an epoll(7) and a listener of its own
//! (SO_REUSEPORT).

use crate::{
    host::{Host, Places, ServeError, StopOnEnd},
    reactor,
};
use regatta_service::Program;
use regatta_sys::epoll::Epoll;
use std::thread;

pub(crate) fn run<P: Program>(program: P, host: &Host) -> Result<(), ServeError> {
    let listeners = host.listen_per_core()?;
    let places = Places::new(host)?;
    host.ready(&listeners[0])?;
    thread::scope(|scope| {
        let cores: Vec<_> = listeners
            .into_iter()
            .map(|listener| {
                let (program, places) = (program.clone(), places.clone());
                scope.spawn(move || {
                    let _whole = StopOnEnd(&host.stop);
                    reactor::run(program, host, places, listener, Epoll::new()?)
                })
            })
            .collect();
        cores.into_iter().try_for_each(|core| Ok(core.join().expect("a reactor does not panic")?))
    })
}
