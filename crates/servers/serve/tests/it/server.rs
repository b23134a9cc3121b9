//! A server in a thread of the test.

use crate::{DEADLINE, client::Client};
use regatta_engine::{Engine, Limits};
use regatta_serve::{Host, Model, ServeError, Stop, serve_engine};
use std::{
    cell::RefCell,
    net::SocketAddr,
    num::NonZeroUsize,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread,
    time::Duration,
};

/// The settings of a server.
pub struct Setting {
    pub cores: usize,
    pub limits: Limits,
    pub connections: usize,
    pub drain: Duration,
    pub grace: Duration,
    /// A client sends this before the server accepts connections.
    pub early: Option<&'static str>,
}

impl Default for Setting {
    fn default() -> Self {
        Setting {
            cores: 1,
            limits: Limits { idle: 2 * DEADLINE, request: DEADLINE },
            connections: usize::MAX,
            drain: Duration::ZERO,
            grace: DEADLINE,
            early: None,
        }
    }
}

thread_local! {
    /// Where a server of this thread reports its address. It is a thread-local because the host's
    /// callback is a plain function.
    static READY: RefCell<Option<Ready>> = const { RefCell::new(None) };
}

struct Ready {
    to: Sender<(SocketAddr, Option<Client>)>,
    early: Option<&'static str>,
}

/// Called by the serving thread when it listens, before it accepts.
fn ready(addr: SocketAddr) {
    READY.with_borrow(|ready| {
        let ready = ready.as_ref().expect("set by the serving thread");
        let early = ready.early.map(|request| {
            let mut client = Client::connect(addr);
            client.send(request);
            client
        });
        ready.to.send((addr, early)).expect("the test waits");
    });
}

/// A running server. It is stopped when dropped.
pub struct Server {
    pub addr: SocketAddr,
    /// The client that has sent [`Setting::early`].
    pub early: Option<Client>,
    stop: Stop,
    over: Receiver<Result<(), ServeError>>,
}

impl Server {
    /// Starts a server that runs in `serve`.
    pub fn start(
        setting: &Setting,
        serve: impl FnOnce(&Host) -> Result<(), ServeError> + Send + 'static,
    ) -> Server {
        let stop = Stop::new().unwrap();
        let host = host(setting, stop.clone());
        let (to, address) = channel();
        let (done, over) = channel();
        let ready = Ready { to, early: setting.early };
        thread::spawn(move || {
            READY.set(Some(ready));
            let _ = done.send(serve(&host));
        });
        let (addr, early) = address.recv_timeout(DEADLINE).expect("it listens in time");
        Server { addr, early, stop, over }
    }

    /// Starts a server of engines.
    pub fn of_engines<E: Engine>(
        model: Model,
        setting: &Setting,
        engine: impl Fn() -> E + Send + Sync + 'static,
    ) -> Server {
        Server::start(setting, move |host| serve_engine(engine, model, host))
    }

    pub fn client(&self) -> Client {
        Client::connect(self.addr)
    }

    /// Starts to stop the server.
    pub fn stop(&self) {
        self.stop.set();
    }

    /// Waits until it has ended with an error or a panic.
    pub fn fails(&self) {
        match self.over.recv_timeout(DEADLINE) {
            Ok(ended) => assert!(ended.is_err()),
            // The serving thread panicked.
            Err(error) => assert_eq!(error, RecvTimeoutError::Disconnected),
        }
    }

    /// Waits until it has stopped.
    pub fn join(&self) {
        self.over.recv_timeout(DEADLINE).expect("it stops in time").expect("without an error");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.set();
    }
}

/// The host of a server with these settings.
pub fn host(setting: &Setting, stop: Stop) -> Host {
    Host {
        cores: NonZeroUsize::new(setting.cores).unwrap(),
        limits: setting.limits,
        connections: setting.connections,
        drain: setting.drain,
        grace: setting.grace,
        on_ready: ready,
        ..Host::new("127.0.0.1:0".parse().unwrap(), stop)
    }
}
