//! A server on a model, in a thread of the test; and its clients.

use crate::{DEADLINE, chat::Chat};
use regatta_engine::Limits;
use regatta_serve::{Host, Model, ServeError, Stop, serve_members};
use rustix::net::{AddressFamily, SocketType, connect, socket, sockopt};
use std::{
    cell::RefCell,
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    num::NonZeroUsize,
    sync::{
        RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::Ordering::SeqCst,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

/// The models that carry pushes, where the kernel lets them.
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
    all.into_iter().filter(|model| match model.refused() {
        Some(why) => {
            eprintln!("skipped: {}: {why}", model.name());
            false
        }
        None => {
            eprintln!("model: {}", model.name());
            true
        }
    })
}

/// On all models at once, for tests that mostly wait. The thread that panics has the model's name.
pub fn on_all_models(test: impl Fn(Model) + Sync) {
    let test = &test;
    thread::scope(|scope| {
        for model in models() {
            let thread = thread::Builder::new().name(model.name().into());
            thread.spawn_scoped(scope, move || test(model)).unwrap();
        }
    });
}

static TESTS: RwLock<()> = RwLock::new(());

/// Held by a test that measures nothing.
pub fn together() -> RwLockReadGuard<'static, ()> {
    TESTS.read().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Held by a test that measures the memory or the time of this process.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    TESTS.write().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Resident memory of this process, in bytes.
pub fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024
}

/// Waits until `what` holds.
pub fn wait_until(why: &str, mut what: impl FnMut() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < DEADLINE, "{why}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// What a server runs with.
pub struct Setting {
    pub limits: Limits,
    pub connections: usize,
    pub grace: Duration,
    pub greets: bool,
}

impl Default for Setting {
    fn default() -> Self {
        Setting {
            limits: Limits { idle: 2 * DEADLINE, request: DEADLINE },
            connections: usize::MAX,
            grace: DEADLINE,
            greets: false,
        }
    }
}

thread_local! {
    /// Where a server of this thread reports its address: a host's callback is a plain function.
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
        let chat = Chat { greets: setting.greets, ..Chat::default() };
        let (to, address) = channel();
        let (done, over) = channel();
        {
            let (chat, host) = (chat.clone(), host(&setting, stop.clone()));
            thread::spawn(move || {
                READY.set(Some(to));
                let _ = done.send(serve_members(chat, model, &host));
            });
        }
        let addr = address.recv_timeout(DEADLINE).expect("it listens");
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

    /// Sessions that exist.
    pub fn sessions(&self) -> usize {
        self.chat.counts.sessions.load(SeqCst)
    }

    /// Pushes that sessions were given, over all of them.
    pub fn heard(&self) -> usize {
        self.chat.counts.heard.load(SeqCst)
    }

    /// Asks it to stop.
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
        offload: None,
        grace: setting.grace,
        on_ready: ready,
        stop,
    }
}

/// A client, by lines, with a deadline for each read and write.
pub struct Client {
    pub stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Client {
    pub fn connect(addr: SocketAddr) -> Client {
        Client::new(TcpStream::connect_timeout(&addr, DEADLINE).expect("a connection"))
    }

    /// Its kernel holds only a few KiB that it has not read.
    pub fn connect_small(addr: SocketAddr) -> Client {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        sockopt::set_socket_recv_buffer_size(&socket, 4096).unwrap();
        connect(&socket, &addr).expect("a connection");
        Client::new(socket.into())
    }

    fn new(stream: TcpStream) -> Client {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        Client { stream, reader }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("it is taken in time");
    }

    /// The next line, without its end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("a line in time");
        line.strip_suffix('\n').unwrap_or_else(|| panic!("closed after {line:?}")).into()
    }

    pub fn expect(&mut self, line: &str) {
        assert_eq!(self.line(), line);
    }

    pub fn ask(&mut self, request: &str, reply: &str) {
        self.send(format!("{request}\n"));
        self.expect(reply);
    }

    pub fn join(&mut self) {
        self.ask("join", "joined");
    }

    /// Nothing has come, and nothing comes before the answer to the next line.
    pub fn expect_nothing(&mut self) {
        self.ask("ping", "pong");
    }

    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes).expect("bytes in time");
        bytes
    }

    /// Sends nothing more.
    pub fn end(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// Vanishes by a reset.
    pub fn reset(self) {
        sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO)).unwrap();
    }

    /// The server has ended its direction, and sent nothing more.
    pub fn expect_end(&mut self) {
        let mut rest = Vec::new();
        self.reader.read_to_end(&mut rest).expect("an orderly end in time");
        assert_eq!(String::from_utf8_lossy(&rest), "");
    }

    /// The connection is over, orderly or not.
    pub fn expect_gone(&mut self) {
        match self.reader.read_to_end(&mut Vec::new()) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => panic!("still there: {error}"),
        }
    }
}
