//! Publish/subscribe in a cluster: commands that are sent under another name, and the end of a subscriber.
//!
//! The nodes of a cluster pass each message of PUBLISH on to all others; those of SPUBLISH stay at one node and its
//! replicas.

use crate::{
    clients::{client::Client, next::Next},
    proxy::state::{Fx, Proxy},
    reply::errors,
};
use regatta_engine::{Conn, Flow};
use regatta_proto::resp::Command;

impl Proxy {
    /// Handles a command under its other name: see [`Renaming`](crate::cluster::renaming::Renaming).
    pub(crate) fn renamed(
        &mut self,
        client: &mut Client,
        command: &Command<'_>,
        effects: &mut Fx,
    ) -> Next {
        let mut renaming = match &mut self.cluster {
            Some(cluster) => std::mem::take(&mut cluster.renaming),
            None => return Next::Go,
        };
        let next = match renaming.rename(command, self.settings.request) {
            Some(renamed) => self.command(client, &renamed, effects),
            // Unreachable: it was a command before.
            None => {
                client
                    .fail(&[b"ERR the proxy cannot send this command under another name"], effects);
                Next::Go
            }
        };
        if let Some(cluster) = &mut self.cluster {
            cluster.renaming = renaming;
        }
        next
    }

    /// Disconnects a subscriber, with the reason, because it may miss messages.
    pub(crate) fn end_subscriber(&mut self, conn: Conn, why: &str, effects: &mut Fx) {
        let is_between = self.peers.peek(conn).is_some_and(|client| client.ring.is_empty());
        if is_between && let Some(out) = effects.out(conn) {
            let text = format!("{why}; messages may be missing, subscribe again");
            errors::write(out, &[text.as_bytes()]);
        }
        effects.close(conn, Flow::Close);
    }
}
