//! CONFIG GET: the common configuration of the nodes, without their credentials.

use crate::support::shard::{
    client, client::Client, differential::same::Tree, nodes::Node, on_shard_models, proxy,
};
use std::fs;

/// The parameters with credentials.
const SECRET: [&str; 5] =
    ["masterauth", "masteruser", "requirepass", "tls-client-key-file-pass", "tls-key-file-pass"];

const REFUSED: &str = "-ERR the proxy does not support 'config|get' of user names and passwords";

on_shard_models!(clients_do_not_see_the_credentials_of_the_nodes: epoll, threads);

fn clients_do_not_see_the_credentials_of_the_nodes(model: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("password");
    fs::write(&file, "hidden").expect("a file");
    let options = ["--requirepass", "hidden", "--masterauth", "hidden", "--masteruser", "hidden"];
    for count in [1, 3] {
        let nodes: Vec<Node> = (0..count).map(|_| Node::start(&options)).collect();
        let options = ["--node-password-file", file.to_str().expect("UTF-8")];
        let proxy = proxy(model, &nodes, &options);
        let mut client = client(&proxy);
        for hello in ["HELLO 2", "HELLO 3"] {
            client.say(hello);
            for names in [
                "requirepass",
                "REQUIREpass",
                "maxmemory masterAuth",
                "masteruser",
                "*",
                "**",
                "*pass*",
                "?equirepass",
                "[rR]EQUIRE*",
                "r[^x]quirepas[r-t]",
                "\\requirepass*",
                "maxmemory m*",
                "tls-*",
            ] {
                let reply = client.say(&format!("CONFIG GET {names}"));
                assert!(reply.starts_with(REFUSED), "{model}: {names}: {reply}");
                let is_queued = client.say("MULTI") == "+OK\r\n";
                let reply = client.say(&format!("CONFIG GET {names}"));
                let reply = if is_queued { reply + &client.say("EXEC") } else { reply };
                assert!(!reply.contains("hidden"), "{model}: {names}: {reply}");
            }
        }
        let script = ["EVAL", "return redis.call('config', 'get', 'requirepass')", "1", "k"];
        let reply = String::from_utf8(client.ask(&script)).expect("text");
        assert!(reply.starts_with("-ERR") && !reply.contains("hidden"), "{model}: {reply}");
        check_all_names(nodes[0].client(), &mut client);
    }
}

/// Checks that exactly the parameters with credentials are refused.
fn check_all_names(mut node: Client, client: &mut Client) {
    node.say("AUTH hidden");
    let all = Tree::read(&node.say("CONFIG GET *").into_bytes());
    let mut refused = Vec::new();
    for (name, _) in all.pairs() {
        let name = name.text();
        if client.say(&format!("CONFIG GET {name}")).starts_with(REFUSED) {
            refused.push(name);
        }
    }
    refused.sort();
    assert_eq!(refused, SECRET);
}

on_shard_models!(parameters_in_another_order_are_the_same: epoll, threads);

fn parameters_in_another_order_are_the_same(model: &str) {
    // Each server has its own order.
    let nodes: Vec<Node> = (0..4).map(|_| Node::start(&[])).collect();
    let proxy = proxy(model, &nodes, &[]);
    let mut client = client(&proxy);
    for (hello, kind) in [("HELLO 2", "*"), ("HELLO 3", "%")] {
        client.say(hello);
        let reply = client.say("CONFIG GET max* hash-* list-*");
        assert!(reply.starts_with(kind) && reply.contains("maxmemory-policy"), "{model}: {reply}");
    }
    nodes[2].client().say("CONFIG SET maxmemory 1000000000");
    let different = "-ERR the nodes give different answers\r\n";
    assert_eq!(client.say("CONFIG GET max*"), different, "{model}");
}
