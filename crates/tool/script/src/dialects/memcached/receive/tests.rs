//! Correct replies pass and a changed byte is found, however replies are split.

use super::*;
use crate::{cursor::Cursor, pieces, script::Conversations};
use proptest::prelude::*;

const PIPELINE: u32 = 20;
/// The reply to each exchange, and whether it is known to the byte. If not, a value of `k` or none is
/// expected.
const REPLIES: [(&str, bool); 6] = [
    ("STORED\r\n", true),
    ("VALUE k 0 3\r\n\r\n0\r\nEND\r\n", false),
    ("END\r\n", true),
    ("END\r\n", false),
    ("VALUE k 0 0\r\n\r\nEND\r\n", true),
    ("VALUE k 12 5\r\nEND\r\n\r\nEND\r\n", false),
];

fn cache() -> Memcached {
    let (mut script, mut expectations) = (Script::new(Conversations::Each(1)), Vec::new());
    for (i, (reply, is_known)) in REPLIES.iter().enumerate() {
        let request = format!("get {i}\r\n");
        let due = if *is_known { reply } else { "k" };
        script.push(request.as_bytes(), due.as_bytes());
        expectations.push(if *is_known { Expectation::Exact } else { Expectation::Either });
    }
    script.close(PIPELINE as usize).unwrap();
    Memcached::new(script, expectations)
}

fn right(start: u32, k: u32) -> Vec<u8> {
    let reply = |i: u32| REPLIES[i as usize % REPLIES.len()].0;
    (start..start + k).flat_map(|i| reply(i).bytes()).collect()
}

/// Returns how many replies were correct, or the exchange that was not.
fn verdict(
    cache: &Memcached,
    (start, k): (u32, u32),
    stream: &[u8],
    cuts: &[usize],
) -> Result<u64, Box<Exchange>> {
    let (mut cursor, mut talk) = (Cursor::new(&cache.script, start), cache.talk(0));
    cursor.ask(k);
    cursor.wrote(cursor.unsent(&cache.script).len());
    let complete = pieces::receive(stream, cuts, |data| {
        let at = At { cursor: &mut cursor, talk: &mut talk, desk: &mut () };
        cache.receive(at, data, 0, &mut ())
    })?;
    assert_eq!(u64::from(cursor.owed()), u64::from(k) - complete);
    Ok(complete)
}

proptest! {
    #[test]
    fn correct_replies_pass_however_they_are_split(
        asked in (0..REPLIES.len() as u32, 1..=PIPELINE),
        cuts in prop::collection::vec(1..40_usize, 1..40),
    ) {
        let verdict = verdict(&cache(), asked, &right(asked.0, asked.1), &cuts);
        prop_assert_eq!(verdict, Ok(asked.1.into()));
    }

    /// In a value that may be anything, a changed byte is not an error.
    #[test]
    fn finds_one_changed_byte_of_a_known_reply(
        (start, k) in (0..REPLIES.len() as u32, 1..=PIPELINE),
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        change in 1..=255_u8,
        cuts in prop::collection::vec(1..40_usize, 1..40),
    ) {
        let known: Vec<u32> =
            (0..k).filter(|i| REPLIES[(start + i) as usize % REPLIES.len()].1).collect();
        prop_assume!(!known.is_empty());
        let wrong = known[which.index(known.len())];
        let begins = right(start, wrong).len();
        let mut stream = right(start, k);
        stream[begins + at.index(right(start + wrong, 1).len())] ^= change;
        let exchange = verdict(&cache(), (start, k), &stream, &cuts).unwrap_err();
        prop_assert_eq!(exchange.reply_index, u64::from(wrong));
    }
}

#[test]
fn reports_a_wrong_reply_with_the_expected_one() {
    let cache = cache();
    for cuts in [&[1][..], &[7], &[100]] {
        let report = |start, stream: &str| {
            let Exchange { sent, expected, received, reply_index } =
                *verdict(&cache, (start, 2), stream.as_bytes(), cuts).unwrap_err();
            (sent, expected, received, reply_index)
        };
        let is = |sent: &str, expected: &str, received: &str, index| {
            (sent.to_owned(), expected.to_owned(), received.to_owned(), index)
        };
        let (sent, expected, received, _) = report(0, "SERVER_ERROR out of memory\r\n");
        assert_eq!((sent.as_str(), expected.as_str()), ("get 0\\r\\n", "STORED\\r\\n"));
        // The first wrong byte of a known reply is reported at once.
        assert!("SERVER_ERROR out of memory\\r\\n".starts_with(&received), "{received}");
        let either = "a value of k or none";
        let stream = "STORED\r\nVALUE x 0 1\r\n";
        assert_eq!(report(0, stream), is("get 1\\r\\n", either, "VALUE x 0 1\\r\\n", 1));
        let unsolicited = report(2, "END\r\nEND\r\nmore\r\n");
        assert_eq!((unsolicited.0.as_str(), unsolicited.3), ("get 3\\r\\n", 2));
    }
}

#[test]
fn shows_the_received_part_of_an_incomplete_reply() {
    let cache = cache();
    let value = "VALUE k 0 3\r\n";
    for (start, came, received) in [
        (0, "".into(), None),
        (0, "STO".into(), Some("STO")),
        // Complete, and the next one has not begun.
        (0, "STORED\r\n".into(), None),
        (0, "STORED\r\nVALU".into(), Some("VALU")),
        (1, value.into(), Some("part of a value; bytes missing, with its CR LF: 5")),
        (1, format!("{value}\r\n0\r"), Some("part of a value; bytes missing, with its CR LF: 1")),
        (1, format!("{value}\r\n0\r\n"), Some("a value, without the END after it")),
        (1, format!("{value}\r\n0\r\nEND\r"), Some("a value, without the END after it")),
        (1, format!("{value}\r\n0\r\nEND\r\n"), None),
        (3, "EN".into(), Some("EN")),
        (4, "VALUE k 0 0\r\n".into(), Some("VALUE k 0 0\\r\\n")),
    ] {
        for pieces in [1, 2, 100] {
            let (mut cursor, mut talk) = (Cursor::new(&cache.script, start), cache.talk(0));
            cursor.ask(2);
            cursor.wrote(cursor.unsent(&cache.script).len());
            for piece in came.as_bytes().chunks(pieces) {
                let at = At { cursor: &mut cursor, talk: &mut talk, desk: &mut () };
                cache.receive(at, piece, 0, &mut ()).unwrap();
            }
            let part = cache.unfinished(&cursor, &talk);
            assert_eq!(part.as_ref().map(|part| part.received.as_str()), received, "{came:?}");
            let sent = format!("get {}\\r\\n", cursor.answered());
            assert!(part.is_none_or(|part| part.sent == sent && part.reply_index == 0));
        }
    }
}

#[test]
fn does_not_allocate_per_reply() {
    let cache = cache();
    let (mut cursor, mut talk) = (Cursor::new(&cache.script, 0), cache.talk(0));
    let stream = right(0, REPLIES.len() as u32);
    let mut round = |pieces: usize| {
        cursor.ask(REPLIES.len() as u32);
        cursor.wrote(cursor.unsent(&cache.script).len());
        for piece in stream.chunks(pieces) {
            let at = At { cursor: &mut cursor, talk: &mut talk, desk: &mut () };
            cache.receive(at, piece, 0, &mut ()).unwrap();
        }
        assert_eq!(cursor.owed(), 0);
    };
    round(3);
    let counted = allocation_counter::measure(|| [1, 3, 1_000].into_iter().for_each(&mut round));
    assert_eq!(counted.count_total, 0);
}
