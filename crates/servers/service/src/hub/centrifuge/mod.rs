//! The JSON protocol of Centrifugo (version 2, `/connection/websocket`), so that its client libraries work. One
//! connection may be in several rooms, which are its channels.
//!
//! A client is a session of its own, beside that of members with one room: the rooms, their order, histories, limits and
//! rights are the same, and so are the posts. A message is framed once for members of the hub's own protocol; for a client
//! its payload is copied behind the name of its channel.
//!
//! - `codes`: the codes of errors, of closes and of ended subscriptions.
//! - `request`: commands (pure).
//! - `reply`: replies and pushes (pure).
//! - `subscription`: a client in one room, and how far it is in the history of that.
//! - `client`: the connection: input, output, times.
//! - `delivery`: what it gets from its rooms.
//! - `opening`: how a subscription begins.
//! - `commands`, `joining`, `asking`: what commands do.
//! - `pending`, `remote`: with a broker, commands that wait for it, and what they learn.
//! - `connection`: the session of the hub: a member, or a client once it has asked for this protocol.

mod asking;
mod client;
mod codes;
mod commands;
mod connection;
mod delivery;
mod joining;
mod opening;
mod pending;
mod remote;
mod reply;
mod request;
mod subscription;

pub use connection::Connection;
