//! A blocking server of a test, with a thread for each connection.

use std::{
    collections::HashMap,
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread::{self, JoinHandle},
};

/// The server, which stops when dropped.
pub struct Server {
    /// Where it listens.
    pub addr: SocketAddr,
    /// Connections that were accepted.
    pub accepted: Arc<AtomicUsize>,
    closing: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts it on a port of its own. It passes each connection to `serve`, with its number, counted from 0 in the order
    /// of acceptance, and closes it afterwards.
    #[track_caller]
    pub fn start(serve: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> Server {
        Server::on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), serve)
    }

    /// The same, on a port that is open already.
    #[track_caller]
    pub fn on(
        listener: TcpListener,
        serve: impl Fn(usize, TcpStream) + Send + Sync + 'static,
    ) -> Server {
        let addr = listener.local_addr().unwrap();
        let (accepted, closing) = <(Arc<AtomicUsize>, Arc<AtomicBool>)>::default();
        let acceptor = thread::spawn({
            let (accepted, closing) = (accepted.clone(), closing.clone());
            move || accept(listener, &accepted, &closing, Arc::new(serve))
        });
        Server { addr, accepted, closing, acceptor: Some(acceptor) }
    }

    /// Closes the port and all connections, and waits for their threads.
    ///
    /// # Panics
    /// Panics if one of them has panicked.
    pub fn stop(&mut self) {
        let Some(acceptor) = self.acceptor.take() else { return };
        self.closing.store(true, SeqCst);
        // Wakes it.
        drop(TcpStream::connect(self.addr));
        let joined = acceptor.join();
        assert!(thread::panicking() || joined.is_ok(), "the server panicked");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn accept(
    listener: TcpListener,
    accepted: &AtomicUsize,
    closing: &AtomicBool,
    serve: Arc<impl Fn(usize, TcpStream) + Send + Sync + 'static>,
) {
    let streams: Arc<Mutex<HashMap<usize, TcpStream>>> = Arc::default();
    let mut serving = Vec::new();
    loop {
        let (stream, _) = listener.accept().unwrap();
        if closing.load(SeqCst) {
            break;
        }
        stream.set_nodelay(true).unwrap();
        let (serve, number) = (serve.clone(), accepted.fetch_add(1, SeqCst));
        streams.lock().unwrap().insert(number, stream.try_clone().unwrap());
        let streams = streams.clone();
        serving.push(thread::spawn(move || {
            serve(number, stream);
            // The copy would keep the connection open.
            streams.lock().unwrap().remove(&number);
        }));
    }
    drop(listener);
    for stream in streams.lock().unwrap().values() {
        // The client may have closed it.
        let _ = stream.shutdown(Shutdown::Both);
    }
    serving.into_iter().for_each(|one| one.join().unwrap());
}
