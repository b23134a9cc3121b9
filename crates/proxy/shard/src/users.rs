//! Users of the nodes, as whom clients send requests.
//!
//! A user here is a name with a password that a node has accepted. Connections to the nodes belong to a user, so a client
//! with another password than the others never gets to use them. The password is kept as long as connections may
//! have to be opened with it: as long as a pool of connections or a client refers to the user. Then its memory is wiped.
//!
//! A name has few passwords at a time. Where a node accepts any password of a user (`nopass`), further clients use one
//! that nobody has: each node that accepts it needs none at that moment, so each of its clients could log in there, too.

use std::{
    fmt,
    hint::black_box,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};
use zeroize::Zeroizing;

/// Maximum number of users at once, of all cores together.
pub(crate) const MOST_USERS: usize = 64;

/// Maximum number of passwords of one name at once, besides the one that nobody has. A user without a password is
/// accepted with any, and must not take the places of all others.
const MOST_PASSWORDS: usize = 4;

/// The longest name or password, in bytes: the limit of Redis on an argument of a client that has not authenticated.
pub(crate) const LONGEST: usize = 16 << 10;

/// A user of the nodes.
pub(crate) struct User {
    name: Vec<u8>,
    password: Zeroizing<Vec<u8>>,
    /// The number of clients, of all cores together.
    clients: AtomicUsize,
    /// The number of the last departure of a client, among those of all users.
    left: AtomicU64,
    departures: Arc<AtomicU64>,
}

impl User {
    /// The name.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// What the proxy sends to a node.
    pub(crate) fn auth(&self) -> [&[u8]; 3] {
        [b"AUTH", &self.name, &self.password]
    }

    fn matches(&self, name: &[u8], password: &[u8]) -> bool {
        self.name == name && are_equal(&self.password, password)
    }

    fn is_used(&self) -> bool {
        self.clients.load(Relaxed) > 0
    }
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:***", self.name.escape_ascii())
    }
}

/// A client that is a user.
#[derive(Debug)]
pub(crate) struct Login(Arc<User>);

impl Login {
    fn new(user: &Arc<User>) -> Self {
        user.clients.fetch_add(1, Relaxed);
        Login(Arc::clone(user))
    }

    /// The user.
    pub(crate) fn user(&self) -> &Arc<User> {
        &self.0
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        let Login(user) = self;
        user.left.store(user.departures.fetch_add(1, Relaxed), Relaxed);
        user.clients.fetch_sub(1, Relaxed);
    }
}

/// Why a client cannot be a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// Clients use as many passwords of this name as are permitted.
    Passwords,
    /// Clients are as many users as are permitted.
    Users,
}

impl Full {
    /// The error for the client, without the leading `-`.
    pub(crate) fn text(self) -> String {
        let room = "and each has clients; try again when all clients of one have left";
        match self {
            Full::Passwords => format!(
                "ERR the proxy serves a user with at most {MOST_PASSWORDS} passwords at once, {room}"
            ),
            Full::Users => {
                format!("ERR the proxy serves at most {MOST_USERS} users at once, {room}")
            }
        }
    }
}

/// The users that have clients or connections.
pub(crate) struct Users {
    known: Mutex<Vec<Weak<User>>>,
    departures: Arc<AtomicU64>,
    /// A random password, which no user has.
    nobodys: Zeroizing<Vec<u8>>,
}

impl Default for Users {
    fn default() -> Self {
        let nobodys = format!("{:032x}", rand::random::<u128>()).into_bytes().into();
        Users { known: Mutex::default(), departures: Arc::default(), nobodys }
    }
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.lock().iter().filter_map(Weak::upgrade)).finish()
    }
}

impl Users {
    /// A password that no user has: a node that accepts it for a user accepts any.
    pub(crate) fn nobodys_password(&self) -> &[u8] {
        &self.nobodys
    }

    /// Makes a client the user with this name and password, which a node must have accepted. It is the same user as long
    /// as that has clients or connections; but one without clients is forgotten if its place is needed.
    ///
    /// # Errors
    /// Returns an error if there are too many users that have clients.
    pub(crate) fn get(&self, name: &[u8], password: &[u8]) -> Result<Login, Full> {
        let mut users = self.lock();
        let known = present(&mut users);
        if let Some(user) = known.iter().find(|user| user.matches(name, password)) {
            return Ok(Login::new(user));
        }
        let of_name = self.of_name(&known, name);
        if password != &self.nobodys[..] && of_name.len() >= MOST_PASSWORDS {
            forget_one(&mut users, &of_name).ok_or(Full::Passwords)?;
        } else if known.len() >= MOST_USERS {
            forget_one(&mut users, &known.iter().collect::<Vec<_>>()).ok_or(Full::Users)?;
        }
        let user = Arc::new(User {
            name: name.to_vec(),
            password: Zeroizing::new(password.to_vec()),
            clients: AtomicUsize::new(0),
            left: AtomicU64::new(0),
            departures: Arc::clone(&self.departures),
        });
        users.push(Arc::downgrade(&user));
        Ok(Login::new(&user))
    }

    /// Makes a client the user with this name for all passwords, of which a node must have accepted any.
    ///
    /// # Errors
    /// Returns an error if there are too many users that have clients.
    pub(crate) fn without_password(&self, name: &[u8]) -> Result<Login, Full> {
        self.get(name, &self.nobodys)
    }

    /// Returns whether [`Users::get`] would not return [`Full::Passwords`].
    pub(crate) fn has_room(&self, name: &[u8], password: &[u8]) -> bool {
        let known = present(&mut self.lock());
        let of_name = self.of_name(&known, name);
        of_name.len() < MOST_PASSWORDS
            || of_name.iter().any(|user| !user.is_used() || user.matches(name, password))
    }

    /// The users with this name, each with a password of its own.
    fn of_name<'u>(&self, known: &'u [Arc<User>], name: &[u8]) -> Vec<&'u Arc<User>> {
        let is_of =
            |user: &&Arc<User>| user.name == name && !are_equal(&user.password, &self.nobodys);
        known.iter().filter(is_of).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<User>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The users that something refers to. The others are removed.
fn present(users: &mut Vec<Weak<User>>) -> Vec<Arc<User>> {
    users.retain(|user| user.strong_count() > 0);
    users.iter().filter_map(Weak::upgrade).collect()
}

/// Forgets the user without clients that is unused for longest, if there is one of these. Its connections are closed when
/// they were kept long enough; a client with its password gets others.
fn forget_one(users: &mut Vec<Weak<User>>, of: &[&Arc<User>]) -> Option<()> {
    let unused = of.iter().filter(|user| !user.is_used());
    let oldest = Arc::downgrade(unused.min_by_key(|user| user.left.load(Relaxed))?);
    users.retain(|user| !user.ptr_eq(&oldest));
    Some(())
}

/// Compares two passwords. The time does not depend on where they first differ.
pub(crate) fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let differs = |all: u8, (one, other): (&u8, &u8)| all | (one ^ other);
    one.len() == other.len() && black_box(one.iter().zip(other).fold(0, differs)) == 0
}

#[cfg(test)]
mod tests;
