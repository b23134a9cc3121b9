//! A server of the test service, and its clients.

use crate::{
    client::Client,
    pushes::chat::Chat,
    server::{self, Setting},
};
use regatta_serve::{Model, serve_members};
use std::{ops::Deref, sync::atomic::Ordering::SeqCst};

/// A running server.
pub struct Server {
    server: server::Server,
    chat: Chat,
}

impl Deref for Server {
    type Target = server::Server;

    fn deref(&self) -> &server::Server {
        &self.server
    }
}

impl Server {
    /// Starts it on two cores, if the model has several.
    pub fn start(model: Model, setting: Setting) -> Server {
        let chat = Chat::default();
        let (start, setting) = (chat.clone(), Setting { cores: 2, ..setting });
        let server = server::Server::start(&setting, move |host| serve_members(start, model, host));
        Server { server, chat }
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
}
