//! Clients that share their keys: the replies of a real store are explained, and those of a faulty one
//! are found after all clients have ended.

use super::*;
use rand::{Rng, SeedableRng, rngs::StdRng};

const MIX: &str = "keys = 3\nvalue_bytes = 40\n\
     [[request]]\nweight = 3\ncommand = 'SET'\n[[request]]\nweight = 3\ncommand = 'GET'\n\
     [[request]]\ncommand = 'DEL'\n[[request]]\ncommand = 'INCR'\n\
     [[request]]\ncommand = 'MSET'\nkeys_per_command = 2\n\
     [[request]]\ncommand = 'MGET'\nkeys_per_command = 3";

fn sharing(text: &str) -> Redis {
    compiled(&asks(text).sharing_keys().unwrap(), Destination::default())
}

/// Returns everything that is wrong after the load has ended.
fn verified(redis: &Redis) -> Vec<Exchange> {
    let mut all = Vec::new();
    redis.verify(&mut ThreadState::default(), &|| false, &mut |exchange| all.push(exchange));
    all
}

/// Runs several clients with a store that answers in between, at moments that the seed draws. `alter`
/// may change each reply.
fn load(
    redis: &Redis,
    seed: u64,
    mut alter: impl FnMut(&str, Vec<u8>) -> Vec<u8>,
) -> Vec<Exchange> {
    let (mut random, mut store) = (StdRng::seed_from_u64(seed), Store::default());
    let _desk = redis.desk(|| 0);
    let mut clients: Vec<Client<'_>> = (0..4)
        .map(|slot| {
            let mut client = Client::new(redis, slot);
            client.cursor = Cursor::new(redis.script(), slot * 100);
            client.open(&mut store, &[9]).unwrap();
            client
        })
        .collect();
    assert!(store.asked.is_empty(), "shared keys are new");
    // Requests in flight to the store, and replies in flight from it.
    let mut there: Vec<Vec<u8>> = vec![Vec::new(); clients.len()];
    let mut back: Vec<Vec<u8>> = vec![Vec::new(); clients.len()];
    for now in 0..20_000 {
        let i = random.random_range(0..clients.len());
        match random.random_range(0..4) {
            0 if clients[i].cursor.owed() < 5 => {
                let bytes = clients[i].ask(1, now);
                there[i].extend(bytes);
            }
            1 => {
                let before = store.asked.len();
                let replies = store.answer(&std::mem::take(&mut there[i]));
                for (asked, reply) in store.asked[before..].iter().zip(replies) {
                    back[i].extend(alter(asked, reply));
                }
            }
            2 => {
                let bytes = std::mem::take(&mut back[i]);
                if let Err(exchange) = clients[i].take(&bytes, &[11], now) {
                    return vec![*exchange];
                }
            }
            3 if now % 50 == 0 => {
                // The connection is lost, but requests in flight still arrive.
                clients[i].reconnect();
                store.answer(&std::mem::take(&mut there[i]));
                back[i].clear();
                clients[i].open(&mut store, &[9]).unwrap();
            }
            _ => {}
        }
    }
    verified(redis)
}

#[test]
fn explains_the_replies_of_a_real_store() {
    for seed in 0..6 {
        assert_eq!(load(&sharing(MIX), seed, |_, reply| reply), []);
    }
}

#[test]
fn finds_a_store_that_returns_old_values() {
    for seed in 0..2 {
        let mut old: Option<Vec<u8>> = None;
        let text = "keys = 1\n[[request]]\ncommand = 'SET'\n[[request]]\ncommand = 'GET'";
        let wrong = load(&sharing(text), seed, |asked, reply| match asked {
            // The first value that was read is returned forever.
            "GET" if reply.len() > 5 => old.get_or_insert(reply).clone(),
            _ => reply,
        });
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(wrong[0].expected.starts_with("no value older than the write of"), "{wrong:?}");
        assert!(wrong[0].received.starts_with("the value of request"), "{wrong:?}");
    }
}

#[test]
fn finds_a_store_that_forgets() {
    let text = "keys = 1\n[[request]]\ncommand = 'SET'\n[[request]]\ncommand = 'GET'";
    let mut gets = 0;
    let wrong = load(&sharing(text), 1, |asked, reply| {
        gets += usize::from(asked == "GET");
        if asked == "GET" && gets > 100 { b"$-1\r\n".to_vec() } else { reply }
    });
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0].expected.starts_with("a value, because of"), "{wrong:?}");
    assert_eq!(wrong[0].received, "nothing: the key is absent");
}

#[test]
fn finds_a_duplicate_count() {
    let text = "keys = 1\n[[request]]\ncommand = 'INCR'";
    let mut counts = 0;
    let wrong = load(&sharing(text), 1, |_, reply| {
        counts += 1;
        if counts > 50 { b":50\r\n".to_vec() } else { reply }
    });
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0].sent.starts_with("INCR n:7:"), "{wrong:?}");
}

#[test]
fn finds_the_value_of_another_key_at_once() {
    let text = "keys = 2\n[[request]]\ncommand = 'MSET'\nkeys_per_command = 2\n\
                [[request]]\ncommand = 'MGET'\nkeys_per_command = 2";
    let wrong = load(&sharing(text), 1, |asked, reply| match asked {
        "MGET" if reply.len() > 200 => {
            let (first, second) = reply["*2\r\n".len()..].split_at((reply.len() - 4) / 2);
            [b"*2\r\n", second, first].concat()
        }
        _ => reply,
    });
    assert!(wrong[0].expected.starts_with("2 elements: for each key"), "{wrong:?}");
}

#[test]
fn the_last_thread_checks_all_threads_together() {
    let redis = sharing("keys = 1\n[[request]]\ncommand = 'INCR'");
    let _desks = [redis.desk(|| 0), redis.desk(|| 0)];
    let mut store = Store::default();
    for slot in 0..2 {
        let mut client = Client::opened(&redis, slot, &mut store);
        client.ask(1, 1);
        assert_eq!(client.take(b":1\r\n", &[9], 2), Ok(1));
    }
    assert_eq!(verified(&redis), []);
    let wrong = verified(&redis);
    assert_eq!(wrong.len(), 1);
    assert!(wrong[0].expected.starts_with("a count other than that of client 0"), "{wrong:?}");
}
