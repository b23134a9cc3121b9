//! A client that leaves its replies unread.

use super::{client, models, sharded, support::until};
use regatta_proto::resp::write_command;
use std::io::{ErrorKind, Write};

/// Bytes of the value that is asked for again and again.
const VALUE: usize = 100_000;

#[test]
fn three_hundred_megabytes_unread_cost_at_most_the_bound() {
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
        bad.stream.set_nonblocking(true).expect("it can be");
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
        until("the memory is given back", || proxy.memory().saturating_sub(before) < 8 << 20);
    }
}
