//! The hub over TLS in seeded histories: real TLS clients whose bytes arrive in random pieces, who
//! read or do not, and who end their side in every way that TLS knows, at any moment.

use regatta_engine::{Conn, Core, Limits, Next, Now, Sessions, simulator::Random};
use regatta_proto::websocket::Frame;
use regatta_service::{
    hub::{Hub, Settings},
    tls::TlsSessionFactory,
};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, SupportedProtocolVersion,
    pki_types::{PrivateKeyDer, ServerName},
    version::{TLS12, TLS13},
};
use std::{
    collections::HashSet,
    io::{Read, Write},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

const HISTORIES: u64 = 400;
/// A history takes milliseconds; one that never ends is reported.
const LONGEST: Duration = Duration::from_secs(20);
/// Steps of the peer that ends its side.
const STEPS: usize = 40;
/// Bytes of a broadcast. A few of them fill the output of a member that does not read.
const SIZE: usize = 20_000;

const OPENING: &[u8] =
    b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// How a peer ends its side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Ends {
    /// With `close_notify`, as its TLS sends it.
    CloseNotify,
    /// With a `close_notify` in plaintext, whatever the state of its TLS.
    PlainCloseNotify,
    /// With a fatal alert in plaintext.
    FatalAlert,
    /// With bytes that are no record.
    NoRecord,
    /// By a Close frame.
    CloseFrame,
    /// Only by the end of its connection.
    Fin,
}

const ENDS: [Ends; 6] = [
    Ends::CloseNotify,
    Ends::PlainCloseNotify,
    Ends::FatalAlert,
    Ends::NoRecord,
    Ends::CloseFrame,
    Ends::Fin,
];

/// Bytes that a peer sends after it has ended its side.
const AFTER: [&[u8]; 5] = [
    b"",
    b"\x17",
    b"\x15\x03\x03\x00\x02\x01\x00",
    b"\x17\x03\x03\x00\x14twenty sealed bytes!\x17\x03",
    b"GET / HTTP/1.1\r\n\r\n",
];

type Hubs = Core<Sessions<TlsSessionFactory<Hub>>>;

struct Peer {
    conn: Conn,
    tls: ClientConnection,
    /// What it has sent and the hub has not received yet.
    sent: Vec<u8>,
    /// How many bytes it reads.
    reads: usize,
    /// Its TLS failed, because it was made to send what its TLS did not write.
    broken: bool,
    plain: Vec<u8>,
    /// The hub has closed its side.
    closed: bool,
}

impl Peer {
    fn new(core: &mut Hubs, trusts: &Arc<ClientConfig>) -> Peer {
        let name = ServerName::try_from("localhost").unwrap();
        let tls = ClientConnection::new(Arc::clone(trusts), name).unwrap();
        let conn = core.accept();
        let (sent, plain) = (Vec::new(), Vec::new());
        Peer { conn, tls, sent, reads: usize::MAX, broken: false, plain, closed: false }
    }

    fn say(&mut self, plain: &[u8]) {
        self.tls.writer().write_all(plain).unwrap();
    }

    fn flush(&mut self) {
        while !self.broken && self.tls.wants_write() {
            self.tls.write_tls(&mut self.sent).unwrap();
        }
    }

    /// Receives what the hub has written, if it reads.
    fn read(&mut self, core: &mut Hubs) {
        loop {
            match core.next(self.conn, &()) {
                Next::Write { .. } => {
                    let output = core.output(self.conn);
                    let read = output[..self.reads.min(output.len())].to_vec();
                    let all = read.len() == output.len();
                    core.wrote(self.conn, read.len());
                    self.reads -= read.len();
                    self.open(&read);
                    if !all {
                        return;
                    }
                }
                Next::ShutdownWrite => {
                    self.closed = true;
                    core.shutdown_completed(self.conn, true);
                }
                Next::Close => {
                    self.closed = true;
                    return core.closed(self.conn);
                }
                Next::Wait => return,
            }
        }
    }

    fn open(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.broken {
            let took = self.tls.read_tls(&mut bytes).unwrap();
            match self.tls.process_new_packets() {
                Ok(state) => {
                    let mut plain = vec![0; state.plaintext_bytes_to_read()];
                    self.tls.reader().read_exact(&mut plain).unwrap();
                    self.plain.extend_from_slice(&plain);
                    assert!(took > 0 || bytes.is_empty(), "the hub writes after its close_notify");
                }
                Err(_) => self.broken = true,
            }
        }
        self.flush();
    }

    /// Delivers up to this many bytes, if the hub reads. Returns whether some were delivered.
    fn deliver(&mut self, core: &mut Hubs, most: usize) -> bool {
        self.flush();
        self.read(core);
        if self.sent.is_empty() || !core.wants_read(self.conn) {
            return false;
        }
        let rest = self.sent.split_off(most.min(self.sent.len()));
        let mut piece = std::mem::replace(&mut self.sent, rest);
        core.received(self.conn, &mut piece);
        self.read(core);
        true
    }

    /// Exchanges everything in pieces of random sizes.
    fn settle(&mut self, core: &mut Hubs, random: &mut Random) {
        while self.deliver(core, random.magnitude(1, 1 << 15) as usize) {}
    }

    /// The numbers of the broadcasts that it has received, and the code of the Close frame.
    fn heard(&self) -> (Vec<usize>, Option<u16>) {
        let head = self.plain.windows(4).position(|four| four == b"\r\n\r\n");
        let mut rest = head.map_or(&[][..], |head| &self.plain[head + 4..]);
        let (mut numbers, mut code) = (Vec::new(), None);
        while let [first, length, ..] = rest {
            let (head, length) = match length {
                126 => (4, usize::from(u16::from_be_bytes([rest[2], rest[3]]))),
                length => (2, usize::from(*length)),
            };
            let payload = &rest[head..head + length];
            assert_eq!(code, None, "a frame follows the Close frame");
            match first & 15 {
                8 => code = Some(u16::from_be_bytes([payload[0], payload[1]])),
                1 if payload.starts_with(br#"{"type":"broadcast","#) => {
                    let text = std::str::from_utf8(payload).unwrap();
                    numbers.push(text.split(['"', ':', '.']).nth(9).unwrap().parse().unwrap());
                }
                _ => {}
            }
            rest = &rest[head + length..];
        }
        (numbers, code)
    }
}

fn message(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    Frame::text(text.as_bytes()).write_masked([1, 2, 3, 4], &mut out);
    out
}

fn broadcast(number: usize) -> Vec<u8> {
    message(&format!(r#"{{"type":"broadcast","payload":"{number}.{}"}}"#, "x".repeat(SIZE)))
}

/// What the histories visited.
#[derive(Default)]
struct Visited {
    ends: HashSet<(Ends, bool, bool)>,
    backlogs_after_close_notify: usize,
}

/// A sender and a reader that stay, and a peer that ends its side in a random way.
#[expect(clippy::too_many_lines, reason = "one history, from its plan to its end")]
fn history(
    seed: u64,
    server: &Arc<ServerConfig>,
    clients: &[Arc<ClientConfig>],
    visited: &mut Visited,
) {
    let mut random = Random::new(seed);
    let now = Now { instant: Instant::now(), unix_s: 1_000_000_000 };
    let start = TlsSessionFactory::new(Hub::new(Settings::default()), Arc::clone(server));
    let mut core = Core::new(Sessions::new(start), Limits::default(), now);
    let (mut sender, mut reader, mut peer) = {
        let mut peer = || Peer::new(&mut core, &random.pick(&[0, 1].map(|i| &clients[i])).clone());
        (peer(), peer(), peer())
    };
    for one in [&mut sender, &mut reader] {
        one.say(OPENING);
        one.settle(&mut core, &mut random);
    }
    let way = random.pick(&ENDS);
    // A few pieces of its handshake are enough for an end within it.
    let steps = if random.chance(300) { 6 } else { STEPS };
    let at = random.below(steps);
    // It sends few bytes at a time, or is a slow consumer.
    let (small, slow) = (random.chance(300), random.chance(400));
    let mut sent = 0;
    // The broadcasts that it is owed: those after its first answer and before its end.
    let (mut from, mut owed) = (None, 0..0);
    peer.say(OPENING);
    peer.say(&message(r#"{"type":"echo","payload":1}"#));
    let mut shook = false;
    for step in 0..STEPS {
        if step == at {
            peer.flush();
            shook = !peer.tls.is_handshaking();
            owed = from.map_or(0..0, |from| from..sent);
            match way {
                Ends::CloseNotify => peer.tls.send_close_notify(),
                Ends::PlainCloseNotify => peer.sent.extend(b"\x15\x03\x03\x00\x02\x01\x00"),
                Ends::FatalAlert => peer.sent.extend(b"\x15\x03\x03\x00\x02\x02\x28"),
                Ends::NoRecord => peer.sent.extend(b"\xff\xff\xff\xff\xff\xff"),
                Ends::CloseFrame => {
                    let mut close = Vec::new();
                    regatta_proto::websocket::CloseCode::NORMAL.write("", &mut close);
                    close[1] |= 0x80;
                    close.splice(2..2, [0; 4]);
                    peer.say(&close);
                }
                Ends::Fin => {}
            }
            peer.flush();
            // What its TLS did not write does not fit to the hub's answers.
            peer.broken |=
                matches!(way, Ends::PlainCloseNotify | Ends::FatalAlert | Ends::NoRecord);
            let after = random.pick(&AFTER);
            let is_close = matches!(way, Ends::CloseNotify | Ends::PlainCloseNotify);
            if is_close && shook && core.output(peer.conn).len() > 2 * SIZE && !after.is_empty() {
                visited.backlogs_after_close_notify += 1;
            }
            visited.ends.insert((way, shook, !after.is_empty()));
            if way != Ends::CloseFrame && way != Ends::Fin {
                peer.sent.extend(after);
            }
        }
        if from.is_none() && peer.plain.windows(4).any(|four| four == b"echo") {
            from = Some(sent);
        }
        let slow = slow && from.is_some();
        if slow {
            let some = random.magnitude(1 << 12, 1 << 16) as usize;
            peer.reads = if step < at { 0 } else { some };
        }
        match if slow && step < at { 0 } else { random.below(4) } {
            0 => {
                sender.say(&broadcast(sent));
                sent += 1;
                sender.settle(&mut core, &mut random);
            }
            1 if !slow => {
                let some = random.magnitude(1, 1 << 18) as usize;
                peer.reads = random.pick(&[0, some, some, usize::MAX / 2]);
            }
            _ => {
                let ending = step > at && random.chance(500);
                let most = random.magnitude(1, if small || ending { 8 } else { 1 << 15 }) as usize;
                peer.deliver(&mut core, most);
            }
        }
        reader.settle(&mut core, &mut random);
        peer.read(&mut core);
    }
    let (heard, code) = reader.heard();
    assert_eq!((heard, code), ((0..sent).collect(), None), "history {seed}: the reader");
    assert!(!reader.closed && !sender.closed, "history {seed}: only the peer ends");
    // All of its bytes arrive, it reads everything, and its connection ends.
    peer.reads = usize::MAX;
    peer.settle(&mut core, &mut random);
    if way == Ends::CloseNotify && shook {
        let (_, code) = peer.heard();
        assert!(peer.closed && code.is_some(), "history {seed}: {way:?} is answered");
    }
    core.ended(peer.conn);
    peer.read(&mut core);
    assert!(peer.closed, "history {seed}: {way:?} closes the connection");
    if !peer.broken {
        let (heard, _) = peer.heard();
        let first = heard.first().copied().unwrap_or(0);
        assert_eq!(heard, (first..first + heard.len()).collect::<Vec<_>>(), "history {seed}");
        let all = owed.end == owed.start || first <= owed.start && owed.end <= first + heard.len();
        assert!(all || way == Ends::CloseFrame, "history {seed}: {owed:?} of {heard:?}");
    }
    assert_eq!(core.clients(), 2, "history {seed}");
}

#[test]
fn every_end_of_a_tls_client_closes_its_connection_and_disturbs_nobody() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let chain = vec![made.cert.der().clone()];
    let server =
        ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap();
    let server = Arc::new(server);
    let client = |version: &'static SupportedProtocolVersion| {
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let client = ClientConfig::builder_with_protocol_versions(&[version]);
        Arc::new(client.with_root_certificates(roots).with_no_client_auth())
    };
    let clients = [client(&TLS12), client(&TLS13)];
    let (report, reports) = mpsc::channel();
    let histories = thread::spawn(move || {
        let mut visited = Visited::default();
        for seed in 0..HISTORIES {
            report.send(seed).unwrap();
            history(seed, &server, &clients, &mut visited);
        }
        visited
    });
    let mut last = None;
    loop {
        match reports.recv_timeout(LONGEST) {
            Ok(seed) => last = Some(seed),
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("history {last:?} never ends"),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    let visited = histories.join().expect("every history holds");
    println!(
        "{HISTORIES} histories; {} kinds of ends, {} with a backlog at close_notify",
        visited.ends.len(),
        visited.backlogs_after_close_notify
    );
    // Each way to end, in the handshake and after it, with bytes after it and without.
    assert_eq!(visited.ends.len(), 4 * ENDS.len());
    assert!(visited.backlogs_after_close_notify > 0);
}
