//! A WebSocket hub with tokio-tungstenite.
//!
//! One task per member, and one broadcast channel for all of them. The channel holds each text once, in a
//! ring: a slow member does not block others, but loses its place in the ring and is closed. All texts that
//! are ready for a member leave in one write. The library frames a text separately for each member.

use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use std::{
    borrow::Cow,
    env, io,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};
use tokio::{
    net::{TcpSocket, TcpStream},
    runtime, select,
    sync::broadcast::{self, error::RecvError, error::TryRecvError},
    time::{sleep, timeout},
};
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async_with_config,
    tungstenite::{
        Error, Message, Utf8Bytes,
        handshake::server::{ErrorResponse, Request, Response},
        http::StatusCode,
        protocol::{CloseFrame, WebSocketConfig, frame::coding::CloseCode},
    },
};

const BACKLOG: u32 = 4096;
const MAX_MESSAGE: usize = 1 << 20;
/// Maximum number of broadcasts that a member may lag behind.
const MAX_LAG: usize = 4096;
/// Maximum time of a write to a member.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
struct Incoming<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    /// Forwarded unchanged.
    #[serde(borrow)]
    payload: &'a RawValue,
}

struct Member {
    socket: WebSocketStream<TcpStream>,
    hub: broadcast::Sender<Utf8Bytes>,
    broadcasts: broadcast::Receiver<Utf8Bytes>,
}

impl Member {
    /// Serves until either side closes. `Err` holds the close code, if there is one.
    async fn serve(&mut self) -> Result<(), Option<CloseCode>> {
        loop {
            let mut reply = None;
            select! {
                incoming = self.socket.next() => match incoming {
                    Some(Ok(Message::Text(text))) => reply = Some(self.answer(&text)),
                    // the library has queued the answer, after which nothing may be sent
                    Some(Ok(Message::Close(_))) => {
                        let _ = timeout(WRITE_TIMEOUT, self.socket.flush()).await;
                        return Ok(());
                    }
                    Some(Ok(_)) => {} // pings are answered by the library
                    Some(Err(error)) => return Err(code_of(&error)),
                    None => return Ok(()),
                },
                broadcast = self.broadcasts.recv() => match broadcast {
                    Ok(text) => self.feed(text).await?,
                    Err(RecvError::Lagged(_)) => return Err(Some(CloseCode::Again)),
                    Err(RecvError::Closed) => return Ok(()),
                },
            }
            // These include the member's own broadcasts, so that a result follows its copy.
            loop {
                match self.broadcasts.try_recv() {
                    Ok(text) => self.feed(text).await?,
                    Err(TryRecvError::Lagged(_)) => return Err(Some(CloseCode::Again)),
                    Err(TryRecvError::Empty | TryRecvError::Closed) => break,
                }
            }
            if let Some(reply) = reply {
                self.feed(reply.into()).await?;
            }
            let flush = timeout(WRITE_TIMEOUT, self.socket.flush()).await;
            flush.map_err(|_| None)?.map_err(|error| code_of(&error))?;
        }
    }

    /// Returns the reply to a message.
    fn answer(&self, text: &str) -> String {
        let Incoming { r#type, payload } = match serde_json::from_str(text) {
            Ok(incoming) => incoming,
            Err(error) => return failure(&error.to_string()),
        };
        match &*r#type {
            "echo" => format!(r#"{{"type":"echo","payload":{payload}}}"#),
            "broadcast" => {
                let text = format!(r#"{{"type":"broadcast","payload":{payload}}}"#).into();
                // Sending fails without receivers, but this member is one.
                let count = self.hub.send(text).unwrap_or(0);
                format!(
                    r#"{{"type":"broadcastResult","payload":{payload},"listenerCount":{count}}}"#
                )
            }
            _ => failure("unknown type"),
        }
    }

    /// Puts a text into the output buffer, which is written at the next flush or when it is large.
    async fn feed(&mut self, text: Utf8Bytes) -> Result<(), Option<CloseCode>> {
        let feed = timeout(WRITE_TIMEOUT, self.socket.feed(Message::Text(text))).await;
        feed.map_err(|_| None)?.map_err(|error| code_of(&error))
    }
}

fn failure(why: &str) -> String {
    json!({ "type": "error", "error": why }).to_string()
}

fn code_of(error: &Error) -> Option<CloseCode> {
    match error {
        Error::Utf8(_) => Some(CloseCode::Invalid),
        Error::Capacity(_) => Some(CloseCode::Size),
        Error::Protocol(_) => Some(CloseCode::Protocol),
        _ => None,
    }
}

#[allow(clippy::result_large_err)] // the library's signature
fn only_ws(request: &Request, response: Response) -> Result<Response, ErrorResponse> {
    if request.uri().path() == "/ws" {
        return Ok(response);
    }
    let mut refusal = ErrorResponse::new(None);
    *refusal.status_mut() = StatusCode::NOT_FOUND;
    Err(refusal)
}

async fn join(stream: TcpStream, hub: broadcast::Sender<Utf8Bytes>) {
    // A read buffer of 4 KiB instead of 128: there are many members with small messages.
    let config = WebSocketConfig::default()
        .read_buffer_size(4096)
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    let Ok(socket) = accept_hdr_async_with_config(stream, only_ws, Some(config)).await else {
        return;
    };
    let broadcasts = hub.subscribe();
    let mut member = Member { socket, hub, broadcasts };
    if let Err(Some(code)) = member.serve().await {
        let frame = CloseFrame { code, reason: Utf8Bytes::default() };
        let _ = timeout(WRITE_TIMEOUT, member.socket.close(Some(frame))).await;
    }
}

async fn run(port: u16) -> io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    let listener = socket.listen(BACKLOG)?;
    let hub = broadcast::Sender::new(MAX_LAG);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                stream.set_nodelay(true)?;
                tokio::spawn(join(stream, hub.clone()));
            }
            Err(error) => {
                // usually out of descriptors: some will be closed soon
                eprintln!("accept: {error}");
                sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

/// `hub PORT CORES`
fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let mut number = || arguments.next().and_then(|text| text.parse::<u16>().ok());
    let (port, cores) = number().zip(number()).expect("PORT CORES");
    let mut runtime = match cores {
        1 => runtime::Builder::new_current_thread(), // no locks between workers
        _ => runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime.worker_threads(cores.into()).enable_all().build()?;
    runtime.block_on(run(port))
}
