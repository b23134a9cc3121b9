//! Pools of connections to nodes.

use crate::users::User;
use regatta_engine::Conn;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Maximum number of idle connections per node that are kept for later leases.
const IDLE: usize = 16;

/// How long the connections of a user are kept after its last client has left, and of how many pools.
const KEPT_FOR: Duration = Duration::from_secs(60);
const KEPT: usize = 64;

/// What the clients of a pool have in common: it determines how their connections are prepared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Key {
    pub(crate) database: u32,
    pub(crate) resp3: bool,
    /// The user of the nodes. `None`: the one that a connection has at first, or that of the proxy itself.
    pub(crate) user: Option<Arc<User>>,
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        let users = (self.user.as_ref(), other.user.as_ref());
        let is_same_user = match users {
            (None, None) => true,
            // There is only one of each name and password.
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        self.database == other.database && self.resp3 == other.resp3 && is_same_user
    }
}

/// The connections for the clients with one key.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) key: Key,
    /// For each node, the connection that all clients share.
    pub(crate) shared: Vec<Option<Conn>>,
    /// For each node, connections that are no longer leased.
    pub(crate) idle: Vec<Vec<Conn>>,
    /// For each node, the error with which it does not accept the user, and until when it is not asked again.
    refused: Vec<Option<(Vec<u8>, Instant)>>,
    /// The number of clients.
    clients: usize,
    /// Since when it has none, if its connections are kept.
    unused_since: Option<Instant>,
    /// The database exists: it is 0, or a node has accepted its SELECT.
    pub(crate) is_verified: bool,
}

/// The pools of a core. The first one is for clients with default settings.
#[derive(Debug)]
pub(crate) struct Pools {
    pools: Vec<Pool>,
    nodes: usize,
}

impl Pools {
    pub(crate) fn new(nodes: usize) -> Self {
        let mut pools = Pools { pools: Vec::new(), nodes };
        pools.of(Key::default());
        pools
    }

    /// Returns the pool for this key.
    pub(crate) fn of(&mut self, key: Key) -> usize {
        if let Some(place) = self.pools.iter().position(|pool| pool.key == key) {
            return place;
        }
        // An unused pool has no connections, so it can be replaced.
        let pool = Pool {
            is_verified: key.database == 0,
            key,
            shared: vec![None; self.nodes],
            idle: vec![Vec::new(); self.nodes],
            refused: vec![None; self.nodes],
            clients: 0,
            unused_since: None,
        };
        match self.pools.iter().skip(1).position(Pool::is_empty) {
            Some(place) => {
                self.pools[place + 1] = pool;
                place + 1
            }
            None => {
                self.pools.push(pool);
                self.pools.len() - 1
            }
        }
    }

    /// Adds a client to a pool.
    pub(crate) fn enter(&mut self, pool: usize) {
        self.pools[pool].clients += 1;
        self.pools[pool].unused_since = None;
    }

    /// Removes a client from a pool. Returns the connections that are no longer needed. Those of a user are kept for a
    /// while.
    pub(crate) fn leave(&mut self, pool: usize, now: Instant) -> Vec<Conn> {
        let left = &mut self.pools[pool];
        left.clients -= 1;
        if pool == 0 || left.clients > 0 {
            return Vec::new();
        }
        if left.key.user.is_none() {
            return left.close();
        }
        left.unused_since = Some(now);
        let unused = self.pools.iter_mut().filter(|pool| pool.unused_since.is_some());
        let unused: Vec<&mut Pool> = unused.collect();
        if unused.len() <= KEPT {
            return Vec::new();
        }
        let oldest = unused.into_iter().min_by_key(|pool| pool.unused_since);
        oldest.map(Pool::close).unwrap_or_default()
    }

    /// Closes the pools whose connections were kept long enough. Returns these connections.
    pub(crate) fn expired(&mut self, now: Instant) -> Vec<Conn> {
        let is_over = |pool: &&mut Pool| pool.kept_until().is_some_and(|until| until <= now);
        self.pools.iter_mut().filter(is_over).flat_map(Pool::close).collect()
    }

    /// When [`Pools::expired`] returns connections next.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.pools.iter().filter_map(Pool::kept_until).min()
    }

    /// Forgets the connections of all pools to a node, and returns them: those that clients share, and those
    /// that are idle.
    pub(crate) fn forget_node(&mut self, node: usize) -> (Vec<Conn>, Vec<Conn>) {
        self.pools.iter_mut().for_each(|pool| pool.refused[node] = None);
        let shared = self.pools.iter_mut().filter_map(|pool| pool.shared[node].take()).collect();
        let idle = self.pools.iter_mut().flat_map(|pool| std::mem::take(&mut pool.idle[node]));
        (shared, idle.collect())
    }

    #[inline]
    pub(crate) fn get(&mut self, pool: usize) -> &mut Pool {
        &mut self.pools[pool]
    }
}

impl Pool {
    /// Whether it has neither clients nor connections.
    fn is_empty(&self) -> bool {
        self.clients == 0 && self.unused_since.is_none()
    }

    fn kept_until(&self) -> Option<Instant> {
        self.unused_since.map(|since| since + KEPT_FOR)
    }

    /// Forgets the user. Returns the connections, which are no longer needed.
    fn close(&mut self) -> Vec<Conn> {
        self.unused_since = None;
        // Nobody finds it by this key: the first pool has it, too.
        self.key = Key::default();
        let shared = self.shared.iter_mut().filter_map(Option::take);
        let idle = self.idle.iter_mut().flat_map(std::mem::take);
        shared.chain(idle).collect()
    }

    /// Whether there is room for one more idle connection to a node.
    pub(crate) fn has_room(&self, node: usize) -> bool {
        self.idle[node].len() < IDLE
    }

    /// Keeps a connection for the next lease. Returns whether there was room.
    pub(crate) fn keep(&mut self, node: usize, conn: Conn) -> bool {
        let has_room = self.has_room(node);
        if has_room {
            self.idle[node].push(conn);
        }
        has_room
    }

    /// Forgets a closed connection.
    pub(crate) fn forget(&mut self, node: usize, conn: Conn) {
        self.shared[node].take_if(|shared| *shared == conn);
        self.idle[node].retain(|idle| *idle != conn);
    }

    /// Notes that a node does not accept the user, with this error, and until when it is not asked again.
    pub(crate) fn refuse(&mut self, node: usize, error: Vec<u8>, until: Instant) {
        self.refused[node] = Some((error, until));
    }

    /// Whether a node does not accept the user, and is not asked again yet.
    pub(crate) fn is_refused(&mut self, node: usize, now: Instant) -> bool {
        self.refused[node].take_if(|(_, until)| *until <= now);
        self.refused[node].is_some()
    }

    /// The error with which a node does not accept the user, if it was asked not long ago.
    pub(crate) fn refusal(&self, node: usize) -> Option<&[u8]> {
        self.refused[node].as_ref().map(|(error, _)| &error[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::Users;

    #[test]
    fn an_unused_pool_is_reused() {
        let mut pools = Pools::new(2);
        let key = |database| Key { database, ..Key::default() };
        let now = Instant::now();
        assert_eq!(pools.of(key(0)), 0);
        let one = pools.of(key(1));
        pools.enter(one);
        let conn = Conn::from_bits(7);
        pools.get(one).shared[1] = Some(conn);
        assert!(pools.get(one).keep(0, Conn::from_bits(8)));
        let two = pools.of(key(2));
        assert_ne!(one, two);
        pools.enter(two);
        assert_eq!(pools.leave(one, now), [conn, Conn::from_bits(8)]);
        assert_eq!(pools.of(key(3)), one);
        assert_eq!(pools.get(one).shared, [None, None]);
        assert!(!pools.get(one).is_verified);
        let resp3 = pools.of(Key { resp3: true, ..Key::default() });
        assert!(pools.get(0).is_verified && pools.get(resp3).is_verified);
    }

    #[test]
    fn the_default_pool_is_never_discarded() {
        let mut pools = Pools::new(1);
        pools.enter(0);
        pools.get(0).shared[0] = Some(Conn::from_bits(7));
        assert_eq!(pools.leave(0, Instant::now()), []);
        assert_eq!(pools.get(0).shared[0], Some(Conn::from_bits(7)));
    }

    #[test]
    fn the_pools_of_a_user_are_kept_for_a_while() {
        let (users, start) = (Users::default(), Instant::now());
        let user = |password: &[u8]| {
            users.get(b"ann", password).ok().map(|login| Arc::clone(login.user()))
        };
        let mut pools = Pools::new(1);
        let key = |user| Key { user, ..Key::default() };
        let ann = pools.of(key(user(b"x")));
        pools.enter(ann);
        let other = pools.of(key(user(b"y")));
        assert!(ann != 0 && other != 0 && ann != other, "another password is another pool");
        pools.get(ann).shared[0] = Some(Conn::from_bits(7));
        assert_eq!(pools.leave(ann, start), []);
        assert_eq!(pools.due(), Some(start + KEPT_FOR));
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(pools.expired(at(59)), []);
        assert_eq!(pools.of(key(user(b"x"))), ann, "a client of the user is back");
        pools.enter(ann);
        assert_eq!((pools.due(), pools.expired(at(61))), (None, vec![]));
        assert_eq!(pools.leave(ann, at(70)), []);
        assert_eq!(pools.expired(at(130)), [Conn::from_bits(7)]);
        assert_eq!((pools.due(), pools.expired(at(200))), (None, vec![]));
        assert_ne!(pools.of(Key::default()), ann);
    }

    #[test]
    fn few_pools_are_kept_the_oldest_make_room() {
        let (users, start) = (Users::default(), Instant::now());
        let user = users.get(b"ann", b"x").ok().map(|login| Arc::clone(login.user()));
        let mut pools = Pools::new(1);
        for number in 0..=KEPT {
            let key = Key { database: number as u32, user: user.clone(), ..Key::default() };
            let pool = pools.of(key);
            pools.enter(pool);
            pools.get(pool).shared[0] = Some(Conn::from_bits(number as u64 + 1));
            let closed = pools.leave(pool, start + Duration::from_millis(number as u64));
            assert_eq!(closed.len(), usize::from(number == KEPT));
            assert!(closed.iter().all(|conn| *conn == Conn::from_bits(1)));
        }
    }

    #[test]
    fn a_node_that_refuses_a_user_is_asked_again_later() {
        let (mut pools, now) = (Pools::new(2), Instant::now());
        let pool = pools.get(0);
        let until = now + Duration::from_secs(1);
        pool.refuse(1, b"WRONGPASS".to_vec(), until);
        assert!(pool.is_refused(1, now) && !pool.is_refused(0, now));
        assert_eq!((pool.refusal(1), pool.refusal(0)), (Some(&b"WRONGPASS"[..]), None));
        assert!(!pool.is_refused(1, until));
        assert_eq!(pool.refusal(1), None);
    }
}
