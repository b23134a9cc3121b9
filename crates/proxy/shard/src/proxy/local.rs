//! Commands that the proxy answers itself.

use crate::{
    clients::{
        client::{Client, Mode},
        identity::{self, Answer, NO_AUTH, bulked},
        next::Next,
    },
    node::pools::Key,
    proxy::state::{Fx, Proxy},
    reply::{errors::EXEC_REFUSED, info::Core, slowlog},
};
use regatta_keyspace::route::{Decision, Local, Route};
use regatta_proto::resp::Command;
use std::sync::Arc;

impl Proxy {
    /// Handles a command of a client that has not authenticated yet.
    pub(crate) fn before_trust(
        &mut self,
        client: &mut Client,
        command: &Command<'_>,
        decision: &Decision,
        effects: &mut Fx,
    ) -> Next {
        match &decision.route {
            Route::Local(local @ (Local::Auth | Local::Hello | Local::Quit | Local::Reset)) => {
                return self.answer_locally(client, command, *local, effects);
            }
            Route::Refused(text) => client.fail(&[text], effects),
            _ if decision.name() == "exec" => client.fail(&[EXEC_REFUSED, NO_AUTH], effects),
            _ => client.fail(&[NO_AUTH], effects),
        }
        Next::Go
    }

    /// Answers a command in the proxy.
    pub(crate) fn answer_locally(
        &mut self,
        client: &mut Client,
        command: &Command<'_>,
        local: Local,
        effects: &mut Fx,
    ) -> Next {
        if self.settings.auth.of_nodes
            && let Some(next) = self.ask_a_node(client, command, local, effects)
        {
            return next;
        }
        let shared = Arc::clone(&self.shared);
        let own = self.settings.auth.clients.as_ref();
        let identity = &mut client.identity;
        let reply = match local {
            Local::Ping => identity.ping(command, matches!(client.mode, Mode::Subscribed(_))),
            Local::Echo => Ok(bulked(command.arg(1).unwrap_or_default())),
            Local::Quit => {
                client.answer(b"+OK\r\n", effects);
                return Next::End;
            }
            Local::Auth => identity.auth(command, own),
            Local::Client => identity.client(command),
            Local::Info => {
                let state = |node: usize| {
                    let why = self.health[node].why_down();
                    why.map_or("up".to_string(), |why| format!("down, {why}"))
                };
                Ok(identity.info(command, &shared, &Core { held: self.held, state: &state }))
            }
            // These change which connections are used: no request may be in flight. The log may be long: a client
            // must not make the proxy hold many copies of it, for a reply that is pending.
            Local::Hello | Local::Reset | Local::Select | Local::SlowLog
                if !client.ring.is_empty() =>
            {
                return Next::Again;
            }
            Local::Hello => {
                let reply = identity.hello(command, own, &shared.version());
                let key = Key { resp3: identity.resp3, ..self.pools.get(client.pool).key.clone() };
                self.change_pool(client, key, effects);
                reply
            }
            Local::Reset => {
                identity.reset(own);
                self.end_mode(client, effects);
                self.change_pool(client, Key::default(), effects);
                Ok(b"+RESET\r\n".to_vec())
            }
            Local::SlowLog => slowlog::answer(command, &shared.slow_log),
            Local::Select => match self.select(client, command, effects) {
                Ok(reply) => reply,
                Err(next) => return next,
            },
        };
        if let (Local::Auth | Local::Hello, Err(text)) = (local, &reply) {
            shared.denied(text);
        }
        match reply {
            Ok(reply) => client.answer(&reply, effects),
            Err(text) => client.fail(&[&text], effects),
        }
        Next::Go
    }

    pub(super) fn change_pool(&mut self, client: &mut Client, key: Key, effects: &mut Fx) {
        let pool = self.pools.of(key);
        self.pools.enter(pool);
        self.leave_pool(std::mem::replace(&mut client.pool, pool), effects);
    }

    /// Changes the database. `Err`: what happens to the command while a node is asked whether the database exists, or
    /// whether the user may use it.
    fn select(
        &mut self,
        client: &mut Client,
        command: &Command<'_>,
        effects: &mut Fx,
    ) -> Result<Answer, Next> {
        let database = match identity::database(command) {
            Ok(database) => database,
            Err(text) => return Ok(Err(text)),
        };
        let key = Key { database, ..self.pools.get(client.pool).key.clone() };
        let pool = self.pools.of(key.clone());
        if self.pools.get(pool).is_verified && !self.settings.auth.of_nodes {
            self.change_pool(client, key, effects);
            return Ok(Ok(b"+OK\r\n".to_vec()));
        }
        self.pools.enter(pool);
        let node = self.any_node(client);
        let Some(conn) = self.shared_to(pool, node, effects) else {
            let why = self.unavailable(pool, node);
            self.leave_pool(pool, effects);
            return Ok(Err(why));
        };
        if self.is_full(client, conn, effects) {
            self.leave_pool(pool, effects);
            return Err(Next::Full);
        }
        client.selects = Some(pool);
        self.send(client, conn, command, effects);
        Err(Next::Stop)
    }
}
