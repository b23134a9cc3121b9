//! A server without a socket. Each reply contains a summary of its request.

use regatta_proto::http1::{
    CONTINUE, Date, MAX_FRAME, Reply, Status,
    server::{Decoder, Event, Request},
};

/// The result of a connection.
#[derive(Debug, PartialEq, Eq)]
pub struct Served {
    /// All replies.
    pub replies: Vec<u8>,
    /// The server closed the connection.
    pub closed: bool,
}

impl Served {
    /// The replies as text, without the interim ones.
    pub fn text(&self) -> String {
        let text = String::from_utf8(self.replies.clone()).unwrap();
        text.replace(std::str::from_utf8(CONTINUE).unwrap(), "")
    }

    /// The statuses of the replies, without the interim ones.
    pub fn statuses(&self) -> Vec<u16> {
        // An error sentence may contain HTTP/1.1, too, but no digits follow there.
        let text = self.text();
        text.split("HTTP/1.1 ").filter_map(|reply| reply.get(..3)?.parse().ok()).collect()
    }
}

/// Serves a connection that sends these pieces.
pub fn serve<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Served {
    let (mut decoder, mut held) = (Decoder::default(), Vec::new());
    let mut served = Served { replies: Vec::new(), closed: false };
    for piece in pieces {
        held.extend_from_slice(piece);
        while let Some((event, length)) = decoder.decode(&held) {
            assert!(!served.closed, "an event after the close");
            served.closed = answer(event, &mut served.replies);
            held.drain(..length);
        }
        if served.closed {
            held.clear();
        }
        assert!(held.len() < MAX_FRAME, "{} bytes are held", held.len());
    }
    served
}

/// Answers an event. Returns whether the connection closes.
fn answer(event: Event<'_>, out: &mut Vec<u8>) -> bool {
    let date = Date::at(784_111_777);
    match event {
        Event::Continue => out.extend_from_slice(CONTINUE),
        Event::Rejected(rejection) => {
            rejection.write(&date, out);
            return true;
        }
        Event::Request(request) => {
            let content = summary(&request);
            Reply::text(Status::Ok, content.as_bytes()).write(request.terms, &date, out);
            return !request.terms.keep_alive;
        }
    }
    false
}

/// A summary of a request, in one line.
fn summary(request: &Request<'_>) -> String {
    let mut line = format!("{} {}", request.method.as_str(), request.path());
    if let Some(query) = request.query() {
        line += &format!(" query {query}");
    }
    if let Some(x) = request.fields.get("x") {
        line += &format!(" x {}", x.escape_ascii());
    }
    for piece in request.body.pieces() {
        line += &format!(" [{}]", piece.escape_ascii());
    }
    line + ";"
}
