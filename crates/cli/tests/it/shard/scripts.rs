//! Scripts.

use crate::support::shard::{client, nodes::Node, on_shard_models, sharded};

/// Scripts with replies that no other command has.
const SCRIPTS: [&str; 10] = [
    "return redis.status_reply(string.rep('x', 70000))",
    "return redis.status_reply(string.rep('x', 3000000))",
    "return redis.error_reply(string.rep('x', 70000))",
    "return {redis.status_reply(string.rep('x', 200000)), redis.error_reply('a'), {1, {2}}}",
    "local all = {} for i = 1, 70 do all = {all} end return all",
    "local all = {string.rep('y', 100000)} for i = 1, 1000 do all = {i, all} end return all",
    "local all = {} for i = 1, 7900 do all = {all} end return all",
    // Too deep for Redis: an error inside.
    "local all = {} for i = 1, 20000 do all = {all} end return all",
    "redis.setresp(3) return {map = {a = {map = {b = 1}}}}",
    "redis.setresp(3) return {big_number = string.rep('9', 70000)}",
];

on_shard_models!(replies_of_scripts_of_any_size_and_nesting_are_forwarded: epoll, threads);

fn replies_of_scripts_of_any_size_and_nesting_are_forwarded(model: &str) {
    let (_nodes, proxy) = sharded(model, 2, &[]);
    let one = Node::start(&[]);
    let (mut direct, mut sharded) = (one.client(), client(&proxy));
    let mut other = client(&proxy);
    for hello in ["HELLO 2", "HELLO 3"] {
        direct.say(hello);
        sharded.say(hello);
        for script in SCRIPTS {
            let request = ["EVAL", script, "1", "k"];
            let expected = direct.ask(&request);
            // Two at once: the second reply waits for the first.
            sharded.send(&request);
            sharded.send(&request);
            assert_eq!(other.say("SET k v"), "+OK\r\n", "{model}: {script}");
            for _ in 0..2 {
                let found = sharded.next().expect("a reply");
                assert!(found == expected, "{model}, {hello}: {script}: {} bytes", found.len());
            }
        }
    }
    if model != "threads" {
        let script = SCRIPTS[5];
        let transaction = |client: &mut crate::support::shard::client::Client| {
            client.say("MULTI");
            client.ask(&["EVAL", script, "1", "k"]);
            client.ask(&["EXEC"])
        };
        assert!(transaction(&mut direct) == transaction(&mut sharded), "{model}");
    }
    let info = other.say("INFO");
    assert!(info.contains("node_connections_lost:0\r\n"), "{model}: {info}");
}

on_shard_models!(script_exists_is_1_once_every_node_has_the_script: epoll, threads);

fn script_exists_is_1_once_every_node_has_the_script(model: &str) {
    let (_nodes, proxy) = sharded(model, 4, &[]);
    let mut client = client(&proxy);
    let exists = "SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    assert_eq!(client.say(exists), "*1\r\n:0\r\n", "{model}");
    // EVAL stores the script on the node of its keys.
    assert_eq!(client.ask(&["EVAL", "return 1", "1", "k"]), b":1\r\n", "{model}");
    assert_eq!(client.say(exists), "*1\r\n:0\r\n", "{model}");
    client.ask(&["SCRIPT", "LOAD", "return 1"]);
    assert_eq!(client.say(exists), "*1\r\n:1\r\n", "{model}");
    // Requests of one pipeline are carried out in order.
    for _ in 0..20 {
        client.raw(b"SCRIPT FLUSH\r\n*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$8\r\nreturn 1\r\n");
        client.raw(format!("{exists}\r\n").repeat(3).as_bytes());
    }
    for _ in 0..20 {
        assert_eq!(client.next().as_deref(), Some(&b"+OK\r\n"[..]), "{model}");
        assert_eq!(client.next().map(|reply| reply[0]), Some(b'$'), "{model}");
        for _ in 0..3 {
            assert_eq!(client.next().as_deref(), Some(&b"*1\r\n:1\r\n"[..]), "{model}");
        }
    }
}

on_shard_models!(a_script_reaches_channels_with_the_tag_of_its_keys_and_all_patterns: epoll);

fn a_script_reaches_channels_with_the_tag_of_its_keys_and_all_patterns(model: &str) {
    let (_nodes, proxy) = sharded(model, 4, &[]);
    let (mut channel, mut pattern) = (client(&proxy), client(&proxy));
    pattern.say("PSUBSCRIBE news*");
    let mut publisher = client(&proxy);
    for tag in ["{a}", "{b}", "{c}", "{d}", "{e}", "{f}"] {
        channel.say(&format!("SUBSCRIBE news{tag}"));
        let publish = "return redis.call('publish', ARGV[1], 'hello')";
        let (key, name) = (format!("k{tag}"), format!("news{tag}"));
        assert_eq!(publisher.ask(&["EVAL", publish, "1", &key, &name]), b":2\r\n", "{model}");
        for subscriber in [&mut channel, &mut pattern] {
            let message = String::from_utf8(subscriber.next().expect("a message")).expect("text");
            assert!(message.contains(&name) && message.contains("hello"), "{model}: {message}");
        }
    }
}
