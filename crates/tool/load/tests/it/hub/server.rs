//! A small hub that uses another WebSocket crate, and can make errors.

use crate::common::Server;
use regatta_testkit::deadline::until;
use std::{
    io::{self, Write},
    net::{Shutdown, TcpStream},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};
use tungstenite::{
    Message, WebSocket, accept_hdr,
    handshake::server::{ErrorResponse, Request, Response},
    http::HeaderValue,
};

/// A fault of the hub, usually with the number of the broadcast that it affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// One member does not get it.
    Lost(u64),
    /// Only its sender gets it.
    LostToOthers(u64),
    /// One member gets it twice.
    Doubled(u64),
    /// One member gets the next broadcast of the same sender before it.
    Reordered(u64),
    /// One member gets it with one byte changed.
    Altered(u64),
    /// One member gets the next broadcast of another sender before it, or before the last one of its
    /// sender that comes until then.
    Swapped(u64),
    /// The member that connected last gets nothing from it on.
    Deaf(u64),
    /// The same, and after the second number its connection is closed.
    Cut(u64, u64),
    /// After it, the connection of the member that joined last is closed, and when that member joins again, it waits
    /// for its reply for [`JOINS_AFTER`].
    SlowToJoin(u64),
    /// The same of all members but its sender, whose result comes when the load has closed its ends.
    Dismisses(u64),
    /// Of two nodes: the members of that at which the sender is not do not get it.
    LostAtNode(u64),
    /// One member gets a gap, and then so many copies of it.
    Gap(u64, usize),
    /// Each member gets a gap before it has joined.
    GapBeforeAll,
    /// One member gets it, then a gap, and then it again.
    GapBetween(u64),
    /// Its result says that it is not published, and nobody gets it.
    NotPublished(u64),
    /// Its result says that it is not published, but all get it.
    PublishedAnyway(u64),
    /// Its result says that this is not known. The members at the other one of two nodes do not get it.
    Unknown(u64),
    /// The sender gets the result before its own copy.
    ResultFirst(u64),
    /// The same of every broadcast.
    ResultsFirst,
    /// The content of the result is wrong.
    Misreported(u64),
    /// One member also gets a message that no member has sent.
    Invented(u64),
    /// The member that joined last, after those that broadcast, does not get it, nor any later multiple of it. A single
    /// one may have been sent before that member joined, and then it is no error.
    LostToNewcomer(u64),
    /// The same member gets it twice, and any later multiple of it.
    DoubledToNewcomer(u64),
    /// From this broadcast on, results count half of the members.
    CountsHalf(u64),
    /// Results also count members that have left.
    CountsAll,
    /// Of three Close frames, one is answered, one is ignored, and one is followed by a close without an
    /// answer.
    Rude,
}

/// See [`Fault::SlowToJoin`].
pub const JOINS_AFTER: Duration = Duration::from_millis(300);

/// A message of a member.
pub enum Heard {
    /// It joins, or requests an echo: the reply.
    Joins(String),
    /// A broadcast: the text to send to all, and the number that the result names, if any.
    Broadcast { digits: String, number: String },
    /// The answer to the hub's ping.
    IsThere,
}

/// How a hub writes and reads.
pub trait Protocol: Send + Sync + 'static {
    /// The subprotocol chosen in the upgrade.
    fn subprotocol(&self) -> Option<&'static str> {
        None
    }

    /// The first message that a member gets, before it sends anything.
    fn greeting(&self) -> Option<String> {
        None
    }

    /// A ping to a member that has joined. The member must answer before its second broadcast.
    fn asks(&self) -> Option<&'static str> {
        None
    }

    /// Parses `message`. `kept` can hold an incomplete part until the next call.
    fn read(&self, message: &[u8], kept: &mut Vec<u8>) -> Vec<Heard>;

    fn copy(&self, digits: &str) -> String;

    /// The confirmation of a broadcast to its sender; with `misreports`, its content is wrong.
    fn result(
        &self,
        digits: &str,
        number: &str,
        members: usize,
        misreports: bool,
    ) -> Option<String>;

    /// The result of a broadcast that is not published, or may not be.
    fn failed(&self, _digits: &str, _why: &str) -> Option<String> {
        None
    }

    /// The message that others are missing.
    fn gap(&self) -> Option<String> {
        None
    }

    /// The frames of a message.
    fn frames(&self, text: &str) -> Vec<u8> {
        frame(0x81, text.as_bytes())
    }
}

/// A message in one WebSocket frame.
pub fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind];
    match u16::try_from(payload.len()).expect("it is short") {
        length @ 0..126 => frame.push(length as u8),
        length => {
            frame.push(126);
            frame.extend_from_slice(&length.to_be_bytes());
        }
    }
    [&frame, payload].concat()
}

/// A member with its number.
type Member = (usize, Arc<Mutex<TcpStream>>);

/// A hub that writes each broadcast to all members, one after the other.
struct Hub<P> {
    protocol: P,
    fault: Fault,
    /// Number of members that must join before any broadcast is delivered, so that each fault affects
    /// one.
    complete: usize,
    joined: Condvar,
    /// Number of members that must have left before broadcasts are counted, so that no fault comes before the load has
    /// seen members come and go.
    must_leave: usize,
    members: Mutex<Vec<Member>>,
    /// Number of members that have ever joined.
    ever: AtomicUsize,
    /// Number of connections that the load has closed.
    ended: AtomicUsize,
    /// Number of those that get nothing more: the answer to their Close frame, if any, was sent.
    left: AtomicUsize,
    broadcasts: AtomicU64,
    /// With [`Fault::Reordered`] and [`Fault::Swapped`]: the delayed message, its sender, and the member
    /// that waits for it.
    kept: Mutex<Option<Late>>,
}

struct Late {
    member: usize,
    sender: usize,
    copy: Vec<u8>,
}

/// Starts a hub. With a fault, it delivers broadcasts only after `members` members have joined.
pub fn serve<P: Protocol>(protocol: P, fault: Fault, members: usize) -> Server {
    serve_at(1, protocol, fault, members).remove(0)
}

/// The same with `nodes` nodes. The numbers of the members at node `n` leave the remainder `n`.
pub fn serve_at<P: Protocol>(
    nodes: usize,
    protocol: P,
    fault: Fault,
    members: usize,
) -> Vec<Server> {
    serve_hub(nodes, Hub::new(protocol, fault, members))
}

/// Like [`serve`], for a load whose members come and go: broadcasts count for a fault only after one has left.
pub fn serve_passing<P: Protocol>(protocol: P, fault: Fault, members: usize) -> Server {
    let hub = Hub { must_leave: 1, ..Hub::new(protocol, fault, members) };
    serve_hub(1, hub).remove(0)
}

fn serve_hub<P: Protocol>(nodes: usize, hub: Hub<P>) -> Vec<Server> {
    let hub = Arc::new(hub);
    let node = |node: usize| {
        let hub = hub.clone();
        Server::numbered(move |number, stream, _| hub.serve(number * nodes + node, stream))
    };
    (0..nodes).map(node).collect()
}

/// Whether `number` is `n` or a later multiple of it.
fn is_multiple(number: u64, n: u64) -> bool {
    number > 0 && number.is_multiple_of(n)
}

impl<P: Protocol> Hub<P> {
    fn new(protocol: P, fault: Fault, members: usize) -> Hub<P> {
        Hub {
            protocol,
            fault,
            complete: if fault == Fault::None { 0 } else { members },
            joined: Condvar::new(),
            must_leave: 0,
            members: Mutex::default(),
            ever: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            left: AtomicUsize::new(0),
            broadcasts: AtomicU64::new(0),
            kept: Mutex::default(),
        }
    }

    /// The number of a broadcast that comes now. It is 0, which no fault has, until enough members have left.
    fn number(&self) -> u64 {
        let is_early = self.left.load(SeqCst) < self.must_leave;
        if is_early { 0 } else { self.broadcasts.fetch_add(1, SeqCst) }
    }

    /// The frame of a gap.
    fn gap(&self) -> Vec<u8> {
        self.protocol.frames(&self.protocol.gap().expect("the protocol has gaps"))
    }

    /// The result of a broadcast; `None` for a protocol that has none.
    fn outcome(
        &self,
        number: u64,
        (digits, number_of): (&str, &str),
        (listeners, misreports): (usize, bool),
    ) -> Option<String> {
        match self.fault {
            Fault::NotPublished(n) | Fault::PublishedAnyway(n) if n == number => {
                self.protocol.failed(digits, "not published: the broker does not take it now")
            }
            Fault::Unknown(n) if n == number => {
                self.protocol.failed(digits, "unknown whether published: not confirmed")
            }
            _ => self.protocol.result(digits, number_of, listeners, misreports),
        }
    }

    /// What a member gets of a broadcast at once.
    fn copies(
        &self,
        number: u64,
        (is_victim, is_newcomer): (bool, bool),
        (digits, copy): (&str, &[u8]),
    ) -> Vec<u8> {
        match self.fault {
            Fault::NotPublished(n) if n == number => Vec::new(),
            Fault::Gap(n, copies) if n == number && is_victim => {
                [self.gap(), copy.repeat(copies)].concat()
            }
            Fault::GapBetween(n) if n == number && is_victim => [copy, &self.gap(), copy].concat(),
            Fault::Lost(n) if n == number && is_victim => Vec::new(),
            Fault::Deaf(n) if n <= number && is_newcomer => Vec::new(),
            Fault::Cut(n, m) if (n..=m).contains(&number) && is_newcomer => Vec::new(),
            Fault::LostToNewcomer(n) if is_multiple(number, n) && is_newcomer => Vec::new(),
            Fault::DoubledToNewcomer(n) if is_multiple(number, n) && is_newcomer => copy.repeat(2),
            Fault::Doubled(n) if n == number && is_victim => copy.repeat(2),
            Fault::Altered(n) if n == number && is_victim => {
                let mut altered = digits.as_bytes().to_vec();
                altered[30] = if altered[30] == b'0' { b'1' } else { b'0' };
                let altered = String::from_utf8(altered).unwrap();
                self.protocol.frames(&self.protocol.copy(&altered))
            }
            Fault::Invented(n) if n == number && is_victim => {
                let invented = self.protocol.copy(&"f".repeat(40));
                [copy, &self.protocol.frames(&invented)].concat()
            }
            _ => copy.to_vec(),
        }
    }

    /// The member that the faults of newcomers affect, if there is one.
    fn newcomer(&self, members: &[Member]) -> Option<usize> {
        let mut numbers = members.iter().map(|(member, _)| *member);
        match self.fault {
            Fault::Deaf(_) | Fault::Cut(..) => numbers.max(),
            // Not one of the first, which broadcast: without its own copy, the result of the sender would be the error.
            _ => numbers.next_back().filter(|member| *member >= self.complete),
        }
    }

    /// Whether a broadcast of `sender` is kept back from `member`.
    fn keeps_back(&self, member: usize, sender: usize) -> bool {
        let kept = self.kept.lock().unwrap();
        kept.as_ref().is_some_and(|late| (late.member, late.sender) == (member, sender))
    }

    fn broadcast(&self, sender: usize, digits: &str, number_of: &str) {
        // Under the lock, so that all members receive all broadcasts in the same order.
        let members = self.members.lock().unwrap();
        let mut members =
            self.joined.wait_while(members, |_| self.ever.load(SeqCst) < self.complete).unwrap();
        let (fault, number) = (self.fault, self.number());
        let copy = self.protocol.frames(&self.protocol.copy(digits));
        let write = |stream: &Mutex<TcpStream>, bytes: &[u8]| {
            // A member that has left is ignored.
            let _ = stream.lock().unwrap().write_all(bytes);
        };
        let misreports = fault == Fault::Misreported(number);
        let listeners = match fault {
            Fault::CountsHalf(n) if n <= number => members.len() / 2,
            Fault::CountsAll => self.ever.load(SeqCst),
            _ => members.len(),
        };
        let result = self.outcome(number, (digits, number_of), (listeners, misreports));
        let own = members.iter().find(|(member, _)| *member == sender).cloned();
        let is_first = [Fault::ResultFirst(number), Fault::ResultsFirst].contains(&fault);
        let tell_result = || {
            if let (Some((_, stream)), Some(result)) = (&own, &result) {
                write(stream, &self.protocol.frames(result));
            }
        };
        if is_first {
            tell_result();
        }
        // Not the sender: otherwise its result would be the error.
        let victim = members.iter().map(|(member, _)| *member).find(|member| *member != sender);
        let last = members.iter().max_by_key(|(member, _)| *member).cloned();
        let newcomer = self.newcomer(&members);
        for (member, stream) in members.iter() {
            let is_newcomer = Some(*member) == newcomer;
            let is_victim = Some(*member) == victim;
            match fault {
                Fault::Reordered(n) | Fault::Swapped(n) if n == number && is_victim => {
                    let (member, copy) = (*member, copy.clone());
                    *self.kept.lock().unwrap() = Some(Late { member, sender, copy });
                }
                Fault::Swapped(_) if self.keeps_back(*member, sender) => {
                    let mut kept = self.kept.lock().unwrap();
                    let late = kept.as_mut().expect("it is kept");
                    write(stream, &std::mem::replace(&mut late.copy, copy.clone()));
                }
                Fault::LostAtNode(n) | Fault::Unknown(n)
                    if n == number && member % 2 != sender % 2 => {}
                Fault::LostToOthers(n) if n == number && *member != sender => {}
                _ => write(stream, &self.copies(number, (is_victim, is_newcomer), (digits, &copy))),
            }
            let mut kept = self.kept.lock().unwrap();
            let swaps = matches!(fault, Fault::Swapped(_));
            let is_next = kept.as_ref().is_some_and(|late| {
                late.member == *member && (late.sender == sender) != swaps && late.copy != copy
            });
            if is_next {
                let Late { copy: late, .. } = kept.take().expect("it is kept");
                write(stream, &late);
            }
        }
        if fault == Fault::Dismisses(number) {
            self.dismisses_all_but(sender, &mut members);
        }
        if !is_first {
            tell_result();
        }
        if let (Fault::Cut(_, n) | Fault::SlowToJoin(n), Some((member, stream))) = (fault, last)
            && n == number
        {
            // Not among the listeners of the next result, which may come before the load sees the close.
            members.retain(|(one, _)| *one != member);
            let _ = stream.lock().unwrap().shutdown(Shutdown::Both);
        }
    }

    /// Closes the connections of all members but this one, and waits until the load has closed its ends.
    fn dismisses_all_but(&self, sender: usize, members: &mut Vec<Member>) {
        let (before, all) = (self.ended.load(SeqCst), members.len());
        for (_, stream) in members.extract_if(.., |(member, _)| *member != sender) {
            let _ = stream.lock().unwrap().shutdown(Shutdown::Write);
        }
        until("the load closes its ends", || self.ended.load(SeqCst) + 1 >= before + all);
    }

    #[expect(clippy::result_large_err, reason = "this is how tungstenite has it")]
    fn serve(&self, number: usize, stream: TcpStream) {
        let writer = Arc::new(Mutex::new(stream.try_clone().unwrap()));
        let Ok(mut socket) = accept_hdr(stream, |_: &Request, reply: Response| self.accept(reply))
        else {
            return;
        };
        let tell = |text: &str| {
            let _ = writer.lock().unwrap().write_all(&self.protocol.frames(text));
        };
        self.protocol.greeting().iter().for_each(|greeting| tell(greeting));
        self.answer(number, &mut socket, &writer, tell);
        self.ended.fetch_add(1, SeqCst);
        self.leaves(number);
        let is_rude = self.fault == Fault::Rude;
        let _ = match number % 3 {
            1 if is_rude => Ok(()),
            2 if is_rude => socket.get_ref().shutdown(Shutdown::Both),
            // Sends the answer to the Close frame; nothing else follows.
            _ => socket.flush().map_err(io::Error::other),
        };
        self.left.fetch_add(1, SeqCst);
    }

    fn leaves(&self, number: usize) {
        self.members.lock().unwrap().retain(|(member, _)| *member != number);
    }

    #[expect(clippy::result_large_err, reason = "this is how tungstenite has it")]
    fn accept(&self, mut reply: Response) -> Result<Response, ErrorResponse> {
        if let Some(name) = self.protocol.subprotocol() {
            reply.headers_mut().insert("Sec-WebSocket-Protocol", HeaderValue::from_static(name));
        }
        Ok(reply)
    }

    fn answer(
        &self,
        number: usize,
        socket: &mut WebSocket<TcpStream>,
        writer: &Arc<Mutex<TcpStream>>,
        tell: impl Fn(&str),
    ) {
        let (mut part, mut is_member, mut asked, mut broadcasts) = (Vec::new(), false, false, 0);
        while let Ok(message) = socket.read() {
            let message = match message {
                Message::Text(text) => text.as_bytes().to_vec(),
                Message::Binary(bytes) => bytes.to_vec(),
                _ => return,
            };
            for heard in self.protocol.read(&message, &mut part) {
                match heard {
                    Heard::Joins(reply) => {
                        if !is_member {
                            is_member = true;
                            let is_again = self.ever.load(SeqCst) >= self.complete;
                            let is_slow =
                                matches!(self.fault, Fault::SlowToJoin(_) | Fault::Dismisses(_));
                            if is_again && is_slow {
                                thread::sleep(JOINS_AFTER);
                            }
                            let mut members = self.members.lock().unwrap();
                            members.push((number, writer.clone()));
                            self.ever.fetch_add(1, SeqCst);
                            drop(members);
                            self.joined.notify_all();
                        }
                        if self.fault == Fault::GapBeforeAll {
                            tell(&self.protocol.gap().expect("the protocol has gaps"));
                        }
                        self.protocol.asks().iter().for_each(|asks| tell(asks));
                        asked = self.protocol.asks().is_some();
                        tell(&reply);
                    }
                    Heard::Broadcast { digits, number: of } => {
                        broadcasts += 1;
                        // A member that does not answer the ping is disconnected.
                        if asked && broadcasts > 1 {
                            return;
                        }
                        self.broadcast(number, &digits, &of);
                    }
                    Heard::IsThere => asked = false,
                }
            }
        }
    }
}
