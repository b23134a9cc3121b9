//! Nodes that are killed and restarted under load.

use crate::support::shard::{client, client::Client, nodes::Node, on_shard_models, proxy};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use regatta_keyspace::map::{Map, Slots};
use regatta_testkit::{is_full, machine};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

const NODES: usize = 4;
const CLIENTS: usize = 8;

/// The times at which each node was down, from the kill to its restart.
#[derive(Default)]
struct Downtimes(Mutex<Vec<(usize, Instant, Option<Instant>)>>);

impl Downtimes {
    /// Returns whether a request to this node at this time may fail.
    fn explain(&self, node: usize, began: Instant, ended: Instant) -> bool {
        // After a restart the proxy needs some time to notice it and to reconnect.
        let until = |end: Option<Instant>| end.map_or(ended, |end| end + Duration::from_secs(2));
        let all = self.0.lock().expect("no panic");
        all.iter().any(|(of, from, end)| *of == node && ended >= *from && began <= until(*end))
    }
}

/// The possible values of a client's keys. A write that failed may or may not have been applied.
#[derive(Default)]
struct Known(BTreeMap<String, BTreeSet<String>>);

impl Known {
    fn read(&mut self, key: &str, value: &str) -> Result<(), String> {
        let may = self.0.entry(key.into()).or_insert_with(|| [String::new()].into());
        if may.contains(value) {
            return Ok(());
        }
        Err(format!("GET {key}: '{value}', not one of {may:?}"))
    }

    fn wrote(&mut self, key: &str, value: String, is_certain: bool) {
        let may = self.0.entry(key.into()).or_insert_with(|| [String::new()].into());
        if is_certain {
            may.clear();
        }
        may.insert(value);
    }
}

fn value_of(reply: &str) -> Option<&str> {
    if reply == "$-1\r\n" {
        return Some("");
    }
    reply.strip_prefix('$')?.split_once("\r\n")?.1.strip_suffix("\r\n")
}

/// Sends requests until it is stopped. Returns the numbers of answered and of failed requests, or an
/// error that describes the first wrong reply.
fn request_until_stopped(
    mut client: Client,
    number: u64,
    downtimes: &Downtimes,
    stop: &AtomicBool,
    served: &[AtomicU64],
) -> Result<(u64, u64), String> {
    let map = Map::new(1, Slots::even(NODES).expect("few nodes"));
    let mut random = SmallRng::seed_from_u64(number);
    let (mut known, mut answered, mut failed, mut serial) = (Known::default(), 0, 0, 0);
    while !stop.load(SeqCst) {
        let key = format!("c{number}:{}", random.random_range(0..40));
        let node = map.node(key.as_bytes());
        let began = Instant::now();
        let writes = random.random_bool(0.5);
        serial += 1;
        let value = format!("{number}.{serial}");
        let reply = match writes {
            true => client.say(&format!("SET {key} {value}")),
            false => client.say(&format!("GET {key}")),
        };
        let is_error = reply.starts_with("-SHARDDOWN ") || reply.starts_with("-LOADING ");
        if is_error {
            failed += 1;
            if !downtimes.explain(node, began, Instant::now()) {
                return Err(format!("a key of node {node}, which is up: {reply}"));
            }
        } else {
            answered += 1;
            served[node].fetch_add(1, SeqCst);
        }
        if writes {
            if !is_error && reply != "+OK\r\n" {
                return Err(format!("SET {key}: {reply}"));
            }
            known.wrote(&key, value, !is_error);
        } else if !is_error {
            let value = value_of(&reply).ok_or_else(|| format!("GET {key}: {reply}"))?;
            known.read(&key, value)?;
        }
    }
    Ok((answered, failed))
}

on_shard_models!(every_reply_is_correct_while_nodes_are_killed_and_restarted: all);

/// Takes 20 s, and a minute for `REGATTA_TESTS=full`; on sequential models always 20 s.
fn every_reply_is_correct_while_nodes_are_killed_and_restarted(model: &str) {
    let _turn = machine::alone();
    let is_sequential = ["threads", "green", "fork", "prefork"].contains(&model);
    let long = Duration::from_secs(if is_full() && !is_sequential { 60 } else { 20 });
    // Nodes answer a write after it is on their disk.
    let more = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut nodes: Vec<Node> = (0..NODES).map(|_| Node::start(&more)).collect();
    let proxy = proxy(model, &nodes, &[]);
    let (downtimes, stop) = (Downtimes::default(), AtomicBool::new(false));
    let served: Vec<AtomicU64> = (0..NODES).map(|_| AtomicU64::new(0)).collect();
    let mut random = SmallRng::seed_from_u64(1);
    let (mut kills, mut back) = (0, Duration::ZERO);
    let (mut first, mut last) = (0, 0);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS as u64)
            .map(|number| {
                let (client, downtimes, stop, served) =
                    (client(&proxy), &downtimes, &stop, &served);
                scope.spawn(move || {
                    let done = request_until_stopped(client, number, downtimes, stop, served);
                    stop.store(done.is_err() || stop.load(SeqCst), SeqCst);
                    done
                })
            })
            .collect();
        let end = Instant::now() + long;
        while Instant::now() < end && !stop.load(SeqCst) {
            let node = random.random_range(0..NODES);
            downtimes.0.lock().expect("no panic").push((node, Instant::now(), None));
            nodes[node].kill();
            kills += 1;
            thread::sleep(Duration::from_millis(random.random_range(0..400)));
            nodes[node].revive();
            let returned = Instant::now();
            let before = served[node].load(SeqCst);
            while served[node].load(SeqCst) == before && returned.elapsed() < Duration::from_secs(5)
            {
                thread::sleep(Duration::from_millis(2));
            }
            back = back.max(returned.elapsed());
            downtimes.0.lock().expect("no panic").last_mut().expect("it").2 = Some(returned);
            thread::sleep(Duration::from_millis(random.random_range(0..300)));
            last = proxy.memory();
            if kills == 3 {
                first = last;
            }
        }
        stop.store(true, SeqCst);
        let mut all = (0, 0);
        for client in clients {
            let (answered, failed) = client.join().expect("no panic").unwrap_or_else(|error| {
                panic!("{model}: {error}");
            });
            all = (all.0 + answered, all.1 + failed);
        }
        println!(
            "{model}: {kills} kills, {} answers, {} errors; back after {back:?} at most; memory {} KiB more",
            all.0,
            all.1,
            last.saturating_sub(first) / 1024
        );
    });
    assert!(back < Duration::from_secs(2), "{model}: back after {back:?}");
    assert!(last.saturating_sub(first) < 4 << 20, "{model}: {first} bytes became {last}");
}
