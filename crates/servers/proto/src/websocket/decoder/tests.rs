//! Messages that are split, fragmented and compressed in any way, and violations.

use super::super::{Deflate, DeflateSettings, Frame};
use super::*;
use proptest::prelude::*;
use regatta_testkit::pieces::pieces;

/// An event with owned contents.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Received {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<(u16, String)>),
}

impl From<Event<'_>> for Received {
    fn from(event: Event<'_>) -> Self {
        match event {
            Event::Text(text) => Received::Text(text.into()),
            Event::Binary(bytes) => Received::Binary(bytes.into()),
            Event::Ping(bytes) => Received::Ping(bytes.into()),
            Event::Pong(bytes) => Received::Pong(bytes.into()),
            Event::Close(why) => Received::Close(why.map(|(code, reason)| (code.0, reason.into()))),
        }
    }
}

/// Decodes bytes that arrive in these pieces. Returns all events, and the code of a violation.
fn decode(mut decoder: Decoder, bytes: &[u8], cuts: &[usize]) -> (Vec<Received>, Option<u16>) {
    let (mut held, mut received) = (Vec::new(), Vec::new());
    for piece in pieces(bytes, cuts) {
        held.extend_from_slice(piece);
        loop {
            let (taken, event) = match decoder.next(&mut held) {
                Ok((taken, event)) => (taken, event.map(Received::from)),
                Err(violation) => {
                    assert_eq!(
                        decoder.next(&mut [1, 2, 3]),
                        Ok((3, None)),
                        "no event after a violation"
                    );
                    return (received, Some(violation.code.0));
                }
            };
            let is_message = matches!(event, Some(Received::Text(_) | Received::Binary(_)));
            assert!(!(is_message && decoder.is_inside()), "inside after the end of a message");
            let goes_on = taken > 0 || event.is_some();
            held.drain(..taken);
            received.extend(event);
            if !goes_on {
                break;
            }
        }
        assert!(held.len() <= Frame::MAX_HEADER + MAX_CONTROL, "{} bytes not taken", held.len());
    }
    (received, None)
}

fn server() -> Decoder {
    Decoder::new(Role::Server, 1 << 20)
}

fn client() -> Decoder {
    Decoder::new(Role::Client, 1 << 20)
}

fn whole(decoder: Decoder, bytes: &[u8]) -> (Vec<Received>, Option<u16>) {
    decode(decoder, bytes, &[usize::MAX])
}

/// A message, the ends of its fragments, and the control frames before its first fragments, at most
/// one before each.
#[derive(Clone, Debug)]
struct Sent {
    received: Received,
    cuts: Vec<prop::sample::Index>,
    between: Vec<Received>,
}

fn sent() -> impl Strategy<Value = Sent> {
    let bytes = |most| proptest::collection::vec(any::<u8>(), 0..most);
    let message = prop_oneof![
        any::<String>().prop_map(Received::Text),
        "[a-z€é]{0,300}".prop_map(Received::Text),
        // Generated from one number: generating each byte would take most of the test's time.
        (0..70_000_u32, any::<u8>()).prop_map(|(length, first)| {
            Received::Binary((0..length).map(|n| first.wrapping_add((n * 31 / 7) as u8)).collect())
        }),
        bytes(300).prop_map(Received::Binary),
    ];
    let control =
        prop_oneof![bytes(126).prop_map(Received::Ping), bytes(126).prop_map(Received::Pong)];
    let cuts = proptest::collection::vec(any::<prop::sample::Index>(), 0..4);
    (message, cuts, proptest::collection::vec(control, 0..3))
        .prop_map(|(received, cuts, between)| Sent { received, cuts, between })
}

/// Writes a message in fragments. Returns the expected events, in order.
fn write(
    sent: &Sent,
    mask: Option<[u8; 4]>,
    deflate: Option<&mut Deflate>,
    out: &mut Vec<u8>,
) -> Vec<Received> {
    let put = |frame: Frame<'_>, out: &mut Vec<u8>| match mask {
        Some(mask) => frame.write_masked(mask, out),
        None => frame.write(out),
    };
    let (opcode, payload) = match &sent.received {
        Received::Text(text) => (Opcode::Text, text.as_bytes()),
        Received::Binary(bytes) => (Opcode::Binary, &bytes[..]),
        other => panic!("{other:?} is not a message"),
    };
    let (mut compressed, is_compressed) = (Vec::new(), deflate.is_some());
    let payload = match deflate {
        Some(deflate) => {
            deflate.message(payload, &mut compressed);
            &compressed[..]
        }
        None => payload,
    };
    let mut cuts: Vec<usize> = sent.cuts.iter().map(|cut| cut.index(payload.len() + 1)).collect();
    cuts.sort_unstable();
    let (mut from, mut due) = (0, Vec::new());
    for (n, until) in cuts.iter().copied().chain([payload.len()]).enumerate() {
        if let Some(between) = sent.between.get(n) {
            match between {
                Received::Ping(bytes) => put(Frame::ping(bytes), out),
                Received::Pong(bytes) => put(Frame::pong(bytes), out),
                other => panic!("{other:?} is not a control frame"),
            }
            due.push(between.clone());
        }
        let opcode = if n == 0 { opcode } else { Opcode::Continuation };
        let (fin, compressed) = (n == cuts.len(), is_compressed && n == 0);
        put(Frame { opcode, fin, compressed, payload: &payload[from..until] }, out);
        from = until;
    }
    due.push(sent.received.clone());
    due
}

/// The other library's input and output.
#[derive(Default)]
struct Wire {
    reads: std::io::Cursor<Vec<u8>>,
    written: Vec<u8>,
}

impl std::io::Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.reads.read(into)
    }
}

impl std::io::Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.written.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn messages_are_decoded_as_they_were_written_however_they_are_split(
        messages in proptest::collection::vec(sent(), 1..6),
        mask: Option<[u8; 4]>,
        deflates: bool,
        cuts in proptest::collection::vec(prop_oneof![1usize..20, 1usize..5000], 1..20),
    ) {
        let settings = DeflateSettings::default();
        let role = if mask.is_some() { Role::Server } else { Role::Client };
        let mut deflate = deflates.then(|| Deflate::new(role, settings));
        let (mut bytes, mut due) = (Vec::new(), Vec::new());
        for message in &messages {
            due.extend(write(message, mask, deflate.as_mut(), &mut bytes));
        }
        let decoder = || {
            let decoder = Decoder::new(role, 1 << 20);
            if deflates { decoder.inflating(settings) } else { decoder }
        };
        prop_assert_eq!(decode(decoder(), &bytes, &cuts), (due.clone(), None));
        prop_assert_eq!(whole(decoder(), &bytes), (due, None));
    }

    /// Random input neither panics nor hangs, and the split makes no difference.
    #[test]
    fn random_input_gives_the_same_events_however_it_is_split(
        bytes in proptest::collection::vec(
            prop_oneof![any::<u8>(), prop::sample::select(&[0x81, 0x82, 0x01, 0x80, 0x89, 0x00, 0x7e][..])],
            0..300,
        ),
        cuts in proptest::collection::vec(1usize..9, 1..9),
        role in prop::sample::select(&[Role::Server, Role::Client][..]),
    ) {
        let decoder = || Decoder::new(role, 1000);
        let (received, code) = decode(decoder(), &bytes, &cuts);
        let (all, all_code) = whole(decoder(), &bytes);
        // Invalid text is refused before its frame is complete.
        match (code, all_code) {
            (Some(1007), None) => prop_assert!(all.starts_with(&received)),
            _ => prop_assert_eq!((received, code), (all, all_code)),
        }
    }

    /// tungstenite decodes our frames, and we decode its frames.
    #[test]
    fn another_library_agrees(messages in proptest::collection::vec(sent(), 1..5), from_client: bool) {
        use tungstenite::{Message, WebSocket, protocol};
        let (reads, writes, mask) = match from_client {
            true => (protocol::Role::Server, protocol::Role::Client, Some([1, 2, 3, 4])),
            false => (protocol::Role::Client, protocol::Role::Server, None),
        };
        let (mut bytes, mut due) = (Vec::new(), Vec::new());
        for message in &messages {
            due.extend(write(message, mask, None, &mut bytes));
        }
        let wire = Wire { reads: std::io::Cursor::new(bytes), ..Wire::default() };
        let mut socket = WebSocket::from_raw_socket(wire, reads, None);
        let mut theirs = Vec::new();
        while theirs.len() < due.len() {
            theirs.push(match socket.read() {
                Ok(Message::Text(text)) => Received::Text(text.to_string()),
                Ok(Message::Binary(bytes)) => Received::Binary(bytes.to_vec()),
                Ok(Message::Ping(bytes)) => Received::Ping(bytes.to_vec()),
                Ok(Message::Pong(bytes)) => Received::Pong(bytes.to_vec()),
                other => panic!("{other:?}"),
            });
        }
        prop_assert_eq!(&theirs, &due);

        let mut socket = WebSocket::from_raw_socket(Wire::default(), writes, None);
        let only: Vec<Received> = messages.iter().map(|message| message.received.clone()).collect();
        for message in &only {
            let message = match message {
                Received::Text(text) => Message::text(text.clone()),
                Received::Binary(bytes) => Message::binary(bytes.clone()),
                other => panic!("{other:?} is not a message"),
            };
            socket.send(message).unwrap();
        }
        let written = socket.get_ref().written.clone();
        let decoder = if from_client { server() } else { client() };
        prop_assert_eq!(whole(decoder, &written), (only, None));
    }
}

#[test]
fn refuses_fragments_that_are_out_of_order() {
    let continued = [0x80, 0];
    assert_eq!(whole(client(), &continued).1, Some(1002));
    let inside_another = [0x01, 0, 0x81, 0];
    assert_eq!(whole(client(), &inside_another).1, Some(1002));
    let fine = [0x01, 1, b'a', 0x89, 0, 0x80, 1, b'b'];
    assert_eq!(
        whole(client(), &fine),
        (vec![Received::Ping(vec![]), Received::Text("ab".into())], None)
    );
}

#[test]
fn invalid_utf8_is_refused_before_its_frame_is_complete() {
    // A text of 100 bytes whose second byte is invalid.
    assert_eq!(whole(client(), &[0x81, 100, b'a', 0xff]).1, Some(1007));
    assert_eq!(whole(client(), &[0x01, 1, 0xc3, 0x80, 1, b'a']).1, Some(1007));
    assert_eq!(whole(client(), &[0x81, 1, 0xc3]).1, Some(1007), "it ends inside a character");
    assert_eq!(whole(client(), &[0x01, 1, 0xc3, 0x80, 0]).1, Some(1007));
    let bytes = [0x82, 2, 0xff, 0xff];
    assert_eq!(whole(client(), &bytes), (vec![Received::Binary(vec![0xff; 2])], None));
}

#[test]
fn a_message_over_the_limit_is_refused_by_its_header() {
    let decoder = || Decoder::new(Role::Client, 10);
    assert_eq!(whole(decoder(), &[0x82, 11]).1, Some(1009));
    assert_eq!(whole(decoder(), &[0x82, 127, 0, 0, 1, 0, 0, 0, 0, 0]).1, Some(1009));
    let fragments = [&[0x02, 6, 1, 2, 3, 4, 5, 6][..], &[0x80, 5]].concat();
    assert_eq!(whole(decoder(), &fragments).1, Some(1009));
    let just = [&[0x02, 6, 1, 2, 3, 4, 5, 6][..], &[0x80, 4, 7, 8, 9, 10]].concat();
    assert_eq!(whole(decoder(), &just).0, [Received::Binary((1..=10).collect())]);
    // A compressed message counts with its inflated size.
    let settings = DeflateSettings::default();
    let mut compressed = Vec::new();
    Deflate::new(Role::Client, settings).message(&[7; 11], &mut compressed);
    let mut bytes = Vec::new();
    Frame { compressed: true, ..Frame::binary(&compressed) }.write(&mut bytes);
    assert_eq!(whole(decoder().inflating(settings), &bytes).1, Some(1009));
}

#[test]
fn a_close_frame_is_the_last_event() {
    let mut bytes = Vec::new();
    CloseCode::GOING_AWAY.write("bye", &mut bytes);
    Frame::ping(b"late").write(&mut bytes);
    let close = Received::Close(Some((1001, "bye".into())));
    assert_eq!(whole(client(), &bytes), (vec![close], None));
    assert_eq!(whole(client(), &[0x88, 0]), (vec![Received::Close(None)], None));
    assert_eq!(whole(client(), &[0x88, 2, 3, 0xed]).1, Some(1002), "1005 must not be sent");
    assert_eq!(whole(client(), &[0x88, 1, 3]).1, Some(1002));
}

#[test]
fn an_idle_connection_holds_no_long_message() {
    let mut decoder = client();
    let mut bytes = Vec::new();
    Frame::binary(&[7; 100_000]).write(&mut bytes);
    let (first, second) = bytes.split_at_mut(50_000);
    assert_eq!(decoder.next(first), Ok((50_000, None)));
    assert!(matches!(decoder.next(second), Ok((50_014 | 50_010, Some(Event::Binary(_))))));
    assert!(decoder.held() >= 100_000);
    assert_eq!(decoder.next(&mut []), Ok((0, None)));
    assert!(decoder.held() <= KEPT, "{}", decoder.held());
}

#[test]
fn it_is_inside_a_message_from_its_first_frame_to_its_last_byte() {
    let mut decoder = client();
    let mut steps = |bytes: &[u8], event: bool| {
        let (taken, received) =
            decoder.next(&mut bytes.to_vec()).map(|(n, e)| (n, e.is_some())).unwrap();
        assert_eq!((taken, received), (bytes.len(), event));
        decoder.is_inside()
    };
    assert!(!steps(&[0x89, 0], true), "a ping");
    assert!(steps(&[0x01, 2, b'a'], false), "half a frame");
    assert!(steps(b"b", false), "the first frame of two");
    assert!(steps(&[0x89, 0], true), "a ping between the frames");
    assert!(steps(&[0x80, 1], false), "the header of the last");
    assert!(!steps(b"c", true));
    assert!(!steps(&[0x82, 1, b'd'], true), "all at once");
    assert!(!steps(&[0x88, 0], true), "a Close frame");
}
