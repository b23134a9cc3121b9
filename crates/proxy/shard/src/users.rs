//! Users of the nodes, as whom clients send requests.
//!
//! A user here is a name with a password that a node has accepted. Connections to the nodes belong to a user, so a client
//! with another password than the others never gets to use them. The password is kept as long as connections may
//! have to be opened with it: as long as a pool of connections or a client refers to the user.

use std::{
    fmt,
    hint::black_box,
    sync::{Arc, Mutex, PoisonError, Weak},
};

/// Maximum number of users at once, of all cores together.
pub(crate) const MOST_USERS: usize = 64;

/// Maximum number of passwords of one name at once. A user without a password is accepted with any, and must not take
/// the places of all others.
const MOST_PASSWORDS: usize = 4;

/// The longest name or password, in bytes: the limit of Redis on an argument of a client that has not authenticated.
pub(crate) const LONGEST: usize = 16 << 10;

/// A user of the nodes.
pub(crate) struct User {
    name: Vec<u8>,
    password: Vec<u8>,
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
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:***", self.name.escape_ascii())
    }
}

/// The users that have clients or connections.
#[derive(Debug, Default)]
pub(crate) struct Users(Mutex<Vec<Weak<User>>>);

impl Users {
    /// Returns the user with this name and password, which a node must have accepted; the same one as long as it has
    /// clients or connections.
    ///
    /// # Errors
    /// The error for the client, without the leading `-`, if there are too many.
    pub(crate) fn get(&self, name: &[u8], password: &[u8]) -> Result<Arc<User>, String> {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|user| user.strong_count() > 0);
        let known: Vec<Arc<User>> = users.iter().filter_map(Weak::upgrade).collect();
        if let Some(user) = known.iter().find(|user| user.matches(name, password)) {
            return Ok(Arc::clone(user));
        }
        let room = "; one makes room a minute after its last client has left";
        if known.iter().filter(|user| user.name == name).count() >= MOST_PASSWORDS {
            return Err(format!(
                "ERR the proxy serves a user with at most {MOST_PASSWORDS} passwords at once{room}"
            ));
        }
        if users.len() >= MOST_USERS {
            return Err(format!("ERR the proxy serves at most {MOST_USERS} users at once{room}"));
        }
        let user = Arc::new(User { name: name.to_vec(), password: password.to_vec() });
        users.push(Arc::downgrade(&user));
        Ok(user)
    }
}

/// Compares two passwords. The time does not depend on where they first differ.
pub(crate) fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let differs = |all: u8, (one, other): (&u8, &u8)| all | (one ^ other);
    one.len() == other.len() && black_box(one.iter().zip(other).fold(0, differs)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_the_same_only_with_the_same_password() {
        let users = Users::default();
        let ann = users.get(b"ann", b"secret").unwrap();
        assert!(Arc::ptr_eq(&ann, &users.get(b"ann", b"secret").unwrap()));
        for (name, password) in
            [("ann", "secreT"), ("ann", "secret2"), ("ann", ""), ("bob", "secret")]
        {
            let other = users.get(name.as_bytes(), password.as_bytes()).unwrap();
            assert!(!Arc::ptr_eq(&ann, &other), "{name} {password}");
        }
    }

    #[test]
    fn users_are_limited_and_make_room_when_nothing_refers_to_them() {
        let users = Users::default();
        let get = |number: usize| users.get(format!("u{number}").as_bytes(), b"x");
        let mut all: Vec<_> = (0..MOST_USERS).map(|number| get(number).unwrap()).collect();
        assert!(get(MOST_USERS).is_err());
        assert!(get(0).is_ok(), "one that is known");
        all.pop();
        assert!(get(MOST_USERS).is_ok());
    }

    #[test]
    fn a_user_that_is_accepted_with_any_password_does_not_take_the_places_of_others() {
        let users = Users::default();
        let get = |password: usize| users.get(b"default", password.to_string().as_bytes());
        let _all: Vec<_> = (0..MOST_PASSWORDS).map(|password| get(password).unwrap()).collect();
        let error = get(MOST_PASSWORDS).unwrap_err();
        assert!(
            error.starts_with("ERR the proxy serves a user with at most 4 passwords"),
            "{error}"
        );
        assert!(get(0).is_ok() && users.get(b"ann", b"secret").is_ok());
    }

    #[test]
    fn a_password_is_not_printed() {
        let users = Users::default();
        let _ann = users.get(b"ann", b"secret").unwrap();
        let printed = format!("{users:?} {_ann:?}");
        assert!(printed.contains("ann:***") && !printed.contains("secret"), "{printed}");
    }
}
