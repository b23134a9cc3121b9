//! HTTP services: what every resource has in common, so that one is only what it answers to GET.

use crate::{Called, Codec, Decoded, Flow, Job, Now, Service};
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

/// What a resource answers to GET. HEAD, OPTIONS, other methods and other paths are answered for it.
pub trait Resource: Clone + Send + Sync + 'static {
    /// Where it is.
    const PATH: &'static str;

    /// What its replies may need.
    type Job: Job;

    /// What its connections may share within a thread: caches, never meaning.
    type Local: Default + Send + 'static;

    /// Appends the reply on these terms, or says what it needs for that. `query` is what follows the
    /// `?`, not decoded.
    fn get(
        &mut self,
        local: &mut Self::Local,
        query: Option<&str>,
        terms: Terms,
        date: &Date,
        reply: &mut Vec<u8>,
    ) -> Called<Self::Job>;
}

/// A server of one resource, as a [`Service`].
#[derive(Clone, Debug)]
pub struct Site<R>(pub R);

/// What the connections of a site share within a thread.
#[derive(Debug)]
pub struct Local<L> {
    /// That of the last reply, formatted once.
    date: Date,
    resource: L,
}

impl<L: Default> Default for Local<L> {
    fn default() -> Self {
        Local { date: Date::at(0), resource: L::default() }
    }
}

const METHODS: &str = "GET, HEAD, OPTIONS";

/// What a connection does after a reply on these terms. One that ends does so because the client
/// asked for it, so it sends no more (RFC 9112, 9.6).
#[inline]
pub fn flow(terms: Terms) -> Flow {
    if terms.keep_alive { Flow::Continue } else { Flow::Part }
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
    ) -> Called<R::Job> {
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
) -> Called<R::Job> {
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
