//! Which clients are admitted: limits on how many are connected, of all and of one address.
//!
//! A client is counted from when it is accepted until its connection is closed. An IPv6 address is counted by its first
//! 64 bits, because a client usually has as many addresses as the rest can name. A client without an address, e.g. of a
//! Unix socket, is counted only among all.

use std::{
    collections::HashMap,
    fmt,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Maximum numbers of clients; 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientLimits {
    /// Of all clients of the process.
    pub all: usize,
    /// Of the clients of one address.
    pub per_address: usize,
}

/// Why a client is refused, with the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// As many clients as are permitted are connected.
    All(usize),
    /// As many clients of its address as are permitted are connected.
    PerAddress(usize),
}

/// Notes that a client is refused: the reason, and its address if it has one. Returns what is sent to the client before
/// its connection is closed.
pub type Refuse = Box<dyn Fn(Refusal, Option<IpAddr>) -> &'static [u8] + Send + Sync>;

/// Counts clients, and refuses those beyond the limits. All cores share it.
pub struct Admission {
    clients: Mutex<Clients>,
    refuse: Refuse,
}

#[derive(Debug, Default)]
struct Clients {
    limits: ClientLimits,
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

impl Admission {
    /// Creates it without clients. `refuse` is called for each client that is refused.
    pub fn new(limits: ClientLimits, refuse: Refuse) -> Self {
        Admission { clients: Mutex::new(Clients { limits, ..Clients::default() }), refuse }
    }

    /// Changes the limits. Clients that are connected stay.
    pub fn set_limits(&self, limits: ClientLimits) {
        self.lock().limits = limits;
    }

    /// Admits a client with this address.
    ///
    /// # Errors
    /// A limit is reached. Returns what is sent to the client before its connection is closed.
    pub fn admit(self: &Arc<Self>, from: Option<IpAddr>) -> Result<Guest, &'static [u8]> {
        let address = from.map(counted);
        // The lock is not held while the refusal is noted.
        let entered = self.lock().enter(address);
        match entered {
            Ok(()) => Ok(Guest { admission: Arc::clone(self), address }),
            Err(refusal) => Err((self.refuse)(refusal, from)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission").field("clients", &*self.lock()).finish_non_exhaustive()
    }
}

impl Clients {
    fn enter(&mut self, address: Option<IpAddr>) -> Result<(), Refusal> {
        let ClientLimits { all, per_address } = self.limits;
        if all > 0 && self.all >= all {
            return Err(Refusal::All(all));
        }
        if let Some(address) = address {
            let before = self.by_address.get(&address).copied().unwrap_or(0);
            if per_address > 0 && before >= per_address {
                return Err(Refusal::PerAddress(per_address));
            }
            self.by_address.insert(address, before + 1);
        }
        self.all += 1;
        Ok(())
    }

    fn leave(&mut self, address: Option<IpAddr>) {
        self.all -= 1;
        if let Some(address) = address
            && let Some(count) = self.by_address.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
    }
}

/// A client that was admitted. It leaves when this is dropped.
#[derive(Debug)]
pub struct Guest {
    admission: Arc<Admission>,
    address: Option<IpAddr>,
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.admission.lock().leave(self.address);
    }
}

/// The address under which a client is counted.
fn counted(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(all: usize, per_address: usize) -> Arc<Admission> {
        let reply = |refusal: Refusal, _: Option<IpAddr>| match refusal {
            Refusal::All(_) => &b"all"[..],
            Refusal::PerAddress(_) => b"address",
        };
        Arc::new(Admission::new(ClientLimits { all, per_address }, Box::new(reply)))
    }

    fn from(address: &str) -> Option<IpAddr> {
        Some(address.parse().unwrap())
    }

    #[test]
    fn a_client_beyond_a_limit_is_refused_until_another_one_leaves() {
        let admission = admission(3, 2);
        let one = admission.admit(from("10.0.0.1")).unwrap();
        let _two = admission.admit(from("10.0.0.1")).unwrap();
        assert_eq!(admission.admit(from("10.0.0.1")).unwrap_err(), b"address");
        let _three = admission.admit(from("10.0.0.2")).unwrap();
        assert_eq!(admission.admit(from("10.0.0.3")).unwrap_err(), b"all");
        drop(one);
        let _four = admission.admit(from("10.0.0.1")).unwrap();
    }

    #[test]
    fn addresses_of_version_6_count_together_if_64_bits_are_the_same() {
        let admission = admission(0, 1);
        let _one = admission.admit(from("2001:db8:0:1::1")).unwrap();
        assert!(admission.admit(from("2001:db8:0:1:ffff::2")).is_err());
        let _two = admission.admit(from("2001:db8:0:2::1")).unwrap();
        let _three = admission.admit(from("::ffff:10.0.0.1")).unwrap();
        assert!(admission.admit(from("10.0.0.1")).is_err(), "it is the same one of version 4");
        let _four = admission.admit(from("10.0.0.2")).unwrap();
    }

    #[test]
    fn clients_without_an_address_count_only_among_all() {
        let admission = admission(2, 1);
        let _both = [(); 2].map(|()| admission.admit(None).unwrap());
        assert_eq!(admission.admit(None).unwrap_err(), b"all");
    }

    #[test]
    fn limits_that_change_hold_for_clients_that_come_later() {
        let admission = admission(0, 0);
        let all = [(); 3].map(|()| admission.admit(from("10.0.0.1")).unwrap());
        admission.set_limits(ClientLimits { all: 0, per_address: 2 });
        assert!(admission.admit(from("10.0.0.1")).is_err());
        let [first, second, _third] = all;
        drop(first);
        assert!(admission.admit(from("10.0.0.1")).is_err());
        drop(second);
        let _more = admission.admit(from("10.0.0.1")).unwrap();
        admission.set_limits(ClientLimits::default());
        let _others = [(); 9].map(|()| admission.admit(from("10.0.0.1")).unwrap());
    }

    #[test]
    fn nothing_is_kept_of_an_address_without_clients() {
        let admission = admission(0, 0);
        drop(admission.admit(from("10.0.0.1")).unwrap());
        assert!(admission.lock().by_address.is_empty());
        assert_eq!(admission.lock().all, 0);
    }
}
