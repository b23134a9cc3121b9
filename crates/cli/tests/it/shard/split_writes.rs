//! `--split-writes refuse`.

use crate::support::shard::{client, on_shard_models, sharded};

on_shard_models!(split_writes_can_be_refused: epoll, threads);

fn split_writes_can_be_refused(model: &str) {
    let (_nodes, proxy) = sharded(model, 4, &["--split-writes", "refuse"]);
    let mut client = client(&proxy);
    let error = "-CROSSSLOT Keys in request don't hash to the same slot\r\n";
    for line in ["MSET a 1 b 2 c 3", "DEL a b c", "UNLINK a b c"] {
        assert_eq!(client.say(line), error, "{model}: {line}");
    }
    assert_eq!(client.say("MGET a b c"), "*3\r\n$-1\r\n$-1\r\n$-1\r\n", "{model}");
    assert_eq!(client.say("MSET a{t} 1 b{t} 2"), "+OK\r\n", "{model}");
    assert_eq!(client.say("EXISTS a{t} b{t} c"), ":2\r\n", "{model}");
    assert_eq!(client.say("DEL a{t} b{t}"), ":2\r\n", "{model}");
    assert_eq!(client.say("FLUSHALL"), "+OK\r\n", "{model}");
}
