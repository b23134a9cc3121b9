//! Pools of connections to nodes.

use regatta_engine::Conn;

/// Maximum number of idle connections per node that are kept for later leases.
const IDLE: usize = 16;

/// What the clients of a pool have in common: it determines how their connections are prepared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) database: u32,
    pub(crate) resp3: bool,
}

/// The connections for the clients with one key.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) key: Key,
    /// For each node, the connection that all clients share.
    pub(crate) shared: Vec<Option<Conn>>,
    /// For each node, connections that are no longer leased.
    pub(crate) idle: Vec<Vec<Conn>>,
    /// The number of clients.
    users: usize,
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
            key,
            shared: vec![None; self.nodes],
            idle: vec![Vec::new(); self.nodes],
            users: 0,
            is_verified: key.database == 0,
        };
        match self.pools.iter().skip(1).position(|pool| pool.users == 0) {
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
        self.pools[pool].users += 1;
    }

    /// Removes a client from a pool. Returns the connections that are no longer needed.
    pub(crate) fn leave(&mut self, pool: usize) -> Vec<Conn> {
        let pool_ = &mut self.pools[pool];
        pool_.users -= 1;
        if pool == 0 || pool_.users > 0 {
            return Vec::new();
        }
        let shared = pool_.shared.iter_mut().filter_map(Option::take);
        let idle = pool_.idle.iter_mut().flat_map(std::mem::take);
        shared.chain(idle).collect()
    }

    /// Forgets the connections of all pools to a node, and returns them: those that clients share, and those
    /// that are idle.
    pub(crate) fn forget_node(&mut self, node: usize) -> (Vec<Conn>, Vec<Conn>) {
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
    /// Keeps a connection for the next lease. Returns whether there was room.
    pub(crate) fn keep(&mut self, node: usize, conn: Conn) -> bool {
        let has_room = self.idle[node].len() < IDLE;
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unused_pool_is_reused() {
        let mut pools = Pools::new(2);
        let key = |database| Key { database, resp3: false };
        assert_eq!(pools.of(key(0)), 0);
        let one = pools.of(key(1));
        pools.enter(one);
        let conn = Conn::from_bits(7);
        pools.get(one).shared[1] = Some(conn);
        assert!(pools.get(one).keep(0, Conn::from_bits(8)));
        let two = pools.of(key(2));
        assert_ne!(one, two);
        pools.enter(two);
        assert_eq!(pools.leave(one), [conn, Conn::from_bits(8)]);
        assert_eq!(pools.of(key(3)), one);
        assert_eq!(pools.get(one).shared, [None, None]);
        assert!(!pools.get(one).is_verified);
        let resp3 = pools.of(Key { database: 0, resp3: true });
        assert!(pools.get(0).is_verified && pools.get(resp3).is_verified);
    }

    #[test]
    fn the_default_pool_is_never_discarded() {
        let mut pools = Pools::new(1);
        pools.enter(0);
        pools.get(0).shared[0] = Some(Conn::from_bits(7));
        assert_eq!(pools.leave(0), []);
        assert_eq!(pools.get(0).shared[0], Some(Conn::from_bits(7)));
    }
}
