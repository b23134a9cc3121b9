//! A client that leaves its replies unread.

use super::{
    client, is_full, models, sharded,
    support::{
        Server,
        cpus::{on_cpu, two_cpus},
        until,
    },
};
use regatta_judge::statistics::geometric;
use regatta_proto::resp::write_command;
use std::{
    io::{ErrorKind, Write},
    net::TcpStream,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

/// Size of the value that is requested repeatedly, in bytes.
const VALUE: usize = 100_000;

#[test]
fn a_client_that_leaves_300_mb_unread_takes_bounded_memory() {
    for model in models() {
        let Some((_nodes, proxy)) = sharded(model, 4, &["--cores", "1"]) else { return };
        let mut good = client(&proxy);
        good.ask(&[&b"SET"[..], b"large", &vec![b'x'; VALUE]]);
        for number in 0..50 {
            good.say(&format!("SET k{number} v"));
        }
        let before = proxy.memory();
        let mut bad = client(&proxy);
        let mut requests = Vec::new();
        (0..3000).for_each(|_| write_command([&b"GET"[..], b"large"], &mut requests));
        bad.stream.set_nonblocking(true).unwrap();
        let (mut sent, mut most) = (0, 0);
        let mut is_cut = false;
        for round in 0..2000 {
            match bad.stream.write(&requests[sent..]) {
                Ok(more) => sent += more,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => is_cut = true,
            }
            assert_eq!(good.say(&format!("GET k{}", round % 50)), "$1\r\nv\r\n", "{model}");
            most = most.max(proxy.memory().saturating_sub(before));
        }
        println!("{model}: {most} bytes more, disconnected: {is_cut}");
        assert!(most < 64 << 20, "{model}: {most} bytes");
        drop(bad);
        until("the memory is freed", || proxy.memory().saturating_sub(before) < 8 << 20);
    }
}

/// Number of pairs of loads.
const PAIRS: usize = 40;

#[test]
fn other_clients_do_not_wait_for_a_client_that_does_not_read() {
    if !is_full() {
        eprintln!("skipped: it takes minutes; REGATTA_SHARD=full runs it");
        return;
    }
    let Some((server_cpu, load_cpu)) = two_cpus() else {
        eprintln!("skipped: server and load need one CPU each, and there is only one");
        return;
    };
    let mut wrong = Vec::new();
    for model in models() {
        let Some((_nodes, proxy)) = on_cpu(server_cpu, || sharded(model, 4, &["--cores", "1"]))
        else {
            return;
        };
        client(&proxy).ask(&[&b"SET"[..], b"large", &vec![b'x'; VALUE]]);
        let capacity = load(&proxy, load_cpu, &[], false)["rate_per_s"].as_f64().unwrap();
        let rate = format!("{:.0}", 0.3 * capacity);
        let p99 = |is_beside: bool| {
            let result = load(&proxy, load_cpu, &["--rate", &rate], is_beside);
            result["latency_ns"]["p99"].as_f64().expect("a p99").ln()
        };
        let of_pair = |pair: usize| {
            // The order alternates from pair to pair.
            let (first, second) = (p99(pair.is_multiple_of(2)), p99(!pair.is_multiple_of(2)));
            if pair.is_multiple_of(2) { first - second } else { second - first }
        };
        let ratios: Vec<f64> = (0..PAIRS).map(of_pair).collect();
        let ratio = geometric(&ratios, 1).unwrap();
        println!(
            "{model}: at {rate}/s, p99 beside a client that leaves 300 MB unread is {:.2} \
             [{:.2} to {:.2}] times the p99 without it, {PAIRS} pairs",
            ratio.mean, ratio.low, ratio.high
        );
        if ratio.high >= 1.25 {
            wrong.push((model, ratio));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Runs `regatta load` for two seconds with 50 connections and returns its result. With `is_beside`,
/// another client requests 300 MB in the middle of the load and reads none of it.
fn load(proxy: &Server, cpu: u32, more: &[&str], is_beside: bool) -> serde_json::Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
    command.args(["load", &format!("redis://{}", proxy.addr), "-c", "50", "--duration", "2s"]);
    command.args(["--warm-up", "500ms", "--cpus", &cpu.to_string(), "--json", "-"]).args(more);
    let load = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let bad = is_beside.then(|| {
        thread::sleep(Duration::from_millis(1500));
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
