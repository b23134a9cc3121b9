//! The HTTP API for backends, in the form of Centrifugo's (version 6, "Server HTTP API"), so that its libraries
//! work: `POST /api/METHOD`, with a key, and JSON in both directions.

mod awaited;
mod command;
pub(super) mod keys;
mod recent;
mod remote;
mod reply;

pub(super) use awaited::Awaited;
pub(super) use command::{Backend, Everybody};
pub(super) use reply::Publication;

use super::refusal::RefusedClient;
use crate::http::flow;
use command::NotJson;
use regatta_engine::Flow;
use regatta_proto::http1::{Date, Method, Reply, Status, server::Request};

/// The start of its paths.
const PATH: &str = "/api/";

/// The method of a request to the API; `None` if it is to another resource.
pub(super) fn method<'a>(request: &Request<'a>) -> Option<&'a str> {
    request.path().strip_prefix(PATH)
}

/// Answers a request for a method.
pub(super) fn answer(
    method: &str,
    request: &Request<'_>,
    backend: &mut Backend<'_>,
    out: &mut Vec<u8>,
) -> Flow {
    let date = Date::at(backend.now.unix_s);
    let mut write = |reply: Reply<'_>| reply.write(request.terms, &date, out);
    if request.method != Method::Post {
        write(Reply::method_not_allowed("POST"));
    } else if let Err(wrong) = backend.api.check(&request.fields) {
        let refusal = RefusedClient { what: "request", reason: wrong.reason(), of: method };
        refusal.log(backend.settings, backend.census, backend.now);
        backend.census.denies_key();
        let text = format!("{}: {}", wrong.reason(), wrong.why());
        write(Reply::text(Status::Unauthorized, text.as_bytes()));
    } else {
        let body = request.body.pieces().collect::<Vec<_>>().concat();
        let reply = backend.call(method, &body);
        if let Some(awaited) = &mut backend.awaited {
            awaited.begins(method, body, request.terms);
            return Flow::Continue;
        }
        match reply {
            Ok(json) => {
                let json = Reply::text(Status::Ok, json.as_bytes());
                write(Reply { content_type: "application/json", ..json });
            }
            Err(NotJson(why)) => write(Reply::text(Status::BadRequest, why.as_bytes())),
        }
    }
    flow(request.terms)
}
