//! Callback style: the connection is a state machine, and whoever waits calls it.
//! For select, poll, epoll, cluster, percore and io_uring.

use crate::{Codec, Defer, Flow, Halt, Job, Limits, Never, Service, Slots, answer, run_job};
use std::time::Instant;

/// A connection in the callback style. The caller owns the socket and writes all of `out` before
/// it delivers more input: a client that does not read stops being read. After `Close` it writes
/// what is left in `out` and ends the connection.
pub trait Session: 'static {
    /// What its replies may need.
    type Job: Job;

    /// Bytes came. Replies are appended to `out`.
    fn on_bytes(&mut self, now: Instant, bytes: &[u8], out: &mut Vec<u8>) -> Flow;

    /// All of `out` was written, or a job is done. Appends what else is due; nothing appended
    /// means that more input is wanted, if any is ([`Session::wants_input`]).
    fn on_writable(&mut self, now: Instant, out: &mut Vec<u8>) -> Flow;

    /// It has just done a job that takes long, and has more to do: others get their turn before
    /// [`Session::on_writable`] is called.
    #[inline]
    fn had_its_turn(&self) -> bool {
        false
    }

    /// The client ended its sending direction. `Close` as soon as nothing more will be appended.
    fn on_end(&mut self, now: Instant, out: &mut Vec<u8>) -> Flow;

    /// The replies that wait for jobs. After each call of the three above the caller takes the new
    /// jobs from there; to be done in whatever order, and given back there.
    #[inline]
    fn slots(&mut self) -> Option<&mut Slots<Self::Job>> {
        None
    }

    /// Whether it takes more input now. Where not, it does after a job is done.
    #[inline]
    fn wants_input(&self) -> bool {
        true
    }

    /// When [`Session::on_tick`] wants to be called. It may move at every call; the caller asks
    /// again when the time last given has come, not after each call.
    fn due(&self) -> Instant;

    /// The time given by [`Session::due`] has come. `Close` ends the connection at once.
    fn on_tick(&mut self, now: Instant) -> Flow;

    /// After `Close`: the client has said that it sends no more, and nothing of what it sent is
    /// left. The connection need not be read on for the last reply to arrive.
    fn has_parted(&self) -> bool {
        false
    }
}

/// When a connection was last heard of, and since when it is inside a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    limits: Limits,
    heard: Instant,
    began: Option<Instant>,
}

impl Clock {
    pub(crate) fn new(limits: Limits, now: Instant) -> Self {
        Clock { limits, heard: now, began: None }
    }

    /// The connection took or sent bytes.
    pub(crate) fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// After input was worked on: was a request `answered`, is part of another one left?
    pub(crate) fn request(&mut self, now: Instant, answered: bool, partial: bool) {
        if answered || !partial {
            self.began = None;
        }
        if partial {
            self.began.get_or_insert(now);
        }
    }

    pub(crate) fn due(&self) -> Instant {
        self.limits.due(self.heard, self.began)
    }

    pub(crate) fn on_tick(&self, now: Instant) -> Flow {
        if now >= self.due() { Flow::Close } else { Flow::Continue }
    }
}

/// Space in bytes from which on it is given back where little of it is used: so a connection that
/// waits for the rest of a request holds little more than the request.
const SPACIOUS: usize = 16 * 1024;

/// A [`Service`] in the callback style.
pub struct Connection<S: Service> {
    service: S,
    codec: S::Codec,
    clock: Clock,
    /// Input not yet answered: part of a request, or what came after the reply was full. Nothing
    /// once the service has ended the connection: what follows is not interpreted.
    held: Vec<u8>,
    /// Whole requests may be among what is held.
    full: bool,
    /// No more input will come.
    ended: bool,
    /// Which jobs are left to the caller.
    defer: Defer,
    /// A job that takes long, and that replies before it do not wait for: done at the next call.
    put_off: Option<S::Job>,
    /// The last thing that was done is a job that takes long.
    took_long: bool,
    /// From the first deferred job on.
    slots: Option<Box<Slots<S::Job>>>,
    /// The service ended the connection by the client's wish.
    parted: bool,
}

impl<S: Service> Connection<S> {
    /// A fresh connection.
    pub fn new(service: S, limits: Limits, now: Instant, defer: Defer) -> Self {
        let clock = Clock::new(limits, now);
        let (codec, held) = (S::Codec::default(), Vec::new());
        let (full, ended, parted, took_long) = (false, false, false, false);
        let (put_off, slots) = (None, None);
        Connection {
            service,
            codec,
            clock,
            held,
            full,
            ended,
            defer,
            put_off,
            took_long,
            slots,
            parted,
        }
    }

    /// The replies that wait, if there are any.
    #[inline]
    fn waiting(&self) -> Option<&Slots<S::Job>> {
        if !S::Job::EVER {
            return None;
        }
        self.slots.as_deref().filter(|slots| !slots.is_empty())
    }

    /// As [`answer`], and needs are met or deferred: it never stops for one.
    #[inline]
    fn work(&mut self, input: &[u8], out: &mut Vec<u8>) -> (usize, Halt<Never>) {
        let mut consumed = 0;
        if S::Job::EVER {
            self.took_long = false;
            if let Some(job) = self.put_off.take()
                && let Some(halt) = do_now(job, input.is_empty(), out)
            {
                self.took_long = halt == Halt::Full;
                return (consumed, halt);
            }
        }
        loop {
            let reply = match &mut self.slots {
                Some(slots) if S::Job::EVER && !slots.is_empty() => match slots.room() {
                    Some(reply) => reply,
                    None => return (consumed, Halt::Full),
                },
                _ => &mut *out,
            };
            let input = &input[consumed..];
            let (bytes, halt) = answer(&mut self.service, &mut self.codec, input, reply);
            consumed += bytes;
            match halt {
                Halt::Hungry => return (consumed, Halt::Hungry),
                Halt::Full => return (consumed, Halt::Full),
                Halt::Closing => return (consumed, Halt::Closing),
                Halt::Parting => return (consumed, Halt::Parting),
                Halt::Needs(job) if self.defer.takes(&job) => {
                    self.slots.get_or_insert_default().defer(job);
                }
                Halt::Needs(job) if !job.is_short() && !reply.is_empty() => {
                    self.put_off = Some(job);
                    return (consumed, Halt::Full);
                }
                Halt::Needs(job) => {
                    if let Some(halt) = do_now(job, bytes == input.len(), reply) {
                        self.took_long = halt == Halt::Full;
                        return (consumed, halt);
                    }
                }
            }
        }
    }

    fn answer_held(&mut self, now: Instant, out: &mut Vec<u8>) -> Flow {
        let mut held = std::mem::take(&mut self.held);
        let (consumed, halt) = self.work(&held, out);
        if consumed < held.len() && halt != Halt::Closing {
            held.drain(..consumed);
            if held.capacity() > SPACIOUS && held.len() < held.capacity() / 4 {
                held.shrink_to_fit();
            }
            self.held = held;
        }
        self.after(now, consumed, halt)
    }

    fn after(&mut self, now: Instant, consumed: usize, halt: Halt<Never>) -> Flow {
        self.full = halt == Halt::Full;
        self.clock.request(now, consumed > 0, !self.held.is_empty());
        if self.waiting().is_some() {
            match (halt, &mut self.slots) {
                (Halt::Closing, Some(slots)) => slots.close(Flow::Close),
                (Halt::Parting, Some(slots)) => slots.close(Flow::Part),
                _ => {}
            }
            return Flow::Continue;
        }
        self.parted = halt == Halt::Parting;
        let done = halt == Halt::Closing || self.parted || (self.ended && !self.full);
        if done { Flow::Close } else { Flow::Continue }
    }
}

/// Does a job, whose request is the `last` of the input or not. Says why to stop after it, if so.
fn do_now<J: Job>(job: J, last: bool, reply: &mut Vec<u8>) -> Option<Halt<Never>> {
    let short = job.is_short();
    match run_job(job, reply) {
        Flow::Part if last => Some(Halt::Parting),
        Flow::Close | Flow::Part => Some(Halt::Closing),
        // It has taken its time: its reply is sent before anything else is done.
        Flow::Continue if !short => Some(Halt::Full),
        Flow::Continue => None,
    }
}

impl<S: Service> Session for Connection<S> {
    type Job = S::Job;

    #[inline]
    fn on_bytes(&mut self, now: Instant, bytes: &[u8], out: &mut Vec<u8>) -> Flow {
        self.clock.heard(now);
        if self.waiting().is_some_and(Slots::is_closed) {
            // Not interpreted; and if the client had said that it sends no more, it was not so.
            self.slots.iter_mut().for_each(|slots| slots.close(Flow::Close));
            return Flow::Continue;
        }
        if !self.held.is_empty() {
            self.held.extend_from_slice(bytes);
            return self.answer_held(now, out);
        }
        let (consumed, halt) = self.work(bytes, out);
        if halt != Halt::Closing {
            self.held.extend_from_slice(&bytes[consumed..]);
        }
        self.after(now, consumed, halt)
    }

    fn on_writable(&mut self, now: Instant, out: &mut Vec<u8>) -> Flow {
        self.clock.heard(now);
        if S::Job::EVER
            && let Some(slots) = &mut self.slots
            && let flow @ (Flow::Close | Flow::Part) = slots.flush(out)
        {
            self.parted = flow == Flow::Part && self.held.is_empty();
            return Flow::Close;
        }
        match self.full {
            true => self.answer_held(now, out),
            false if S::Job::EVER && self.ended && self.waiting().is_none() => Flow::Close,
            false => Flow::Continue,
        }
    }

    #[inline]
    fn had_its_turn(&self) -> bool {
        S::Job::EVER && self.took_long && !self.held.is_empty()
    }

    fn on_end(&mut self, now: Instant, out: &mut Vec<u8>) -> Flow {
        self.ended = true;
        match self.full {
            true => self.answer_held(now, out),
            false if self.waiting().is_some() => Flow::Continue,
            false => Flow::Close,
        }
    }

    #[inline]
    fn slots(&mut self) -> Option<&mut Slots<S::Job>> {
        if S::Job::EVER { self.slots.as_deref_mut() } else { None }
    }

    #[inline]
    fn wants_input(&self) -> bool {
        // A codec may take no more requests, and its input is bounded all the same.
        let held = self.held.len() < S::Codec::MAX_FRAME;
        self.waiting().is_none_or(|slots| held && !slots.is_full())
    }

    fn due(&self) -> Instant {
        self.clock.due()
    }

    fn on_tick(&mut self, now: Instant) -> Flow {
        // A client that waits for its reply is not silent.
        if self.waiting().is_some() { Flow::Continue } else { self.clock.on_tick(now) }
    }

    fn has_parted(&self) -> bool {
        self.parted
    }
}
