//! Masters that real Sentinels manage, behind the proxy.

use crate::support::{
    Over, Server,
    hub::with_metrics,
    refused, regatta, run,
    shard::{client, client::Client, on_shard_models, sentinel::Park},
    until,
};
use std::{
    net::SocketAddr,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

/// The proxy in front of the masters, and the address of its metrics.
fn managed(model: &str, sentinels: &str) -> (Server, SocketAddr) {
    let nodes = "--nodes sentinel:one,sentinel:two --metrics 127.0.0.1:0 --cores 2";
    with_metrics(regatta!("shard --model {model} {nodes} --sentinels {sentinels}"))
}

/// What `regatta shard status` prints, and its exit status.
fn status(page: SocketAddr, more: &[&str]) -> (Option<i32>, String) {
    let ended = run(regatta!("shard status {page}").args(more));
    (ended.status.code(), ended.stdout)
}

/// A key of each node.
fn keys(park: &Park, client: &mut Client) -> (String, String) {
    let keys: Vec<String> = (0..20).map(|number| format!("key:{number}")).collect();
    for key in &keys {
        assert_eq!(client.say(&format!("SET {key} 0")), "+OK\r\n");
    }
    let mut one = park.one.client();
    let (of_one, of_two) = keys
        .into_iter()
        .partition::<Vec<_>, _>(|key| one.say(&format!("EXISTS {key}")) == ":1\r\n");
    (of_one[0].clone(), of_two[0].clone())
}

/// Counts up a key of the failing node and one of the other until `is_over`, and all rounds in `rounds`. Returns when the
/// last error came, if any.
fn count_up(
    proxy: SocketAddr,
    (name, keys): (usize, &(String, String)),
    (is_over, rounds): (&AtomicBool, &AtomicU64),
) -> Option<Instant> {
    let mut client = Client::connect(proxy);
    let tagged = |key: &str| format!("{name}.{{{key}}}");
    let (one, two) = (tagged(&keys.0), tagged(&keys.1));
    let (mut last_error, mut sent, mut calm) = (None, 0, 0);
    while !is_over.load(Relaxed) {
        (sent, calm) = (sent + 1, calm + 1);
        client.send(&["SET", &one, &format!("{one}={sent}")]);
        client.send(&["INCR", &two]);
        client.send(&["GET", &one]);
        let replies: Vec<String> =
            (0..3).map(|_| String::from_utf8(client.next().expect("a reply")).unwrap()).collect();
        // The other node has no error, and nothing is lost there.
        assert_eq!(replies[1], format!(":{calm}\r\n"));
        for (place, reply) in [(0, &replies[0]), (2, &replies[2])] {
            if reply.starts_with('-') {
                let is_fine = ["-SHARDDOWN node one", "-SHARDMOVED node one", "-READONLY"];
                assert!(is_fine.iter().any(|start| reply.starts_with(start)), "{reply}");
                last_error = Some(Instant::now());
            } else if place == 0 {
                assert_eq!(reply, "+OK\r\n");
            } else if reply != "$-1\r\n" {
                // Redis may lose the last writes in a failover, and the proxy may not mix up values.
                let value = reply.lines().nth(1).expect("a value");
                let number = value.strip_prefix(&format!("{one}=")).expect("a value of this key");
                assert!(number.parse::<u64>().expect("a number") <= sent, "{reply}");
            }
        }
        rounds.fetch_add(1, Relaxed);
        // Faster writers would only take the CPU of the servers.
        thread::sleep(Duration::from_millis(2));
    }
    last_error
}

on_shard_models!(a_failover_of_sentinels_is_followed: epoll, percore);

/// A master is killed while clients write: errors come only for its keys, and at most two seconds longer than the failover
/// takes. The old master comes back, first as a master, and is not used.
fn a_failover_of_sentinels_is_followed(model: &str) {
    let mut park = Park::start();
    let (proxy, page) = managed(model, &park.addresses());
    until("it is ready", || status(page, &["--ready"]).0 == Some(0));
    let keys = keys(&park, &mut client(&proxy));
    let (is_over, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    let (switched, last_errors) = thread::scope(|scope| {
        let over = Over(&is_over);
        let (keys, over_and_rounds, addr) = (&keys, (&is_over, &rounds), proxy.addr);
        let writers: Vec<_> = (0..4)
            .map(|name| scope.spawn(move || count_up(addr, (name, keys), over_and_rounds)))
            .collect();
        until("there are keys", || park.one.client().say("DBSIZE") != ":0\r\n");
        park.kill_master();
        let switched = Instant::now();
        until("the proxy uses it", || {
            Client::connect(addr).say(&format!("SET {} x", keys.0)) == "+OK\r\n"
        });
        // The old one does not know that it is none any longer.
        park.one.restart(&[]);
        park.see_old_master_demoted();
        let before = rounds.load(Relaxed);
        until("all have gone on", || rounds.load(Relaxed) > before + 400);
        drop(over);
        let errors =
            writers.into_iter().filter_map(|writer| writer.join().expect("no wrong answer"));
        (switched, errors.collect::<Vec<Instant>>())
    });
    assert!(!last_errors.is_empty(), "the master was killed");
    for at in last_errors {
        let late = at.saturating_duration_since(switched);
        println!("last error {late:?} after the failover");
        assert!(late < Duration::from_secs(2), "{late:?}");
    }
    // One that gets no CPU for a second has not answered in the last round.
    let mut text = String::new();
    until("all are up, and all Sentinels answer", || {
        let (code, said) = status(page, &[]);
        text = said;
        code == Some(0) && text.contains("sentinels 3 of 3 answer")
    });
    assert!(text.contains(", failovers: 1\n"), "{text}");
}

on_shard_models!(a_minority_of_sentinels_decides_nothing: epoll);

fn a_minority_of_sentinels_decides_nothing(model: &str) {
    let mut park = Park::start();
    park.sentinels[0].kill();
    park.sentinels[1].kill();
    let (proxy, page) = managed(model, &park.addresses());
    let why = "starting: no majority of the Sentinels has given all masters yet\n";
    until("it listens", || status(page, &["--ready"]) == (Some(1), why.to_owned()));
    let mut client = client(&proxy);
    until("the Sentinels were asked", || {
        client.say("GET b").contains("2 of 3 Sentinels must agree")
    });
    let reply = client.say("GET b");
    let expected = format!("{}: {}", park.sentinels[2].addr(), park.one.addr());
    assert!(reply.starts_with("-SHARDDOWN node one: its master is not known: "), "{reply}");
    assert!(reply.contains(&expected), "{reply}");
}

on_shard_models!(what_sentinels_do_not_support_is_refused: epoll);

fn what_sentinels_do_not_support_is_refused(model: &str) {
    let managed = ["--nodes", "sentinel:one", "--sentinels", "127.0.0.1:1"];
    for (options, expected) in [
        (&["--auth", "nodes"][..], "--auth nodes is not possible with --sentinels"),
        (&["--map", "cluster"], "a Redis Cluster has no Sentinels"),
        (&["--map", "ketama"], "expected a weight"),
        (&["--node-tls-ca", "ca.pem"], "needs --node-tls-server-name"),
        (&["--model", "threads"], "--sentinels"),
    ] {
        let mut command = regatta!("shard");
        command.args(managed);
        if !options.contains(&"--model") {
            command.args(["--model", model]);
        }
        let text = refused(command.args(options));
        assert!(text.contains(expected), "{options:?}: {text}");
    }
}
