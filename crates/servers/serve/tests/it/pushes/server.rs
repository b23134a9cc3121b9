//! A server on a model, in a thread of the test, and its clients.

use crate::{
    DEADLINE,
    client::{Client, that_run},
    pushes::chat::Chat,
};
use regatta_engine::Limits;
use regatta_serve::{Host, Model, ServeError, Stop, serve_members};
use std::{
    cell::RefCell,
    net::SocketAddr,
    num::NonZeroUsize,
    sync::{
        atomic::Ordering::SeqCst,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

/// The models tested with pushes, if the kernel can run them.
pub fn models() -> impl Iterator<Item = Model> {
    let all = [
        Model::Threads,
        Model::Green,
        Model::Select,
        Model::Poll,
        Model::Epoll,
        Model::Percore,
        Model::Uring,
        Model::Async,
    ];
    that_run(all)
}

/// Runs a test on all models at once, for tests that mostly wait. Threads have the model's name,
/// which a panic shows.
pub fn on_all_models(test: impl Fn(Model) + Sync) {
    let test = &test;
    thread::scope(|scope| {
        for model in models() {
            let thread = thread::Builder::new().name(model.name().into());
            thread.spawn_scoped(scope, move || test(model)).unwrap();
        }
    });
}

/// Waits until `what` holds.
pub fn wait_until(why: &str, mut what: impl FnMut() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < DEADLINE, "{why}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The settings of a server.
pub struct Setting {
    pub limits: Limits,
    pub connections: usize,
    pub drain: Duration,
    pub grace: Duration,
}

impl Default for Setting {
    fn default() -> Self {
        Setting {
            limits: Limits { idle: 2 * DEADLINE, request: DEADLINE },
            connections: usize::MAX,
            drain: Duration::ZERO,
            grace: DEADLINE,
        }
    }
}

thread_local! {
    /// Where a server of this thread reports its address. It is a thread-local because the host's
    /// callback is a plain function.
    static READY: RefCell<Option<Sender<SocketAddr>>> = const { RefCell::new(None) };
}

fn ready(addr: SocketAddr) {
    READY.with_borrow(|ready| ready.as_ref().map(|to| to.send(addr)));
}

/// A running server. It is stopped when dropped.
pub struct Server {
    pub addr: SocketAddr,
    chat: Chat,
    stop: Stop,
    over: Receiver<Result<(), ServeError>>,
}

impl Server {
    pub fn start(model: Model, setting: Setting) -> Server {
        let stop = Stop::new().unwrap();
        let chat = Chat::default();
        let (to, address) = channel();
        let (done, over) = channel();
        {
            let (chat, host) = (chat.clone(), host(&setting, stop.clone()));
            thread::spawn(move || {
                READY.set(Some(to));
                let _ = done.send(serve_members(chat, model, &host));
            });
        }
        let addr = address.recv_timeout(DEADLINE).expect("it listens in time");
        Server { addr, chat, stop, over }
    }

    pub fn client(&self) -> Client {
        Client::connect(self.addr)
    }

    /// A client that has joined.
    pub fn member(&self) -> Client {
        let mut client = self.client();
        client.join();
        client
    }

    pub fn members(&self, count: usize) -> Vec<Client> {
        (0..count).map(|_| self.member()).collect()
    }

    /// Returns the number of sessions.
    pub fn sessions(&self) -> usize {
        self.chat.counts.sessions.load(SeqCst)
    }

    /// Returns the number of pushes that all sessions have received.
    pub fn heard(&self) -> usize {
        self.chat.counts.heard.load(SeqCst)
    }

    /// Returns the number of members that were closed because they did not read.
    pub fn slow(&self) -> usize {
        self.chat.slow()
    }

    /// Starts to stop the server.
    pub fn stop(&self) {
        self.stop.set();
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

pub fn host(setting: &Setting, stop: Stop) -> Host {
    Host {
        listen: "127.0.0.1:0".parse().unwrap(),
        cores: NonZeroUsize::new(2).unwrap(),
        limits: setting.limits,
        connections: setting.connections,
        admission: None,
        unix: None,
        inherited: None,
        offload: None,
        drain: setting.drain,
        grace: setting.grace,
        on_ready: ready,
        stop,
    }
}
