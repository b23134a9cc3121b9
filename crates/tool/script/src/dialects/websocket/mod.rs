//! WebSocket (RFC 6455), for the workload `hub`: JSON messages that are sent back to their sender, or
//! to every member.
//!
//! A broadcast is a request; its reply is the result that the server sends to the sender. The resulting
//! copies, one for each member, are deliveries. `roster` tracks which members are owed which broadcast.
//! `receive` reads what arrives; `replies` checks replies, and `copies` deliveries. `member` checks that each copy arrives once, and in
//! the order of its sender; `afar` does so for members on other machines, and `losses` where the hub may
//! announce that it lost messages. `order` compares the orders of all members. `message` has the bytes of
//! messages, and `adapters` has those of other hubs' protocols on top of WebSocket.

mod adapted;
mod adapters;
mod afar;
mod announced;
mod asks;
mod copies;
mod frames;
mod losses;
mod member;
mod message;
mod opening;
mod order;
mod receive;
mod replies;
mod roster;
mod talk;
mod terms;
#[cfg(test)]
mod tests;

pub use adapters::Adapter;
pub use asks::WebSocketAsks;
pub use receive::Hub;

use crate::{
    greeting::Greeting,
    protocol::{Protocol, ProtocolInfo, Scheme},
    workload::file::FileText,
};

/// The protocol.
#[derive(Debug)]
pub struct WebSocket;

impl Protocol for WebSocket {
    type Asks = WebSocketAsks;

    const INFO: ProtocolInfo = ProtocolInfo {
        name: "websocket",
        schemes: &[
            Scheme { name: "ws", port: Some(80), tls: false },
            Scheme { name: "wss", port: Some(443), tls: true },
        ],
        alpn: Some("http/1.1"),
        url: "ws(s)://HOST[:PORT]/PATH",
        paths: true,
        adapters: &Adapter::NAMES,
        readiness_probe: None,
        greeting: Greeting {
            named: "WebSocket at /ws",
            sends: |_| "messages over WebSocket",
            remedy: "`--workload hub`, or `--workload hub-echo`",
            asks: |host, path| {
                let path = path.unwrap_or("/ws");
                let asked = opening::Asked { host, path, subprotocol: None };
                let mut asks = Vec::new();
                opening::Upgrade::new(*b"a nonce: 16 byte").ask(asked, &mut asks);
                asks
            },
            is_spoken: |answer| answer.starts_with(b"HTTP/1.1 101"),
        },
    };

    fn built_in() -> Vec<WebSocketAsks> {
        vec![WebSocketAsks::Broadcast, WebSocketAsks::Echo]
    }

    fn usual(_: Option<&str>) -> WebSocketAsks {
        WebSocketAsks::Broadcast
    }

    fn read(_: FileText<'_>) -> Result<WebSocketAsks, String> {
        Err("WebSocket has no workload files; its workloads are `hub` and `hub-echo`".into())
    }
}
