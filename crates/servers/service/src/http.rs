//! HTTP services. This is what all resources have in common; a resource only implements GET, which
//! includes HEAD.

use crate::{CallOutcome, Codec, Decoded, Flow, Job, Now, Service};
use regatta_proto::http1::{
    self, CONTINUE, Date, Method, Reply, Terms,
    server::{Decoder, Event, Request},
};

/// The protocol.
#[derive(Debug, Default)]
pub struct Http(Decoder);

impl Codec for Http {
    type Request<'a> = Event<'a>;
    const MAX_FRAME: usize = http1::MAX_FRAME;

    #[inline(always)]
    fn decode<'a>(&mut self, input: &'a [u8]) -> Decoded<Event<'a>> {
        match self.0.decode(input) {
            Some((event, consumed)) => Decoded::Request(event, consumed),
            None => Decoded::Incomplete,
        }
    }
}

/// The replies of a resource to GET and HEAD, which differ only in their terms. [`Site`] answers
/// OPTIONS, other methods and other paths.
pub trait Resource: Clone + Send + Sync + 'static {
    /// The path.
    const PATH: &'static str;

    /// The job that a reply may need.
    type Job: Job;

    /// Data that connections may share within a thread. It may only hold caches.
    type Local: Default + Send + 'static;

    /// Appends the reply according to `terms`, or returns the job it needs. `query` is the text
    /// after `?`, not decoded.
    #[expect(clippy::too_many_arguments, reason = "all that a reply depends on")]
    fn get(
        &mut self,
        local: &mut Self::Local,
        query: Option<&str>,
        terms: Terms,
        date: &Date,
        reply: &mut Vec<u8>,
    ) -> CallOutcome<Self::Job>;

    /// Returns another page, with its media type, for the people who operate a server. `None`: nothing is under this
    /// path. Only [`OperatorPages`](crate::operators::OperatorPages) asks for it. `unix_s`: the time.
    fn operator_page(&self, _path: &str, _unix_s: u64) -> Option<(&'static str, String)> {
        None
    }
}

/// A server of one resource, as a [`Service`].
#[derive(Clone, Debug)]
pub struct Site<R>(pub R);

/// Data that the connections of a site share within a thread.
#[derive(Debug)]
pub struct Local<L> {
    /// The date of the last reply, formatted once.
    date: Date,
    resource: L,
}

impl<L: Default> Default for Local<L> {
    fn default() -> Self {
        Local { date: Date::at(0), resource: L::default() }
    }
}

const METHODS: &str = "GET, HEAD, OPTIONS";

/// Returns what happens to the connection after a reply with these terms. If it closes, the client
/// asked for that and sends nothing more (RFC 9112, 9.6).
#[inline]
pub fn flow(terms: Terms) -> Flow {
    if terms.keep_alive { Flow::Continue } else { Flow::ClosedByClient }
}

impl<R: Resource> Service for Site<R> {
    type Codec = Http;
    type Job = R::Job;
    type Local = Local<R::Local>;

    #[inline]
    fn call(
        &mut self,
        local: &mut Self::Local,
        now: Now,
        event: Event<'_>,
        reply: &mut Vec<u8>,
    ) -> CallOutcome<R::Job> {
        let Local { date, resource } = local;
        if date.unix_s() != now.unix_s {
            *date = Date::at(now.unix_s);
        }
        match event {
            Event::Request(request) => answer(&mut self.0, resource, request, date, reply),
            Event::Continue => {
                reply.extend_from_slice(CONTINUE);
                Flow::Continue.into()
            }
            Event::Rejected(rejection) => {
                rejection.write(date, reply);
                Flow::Close.into()
            }
        }
    }
}

#[inline]
fn answer<R: Resource>(
    resource: &mut R,
    local: &mut R::Local,
    request: Request<'_>,
    date: &Date,
    reply: &mut Vec<u8>,
) -> CallOutcome<R::Job> {
    let Request { method, terms, .. } = request;
    let (path, query) = request.path_and_query();
    let fixed = match method {
        Method::Get | Method::Head if path == R::PATH => {
            return resource.get(local, query, terms, date, reply);
        }
        Method::Options if path == R::PATH || path == "*" => Reply::options(METHODS),
        _ if path == R::PATH => Reply::method_not_allowed(METHODS),
        _ => Reply::not_found(),
    };
    fixed.write(terms, date, reply);
    flow(terms).into()
}
