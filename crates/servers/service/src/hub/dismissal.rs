//! Orders of a backend to disconnect members.

use regatta_proto::websocket::CloseCode;

/// An order to disconnect members of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dismissal {
    /// Those of this user; empty: of any.
    pub user: String,
    /// The one with this number; `None`: all.
    pub number: Option<usize>,
    /// But not those with these numbers.
    pub spared: Vec<usize>,
    /// The code and the reason of their Close frames.
    pub code: CloseCode,
    pub reason: String,
    /// A member that is in several rooms only leaves the one of the order.
    pub only_leaves: bool,
}

impl Dismissal {
    /// Whether it is for this member.
    pub(super) fn is_for(&self, number: usize, user: &str) -> bool {
        (self.user.is_empty() || self.user == user)
            && self.number.is_none_or(|only| only == number)
            && !self.spared.contains(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_for_all_members_that_fit_and_are_not_spared() {
        let order = |user: &str, number, spared: &[usize]| Dismissal {
            user: user.to_owned(),
            number,
            spared: spared.to_vec(),
            code: CloseCode(3503),
            reason: String::new(),
            only_leaves: false,
        };
        assert!(order("ann", None, &[]).is_for(1, "ann"));
        assert!(!order("ann", None, &[]).is_for(1, "bob"));
        assert!(!order("ann", None, &[]).is_for(1, ""));
        assert!(
            !order("ann", None, &[1]).is_for(1, "ann") && order("ann", None, &[1]).is_for(2, "ann")
        );
        assert!(
            order("", Some(7), &[]).is_for(7, "bob") && !order("", Some(7), &[]).is_for(8, "bob")
        );
        assert!(!order("ann", Some(7), &[]).is_for(7, "bob"));
    }
}
