//! Pending replies, from the nodes to the client.

use super::session::{Link, Owed, Session};
use crate::{
    node::loss_reason::Loss,
    reply::{errors, merging::Merging},
};
use regatta_engine::Limits;
use regatta_service::style::{own_connections::ConnectingStream, sequential::send};
use std::io::{self, Read, Write};

/// Reply bytes that are collected before they are sent.
const FULL: usize = 64 * 1024;

impl<P: Read + Write> Session<'_, P> {
    /// Sends the requests to the nodes, waits for all replies in order, and sends them to the
    /// client. Returns whether the last of them could be written without waiting. `last`: the
    /// connection closes after them.
    ///
    /// # Errors
    /// Returns errors of the client's connection, and `Other` if the connection cannot continue.
    pub(super) fn settle<T: ConnectingStream<Peer = P>>(
        &mut self,
        stream: &mut T,
        limits: Limits,
        last: bool,
    ) -> io::Result<bool> {
        for node in 0..self.links.len() {
            if let Link::Open(link) = &mut self.links[node]
                && !link.out.is_empty()
                && let Err(loss) = link.send()
            {
                self.lose(node, loss);
            }
        }
        let mut out = Vec::new();
        while let Some(owed) = self.owed.pop_front() {
            match owed {
                Owed::Ready(reply) => out.extend_from_slice(&reply),
                Owed::Whole { node, blocks: None } => {
                    self.whole(node, &mut out, stream, limits)?;
                }
                Owed::Whole { node, blocks: Some(time) } => {
                    send(stream, &mut out, false, limits)?;
                    self.blocking(node, time, &mut out, stream, limits)?;
                }
                Owed::Merged { merging, nodes } => self.merged(*merging, &nodes, &mut out)?,
            }
            if out.len() >= FULL {
                send(stream, &mut out, false, limits)?;
            }
        }
        self.asked = 0;
        for link in &mut self.links {
            if let Link::Open(link) = link {
                link.is_quiet = true;
            }
            // An unsolicited reply must not be taken for the reply to the next request.
            let is_lost = match link {
                Link::Open(link) => link.has_more(),
                Link::Lost(_) => true,
                Link::Closed => false,
            };
            if is_lost {
                *link = Link::Closed;
            }
        }
        send(stream, &mut out, last, limits)
    }

    /// Forwards the next reply of a node to the client. A long reply is sent in pieces.
    pub(super) fn whole<T: ConnectingStream<Peer = P>>(
        &mut self,
        node: usize,
        out: &mut Vec<u8>,
        stream: &mut T,
        limits: Limits,
    ) -> io::Result<()> {
        let (start, mut is_started) = (out.len(), false);
        let loss = match &mut self.links[node] {
            Link::Open(link) => loop {
                match link.piece(out) {
                    Ok(true) => return Ok(()),
                    Ok(false) if out.len() >= FULL => {
                        send(stream, out, false, limits)?;
                        is_started = true;
                    }
                    Ok(false) => {}
                    Err(loss) => break loss,
                }
            },
            Link::Lost(loss) => loss.clone(),
            Link::Closed => Loss::Closed,
        };
        if is_started {
            // The client has the start of its reply. An error cannot follow it.
            return Err(io::Error::other("the connection to a node was lost within a reply"));
        }
        out.truncate(start);
        let text = loss.text(self.name(node), true, self.settings().node_timeout);
        errors::write(out, &[text.as_bytes()]);
        self.lose(node, loss);
        Ok(())
    }

    /// Merges the next replies of several nodes.
    fn merged(
        &mut self,
        mut merging: Merging,
        nodes: &[usize],
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let (timeout, most) = (self.settings().node_timeout, self.settings().client_bytes);
        for (part, &node) in nodes.iter().enumerate() {
            let reply = match &mut self.links[node] {
                Link::Open(link) => link.reply(most - merging.held()),
                Link::Lost(loss) => Err(loss.clone()),
                Link::Closed => Err(Loss::Closed),
            };
            match reply {
                Ok(reply) => merging.reply(part, &reply),
                Err(loss) => {
                    let (code, why) = loss.words(true, timeout);
                    merging.lost(part, format!("{code} {why}").as_bytes());
                    self.lose(node, loss);
                }
            }
            if merging.held() > most {
                return Err(io::Error::other("a merged reply is too long"));
            }
        }
        merging.write(out);
        Ok(())
    }

    pub(super) fn lose(&mut self, node: usize, loss: Loss) {
        if let Link::Open(_) = self.links[node] {
            let counts = &self.shared.counts;
            if loss != Loss::Moved {
                counts.lost.add(1);
                self.shared.settings.nodes.doubt(node);
            }
            if loss == Loss::TimedOut {
                counts.timeouts.add(1);
            }
            self.links[node] = Link::Lost(loss);
        }
    }

    fn name(&self, node: usize) -> &str {
        self.settings().nodes.name(node)
    }
}
