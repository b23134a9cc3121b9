//! The HTTP services. The model knows all complete requests, and the reply to each except for the
//! time in it.

use super::{FAULTS, never, requests};
use regatta_engine::{
    Flow, Job, Now, Sessions,
    simulator::{Expected, Random, Scenario, Visit, assert_finds, assert_holds},
};
use regatta_proto::http1::MAX_FRAME;
use regatta_service::{
    REPLY_FULL, ServiceProgram,
    hash::Hash,
    hello::Hello,
    http::{Resource, Site},
};
use regatta_testkit::by_tier;
use sha2::{Digest, Sha256};
use std::{
    io,
    ops::Range,
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

fn histories() -> u64 {
    by_tier(3_000, 34_000)
}

/// The output limit for reading, a full reply, and the replies that waited behind a job.
pub const PENDING: usize = 2 * 64 * 1024 + REPLY_FULL + 1024;

/// The content of the file that the hash service reads.
pub const CONTENT: &[u8] = b"the content of the file";

/// Placeholders in the model's replies: for the bytes of a date, and of a Unix time in seconds. No length and no
/// stream of a frame over HTTP/2 has them.
pub const DATE: u8 = 0x1e;
pub const SECONDS: u8 = 0x1c;
pub const DATE_BYTES: usize = 29;
pub const SECONDS_BYTES: usize = 10;

/// A request, its reply, and whether the connection closes after it.
struct Known {
    request: &'static [u8],
    reply: Vec<u8>,
    closes: bool,
}

fn known(request: &'static str, status: &str, fields: &str, content: &[u8], head: bool) -> Known {
    let date = "\u{1e}".repeat(DATE_BYTES);
    let mut reply = format!("HTTP/1.1 {status}\r\nDate: {date}\r\n").into_bytes();
    let (before, after) = fields.split_once('|').unwrap_or((fields, ""));
    reply.extend_from_slice(before.as_bytes());
    let length = content.len();
    let length = format!("Content-Type: text/plain\r\nContent-Length: {length}\r\n{after}\r\n");
    reply.extend_from_slice(length.as_bytes());
    if !head {
        reply.extend_from_slice(content);
    }
    let closes = fields.contains("Connection: close");
    Known { request: request.as_bytes(), reply, closes }
}

const CLOSE: &str = "|Connection: close\r\n";
pub const NOTHING: &[u8] = b"There is nothing under this path.";

fn hello_requests() -> Vec<Known> {
    let mut content = b"Hello. The time is ".to_vec();
    content.resize(content.len() + SECONDS_BYTES, SECONDS);
    let get = |request, fields| known(request, "200 OK", fields, &content, false);
    let method = b"The target does not have this method; Allow lists those that it has.";
    let allow = "Allow: GET, HEAD, OPTIONS\r\n";
    vec![
        get("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ""),
        get("GET / HTTP/1.1\r\nHost: somewhere\r\nAccept: */*\r\n\r\n", ""),
        known("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", "200 OK", "", &content, true),
        known("GET /no HTTP/1.1\r\nHost: a\r\n\r\n", "404 Not Found", "", NOTHING, false),
        known(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nworld",
            "405 Method Not Allowed",
            allow,
            method,
            false,
        ),
        get("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "|Connection: keep-alive\r\n"),
        // The following requests close the connection.
        get("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", CLOSE),
        get("GET / HTTP/1.0\r\n\r\n", CLOSE),
    ]
}

/// The digest of the file, and with the salt `c0ffee` and `n=9`.
pub fn hex_digests() -> (String, String) {
    let digest = Sha256::digest(CONTENT);
    let hex = |digest: &[u8]| digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let salted = (0..9).fold(b"c0ffee".to_vec(), |last, _| {
        Sha256::new().chain_update(last).chain_update(CONTENT).finalize().to_vec()
    });
    (hex(&digest), hex(&salted))
}

fn hash_requests() -> Vec<Known> {
    let (hex, salted) = hex_digests();
    let get = |request, fields| known(request, "200 OK", fields, hex.as_bytes(), false);
    let bad = b"n must be given once, an integer from 1 to 100000: /hash?n=1000.";
    vec![
        get("GET /hash?n=1 HTTP/1.1\r\nHost: a\r\n\r\n", ""),
        get("GET /hash?n=9 HTTP/1.1\r\nHost: a\r\n\r\n", ""),
        get("GET /hash?n=12 HTTP/1.1\r\nHost: somewhere\r\n\r\n", ""),
        known(
            "GET /hash?n=9&salt=c0ffee HTTP/1.1\r\nHost: a\r\n\r\n",
            "200 OK",
            "",
            salted.as_bytes(),
            false,
        ),
        known("HEAD /hash?n=2 HTTP/1.1\r\nHost: a\r\n\r\n", "200 OK", "", hex.as_bytes(), true),
        known("GET /hash?n=0 HTTP/1.1\r\nHost: a\r\n\r\n", "400 Bad Request", "", bad, false),
        known("GET /no HTTP/1.1\r\nHost: a\r\n\r\n", "404 Not Found", "", NOTHING, false),
        // The following requests close the connection.
        get("GET /hash?n=10 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", CLOSE),
        get("GET /hash?n=3 HTTP/1.0\r\n\r\n", CLOSE),
    ]
}

/// The number of requests at the end of a table that close the connection.
const ENDS: usize = 2;

struct Http<R> {
    resource: R,
    name: &'static str,
    requests: Vec<Known>,
    /// For each client, the second in which each request was complete.
    asked: Vec<Vec<u64>>,
    /// For each client, the number of replies checked.
    checked: Vec<usize>,
}

impl<R: Resource> Http<R> {
    fn new(resource: R, requests: Vec<Known>) -> Self {
        let name = R::PATH;
        Http { resource, name, requests, asked: Vec::new(), checked: Vec::new() }
    }
}

impl<R: Resource> Scenario for Http<R> {
    type Engine = Sessions<ServiceProgram<Site<R>>>;
    const NAME: &'static str = R::PATH;
    const NEVER: &[Visit] = never(R::Job::EVER, false);
    const RARE: &[u64] = &[3_974, 4_747, 6_481];
    const PENDING: usize = PENDING;
    const GROWTH: usize = 0;
    /// A request, and those that wait behind a job.
    const HELD: usize = MAX_FRAME + 64 * 1024;

    fn begin(&mut self, _: &mut Random) -> usize {
        debug_assert_eq!(self.name, R::PATH);
        1
    }

    fn engine(&mut self, _: usize) -> Self::Engine {
        Sessions::new(ServiceProgram(Site(self.resource.clone())))
    }

    fn script(&mut self, who: usize, random: &mut Random, input: &mut Vec<u8>) {
        if self.asked.len() <= who {
            self.asked.resize_with(who + 1, Vec::new);
            self.checked.resize(who + 1, 0);
        }
        self.asked[who].clear();
        self.checked[who] = 0;
        let requests = requests(random);
        let ends = random.pick(&[0, 0, 100]);
        for _ in 0..requests {
            let last = self.requests.len() - ENDS;
            let index = match random.chance(ends) {
                true => last + random.below(ENDS),
                false => random.below(last),
            };
            input.extend_from_slice(self.requests[index].request);
        }
    }

    fn handed(&mut self, who: usize, now: Now, bytes: &[u8], all: &mut [Expected]) {
        let expected = &mut all[who];
        if expected.closes {
            return;
        }
        expected.input.extend_from_slice(bytes);
        let before = expected.taken;
        while !expected.closes {
            let rest = &expected.input[expected.taken..];
            let known = self.requests.iter().find(|known| rest.starts_with(known.request));
            let Some(known) = known else { break };
            expected.output.extend_from_slice(&known.reply);
            expected.taken += known.request.len();
            expected.marks.push((expected.taken, expected.output.len()));
            expected.closes = known.closes;
            self.asked[who].push(now.unix_s);
        }
        expected.note_start(before, now);
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
        let (checked, asked) = (&mut self.checked[who], &self.asked[who]);
        same_replies(expected, received, new, checked, |index, model, reply| {
            check_time(model, reply, asked[index], now.unix_s)
        })
    }

    fn is_short(&self, job: &R::Job) -> bool {
        job.is_short()
    }

    fn work(&mut self, job: R::Job, now: Now, reply: &mut Vec<u8>) -> Flow {
        job.finish(now, io::Result::Ok(CONTENT), reply)
    }
}

/// Compares received with expected bytes, except for those of times. Passes each further reply that is complete to
/// `check`, with its number and its model.
pub fn same_replies(
    expected: &Expected,
    received: &[u8],
    new: Range<usize>,
    checked: &mut usize,
    check: impl Fn(usize, &[u8], &[u8]) -> Result<(), String>,
) -> Result<(), String> {
    same_except_times(&expected.output, received, new.clone())?;
    while let Some((_, end)) = expected.marks.get(*checked)
        && *end <= new.end
    {
        let start = checked.checked_sub(1).map_or(0, |before| expected.marks[before].1);
        check(*checked, &expected.output[start..*end], &received[start..*end])?;
        *checked += 1;
    }
    Ok(())
}

/// Compares received with expected bytes, except for those of times.
pub fn same_except_times(
    expected: &[u8],
    received: &[u8],
    new: Range<usize>,
) -> Result<(), String> {
    let pairs = expected[new.clone()].iter().zip(&received[new.clone()]);
    let wrong = |(e, r): &(&u8, &u8)| e != r && **e != DATE && **e != SECONDS;
    if let Some(at) = pairs.clone().position(|pair| wrong(&pair)) {
        let at = new.start + at;
        let show = |bytes: &[u8]| {
            bytes[at.saturating_sub(20)..bytes.len().min(at + 40)].escape_ascii().to_string()
        };
        let (expected, received) = (show(expected), show(received));
        return Err(format!("byte {at}: expected {expected}, received {received}"));
    }
    Ok(())
}

/// Checks that the time in a reply is that of its writing: between the request and now.
pub fn check_time(model: &[u8], reply: &[u8], asked: u64, now: u64) -> Result<(), String> {
    let at = |byte| model.iter().position(|other| *other == byte);
    let text = |at: usize, bytes| String::from_utf8_lossy(&reply[at..at + bytes]).into_owned();
    let Some(date) = at(DATE).map(|at| text(at, DATE_BYTES)) else {
        return Err("a reply without a date".into());
    };
    let time = httpdate::parse_http_date(&date).map_err(|error| format!("{error}: {date}"))?;
    let second = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    if !(asked..=now).contains(&second) {
        return Err(format!("{date} is not between {asked} and {now}"));
    }
    match at(SECONDS).map(|at| text(at, SECONDS_BYTES)) {
        Some(seconds) if seconds != second.to_string() => Err(format!("{seconds} is not {date}")),
        _ => Ok(()),
    }
}

fn hello() -> Http<Hello> {
    Http::new(Hello, hello_requests())
}

fn hash() -> Http<Hash> {
    Http::new(Hash::new(Path::new("file")).unwrap(), hash_requests())
}

#[test]
fn hello_matches_its_model() {
    assert_holds(hello, histories());
}

#[test]
fn hash_matches_its_model() {
    assert_holds(hash, histories());
}

#[test]
fn planted_faults_are_found() {
    for fault in FAULTS {
        assert_finds(hash, fault, 1000);
    }
}
