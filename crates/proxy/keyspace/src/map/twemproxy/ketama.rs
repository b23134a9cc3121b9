//! ketama: consistent hashing. Each server has points on a 32-bit ring. A key belongs to the server
//! of the first point at or above its hash.

use super::server::Server;
use md5::{Digest, Md5};

/// Number of points of a server with mean weight. One MD5 digest gives four.
const POINTS: f32 = 160.0;
const PER_DIGEST: f32 = 4.0;

/// The ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ketama {
    /// The points in ascending order, with the server of each.
    points: Box<[(u32, u16)]>,
}

impl Ketama {
    /// `servers` is in twemproxy's order and not empty. The sum of their weights fits 32 bits.
    pub(super) fn new(servers: &[&Server]) -> Self {
        let total: u32 = servers.iter().map(|server| server.weight()).sum();
        let mut points = Vec::new();
        for (number, server) in (0_u16..).zip(servers) {
            for digest in 0..digests(server.weight(), total, servers.len()) {
                let digest = Md5::digest(format!("{}-{digest}", server.name()));
                for bytes in digest.chunks_exact(4) {
                    let place = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                    points.push((place, number));
                }
            }
        }
        // Two servers may share a point. The qsort of glibc keeps their order if memory suffices,
        // and the search finds the first.
        points.sort_by_key(|(place, _)| *place);
        Ketama { points: points.into() }
    }

    pub(super) fn server(&self, hash: u32) -> usize {
        let found = self.points.partition_point(|(place, _)| *place < hash);
        let (_, server) = self.points.get(found).unwrap_or(&self.points[0]);
        usize::from(*server)
    }
}

/// Returns the number of MD5 digests for a server, in single precision like twemproxy: other
/// arithmetic would differ by one for some weights.
fn digests(weight: u32, total: u32, servers: usize) -> u32 {
    let share = weight as f32 / total as f32;
    let exact = share * POINTS / PER_DIGEST * servers as f32;
    let nearly = (f64::from(exact) + 0.000_000_000_1) as f32;
    nearly.floor() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_points_follows_the_weight() {
        assert_eq!(digests(1, 1, 1), 40);
        assert_eq!(digests(1, 4, 4), 40);
        assert_eq!(digests(1, 10, 4), 16);
        assert_eq!(digests(5, 10, 4), 80);
        // A server with a very small weight gets no keys at all.
        assert_eq!(digests(1, 1000, 3), 0);
    }

    #[test]
    fn a_ring_always_has_points() {
        let servers: [Server; 3] =
            ["a:1:1", "b:1:1", "c:1:3000000000"].map(|line| line.parse().unwrap());
        assert!(!Ketama::new(&servers.each_ref()).points.is_empty());
        let alike: Vec<Server> = (0..200).map(|i| format!("a{i}:1:1").parse().unwrap()).collect();
        let ring = Ketama::new(&alike.iter().collect::<Vec<_>>());
        assert!(ring.points.len() >= 200 * 156, "{}", ring.points.len());
    }

    #[test]
    fn the_ring_wraps_around_after_its_last_point() {
        let servers: [Server; 3] = ["a:1:1", "b:1:1", "c:1:1"].map(|line| line.parse().unwrap());
        let ring = Ketama::new(&servers.each_ref());
        let (first, last) = (ring.points[0], ring.points[ring.points.len() - 1]);
        assert_eq!(ring.server(0), usize::from(first.1));
        assert_eq!(ring.server(first.0), usize::from(first.1));
        assert_eq!(ring.server(last.0), usize::from(last.1));
        assert_eq!(ring.server(last.0 + 1), usize::from(first.1));
        assert_eq!(ring.server(u32::MAX), usize::from(first.1));
    }
}
