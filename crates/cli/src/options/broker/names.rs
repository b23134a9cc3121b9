//! The addresses of a broker that has a name.

use super::{
    asker::look_up,
    follower::{Follower, Following, lock},
    url::Server,
};
use regatta_serve::HubPlace;
use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// How often a name is resolved.
const EVERY: Duration = Duration::from_secs(5);

/// A broker at the addresses of this host. A thread that starts with the first question resolves the name again and
/// again, because brokers move.
pub fn place(server: Server) -> Arc<dyn HubPlace> {
    match server.host.parse::<IpAddr>() {
        Ok(ip) => Arc::new(Fixed(SocketAddr::new(ip, server.port))),
        Err(_) => Arc::new(Named { server, newest: Arc::default(), follower: Follower::default() }),
    }
}

struct Fixed(SocketAddr);

impl HubPlace for Fixed {
    fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        Ok(vec![self.0])
    }
}

struct Named {
    server: Server,
    newest: Arc<Mutex<Vec<SocketAddr>>>,
    follower: Follower,
}

impl HubPlace for Named {
    fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let (server, newest) = (self.server.clone(), Arc::clone(&self.newest));
        let started =
            self.follower.start("broker", move |following| follow(&server, &newest, &following));
        started.map_err(|error| format!("its name is not resolved: no thread: {error}"))?;
        let addresses = lock(&self.newest).clone();
        if addresses.is_empty() {
            return Err("its name cannot be resolved".to_owned());
        }
        Ok(addresses)
    }
}

/// Resolves the name for as long as the process runs. Addresses that are known stay if the name cannot be resolved.
fn follow(server: &Server, newest: &Mutex<Vec<SocketAddr>>, following: &Following) {
    loop {
        let addresses = look_up(server);
        if !addresses.is_empty() {
            *lock(newest) = addresses;
            following.found();
        }
        if !following.wait(Instant::now() + EVERY) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_resolved() {
        let place = place(Server { host: "localhost".to_owned(), port: 7000 });
        let addresses = loop {
            if let Ok(addresses) = place.addresses() {
                break addresses;
            }
        };
        assert!(addresses.iter().all(|at| at.ip().is_loopback() && at.port() == 7000));
    }

    #[test]
    fn an_address_needs_no_thread() {
        let place = place(Server { host: "::1".to_owned(), port: 7000 });
        assert_eq!(place.addresses(), Ok(vec!["[::1]:7000".parse().unwrap()]));
    }
}
