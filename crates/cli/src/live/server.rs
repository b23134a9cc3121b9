//! The HTTP server of `race --live`: `GET /` is the page, `GET /events` a stream of server-sent events
//! (WHATWG HTML, section 9.2). Read-only.
//!
//! Nothing is sent while the race is quiet (around each measured window): requests wait for their answer,
//! and new connections, except for the next one, wait in the kernel. A client gets only the newest state,
//! so a slow one never makes the server keep old states.

use bytes::Bytes;
use http_body_util::{
    BodyExt, Full,
    channel::{Channel, Sender},
    combinators::BoxBody,
};
use hyper::{
    Method, Request, Response, StatusCode, body::Incoming, header, server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    convert::Infallible,
    io,
    net::{IpAddr, SocketAddr, TcpListener},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};
use tokio::{
    net,
    runtime::{Builder, Runtime},
    sync::{Semaphore, watch},
    time::timeout,
};
use tokio_util::task::TaskTracker;

/// Maximum number of connections. Further clients wait in the kernel's queue.
const CONNECTIONS: usize = 64;
/// How long a client may take to send the head of a request.
const HEAD: Duration = Duration::from_secs(10);
/// How long clients may take to read the last state after the race.
const LAST: Duration = Duration::from_secs(2);
/// Bytes that are sent before the race is checked for quiet again.
const PIECE: usize = 64 * 1024;

/// A text and how often it was replaced.
#[derive(Clone, Default)]
struct Versioned {
    text: Bytes,
    version: u64,
}

impl Versioned {
    fn replace(&mut self, text: String) {
        *self = Versioned { text: text.into(), version: self.version + 1 };
    }
}

/// The state of the race, as its clients see it.
#[derive(Clone, Default)]
struct State {
    /// No byte may be sent.
    quiet: bool,
    /// The race is over: the texts do not change again.
    over: bool,
    /// The page at this moment, as HTML.
    whole: Bytes,
    /// An event of the stream: what runs now.
    progress: Versioned,
    /// An event of the stream: the changed parts of the page.
    page: Versioned,
}

/// A running server. It is stopped by [`Server::finish`], or with the process.
pub struct Server {
    addr: SocketAddr,
    state: watch::Sender<State>,
    thread: JoinHandle<()>,
}

impl Server {
    /// Listens on `addr`. Requests wait for the first page.
    ///
    /// # Errors
    /// If it cannot listen there.
    pub fn start(addr: SocketAddr) -> io::Result<Server> {
        let listener = TcpListener::bind(addr)?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let (state, seen) = watch::channel(State::default());
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let thread = thread::Builder::new().name("live".into());
        let thread = thread.spawn(move || serve(&runtime, listener, seen))?;
        Ok(Server { addr, state, thread })
    }

    /// The address on which it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// From now on sends nothing, or sends again.
    pub fn set_quiet(&self, quiet: bool) {
        self.state.send_if_modified(|state| std::mem::replace(&mut state.quiet, quiet) != quiet);
    }

    /// Replaces the progress, a JSON text without line breaks.
    pub fn progress(&self, json: &str) {
        self.state.send_modify(|state| state.progress.replace(event("progress", json)));
    }

    /// Replaces the page: `whole` for new clients, and for the streams its changed parts, a JSON text
    /// without line breaks.
    pub fn page(&self, whole: String, json: &str) {
        self.state.send_modify(|state| {
            state.whole = whole.into();
            state.page.replace(event("message", json));
        });
    }

    /// Ends all streams after their clients have the last state, at most two seconds from now.
    pub fn finish(self) {
        self.state.send_modify(|state| (state.over, state.quiet) = (true, false));
        drop(self.state);
        // It has nothing to return, and a panic has been printed.
        let _ = self.thread.join();
    }
}

/// An event of the stream.
fn event(name: &str, json: &str) -> String {
    debug_assert!(!json.contains(['\n', '\r']), "the data of an event is one line");
    format!("event: {name}\ndata: {json}\n\n")
}

fn serve(runtime: &Runtime, listener: TcpListener, state: watch::Receiver<State>) {
    runtime.block_on(async {
        // The listener is not blocking, and the runtime runs, so this does not fail.
        let Ok(listener) = net::TcpListener::from_std(listener) else { return };
        let streams = TaskTracker::new();
        tokio::select! {
            () = accept(listener, state.clone(), &streams) => {}
            () = ends(state) => {}
        }
        streams.close();
        let _ = timeout(LAST, streams.wait()).await;
    });
}

/// Waits until the race is over.
async fn ends(mut state: watch::Receiver<State>) {
    // An error: the sender is gone, so the race is over too.
    let _ = state.wait_for(|state| state.over).await;
}

async fn accept(
    listener: net::TcpListener,
    mut state: watch::Receiver<State>,
    streams: &TaskTracker,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let is_loopback = listener.local_addr().is_ok_and(|addr| addr.ip().is_loopback());
    // Both end only with the server.
    while let Ok(place) = Arc::clone(&places).acquire_owned().await
        && state.wait_for(|state| !state.quiet).await.is_ok()
    {
        let Ok((stream, _)) = listener.accept().await else {
            // For example, no descriptor is free. Another connection may end soon.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (state, of_streams) = (state.clone(), streams.clone());
        let answer = service_fn(move |request| {
            answer(request, is_loopback, state.clone(), of_streams.clone())
        });
        let mut http = http1::Builder::new();
        http.keep_alive(false).timer(TokioTimer::new()).header_read_timeout(HEAD);
        let connection = http.serve_connection(TokioIo::new(stream), answer);
        streams.spawn(async move {
            // An error is the client's: it closed, or spoke no HTTP.
            let _ = connection.await;
            drop(place);
        });
    }
}

type Body = BoxBody<Bytes, Infallible>;

/// Answers a request as soon as the race is not quiet. `is_loopback`: whether only this machine may read
/// the pages.
async fn answer(
    request: Request<Incoming>,
    is_loopback: bool,
    mut state: watch::Receiver<State>,
    streams: TaskTracker,
) -> Result<Response<Body>, Infallible> {
    let whole = |status, kind: &str, text: Bytes| {
        let response = Response::builder().status(status).header(header::CONTENT_TYPE, kind);
        let response = response.header(header::CACHE_CONTROL, "no-store");
        response.body(Full::new(text).boxed()).expect("the fields are valid")
    };
    let is_ready = |state: &State| !state.quiet && !state.whole.is_empty();
    let page = state.wait_for(is_ready).await.map(|state| state.whole.clone()).unwrap_or_default();
    let plain = |status, text: &'static str| {
        let mut response = whole(status, "text/plain; charset=utf-8", text.into());
        response.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("GET"));
        Ok(response)
    };
    let host = request.headers().get(header::HOST).map(header::HeaderValue::to_str);
    if is_loopback && !host.is_none_or(|host| host.is_ok_and(is_own_name)) {
        return plain(StatusCode::FORBIDDEN, "expected the host localhost, or an IP address\n");
    }
    match (request.method(), request.uri().path()) {
        (&Method::GET, path @ ("/" | "/events")) => {
            let (mut sender, body) = Channel::<Bytes, Infallible>::new(1);
            let kind = match path {
                "/" => {
                    streams.spawn(async move { send(&mut sender, page, &mut state).await });
                    "text/html; charset=utf-8"
                }
                _ => {
                    streams.spawn(async move { stream(&mut sender, state).await });
                    "text/event-stream"
                }
            };
            let mut response = whole(StatusCode::OK, kind, Bytes::new());
            *response.body_mut() = body.boxed();
            Ok(response)
        }
        (&Method::GET, _) => plain(StatusCode::NOT_FOUND, "expected / or /events\n"),
        _ => plain(StatusCode::METHOD_NOT_ALLOWED, "expected GET\n"),
    }
}

/// Whether a Host header (RFC 9110, 7.2) names this machine as a server on loopback is called. A page of
/// another site whose name was made to resolve to 127.0.0.1 (DNS rebinding) sends its own name.
fn is_own_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

/// Sends each new state until the race is over or the client is gone.
async fn stream(sender: &mut Sender<Bytes>, mut state: watch::Receiver<State>) {
    let (mut progress, mut page) = (0, 0);
    loop {
        let is_due = |now: &State| {
            let is_new = now.over || now.progress.version > progress || now.page.version > page;
            is_new && !now.quiet
        };
        let Ok(now) = state.wait_for(is_due).await.map(|now| now.clone()) else { return };
        let mut due = Vec::new();
        if now.page.version > page {
            page = now.page.version;
            due.push(now.page.text);
        }
        if now.progress.version > progress {
            progress = now.progress.version;
            due.push(now.progress.text);
        }
        if now.over {
            due.push(event("over", "{}").into());
        }
        for text in due {
            if !send(sender, text, &mut state).await {
                return;
            }
        }
        if now.over {
            return;
        }
    }
}

/// Sends a text in pieces, each when the race is not quiet. Returns whether the client is still there.
async fn send(
    sender: &mut Sender<Bytes>,
    mut text: Bytes,
    state: &mut watch::Receiver<State>,
) -> bool {
    while !text.is_empty() {
        let piece = text.split_to(text.len().min(PIECE));
        if state.wait_for(|state| !state.quiet).await.is_err()
            || sender.send_data(piece).await.is_err()
        {
            return false;
        }
    }
    true
}
