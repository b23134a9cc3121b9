//! The durations of requests on the page with the metrics.

use crate::support::{
    hub::{metrics, with_metrics},
    on_models, regatta,
    shard::{client, client::Client, nodes::Node, on_shard_models},
};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

const NAME: &str = "regatta_shard_request_duration_seconds";

/// A proxy in front of these nodes, and the address of its page.
fn proxy(model: &str, nodes: &[Node]) -> (crate::support::Server, SocketAddr) {
    proxy_to(model, &nodes.iter().map(Node::addr).collect::<Vec<_>>())
}

fn proxy_to(model: &str, nodes: &[SocketAddr]) -> (crate::support::Server, SocketAddr) {
    let addresses: Vec<String> = nodes.iter().map(SocketAddr::to_string).collect();
    with_metrics(regatta!(
        "shard --model {model} --cores 2 --metrics 127.0.0.1:0 --nodes {}",
        addresses.join(",")
    ))
}

/// The values of a page whose names and labels begin like this, with the rest of those.
fn values<'p>(page: &'p str, begin: &str) -> Vec<(&'p str, f64)> {
    let lines = page.lines().filter_map(|line| line.strip_prefix(begin)?.rsplit_once(' '));
    lines.map(|(labels, value)| (labels, value.parse().expect("a number"))).collect()
}

/// The value with exactly this name and labels; 0 if there is none.
fn value(page: &str, name: &str) -> f64 {
    values(page, name).into_iter().find(|(rest, _)| rest.is_empty()).map_or(0.0, |(_, value)| value)
}

/// Sends requests of each class, in pipelines, of which some are answered with errors.
fn busy(client: &mut Client) {
    let pipeline = "SET k{a} 1\r\nGET k{a}\r\nLPUSH k{a} x\r\nMGET a b c d e f\r\nTIME\r\nGET\r\n";
    client.raw(pipeline.repeat(50).as_bytes());
    for _ in 0..6 * 50 {
        client.next();
    }
    client.say("MSET a 1 b 2 c 3 d 4 e 5 f 6");
    client.say("EVAL return(1) 1 k{a}");
    client.say("EVAL nonsense( 1 k{a}");
    client.say("BLPOP list{a} 0.05");
    client.say("SELECT 1");
    client.say("DBSIZE");
    client.say("MULTI");
    client.say("SET k{a} 1");
    client.say("EXEC");
    client.say("SUBSCRIBE news");
}

on_shard_models!(a_node_has_as_many_durations_as_replies: sharing);

fn a_node_has_as_many_durations_as_replies(model: &str) {
    let nodes = [Node::start(&[]), Node::start(&[])];
    let (proxy, page) = proxy(model, &nodes);
    let mut clients: Vec<Client> = (0..4).map(|_| client(&proxy)).collect();
    clients.iter_mut().for_each(busy);
    let page = metrics(page);
    let mut all = 0.0;
    for node in &nodes {
        let label = format!("node=\"{}\"", node.addr());
        let of_node = |name: &str| {
            let values = values(&page, &format!("{NAME}_{name}{{"));
            values.into_iter().filter(|(labels, _)| labels.contains(&label)).collect::<Vec<_>>()
        };
        let sum = |values: Vec<(&str, f64)>| values.iter().map(|(_, value)| value).sum::<f64>();
        let replies = value(&page, &format!("regatta_shard_node_replies_total{{{label}}}"));
        assert_eq!(sum(of_node("count")), replies, "{model}: {page}");
        let mut buckets = of_node("bucket");
        // Buckets grow up to the last of their class, which has all durations.
        for pair in buckets.windows(2).filter(|pair| !pair[0].0.contains("+Inf")) {
            assert!(pair[0].1 <= pair[1].1, "{model}: {pair:?}");
        }
        buckets.retain(|(labels, _)| labels.contains("le=\"+Inf\""));
        assert_eq!(sum(buckets), replies, "{model}");
        all += replies;
    }
    let class = |class: &str| -> f64 {
        let counts = values(&page, &format!("{NAME}_count{{class=\"{class}\""));
        counts.iter().map(|(_, value)| value).sum()
    };
    // GET; SET, LPUSH and SET in the transaction; EVAL twice; BLPOP.
    let found = ["read", "write", "script", "blocking"].map(class);
    assert_eq!(found, [50.0, 101.0, 2.0, 1.0].map(|each| 4.0 * each), "{model}: {page}");
    // MGET, MSET and DBSIZE have two parts; TIME, SELECT, MULTI or the commands before its key, EXEC, SUBSCRIBE.
    assert_eq!(class("several_nodes"), 4.0 * (100.0 + 2.0 + 2.0), "{model}: {page}");
    assert_eq!(found.iter().sum::<f64>() + class("several_nodes") + class("other"), all, "{model}");
    let errors = values(&page, "regatta_shard_node_error_replies_total{");
    let errors: f64 = errors.iter().map(|(_, value)| value).sum();
    // LPUSH to a string, and a script that cannot be compiled.
    assert_eq!(errors, 4.0 * 51.0, "{model}");
}

on_shard_models!(a_duration_is_the_time_of_the_node: epoll, uring);

fn a_duration_is_the_time_of_the_node(model: &str) {
    let nodes = [Node::start(&[])];
    let (proxy, page) = proxy(model, &nodes);
    let mut client = client(&proxy);
    client.say("SET k v");
    assert_eq!(nodes[0].client().say("CLIENT PAUSE 3000"), "+OK\r\n");
    let start = Instant::now();
    assert_eq!(client.say("GET k"), "$1\r\nv\r\n", "{model}");
    let measured = start.elapsed().as_secs_f64();
    client.say("BLPOP list 0.3");
    let page = metrics(page);
    let of = |what: &str, class: &str, le: &str| {
        let node = nodes[0].addr();
        value(&page, &format!("{NAME}_{what}{{class=\"{class}\",node=\"{node}\"{le}}}"))
    };
    let sum = of("sum", "read", "");
    // The clocks are those of two processes that wait for each other.
    assert!((1.0..measured + 0.05).contains(&sum), "{model}: {sum}, measured {measured}");
    assert_eq!(of("bucket", "read", ",le=\"0.1\""), 0.0, "{model}: {page}");
    assert_eq!(of("bucket", "read", ",le=\"+Inf\""), 1.0, "{model}: {page}");
    let blocked = of("sum", "blocking", "");
    assert!((0.29..20.0).contains(&blocked), "{model}: {blocked}");
}

/// Pauses of a node: a busy machine delays the first bytes of a reply by less.
const PAUSE: Duration = Duration::from_secs(3);

/// A node that pauses within its first reply to GET, and before the second one.
fn pausing() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let addr = listener.local_addr().expect("its address");
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the proxy");
        stream.set_nodelay(true).expect("an open connection");
        let mut input = Vec::new();
        let mut wait_for = |stream: &mut TcpStream, word: &[u8]| {
            let mut buffer = [0; 4096];
            while !input.windows(word.len()).any(|part| part == word) {
                let count = stream.read(&mut buffer).expect("the proxy sends");
                assert!(count > 0, "the proxy has closed the connection");
                input.extend_from_slice(&buffer[..count]);
            }
        };
        wait_for(&mut stream, b"one");
        stream.write_all(b"-ERR no INFO\r\n$3\r\nv").expect("the proxy reads");
        thread::sleep(PAUSE);
        stream.write_all(b"wx\r\n").expect("the proxy reads");
        wait_for(&mut stream, b"two");
        thread::sleep(PAUSE);
        stream.write_all(b"$3\r\nxyz\r\n").expect("the proxy reads");
        // Until the proxy ends.
        let _ = stream.read(&mut [0]);
    });
    addr
}

on_models!(a_reply_is_measured_until_its_first_bytes: select, poll, epoll, percore, uring);

fn a_reply_is_measured_until_its_first_bytes(model: &str) {
    let node = pausing();
    let (proxy, page) = proxy_to(model, &[node]);
    let mut client = client(&proxy);
    let start = Instant::now();
    assert_eq!(client.say("GET one"), "$3\r\nvwx\r\n", "{model}");
    assert!(start.elapsed() >= PAUSE, "{model}");
    assert_eq!(client.say("GET two"), "$3\r\nxyz\r\n", "{model}");
    let page = metrics(page);
    let of = |what: &str, le: &str| {
        value(&page, &format!("{NAME}_{what}{{class=\"read\",node=\"{node}\"{le}}}"))
    };
    assert_eq!((of("count", ""), of("bucket", ",le=\"2\"")), (2.0, 1.0), "{model}: {page}");
    let sum = of("sum", "");
    assert!((2.9..20.0).contains(&sum), "{model}: {sum}");
}
