//! The workloads: which requests, and what must come back. Their bytes are laid out by `script`; the
//! contract of those that are built in stands in the design. A user's own are in
//! `workload/file.rs`; HTTP requests that flags tell are in `http/workload.rs`.

mod compose;
mod conversation;
mod draw;
mod expression;
mod file;
mod files;
mod http_file;
mod line;
mod lists;
mod template;

pub use file::{WorkloadError, WorkloadFile};

use crate::{
    canned,
    http::{self, HttpWorkload, Place},
    patterns::Due,
    script::{Conversations, EXCHANGES, Script, TooLarge},
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{path::Path, sync::Arc};

/// A script does not fit into memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{pipeline} requests of {workload} outstanding on a connection are too many for requests or \
     replies that long; use a smaller pipeline"
)]
pub struct TooLong {
    pipeline: usize,
    workload: String,
}

/// What is sent, and what must come back.
#[derive(Clone, Debug)]
pub enum Workload {
    /// Decimal 64-bit integers; the reply is the exact double.
    Double,
    /// The same requests; the reply is the request. For the null server, which answers without
    /// looking.
    Echo,
    /// First name → `last name?`, last name → `hello FIRST LAST`, alternating.
    Dialogue,
    /// A workload file.
    File(Arc<WorkloadFile>),
    /// The requests of a workload file; the reply is the request.
    EchoOf(Arc<WorkloadFile>),
    /// GET, answered with the time over HTTP.
    Hello,
    /// GET, answered over HTTP with the digest of [`crate::hash_file`], computed `n` times.
    Hash {
        /// From 1 to 100,000.
        n: u32,
    },
    /// HTTP requests of the user's own.
    Http(Arc<HttpWorkload>),
    /// The requests of `hello`; the reply is the one of [`crate::canned`], to the byte. For the null
    /// server.
    CannedHello,
}

impl Workload {
    /// All that are built in.
    pub const ALL: [Workload; 5] = [
        Workload::Double,
        Workload::Echo,
        Workload::Dialogue,
        Workload::Hello,
        Workload::Hash { n: 1 },
    ];

    /// The name as on the command line and in manifests; of a file, its own.
    pub fn name(&self) -> &str {
        match self {
            Workload::Double => "double",
            Workload::Echo => "echo",
            Workload::Dialogue => "dialogue",
            Workload::File(file) | Workload::EchoOf(file) => file.name(),
            Workload::Hello | Workload::CannedHello => "hello",
            Workload::Hash { .. } => "hash",
            Workload::Http(http) => http.name(),
        }
    }

    /// Whether it is made of HTTP requests; else of lines.
    pub fn is_http(&self) -> bool {
        match self {
            Workload::Hello | Workload::CannedHello | Workload::Hash { .. } | Workload::Http(_) => {
                true
            }
            Workload::Double | Workload::Echo | Workload::Dialogue => false,
            Workload::File(file) | Workload::EchoOf(file) => file.is_http(),
        }
    }

    /// The built-in workload of this name.
    pub fn parse(name: &str) -> Option<Workload> {
        Self::ALL.into_iter().find(|w| w.name() == name)
    }

    /// Reads a workload file.
    pub fn read(path: &Path) -> Result<Workload, WorkloadError> {
        Ok(Workload::File(Arc::new(WorkloadFile::read(path)?)))
    }

    /// The workload file, where it is one whose replies are checked as it says.
    pub fn file(&self) -> Option<&Arc<WorkloadFile>> {
        match self {
            Workload::File(file) => Some(file),
            _ => None,
        }
    }

    /// What a server is asked, and has to answer, that sends back what it gets. `None` for the
    /// built-in workloads over HTTP: their floor sends a reply ([`Workload::canned`]).
    pub fn echoed(&self) -> Option<Workload> {
        match self {
            Workload::File(file) | Workload::EchoOf(file) => Some(Workload::EchoOf(file.clone())),
            Workload::Double | Workload::Echo | Workload::Dialogue => Some(Workload::Echo),
            Workload::Hello | Workload::CannedHello | Workload::Hash { .. } | Workload::Http(_) => {
                None
            }
        }
    }

    /// What a server is asked, and has to answer, that sends the same reply for every request without
    /// looking at it. `None` where requests differ in length or no reply is known to the byte.
    pub fn canned(&self) -> Option<Workload> {
        matches!(self, Workload::Hello | Workload::CannedHello).then_some(Workload::CannedHello)
    }

    /// The seeded exchanges of a run; `pipeline` is the most that one connection has outstanding,
    /// and `place` is whom HTTP requests name.
    ///
    /// # Errors
    /// Where requests or replies are too long for that many outstanding.
    pub fn script(&self, seed: u64, pipeline: usize, place: Place<'_>) -> Result<Script, TooLong> {
        let mut script = self.exchanges(seed, place);
        script
            .close(pipeline)
            .map_err(|TooLarge| TooLong { pipeline, workload: self.name().to_owned() })?;
        Ok(script)
    }

    fn exchanges(&self, seed: u64, place: Place<'_>) -> Script {
        match self {
            Workload::Double | Workload::Echo => self.integers(seed),
            Workload::Dialogue => dialogue(seed),
            Workload::File(file) => file.compose(seed, place, false),
            Workload::EchoOf(file) => file.compose(seed, place, true),
            Workload::Hello => http::hello(place).compose(seed, place),
            Workload::Hash { n } => http::hash(*n, place).compose(seed, place),
            Workload::Http(http) => http.compose(seed, place),
            Workload::CannedHello => {
                let reply = canned::reply(place.closes);
                http::hello(place).compose(seed, place).answered_with(reply.as_bytes())
            }
        }
    }

    fn integers(&self, seed: u64) -> Script {
        let mut random = StdRng::seed_from_u64(seed);
        let mut script = Script::new(Conversations::Each(1), None);
        for i in 0..EXCHANGES {
            let n = integer(i, &mut random);
            let request = format!("{n}\n");
            let reply = match self {
                Workload::Echo => request.clone(),
                _ => format!("{}\n", i128::from(n) * 2),
            };
            script.push(request.as_bytes(), reply.as_bytes(), Due::Exact);
        }
        script
    }
}

fn dialogue(seed: u64) -> Script {
    let mut random = StdRng::seed_from_u64(seed);
    let mut script = Script::new(Conversations::Each(2), None);
    for _ in 0..EXCHANGES / 2 {
        let (first, last) = (name(&mut random), name(&mut random));
        script.push(format!("{first}\n").as_bytes(), b"last name?\n", Due::Exact);
        let hello = format!("hello {first} {last}\n");
        script.push(format!("{last}\n").as_bytes(), hello.as_bytes(), Due::Exact);
    }
    script
}

/// Where doubling goes wrong: signs, ends of digits, of 32 bits, of a double's 53 and of 64 bits.
const EDGES: [i64; 22] = [
    0,
    1,
    -1,
    9,
    10,
    99,
    (1 << 31) - 1,
    1 << 31,
    -(1 << 31) - 1,
    1 << 32,
    (1 << 53) - 1,
    1 << 53,
    (1 << 53) + 1,
    -(1 << 53) - 1,
    (1 << 62) - 1,
    1 << 62,
    -(1 << 62),
    -(1 << 62) - 1,
    i64::MAX,
    i64::MAX - 1,
    i64::MIN,
    i64::MIN + 1,
];

/// Every so many integers an edge comes, so that short runs meet them too.
const EDGE_EVERY: usize = 61;

/// The i-th integer: edges in turn, and between them all magnitudes equally often.
fn integer(i: usize, random: &mut StdRng) -> i64 {
    if i.is_multiple_of(EDGE_EVERY) {
        return EDGES[i / EDGE_EVERY % EDGES.len()];
    }
    let bits = random.random_range(1..=63);
    let magnitude = (1_i64 << (bits - 1)) | (random.random::<i64>() & ((1_i64 << (bits - 1)) - 1));
    if random.random() { magnitude } else { -magnitude }
}

/// A capitalised name of 3 to 10 letters.
fn name(random: &mut StdRng) -> String {
    let length = random.random_range(3..=10);
    (0..length)
        .map(
            |i| {
                if i == 0 { random.random_range('A'..='Z') } else { random.random_range('a'..='z') }
            },
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_back() {
        for workload in Workload::ALL {
            let parsed = Workload::parse(workload.name()).unwrap();
            assert_eq!(parsed.name(), workload.name());
        }
        assert!(Workload::parse("triple").is_none());
    }

    #[test]
    fn doubles_are_exact_over_all_magnitudes_and_edges() {
        let script = Workload::Double.script(7, 1, Place::default()).unwrap();
        let mut seen = std::collections::HashSet::new();
        let mut lengths = [0_u32; 66];
        for i in 0..EXCHANGES as u32 {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let n: i64 = text(script.request(i)).trim_end().parse().unwrap();
            assert_eq!(text(script.reply(i)), format!("{}\n", i128::from(n) * 2));
            lengths[(64 - n.unsigned_abs().leading_zeros()) as usize] += 1;
            seen.insert(n);
        }
        assert!(EDGES.iter().all(|edge| seen.contains(edge)), "an edge is missing");
        assert!(lengths[1..=63].iter().all(|&n| n > 3_000), "not all magnitudes: {lengths:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_another_does_not() {
        let bytes = |seed| {
            Workload::Double.script(seed, 1, Place::default()).unwrap().requests(0, 100).to_vec()
        };
        assert_eq!(bytes(1), bytes(1));
        assert_ne!(bytes(1), bytes(2));
    }

    #[test]
    fn a_dialogue_greets_by_both_names() {
        let script = Workload::Dialogue.script(3, 1, Place::default()).unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap().trim_end().to_owned();
        for i in (0..200).step_by(2) {
            let (first, last) = (text(script.request(i)), text(script.request(i + 1)));
            assert!(first.bytes().all(|b| b.is_ascii_alphabetic()));
            assert_eq!(script.reply(i), b"last name?\n");
            assert_eq!(text(script.reply(i + 1)), format!("hello {first} {last}"));
        }
    }
}
