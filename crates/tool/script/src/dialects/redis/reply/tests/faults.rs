//! Injected faults: each wrong reply is found and described.

use super::*;
use crate::dialects::redis::names::{Identity, Names, Owner};

/// A framed value.
fn value(author: Owner, key: u16, version: u64) -> Vec<u8> {
    let mut framed = Vec::new();
    Names::new(SEED, 100).write_value(Identity { author, key, version }, &mut framed);
    framed
}

/// Returns how `reply` to a request of client 1 is reported, after `right` correct replies.
fn reported(text: &str, right: u32, reply: &[u8]) -> Exchange {
    let (redis, mut store) = (redis(text, Destination::default()), Store::default());
    let mut whole = None;
    for cut in [1, 7, usize::MAX] {
        let mut client = Client::opened(&redis, 1, &mut store);
        let requests = client.ask(right + 1, 0);
        let replies = store.answer(&requests);
        let mut stream = replies[..right as usize].concat();
        stream.extend_from_slice(reply);
        let exchange = client.take(&stream, &[cut], 0).unwrap_err();
        assert_eq!(exchange.reply_index, u64::from(right), "{exchange:?}");
        whole = Some(*exchange);
    }
    whole.unwrap()
}

const ONE_KEY: &str = "keys = 1\n[[request]]\nsteps = [{ command = 'SET' }, { command = 'GET' }]";

#[test]
fn finds_and_describes_every_wrong_value() {
    let mine = Owner::new(1, 0);
    let right = value(mine, 0, 1);
    let shorter = [b"$99\r\n", &right["$100\r\n".len()..][..99], b"\r\n"].concat();
    let longer = [b"$101\r\n", &right["$100\r\n".len()..][..100], b"x\r\n"].concat();
    for (reply, received) in [
        (value(mine, 0, 0), "the first value of key 0 of client 1"),
        (value(mine, 0, 2), "the value that request 2 of client 1 wrote to key 0"),
        (value(mine, 1, 1), "the value that request 1 of client 1 wrote to key 1"),
        (value(Owner::new(2, 0), 0, 1), "the value that request 1 of client 2 wrote to key 0"),
        (shorter, "99 bytes that no client wrote as a value"),
        (longer, "101 bytes that no client wrote as a value"),
        (b"$-1\r\n".to_vec(), "$-1\\r\\n"),
        (b"-ERR out of memory\r\n".to_vec(), "-ERR out of memory\\r\\n"),
        (b"*1\r\n".to_vec(), "*1\\r\\n"),
        (b"nonsense\r\n".to_vec(), "nonsense\\r\\n"),
    ] {
        let exchange = reported(ONE_KEY, 1, &reply);
        assert!(exchange.received.contains(received), "{exchange:?}");
        let expected = "(the value that request 1 of client 1 wrote to key 0)";
        assert!(exchange.expected.starts_with("$100\\r\\n0000010000.0000."), "{exchange:?}");
        assert!(exchange.expected.ends_with(expected), "{exchange:?}");
        assert!(exchange.sent.ends_with("$19\\r\\nk:7:0000010000:0000\\r\\n"), "{exchange:?}");
    }
}

#[test]
fn finds_a_deleted_value() {
    let text = "keys = 1\n[[request]]\nsteps = [{ command = 'DEL' }, { command = 'GET' }]";
    let exchange = reported(text, 1, &value(Owner::new(1, 0), 0, 0));
    let expected = "$-1\\r\\n (nil, because k:7:0000010000:0000 was deleted)";
    assert_eq!(exchange.expected, expected);
    assert!(exchange.received.contains("the first value of key 0"), "{exchange:?}");
}

#[test]
fn finds_wrong_numbers() {
    let deletes = "keys = 3\n[[request]]\ncommand = 'DEL'\nkeys_per_command = 3";
    let exchange = reported(deletes, 0, b":2\r\n");
    assert_eq!(exchange.expected, ":3\\r\\n (3 of the 3 keys hold a value)");
    assert_eq!(exchange.received, ":2\\r\\n");
    let counts = "keys = 1\n[[request]]\ncommand = 'INCR'";
    // Applied twice, or lost.
    for wrong in [":3\r\n", ":1\r\n"] {
        let exchange = reported(counts, 1, wrong.as_bytes());
        assert_eq!(exchange.expected, ":2\\r\\n (the count was 1)");
    }
}

#[test]
fn finds_swapped_elements_of_an_array() {
    let text = "keys = 2\n[[request]]\ncommand = 'MGET'\nkeys_per_command = 2";
    let (redis, mut store) = (redis(text, Destination::default()), Store::default());
    let mut client = Client::opened(&redis, 1, &mut store);
    let reply = store.answer(&client.ask(1, 0)).concat();
    let (first, second) = reply["*2\r\n".len()..].split_at(108);
    let crossed = [b"*2\r\n", second, first].concat();
    let exchange = client.take(&crossed, &[usize::MAX], 0).unwrap_err();
    assert!(exchange.expected.contains("(element 1 of 2: the first value of key"), "{exchange:?}");
    assert!(exchange.received.contains("(the first value of key"), "{exchange:?}");
    let wrong_length = reported(text, 0, b"*1\r\n");
    assert_eq!(wrong_length.expected, "*2\\r\\n");
    let failed = reported(text, 0, b"-CROSSSLOT Keys in request\r\n");
    assert_eq!(failed.received, "-CROSSSLOT Keys in request\\r\\n");
}

#[test]
fn finds_an_extra_reply() {
    let (redis, mut store) = (redis(ONE_KEY, Destination::default()), Store::default());
    let mut client = Client::opened(&redis, 1, &mut store);
    let replies = store.answer(&client.ask(2, 0)).concat();
    let more = [&replies[..], b"+OK\r\n"].concat();
    let exchange = client.take(&more, &[usize::MAX], 0).unwrap_err();
    assert!(exchange.expected.starts_with("nothing more"), "{exchange:?}");
    assert!(exchange.sent.contains("GET") && exchange.sent.contains("0000010000"), "{exchange:?}");
    assert_eq!((exchange.received.as_str(), exchange.reply_index), ("+OK\\r\\n", 2));
    let mut silent = Client::opened(&redis, 2, &mut store);
    let exchange = silent.take(b"+OK\r\n", &[usize::MAX], 0).unwrap_err();
    assert!(exchange.expected.starts_with("nothing: no request"), "{exchange:?}");
}

#[test]
fn checks_replies_to_commands_as_the_file_says() {
    let one = |more: &str| format!("[[request]]\nsend = ['X', 'y']\n{more}");
    for (more, right, wrong) in [
        ("status = 'PONG'", "+PONG\r\n", "+OK\r\n"),
        ("integer = 3", ":3\r\n", ":4\r\n"),
        ("bulk = 'a b'", "$3\r\na b\r\n", "$3\r\na c\r\n"),
        ("nil = true", "$-1\r\n", "$0\r\n\r\n"),
        ("error = 'WRONGTYPE'", "-WRONGTYPE of key\r\n", "-ERR x\r\n"),
        ("error = 'ERR'", "-ERR\r\n", "+OK\r\n"),
        ("", "*2\r\n*0\r\n$1\r\nx\r\n", "-ERR no\r\n"),
        ("", "+anything\r\n", ">1\r\n+a\r\n"),
        ("", ":1\r\n", "x\r\n"),
    ] {
        let text = one(more);
        let redis = redis(&text, Destination::default());
        for cut in [1, 3, usize::MAX] {
            let mut client = Client::opened(&redis, 1, &mut Store::default());
            assert_eq!(client.ask(1, 0), b"*2\r\n$1\r\nX\r\n$1\r\ny\r\n");
            assert_eq!(client.take(right.as_bytes(), &[cut], 0), Ok(1), "{more} {right:?}");
        }
        let exchange = reported(&text, 0, wrong.as_bytes());
        assert_eq!(exchange.sent, "*2\\r\\n$1\\r\\nX\\r\\n$1\\r\\ny\\r\\n");
        assert!(!exchange.received.is_empty(), "{more}");
    }
}

#[test]
fn finds_errors_before_the_first_request() {
    let place = Destination { path: Some("/99"), ..Destination::default() };
    let redis = redis("", place);
    let mut client = Client::new(&redis, 1);
    let mut out = Vec::new();
    assert_eq!(redis.open(&mut client.talk, &mut &[][..], &mut out), Ok(false));
    assert_eq!(out, b"*2\r\n$6\r\nSELECT\r\n$2\r\n99\r\n");
    let mut data = &b"-ERR DB index is out of range\r\n"[..];
    let exchange = redis.open(&mut client.talk, &mut data, &mut out).unwrap_err();
    assert_eq!(exchange.sent, "SELECT 99");
    assert_eq!(exchange.received, "-ERR DB index is out of range\\r\\n");
}

#[test]
fn shows_an_incomplete_reply() {
    let (redis, mut store) = (redis(ONE_KEY, Destination::default()), Store::default());
    let mut client = Client::opened(&redis, 1, &mut store);
    client.ask(1, 0);
    assert_eq!(redis.unfinished(&client.cursor, &client.talk), None);
    client.take(b"+O", &[usize::MAX], 0).unwrap();
    let exchange = redis.unfinished(&client.cursor, &client.talk).unwrap();
    assert!(exchange.sent.contains("SET"), "{exchange:?}");
}

/// Returns a client that tolerates errors, and its store, after its first request failed with `reply`.
fn after_an_error<'d>(redis: &'d Redis, reply: &[u8], cut: usize) -> (Client<'d>, Store) {
    let mut store = Store::default();
    let mut client = Client::opened(redis, 1, &mut store);
    redis.tolerate(&mut client.desk);
    client.ask(1, 0);
    let exchange = client.take(reply, &[cut], 0).unwrap_err();
    assert_eq!((exchange.received.as_str(), exchange.reply_index), ("-DOWN node 2\\r\\n", 0));
    let used = redis.resume(&mut client.talk).unwrap();
    assert_eq!(used, (reply.len() - 1) % cut + 1, "of the last piece");
    assert_eq!((client.cursor.owed(), redis.resume(&mut client.talk)), (0, None));
    (client, store)
}

#[test]
fn after_a_tolerated_error_a_key_may_hold_any_value_written_to_it() {
    let redis = redis(ONE_KEY, Destination::default());
    let (mine, other) = (Owner::new(1, 0), Owner::new(2, 0));
    for (reply, is_right) in [
        (value(mine, 0, 0), true),
        (value(mine, 0, 1), true),
        (b"$-1\r\n".to_vec(), true),
        (value(mine, 0, 2), false),
        (value(mine, 1, 1), false),
        (value(other, 0, 1), false),
        (b"+OK\r\n".to_vec(), false),
    ] {
        for cut in [1, 5, usize::MAX] {
            let (mut client, mut store) = after_an_error(&redis, b"-DOWN node 2\r\n", cut);
            client.ask(1, 0);
            let taken = client.take(&reply, &[cut], 0);
            assert_eq!(taken.is_ok(), is_right, "{taken:?}");
            if is_right {
                // An acknowledged write does not end the doubt: the failed one may still be executed
                // after it.
                let set = store.answer(&client.ask(1, 0)).concat();
                assert_eq!(client.take(&set, &[cut], 0), Ok(1));
                client.ask(1, 0);
                assert_eq!(client.take(&value(mine, 0, 1), &[cut], 0), Ok(1));
            }
        }
    }
}

#[test]
fn replies_around_a_tolerated_error_stay_correct() {
    let text = "keys = 4\n[[request]]\nsteps = [{ command = 'DEL', keys_per_command = 2 },\n\
                { command = 'MGET', keys_per_command = 4 }, { command = 'DEL', keys_per_command = 4 },\n\
                { command = 'INCR' }, { command = 'INCR' }, { command = 'SET' }]";
    let (redis, mut store) = (redis(text, Destination::default()), Store::default());
    for failed in 0..6 {
        let mut client = Client::opened(&redis, failed, &mut store);
        redis.tolerate(&mut client.desk);
        for round in 0..3 {
            let mut replies = store.answer(&client.ask(6, 0));
            if round == 0 {
                replies[failed as usize] = b"-ERR\r\n".to_vec();
            }
            let stream = replies.concat();
            let mut rest = &stream[..];
            let mut right = 0;
            while !rest.is_empty() {
                match client.take(rest, &[usize::MAX], 0) {
                    Ok(replies) => {
                        right += replies;
                        break;
                    }
                    Err(exchange) => {
                        assert_eq!((exchange.reply_index, round), (failed.into(), 0));
                        right += exchange.reply_index;
                        rest = &rest[redis.resume(&mut client.talk).unwrap()..];
                    }
                }
            }
            assert_eq!((right, client.cursor.owed()), (6 - u64::from(round == 0), 0));
        }
    }
}
