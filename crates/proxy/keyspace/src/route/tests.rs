//! Routing decisions, command by command.

use super::{Decision, Lease, Local, Merge, Place, Plan, Route, cross_slot, decide};
use crate::{
    command::{Begin, Command, Find, flag},
    map::{Cluster, Map, Slots, slot},
};
use proptest::prelude::*;

/// Four nodes, with slots in ranges.
fn map() -> Map {
    Map::new(1, Slots::even(4).unwrap())
}

/// The route of a line of words. `a0`, `b0` are keys of node 0, `a1` is a key of node 1, and so on.
fn route(line: &str) -> Route {
    route_over(&map(), line)
}

fn route_over(map: &Map, line: &str) -> Route {
    let words: Vec<String> = line.split(' ').map(word).collect();
    decide(&words[..], map, &mut Plan::default()).route
}

/// Turns a word like `a1` into a key of its node: `a1{…}`.
fn word(word: &str) -> String {
    match word.as_bytes() {
        [b'a'..=b'e', node @ b'0'..=b'3'] => format!("{word}{{{}}}", tag(usize::from(node - b'0'))),
        _ => word.to_owned(),
    }
}

/// Returns a tag whose keys are on this node.
fn tag(node: usize) -> String {
    let mut tags = (0_u32..).map(|i| i.to_string());
    tags.find(|tag| map().node(tag.as_bytes()) == node).unwrap()
}

fn refused(text: &str) -> Route {
    Route::Refused(text.as_bytes().to_vec())
}

fn unsupported(line: &str) {
    let Route::Refused(text) = route(line) else { panic!("{line} is not refused") };
    let text = String::from_utf8(text).unwrap();
    assert!(text.starts_with("ERR the proxy does not support '"), "{line}: {text}");
}

#[test]
fn the_test_map_has_a_tag_for_each_node() {
    for node in 0..4 {
        assert_eq!(map().node(word(&format!("c{node}")).as_bytes()), node);
    }
    assert_eq!(slot(word("a2").as_bytes()), slot(word("b2").as_bytes()));
}

#[test]
fn a_command_with_one_key_goes_to_its_node() {
    for node in 0..4 {
        for line in ["get aN", "SET bN v", "hset cN f v", "object encoding dN", "xadd eN * f v"] {
            let line = line.replace('N', &node.to_string());
            assert_eq!(route(&line), Route::OneNode(node), "{line}");
        }
    }
}

#[test]
fn several_keys_on_one_node_go_there_together() {
    assert_eq!(route("rename a1 b1"), Route::OneNode(1));
    assert_eq!(route("zunionstore a2 2 b2 c2"), Route::OneNode(2));
    assert_eq!(route("sort a3 by nosort store b3"), Route::OneNode(3));
    assert_eq!(route("eval s 2 a0 b0 c1"), Route::OneNode(0));
    assert_eq!(route("msetnx a1 1 b1 2"), Route::OneNode(1));
    assert_eq!(route("xread streams a1 b1 0 0"), Route::OneNode(1));
    assert_eq!(route("mget a1 b1"), Route::OneNode(1));
    assert_eq!(route("mset a1 1 b1 2"), Route::OneNode(1));
    assert_eq!(route("del a1"), Route::OneNode(1));
}

#[test]
fn keys_on_several_nodes_are_an_error() {
    let error = refused("CROSSSLOT Keys in request don't hash to the same slot");
    for line in [
        "rename a1 b2",
        "zunionstore a2 2 b2 c1",
        "sort a3 store b0",
        "eval s 2 a0 b1",
        "msetnx a1 1 b2 2",
        "xread streams a1 b2 0 0",
        "blpop a1 b2 0",
        "watch a1 b2",
        "smove a0 b3 x",
        "georadius a0 1 2 3 m store b3",
        "pfcount a0 b1",
    ] {
        assert_eq!(route(line), error, "{line}");
    }
}

#[test]
fn commands_are_split_by_key() {
    assert_eq!(route("mget a0 b1"), Route::Split(Merge::InOrder(1)));
    assert_eq!(route("mset a0 1 b1 2"), Route::Split(Merge::Ok));
    for line in ["del a0 b1", "UNLINK a0 b1 c2", "exists a0 a0 b3", "touch a1 b0"] {
        assert_eq!(route(line), Route::Split(Merge::Sum), "{line}");
    }
    assert_eq!(route("pubsub numsub a0 b1"), Route::Split(Merge::InOrder(2)));
    assert_eq!(route("pubsub numsub a2"), Route::OneNode(2));
    assert_eq!(route("pubsub numsub"), Route::AnyNode);
}

#[test]
fn a_split_write_can_be_refused() {
    let route = |line: &str| {
        let words: Vec<String> = line.split(' ').map(word).collect();
        decide(&words[..], &map(), &mut Plan::default()).without_split_writes().route
    };
    for line in ["mset a0 1 b1 2", "del a0 b1", "UNLINK a0 b1 c2"] {
        let text = "CROSSSLOT Keys in request don't hash to the same slot";
        assert_eq!(route(line), refused(text), "{line}");
    }
    assert_eq!(route("mset a1 1 b1 2"), Route::OneNode(1));
    assert_eq!(route("del a1 b1"), Route::OneNode(1));
    for line in ["mget a0 b1", "exists a0 b1", "touch a0 b1", "pubsub numsub a0 b1"] {
        assert!(matches!(route(line), Route::Split(_)), "{line}");
    }
    assert_eq!(route("flushall"), Route::AllNodes(Merge::Ok));
}

#[test]
fn the_configuration_is_checked_even_if_there_is_one_node() {
    let one = Map::new(1, Slots::even(1).unwrap());
    for map in [one, map()] {
        let route = route_over(&map, "config get *");
        assert_eq!(route, Route::AllNodes(Merge::Configuration));
    }
}

#[test]
fn the_plan_contains_the_parts_of_a_split() {
    let words: Vec<String> = "mset a2 1 b0 2 c2 3".split(' ').map(word).collect();
    let mut plan = Plan::default();
    let decision = decide(&words[..], &map(), &mut plan);
    assert_eq!(decision.route, Route::Split(Merge::Ok));
    let parts: Vec<(usize, Vec<usize>)> =
        plan.parts().map(|part| (part.node, part.arguments().collect())).collect();
    assert_eq!(parts, [(0, vec![3, 4]), (2, vec![1, 2, 5, 6])]);
}

#[test]
fn commands_about_all_keys_go_to_all_nodes() {
    for (line, merge) in [
        ("dbsize", Merge::Sum),
        ("flushall", Merge::Ok),
        ("FLUSHDB async", Merge::Ok),
        ("keys *", Merge::Concatenation),
        ("randomkey", Merge::AnyValue),
        ("script load x", Merge::Same),
        ("script exists x y", Merge::Least),
        ("pubsub channels", Merge::Union),
        ("swapdb 0 1", Merge::Ok),
    ] {
        assert_eq!(route(line), Route::AllNodes(merge), "{line}");
    }
    for line in ["time", "lolwut", "command", "command count", "object help", "pubsub numpat"] {
        assert_eq!(route(line), Route::AnyNode, "{line}");
    }
}

#[test]
fn a_decision_is_small() {
    // It is made, and copied, for each request.
    assert!(size_of::<Decision>() <= 40, "{} bytes", size_of::<Decision>());
}

#[test]
fn a_scan_starts_with_the_first_node() {
    assert_eq!(place(&route("scan 0 count 5")), Some((0, 0)));
    let third = (2_u64 << 48) + 9;
    assert_eq!(place(&route(&format!("scan {third}"))), Some((2, 9)));
    let fifth = 4_u64 << 48;
    assert_eq!(route(&format!("scan {fifth}")), refused("ERR invalid cursor"));
    assert_eq!(route("scan x"), refused("ERR invalid cursor"));
    assert_eq!(route("sscan a1 0"), Route::OneNode(1));
}

#[test]
fn the_proxy_answers_commands_about_the_connection() {
    for (line, local) in [
        ("ping", Local::Ping),
        ("PING hello", Local::Ping),
        ("echo a", Local::Echo),
        ("hello 3", Local::Hello),
        ("acl whoami", Local::Client),
        ("client id", Local::Client),
        ("client setname x", Local::Client),
        ("quit", Local::Quit),
        ("info", Local::Info),
        ("select 1", Local::Select),
        ("slowlog get", Local::SlowLog),
        ("slowlog len", Local::SlowLog),
        ("slowlog reset", Local::SlowLog),
        ("auth user password", Local::Auth),
        ("reset", Local::Reset),
    ] {
        assert_eq!(route(line), Route::Local(local), "{line}");
    }
}

#[test]
fn blocking_commands_and_transactions_need_a_dedicated_connection() {
    for (line, lease, place) in [
        ("multi", Lease::Transaction, Place::Open),
        ("exec", Lease::Transaction, Place::Open),
        ("discard", Lease::Transaction, Place::Open),
        ("unwatch", Lease::Transaction, Place::Open),
        ("watch a1 b1", Lease::Watch, Place::Node(1)),
        ("blpop a2 b2 0", Lease::Blocking, Place::Node(2)),
        ("blmpop 0 1 a3 left", Lease::Blocking, Place::Node(3)),
        ("xread block 0 streams a1 $", Lease::Blocking, Place::Node(1)),
        ("xreadgroup group g c block 0 streams a1 >", Lease::Blocking, Place::Node(1)),
    ] {
        assert_eq!(route(line), Route::Lease(lease, place), "{line}");
    }
    assert_eq!(route("xreadgroup group g c streams a1 >"), Route::OneNode(1));
}

#[test]
fn a_channel_belongs_to_a_node_like_a_key() {
    for (line, place) in [
        ("subscribe a1", Place::Node(1)),
        ("subscribe a1 b1", Place::Node(1)),
        ("ssubscribe a1 b2", Place::Parts),
        ("unsubscribe a3", Place::Node(3)),
        ("unsubscribe", Place::AllNodes),
        ("psubscribe a*", Place::AllNodes),
        ("subscribe a1 __keyspace@0__:x", Place::AllNodes),
        ("subscribe __keyevent@0__:del", Place::AllNodes),
    ] {
        assert_eq!(route(line), Route::Lease(Lease::Subscription, place), "{line}");
    }
    assert_eq!(route("publish a1 hello"), Route::OneNode(1));
    assert_eq!(route("spublish a2 hello"), Route::OneNode(2));
}

#[test]
fn unknown_commands_and_wrong_numbers_of_arguments_are_errors_in_the_wording_of_redis() {
    for (line, text) in [
        ("foo a b", "ERR unknown command 'foo', with args beginning with: 'a' 'b' "),
        ("client foo", "ERR unknown subcommand 'foo'. Try CLIENT HELP."),
        ("client", "ERR wrong number of arguments for 'client' command"),
        ("GET", "ERR wrong number of arguments for 'get' command"),
        ("incr a b", "ERR wrong number of arguments for 'incr' command"),
        ("xgroup create a", "ERR wrong number of arguments for 'xgroup|create' command"),
        ("mset a0 1 b1", "ERR wrong number of arguments for 'mset' command"),
        ("msetnx a0 1 b1", "ERR wrong number of arguments for 'msetnx' command"),
        ("readonly", "ERR This instance has cluster support disabled"),
        ("cluster info", "ERR This instance has cluster support disabled"),
    ] {
        assert_eq!(route(line), refused(text), "{line}");
    }
}

/// A later version may accept them, as ZRANK does since Redis 7.2.
#[test]
fn more_arguments_than_known_go_to_the_node_of_the_one_key_that_is_read() {
    for line in ["zrank a3 m WITHSCORE", "get a3 b", "hlen a3 b c d"] {
        assert_eq!(route(line), Route::OneNode(3), "{line}");
    }
    // A write, too few, keys in several places, or none.
    for line in ["incr a3 b", "zrank a3", "rename a3 a3 b", "lcs a3", "dbsize a3"] {
        assert!(matches!(route(line), Route::Refused(_)), "{line}");
    }
}

#[test]
fn unsupported_commands_are_refused_with_a_reason() {
    for line in [
        "migrate h 1 a1 0 5",
        "wait 1 0",
        "monitor",
        "shutdown",
        "client tracking on",
        "acl list",
        "config set a b",
        "eval s 0",
        "fcall f 0 a",
        "sort a1 by w_*",
        "sort_ro a1 get w_*->f",
    ] {
        unsupported(line);
    }
}

#[test]
fn malformed_reads_are_left_to_any_node() {
    for line in ["eval_ro s -1", "zunion 0 a1", "zunion x a1", "xread count 1 streams a1"] {
        assert_eq!(route(line), Route::AnyNode, "{line}");
    }
}

#[test]
fn malformed_writes_go_to_the_node_of_their_known_keys_or_are_refused() {
    assert_eq!(route("zunionstore d2 x a1"), Route::OneNode(2));
    assert_eq!(route("zunionstore d3 9 a1"), Route::OneNode(3));
    for line in [
        "eval s -1",
        "eval s x a1",
        "fcall f 9 a1",
        "lmpop 0 a1 left",
        "zmpop x a1 min",
        "blmpop 0 9 a1 left",
        "xreadgroup group g c count 1 streams a1",
        "xreadgroup group g c block 0 streams a1",
    ] {
        unsupported(line);
    }
}

#[test]
fn pfmerge_without_sources_goes_to_the_node_of_its_destination() {
    assert_eq!(route("pfmerge d2"), Route::OneNode(2));
    assert_eq!(route("pfmerge d2 a2"), Route::OneNode(2));
    assert_eq!(
        route("pfmerge d2 a1"),
        refused("CROSSSLOT Keys in request don't hash to the same slot")
    );
}

#[test]
fn a_single_node_receives_everything() {
    let map = Map::new(1, Slots::even(1).unwrap());
    for line in [
        "mget a b",
        "mset a 1 b 2",
        "rename a b",
        "keys *",
        "dbsize",
        "sort a by w_*",
        "sunionstore a b c",
    ] {
        assert_eq!(route_over(&map, line), Route::OneNode(0), "{line}");
    }
    assert_eq!(route_over(&map, "eval s 0"), Route::AnyNode);
    let scan = route_over(&map, &format!("scan {}", u64::MAX));
    assert_eq!(place(&scan), Some((0, u64::MAX)));
}

#[test]
fn a_decision_contains_the_command() {
    let mut plan = Plan::default();
    let decided = |line: &[&str], plan: &mut Plan| decide(line, &map(), plan);
    let Decision { command, .. } = decided(&["client", "id"], &mut plan);
    assert_eq!(command.map(|command| command.name), Some("client|id"));
    assert_eq!(decided(&["get"], &mut plan).command, Command::find(b"get"));
    assert_eq!(decided(&["x"], &mut plan).command, None);
    assert_eq!(decided(&[], &mut plan).command, None);
}

/// Arguments, some of which are numbers, options, or keys with a tag.
fn argument() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::sample::select(
            &["0", "1", "2", "3", "-1", "store", "by", "get", "streams", "block"][..]
        )
        .prop_map(|word| word.as_bytes().to_vec()),
        "[a-f]\\{[0-9]\\}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..9),
    ]
}

/// Redis describes these without saying that they write: scripts and functions.
fn may_write(command: &Command) -> bool {
    let runs_code = ["eval", "evalsha", "fcall"].contains(&command.name);
    runs_code || command.has(flag::WRITE)
}

/// Asserts that a write goes only to nodes of its keys.
fn check_write(map: &Map, args: &[Vec<u8>]) -> Result<(), TestCaseError> {
    let Decision { command: Some(command), route } = decide(args, map, &mut Plan::default()) else {
        return Ok(());
    };
    if may_write(command) {
        prop_assert_ne!(&route, &Route::AnyNode, "{:?}", args);
    }
    // A key that has a fixed position decides, whatever follows it.
    if let Route::OneNode(node) | Route::Lease(_, Place::Node(node)) = route {
        for spec in command.specs.iter().filter(|spec| spec.flags & flag::NOT_KEY == 0) {
            if let (Begin::Index(at), Find::Range { .. }) = (spec.begin, spec.find)
                && let Some(key) = args.get(usize::from(at))
            {
                prop_assert_eq!(map.node(key), node, "{:?}", args);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn a_write_goes_only_to_nodes_of_its_keys_whatever_is_left_out(
        rest in proptest::collection::vec(argument(), 20),
    ) {
        let map = map();
        for command in Command::all() {
            let mut args: Vec<Vec<u8>> =
                command.name.split('|').map(|part| part.as_bytes().to_vec()).collect();
            args.extend(rest.iter().cloned());
            let least = usize::from(command.arity.unsigned_abs());
            for count in least..least + 9 {
                check_write(&map, &args[..count])?;
            }
        }
    }
}

proptest! {
    #[test]
    fn a_decision_is_consistent_with_the_keys(
        number in 0..Command::all().len(),
        rest in proptest::collection::vec(argument(), 0..9),
        nodes in 1usize..6,
    ) {
        let map = Map::new(0, Slots::even(nodes).unwrap());
        let name = Command::all()[number].name;
        let args: Vec<Vec<u8>> = name.split('|').map(|part| part.as_bytes().to_vec()).chain(rest).collect();
        let mut plan = Plan::default();
        let Decision { command, route } = decide(&args[..], &map, &mut plan);
        let keys: Vec<usize> = command
            .and_then(|command| command.keys(&args[..]).ok())
            .map_or(vec![], Iterator::collect);
        let mut of_keys: Vec<usize> = keys.iter().map(|key| map.node(&args[*key])).collect();
        of_keys.sort_unstable();
        of_keys.dedup();
        match route {
            Route::OneNode(node) | Route::Lease(_, Place::Node(node)) => {
                prop_assert!(node < nodes);
                prop_assert!(of_keys.is_empty() || of_keys == [node]);
            }
            Route::Split(_) => {
                let parts: Vec<usize> = plan.parts().map(|part| part.node).collect();
                prop_assert!(parts.len() > 1);
                prop_assert!(of_keys.is_empty() || of_keys == parts);
            }
            Route::Scan(cursor) => prop_assert!(cursor.node < nodes),
            Route::Refused(text) => {
                prop_assert!(!text.is_empty() && !text.contains(&b'\n') && !text.contains(&b'\r'));
            }
            Route::AnyNode | Route::AllNodes(_) | Route::Local(_) => prop_assert!(of_keys.is_empty()),
            Route::Lease(..) => {}
        }
    }
}

/// The node and the cursor of a SCAN.
fn place(route: &Route) -> Option<(usize, u64)> {
    match route {
        Route::Scan(cursor) => Some((cursor.node, cursor.cursor)),
        _ => None,
    }
}

#[test]
fn keys_of_a_cluster_go_together_by_slot() {
    // `a` and `b` are of two slots of the same master.
    let cluster = Cluster::new([(0, 16_383, 4, &b"one"[..])]);
    let map = Map::new(1, cluster);
    let mut plan = Plan::default();
    let mut route = |line: &str| {
        let args: Vec<&str> = line.split(' ').collect();
        let route = decide(&args[..], &map, &mut plan).route;
        (route, plan.group(), plan.parts().map(|part| (part.node, part.group)).collect::<Vec<_>>())
    };
    let [a, b] = [b"a", b"b"].map(|key| slot(key));
    assert_eq!(route("get a"), (Route::OneNode(4), Some(a), vec![]));
    let (merged, _, parts) = route("mget a b {a}x");
    assert!(matches!(merged, Route::Split(_)), "{merged:?}");
    assert_eq!(parts, [(4, b.min(a)), (4, b.max(a))]);
    let (one, group, _) = route("mget a {a}x");
    assert_eq!((one, group), (Route::OneNode(4), Some(a)));
    for refused in ["rename a b", "watch a b", "blpop a b 0"] {
        assert_eq!(route(refused).0, Route::Refused(cross_slot()), "{refused}");
    }
    assert_eq!(route("spublish a x").1, Some(a));
    for refused in ["psubscribe a*", "psubscribe __keyspace@* a*"] {
        assert!(matches!(route(refused).0, Route::Refused(_)), "{refused}");
    }
    for allowed in
        ["subscribe a b", "ssubscribe a b", "sunsubscribe", "psubscribe __keyspace@0__:*"]
    {
        assert!(matches!(route(allowed).0, Route::Lease(Lease::Subscription, _)), "{allowed}");
    }
    assert!(matches!(route("dbsize").0, Route::AllNodes(_)), "one master may become several");
}
