//! Replies that are known to the byte.

use super::*;
use crate::{pieces, script::Conversations};
use proptest::prelude::*;
use std::sync::LazyLock;

const PIPELINE: u32 = 512;
const EXCHANGES: u32 = 1 << 10;

/// Numbers of 1 to 15 digits, doubled.
static DOUBLE: LazyLock<Exact> = LazyLock::new(|| {
    let mut script = Script::new(Conversations::Each(1));
    for i in 0..EXCHANGES {
        let n = u64::from(i) << (i % 40);
        script.push(format!("{n}\n").as_bytes(), format!("{}\n", n * 2).as_bytes());
    }
    script.close(PIPELINE as usize).unwrap();
    Exact::new(script)
});

/// A cursor at `start`, with `k` requests written.
fn asked(start: u32, k: u32) -> Cursor {
    let mut cursor = Cursor::new(&DOUBLE.script, start);
    cursor.ask(k);
    cursor.wrote(cursor.unsent(&DOUBLE.script).len());
    cursor
}

fn replies(start: u32, k: u32) -> Vec<u8> {
    (start..start + k).flat_map(|i| DOUBLE.script.reply(i)).copied().collect()
}

fn receive(cursor: &mut Cursor, data: &[u8]) -> Result<u32, Box<Exchange>> {
    DOUBLE.receive(At { cursor, talk: &mut (), desk: &mut () }, data, 0, &mut ())
}

proptest! {
    #[test]
    fn correct_replies_pass_however_they_are_split(
        start in 0..EXCHANGES,
        asks in prop::collection::vec(1..PIPELINE, 1..6),
        cuts in prop::collection::vec(1..200_usize, 1..400),
    ) {
        let mut cursor = Cursor::new(&DOUBLE.script, start);
        let (mut sent, mut next_cut) = (start, cuts.iter().cycle());
        for k in asks {
            cursor.ask(k);
            cursor.wrote(cursor.unsent(&DOUBLE.script).len());
            let stream = replies(sent % EXCHANGES, k);
            let (mut rest, mut complete) = (&stream[..], 0);
            while !rest.is_empty() {
                let (data, left) = rest.split_at((*next_cut.next().unwrap()).min(rest.len()));
                complete += receive(&mut cursor, data).unwrap();
                rest = left;
                let whole = stream.len() - left.len();
                let due = stream[..whole].iter().filter(|b| **b == b'\n').count();
                prop_assert_eq!(complete, due as u32);
            }
            prop_assert_eq!(cursor.owed(), 0);
            sent += k;
        }
    }

    #[test]
    fn finds_one_changed_byte_however_the_stream_is_split(
        start in 0..EXCHANGES,
        k in 1..PIPELINE,
        at in any::<prop::sample::Index>(),
        flip in 1..=255_u8,
        cuts in prop::collection::vec(1..200_usize, 1..400),
    ) {
        let mut cursor = asked(start, k);
        let mut stream = replies(start, k);
        let at = at.index(stream.len());
        stream[at] ^= flip;
        let wrong = stream[..at].iter().filter(|b| **b == b'\n').count();
        let exchange = pieces::receive(&stream, &cuts, |data| receive(&mut cursor, data));
        let exchange = exchange.expect_err("the changed byte was not noticed");
        prop_assert_eq!(exchange.reply_index, wrong as u64);
        let index = start + wrong as u32;
        prop_assert_eq!(exchange.sent, printable(DOUBLE.script.request(index)));
        prop_assert_eq!(exchange.expected, printable(DOUBLE.script.reply(index)));
    }
}

#[test]
fn shows_the_whole_wrong_reply_when_it_arrives_in_two_pieces() {
    let mut cursor = asked(1, 1);
    assert_eq!(DOUBLE.script.request(1), b"2\n");
    assert_eq!(receive(&mut cursor, b"4"), Ok(0));
    let exchange = receive(&mut cursor, b".0\n99\n").unwrap_err();
    let text = |s: &str| s.to_owned();
    let (sent, expected, received) = (text("2\\n"), text("4\\n"), text("4.0\\n"));
    assert_eq!(*exchange, Exchange { sent, expected, received, reply_index: 0 });
}

#[test]
fn bytes_after_the_last_reply_are_unsolicited() {
    let mut cursor = asked(0, 1);
    let exchange = receive(&mut cursor, b"0\n0\n").unwrap_err();
    assert_eq!((exchange.sent.as_str(), exchange.received.as_str()), ("0\\n", "0\\n"));
    assert!(exchange.expected.starts_with("nothing more"), "{exchange:?}");
    assert_eq!(exchange.reply_index, 1);
    assert_eq!(receive(&mut cursor, b"0\n"), Ok(1));
    assert!(receive(&mut cursor, b"!").is_err());
}

#[test]
fn a_reply_to_a_half_written_request_is_unsolicited() {
    let mut cursor = Cursor::new(&DOUBLE.script, 0);
    cursor.ask(2);
    cursor.wrote(cursor.unsent(&DOUBLE.script).len() - 1);
    assert!(receive(&mut cursor, &replies(0, 2)).is_err());
    assert_eq!(receive(&mut cursor, &replies(0, 1)), Ok(1));
    cursor.wrote(1);
    assert_eq!(receive(&mut cursor, &replies(1, 1)), Ok(1));
}
