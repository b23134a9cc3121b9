//! The user of a client, if users matter.

use super::*;
use crate::node::USERS;

impl Client {
    /// The end of its keys.
    pub(super) fn suffix(&self) -> String {
        self.user.map_or_else(String::new, |user| format!("@{user}"))
    }

    /// Becomes another user, or tries to with a wrong password.
    pub(super) fn log_in(&mut self, random: &mut SmallRng, out: &mut Vec<u8>, seen: &mut Seen) {
        if random.random_ratio(1, 5) {
            self.user = Some(DEFAULT);
            return self.ask(&[b"reset"], Expected::Reset, out);
        }
        let (user, password) = USERS[random.random_range(0..USERS.len())];
        if random.random_ratio(if self.guesses { 3 } else { 1 }, 4) {
            let wrong = if user == "ann" { "b" } else { "a" };
            return self.ask(&[b"auth", user.as_bytes(), wrong.as_bytes()], Expected::Denied, out);
        }
        seen.logins_behind_requests += u64::from(!self.expected.is_empty());
        if self.is_careful {
            self.becomes = Some(user);
        } else {
            self.user = Some(user);
        }
        let (user, password) = (user.as_bytes(), password.as_bytes());
        match random.random_range(0..4) {
            0 => {
                let hello: [&[u8]; 5] = [b"hello", b"2", b"auth", user, password];
                self.ask(&hello, Expected::HelloAs(false), out);
            }
            1 => {
                let hello: [&[u8]; 5] = [b"HELLO", b"3", b"AUTH", user, password];
                self.ask(&hello, Expected::HelloAs(true), out);
            }
            _ => self.ask(&[b"AUTH", user, password], Expected::Auth, out),
        }
    }
}
