use super::*;
use crate::script::Conversations;
use regatta_http2::hpack::{Decoder, Fields};

/// A script of GETs and a POST with a common field.
fn script() -> Script {
    let mut script = Script::new(Conversations::Each(1));
    for i in 0..3 {
        let request = format!(
            "GET /items/{i} HTTP/1.1\r\nHost: a.example\r\nUser-Agent: one\r\nX-Id: {i}\r\n\
             Connection: keep-alive\r\n\r\n"
        );
        script.push(request.as_bytes(), b"");
    }
    let post =
        "POST /items HTTP/1.1\r\nHost: a.example\r\nUser-Agent: one\r\nContent-Length: 2\r\n\r\nhi";
    script.push(post.as_bytes(), b"");
    script.close(1).unwrap();
    script
}

/// The fields in a HEADERS frame.
fn fields(frame: &[u8], decoder: &mut Decoder) -> Vec<(String, String)> {
    let mut fields = Fields::default();
    decoder.decode(&frame[Header::SIZE..], &mut fields).unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    fields.iter().map(|field| (text(field.name), text(field.value))).collect()
}

fn expected(i: u32) -> Vec<(String, String)> {
    let (method, path) = match i {
        3 => ("POST", "/items".to_owned()),
        _ => ("GET", format!("/items/{i}")),
    };
    let own = match i {
        3 => ("content-length", "2".to_owned()),
        _ => ("x-id", i.to_string()),
    };
    let mut all = vec![
        (":method", method.to_owned()),
        (":scheme", "https".to_owned()),
        (":path", path),
        (":authority", "a.example".to_owned()),
        ("user-agent", "one".to_owned()),
        own,
    ];
    all.sort();
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[test]
fn every_form_of_a_request_has_the_same_fields() {
    let requests = Requests::compile(&script(), true, None);
    let (mut table, mut decoder) = (Table::Empty, Decoder::new(1 << 16));
    let mut lengths = Vec::new();
    for (nth, i) in [3, 0, 1, 2, 3, 0, 1].into_iter().enumerate() {
        if nth == 5 {
            table.limit(100);
            decoder.set_limit(100);
        }
        let mut frame = Vec::new();
        requests.write_head(i, (7, None), &mut table, &mut frame);
        let mut found = fields(&frame, &mut decoder);
        let regular = found.iter().position(|(name, _)| !name.starts_with(':')).unwrap();
        assert!(found[..regular].iter().all(|(name, _)| name.starts_with(':')), "{found:?}");
        assert_eq!(regular, 4, "pseudo-header fields come first");
        found.sort();
        assert_eq!(found, expected(i));
        lengths.push(frame.len());
    }
    assert!(lengths[0] > lengths[4], "the first request fills the table: {lengths:?}");
    assert!(lengths[5] > lengths[1], "without a table, requests are longer: {lengths:?}");
    assert_eq!(requests.content(3), b"hi");
    assert!(!requests.is_head(0));
}

#[test]
fn a_long_head_is_continued() {
    let mut script = Script::new(Conversations::Each(1));
    let cookie = "!~".repeat(20_000);
    let get = |id| format!("HEAD / HTTP/1.1\r\nHost: a\r\nCookie: {cookie}{id}\r\n\r\n");
    script.push(get(1).as_bytes(), b"");
    script.push(get(2).as_bytes(), b"");
    script.close(1).unwrap();
    let requests = Requests::compile(&script, false, None);
    let mut frames = Vec::new();
    requests.write_head(1, (1, None), &mut Table::Empty, &mut frames);
    let first = Header::read(frames.first_chunk().unwrap());
    assert_eq!((first.length, first.kind), (MIN_MAX_SIZE, Kind::HEADERS));
    assert!(first.has(flag::END_STREAM) && !first.has(flag::END_HEADERS));
    assert!(requests.is_head(1));
}

#[test]
fn the_content_of_a_chunked_request_is_sent_without_its_chunk() {
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (body, content) in [
        ("2\r\nhi\r\n0\r\n\r\n", "hi"),
        ("0\r\n\r\n", ""),
        ("9\r\n\r\n0\r\n\r\n-\r\n0\r\n\r\n", "\r\n0\r\n\r\n-"),
    ] {
        let mut script = Script::new(Conversations::Each(1));
        script.push(format!("{head}{body}").as_bytes(), b"");
        script.close(1).unwrap();
        let requests = Requests::compile(&script, false, None);
        assert_eq!(requests.content(0), content.as_bytes());
        let mut frame = Vec::new();
        requests.write_head(0, (1, None), &mut Table::default(), &mut frame);
        let fields = fields(&frame, &mut Decoder::new(1 << 16));
        assert!(
            !fields.iter().any(|(name, _)| name.contains("transfer") || name.contains("length"))
        );
    }
}
