//! Clients and a store without sockets: correct replies pass however they are split, and every wrong
//! one is found.

mod faults;
mod sharing;

use super::{
    receive::{Redis, ThreadState},
    talk::ConnectionState,
};
use crate::{
    cursor::Cursor,
    dialect::{At, Dialect},
    dialects::redis::RedisAsks,
    pieces,
    protocol::{Asks, CompileOptions, Destination, Speech},
    time::Nanos,
    workload::file::FileText,
};
use proptest::prelude::*;
use regatta_proto::resp::{CommandLimits, Commands};
use regatta_record::Exchange;
use std::{collections::HashMap, sync::LazyLock};

const SEED: u64 = 7;
const PIPELINE: u32 = 20;

/// Compiles a workload file of `text`, which follows `protocol = …`; the built-in mix if `text` is
/// empty.
fn redis(text: &str, place: Destination<'_>) -> Redis {
    compiled(&asks(text), place)
}

fn asks(text: &str) -> RedisAsks {
    let file = format!("protocol = 'redis'\n{text}");
    match text {
        "" => RedisAsks::shard(),
        _ => RedisAsks::read(FileText::alone(&file, "mine")).unwrap(),
    }
}

fn compiled(asks: &RedisAsks, place: Destination<'_>) -> Redis {
    let order = CompileOptions {
        seed: SEED,
        pipeline: PIPELINE as usize,
        place,
        ..CompileOptions::default()
    };
    match asks.compile(&order).unwrap() {
        Speech::Own(redis) => redis,
        Speech::Exact(_) => panic!("replies are known before the run"),
    }
}

/// A store that executes commands correctly.
#[derive(Debug, Default)]
struct Store {
    held: HashMap<Vec<u8>, Vec<u8>>,
    /// The names of received commands, in order.
    asked: Vec<String>,
}

impl Store {
    /// Returns the replies to complete commands.
    fn answer(&mut self, mut requests: &[u8]) -> Vec<Vec<u8>> {
        let (mut commands, mut replies) = (Commands::new(CommandLimits::default()), Vec::new());
        while !requests.is_empty() {
            let (taken, command) = commands.next(requests).unwrap();
            let args: Vec<&[u8]> = command.expect("a whole command").args().collect();
            replies.push(self.reply(&args));
            requests = &requests[taken..];
        }
        replies
    }

    fn reply(&mut self, args: &[&[u8]]) -> Vec<u8> {
        let bulk = |value: Option<&Vec<u8>>| match value {
            None => b"$-1\r\n".to_vec(),
            Some(value) => [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat(),
        };
        let (name, args) = (std::str::from_utf8(args[0]).unwrap(), &args[1..]);
        self.asked.push(name.into());
        match name {
            "SELECT" => b"+OK\r\n".to_vec(),
            "SET" | "MSET" => {
                for pair in args.chunks(2) {
                    self.held.insert(pair[0].into(), pair[1].into());
                }
                b"+OK\r\n".to_vec()
            }
            "GET" => bulk(self.held.get(args[0])),
            "MGET" => {
                let values: Vec<_> = args.iter().map(|key| bulk(self.held.get(*key))).collect();
                [format!("*{}\r\n", args.len()).into_bytes(), values.concat()].concat()
            }
            "DEL" => {
                let deleted = args.iter().filter(|key| self.held.remove(**key).is_some()).count();
                format!(":{deleted}\r\n").into_bytes()
            }
            "INCR" => {
                let held = self.held.entry(args[0].into()).or_insert_with(|| b"0".into());
                let count = std::str::from_utf8(held).unwrap().parse::<i64>().unwrap() + 1;
                *held = count.to_string().into_bytes();
                format!(":{count}\r\n").into_bytes()
            }
            "ECHO" => bulk(Some(&args[0].into())),
            other => format!("-ERR unknown command '{other}'\r\n").into_bytes(),
        }
    }
}

/// A client on one slot.
struct Client<'d> {
    redis: &'d Redis,
    cursor: Cursor,
    talk: ConnectionState,
    desk: ThreadState,
}

impl<'d> Client<'d> {
    fn new(redis: &'d Redis, slot: u32) -> Client<'d> {
        let cursor = Cursor::new(redis.script(), 0);
        Client { redis, cursor, talk: redis.talk(slot), desk: ThreadState::default() }
    }

    /// Creates a client whose connection is open.
    fn opened(redis: &'d Redis, slot: u32, store: &mut Store) -> Client<'d> {
        let mut client = Client::new(redis, slot);
        client.open(store, &[usize::MAX]).unwrap();
        client
    }

    /// Performs the steps before the first request.
    fn open(&mut self, store: &mut Store, cuts: &[usize]) -> Result<(), Box<Exchange>> {
        let mut out = Vec::new();
        let mut cuts = cuts.iter().cycle();
        let mut is_open = self.redis.open(&mut self.talk, &mut &[][..], &mut out)?;
        while !is_open {
            assert!(!out.is_empty(), "the client waits, but has sent nothing");
            let replies = store.answer(&std::mem::take(&mut out)).concat();
            let mut rest = &replies[..];
            while !rest.is_empty() {
                assert!(!is_open, "more replies than requests");
                let (mut data, later) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                is_open = self.redis.open(&mut self.talk, &mut data, &mut out)?;
                assert!(data.is_empty());
                rest = later;
            }
        }
        assert!(out.is_empty());
        Ok(())
    }

    /// Replaces the connection by a new one.
    fn reconnect(&mut self) {
        let start = self.cursor.next_start(self.redis.script(), 0);
        self.cursor = Cursor::new(self.redis.script(), start);
        self.redis.renew(&mut self.talk, 0);
    }

    /// Issues `k` more requests and returns their bytes.
    fn ask(&mut self, k: u32, now: Nanos) -> Vec<u8> {
        self.cursor.ask(k);
        let unsent = self.redis.unsent(&self.cursor, &mut self.talk, now).to_vec();
        self.cursor.wrote(unsent.len());
        unsent
    }

    /// Takes replies in pieces. Returns how many were correct, or the exchange that was not.
    fn take(&mut self, stream: &[u8], cuts: &[usize], now: Nanos) -> Result<u64, Box<Exchange>> {
        pieces::receive(stream, cuts, |data| {
            let Client { cursor, talk, desk, .. } = self;
            self.redis.receive(At { cursor, talk, desk }, data, now, &mut ())
        })
    }
}

/// Mixes: the built-in one, one with steps and commands of its own, and one whose replies do not depend
/// on keys.
const MIXES: [&str; 3] = [
    "",
    "keys = 12\nvalue_bytes = 40\ndistribution = 'zipf'\n\
     [[request]]\nweight = 2\nsteps = [{ command = 'MSET', keys_per_command = 7 }, { command = 'INCR' },\n\
     { command = 'MGET', keys_per_command = 12 }, { command = 'DEL', keys_per_command = 3 }, { command = 'GET' }]\n\
     [[request]]\nsend = ['ECHO', '{s=alnum:0..9}']\nbulk = '{s}'\n\
     [[request]]\nsend = ['ECHO', 'a']\n[[request]]\nsend = ['NONSENSE']\nerror = 'ERR'",
    "[[request]]\ncommand = 'set'\n[[request]]\ncommand = 'MSET'\nkeys_per_command = 2",
];

/// The compiled [`MIXES`].
static MIXED: LazyLock<[Redis; 3]> =
    LazyLock::new(|| MIXES.map(|mix| redis(mix, Destination::default())));

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![1..40_usize, 1..2_000_usize], 1..40)
}

proptest! {
    #[test]
    fn correct_replies_pass_however_they_are_split(
        mix in 0..MIXES.len(),
        rounds in prop::collection::vec(1..=PIPELINE, 1..30),
        cuts in cuts(),
    ) {
        let mut store = Store::default();
        let mut client = Client::new(&MIXED[mix], 3);
        client.open(&mut store, &cuts).unwrap();
        for k in rounds {
            let replies = store.answer(&client.ask(k, 0)).concat();
            prop_assert_eq!(client.take(&replies, &cuts, 0), Ok(k.into()));
            prop_assert_eq!(client.cursor.owed(), 0);
        }
    }

    /// In the built-in mix every reply is known to the byte.
    #[test]
    fn finds_one_changed_byte_of_a_reply(
        rounds in prop::collection::vec(1..=PIPELINE, 0..5),
        k in 1..=PIPELINE,
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        change in 1..=255_u8,
        cuts in cuts(),
    ) {
        let mut store = Store::default();
        let mut client = Client::opened(&MIXED[0], 3, &mut store);
        for k in rounds {
            let replies = store.answer(&client.ask(k, 0)).concat();
            client.take(&replies, &cuts, 0).unwrap();
        }
        let mut replies = store.answer(&client.ask(k, 0));
        let wrong = which.index(replies.len());
        let byte = at.index(replies[wrong].len());
        replies[wrong][byte] ^= change;
        let exchange = client.take(&replies.concat(), &cuts, 0).unwrap_err();
        prop_assert_eq!(exchange.reply_index, wrong as u64);
    }

    /// The store answers correctly when requests are written in pieces and more are issued in between.
    #[test]
    fn writes_requests_in_any_pieces(
        mix in 0..MIXES.len(),
        steps in prop::collection::vec((0..6_u32, 0..3_000_usize), 1..40),
    ) {
        let mut store = Store::default();
        let (mut client, mut whole) = (Client::opened(&MIXED[mix], 3, &mut store), Vec::new());
        let mut asked = 0;
        for (k, bytes) in steps {
            let k = k.min(PIPELINE - client.cursor.owed());
            client.cursor.ask(k);
            asked += u64::from(k);
            let unsent = client.redis.unsent(&client.cursor, &mut client.talk, 0);
            let n = bytes.min(unsent.len());
            whole.extend_from_slice(&unsent[..n]);
            client.cursor.wrote(n);
        }
        let rest = client.redis.unsent(&client.cursor, &mut client.talk, 0).to_vec();
        client.cursor.wrote(rest.len());
        whole.extend(rest);
        let replies = store.answer(&whole);
        prop_assert_eq!(replies.len() as u64, asked);
        prop_assert_eq!(client.take(&replies.concat(), &[usize::MAX], 0), Ok(asked));
    }
}

#[test]
fn selects_the_database_and_stores_initial_values() {
    let place = Destination { path: Some("/3"), ..Destination::default() };
    let (redis, mut store) = (redis(MIXES[1], place), Store::default());
    let mut client = Client::opened(&redis, 3, &mut store);
    assert_eq!(store.asked[0], "SELECT");
    // Twelve values and twelve counters.
    assert_eq!(store.asked[1..], vec!["SET"; 24]);
    assert_eq!(store.held[&b"n:7:0000030000:000b"[..]], b"0");
    store.asked.clear();
    client.reconnect();
    client.open(&mut store, &[1]).unwrap();
    assert_eq!(store.asked, ["SELECT"], "no request was in flight, so the keys are known");
    let redis = compiled(&asks(MIXES[2]), Destination::default());
    let mut store = Store::default();
    Client::opened(&redis, 3, &mut store);
    assert!(store.asked.is_empty(), "no reply depends on keys: {store:?}");
}

#[test]
fn stores_all_of_many_keys() {
    let text = "keys = 3_000\n[[request]]\ncommand = 'GET'";
    let (redis, mut store) = (redis(text, Destination::default()), Store::default());
    Client::opened(&redis, 3, &mut store);
    assert_eq!(store.held.len(), 3_000);
}

#[test]
fn a_connection_after_a_lost_one_has_new_keys() {
    let text = "keys = 1\n[[request]]\nsteps = [{ command = 'SET' }, { command = 'GET' }]";
    let (redis, mut store) = (redis(text, Destination::default()), Store::default());
    let mut client = Client::opened(&redis, 3, &mut store);
    let set = client.ask(1, 0);
    assert!(String::from_utf8_lossy(&set).contains("k:7:0000030000:0000"));
    client.reconnect();
    // The request is executed later.
    let late = set;
    client.open(&mut store, &[9]).unwrap();
    let replies = store.answer(&client.ask(1, 0)).concat();
    store.answer(&late);
    client.take(&replies, &[5], 0).unwrap();
    let get = client.ask(1, 0);
    assert!(String::from_utf8_lossy(&get).contains("k:7:0000030001:0000"));
    let replies = store.answer(&get).concat();
    assert_eq!(client.take(&replies, &[5], 0), Ok(1));
    // No request is in flight, so the keys and their values stay the same.
    client.reconnect();
    client.open(&mut store, &[9]).unwrap();
    for _ in 0..2 {
        let replies = store.answer(&client.ask(2, 0)).concat();
        assert_eq!(client.take(&replies, &[5], 0), Ok(2));
    }
}

#[test]
fn does_not_allocate_per_request_or_reply() {
    let text = "[[request]]\nsteps = [{ command = 'SET' }, { command = 'GET' },\n\
                { command = 'MSET', keys_per_command = 10 }, { command = 'INCR' },\n\
                { command = 'MGET', keys_per_command = 10 },\n\
                { command = 'DEL', keys_per_command = 10 }]";
    let (redis, mut store) = (redis(text, Destination::default()), Store::default());
    let mut client = Client::opened(&redis, 3, &mut store);
    for (round, pieces) in [1_000, 1, 3, 1_000, 7, 100].into_iter().enumerate() {
        client.cursor.ask(6);
        let mut sent = 0;
        let asking = allocation_counter::measure(|| {
            sent = client.redis.unsent(&client.cursor, &mut client.talk, 0).len();
            client.cursor.wrote(sent);
        });
        let out = client.talk.out.clone();
        let replies = store.answer(&out[out.len() - sent..]).concat();
        let taking = allocation_counter::measure(|| {
            assert_eq!(client.take(&replies, &[pieces], 0), Ok(6));
        });
        // The first round allocates buffers.
        if round > 0 {
            assert_eq!((asking.count_total, taking.count_total), (0, 0), "round {round}");
        }
    }
}
