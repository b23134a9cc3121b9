//! The addresses of a broker that has a name.

use super::url::Server;
use regatta_serve::HubPlace;
use std::{
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Duration,
};

/// How often a name is resolved.
const EVERY: Duration = Duration::from_secs(5);
/// How long the first attempt to connect waits for the addresses.
const FIRST: Duration = Duration::from_millis(200);

/// A broker at the addresses of this host. A thread that starts with the first question resolves the name again and
/// again, because brokers move.
pub fn place(Server { host, port }: Server) -> Arc<dyn HubPlace> {
    match host.parse::<IpAddr>() {
        Ok(ip) => Arc::new(Fixed(SocketAddr::new(ip, port))),
        Err(_) => Arc::new(Named { host, port, newest: Arc::default(), first: Mutex::new(None) }),
    }
}

struct Fixed(SocketAddr);

impl HubPlace for Fixed {
    fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        Ok(vec![self.0])
    }
}

struct Named {
    host: String,
    port: u16,
    newest: Arc<Mutex<Vec<SocketAddr>>>,
    /// The thread has started, and sends this when it has found something.
    first: Mutex<Option<Receiver<()>>>,
}

impl Named {
    fn start(&self) -> io::Result<()> {
        let mut started = lock(&self.first);
        if started.is_some() {
            return Ok(());
        }
        let (found, receiver) = channel();
        let (newest, host, port) = (Arc::clone(&self.newest), self.host.clone(), self.port);
        let resolve = move || follow(&host, port, &newest, &found);
        thread::Builder::new().name("broker".into()).spawn(resolve)?;
        _ = receiver.recv_timeout(FIRST);
        *started = Some(receiver);
        Ok(())
    }
}

impl HubPlace for Named {
    fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        self.start().map_err(|error| format!("its name is not resolved: no thread: {error}"))?;
        let addresses = lock(&self.newest).clone();
        if addresses.is_empty() {
            return Err("its name cannot be resolved".to_owned());
        }
        Ok(addresses)
    }
}

/// Resolves the name for as long as the process runs. Addresses that are known stay if the name cannot be resolved.
fn follow(host: &str, port: u16, newest: &Mutex<Vec<SocketAddr>>, found: &Sender<()>) {
    loop {
        let addresses = (host, port).to_socket_addrs();
        let addresses: Vec<SocketAddr> = addresses.into_iter().flatten().collect();
        if !addresses.is_empty() {
            *lock(newest) = addresses;
            _ = found.send(());
        }
        thread::sleep(EVERY);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while holding the lock.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
