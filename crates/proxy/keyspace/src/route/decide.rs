//! The routing decision for one request.

use super::{
    cursor::Cursor,
    decision::{Decision, Lease, Place, Route},
    key_assignment::Plan,
    merge::Merge,
    policy::Policy,
    refusal,
};
use crate::{
    arguments::Arguments,
    command::{Begin, Command, Find, KeySpec, KeysError, flag, options},
    map::Map,
};

const UNDESCRIBED: &str = "Redis does not specify the positions of all its keys";
const OTHER_KEYS: &str = "its BY or GET pattern may read keys on other nodes";
const NO_KEYS: &str = "without keys, its node is unknown; pass all keys that it uses";
const MALFORMED: &str = "its arguments are malformed, so the node of its keys is unknown";

/// Decides where to send a request. A request without arguments is refused.
///
/// After [`Route::Split`] and [`Place::Parts`], `plan` contains the parts of the request. After
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
        Policy::Keys => to(command, keys(command, args, map)?, map)?,
        Policy::KeysInPairs if args.count().is_multiple_of(2) => {
            return Err(refusal::arity(command));
        }
        Policy::KeysInPairs => to(command, keys(command, args, map)?, map)?,
        Policy::BlockingKeys => lease(command, Lease::Blocking, args, map)?,
        Policy::Streams if options::streams(args).blocks => {
            lease(command, Lease::Blocking, args, map)?
        }
        Policy::Streams => to(command, keys(command, args, map)?, map)?,
        Policy::Sort if map.nodes() > 1 && options::sort(args).has_patterns => {
            return Err(refusal::unsupported(command, OTHER_KEYS));
        }
        Policy::Sort => to(command, keys(command, args, map)?, map)?,
        Policy::Script => match keys(command, args, map)? {
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
        Policy::Scan => {
            let cursor = args.get(1).and_then(|text| Cursor::parse(text, map.nodes()));
            Route::Scan(cursor.ok_or_else(refusal::invalid_cursor)?)
        }
        Policy::Channel => Route::OneNode(map.node(args.get(1).unwrap_or_default())),
        Policy::Channels => Route::Lease(Lease::Subscription, channels(args, map, plan)),
        Policy::Patterns => Route::Lease(Lease::Subscription, Place::AllNodes),
        Policy::Watch => lease(command, Lease::Watch, args, map)?,
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
    let has_one_key = matches!(
        command.specs,
        [KeySpec { begin: Begin::Index(_), find: Find::Range { last: 0, .. }, .. }]
    );
    matches!(policy, Policy::Keys)
        && has_one_key
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

/// Returns the node of all keys of a request, or an error if they are on several nodes.
fn keys<A: Arguments + ?Sized>(command: &Command, args: &A, map: &Map) -> Result<Keyed, Vec<u8>> {
    let (keys, error) = command.known_keys(args);
    let mut found = match error {
        None => Keyed::None,
        Some(KeysError::Malformed) => Keyed::Malformed,
        Some(KeysError::Incomplete) => return Err(refusal::unsupported(command, UNDESCRIBED)),
    };
    for position in keys {
        let node = map.node(args.get(position).unwrap_or_default());
        match found {
            Keyed::Node(other) if other != node => return Err(refusal::cross_slot()),
            _ => found = Keyed::Node(node),
        }
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
    command: &Command,
    why: Lease,
    args: &A,
    map: &Map,
) -> Result<Route, Vec<u8>> {
    match keys(command, args, map)? {
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
        return Some(map.node(args.get(first).unwrap_or_default()));
    }
    plan.make(args, (first, width), map);
    let mut parts = plan.parts();
    let part = parts.next()?;
    parts.next().is_none().then_some(part.node)
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
