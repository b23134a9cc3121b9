//! The routing rule for each command of the table.
//!
//! A command with keys goes to the node of its keys, unless a rule overrides that. A command
//! without keys needs a rule; otherwise it is refused, so that no new command is forwarded blindly.

use super::{decision::Local, merge::Merge};
use crate::command::{Begin, Command, Find, KeySpec, flag};

/// The routing rule for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// To the node that owns all keys.
    Keys,
    /// Like `Keys`, with arguments in pairs.
    KeysInPairs,
    /// Like `Keys`, but the command may block.
    BlockingKeys,
    /// XREAD and XREADGROUP: `BlockingKeys` with the option BLOCK, otherwise `Keys`.
    Streams,
    /// SORT and SORT_RO: to the node of the keys. If there are several nodes, patterns that may
    /// read other keys are refused.
    Sort,
    /// A script or function: to the node of its keys. If there are several nodes, at least one key
    /// is required.
    Script,
    /// In parts by key. `first`: the position of the first key; `width`: the number of arguments
    /// per key, including the key.
    Split { first: u8, width: u8, merge: Merge },
    /// To all nodes.
    AllNodes(Merge),
    /// To any node.
    AnyNode,
    /// SCAN.
    Scan,
    /// To the node of the channel in the first argument.
    Channel,
    /// Subscribes to channels, or unsubscribes.
    Channels,
    /// Subscribes to patterns, or unsubscribes.
    Patterns,
    /// WATCH.
    Watch,
    /// MULTI and related commands.
    Transaction,
    /// Answered by the proxy.
    Local(Local),
    /// A command of Redis Cluster, which the proxy does not support.
    Cluster,
    /// Refused, for this reason.
    Refused(&'static str),
}

const ONE_SERVER: &str = "it applies to a single server; send it to the node directly";
const CONNECTIONS: &str = "it applies to the connections of a single server";
const TRACKING: &str = "client-side caching depends on the replies of a single server";
const REPLICATION: &str = "replication is configured on the nodes";
const NO_RULE: &str = "the proxy does not know where to send it";
const MODULES: &str =
    "it belongs to a module, and the proxy does not know which of its arguments are keys";
const BLOCKS: &str = "it blocks, and the proxy does not know for how long";

/// The first matching rule decides. `x*` matches names that start with x, `*x` names that end with
/// it.
const RULES: &[(&str, Policy)] = &[
    ("asking", Policy::Cluster),
    ("cluster*", Policy::Cluster),
    ("readonly", Policy::Cluster),
    ("readwrite", Policy::Cluster),
    ("*|help", Policy::AnyNode),
    // Answered by the proxy.
    ("acl|whoami", Policy::Local(Local::Client)),
    ("auth", Policy::Local(Local::Auth)),
    ("client|getname", Policy::Local(Local::Client)),
    ("client|getredir", Policy::Local(Local::Client)),
    ("client|id", Policy::Local(Local::Client)),
    ("client|info", Policy::Local(Local::Client)),
    ("client|setname", Policy::Local(Local::Client)),
    ("echo", Policy::Local(Local::Echo)),
    ("hello", Policy::Local(Local::Hello)),
    ("info", Policy::Local(Local::Info)),
    ("ping", Policy::Local(Local::Ping)),
    ("quit", Policy::Local(Local::Quit)),
    ("reset", Policy::Local(Local::Reset)),
    ("select", Policy::Local(Local::Select)),
    ("slowlog|get", Policy::Local(Local::SlowLog)),
    ("slowlog|len", Policy::Local(Local::SlowLog)),
    ("slowlog|reset", Policy::Local(Local::SlowLog)),
    // Split by key.
    ("mget", Policy::Split { first: 1, width: 1, merge: Merge::InOrder(1) }),
    ("mset", Policy::Split { first: 1, width: 2, merge: Merge::Ok }),
    ("del", Policy::Split { first: 1, width: 1, merge: Merge::Sum }),
    ("exists", Policy::Split { first: 1, width: 1, merge: Merge::Sum }),
    ("touch", Policy::Split { first: 1, width: 1, merge: Merge::Sum }),
    ("unlink", Policy::Split { first: 1, width: 1, merge: Merge::Sum }),
    ("pubsub|numsub", Policy::Split { first: 2, width: 1, merge: Merge::InOrder(2) }),
    ("pubsub|shardnumsub", Policy::Split { first: 2, width: 1, merge: Merge::InOrder(2) }),
    // To all nodes.
    ("config|get", Policy::AllNodes(Merge::Configuration)),
    ("dbsize", Policy::AllNodes(Merge::Sum)),
    ("flushall", Policy::AllNodes(Merge::Ok)),
    ("flushdb", Policy::AllNodes(Merge::Ok)),
    ("function|delete", Policy::AllNodes(Merge::Same)),
    ("function|flush", Policy::AllNodes(Merge::Same)),
    ("function|load", Policy::AllNodes(Merge::Same)),
    ("function|restore", Policy::AllNodes(Merge::Same)),
    ("keys", Policy::AllNodes(Merge::Concatenation)),
    ("pubsub|channels", Policy::AllNodes(Merge::Union)),
    ("pubsub|shardchannels", Policy::AllNodes(Merge::Union)),
    ("randomkey", Policy::AllNodes(Merge::AnyValue)),
    ("scan", Policy::Scan),
    ("script|exists", Policy::AllNodes(Merge::Least)),
    ("script|flush", Policy::AllNodes(Merge::Same)),
    ("script|load", Policy::AllNodes(Merge::Same)),
    ("swapdb", Policy::AllNodes(Merge::Ok)),
    // To any node.
    ("acl|cat", Policy::AnyNode),
    ("acl|genpass", Policy::AnyNode),
    ("command", Policy::AnyNode),
    ("command|*", Policy::AnyNode),
    ("lolwut", Policy::AnyNode),
    // Patterns are subscribed on every node.
    ("pubsub|numpat", Policy::AnyNode),
    ("time", Policy::AnyNode),
    // To the node of the keys, with conditions.
    ("eval*", Policy::Script),
    ("fcall*", Policy::Script),
    ("msetnx", Policy::KeysInPairs),
    ("sort", Policy::Sort),
    ("sort_ro", Policy::Sort),
    ("xread", Policy::Streams),
    ("xreadgroup", Policy::Streams),
    // Publish and subscribe. A channel belongs to a node, like a key.
    ("publish", Policy::Channel),
    ("spublish", Policy::Channel),
    ("subscribe", Policy::Channels),
    ("ssubscribe", Policy::Channels),
    ("sunsubscribe", Policy::Channels),
    ("unsubscribe", Policy::Channels),
    ("psubscribe", Policy::Patterns),
    ("punsubscribe", Policy::Patterns),
    // Transactions.
    ("discard", Policy::Transaction),
    ("exec", Policy::Transaction),
    ("multi", Policy::Transaction),
    ("unwatch", Policy::Transaction),
    ("watch", Policy::Watch),
    // Refused.
    ("acl*", Policy::Refused("users are defined on the nodes")),
    ("bgrewriteaof", Policy::Refused(ONE_SERVER)),
    ("bgsave", Policy::Refused(ONE_SERVER)),
    ("client|caching", Policy::Refused(TRACKING)),
    ("client|kill", Policy::Refused(CONNECTIONS)),
    ("client|list", Policy::Refused(CONNECTIONS)),
    ("client|no-evict", Policy::Refused(CONNECTIONS)),
    ("client|pause", Policy::Refused(CONNECTIONS)),
    (
        "client|reply",
        Policy::Refused("connections to the nodes are shared, so each reply is needed"),
    ),
    ("client|tracking*", Policy::Refused(TRACKING)),
    ("client|unblock", Policy::Refused(CONNECTIONS)),
    ("client|unpause", Policy::Refused(CONNECTIONS)),
    ("config*", Policy::Refused(ONE_SERVER)),
    ("debug", Policy::Refused(ONE_SERVER)),
    ("failover", Policy::Refused(REPLICATION)),
    ("function|dump", Policy::Refused(ONE_SERVER)),
    ("function|kill", Policy::Refused(ONE_SERVER)),
    ("function|list", Policy::Refused(ONE_SERVER)),
    ("function|stats", Policy::Refused(ONE_SERVER)),
    ("lastsave", Policy::Refused(ONE_SERVER)),
    ("latency*", Policy::Refused(ONE_SERVER)),
    ("memory|doctor", Policy::Refused(ONE_SERVER)),
    ("memory|malloc-stats", Policy::Refused(ONE_SERVER)),
    ("memory|purge", Policy::Refused(ONE_SERVER)),
    ("memory|stats", Policy::Refused(ONE_SERVER)),
    ("migrate", Policy::Refused("it moves keys away from the nodes of the shard map")),
    ("module*", Policy::Refused(ONE_SERVER)),
    ("monitor", Policy::Refused(ONE_SERVER)),
    ("pfselftest", Policy::Refused(ONE_SERVER)),
    ("psync", Policy::Refused(REPLICATION)),
    ("replconf", Policy::Refused(REPLICATION)),
    ("replicaof", Policy::Refused(REPLICATION)),
    ("restore-asking", Policy::Refused("it belongs to the migration of slots in Redis Cluster")),
    ("role", Policy::Refused(REPLICATION)),
    ("save", Policy::Refused(ONE_SERVER)),
    ("script|debug", Policy::Refused(ONE_SERVER)),
    ("script|kill", Policy::Refused(ONE_SERVER)),
    ("shutdown", Policy::Refused(ONE_SERVER)),
    ("slaveof", Policy::Refused(REPLICATION)),
    ("slowlog*", Policy::Refused(ONE_SERVER)),
    ("sync", Policy::Refused(REPLICATION)),
    (
        "wait",
        Policy::Refused("it waits until replicas of one server have the writes of one connection"),
    ),
];

const COUNT: usize = Command::all().len();

/// Indexed by command number. The rules are applied at compile time.
static POLICIES: [Policy; COUNT] = {
    let mut policies = [Policy::Refused(NO_RULE); COUNT];
    let mut number = 0;
    while number < COUNT {
        policies[number] = policy(&Command::all()[number]);
        number += 1;
    }
    policies
};

impl Policy {
    #[inline]
    pub(super) fn of(command: &Command) -> Policy {
        POLICIES.get(command.number()).copied().unwrap_or_else(|| described(command))
    }
}

/// The rule for a command that the table lacks. What was written for all commands of a kind holds for a new one, too.
fn described(command: &Command) -> Policy {
    match policy(command) {
        Policy::Keys | Policy::BlockingKeys | Policy::AnyNode if command.has(flag::ADMIN) => {
            Policy::Refused(ONE_SERVER)
        }
        Policy::BlockingKeys => Policy::Refused(BLOCKS),
        Policy::Keys if command.has(flag::MODULE) && !has_only_its_key(command) => {
            Policy::Refused(MODULES)
        }
        policy => policy,
    }
}

/// Commands of modules, without the name of the module, whose first argument is their only key, according to the
/// documentation of the modules. What a module declares need not be true: JSON.MGET declares one key and has many.
const OF_MODULES: &[(&str, &str)] = &[
    (
        "json.",
        " arrappend arrindex arrinsert arrlen arrpop arrtrim clear del forget get merge numincrby nummultby \
               objkeys objlen resp set strappend strlen toggle type ",
    ),
    ("bf.", " add card exists info insert loadchunk madd mexists reserve scandump "),
    ("cf.", " add addnx count del exists info insert insertnx loadchunk mexists reserve scandump "),
    ("cms.", " incrby info initbydim initbyprob query "),
    ("topk.", " add count incrby info list query reserve "),
    (
        "tdigest.",
        " add byrank byrevrank cdf create info max min quantile rank reset revrank trimmed_mean ",
    ),
    ("ts.", " add alter create decrby del get incrby info range revrange "),
];

/// Returns whether a command of a module is known to have its first argument as its only key, and declares that.
fn has_only_its_key(command: &Command) -> bool {
    let is_listed = OF_MODULES.iter().any(|(module, names)| {
        let name = command.name.strip_prefix(module);
        name.is_some_and(|name| names.split(' ').any(|listed| !name.is_empty() && listed == name))
    });
    let is_first = |spec: &KeySpec| {
        (spec.begin, spec.find) == (Begin::Index(1), Find::Range { last: 0, step: 1, limit: 0 })
    };
    is_listed && matches!(command.specs, [spec] if is_first(spec))
}

const fn policy(command: &Command) -> Policy {
    let mut at = 0;
    while at < RULES.len() {
        if fits(RULES[at].0.as_bytes(), command.name.as_bytes()) {
            return RULES[at].1;
        }
        at += 1;
    }
    at = 0;
    while at < command.specs.len() {
        if command.specs[at].flags & flag::NOT_KEY == 0 {
            let blocks = command.has(flag::BLOCKING);
            return if blocks { Policy::BlockingKeys } else { Policy::Keys };
        }
        at += 1;
    }
    Policy::Refused(NO_RULE)
}

const fn fits(rule: &[u8], name: &[u8]) -> bool {
    match rule {
        [rule @ .., b'*'] => name.len() >= rule.len() && same(rule, name, 0),
        [b'*', rule @ ..] => name.len() >= rule.len() && same(rule, name, name.len() - rule.len()),
        _ => name.len() == rule.len() && same(rule, name, 0),
    }
}

/// Returns whether the name contains these bytes at this position. The name must be long enough.
const fn same(bytes: &[u8], name: &[u8], from: usize) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != name[from + at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Description;

    fn of(name: &str) -> Policy {
        Policy::of(Command::all().iter().find(|command| command.name == name).unwrap())
    }

    #[test]
    fn every_command_has_a_rule_or_keys() {
        let without: Vec<&str> = Command::all()
            .iter()
            .filter(|command| {
                !command.is_container && Policy::of(command) == Policy::Refused(NO_RULE)
            })
            .map(|command| command.name)
            .collect();
        assert!(without.is_empty(), "{without:?}");
    }

    #[test]
    fn every_rule_decides_for_a_command() {
        for (number, (rule, policy)) in RULES.iter().enumerate() {
            let decides = |command: &&Command| {
                let first = RULES
                    .iter()
                    .position(|(rule, _)| fits(rule.as_bytes(), command.name.as_bytes()));
                first == Some(number)
            };
            let command = Command::all().iter().find(decides);
            assert_eq!(command.map(Policy::of), Some(*policy), "{rule}");
        }
    }

    #[test]
    fn at_most_a_quarter_is_refused() {
        let refused = |command: &&Command| matches!(Policy::of(command), Policy::Refused(_));
        let commands = || Command::all().iter().filter(|command| !command.is_container);
        let (refused, all) = (commands().filter(refused).count(), commands().count());
        println!("{refused} of {all} are refused");
        assert!(refused * 4 <= all, "{refused} of {all}");
    }

    #[test]
    fn without_a_rule_the_keys_decide() {
        for name in ["get", "hset", "zunionstore", "rename", "object|encoding", "pfdebug"] {
            assert_eq!(of(name), Policy::Keys, "{name}");
        }
        for name in ["blpop", "bzmpop", "blmove"] {
            assert_eq!(of(name), Policy::BlockingKeys, "{name}");
        }
        assert_eq!(of("cluster|help"), Policy::Cluster);
        assert_eq!(of("config|help"), Policy::AnyNode);
        assert_eq!(of("command"), Policy::AnyNode);
    }
    #[test]
    fn a_command_that_a_node_described_is_refused_unless_its_keys_decide() {
        let like = |name: &'static str, like: &str, flags| {
            let known = Command::all().iter().find(|command| command.name == like).unwrap();
            // The number of a described command is that of `Description::leak`.
            let described = Description::like(known, name, flags);
            Policy::of(described)
        };
        assert_eq!(like("hexpire", "hset", flag::WRITE), Policy::Keys);
        assert_eq!(like("xblpop", "blpop", flag::WRITE | flag::BLOCKING), Policy::Refused(BLOCKS));
        assert_eq!(like("xdebug", "pfdebug", flag::ADMIN), Policy::Refused(ONE_SERVER));
        assert_eq!(like("ft.search", "dbsize", flag::READONLY), Policy::Refused(NO_RULE));
        assert_eq!(like("xspublish", "spublish", flag::PUBSUB), Policy::Refused(NO_RULE));
        assert_eq!(like("client|new", "client|id", 0), Policy::Refused(NO_RULE));
        assert_eq!(like("cluster|new", "cluster|info", 0), Policy::Cluster);
        assert_eq!(like("config|new", "config|set", 0), Policy::Refused(ONE_SERVER));
        assert_eq!(like("commandlog|get", "command|count", flag::ADMIN), Policy::Refused(NO_RULE));
        assert_eq!(like("command|new", "command|count", flag::ADMIN), Policy::Refused(ONE_SERVER));
        assert_eq!(like("command|new", "command|count", 0), Policy::AnyNode);
        assert_eq!(like("ft.new|help", "client|help", 0), Policy::AnyNode);
        // Commands of modules, which need not declare what is true.
        for name in ["json.set", "bf.add", "ts.range", "topk.list", "tdigest.trimmed_mean"] {
            assert_eq!(like(name, "set", flag::MODULE), Policy::Keys, "{name}");
            assert_eq!(like(name, "mset", flag::MODULE), Policy::Refused(MODULES), "{name}");
        }
        for name in ["json.mget", "json.", "json", "json.set ", "ft.search", "ts.queryindex", "set"]
        {
            assert_eq!(like(name, "set", flag::MODULE), Policy::Refused(MODULES), "{name}");
        }
        assert_eq!(like("json.mget", "set", 0), Policy::Keys, "not a module's");
    }
}
