//! The latency of other clients beside one that leaves its replies unread.

use crate::support::{
    Server,
    cpus::{on_cpu, two_cpus},
    regatta,
    shard::{client, on_shard_models, sharded},
};
use regatta_proto::resp::write_command;
use regatta_testkit::{machine, skip};
use std::{io::Write, net::TcpStream, process::Stdio, thread, time::Duration};

/// Size of the value that is requested repeatedly, in bytes.
const VALUE: usize = 100_000;

/// Number of pairs of loads.
const PAIRS: usize = 40;

/// Ranks, from 0, between which the median of `PAIRS` values is with a probability of at least 95%: of 40 tosses of a
/// coin, 14 to 26 are heads in 96% of cases.
const INTERVAL: [usize; 2] = [13, 26];

on_shard_models!(other_clients_do_not_wait_for_a_client_that_does_not_read: sharing);

fn other_clients_do_not_wait_for_a_client_that_does_not_read(model: &str) {
    let _turn = machine::alone();
    let Some((server_cpu, load_cpu)) = two_cpus() else {
        return skip("server and load need one CPU each, and there is only one");
    };
    {
        let (_nodes, proxy) = on_cpu(server_cpu, || sharded(model, 4, &["--cores", "1"]));
        client(&proxy).ask(&[&b"SET"[..], b"large", &vec![b'x'; VALUE]]);
        let capacity = load(&proxy, load_cpu, &[], false)["rate_per_s"].as_f64().unwrap();
        let rate = format!("{:.0}", 0.3 * capacity);
        let p95 = |is_beside: bool| {
            let result = load(&proxy, load_cpu, &["--rate", &rate], is_beside);
            result["latency_ns"]["p95"].as_f64().expect("a p95")
        };
        let of_pair = |pair: usize| {
            // The order alternates from pair to pair.
            let (first, second) = (p95(pair.is_multiple_of(2)), p95(!pair.is_multiple_of(2)));
            if pair.is_multiple_of(2) { first / second } else { second / first }
        };
        let mut ratios: Vec<f64> = (0..PAIRS).map(of_pair).collect();
        ratios.sort_by(f64::total_cmp);
        // Not the mean: a pause of the machine of 25 ms multiplies the p95 of one load.
        let [low, high] = INTERVAL.map(|rank| ratios[rank]);
        println!(
            "{model}: at {rate}/s, p95 beside a client that leaves 300 MB unread is [{low:.2} to \
             {high:.2}] times the p95 without it, median of {PAIRS} pairs"
        );
        assert!(high < 1.25, "{ratios:?}");
    }
}

/// Runs `regatta load` for half a second with 50 connections and returns its result. With `is_beside`,
/// another client requests 300 MB in the middle of the load and reads none of it.
///
/// The load is short, so its p95 shows a wait of 25 ms: a proxy stopped for 30 ms has 70 times the p95. The p99 is no
/// measure: it is between 0.3 and 5 ms by chance, with the other client and without it.
fn load(proxy: &Server, cpu: u32, more: &[&str], is_beside: bool) -> serde_json::Value {
    let url = format!("redis://{}", proxy.addr);
    let mut load = regatta!("load {url} -c 50 -d 500ms --warm-up 500ms --cpus {cpu} --json -");
    let load = load.args(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let bad = is_beside.then(|| {
        thread::sleep(Duration::from_millis(750));
        unread(proxy)
    });
    let output = load.wait_with_output().unwrap();
    drop(bad);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Connects a client that requests 300 MB and reads none of it.
fn unread(proxy: &Server) -> TcpStream {
    let mut stream = proxy.connect();
    stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut requests = Vec::new();
    (0..3000).for_each(|_| write_command([&b"GET"[..], b"large"], &mut requests));
    // The proxy may stop reading from it or close its connection.
    let _ = stream.write_all(&requests);
    stream
}
