//! `--auth nodes`: clients are users of the nodes, and every request is carried out as the user of its client.

use crate::support::{
    Server, refused, regatta,
    shard::{client, client::Client, nodes::Node, on_shard_models, proxy},
    until,
};
use std::{fs::File, thread};
use tempfile::TempDir;

/// Options of a node with the users ann and bob, whose keys and channels begin with their names. Without a password, a
/// client has the keys that begin with `open`.
#[rustfmt::skip]
const USERS: [&str; 24] = [
    "--user", "ann", "on", ">a", "~ann*", "~{ann}*", "&ann*", "+@all",
    "--user", "bob", "on", ">b", "~bob*", "~{bob}*", "&bob*", "+@all", "-slowlog",
    "--user", "default", "on", "nopass", "~open*", "&open*", "+@all",
];

const NODES: [&str; 2] = ["--auth", "nodes"];

fn with_users(model: &str) -> (Vec<Node>, Server) {
    let nodes: Vec<Node> = (0..3).map(|_| Node::start(&USERS)).collect();
    let proxy = proxy(model, &nodes, &NODES);
    (nodes, proxy)
}

/// A client that has authenticated.
fn user(proxy: &Server, name: &str, password: &str) -> Client {
    let mut client = client(proxy);
    assert_eq!(client.say(&format!("AUTH {name} {password}")), "+OK\r\n");
    client
}

/// Sends these lines at once, and checks the start of each reply.
fn pipeline(client: &mut Client, steps: &[(&str, &str)]) {
    let lines: String = steps.iter().map(|(line, _)| format!("{line}\r\n")).collect();
    client.raw(lines.as_bytes());
    for (line, expected) in steps {
        let reply = client.next().expect("a reply");
        assert!(reply.starts_with(expected.as_bytes()), "{line}: {}", reply.escape_ascii());
    }
}

on_shard_models!(each_client_has_the_rights_of_its_user: sharing);

fn each_client_has_the_rights_of_its_user(model: &str) {
    let (nodes, proxy) = with_users(model);
    let (mut ann, mut none) = (user(&proxy, "ann", "a"), client(&proxy));
    let mut bob = client(&proxy);
    assert!(bob.say("HELLO 3 AUTH bob b SETNAME me").starts_with('%'), "{model}");
    assert_eq!(bob.say("CLIENT GETNAME"), "$2\r\nme\r\n", "{model}");
    let mut direct = nodes[0].client();
    direct.say("AUTH ann a");
    let denied = direct.say("SET bob1 x");
    assert!(denied.starts_with("-NOPERM "), "{denied}");
    // The keys are on all nodes.
    for number in 0..30 {
        for (client, name) in [(&mut ann, "ann"), (&mut bob, "bob"), (&mut none, "open")] {
            for key in ["ann", "bob", "open"] {
                let reply = client.say(&format!("SET {key}{number} {name}"));
                let expected = if key == name { "+OK\r\n" } else { &denied };
                assert_eq!(reply, expected, "{model}: {key}{number} as {name}");
            }
        }
    }
    let many = |name: &str| format!("MGET {name}1 {name}2 {name}3 {name}4 {name}5 {name}6");
    assert_eq!(ann.say(&many("bob")), denied, "{model}: an error of all nodes is passed on");
    assert_eq!(ann.say(&many("ann")).matches("ann").count(), 6, "{model}");
    let who = |client: &mut Client| client.say("ACL WHOAMI");
    assert_eq!(who(&mut ann), "$3\r\nann\r\n", "{model}");
    assert_eq!(who(&mut none), "$7\r\ndefault\r\n", "{model}");
    assert!(bob.say("CLIENT INFO").contains(" user=bob "), "{model}");
    assert!(bob.say("SLOWLOG GET").starts_with("-NOPERM "), "{model}");
    assert!(ann.say("SLOWLOG GET").starts_with('*'), "{model}");
    assert_eq!(ann.say("RESET"), "+RESET\r\n", "{model}");
    assert_eq!(who(&mut ann), "$7\r\ndefault\r\n", "{model}");
    assert_eq!(ann.say("SET ann1 x"), denied, "{model}");
    assert_eq!(ann.say("SET open1 x"), "+OK\r\n", "{model}");
}

on_shard_models!(a_pipeline_changes_the_user_between_its_requests: sharing);

/// Several clients do it at once, over the same few connections.
fn a_pipeline_changes_the_user_between_its_requests(model: &str) {
    let (_nodes, proxy) = with_users(model);
    let one = |number: usize| {
        let mut client = client(&proxy);
        for round in 0..20 {
            let key = |name: &str| format!("SET {name}{number}.{round} x");
            let (ann, bob, open) = (key("ann"), key("bob"), key("open"));
            let get = open.replace("SET", "GET").replace(" x", "");
            let steps: [(&str, &str); 18] = [
                (&open, "+OK"),
                (&ann, "-NOPERM"),
                ("AUTH ann a", "+OK"),
                (&ann, "+OK"),
                (&open, "-NOPERM"),
                ("AUTH bob a", "-WRONGPASS"),
                (&ann, "+OK"),
                ("MULTI", "+OK"),
                (&ann, "+QUEUED"),
                ("EXEC", "*1\r\n+OK"),
                ("HELLO 2 AUTH bob b", "*14"),
                (&bob, "+OK"),
                (&ann, "-NOPERM"),
                ("ACL WHOAMI", "$3\r\nbob"),
                ("PING", "+PONG"),
                ("RESET", "+RESET"),
                (&get, "$1\r\nx"),
                (&bob, "-NOPERM"),
            ];
            pipeline(&mut client, &steps);
        }
    };
    thread::scope(|scope| {
        for number in 0..4 {
            scope.spawn(move || one(number));
        }
    });
}

on_shard_models!(connections_of_their_own_belong_to_the_user_of_the_client: sharing);

fn connections_of_their_own_belong_to_the_user_of_the_client(model: &str) {
    let (_nodes, proxy) = with_users(model);
    let (mut ann, mut bob) = (user(&proxy, "ann", "a"), user(&proxy, "bob", "b"));
    let mut none = client(&proxy);
    // A connection that was leased is kept for the next lease.
    pipeline(
        &mut ann,
        &[
            ("WATCH {ann}1", "+OK"),
            ("MULTI", "+OK"),
            ("SET {ann}1 x", "+QUEUED"),
            ("EXEC", "*1\r\n+OK"),
            ("BLPOP {ann}list 0.01", "*-1"),
        ],
    );
    for client in [&mut bob, &mut none] {
        pipeline(
            client,
            &[
                ("WATCH {ann}1", "-NOPERM"),
                ("MULTI", "+OK"),
                ("SET {ann}1 stolen", "-NOPERM"),
                ("EXEC", "-EXECABORT"),
                ("BLPOP {ann}list 0.01", "-NOPERM"),
            ],
        );
    }
    assert_eq!(ann.say("GET {ann}1"), "$1\r\nx\r\n", "{model}");
    let mut waits = user(&proxy, "ann", "a");
    waits.raw(b"BLPOP {ann}list 0\r\nACL WHOAMI\r\n");
    assert!(bob.say("RPUSH {ann}list stolen").starts_with("-NOPERM"), "{model}");
    assert_eq!(ann.say("RPUSH {ann}list y"), ":1\r\n", "{model}");
    assert!(waits.next().unwrap().ends_with(b"$1\r\ny\r\n"), "{model}");
    assert_eq!(waits.next().unwrap(), b"$3\r\nann\r\n", "{model}");
}

on_shard_models!(nothing_is_carried_out_in_another_database: epoll, uring);

/// The user after AUTH may not send SELECT, which the proxy sends over its connections.
fn nothing_is_carried_out_in_another_database(model: &str) {
    let nodes = [Node::start(&["--user", "eve", "on", ">e", "~*", "&*", "+@all", "-select"])];
    let proxy = proxy(model, &nodes, &NODES);
    let mut client = client(&proxy);
    assert_eq!(client.say("SELECT 1"), "+OK\r\n", "{model}");
    pipeline(&mut client, &[("AUTH eve e", "+OK"), ("SET a 1", "-NOPERM"), ("GET a", "-NOPERM")]);
    assert!(client.say("SELECT 0").starts_with("-NOPERM"), "{model}");
    assert_eq!(client.say("RESET"), "+RESET\r\n", "{model}");
    assert_eq!(client.say("DBSIZE"), ":0\r\n", "{model}");
    pipeline(&mut client, &[("AUTH eve e", "+OK"), ("SET a 1", "+OK"), ("GET a", "$1\r\n1")]);
    let info = client.say("INFO");
    assert!(info.contains("node_connections_lost:0\r\n"), "a refusal is no loss: {model}: {info}");
}

on_shard_models!(a_blocked_client_that_leaves_takes_nothing_with_it: epoll, uring);

/// The node is asked to end its command, as its user.
fn a_blocked_client_that_leaves_takes_nothing_with_it(model: &str) {
    let nodes = [Node::start(&USERS)];
    let proxy = proxy(model, &nodes, &NODES);
    let mut direct = nodes[0].client();
    let mut blocked = |count: usize| {
        let expected = format!("blocked_clients:{count}\r\n");
        until("the client is blocked, or not", || direct.say("INFO clients").contains(&expected));
    };
    let mut waits = user(&proxy, "ann", "a");
    waits.raw(b"BLPOP annlist 0\r\n");
    blocked(1);
    drop(waits);
    blocked(0);
    let mut ann = user(&proxy, "ann", "a");
    assert_eq!(ann.say("RPUSH annlist x"), ":1\r\n", "{model}");
    assert_eq!(ann.say("LPOP annlist"), "$1\r\nx\r\n", "{model}");
}

on_shard_models!(channels_are_those_of_the_user: sharing);

fn channels_are_those_of_the_user(model: &str) {
    let (_nodes, proxy) = with_users(model);
    let (mut ann, mut bob) = (user(&proxy, "ann", "a"), user(&proxy, "bob", "b"));
    // A client whose SUBSCRIBE is refused is not subscribed.
    for line in ["SUBSCRIBE annews", "PSUBSCRIBE ann*", "SUBSCRIBE bob1 annews"] {
        let reply = bob.say(line);
        assert!(reply.starts_with("-NOPERM"), "{model}: {reply}");
        assert_eq!(bob.say("SET bob1 x"), "+OK\r\n", "{model}");
    }
    assert!(ann.say("SUBSCRIBE annews").starts_with("*3\r\n$9\r\nsubscribe"), "{model}");
    assert!(bob.say("SUBSCRIBE bobnews").starts_with("*3\r\n$9\r\nsubscribe"), "{model}");
    // What another node has accepted of a refused command is not delivered.
    let reply = bob.say("SUBSCRIBE bob1 bob2 bob3 bob4 annews");
    assert!(reply.starts_with("-NOPERM"), "{model}: {reply}");
    let (mut other, mut none) = (user(&proxy, "bob", "b"), client(&proxy));
    assert!(none.say("PUBLISH annews forged").starts_with("-NOPERM"), "{model}");
    for channel in ["bob1", "bob2", "bob3", "bob4"] {
        assert!(other.say(&format!("PUBLISH {channel} x")).starts_with(':'), "{model}");
    }
    assert_eq!(other.say("PUBLISH bobnews y"), ":1\r\n", "{model}");
    let message = bob.next().unwrap();
    assert!(message.ends_with(b"$7\r\nbobnews\r\n$1\r\ny\r\n"), "{}", message.escape_ascii());
    let mut sender = user(&proxy, "ann", "a");
    assert_eq!(sender.say("PUBLISH annews z"), ":1\r\n", "{model}");
    assert!(ann.next().unwrap().ends_with(b"$6\r\nannews\r\n$1\r\nz\r\n"), "{model}");
}

on_shard_models!(a_node_that_demands_a_password_answers_itself: sharing);

fn a_node_that_demands_a_password_answers_itself(model: &str) {
    let nodes = [Node::start(&["--requirepass", "secret"])];
    let proxy = proxy(model, &nodes, &NODES);
    let (mut client, mut direct) = (client(&proxy), nodes[0].client());
    for line in [
        "GET a",
        "PING",
        "ECHO x",
        "SELECT 0",
        "SELECT 1",
        "HELLO 3",
        "INFO",
        "SLOWLOG GET",
        "SLOWLOG LEN",
        "ACL WHOAMI",
        "CLIENT ID",
        "BLPOP a 0",
        "SUBSCRIBE a",
        "AUTH wrong",
        "AUTH default wrong",
        "AUTH default secret x",
        "HELLO 3 AUTH default wrong",
        "GET a",
    ] {
        assert_eq!(client.say(line), direct.say(line), "{model}: {line}");
    }
    // As at a node, a client that has not authenticated may send only small requests.
    let large = [&b"SET"[..], b"a", &[b'x'; 20_000]];
    for client in [&mut client, &mut direct] {
        let reply = client.ask(&large);
        assert!(reply.starts_with(b"-ERR Protocol error: "), "{model}: {}", reply.escape_ascii());
    }
    let mut client = self::client(&proxy);
    assert_eq!(client.say("AUTH secret"), "+OK\r\n", "{model}");
    assert_eq!(client.ask(&large), b"+OK\r\n", "{model}");
    assert_eq!(client.say("SET a 1"), "+OK\r\n", "{model}");
    assert_eq!(client.say("SELECT 1"), "+OK\r\n", "{model}");
    assert_eq!(client.say("GET a"), "$-1\r\n", "{model}");
    assert!(client.say("INFO server").contains("proxy:regatta"), "{model}");
    assert_eq!(client.say("ACL WHOAMI"), "$7\r\ndefault\r\n", "{model}");
}

on_shard_models!(a_node_that_does_not_know_the_user_carries_out_nothing: sharing);

/// Its default user could.
fn a_node_that_does_not_know_the_user_carries_out_nothing(model: &str) {
    let nodes = [Node::start(&["--user", "ann", "on", ">a", "~*", "+@all"]), Node::start(&[])];
    let proxy = proxy(model, &nodes, &NODES);
    // The node that is asked depends on the number of the client.
    let mut clients = [client(&proxy), client(&proxy)];
    let accepted = clients.iter_mut().find_map(|client| {
        let reply = client.say("AUTH ann a");
        assert!(reply == "+OK\r\n" || reply.starts_with("-WRONGPASS invalid "), "{reply}");
        (reply == "+OK\r\n").then_some(client)
    });
    let ann = accepted.expect("one was tried at the node with the user");
    let refused = format!("-WRONGPASS node {}: ", nodes[1].addr());
    let mut count = 0;
    for number in 0..40 {
        let reply = ann.say(&format!("SET k{number} x"));
        count += usize::from(reply.starts_with(&refused));
        assert!(reply == "+OK\r\n" || reply.starts_with(&refused), "{model}: {reply}");
    }
    assert!((5..35).contains(&count), "{model}: {count}");
    let all: Vec<String> = (0..40).map(|number| format!("k{number} y")).collect();
    let reply = ann.say(&format!("MSET {}", all.join(" ")));
    assert!(reply.starts_with(&refused) && reply.contains("nothing was sent"), "{model}: {reply}");
    let lines: Vec<String> = (0..40).map(|number| format!("BLPOP k{number}list 0.01")).collect();
    let refusals = lines.iter().filter(|line| ann.say(line).starts_with(&refused)).count();
    assert!(refusals > 0, "{model}");
    assert!(ann.say("PSUBSCRIBE *").starts_with(&refused), "{model}");
    let mut direct = nodes[1].client();
    assert_eq!(direct.say("DBSIZE"), ":0\r\n", "{model}");
    assert_eq!(direct.say("ACL SETUSER ann on >a ~* &* +@all"), "+OK\r\n");
    until("the node accepts the user", || {
        (0..40).all(|number| ann.say(&format!("SET k{number} x")) == "+OK\r\n")
    });
    // The node stayed up for others.
    assert!(client(&proxy).say("INFO nodes").matches("state=up").count() == 2, "{model}");
}

on_shard_models!(a_password_that_was_changed_is_no_longer_accepted: epoll, uring);

fn a_password_that_was_changed_is_no_longer_accepted(model: &str) {
    let nodes = [Node::start(&USERS)];
    let proxy = proxy(model, &nodes, &["--auth", "nodes", "--cores", "1"]);
    let mut ann = user(&proxy, "ann", "a");
    assert_eq!(ann.say("SET ann1 x"), "+OK\r\n", "{model}");
    for password in ["b", "A", "aa", "x"] {
        let reply = client(&proxy).say(&format!("AUTH ann {password}"));
        assert!(reply.starts_with("-WRONGPASS invalid "), "{model}: {reply}");
    }
    let mut direct = nodes[0].client();
    let mut admin = Client::connect(nodes[0].addr());
    assert_eq!(admin.say("ACL SETUSER ann resetpass >new"), "+OK\r\n");
    assert_eq!(ann.say("GET ann1"), "$1\r\nx\r\n", "{model}: as at a node, it stays");
    assert!(client(&proxy).say("AUTH ann a").starts_with("-WRONGPASS "), "{model}");
    assert_eq!(user(&proxy, "ann", "new").say("GET ann1"), "$1\r\nx\r\n", "{model}");
    // The connections of a user that is removed are closed by the node.
    assert_eq!(direct.say("ACL DELUSER ann"), ":1\r\n");
    until("the node refuses the user", || {
        let reply = ann.say("GET ann1");
        assert!(!reply.starts_with('$'), "{model}: {reply}");
        reply.starts_with("-WRONGPASS node ")
    });
}

on_shard_models!(a_flood_of_wrong_passwords_opens_few_connections: sharing);

fn a_flood_of_wrong_passwords_opens_few_connections(model: &str) {
    let node = Node::start(&USERS);
    let proxy = proxy(model, std::slice::from_ref(&node), &NODES);
    let mut direct = node.client();
    let mut opened = || {
        let stats = direct.say("INFO stats");
        let line = stats.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
        line.unwrap().trim().parse::<u32>().unwrap()
    };
    let (mut clients, before) = ([client(&proxy), client(&proxy)], opened());
    for _ in 0..100 {
        clients.iter_mut().for_each(|client| client.raw(b"AUTH ann b\r\nAUTH bob a\r\n"));
        for client in &mut clients {
            for _ in 0..2 {
                assert!(client.next().unwrap().starts_with(b"-WRONGPASS "), "{model}");
            }
        }
    }
    // One for each core, and the first shared ones.
    let opened = opened() - before;
    assert!(opened <= 8, "{model}: {opened} connections");
    assert_eq!(clients[0].say("AUTH ann a"), "+OK\r\n", "{model}");
    assert_eq!(clients[0].say("ACL WHOAMI"), "$3\r\nann\r\n", "{model}");
}

on_shard_models!(wrong_passwords_of_many_clients_at_once_are_all_answered: sharing);

/// Redis closes a connection that has not authenticated if more errors are pending than its reply buffer takes.
fn wrong_passwords_of_many_clients_at_once_are_all_answered(model: &str) {
    let node = Node::start(&["--requirepass", "secret"]);
    let proxy = proxy(model, std::slice::from_ref(&node), &NODES);
    let mut direct = node.client();
    assert_eq!(direct.say("AUTH secret"), "+OK\r\n");
    let mut clients: Vec<Client> = (0..900).map(|_| client(&proxy)).collect();
    let mut right = client(&proxy);
    assert_eq!(clients[0].say("PING"), "-NOAUTH Authentication required.\r\n", "{model}");
    // The node carries out all of them together.
    direct.raw(b"EVAL \"local e = os.clock() + 0.4 while os.clock() < e do end\" 0\r\n");
    clients.iter_mut().for_each(|client| client.raw(b"AUTH wrong\r\n"));
    right.raw(b"AUTH secret\r\n");
    for client in &mut clients {
        let reply = client.next().expect("a reply");
        assert!(reply.starts_with(b"-WRONGPASS "), "{model}: {}", reply.escape_ascii());
    }
    assert_eq!(right.next().unwrap(), b"+OK\r\n", "{model}");
    let info = right.say("INFO");
    assert!(info.contains("node_connections_lost:0\r\n"), "{model}: {info}");
}

on_shard_models!(a_login_is_tried_at_another_node_if_one_has_just_failed: sharing);

fn a_login_is_tried_at_another_node_if_one_has_just_failed(model: &str) {
    let (mut nodes, proxy) = with_users(model);
    // Connections over which users are tried are open.
    let _all: Vec<Client> = (0..12).map(|_| user(&proxy, "ann", "a")).collect();
    nodes[0].kill();
    for _ in 0..12 {
        user(&proxy, "ann", "a");
    }
    let reply = client(&proxy).say("AUTH ann b");
    assert!(reply.starts_with("-WRONGPASS invalid "), "{model}: {reply}");
    nodes[1..].iter_mut().for_each(Node::kill);
    let reply = client(&proxy).say("AUTH ann a");
    assert!(reply.starts_with("-SHARDDOWN node "), "{model}: {reply}");
}

on_shard_models!(a_user_without_a_password_serves_clients_with_any: sharing);

/// More of them than there are places for passwords of a name. The other node knows one of these.
fn a_user_without_a_password_serves_clients_with_any(model: &str) {
    let any = Node::start(&["--user", "ann", "on", "nopass", "~*", "+@all"]);
    let one = Node::start(&["--user", "ann", "on", ">0", "~*", "+@all"]);
    let mut admins = [any.client(), one.client()];
    let nodes = [any, one];
    let proxy = proxy(model, &nodes, &NODES);
    // Each is tried at the node that accepts any password: a client is tried at the same node each time.
    let mut clients = Vec::new();
    while clients.len() < 12 {
        let (mut client, password) = (client(&proxy), clients.len());
        if client.say("AUTH ann no") == "+OK\r\n" {
            assert_eq!(client.say(&format!("AUTH ann {password}")), "+OK\r\n", "{model}");
            clients.push(client);
        }
    }
    let is_served = |client: &mut Client| {
        let served = (0..20).filter(|key| client.say(&format!("SET k{key} x")) == "+OK\r\n");
        served.count()
    };
    let served: Vec<usize> = clients.iter_mut().map(is_served).collect();
    assert_eq!(served[0], 20, "{model}: both nodes know its password");
    let some = served[1];
    assert!((1..20).contains(&some), "{model}: {served:?}");
    assert!(served[1..].iter().all(|count| *count == some), "{model}: {served:?}");
    // Once the user has a password, no other one gets in through connections that are open.
    assert_eq!(admins[0].say("ACL SETUSER ann resetpass >0"), "+OK\r\n");
    for number in 0..12 {
        let reply = client(&proxy).say(&format!("AUTH ann {}", number + 1));
        assert!(reply.starts_with("-WRONGPASS invalid "), "{model}: {reply}");
    }
    assert_eq!(is_served(&mut user(&proxy, "ann", "0")), 20, "{model}");
    assert_eq!(is_served(&mut clients[11]), some, "{model}: as at a node, it stays");
    assert!(admins[1].say("ACL WHOAMI").contains("default"), "{model}");
}

on_shard_models!(a_name_has_four_passwords_that_are_in_use: epoll, uring);

fn a_name_has_four_passwords_that_are_in_use(model: &str) {
    let passwords = [">1", ">2", ">3", ">4", ">5", ">6"];
    let node = Node::start(&[&["--user", "ann", "on"], &passwords[..], &["~*", "+@all"]].concat());
    let proxy = proxy(model, std::slice::from_ref(&node), &NODES);
    let mut clients: Vec<Client> =
        (1..5).map(|password| user(&proxy, "ann", &password.to_string())).collect();
    let mut other = client(&proxy);
    let refused = "-ERR the proxy serves a user with at most 4 passwords at once";
    let reply = other.say("AUTH ann 5");
    assert!(reply.starts_with(refused), "{model}: {reply}");
    // One that no client uses makes room, although its connections are kept for a while.
    drop(clients.remove(1));
    until("one makes room", || other.say("AUTH ann 5") == "+OK\r\n");
    assert!(client(&proxy).say("AUTH ann 2").starts_with(refused), "{model}");
    for client in clients.iter_mut().chain([&mut other]) {
        assert_eq!(client.say("SET a 1"), "+OK\r\n", "{model}");
    }
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn there_are_at_most_64_users_at_once() {
    let nodes = [Node::start(&[])];
    let proxy = proxy("percore", &nodes, &NODES);
    let mut direct = nodes[0].client();
    for number in 0..65 {
        direct.say(&format!("ACL SETUSER u{number} on >p{number} ~* +@all"));
    }
    let mut all: Vec<Client> =
        (0..64).map(|number| user(&proxy, &format!("u{number}"), &format!("p{number}"))).collect();
    let mut other = client(&proxy);
    let reply = other.say("AUTH u64 p64");
    assert!(reply.starts_with("-ERR the proxy serves at most 64 users at once"), "{reply}");
    assert_eq!(other.say("ACL WHOAMI"), "$7\r\ndefault\r\n");
    assert_eq!(all[63].say("SET a 1"), "+OK\r\n");
    assert_eq!(user(&proxy, "u0", "p0").say("GET a"), "$1\r\n1\r\n", "one that is known");
    // Their connections are kept for a while, but one that no client uses makes room at once.
    all.truncate(63);
    until("one makes room", || other.say("AUTH u64 p64") == "+OK\r\n");
    assert_eq!(other.say("GET a"), "$1\r\n1\r\n");
    assert!(client(&proxy).say("AUTH u63 p63").starts_with("-ERR the proxy serves at most 64"));
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn a_password_is_shown_nowhere() {
    let folder = TempDir::new().unwrap();
    let printed = folder.path().join("stderr");
    let node = Node::start(&["--user", "ann", "on", ">hunter2", "~*", "&*", "+@all"]);
    let mut command = regatta!("shard --auth nodes --slowlog 0s --nodes {}", node.addr());
    let mut proxy = Server::start(command.stderr(File::create(&printed).unwrap()));
    let mut ann = user(&proxy, "ann", "hunter2");
    assert!(ann.say("HELLO 3 AUTH ann hunter2").starts_with('%'));
    assert!(ann.say("AUTH ann hunter22").starts_with("-WRONGPASS"));
    for line in ["GET a", "BLPOP a 0.01", "NONSENSE", "SLOWLOG GET 100", "INFO", "CLIENT INFO"] {
        let reply = ann.say(line);
        assert!(!reply.contains("hunter"), "{line}: {reply}");
    }
    let text = || std::fs::read_to_string(&printed).unwrap();
    until("the wrong password is reported", || {
        text().contains("regatta: password refused: reason=wrong_password count=1 ")
    });
    proxy.signal("-TERM");
    drop(ann);
    assert!(proxy.ended().success());
    assert!(!text().contains("hunter"), "{}", text());
}

#[test]
fn options_that_contradict_it_are_refused() {
    let run = |more: &[&str]| {
        refused(regatta!("shard --nodes 127.0.0.1:1 --auth nodes --check").args(more))
    };
    for option in ["--password-file", "--node-password-file"] {
        let error = run(&[option, "/nowhere"]);
        assert!(error.contains(option) && error.contains("--auth nodes"), "{error}");
    }
    for model in ["threads", "green", "fork", "prefork"] {
        let error = run(&["--model", model]);
        let expected = format!("the model `{model}` runs `shard` only without --auth nodes: ");
        assert!(error.contains(&expected), "{error}");
    }
}
