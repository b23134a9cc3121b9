//! A server of engines on a model, in a thread of the test; and its clients.

use crate::DEADLINE;
use regatta_engine::{Engine, Limits};
use regatta_serve::{Host, Model, ServeError, Stop, serve_engine};
use std::{
    cell::RefCell,
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    num::NonZeroUsize,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Duration,
};

/// The models that run engines, where the kernel lets them.
pub fn models() -> impl Iterator<Item = Model> {
    let all = [Model::Select, Model::Poll, Model::Epoll, Model::Percore, Model::Uring];
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

/// What a server is run with.
pub struct Setting {
    pub cores: usize,
    pub limits: Limits,
    pub grace: Duration,
    /// A client sends this before the server accepts anyone.
    pub early: Option<&'static str>,
}

impl Default for Setting {
    fn default() -> Self {
        Setting { cores: 1, limits: Limits::default(), grace: DEADLINE, early: None }
    }
}

thread_local! {
    /// Where a server of this thread reports its address: a host's callback is a plain function.
    static READY: RefCell<Option<Ready>> = const { RefCell::new(None) };
}

struct Ready {
    to: Sender<(SocketAddr, Option<Client>)>,
    early: Option<&'static str>,
}

/// Called by the thread that serves, when its listener listens and before it accepts.
fn ready(addr: SocketAddr) {
    READY.with_borrow(|ready| {
        let ready = ready.as_ref().expect("set by the thread that serves");
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
    /// Who has sent [`Setting::early`].
    pub early: Option<Client>,
    stop: Stop,
    over: Receiver<Result<(), ServeError>>,
}

impl Server {
    pub fn start<E: Engine>(
        model: Model,
        setting: Setting,
        engine: impl Fn() -> E + Send + Sync + 'static,
    ) -> Server {
        let stop = Stop::new().unwrap();
        let host = host(&setting, stop.clone());
        let (to, address) = channel();
        let (done, over) = channel();
        thread::spawn(move || {
            READY.set(Some(Ready { to, early: setting.early }));
            let _ = done.send(serve_engine(engine, model, &host));
        });
        let (addr, early) = address.recv_timeout(DEADLINE).expect("it listens");
        Server { addr, early, stop, over }
    }

    pub fn client(&self) -> Client {
        Client::connect(self.addr)
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

/// Where and how `setting` wants a server to run.
pub fn host(setting: &Setting, stop: Stop) -> Host {
    Host {
        listen: "127.0.0.1:0".parse().unwrap(),
        cores: NonZeroUsize::new(setting.cores).unwrap(),
        limits: setting.limits,
        connections: usize::MAX,
        offload: None,
        grace: setting.grace,
        on_ready: ready,
        stop,
    }
}

/// One side of a connection, by lines, with a deadline for each read and write.
pub struct Client {
    pub stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Client {
    pub fn connect(addr: SocketAddr) -> Client {
        Client::new(TcpStream::connect_timeout(&addr, DEADLINE).expect("a connection"))
    }

    pub fn new(stream: TcpStream) -> Client {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        let reader = BufReader::with_capacity(64 * 1024, stream.try_clone().unwrap());
        Client { stream, reader }
    }

    pub fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).expect("it is taken in time");
    }

    /// The next line, without its end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("a line in time");
        line.strip_suffix('\n').unwrap_or_else(|| panic!("closed after {line:?}")).into()
    }

    /// So many lines.
    pub fn lines(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.line()).collect()
    }

    /// Sends nothing more.
    pub fn end(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// The peer has ended its direction, and sent nothing more.
    pub fn expect_end(&mut self) {
        let mut rest = Vec::new();
        self.reader.read_to_end(&mut rest).expect("an orderly end in time");
        assert_eq!(String::from_utf8_lossy(&rest), "");
    }

    /// The connection is over, orderly or not.
    pub fn expect_gone(&mut self) {
        let mut rest = Vec::new();
        match self.reader.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
            Err(error) => panic!("still there: {error}"),
        }
    }
}
