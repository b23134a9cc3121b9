//! The HTTP services over HTTP/2. The model knows all frames, and the answer to each except for the time in
//! it.

use super::{
    http::{
        CONTENT, DATE, DATE_BYTES, NOTHING, PENDING, SECONDS, SECONDS_BYTES, check_time,
        hex_digests, same_except_times, same_replies,
    },
    never, requests,
};
use regatta_engine::{
    Flow, Job, Now, Sessions,
    simulator::{Expected, Fault, Random, Scenario, Visit, assert_finds, assert_holds},
};
use regatta_http2::{
    ErrorCode,
    frame::{Header, Kind, flag, write},
};
use regatta_service::{
    ServiceProgram,
    hash::Hash,
    hello::Hello,
    http::Resource,
    http2::{Form, Site},
};
use regatta_testkit::by_tier;
use std::{
    collections::{BTreeMap, VecDeque},
    io,
    ops::Range,
    path::Path,
    time::{Duration, Instant},
};

fn histories() -> u64 {
    by_tier(2_000, 20_000)
}

fn frame(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Header { length: payload.len() as u32, kind, flags, stream }.write(&mut out);
    out.extend_from_slice(payload);
    out
}

/// A literal of a name in the static table, up to index 15 or above.
fn literal(index: u8, value: &[u8]) -> Vec<u8> {
    let index = if index < 15 { vec![index] } else { vec![0x0f, index - 15] };
    [&index, &[value.len() as u8][..], value].concat()
}

/// The frames of a request and of its reply, without their stream.
struct Known {
    request: Vec<u8>,
    reply: Vec<u8>,
}

/// `GET` or `POST` of a path, with content or none; and the index of the status, further fields, and the
/// content of the reply.
fn known(
    (method, path, sent): (u8, &str, &[u8]),
    (status, fields, content): (u8, &[u8], &[u8]),
    is_head: bool,
) -> Known {
    let method = if is_head { literal(2, b"HEAD") } else { vec![0x80 | method] };
    let block = [&method[..], &[0x86], &literal(4, path.as_bytes()), &literal(1, b"a")].concat();
    let ends = if sent.is_empty() { flag::END_STREAM } else { 0 };
    let mut request = frame(Kind::HEADERS, flag::END_HEADERS | ends, 0, &block);
    if !sent.is_empty() {
        request.extend(frame(Kind::DATA, flag::END_STREAM, 0, sent));
    }
    let block = [
        &if status < 15 { vec![0x80 | status] } else { literal(8, b"405") }[..],
        &literal(33, &[DATE; DATE_BYTES]),
        fields,
        &literal(31, b"text/plain"),
        &literal(28, content.len().to_string().as_bytes()),
    ]
    .concat();
    let ends = if is_head { flag::END_STREAM } else { 0 };
    let mut reply = frame(Kind::HEADERS, flag::END_HEADERS | ends, 0, &block);
    if !is_head {
        reply.extend(frame(Kind::DATA, flag::END_STREAM, 0, content));
    }
    Known { request, reply }
}

fn hello_requests() -> Vec<Known> {
    let mut content = b"Hello. The time is ".to_vec();
    content.resize(content.len() + SECONDS_BYTES, SECONDS);
    let refused = b"The target does not have this method; Allow lists those that it has.";
    let allow = literal(22, b"GET, HEAD, OPTIONS");
    vec![
        known((2, "/", b""), (8, b"", &content), false),
        known((2, "/?a", b""), (8, b"", &content), false),
        known((2, "/", b""), (8, b"", &content), true),
        known((2, "/no", b""), (13, b"", NOTHING), false),
        known((3, "/", b"world"), (15, &allow, refused), false),
        known((3, "/no", &[b'x'; 500]), (13, b"", NOTHING), false),
    ]
}

fn hash_requests() -> Vec<Known> {
    let (hex, salted) = hex_digests();
    let bad = b"n must be given once, an integer from 1 to 100000: /hash?n=1000.";
    vec![
        known((2, "/hash?n=1", b""), (8, b"", hex.as_bytes()), false),
        known((2, "/hash?n=12", b"x"), (8, b"", hex.as_bytes()), false),
        known((2, "/hash?n=9&salt=c0ffee", b""), (8, b"", salted.as_bytes()), false),
        known((2, "/hash?n=2", b""), (8, b"", hex.as_bytes()), true),
        known((2, "/hash?n=0", b""), (12, b"", bad), false),
        known((2, "/no", b""), (13, b"", NOTHING), false),
    ]
}

/// The frames, with this stream.
fn on(stream: u32, frames: &[u8]) -> Vec<Vec<u8>> {
    let with_stream = |frame: &[u8]| {
        let mut frame = frame.to_vec();
        frame[5..9].copy_from_slice(&stream.to_be_bytes());
        frame
    };
    split(frames).map(with_stream).collect()
}

/// What a server sends first, and its answer to the client's settings.
fn greeting() -> Vec<u8> {
    let mut out = Vec::new();
    write::settings(&mut out, &[(1, 4096), (3, 256), (4, 1 << 16), (6, 16 * 1024)]);
    write::window_update(&mut out, 0, (1 << 20) - 65_535);
    out
}

/// Windows that are never used up, and the answers.
fn windows() -> [(Vec<u8>, Vec<u8>); 2] {
    let mut all = [const { (Vec::new(), Vec::new()) }; 2];
    write::settings(&mut all[0].0, &[(4, 1 << 30)]);
    write::settings_ack(&mut all[0].1);
    write::window_update(&mut all[1].0, 0, 1 << 30);
    all
}

/// A PING frame that is too short.
fn wrong() -> Vec<u8> {
    frame(Kind::PING, 0, 0, &[7; 7])
}

/// The state of a client in the model.
#[derive(Default)]
struct Client {
    /// What the client sends, in its order: the preface and frames, and what the server answers to each.
    sends: VecDeque<(Vec<u8>, Vec<u8>)>,
    last_stream: u32,
    /// Whether the request of that stream lacks its content.
    is_incomplete: bool,
    /// When that request started, and when the frame started of which a part has arrived.
    started: Option<Instant>,
    part: Option<Instant>,
    /// The second in which each of them was complete.
    asked: Vec<u64>,
    /// The number of replies checked.
    checked: usize,
    /// With jobs: the frames that are due on each stream, with the second of their request, and the number of bytes
    /// checked.
    due: BTreeMap<u32, VecDeque<(Vec<u8>, u64)>>,
    checked_bytes: usize,
}

impl Client {
    /// Frames will be sent, those of each stream in order.
    fn expects(&mut self, frames: &[u8], asked: u64) {
        for frame in split(frames) {
            let header = frame.first_chunk().map(Header::read).expect("a frame");
            self.due.entry(header.stream).or_default().push_back((frame.to_vec(), asked));
        }
    }

    /// Checks the frames that are complete. Replies with jobs come in any order; those of one stream do not.
    fn check_frames(&mut self, received: &[u8], now: u64) -> Result<(), String> {
        for frame in split(&received[self.checked_bytes..]) {
            let stream = frame.first_chunk().map(Header::read).expect("a frame").stream;
            let due = self.due.get_mut(&stream).and_then(VecDeque::pop_front);
            let (model, asked) = due.ok_or_else(|| format!("stream {stream}: a frame too many"))?;
            if model.len() != frame.len() {
                return Err(format!("stream {stream}: received {}", frame.escape_ascii()));
            }
            same_except_times(&model, frame, 0..frame.len())?;
            if stream > 0 && model.contains(&DATE) {
                check_time(&model, frame, asked, now)?;
            }
            self.checked_bytes += frame.len();
        }
        Ok(())
    }
}

/// The complete frames at the start of these bytes.
fn split(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = Header::SIZE + Header::read(bytes.first_chunk()?).length as usize;
        let (frame, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        Some(frame)
    })
}

struct Http2<R> {
    resource: R,
    requests: Vec<Known>,
    clients: Vec<Client>,
}

impl<R: Resource<Form>> Scenario for Http2<R> {
    type Engine = Sessions<ServiceProgram<Site<R>>>;
    const NAME: &'static str = if R::Job::EVER { "hash over HTTP/2" } else { "hello over HTTP/2" };
    /// No request asks to close the connection.
    const NEVER: &[Visit] = never(R::Job::EVER, true);
    const PENDING: usize = PENDING;
    const GROWTH: usize = 0;
    /// A frame, and those that wait behind a job.
    const HELD: usize = 16 * 1024 + 64 * 1024;

    fn begin(&mut self, _: &mut Random) -> usize {
        1
    }

    fn engine(&mut self, _: usize) -> Self::Engine {
        let limit = Duration::from_secs(3600);
        Sessions::new(ServiceProgram(Site::new(self.resource.clone(), limit)))
    }

    fn script(&mut self, who: usize, random: &mut Random, input: &mut Vec<u8>) {
        if self.clients.len() <= who {
            self.clients.resize_with(who + 1, Client::default);
        }
        let client = &mut self.clients[who];
        *client = Client::default();
        client.sends.push_back((write::PREFACE.to_vec(), greeting()));
        client.sends.extend(windows());
        let requests = requests(random);
        for nth in 0..requests as u32 {
            let known = &self.requests[random.below(self.requests.len())];
            let stream = 2 * nth + 1;
            let frames = on(stream, &known.request);
            client.sends.extend(frames.into_iter().map(|frame| (frame, Vec::new())));
            if let Some((_, answer)) = client.sends.back_mut() {
                *answer = on(stream, &known.reply).concat();
            }
        }
        if random.chance(300) {
            client.sends.push_back((wrong(), Vec::new()));
        }
        client.sends.iter().for_each(|(sent, _)| input.extend_from_slice(sent));
    }

    fn handed(&mut self, who: usize, now: Now, bytes: &[u8], all: &mut [Expected]) {
        let (client, expected) = (&mut self.clients[who], &mut all[who]);
        if expected.closes {
            return;
        }
        expected.input.extend_from_slice(bytes);
        let before = expected.taken;
        while !expected.closes
            && let Some((sent, _)) = client.sends.front()
            && expected.input.len() - expected.taken >= sent.len()
            && let Some((sent, mut answer)) = client.sends.pop_front()
        {
            expected.taken += sent.len();
            let header = sent.first_chunk().map(Header::read).expect("it is longer");
            if sent == wrong() {
                let code = ErrorCode::FRAME_SIZE_ERROR;
                write::go_away(&mut answer, client.last_stream, code);
                expected.closes = true;
            }
            expected.output.extend_from_slice(&answer);
            client.expects(&answer, now.unix_s);
            expected.marks.push((expected.taken, expected.output.len()));
            client.asked.push(now.unix_s);
            if !sent.starts_with(b"PRI") && header.stream > 0 {
                client.last_stream = header.stream;
                client.is_incomplete = !header.has(flag::END_STREAM);
                client.started = client.is_incomplete.then_some(now.instant);
            }
        }
        expected.inside = client.part;
        expected.note_start(before, now);
        client.part = expected.inside;
        expected.inside = client.part.into_iter().chain(client.started).min();
    }

    fn ended(&mut self, who: usize, now: Now, all: &mut [Expected]) {
        let (client, expected) = (&mut self.clients[who], &mut all[who]);
        if expected.taken == 0 || expected.closes {
            return;
        }
        let mut answer = Vec::new();
        if client.is_incomplete {
            write::reset(&mut answer, client.last_stream, ErrorCode::REFUSED_STREAM);
        }
        write::go_away(&mut answer, client.last_stream, ErrorCode::NO_ERROR);
        expected.output.extend_from_slice(&answer);
        client.expects(&answer, now.unix_s);
    }

    fn received(
        &mut self,
        who: usize,
        now: Now,
        expected: &Expected,
        received: &[u8],
        new: Range<usize>,
        _: &mut Vec<u8>,
    ) -> Result<(), String> {
        let client = &mut self.clients[who];
        if R::Job::EVER {
            return client.check_frames(&received[..new.end], now.unix_s);
        }
        let (checked, asked) = (&mut client.checked, &client.asked);
        same_replies(expected, received, new, checked, |index, model, reply| {
            let has_time = model.contains(&DATE) && index > 2;
            if has_time { check_time(model, reply, asked[index], now.unix_s) } else { Ok(()) }
        })
    }

    fn is_short(&self, job: &<Self::Engine as regatta_engine::Engine>::Job) -> bool {
        job.is_short()
    }

    fn work(
        &mut self,
        job: <Self::Engine as regatta_engine::Engine>::Job,
        now: Now,
        reply: &mut Vec<u8>,
    ) -> Flow {
        job.finish(now, io::Result::Ok(CONTENT), reply)
    }
}

fn hello() -> Http2<Hello> {
    Http2 { resource: Hello, requests: hello_requests(), clients: Vec::new() }
}

fn hash() -> Http2<Hash> {
    let resource = Hash::new(Path::new("file")).unwrap();
    Http2 { resource, requests: hash_requests(), clients: Vec::new() }
}

#[test]
fn hello_over_http2_matches_its_model() {
    assert_holds(hello, histories());
}

#[test]
fn hash_over_http2_matches_its_model() {
    assert_holds(hash, histories());
}

#[test]
fn planted_faults_are_found() {
    for fault in [Fault::LostByte, Fault::DoubledByte, Fault::MissedTimer] {
        assert_finds(hello, fault, 1000);
        assert_finds(hash, fault, 1000);
    }
}
