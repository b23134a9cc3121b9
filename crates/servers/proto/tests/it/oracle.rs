//! Tests against another implementation, `ureq-proto`: its client decodes our replies, its server
//! decodes our requests, and our client and server decode its output. It also uses `httparse`, so
//! heads are not tested independently here; framing and contents are.

use crate::{client::read, served::serve};
use proptest::{collection::vec, prelude::*};
use regatta_proto::http1::{Date, Method, Reply, Status, Terms, Version, client::Ask};
use ureq_proto::{
    client::{self as theirs, RecvResponseResult, SendRequestResult},
    http::{Request, Response, header::HeaderMap},
    server::{self, RecvRequestResult, SendResponseResult},
};

/// The result of their client for a reply: status, fields, content, and whether it must close.
fn read_by_their_client(method: &str, reply: &[u8]) -> (u16, HeaderMap, Vec<u8>, bool) {
    let request = Request::builder().method(method).uri("http://a.test/").body(()).unwrap();
    let mut call = theirs::Call::new(request).unwrap().proceed();
    call.write(&mut [0; 1024]).unwrap();
    let Ok(Some(SendRequestResult::RecvResponse(mut call))) = call.proceed() else {
        panic!("their client wants to send content");
    };
    let (head, response) = call.try_response(reply, false).unwrap();
    let response = response.expect("a complete head");
    let mut content = vec![0; 4096];
    let (length, call) = match call.proceed().unwrap() {
        RecvResponseResult::RecvBody(mut call) => {
            let (taken, length) = call.read(&reply[head..], &mut content).unwrap();
            assert_eq!(head + taken, reply.len(), "bytes after the reply");
            match call.proceed().expect("the complete content") {
                theirs::RecvBodyResult::Cleanup(call) => (length, call),
                theirs::RecvBodyResult::Redirect(_) => panic!("no redirect"),
            }
        }
        RecvResponseResult::Cleanup(call) => {
            assert_eq!(head, reply.len(), "bytes after the reply");
            (0, call)
        }
        RecvResponseResult::Redirect(_) => panic!("no redirect"),
    };
    content.truncate(length);
    (response.status().as_u16(), response.headers().clone(), content, call.must_close_connection())
}

#[test]
fn their_client_decodes_our_replies() {
    let date = Date::at(784_111_777);
    for reply in [
        Reply::text(Status::Ok, b"Hello. The time is 784111777"),
        Reply::text(Status::Ok, b""),
        Reply::text(Status::InternalServerError, b"The file is not there."),
        Reply::options("GET, HEAD, OPTIONS"),
        Reply::method_not_allowed("GET, HEAD, OPTIONS"),
        Reply::not_found(),
    ] {
        for (method, keep_alive) in [("GET", true), ("GET", false), ("HEAD", true)] {
            let head_only = method == "HEAD";
            let terms = Terms { version: Version::Http11, head_only, keep_alive };
            let mut out = Vec::new();
            reply.write(terms, &date, &mut out);
            let (status, fields, content, closes) = read_by_their_client(method, &out);
            assert_eq!(status, reply.status.code());
            assert_eq!(content, if head_only { b"" } else { reply.content });
            assert_eq!(closes, !keep_alive);
            assert_eq!(fields["date"], "Sun, 06 Nov 1994 08:49:37 GMT");
            assert_eq!(fields.contains_key("allow"), !reply.allow.is_empty());
        }
    }
}

#[test]
fn their_client_decodes_our_refusals() {
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
    ] {
        let served = serve([request.as_bytes()]);
        let (theirs, _, content, closes) = read_by_their_client("GET", &served.replies);
        assert!(theirs == status && closes && content.ends_with(b"."), "{request}");
    }
}

/// The bytes of a reply that their server writes to a request with `method`, with Content-Length or
/// in chunks.
fn written_by_their_server(method: &str, pieces: &[Vec<u8>], chunked: bool) -> Vec<u8> {
    let mut reply = server::Reply::new().unwrap();
    let request = format!("{method} / HTTP/1.1\r\nhost: a.test\r\n\r\n");
    reply.try_request(request.as_bytes()).unwrap();
    let Some(RecvRequestResult::ProvideResponse(reply)) = reply.proceed() else {
        panic!("their server waits for content");
    };
    let length: usize = pieces.iter().map(Vec::len).sum();
    let response = match chunked {
        true => Response::builder().header("transfer-encoding", "chunked"),
        false => Response::builder().header("content-length", length.to_string()),
    };
    let mut reply = reply.provide(response.body(()).unwrap()).unwrap();
    let mut out = vec![0; 64 * 1024];
    let mut at = reply.write(&mut out).unwrap();
    if let SendResponseResult::SendBody(mut reply) = reply.proceed() {
        for piece in pieces {
            let (taken, written) = reply.write(piece, &mut out[at..]).unwrap();
            assert_eq!(taken, piece.len());
            at += written;
        }
        if chunked {
            at += reply.write(&[], &mut out[at..]).unwrap().1;
        }
        assert!(reply.is_finished());
    }
    out.truncate(at);
    out
}

/// The bytes of a request that their client writes.
fn written_by_their_client(pieces: &[Vec<u8>], chunked: bool) -> Vec<u8> {
    let length: usize = pieces.iter().map(Vec::len).sum();
    let request = match chunked {
        true => Request::post("http://a.test/x?y").header("transfer-encoding", "chunked"),
        false => Request::post("http://a.test/x?y").header("content-length", length.to_string()),
    };
    let mut call = theirs::Call::new(request.body(()).unwrap()).unwrap().proceed();
    let mut out = vec![0; 64 * 1024];
    let mut at = call.write(&mut out).unwrap();
    let Ok(Some(SendRequestResult::SendBody(mut call))) = call.proceed() else {
        panic!("their client must have content to send");
    };
    for piece in pieces {
        let (taken, written) = call.write(piece, &mut out[at..]).unwrap();
        assert_eq!(taken, piece.len());
        at += written;
    }
    if chunked {
        at += call.write(&[], &mut out[at..]).unwrap().1;
    }
    assert!(call.can_proceed());
    out.truncate(at);
    out
}

fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
    vec(vec(any::<u8>(), 1..300), 1..6)
}

proptest! {
    #[test]
    fn our_client_decodes_what_their_server_writes(pieces in pieces(), chunked: bool, head: bool) {
        let (text, method) = if head { ("HEAD", Method::Head) } else { ("GET", Method::Get) };
        let bytes = written_by_their_server(text, &pieces, chunked);
        let seen = read(bytes.repeat(2).chunks(97), method, false).unwrap();
        prop_assert_eq!(seen.len(), 2);
        for response in seen {
            prop_assert_eq!(response.status, 200);
            prop_assert!(response.keep_alive);
            let content = if head { Vec::new() } else { pieces.concat() };
            prop_assert_eq!(response.content, content);
        }
    }

    #[test]
    fn our_server_decodes_what_their_client_writes(pieces in pieces(), chunked: bool) {
        let bytes = written_by_their_client(&pieces, chunked);
        let served = serve(bytes.repeat(2).chunks(97));
        let shown = match chunked {
            true => pieces.iter().map(|p| format!(" [{}]", p.escape_ascii())).collect(),
            false => format!(" [{}]", pieces.concat().escape_ascii()),
        };
        let summary = format!("POST /x query y{shown};");
        prop_assert_eq!(served.statuses(), vec![200, 200]);
        prop_assert_eq!(served.text().matches(&summary).count(), 2, "{}", summary);
    }

    #[test]
    fn their_server_decodes_what_our_client_writes(content in vec(any::<u8>(), 1..1000)) {
        let mut out = Vec::new();
        let fields = &[("X-Y", "z")];
        let (method, target) = (Method::Put, "/a%20b?c=d");
        Ask { method, target, host: "a.test:80", fields, content: Some(&content) }.write(&mut out);
        let mut reply = server::Reply::new().unwrap();
        let (head, request) = reply.try_request(&out).unwrap();
        let request = request.expect("a complete head");
        prop_assert_eq!(request.method().as_str(), "PUT");
        prop_assert_eq!(request.uri().to_string(), target);
        prop_assert_eq!(&request.headers()["x-y"], "z");
        prop_assert_eq!(&request.headers()["host"], "a.test:80");
        let Some(RecvRequestResult::RecvBody(mut reply)) = reply.proceed() else {
            panic!("their server expects no content");
        };
        let mut read = vec![0; content.len() + 1];
        let (taken, length) = reply.read(&out[head..], &mut read).unwrap();
        prop_assert_eq!(head + taken, out.len());
        prop_assert_eq!(&read[..length], &content[..]);
    }
}
