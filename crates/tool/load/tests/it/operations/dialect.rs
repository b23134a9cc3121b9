//! A dialect with three kinds of operations, for tests. For each request the server sends some
//! deliveries, a result and the reply, all of which are known to the byte:
//!
//! ```text
//! go 0003 00000000000000000000        the number of the request, and its time
//! delivery 0003.0 00000000000000000000
//! delivery 0003.1 00000000000000000000
//! delivery 0003.2 00000000000000000000
//! result 0003
//! done 0003
//! ```

use regatta_record::{Exchange, Operation};
use regatta_script::{At, Conversations, Cursor, Dialect, Heard, Nanos, Script, printable};

/// Requests before the script repeats.
const EXCHANGES: u32 = 512;
/// Maximum number of requests outstanding on a connection.
const PIPELINE: usize = 64;
const DELIVERIES: usize = 1;
const RESULTS: usize = 2;

/// The time in each request, from which the latency of its deliveries counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Zero. Each delivery and result has the latency [`took`], whenever it is received.
    Made,
    /// The intended send time, in a closed loop that of the write; one request outstanding per
    /// connection.
    Real,
}

/// The compiled requests.
pub struct Deliveries {
    script: Script,
    times: Times,
}

/// State of a connection.
#[derive(Default)]
pub struct ConnectionState {
    /// Number of received lines of the current exchange.
    lines: u32,
    /// The received part of the next line.
    part: Vec<u8>,
    /// The intended send time of the current request.
    from: Nanos,
    request: Vec<u8>,
}

/// Number of deliveries that the server sends for a request: 0 to 4.
pub fn owed(request: u32) -> u32 {
    request % 5
}

/// The latency in nanoseconds of operation `nth` of a request with [`Times::Made`]: up to 20 s.
pub fn took(request: u32, nth: u32) -> Nanos {
    let mixed = u64::from(request * 8 + nth + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    1 + (mixed >> 20) % 20_000_000_000 / (1 << (mixed % 28))
}

/// The lines that the server sends for this request: the reply is the last.
pub fn lines(request: &str) -> Vec<String> {
    let mut words = request.split_whitespace().skip(1);
    let (number, time) = (words.next().expect("a number"), words.next().expect("a time"));
    let deliveries = 0..owed(number.parse().expect("a number"));
    let mut lines: Vec<String> =
        deliveries.map(|nth| format!("delivery {number}.{nth} {time}\n")).collect();
    lines.push(format!("result {number}\n"));
    lines.push(format!("done {number}\n"));
    lines
}

impl Deliveries {
    pub fn new(times: Times) -> Deliveries {
        let mut script = Script::new(Conversations::Each(1));
        for number in 0..EXCHANGES {
            let request = request(number, 0);
            script.push(request.as_bytes(), lines(&request).concat().as_bytes());
        }
        script.close(PIPELINE).expect("it is small");
        Deliveries { script, times }
    }
}

fn request(number: u32, time: Nanos) -> String {
    format!("go {number:04} {time:020}\n")
}

impl Dialect for Deliveries {
    type ThreadState = ();
    type ConnectionState = ConnectionState;

    const OPERATIONS: &'static [Operation] = &[
        Operation::REQUESTS,
        Operation::new("deliveries", "delivery", "deliveries"),
        Operation::new("results", "result", "results"),
    ];

    fn script(&self) -> &Script {
        &self.script
    }

    fn desk(&self, _: fn() -> Nanos) {}

    fn talk(&self, _: u32) -> ConnectionState {
        ConnectionState::default()
    }

    fn asked(&self, talk: &mut ConnectionState, k: u32, from: Nanos) {
        assert!(self.times == Times::Made || k == 1, "one outstanding per connection");
        talk.from = from;
    }

    fn unsent<'b>(&'b self, cursor: &Cursor, talk: &'b mut ConnectionState, _: Nanos) -> &'b [u8] {
        let unsent = cursor.unsent(&self.script);
        if self.times == Times::Made {
            return unsent;
        }
        talk.request = request(cursor.answered() % EXCHANGES, talk.from).into_bytes();
        &talk.request[talk.request.len() - unsent.len()..]
    }

    fn receive(
        &self,
        At { cursor, talk, .. }: At<'_, Self>,
        came: &[u8],
        now: Nanos,
        heard: &mut impl Heard,
    ) -> Result<u32, Box<Exchange>> {
        let owed_to = cursor.owed_to(&self.script);
        let (before, mut at) = (cursor.answered(), cursor.answered());
        for piece in came.split_inclusive(|byte| *byte == b'\n') {
            talk.part.extend_from_slice(piece);
            let number = at % EXCHANGES;
            let time = if self.times == Times::Real { talk.from } else { 0 };
            let sent = request(number, time);
            let due = lines(&sent);
            let line = due.get(talk.lines as usize).filter(|_| at < owed_to);
            if !line.is_some_and(|line| line.as_bytes().starts_with(&talk.part)) {
                let expected = line.map_or("nothing more".into(), |due| printable(due.as_bytes()));
                let received = printable(&talk.part);
                let reply_index = (at - before).into();
                return Err(Box::new(Exchange { sent, expected, received, reply_index }));
            }
            if !piece.ends_with(b"\n") {
                break;
            }
            talk.part.clear();
            let sent_at = match self.times {
                Times::Made => now - took(number, talk.lines),
                Times::Real => talk.from,
            };
            if talk.lines < owed(number) {
                heard.heard(DELIVERIES, sent_at);
            } else if talk.lines == owed(number) {
                heard.heard(RESULTS, sent_at);
            }
            talk.lines += 1;
            if talk.lines as usize == due.len() {
                talk.lines = 0;
                at += 1;
            }
        }
        let complete = at - before;
        if complete > 0 {
            cursor.answer(complete, &self.script);
        }
        Ok(complete)
    }
}
