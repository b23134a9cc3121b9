//! Plays a transcript against a server, with and without cuts, and reports the first difference.
//!
//! After the last step the server must not send anything else: the player half-closes a connection that
//! is still open, and the server must close it without another byte.

use super::{Step, Transcript, server_side::wait_until_read};
use rustix::net::sockopt::set_socket_linger;
use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    ops::Range,
    time::{Duration, Instant},
};

/// Plays the transcript. If its `cut` is set, repeats it for every position of a cut, and byte by byte.
/// A step that takes longer than `within` fails.
///
/// # Errors
/// The first difference: the transcript, the cut, the step, the expected and the received bytes, and
/// what the transcript shows.
pub fn play(transcript: &Transcript, addr: SocketAddr, within: Duration) -> Result<(), String> {
    play_whole(transcript, addr, within)?;
    if transcript.cut {
        let total = transcript.steps.iter().map(Step::sent).sum();
        for at in 1..total {
            let how = format!(", cut after {at} bytes sent");
            run(transcript, addr, within, at..at + 1, &how)?;
        }
        run(transcript, addr, within, 1..total, ", byte by byte")?;
    }
    Ok(())
}

/// Plays the transcript once, without cuts.
///
/// # Errors
/// As for [`play`].
pub fn play_whole(
    transcript: &Transcript,
    addr: SocketAddr,
    within: Duration,
) -> Result<(), String> {
    run(transcript, addr, within, 0..0, "")
}

fn run(
    transcript: &Transcript,
    addr: SocketAddr,
    within: Duration,
    cuts: Range<usize>,
    how: &str,
) -> Result<(), String> {
    Player { addr, within, cuts, sent: 0, stream: None }
        .run(&transcript.steps)
        .map_err(|e| format!("{}{how}, {e} ({})", transcript.name, transcript.about))
}

impl Step {
    fn sent(&self) -> usize {
        if let Step::Send(bytes) = self { bytes.len() } else { 0 }
    }
}

struct Player {
    addr: SocketAddr,
    within: Duration,
    /// Positions of cuts, in bytes sent since the start. At a cut the server must have read everything
    /// before more is sent.
    cuts: Range<usize>,
    sent: usize,
    stream: Option<TcpStream>,
}

impl Player {
    fn run(&mut self, steps: &[Step]) -> Result<(), String> {
        self.reconnect()?;
        for (step, number) in steps.iter().zip(1..) {
            self.step(step).map_err(|e| format!("step {number}: {e}"))?;
        }
        self.finish().map_err(|e| format!("after the last step: {e}"))
    }

    /// The deadline of a step that starts now.
    fn deadline(&self) -> Instant {
        Instant::now() + self.within
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Send(bytes) => self.send(bytes),
            Step::Expect(bytes) => {
                let deadline = self.deadline();
                expect(self.open()?, bytes, deadline)
            }
            Step::ExpectHttp(reply) => {
                let deadline = self.deadline();
                let stream = self.open()?;
                reply.read(|| {
                    let mut byte = [0];
                    Ok((read(stream, &mut byte, deadline)? == 1).then_some(byte[0]))
                })
            }
            Step::ExpectRead => self.expect_read(),
            Step::ExpectClose => {
                let deadline = self.deadline();
                expect_close(self.open()?, deadline)?;
                self.stream = None;
                Ok(())
            }
            Step::HalfClose => {
                self.open()?.shutdown(Shutdown::Write).map_err(failed_to("half-close"))
            }
            Step::Reset => {
                let stream = self.stream.take().ok_or(NOT_OPEN)?;
                set_socket_linger(&stream, Some(Duration::ZERO)).map_err(|e| e.to_string())
            }
            Step::Reconnect => self.reconnect(),
            Step::ExpectAlive => {
                let mut stream = connect(self.addr, self.within)?;
                stream.write_all(b"21\n").map_err(failed_to("send on another connection"))?;
                expect(&mut stream, b"42\n", self.deadline())
                    .map_err(|e| format!("another connection: {e}"))
            }
        }
    }

    fn send(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while !bytes.is_empty() {
            let (part, cut) = self.until_next_cut(bytes);
            self.open()?.write_all(part).map_err(failed_to("send"))?;
            self.sent += part.len();
            if cut {
                self.expect_read()?;
            }
            bytes = &bytes[part.len()..];
        }
        Ok(())
    }

    fn expect_read(&mut self) -> Result<(), String> {
        let client = self.open()?.local_addr().map_err(|e| e.to_string())?;
        let (SocketAddr::V4(client), SocketAddr::V4(server)) = (client, self.addr) else {
            return Err(format!("expected an IPv4 server, got {}", self.addr));
        };
        wait_until_read(client, server, self.deadline())
    }

    /// Returns the bytes up to the next cut, and whether there is a cut after them.
    fn until_next_cut<'a>(&self, bytes: &'a [u8]) -> (&'a [u8], bool) {
        let next = self.cuts.start.max(self.sent + 1);
        let length = next - self.sent;
        if next < self.cuts.end && length <= bytes.len() {
            (&bytes[..length], true)
        } else {
            (bytes, false)
        }
    }

    fn open(&mut self) -> Result<&mut TcpStream, String> {
        self.stream.as_mut().ok_or_else(|| NOT_OPEN.into())
    }

    fn reconnect(&mut self) -> Result<(), String> {
        self.stream = Some(connect(self.addr, self.within)?);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        let Some(mut stream) = self.stream.take() else { return Ok(()) };
        // Fails only if the server has closed already, which is expected next.
        let _ = stream.shutdown(Shutdown::Write);
        expect_close(&mut stream, self.deadline())
    }
}

const NOT_OPEN: &str = "the transcript has no open connection here: it lacks a reconnect";

fn connect(addr: SocketAddr, within: Duration) -> Result<TcpStream, String> {
    let stream = TcpStream::connect_timeout(&addr, within).map_err(failed_to("connect"))?;
    stream.set_nodelay(true).map_err(failed_to("set TCP_NODELAY"))?;
    stream.set_write_timeout(Some(within)).map_err(failed_to("set a timeout"))?;
    Ok(stream)
}

fn expect(stream: &mut TcpStream, expected: &[u8], deadline: Instant) -> Result<(), String> {
    let mut got = vec![0; expected.len()];
    let mut n = 0;
    while n < expected.len() {
        let read = read(stream, &mut got[n..], deadline)
            .and_then(|read| if read == 0 { Err("the end of the stream".into()) } else { Ok(read) })
            .map_err(|e| {
                let (wanted, had) = (shown(&expected[n..]), shown(&got[..n]));
                format!("expected \"{wanted}\" next, got {e} (before it, {n} bytes: \"{had}\")")
            })?;
        n += read;
        if let Some(at) = (n - read..n).find(|&i| got[i] != expected[i]) {
            let (wanted, came) = (shown(&expected[at..]), shown(&got[at..n]));
            return Err(format!("byte {at} of the reply: expected \"{wanted}\", got \"{came}\""));
        }
    }
    Ok(())
}

fn expect_close(stream: &mut TcpStream, deadline: Instant) -> Result<(), String> {
    let mut more = [0; 64];
    match read(stream, &mut more, deadline) {
        Ok(0) => Ok(()),
        Ok(n) => Err(format!("expected the end of the stream, got \"{}\"", shown(&more[..n]))),
        Err(e) => Err(format!("expected the end of the stream, got {e}")),
    }
}

/// Reads once. The error completes a message such as "expected ..., got".
fn read(stream: &mut TcpStream, into: &mut [u8], deadline: Instant) -> Result<usize, String> {
    // A timeout of zero is not allowed.
    let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    stream.set_read_timeout(Some(left)).map_err(|e| e.to_string())?;
    stream.read(into).map_err(|e| match e.kind() {
        ErrorKind::WouldBlock => "nothing in time".into(),
        _ => e.to_string(),
    })
}

/// The first bytes, escaped.
fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 80;
    let dots = if bytes.len() > MOST { "..." } else { "" };
    format!("{}{dots}", bytes[..bytes.len().min(MOST)].escape_ascii())
}

fn failed_to(doing: &str) -> impl Fn(std::io::Error) -> String {
    move |e| format!("expected to {doing}, got {e}")
}
