//! HTTP services. This is what all resources have in common; a resource only implements GET, which
//! includes HEAD.

use crate::{CallOutcome, Codec, Decoded, Flow, Job, Now, Service};
use regatta_proto::http1::{
    self, Ask, CONTINUE, Date, Method, Prepared, Reply, Terms,
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

/// The form of a reply: that of a version of HTTP, and what the request requires of it.
pub trait Form: Copy + Send + 'static {
    /// A reply that is written once and appended many times.
    type Prepared: Default + Send + 'static;

    /// Appends a reply.
    fn write(self, reply: &Reply<'_>, date: &Date, out: &mut Vec<u8>);

    /// What happens to the connection after a reply.
    fn flow(self) -> Flow;

    /// Whether a reply was prepared for this form and this date.
    fn is_prepared(self, prepared: &Self::Prepared, date: &Date) -> bool;

    /// Replaces a prepared reply.
    fn prepare(self, prepared: &mut Self::Prepared, reply: &Reply<'_>, date: &Date);

    /// Appends a prepared reply.
    fn append(self, prepared: &Self::Prepared, out: &mut Vec<u8>);
}

/// The form of HTTP/1.1.
impl Form for Terms {
    type Prepared = Prepared;

    #[inline]
    fn write(self, reply: &Reply<'_>, date: &Date, out: &mut Vec<u8>) {
        reply.write(self, date, out);
    }

    #[inline]
    fn flow(self) -> Flow {
        flow(self)
    }

    #[inline]
    fn is_prepared(self, prepared: &Prepared, date: &Date) -> bool {
        prepared.is_for(self, date)
    }

    fn prepare(self, prepared: &mut Prepared, reply: &Reply<'_>, date: &Date) {
        prepared.prepare(reply, self, date);
    }

    #[inline]
    fn append(self, prepared: &Prepared, out: &mut Vec<u8>) {
        prepared.append(out);
    }
}

/// The replies of a resource to GET and HEAD, which differ only in their form: `F`. [`Site`]
/// answers OPTIONS, other methods and other paths.
pub trait Resource<F: Form = Terms>: Clone + Send + Sync + 'static {
    /// The path.
    const PATH: &'static str;

    /// The job that a reply may need.
    type Job: Job;

    /// Data that connections may share within a thread. It may only hold caches.
    type Local: Default + Send + 'static;

    /// Appends the reply in this form, or returns the job it needs. `query` is the text
    /// after `?`, not decoded.
    #[expect(clippy::too_many_arguments, reason = "all that a reply depends on")]
    fn get(
        &mut self,
        local: &mut Self::Local,
        query: Option<&str>,
        form: F,
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

impl<L> Local<L> {
    /// The date, and the data of the resource.
    #[inline]
    pub(crate) fn at(&mut self, now: Now) -> (&Date, &mut L) {
        if self.date.unix_s() != now.unix_s {
            self.date = Date::at(now.unix_s);
        }
        (&self.date, &mut self.resource)
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
        let (date, resource) = local.at(now);
        match event {
            Event::Request(request) => {
                let Request { method, terms, .. } = request;
                let (path, query) = request.path_and_query();
                answer(&mut self.0, resource, Ask { method, path, query }, terms, date, reply)
            }
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

/// Answers a request, the same way in all versions of HTTP.
#[inline]
#[expect(clippy::too_many_arguments, reason = "all that a reply depends on")]
pub(crate) fn answer<F: Form, R: Resource<F>>(
    resource: &mut R,
    local: &mut R::Local,
    ask: Ask<'_>,
    form: F,
    date: &Date,
    reply: &mut Vec<u8>,
) -> CallOutcome<R::Job> {
    let Ask { method, path, query } = ask;
    let fixed = match method {
        Method::Get | Method::Head if path == R::PATH => {
            return resource.get(local, query, form, date, reply);
        }
        Method::Options if path == R::PATH || path == "*" => Reply::options(METHODS),
        _ if path == R::PATH => Reply::method_not_allowed(METHODS),
        _ => Reply::not_found(),
    };
    form.write(&fixed, date, reply);
    form.flow().into()
}
