//! Faults injected into a history, and counts of events.

use regatta_testkit::seen;

/// A fault that the checks must detect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Two replies of a node are swapped.
    Crossed,
    /// A reply of a node is lost.
    Lost,
    /// A reply of a node is sent twice.
    Doubled,
    /// A byte of a value changes on the way to a client.
    Changed,
    /// A node replies to a write with a number that is one too high, as if it applied it twice.
    AppliedTwice,
    /// A node accepts AUTH, and carries out what follows as the user before.
    NotLoggedIn,
    /// A node has room for fewer refusals of passwords than any Redis, as if the proxy sent more at once.
    ManyLogins,
}

impl Fault {
    pub const ALL: [Fault; 7] = [
        Fault::Crossed,
        Fault::Lost,
        Fault::Doubled,
        Fault::Changed,
        Fault::AppliedTwice,
        Fault::NotLoggedIn,
        Fault::ManyLogins,
    ];
}

/// What may have gone wrong in a history.
#[derive(Clone, Copy, Debug)]
pub struct Trouble {
    /// Nodes and clients may have failed.
    pub fails: bool,
    /// The shard map may have changed.
    pub remaps: bool,
    /// The nodes refuse MULTI.
    pub refuses_multi: bool,
    /// A client may have too little room for a value.
    pub is_tight: bool,
    /// The users are those of the nodes.
    pub has_users: bool,
    /// One of the nodes does not know them.
    pub lacks_users: bool,
}

impl Trouble {
    /// Returns whether it explains an error reply.
    pub fn explains(self, reply: &[u8]) -> bool {
        let is = |code: &str| reply.starts_with(code.as_bytes());
        (self.fails || self.refuses_multi) && (is("-SHARDDOWN ") || is("-SHARDTIMEOUT "))
            || self.remaps && is("-SHARDMOVED ")
            || self.is_tight && is("-SHARDTOOLARGE ")
            || self.lacks_users && (is("-WRONGPASS ") || is("-EXECABORT "))
            || (self.fails || self.remaps || self.refuses_multi) && is("-EXECABORT ")
    }
}

seen!(
    replies,
    failures,
    transactions,
    pops,
    messages,
    /// The client had already requested to unsubscribe.
    messages_while_leaving,
    deaths,
    refusals,
    /// The shard map changed while a client had pending replies.
    maps,
    /// The configuration named other addresses of some nodes while a client had pending replies.
    moves,
    stalls,
    resets,
    half_closes,
    /// A blocked client disconnected.
    abandoned,
    /// A drain began.
    drains,
    /// An element that was pushed in a drain was delivered, or left in its list.
    delivered_in_drain,
    left_in_drain,
    slow_reads,
    /// Replies of scripts with a line longer than 64 KiB.
    long_lines,
    /// Requests that are not RESP.
    malformed,
    /// Requests for the credentials of the nodes.
    secrets,
    /// A client has become another user, also behind requests as the user before.
    logins,
    logins_behind_requests,
    /// A wrong password was refused.
    wrong_passwords,
    /// Several refusals of passwords were pending over one connection.
    crowded_logins,
    /// A request was refused because its node does not know the user of the client.
    refused_users,
    /// A client was disconnected because all together held too much.
    evictions,
    /// A transaction failed because the node refused MULTI.
    refused_transactions,
    /// A value was refused because its client had no room for it.
    large_values,
    /// An argument was refused because of the limit of its node.
    long_arguments,
    /// A request did not arrive in time.
    late_requests,
    /// Entries of the slow log, and those of them that are shortened.
    slow_entries,
    shortened_entries
);
