//! The pages of a server for those who operate it, served on a port of their own: its metrics, `/live` and `/ready`.

use crate::{
    CallOutcome, Now, Service,
    http::{Http, Local, Resource, Site, flow},
};
use regatta_proto::http1::{Date, Method, Reply, Status, server::Event};
use std::{fmt, sync::Arc};

/// Answered with 200 as long as the process serves.
const LIVE: &str = "/live";
/// Answered with 200 while the server should get new clients, otherwise with 503 and the reason.
const READY: &str = "/ready";
const METHODS: &str = "GET, HEAD";

/// The pages: a resource, usually the metrics, with `/live`, `/ready` and its
/// [`operator_page`](Resource::operator_page).
#[derive(Clone)]
pub struct OperatorPages<R> {
    site: Site<R>,
    readiness: Arc<dyn Fn() -> Result<(), &'static str> + Send + Sync>,
}

impl<R> OperatorPages<R> {
    /// Creates the pages. `readiness`: whether the server should get new clients, or why not.
    pub fn new(
        resource: R,
        readiness: impl Fn() -> Result<(), &'static str> + Send + Sync + 'static,
    ) -> Self {
        OperatorPages { site: Site(resource), readiness: Arc::new(readiness) }
    }
}

impl<R: fmt::Debug> fmt::Debug for OperatorPages<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperatorPages").field("site", &self.site).finish_non_exhaustive()
    }
}

impl<R: Resource> Service for OperatorPages<R> {
    type Codec = Http;
    type Job = R::Job;
    type Local = Local<R::Local>;

    fn call(
        &mut self,
        local: &mut Self::Local,
        now: Now,
        event: Event<'_>,
        reply: &mut Vec<u8>,
    ) -> CallOutcome<R::Job> {
        let (request, path) = match event {
            Event::Request(request) => (request, request.path()),
            _ => return self.site.call(local, now, event, reply),
        };
        let text; // what a page says, with the end of its line
        let gets = matches!(request.method, Method::Get | Method::Head);
        let page = match path {
            LIVE | READY if !gets => Reply::method_not_allowed(METHODS),
            LIVE => Reply::text(Status::Ok, b"live\n"),
            READY => match (self.readiness)() {
                Ok(()) => Reply::text(Status::Ok, b"ready\n"),
                Err(why) => {
                    text = format!("{why}\n");
                    Reply::text(Status::ServiceUnavailable, text.as_bytes())
                }
            },
            _ => match self.site.0.operator_page(path, now.unix_s) {
                Some(_) if !gets => Reply::method_not_allowed(METHODS),
                Some((content_type, content)) => {
                    text = content;
                    Reply { content_type, ..Reply::text(Status::Ok, text.as_bytes()) }
                }
                None => return self.site.call(local, now, event, reply),
            },
        };
        page.write(request.terms, &Date::at(now.unix_s), reply);
        flow(request.terms).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Codec, Decoded, Never, hello::Hello};
    use std::{
        sync::atomic::{AtomicBool, Ordering::SeqCst},
        time::Instant,
    };

    /// The status line of the reply to a request, and its last line.
    fn ask<R: Resource<Job = Never>>(pages: &mut OperatorPages<R>, request: &str) -> [String; 2] {
        let bytes = format!("{request} HTTP/1.1\r\nHost: x\r\n\r\n");
        let mut codec = Http::default();
        let Decoded::Request(event, _) = codec.decode(bytes.as_bytes()) else {
            panic!("{request} is incomplete");
        };
        let mut reply = Vec::new();
        let now = Now { instant: Instant::now(), unix_s: 0 };
        pages.call(&mut Local::default(), now, event, &mut reply);
        let text = String::from_utf8(reply).unwrap();
        [text.lines().next(), text.lines().next_back()].map(|line| line.unwrap().to_owned())
    }

    #[test]
    fn readiness_changes_and_a_server_stays_live() {
        let is_ready = Arc::new(AtomicBool::new(true));
        let readiness = {
            let is_ready = Arc::clone(&is_ready);
            move || if is_ready.load(SeqCst) { Ok(()) } else { Err("stopping: soon") }
        };
        let mut pages = OperatorPages::new(Hello, readiness);
        assert_eq!(ask(&mut pages, "GET /ready"), ["HTTP/1.1 200 OK", "ready"]);
        assert_eq!(ask(&mut pages, "GET /live?x"), ["HTTP/1.1 200 OK", "live"]);
        is_ready.store(false, SeqCst);
        let expected = ["HTTP/1.1 503 Service Unavailable", "stopping: soon"];
        assert_eq!(ask(&mut pages, "GET /ready"), expected);
        assert_eq!(ask(&mut pages, "HEAD /ready")[0], expected[0]);
        assert_eq!(ask(&mut pages, "GET /live"), ["HTTP/1.1 200 OK", "live"]);
    }

    #[test]
    fn other_paths_and_methods_are_answered_as_before() {
        let mut pages = OperatorPages::new(Hello, || Ok(()));
        assert!(ask(&mut pages, "GET /")[1].starts_with("Hello. The time is "));
        assert_eq!(ask(&mut pages, "GET /readyx")[0], "HTTP/1.1 404 Not Found");
        assert_eq!(ask(&mut pages, "POST /ready")[0], "HTTP/1.1 405 Method Not Allowed");
    }
}
