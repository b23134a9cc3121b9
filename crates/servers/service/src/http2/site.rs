//! A server of one resource.

use super::{
    codec::Frames,
    connection::{Place, State},
    form::{Form, response},
    job::StreamJob,
    requests::{Incomplete, Requests},
};
use crate::{
    CallOutcome, Flow, Job, Now, Service,
    http::{self, Local, Resource},
};
use regatta_http2::{
    ErrorCode,
    server::{Event, Request},
};
use regatta_proto::http1::{Ask, Date, Fault, MAX_BODY, Method, Reply, check_authority};
use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

/// A server of one resource over HTTP/2, as a [`Service`]. A clone serves another connection.
#[derive(Debug)]
pub struct Site<R> {
    resource: R,
    /// How long the fields and the content of a request may take.
    request_timeout: Duration,
    stopping: Option<Stopping>,
    connection: Option<Connection>,
}

/// Whether the server is stopping.
#[derive(Clone)]
struct Stopping(Arc<dyn Fn() -> bool + Send + Sync>);

impl fmt::Debug for Stopping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stopping").field(&(self.0)()).finish()
    }
}

#[derive(Debug)]
struct Connection {
    place: Place,
    requests: Requests,
    /// When the field block started whose CONTINUATION frames are awaited.
    fields_since: Option<Instant>,
}

impl Connection {
    /// When the oldest incomplete request started.
    #[inline]
    fn inside(&self) -> Option<Instant> {
        self.requests.oldest().into_iter().chain(self.fields_since).min()
    }
}

impl<R> Site<R> {
    /// Serves `resource`. A connection with a request that takes longer than `request_timeout` to arrive is
    /// closed.
    pub fn new(resource: R, request_timeout: Duration) -> Self {
        Site { resource, request_timeout, stopping: None, connection: None }
    }

    /// Sets how it finds out that the server is stopping. Then it sends GOAWAY as soon as the next frame
    /// arrives, and does not process later requests, which the client can send again. Without this, GOAWAY
    /// follows the end of the input.
    pub fn stops_when(mut self, is_stopping: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.stopping = Some(Stopping(Arc::new(is_stopping)));
        self
    }
}

impl<R: Clone> Clone for Site<R> {
    fn clone(&self) -> Self {
        let stopping = self.stopping.clone();
        Site { stopping, ..Site::new(self.resource.clone(), self.request_timeout) }
    }
}

/// `:status: 100`.
const CONTINUE: &[u8] = &[0x08, 3, b'1', b'0', b'0'];

/// What an event requires.
enum Turn<J> {
    Nothing,
    /// The client sends its content only after [`CONTINUE`].
    Continue,
    /// The reply was written.
    Reply,
    /// The reply needs a job.
    Needs(J),
    /// The request is not processed.
    Refuse,
}

impl<J> From<CallOutcome<J>> for Turn<J> {
    #[inline]
    fn from(outcome: CallOutcome<J>) -> Self {
        match outcome {
            CallOutcome::Replied(_) => Turn::Reply,
            CallOutcome::Needs(job) => Turn::Needs(job),
        }
    }
}

impl<R: Resource<Form>> Service for Site<R> {
    type Codec = Frames;
    type Job = StreamJob<R::Job>;
    type Local = Local<R::Local>;

    #[inline]
    fn call(
        &mut self,
        local: &mut Self::Local,
        now: Now,
        mut frame: &[u8],
        out: &mut Vec<u8>,
    ) -> CallOutcome<Self::Job> {
        let Site { resource, request_timeout, stopping, connection } = self;
        let connection = connection.get_or_insert_with(|| Connection {
            place: Place::new(R::Job::EVER),
            requests: Requests::default(),
            fields_since: None,
        });
        let inside = connection.inside();
        let Connection { place, requests, fields_since } = connection;
        let mut needs = None;
        let mut access = place.get();
        let State { server, scratch } = &mut *access;
        let is_late = |since| now.instant.saturating_duration_since(since) > *request_timeout;
        if inside.is_some_and(is_late) {
            server.end(out);
            return Flow::Close.into();
        }
        if stopping.as_ref().is_some_and(|Stopping(is_set)| is_set()) {
            server.drain(out);
        }
        let (date, local) = local.at(now);
        let mut answering = Answering { resource, local, date, requests, now, reply: scratch };
        loop {
            let (stream, turn) = match server.next(&mut frame, out) {
                Ok(None) => break,
                Err(_) => return Flow::Close.into(),
                Ok(Some(Event::Request { stream, request })) => {
                    (stream, answering.head(stream, request))
                }
                Ok(Some(Event::Content { stream, bytes, ends })) => {
                    (stream, answering.content(stream, bytes.len(), ends))
                }
                Ok(Some(Event::Trailers { stream, .. })) => (stream, answering.complete(stream)),
                Ok(Some(Event::Reset { stream, .. } | Event::Wrong { stream, .. })) => {
                    (stream, answering.forget(stream))
                }
            };
            match turn {
                Turn::Nothing => {}
                Turn::Continue => server.inform(stream, CONTINUE, out),
                Turn::Reply => {
                    server.respond(stream, response(answering.reply), out);
                }
                Turn::Refuse => {
                    server.reset(stream, ErrorCode::REFUSED_STREAM, out);
                }
                Turn::Needs(job) => needs = Some((stream, job)),
            }
        }
        *fields_since = server.awaits_fields().then(|| fields_since.unwrap_or(now.instant));
        drop(access);
        // A frame completes at most one request.
        match needs.zip(place.shared()) {
            Some(((stream, job), state)) => {
                CallOutcome::Needs(StreamJob { job, stream, state: Arc::clone(state) })
            }
            None => Flow::Continue.into(),
        }
    }

    #[inline]
    fn inside(&self) -> Option<Instant> {
        self.connection.as_ref()?.inside()
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(connection) = &mut self.connection {
            connection.place.get().server.end(out);
        }
    }
}

/// Checks that a request names one valid host. HTTP/1.1 refuses the same ones.
#[inline]
fn host(request: &Request<'_>) -> Result<(), Fault> {
    if request.has_hosts() {
        return Err(Fault::HOST_REPEATED);
    }
    check_authority(request.authority().ok_or(Fault::HOST_MISSING)?)
}

/// What answers requests.
struct Answering<'a, R: Resource<Form>> {
    resource: &'a mut R,
    local: &'a mut R::Local,
    date: &'a Date,
    requests: &'a mut Requests,
    now: Now,
    /// The reply that was written last.
    reply: &'a mut Vec<u8>,
}

impl<R: Resource<Form>> Answering<'_, R> {
    #[inline]
    fn head(&mut self, stream: u32, request: Request<'_>) -> Turn<R::Job> {
        let (method, target) = (request.method(), request.path());
        if let Err(fault) = host(&request) {
            return self.refuse(method, fault);
        }
        if request.ends && request.expects().is_none() {
            return self.answer(method, target);
        }
        self.begin(stream, request)
    }

    /// Handles a request that has content, or expectations. HTTP/1.1 refuses the same ones.
    #[inline(never)]
    fn begin(&mut self, stream: u32, request: Request<'_>) -> Turn<R::Job> {
        let (method, target) = (request.method(), request.path());
        let expects = request.expects();
        let is_continue = expects.is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue"));
        let is_too_long = request.content_length().is_some_and(|length| length > MAX_BODY as u64);
        let fault = match Ask::read(method, target) {
            Err(fault) => Some(fault),
            Ok(_) if expects.is_some() && !is_continue => Some(Fault::EXPECTATION),
            Ok(_) => is_too_long.then_some(Fault::CONTENT_TOO_LARGE),
        };
        if let Some(fault) = fault {
            return self.refuse(method, fault);
        }
        if request.ends {
            return self.answer(method, target);
        }
        if !self.requests.add(stream, (method, target), self.now.instant) {
            return Turn::Refuse;
        }
        if is_continue { Turn::Continue } else { Turn::Nothing }
    }

    fn content(&mut self, stream: u32, bytes: usize, ends: bool) -> Turn<R::Job> {
        let Some(request) = self.requests.get_mut(stream) else { return Turn::Nothing };
        request.content += bytes;
        let is_too_long = request.content > MAX_BODY;
        if !is_too_long {
            return if ends { self.complete(stream) } else { Turn::Nothing };
        }
        self.finish(stream, |all, request| all.refuse(request.method(), Fault::CONTENT_TOO_LARGE))
    }

    /// Answers a request whose content is complete.
    fn complete(&mut self, stream: u32) -> Turn<R::Job> {
        self.finish(stream, |all, request| all.answer(request.method(), request.target()))
    }

    fn forget(&mut self, stream: u32) -> Turn<R::Job> {
        self.finish(stream, |_, _| Turn::Nothing)
    }

    fn finish(
        &mut self,
        stream: u32,
        answer: impl FnOnce(&mut Self, &Incomplete) -> Turn<R::Job>,
    ) -> Turn<R::Job> {
        let Some(request) = self.requests.remove(stream) else { return Turn::Nothing };
        let turn = answer(self, &request);
        self.requests.recycle(request);
        turn
    }

    #[inline]
    fn answer(&mut self, method: &[u8], target: &[u8]) -> Turn<R::Job> {
        let ask = match Ask::read(method, target) {
            Ok(ask) => ask,
            Err(fault) => return self.refuse(method, fault),
        };
        self.reply.clear();
        let form = Form { head_only: ask.method == Method::Head };
        http::answer(self.resource, self.local, ask, form, self.date, self.reply).into()
    }

    #[cold]
    fn refuse(&mut self, method: &[u8], Fault { status, why }: Fault) -> Turn<R::Job> {
        self.reply.clear();
        let form = Form { head_only: method == b"HEAD" };
        http::Form::write(form, &Reply::text(status, why.as_bytes()), self.date, self.reply);
        Turn::Reply
    }
}
