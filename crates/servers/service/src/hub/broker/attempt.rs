//! An attempt to connect: each address of the broker is tried. A name like `localhost` may have one of IPv6 and one of
//! IPv4, and a server may listen at only one of them.

use std::{fmt::Write as _, net::SocketAddr, vec};

/// The addresses of an attempt, and why those before the present one failed.
#[derive(Debug, Default)]
pub(super) struct Attempt {
    left: vec::IntoIter<SocketAddr>,
    at: Option<SocketAddr>,
    failures: Vec<(SocketAddr, String)>,
}

impl Attempt {
    /// One that tries these addresses, the first one first.
    pub(super) fn new(addresses: Vec<SocketAddr>) -> Attempt {
        Attempt { left: addresses.into_iter(), at: None, failures: Vec::new() }
    }

    /// The present address, which may be connected.
    pub(super) fn at(&self) -> Option<SocketAddr> {
        self.at
    }

    /// The next address, if there is one.
    pub(super) fn next(&mut self) -> Option<SocketAddr> {
        self.at = self.left.next();
        self.at
    }

    /// The present address fails. Returns why the attempt failed if it was the last one.
    pub(super) fn fails(&mut self, why: &str) -> Option<String> {
        let Some(at) = self.at else { return Some(why.to_owned()) };
        self.failures.push((at, why.to_owned()));
        if !self.left.as_slice().is_empty() {
            return None;
        }
        if self.failures.iter().all(|(_, other)| other == why) {
            return Some(why.to_owned());
        }
        let mut all = String::new();
        for (at, why) in &self.failures {
            let separator = if all.is_empty() { "" } else { "; " };
            let _ = write!(all, "{separator}{at}: {why}");
        }
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_is_tried_and_says_why_it_failed() {
        let [one, other] = ["[::1]:1", "127.0.0.1:1"].map(|at| at.parse().unwrap());
        let mut attempt = Attempt::new(vec![one, other]);
        assert_eq!((attempt.next(), attempt.fails("closed")), (Some(one), None));
        assert_eq!(attempt.next(), Some(other));
        assert_eq!(attempt.fails("mute").unwrap(), "[::1]:1: closed; 127.0.0.1:1: mute");
        let mut attempt = Attempt::new(vec![one, other]);
        attempt.next();
        assert_eq!(attempt.fails("closed"), None);
        attempt.next();
        assert_eq!(attempt.fails("closed").unwrap(), "closed", "once is enough");
        assert_eq!(Attempt::default().fails("no name").unwrap(), "no name");
    }
}
