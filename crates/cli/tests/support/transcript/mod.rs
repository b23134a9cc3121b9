//! Conformance transcripts: bytes in, bytes out, read from TOML and played against a server.
//!
//! This file defines the format (described in `conformance/README.md`), and `play` is the player. Both
//! are independent of the server and of how it is started.

mod http;
mod play;
pub mod server_side;

use serde::Deserialize;
use std::{fs, path::Path};

pub use http::Reply;
pub use play::{play, play_whole};

/// One conversation with a server, with the expected replies.
#[derive(Debug)]
pub struct Transcript {
    /// The file's name without `.toml`.
    pub name: String,
    /// What the conversation shows, in one sentence.
    #[allow(dead_code)] // shown by {:?}
    pub about: String,
    /// Whether it is repeated with the sent bytes cut in two at every position, and byte by byte.
    pub cut: bool,
    /// Whether it requires more than the workload does. Only our own servers must follow it.
    #[allow(dead_code)] // not used by the player's own tests
    pub strict: bool,
    /// Maximum number of requests that it sends before it waits for a reply.
    #[allow(dead_code)] // not used by the player's own tests
    pub pipeline: u32,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// One action or expectation of the client.
#[derive(Debug)]
pub enum Step {
    /// Send these bytes.
    Send(Vec<u8>),
    /// These bytes must come next.
    Expect(Vec<u8>),
    /// An HTTP reply must come next.
    ExpectHttp(Reply),
    /// The server must have read all that was sent.
    ExpectRead,
    /// The server must close, without another byte and without a reset.
    ExpectClose,
    /// Close our sending side.
    HalfClose,
    /// Close both sides with a reset.
    Reset,
    /// Close the connection if it is open, and connect again.
    Reconnect,
    /// Another connection must be served: `21` is answered with `42`.
    ExpectAlive,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    about: String,
    #[serde(default = "yes")]
    cut: bool,
    #[serde(default)]
    strict: bool,
    #[serde(default = "one")]
    pipeline: u32,
    step: Vec<Entry>,
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Entry {
    send: Option<String>,
    send_hex: Option<String>,
    expect: Option<String>,
    expect_hex: Option<String>,
    expect_http: Option<http::Entry>,
    repeat: Option<usize>,
    expect_read: bool,
    expect_close: bool,
    half_close: bool,
    reset: bool,
    reconnect: bool,
    expect_alive: bool,
}

/// Reads every `.toml` file of a directory, in the order of their names.
///
/// # Panics
/// If the directory has none, or one is not a transcript: a test must not pass without transcripts.
pub fn load_dir(dir: &Path) -> Vec<Transcript> {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut paths: Vec<_> = entries.map(|e| e.expect("a directory entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    paths.sort();
    assert!(!paths.is_empty(), "{}: expected transcripts (*.toml), found none", dir.display());
    paths
        .iter()
        .map(|path| load(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
        .collect()
}

fn load(path: &Path) -> Result<Transcript, String> {
    let text = fs::read_to_string(path).map_err(|e| e.to_string())?;
    let file: File = toml::from_str(&text).map_err(|e| e.to_string())?;
    let steps = file
        .step
        .into_iter()
        .zip(1..)
        .map(|(entry, number)| entry.step().map_err(|e| format!("step {number}: {e}")))
        .collect::<Result<_, _>>()?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let File { about, cut, strict, pipeline, .. } = file;
    Ok(Transcript { name, about, cut, strict, pipeline, steps })
}

impl Entry {
    fn step(self) -> Result<Step, String> {
        let times = self.repeat.unwrap_or(1);
        let text = |s: String| s.into_bytes().repeat(times);
        let hex = |s: String| bytes_of_hex(&s).map(|b| b.repeat(times));
        let given = [
            self.send.map(|s| Step::Send(text(s))),
            self.send_hex.map(hex).transpose()?.map(Step::Send),
            self.expect.map(|s| Step::Expect(text(s))),
            self.expect_hex.map(hex).transpose()?.map(Step::Expect),
            self.expect_http.map(Reply::new).transpose()?.map(Step::ExpectHttp),
            self.expect_read.then_some(Step::ExpectRead),
            self.expect_close.then_some(Step::ExpectClose),
            self.half_close.then_some(Step::HalfClose),
            self.reset.then_some(Step::Reset),
            self.reconnect.then_some(Step::Reconnect),
            self.expect_alive.then_some(Step::ExpectAlive),
        ];
        let mut given = given.into_iter().flatten();
        let (Some(step), None) = (given.next(), given.next()) else {
            return Err(
                "expected exactly one of send, send_hex, expect, expect_hex, expect_http, \
                        expect_read, expect_close, half_close, reset, reconnect, expect_alive"
                    .into(),
            );
        };
        match (&step, self.repeat) {
            (Step::Send(_) | Step::Expect(_), _) | (_, None) => Ok(step),
            _ => Err("repeat is allowed only in a step that sends or expects bytes".into()),
        }
    }
}

/// Parses pairs of hex digits. Ignores whitespace.
fn bytes_of_hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<_> = text.chars().filter(|c| !c.is_whitespace()).collect();
    let pair = |pair: &[char]| match *pair {
        [high, low] => Some((high.to_digit(16)? * 16 + low.to_digit(16)?) as u8),
        _ => None,
    };
    digits
        .chunks(2)
        .map(|p| pair(p).ok_or_else(|| format!("expected pairs of hex digits, got {text:?}")))
        .collect()
}
