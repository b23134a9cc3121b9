//! What the proxy answers itself.

use super::{
    client::{Client, Mode},
    next::Next,
    pools::Key,
    settings::Credentials,
    state::{Fx, Proxy},
    subscriptions::bulk,
};
use crate::{
    Arguments,
    command::VERSION,
    route::{Decision, Local, Route},
};
use regatta_proto::resp::Command;
use std::{fmt::Write, sync::atomic::Ordering::Relaxed};

const NO_AUTH: &[u8] = b"NOAUTH Authentication required.";
const NO_AUTH_HELLO: &[u8] = b"NOAUTH HELLO must be called with the client already authenticated, \
    otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
    select the RESP protocol version at the same time";
const WRONG_PASSWORD: &[u8] = b"WRONGPASS invalid username-password pair or user is disabled.";
const NO_PASSWORD: &[u8] = b"ERR AUTH <password> called without any password configured for the \
    default user. Are you sure your configuration is correct?";
const WRONG_NAME: &[u8] =
    b"ERR Client names cannot contain spaces, newlines or special characters.";
const NO_INTEGER: &[u8] = b"ERR value is not an integer or out of range";
const NO_DATABASE: &[u8] = b"ERR DB index is out of range";

/// Whether this is CLIENT SETINFO of Redis 7.2, with which libraries introduce themselves. The table of
/// commands is older.
pub(super) fn is_set_info(command: &Command<'_>) -> bool {
    command.is(0, "client") && command.is(1, "setinfo") && command.len() == 4
}

impl Proxy {
    /// A command of a client that has not said the password yet.
    pub(super) fn before_trust(
        &mut self,
        client: &mut Client,
        command: &Command<'_>,
        decision: &Decision,
        effects: &mut Fx,
    ) -> Next {
        match &decision.route {
            Route::Here(local @ (Local::Auth | Local::Hello | Local::Quit | Local::Reset)) => {
                return self.here(client, command, *local, effects);
            }
            Route::Refused(text) => client.fail(&[text], effects),
            _ => client.fail(&[NO_AUTH], effects),
        }
        Next::Go
    }

    /// Answers a command here.
    pub(super) fn here(
        &mut self,
        client: &mut Client,
        command: &Command<'_>,
        local: Local,
        effects: &mut Fx,
    ) -> Next {
        let reply = match local {
            Local::Ping => ping(client, command),
            Local::Echo => Ok(bulked(command.arg(1).unwrap_or_default())),
            Local::Quit => {
                client.answer(b"+OK\r\n", effects);
                return Next::End;
            }
            Local::Auth => self.auth(client, command),
            Local::Client => client_command(client, command),
            Local::Info => Ok(self.info(client)),
            // These change over which connections requests go: nothing may be under way.
            Local::Hello | Local::Reset | Local::Select if !client.ring.is_empty() => {
                return Next::Again;
            }
            Local::Hello => self.hello(client, command, effects),
            Local::Reset => {
                self.end_mode(client, effects);
                client.name.clear();
                client.is_trusted = self.shared.settings.auth.clients.is_none();
                self.change_pool(client, Key::default(), effects);
                Ok(b"+RESET\r\n".to_vec())
            }
            Local::Select => match self.select(client, command, effects) {
                Some(reply) => reply,
                None => return Next::Stop,
            },
        };
        match reply {
            Ok(reply) => client.answer(&reply, effects),
            Err(text) => client.fail(&[&text], effects),
        }
        Next::Go
    }

    fn change_pool(&mut self, client: &mut Client, key: Key, effects: &mut Fx) {
        let pool = self.pools.of(key);
        self.pools.enter(pool);
        self.leave_pool(std::mem::replace(&mut client.pool, pool), effects);
        client.resp3 = key.resp3;
    }

    /// `None`: a node is asked whether there is such a database.
    fn select(
        &mut self,
        client: &mut Client,
        command: &Command<'_>,
        effects: &mut Fx,
    ) -> Option<Result<Vec<u8>, Vec<u8>>> {
        let text = command.arg(1).and_then(|text| std::str::from_utf8(text).ok());
        let Some(number) = text.and_then(|text| text.parse::<i32>().ok()) else {
            return Some(Err(NO_INTEGER.to_vec()));
        };
        let Ok(database) = u32::try_from(number) else {
            return Some(Err(NO_DATABASE.to_vec()));
        };
        let key = Key { database, ..self.pools.get(client.pool).key };
        let pool = self.pools.of(key);
        if self.pools.get(pool).is_proved {
            self.change_pool(client, key, effects);
            return Some(Ok(b"+OK\r\n".to_vec()));
        }
        self.pools.enter(pool);
        let node = self.any_node(client);
        let Some(conn) = self.shared_to(pool, node, effects) else {
            self.leave_pool(pool, effects);
            return Some(Err(self.down(node)));
        };
        client.selects = Some(pool);
        self.send(client, conn, command, effects);
        None
    }

    fn auth(&self, client: &mut Client, command: &Command<'_>) -> Result<Vec<u8>, Vec<u8>> {
        let (user, password) = match (command.arg(1), command.arg(2)) {
            (Some(_), Some(_)) if command.len() > 3 => return Err(b"ERR syntax error".to_vec()),
            (Some(user), Some(password)) => (user, password),
            (Some(_), None) if self.shared.settings.auth.clients.is_none() => {
                return Err(NO_PASSWORD.to_vec());
            }
            (password, _) => (Credentials::DEFAULT_USER, password.unwrap_or_default()),
        };
        self.check(client, user, password)?;
        Ok(b"+OK\r\n".to_vec())
    }

    fn check(&self, client: &mut Client, user: &[u8], password: &[u8]) -> Result<(), Vec<u8>> {
        match &self.shared.settings.auth.clients {
            Some(own) if !own.are(user, password) => Err(WRONG_PASSWORD.to_vec()),
            // Without a password, the default user may say any.
            None if user != Credentials::DEFAULT_USER => Err(WRONG_PASSWORD.to_vec()),
            _ => {
                client.is_trusted = true;
                Ok(())
            }
        }
    }

    fn hello(
        &mut self,
        client: &mut Client,
        command: &Command<'_>,
        effects: &mut Fx,
    ) -> Result<Vec<u8>, Vec<u8>> {
        let mut resp3 = client.resp3;
        if let Some(version) = command.arg(1) {
            let version =
                std::str::from_utf8(version).ok().and_then(|text| text.parse::<i64>().ok());
            resp3 = match version {
                Some(2) => false,
                Some(3) => true,
                Some(_) => return Err(b"NOPROTO unsupported protocol version".to_vec()),
                None => {
                    return Err(b"ERR Protocol version is not an integer or out of range".to_vec());
                }
            };
        }
        let (mut at, mut name) = (2, None);
        while let Some(option) = command.arg(at) {
            if command.is(at, "auth") && command.len() > at + 2 {
                let arg = |at| command.arg(at).unwrap_or_default();
                self.check(client, arg(at + 1), arg(at + 2))?;
                at += 3;
            } else if command.is(at, "setname") && command.len() > at + 1 {
                name = command.arg(at + 1);
                at += 2;
            } else {
                return Err([b"ERR Syntax error in HELLO option '", option, b"'"].concat());
            }
        }
        if !client.is_trusted {
            return Err(NO_AUTH_HELLO.to_vec());
        }
        if let Some(name) = name {
            set_name(client, name)?;
        }
        let key = Key { resp3, ..self.pools.get(client.pool).key };
        self.change_pool(client, key, effects);
        let mut out = if resp3 { b"%7\r\n".to_vec() } else { b"*14\r\n".to_vec() };
        let version = if resp3 { ":3\r\n" } else { ":2\r\n" };
        for (name, value) in [
            ("server", bulked(b"redis")),
            ("version", bulked(VERSION.as_bytes())),
            ("proto", version.as_bytes().to_vec()),
            ("id", format!(":{}\r\n", client.id).into_bytes()),
            ("mode", bulked(b"standalone")),
            ("role", bulked(b"master")),
            ("modules", b"*0\r\n".to_vec()),
        ] {
            bulk(name.as_bytes(), &mut out);
            out.extend_from_slice(&value);
        }
        Ok(out)
    }

    fn info(&self, client: &Client) -> Vec<u8> {
        let (counts, nodes) = (&self.shared.counts, &self.shared.settings.nodes);
        let connections = counts.connections.load(Relaxed);
        let connected = connections.saturating_sub(counts.disconnections.load(Relaxed));
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "# Server\r\nredis_version:{VERSION}\r\nredis_mode:standalone\r\n\
             proxy:regatta\r\nproxy_version:{}\r\n\r\n\
             # Clients\r\nconnected_clients:{connected}\r\n\r\n\
             # Stats\r\ntotal_connections_received:{connections}\r\n\
             clients_disconnected_for_unread_replies:{}\r\nnode_connections_lost:{}\r\n\
             node_timeouts:{}\r\n\r\n# Replication\r\nrole:master\r\n\r\n# Nodes\r\nnodes:{}\r\n",
            env!("CARGO_PKG_VERSION"),
            counts.unread.load(Relaxed),
            counts.lost.load(Relaxed),
            counts.timeouts.load(Relaxed),
            nodes.count(),
        );
        for (node, health) in self.health.iter().enumerate() {
            let state = health.why_down().map_or("up".to_string(), |why| format!("down, {why}"));
            let (name, address) = (nodes.name(node), nodes.address(node));
            let _ = write!(text, "node{node}:name={name},address={address},state={state}\r\n");
        }
        if client.resp3 { verbatim(&text) } else { bulked(text.as_bytes()) }
    }
}

fn ping(client: &Client, command: &Command<'_>) -> Result<Vec<u8>, Vec<u8>> {
    if command.len() > 2 {
        return Err(b"ERR wrong number of arguments for 'ping' command".to_vec());
    }
    let text = command.arg(1);
    if matches!(client.mode, Mode::Subscribed(_)) && !client.resp3 {
        let mut out = b"*2\r\n$4\r\npong\r\n".to_vec();
        bulk(text.unwrap_or_default(), &mut out);
        return Ok(out);
    }
    Ok(text.map_or_else(|| b"+PONG\r\n".to_vec(), bulked))
}

fn client_command(client: &mut Client, command: &Command<'_>) -> Result<Vec<u8>, Vec<u8>> {
    let name = command.arg(1).unwrap_or_default().to_ascii_lowercase();
    match &name[..] {
        b"id" => Ok(format!(":{}\r\n", client.id).into_bytes()),
        b"getredir" => Ok(b":-1\r\n".to_vec()),
        b"getname" if client.name.is_empty() => Ok(client.null().to_vec()),
        b"getname" => Ok(bulked(&client.name)),
        b"setname" => {
            set_name(client, command.arg(2).unwrap_or_default())?;
            Ok(b"+OK\r\n".to_vec())
        }
        _ => {
            let (resp, name) = (if client.resp3 { 3 } else { 2 }, client.name.escape_ascii());
            let text = format!("id={} name={name} user=default resp={resp}\n", client.id);
            Ok(if client.resp3 { verbatim(&text) } else { bulked(text.as_bytes()) })
        }
    }
}

fn set_name(client: &mut Client, name: &[u8]) -> Result<(), Vec<u8>> {
    if !name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Err(WRONG_NAME.to_vec());
    }
    client.name = name.to_vec();
    Ok(())
}

fn bulked(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 16);
    bulk(bytes, &mut out);
    out
}

/// A text, as RESP3 has it.
fn verbatim(text: &str) -> Vec<u8> {
    format!("={}\r\ntxt:{text}\r\n", text.len() + 4).into_bytes()
}
