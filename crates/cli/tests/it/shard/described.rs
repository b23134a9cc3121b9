//! Commands that the proxy's table lacks, as of newer nodes and of modules: the nodes here have renamed some.

use crate::support::shard::{client, nodes::Node, on_shard_models, proxy};

/// Options of such a node. (The second letter of HSET decides its reply.)
#[rustfmt::skip]
const RENAMED: [&str; 18] = [
    "--rename-command", "HSET", "YSET",
    "--rename-command", "HGET", "YGET",
    "--rename-command", "BLPOP", "XBLPOP",
    "--rename-command", "DBSIZE", "XDBSIZE",
    "--rename-command", "ZUNIONSTORE", "XZUNIONSTORE",
    "--rename-command", "GEORADIUS", "YRADIUS",
];

on_shard_models!(commands_that_only_the_nodes_know_are_routed_by_their_keys: sharing);

fn commands_that_only_the_nodes_know_are_routed_by_their_keys(model: &str) {
    let nodes: Vec<Node> = (0..3).map(|_| Node::start(&RENAMED)).collect();
    let proxy = proxy(model, &nodes, &[]);
    let mut client = client(&proxy);
    for number in 0..60 {
        assert_eq!(client.say(&format!("ySet key:{number} f {number}")), ":1\r\n", "{model}");
    }
    for number in 0..60 {
        let value = number.to_string();
        let reply = client.say(&format!("YGET key:{number} f"));
        assert_eq!(reply, format!("${}\r\n{value}\r\n", value.len()), "{model}");
    }
    for node in &nodes {
        let keys = node.client().say("KEYS key:*");
        assert!(keys.lines().count() > 2 * 10, "{model}: {keys}");
    }
    assert_eq!(client.say("MULTI"), "+OK\r\n");
    assert_eq!(client.say("YSET {t}h f 1"), "+QUEUED\r\n");
    assert_eq!(client.say("GET {t}s"), "+QUEUED\r\n");
    assert_eq!(client.say("EXEC"), "*2\r\n:1\r\n$-1\r\n", "{model}");
    assert_eq!(client.say("HELLO 3").as_bytes()[0], b'%', "{model}");
    assert_eq!(client.say("YGET key:7 f"), "$1\r\n7\r\n", "{model}");
}

on_shard_models!(a_command_that_is_described_may_be_the_first_of_a_pipeline: sharing);

/// The requests behind it wait, and are answered in order.
fn a_command_that_is_described_may_be_the_first_of_a_pipeline(model: &str) {
    let nodes: Vec<Node> = (0..3).map(|_| Node::start(&RENAMED)).collect();
    let proxy = proxy(model, &nodes, &[]);
    let mut clients: Vec<_> = (0..4).map(|_| client(&proxy)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        let pipeline = "SET s:N N\r\nYSET h:N f N\r\nnonsense\r\nYGET h:N f\r\nGET s:N\r\n";
        let pipeline = pipeline.replace('N', &number.to_string());
        client.raw(pipeline.as_bytes());
    }
    for (number, client) in clients.iter_mut().enumerate() {
        let value = &format!("$1\r\n{number}\r\n")[..];
        let unknown = "-ERR unknown command 'nonsense', with args beginning with: \r\n";
        for expected in ["+OK\r\n", ":1\r\n", unknown, value, value] {
            assert_eq!(client.next().as_deref(), Some(expected.as_bytes()), "{model}");
        }
    }
}

on_shard_models!(what_cannot_be_routed_is_refused_with_the_reason: sharing);

fn what_cannot_be_routed_is_refused_with_the_reason(model: &str) {
    let nodes: Vec<Node> = (0..3).map(|_| Node::start(&RENAMED)).collect();
    let proxy = proxy(model, &nodes, &[]);
    let mut client = client(&proxy);
    let unsupported = "-ERR the proxy does not support ";
    for (request, expected) in [
        ("XBLPOP l 0", format!("{unsupported}'xblpop': it blocks, and ")),
        ("XDBSIZE", format!("{unsupported}'xdbsize': the proxy does not know where to send it")),
        (
            "YRADIUS g 1 2 3 km",
            format!("{unsupported}'yradius': Redis does not specify the positions"),
        ),
        ("YSET k", "-ERR wrong number of arguments for 'yset' command".to_owned()),
        ("XZUNIONSTORE d 4 a b c e", "-CROSSSLOT ".to_owned()),
        ("XZUNIONSTORE {d} 2 {d}a {d}b", ":0\r\n".to_owned()),
        // Known to the table, and not to the nodes.
        ("HGET h f", "-ERR unknown command 'HGET'".to_owned()),
        ("FOO a", "-ERR unknown command 'FOO', with args beginning with: 'a' \r\n".to_owned()),
        ("CLIENT FOO", "-ERR unknown subcommand 'FOO'. Try CLIENT HELP.\r\n".to_owned()),
        ("CLIENT SETINFO LIB-NAME x", "+OK\r\n".to_owned()),
    ] {
        let reply = client.say(request);
        assert!(reply.starts_with(&expected), "{model}: {request}: {reply}");
    }
}

on_shard_models!(a_command_is_described_again_after_a_node_came_back: epoll, percore);

fn a_command_is_described_again_after_a_node_came_back(model: &str) {
    let mut node = Node::start(&RENAMED);
    let proxy = proxy(model, std::slice::from_ref(&node), &[]);
    let mut client = client(&proxy);
    assert_eq!(client.say("YSET h f 1"), ":1\r\n", "{model}");
    node.restart(&["--rename-command", "HDEL", "YSET"]);
    crate::support::until("the node is used again", || client.say("GET k") == "$-1\r\n");
    // Now it is HDEL, which may have three arguments.
    assert_eq!(client.say("YSET h f"), ":0\r\n", "{model}");
}
