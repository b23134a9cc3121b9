//! A program played in each of the three styles, without a socket: pieces of input, ended by the
//! client, and all that is answered.

use regatta_service::{
    Defer, Flow, Limits, Program,
    style::{Session, Stream},
};
use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    time::{Duration, Instant},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A stream whose reads give one piece each, and that keeps its writes apart.
struct Pieces {
    input: VecDeque<Vec<u8>>,
    output: Vec<Vec<u8>>,
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(mut piece) = self.input.pop_front() else { return Ok(0) };
        let fits = piece.len().min(into.len());
        into[..fits].copy_from_slice(&piece[..fits]);
        if fits < piece.len() {
            self.input.push_front(piece.split_off(fits));
        }
        Ok(fits)
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.push(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Pieces {
    fn wait_readable(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn set_read_timeout(&mut self, _limit: Duration) -> io::Result<()> {
        Ok(())
    }

    fn set_write_timeout(&mut self, _limit: Duration) -> io::Result<()> {
        Ok(())
    }

    fn finish_writing(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The writes of the sequential style.
pub fn sequential(program: &impl Program, pieces: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut stream = Pieces { input: pieces.iter().cloned().collect(), output: Vec::new() };
    program.sequential(&mut stream, Limits::default()).unwrap();
    stream.output
}

/// The writes of a callback model.
pub fn callback(program: &impl Program, pieces: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let now = Instant::now();
    let mut session = program.session(Limits::default(), now, Defer::Nothing);
    let mut sent = Vec::new();
    let mut pieces = pieces.iter();
    loop {
        let mut out = Vec::new();
        let piece = pieces.next();
        let mut flow = match piece {
            Some(piece) => session.on_bytes(now, piece, &mut out),
            None => session.on_end(now, &mut out),
        };
        // As the reactor does it: all of `out` is written before anything else is delivered.
        while !out.is_empty() {
            assert!(out.len() < 1 << 20, "replies are bounded");
            sent.push(std::mem::take(&mut out));
            if flow == Flow::Continue {
                flow = session.on_writable(now, &mut out);
            }
        }
        if flow == Flow::Close {
            return sent;
        }
        assert!(piece.is_some(), "a session closes at the end of its input");
    }
}

fn asynchronous(program: &impl Program, pieces: &[Vec<u8>]) -> Vec<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        let serve = program.asynchronous(server, Limits::default(), Defer::Nothing);
        let talk = async {
            for piece in pieces {
                // A server that ended already refuses the rest.
                if client.write_all(piece).await.is_err() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            client.shutdown().await.unwrap();
            let mut output = Vec::new();
            client.read_to_end(&mut output).await.unwrap();
            output
        };
        let (served, output) = tokio::join!(serve, talk);
        served.unwrap();
        output
    })
}

/// Every style must answer the pieces with `expected`.
pub fn all_styles(program: impl Program, pieces: &[Vec<u8>], expected: &[u8]) {
    for (style, got) in [
        ("sequential", sequential(&program, pieces).concat()),
        ("callback", callback(&program, pieces).concat()),
        ("async", asynchronous(&program, pieces)),
    ] {
        assert_eq!(got.escape_ascii().to_string(), expected.escape_ascii().to_string(), "{style}");
    }
}

/// `input` in pieces of these sizes, over and over.
pub fn cut(input: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let (mut pieces, mut rest) = (Vec::new(), input);
    for cut in cuts.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, later) = rest.split_at(rest.len().min(*cut));
        pieces.push(piece.to_vec());
        rest = later;
    }
    pieces
}
