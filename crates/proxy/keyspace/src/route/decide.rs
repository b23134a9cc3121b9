//! The routing decision for one request.

use super::{
    cursor::Cursor,
    decision::{Decision, Lease, Place, Route},
    key_assignment::{Part, Plan},
    merge::Merge,
    policy::Policy,
    refusal,
};
use crate::{
    arguments::Arguments,
    command::{Command, KeysError, flag, options},
    map::{Home, Map},
};

const UNDESCRIBED: &str = "Redis does not specify the positions of all its keys";
const OTHER_KEYS: &str = "its BY or GET pattern may read keys on other nodes";
const NO_KEYS: &str = "without keys, its node is unknown; pass all keys that it uses";
const PATTERNS: &str = "each node of a cluster gets all messages, so they would arrive several times; only patterns \
                        that start with __keyspace@ or __keyevent@ are possible";
const MALFORMED: &str = "its arguments are malformed, so the node of its keys is unknown";

/// Decides where to send a request. A request without arguments is refused.
///
/// After [`Route::Split`] and [`Place::Parts`], `plan` contains the parts of the request. After
/// [`Route::OneNode`] and [`Place::Node`], it has the group of the keys. After
/// other routes, its content is meaningless. The decision depends
/// only on the request and the map. The caller must consider the state of the client's connection,
/// e.g. a transaction or a subscription.
pub fn decide<A: Arguments + ?Sized>(args: &A, map: &Map, plan: &mut Plan) -> Decision {
    match lookup(args) {
        Ok(command) => decide_described(command, args, map, plan),
        Err(error) => Decision { command: None, route: Route::Refused(error) },
    }
}

/// Decides like [`decide`] for a request of `command`, which the table lacks and a node has described.
pub fn decide_described<A: Arguments + ?Sized>(
    command: &'static Command,
    args: &A,
    map: &Map,
    plan: &mut Plan,
) -> Decision {
    plan.group = None;
    let route = route(command, args, map, plan).unwrap_or_else(Route::Refused);
    Decision { command: Some(command), route }
}

/// Finds the command or subcommand of a request.
fn lookup<A: Arguments + ?Sized>(args: &A) -> Result<&'static Command, Vec<u8>> {
    let name = args.get(0).unwrap_or_default();
    let command = Command::find(name).ok_or_else(|| refusal::unknown(args))?;
    match args.get(1) {
        Some(second) if command.is_container => {
            command.subcommand(second).ok_or_else(|| refusal::unknown_subcommand(args))
        }
        _ => Ok(command),
    }
}

fn route<A: Arguments + ?Sized>(
    command: &Command,
    args: &A,
    map: &Map,
    plan: &mut Plan,
) -> Result<Route, Vec<u8>> {
    let policy = Policy::of(command);
    if !command.takes(args.count()) && !may_take_more(command, policy, args.count()) {
        return Err(refusal::arity(command));
    }
    Ok(match policy {
        Policy::Keys => to(command, keys(command, args, map, plan)?, map)?,
        Policy::KeysInPairs if args.count().is_multiple_of(2) => {
            return Err(refusal::arity(command));
        }
        Policy::KeysInPairs => to(command, keys(command, args, map, plan)?, map)?,
        Policy::BlockingKeys => lease((command, Lease::Blocking), args, map, plan)?,
        Policy::Streams if options::streams(args).blocks => {
            lease((command, Lease::Blocking), args, map, plan)?
        }
        Policy::Streams => to(command, keys(command, args, map, plan)?, map)?,
        Policy::Sort if map.nodes() > 1 && options::sort(args).has_patterns => {
            return Err(refusal::unsupported(command, OTHER_KEYS));
        }
        Policy::Sort => to(command, keys(command, args, map, plan)?, map)?,
        Policy::Script => match keys(command, args, map, plan)? {
            Keyed::None if map.nodes() > 1 => return Err(refusal::unsupported(command, NO_KEYS)),
            keyed => to(command, keyed, map)?,
        },
        Policy::Split { first, width, merge } => {
            let (first, width) = (usize::from(first), usize::from(width));
            if !(args.count() - first).is_multiple_of(width) {
                return Err(refusal::arity(command));
            }
            if args.count() == first {
                return Ok(Route::AnyNode);
            }
            match split(args, (first, width), map, plan) {
                Some(node) => Route::OneNode(node),
                None => Route::Split(merge),
            }
        }
        // The reply of a single node is checked, too.
        Policy::AllNodes(merge) if map.nodes() > 1 || merge == Merge::Configuration => {
            Route::AllNodes(merge)
        }
        Policy::AllNodes(_) => Route::OneNode(0),
        Policy::AnyNode => Route::AnyNode,
        Policy::Scan => Route::Scan(Cursor::parse(args.get(1).unwrap_or(b"x"), map)?),
        Policy::Channel => {
            let Home { node, group } = map.home(args.get(1).unwrap_or_default());
            plan.group = Some(group);
            Route::OneNode(node)
        }
        Policy::Patterns
            if map.cluster().is_some()
                && !(1..args.count()).all(|at| args.get(at).is_some_and(is_notification)) =>
        {
            return Err(refusal::unsupported(command, PATTERNS));
        }
        Policy::Channels => Route::Lease(Lease::Subscription, channels(args, map, plan)),
        Policy::Patterns => Route::Lease(Lease::Subscription, Place::AllNodes),
        Policy::Watch => lease((command, Lease::Watch), args, map, plan)?,
        Policy::Transaction => Route::Lease(Lease::Transaction, Place::Open),
        Policy::Local(local) => Route::Local(local),
        Policy::Cluster => return Err(refusal::no_cluster()),
        Policy::Refused(reason) => return Err(refusal::unsupported(command, reason)),
    })
}

/// Whether a later version of a command may accept more arguments than the table says, as ZRANK does since
/// Redis 7.2: the node decides. Only for commands that read one key, whose position does not depend on the
/// others, so that nothing is read or written elsewhere.
fn may_take_more(command: &Command, policy: Policy, arguments: usize) -> bool {
    matches!(policy, Policy::Keys)
        && command.only_key().is_some()
        && command.has(flag::READONLY)
        && arguments > usize::from(command.arity.unsigned_abs())
}

/// Where the keys of a request are.
enum Keyed {
    /// All keys that are known are on this node.
    Node(usize),
    /// The request has no keys.
    None,
    /// The request is malformed, and none of its keys is known. Every node replies with the same
    /// error.
    Malformed,
}

/// Returns the node of all keys of a request, and notes their group, or returns an error if they are of several.
fn keys<A: Arguments + ?Sized>(
    command: &Command,
    args: &A,
    map: &Map,
    plan: &mut Plan,
) -> Result<Keyed, Vec<u8>> {
    // Most requests have one key at a fixed place, which needs no search.
    if let Some(key) = command.only_key().and_then(|at| args.get(at)) {
        let Home { node, group } = map.home(key);
        plan.group = Some(group);
        return Ok(Keyed::Node(node));
    }
    let (keys, error) = command.known_keys(args);
    let mut found = match error {
        None => Keyed::None,
        Some(KeysError::Malformed) => Keyed::Malformed,
        Some(KeysError::Incomplete) => return Err(refusal::unsupported(command, UNDESCRIBED)),
    };
    for position in keys {
        let Home { node, group } = map.home(args.get(position).unwrap_or_default());
        if plan.group.is_some_and(|other| other != group) {
            return Err(refusal::cross_slot());
        }
        plan.group = Some(group);
        found = Keyed::Node(node);
    }
    Ok(found)
}

/// A request without keys goes to any node, which replies with an error. A command that may write is
/// refused instead: if the node accepted it, the key would be where nobody looks for it.
fn to(command: &Command, keyed: Keyed, map: &Map) -> Result<Route, Vec<u8>> {
    match keyed {
        Keyed::Node(node) => Ok(Route::OneNode(node)),
        Keyed::None | Keyed::Malformed if command.has(flag::READONLY) || map.nodes() == 1 => {
            Ok(Route::AnyNode)
        }
        Keyed::None | Keyed::Malformed => Err(refusal::unsupported(command, MALFORMED)),
    }
}

/// A request without keys cannot block.
fn lease<A: Arguments + ?Sized>(
    (command, why): (&Command, Lease),
    args: &A,
    map: &Map,
    plan: &mut Plan,
) -> Result<Route, Vec<u8>> {
    match keys(command, args, map, plan)? {
        Keyed::Node(node) => Ok(Route::Lease(why, Place::Node(node))),
        keyed => to(command, keyed, map),
    }
}

/// Plans the parts of a request that is split by key. Returns the node if all keys are on one.
fn split<A: Arguments + ?Sized>(
    args: &A,
    (first, width): (usize, usize),
    map: &Map,
    plan: &mut Plan,
) -> Option<usize> {
    if map.nodes() == 1 || args.count() == first + width {
        let Home { node, group } = map.home(args.get(first).unwrap_or_default());
        plan.group = Some(group);
        return Some(node);
    }
    plan.make(args, (first, width), map);
    let mut parts = plan.parts();
    let Part { node, group, .. } = parts.next()?;
    let is_only = parts.next().is_none();
    drop(parts);
    plan.group = is_only.then_some(group);
    is_only.then_some(node)
}

/// Returns where channels are subscribed. Each node publishes the notifications for its own keys,
/// so these channels concern all nodes. UNSUBSCRIBE without channels does too, because any node may
/// have subscriptions.
fn channels<A: Arguments + ?Sized>(args: &A, map: &Map, plan: &mut Plan) -> Place {
    let mut channels = (1..args.count()).filter_map(|position| args.get(position));
    if args.count() == 1 || channels.any(is_notification) {
        return Place::AllNodes;
    }
    split(args, (1, 1), map, plan).map_or(Place::Parts, Place::Node)
}

/// Returns whether each node publishes to this channel for its own keys.
pub fn is_notification(channel: &[u8]) -> bool {
    channel.starts_with(b"__keyspace@") || channel.starts_with(b"__keyevent@")
}
