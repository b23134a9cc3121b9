//! modula: the hash modulo the sum of the weights.

use super::server::Server;

/// Servers with their shares of the sum of the weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Modula {
    /// For each server, the sum of the weights up to and including its own.
    ends: Box<[u32]>,
    total: u32,
}

impl Modula {
    /// `servers` is in twemproxy's order and not empty. The sum of their weights fits 32 bits.
    pub(super) fn new(servers: &[&Server]) -> Self {
        let ends = servers.iter().scan(0, |sum, server| {
            *sum += server.weight();
            Some(*sum)
        });
        let ends: Box<[u32]> = ends.collect();
        let total = ends[ends.len() - 1];
        Modula { ends, total }
    }

    pub(super) fn server(&self, hash: u32) -> usize {
        let place = hash % self.total;
        self.ends.partition_point(|end| *end <= place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_as_many_places_as_its_weight() {
        let servers: [Server; 3] = ["a:1:2", "b:1:1", "c:1:3"].map(|line| line.parse().unwrap());
        let modula = Modula::new(&servers.each_ref());
        let found: Vec<usize> = (0..7).map(|hash| modula.server(hash)).collect();
        assert_eq!(found, [0, 0, 1, 2, 2, 2, 0]);
    }
}
