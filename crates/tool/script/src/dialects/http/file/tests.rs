//! Requests and expected replies of a workload file, byte for byte.

use super::*;
use crate::{
    dialect::Dialect,
    dialects::http::reply::expected::{Is, Member},
};
use regatta_proto::http1::Method;

const PLACE: Destination<'_> =
    Destination { host: "h:1", path: None, closes: false, timeout: None };

fn file(text: &str) -> HttpFile {
    let text = format!("protocol = 'http'\n{text}");
    HttpFile::read(FileText::alone(&text, "test")).unwrap()
}

fn compiled(file: &HttpFile, seed: u64, place: Destination<'_>) -> Http {
    file.compile(&CompileOptions { seed, pipeline: 1, place, ..CompileOptions::default() }).unwrap()
}

/// The first `n` exchanges: each request and the text that its reply is compared with.
fn first(n: u32, text: &str) -> Vec<(String, String)> {
    let http = compiled(&file(text), 3, PLACE);
    let script = http.script();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (0..n).map(|i| (text(script.request(i)), text(script.reply(i)))).collect()
}

#[test]
fn writes_requests_byte_for_byte() {
    for (request, bytes) in [
        ("path='/'", "GET / HTTP/1.1\r\nHost: h:1\r\n\r\n"),
        ("path='/'\nmethod='POST'", "POST / HTTP/1.1\r\nHost: h:1\r\nContent-Length: 0\r\n\r\n"),
        (
            "path='/'\nmethod='PUT'\nheaders={X-B='{{}}', X-A='1'}\nbody=\"é\\n\"",
            "PUT / HTTP/1.1\r\nHost: h:1\r\nX-A: 1\r\nX-B: {}\r\nContent-Length: 3\r\n\r\né\n",
        ),
        (
            "path='/'\nbody=''\nheaders={host='other'}",
            "GET / HTTP/1.1\r\nHost: other\r\nContent-Length: 0\r\n\r\n",
        ),
        (
            "path='/'\nbody_file='x'\n[files]\nx='{n}'",
            "GET / HTTP/1.1\r\nHost: h:1\r\nContent-Length: 3\r\n\r\n{n}",
        ),
        (
            "path='/'\nbody_file='x'\n[files]\nx={base64='aGk='}",
            "GET / HTTP/1.1\r\nHost: h:1\r\nContent-Length: 2\r\n\r\nhi",
        ),
        (
            "path='/'\nmethod='POST'\nbody='0123456789abcdef'\nchunked=true",
            "POST / HTTP/1.1\r\nHost: h:1\r\nTransfer-Encoding: chunked\r\n\r\n\
             10\r\n0123456789abcdef\r\n0\r\n\r\n",
        ),
        (
            "path='/'\nmethod='POST'\nbody=''\nchunked=true",
            "POST / HTTP/1.1\r\nHost: h:1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        (
            "path='/'\nmethod='POST'\nbody='x'\nchunked=false",
            "POST / HTTP/1.1\r\nHost: h:1\r\nContent-Length: 1\r\n\r\nx",
        ),
    ] {
        assert_eq!(first(1, &format!("[[request]]\n{request}"))[0].0, bytes);
    }
}

#[test]
fn the_expected_reply_to_a_chunked_request_can_use_its_body() {
    let text = "[[request]]\nmethod='POST'\npath='/'\nchunked=true\nbody='{b=int:10..99}'\nexact='{b+1}{request}'";
    for (request, reply) in first(9, text) {
        let (_, body) = request.split_once("\r\n\r\n2\r\n").unwrap();
        let body = body.strip_suffix("\r\n0\r\n\r\n").unwrap();
        assert_eq!(reply, format!("{}{body}", body.parse::<i64>().unwrap() + 1));
    }
}

#[test]
fn a_whole_body_of_json_is_one_member() {
    let file = file("[[request]]\npath='/'\njson_equals=' {\"a\": [1.50, {}]} '");
    let Content::Json(members) = &file.kinds[0].content else { panic!("{:?}", file.kinds) };
    let [Member { pointer, is: Is::Value(is) }] = &members[..] else { panic!("{members:?}") };
    assert_eq!((pointer.as_str(), is.get()), ("", "{\"a\": [1.50, {}]}"));
}

#[test]
fn errors_of_chunks_and_whole_bodies_say_what_to_do() {
    for (keys, expected) in [
        ("chunked=true", "it has `chunked` but no body; add `body`"),
        ("method='HEAD'\njson_equals='1'", "`json_equals`: the reply to HEAD has no content"),
        ("json_equals='{n}'", "`json_equals` is not JSON: "),
        ("json_equals='1'\njson={'/a'=1}", "is given by json and json_equals; use only one of"),
        ("exact='1'\njson_equals='1'", "is given by exact and json_equals"),
        ("headers={Transfer-Encoding='chunked'}", "`chunked = true` sends a body in a chunk"),
        ("chunked=true\nsteps=[{path='/'}]", "it has `steps` and also other keys of a request"),
        ("json_equals='1'\nsteps=[{path='/'}]", "it has `steps` and also other keys of a request"),
    ] {
        let path = if keys.contains("steps") { "" } else { "path='/'\n" };
        let text = format!("protocol = 'http'\n[[request]]\n{path}{keys}");
        let error = HttpFile::read(FileText::alone(&text, "test")).unwrap_err();
        assert!(error.contains(expected), "{error:?} should contain {expected:?}");
    }
}

#[test]
fn values_in_a_path_are_percent_encoded() {
    let lines = "[lines]\nwords = ['a b', '/?&#%', 'é~']";
    let text = format!(
        "[[request]]\npath='/x/{{s=line:words}}/y?n={{int:-3..-3}}'\nexact='{{s}}'\n{lines}"
    );
    let exchanges = first(3, &text);
    for ((request, text), (coded, plain)) in
        exchanges.iter().zip([("a%20b", "a b"), ("%2F%3F%26%23%25", "/?&#%"), ("%C3%A9~", "é~")])
    {
        assert!(request.starts_with(&format!("GET /x/{coded}/y?n=-3 HTTP/1.1\r\n")), "{request}");
        assert_eq!(text, plain);
    }
}

#[test]
fn a_path_from_a_list_is_sent_unchanged() {
    let lines = "[lines]\npaths = ['/a/b?c=%20', '/']";
    let text = format!("[[request]]\npath='{{p=line:paths}}'\nexact='{{p}}'\n{lines}");
    for ((request, text), path) in first(2, &text).into_iter().zip(["/a/b?c=%20", "/"]) {
        assert_eq!(request, format!("GET {path} HTTP/1.1\r\nHost: h:1\r\n\r\n"));
        assert_eq!(text, path);
    }
}

#[test]
fn an_expected_reply_can_use_captures_from_any_part_of_the_request() {
    let exchanges = first(
        50,
        "[[request]]\nmethod='POST'\npath='/{a=int:1..9}'\nheaders={X-B='{b=hex:4}'}\n\
         body='{c=alnum:3}{d=int:1..1}'\n\
         expect_headers={E='{b}-{a*2}', F='fixed', G=true}\n\
         json={'/sum'='{a+d}', '/text'='{upper:c}\"', '/digit'='{lower:d}', \
         '/list'=['{a}', true], '/fixed'=1.5}",
    );
    for (request, text) in exchanges {
        let between = |from: &str, to: &str| {
            request.split_once(from).unwrap().1.split_once(to).unwrap().0.to_owned()
        };
        let a: i64 = between("POST /", " ").parse().unwrap();
        let b = between("X-B: ", "\r\n");
        let c = request.split_once("\r\n\r\n").unwrap().1.strip_suffix('1').unwrap();
        let (a2, sum, upper) = (a * 2, a + 1, c.to_uppercase());
        let lines = [
            format!("{b}-{a2}"),
            "\"1\"".into(),
            format!("[{a},true]"),
            sum.to_string(),
            format!("\"{upper}\\\"\""),
        ];
        assert_eq!(text, lines.map(|line| line + "\n").concat());
    }
}

#[test]
fn captures_in_headers_keep_their_names() {
    let text = "[[request]]\npath='/'\nexact='{a}{h}{x}'\n\
                headers={A='{a=int:1..1}', Host='{h=int:2..2}', X='{x=int:3..3}'}";
    let (request, text) = first(1, text).remove(0);
    assert_eq!(request, "GET / HTTP/1.1\r\nHost: 2\r\nA: 1\r\nX: 3\r\n\r\n");
    assert_eq!(text, "123");
}

#[test]
fn the_request_placeholder_is_the_content_of_the_request() {
    let text = "[[request]]\npath='/echo'\nbody=\"a{hex:2}\\nb\"\nexact='{reverse:request}'";
    for (request, text) in first(9, text) {
        let content = request.split_once("\r\n\r\n").unwrap().1;
        assert_eq!(text.chars().rev().collect::<String>(), content);
    }
}

#[test]
fn each_exchange_has_its_kind_and_steps_stay_in_order() {
    let file = file(
        "[[request]]\nweight=3\npath='/a'\nstatus=404\n[[request]]\nsteps=[\n\
         {path='/b', exact='B'}, {path='/c', prefix='C', method='DELETE', status='any'}]",
    );
    let http = compiled(&file, 3, PLACE);
    let script = http.script();
    assert_eq!(script.count() as usize, UNDRAWN);
    let mut at = 0;
    while at + 1 < script.count() {
        assert_eq!(script.conversation_from(at), at);
        let (kind, next) = (http.kind(at), http.kind(at + 1));
        let path = ["/a", "/b", "/c"][usize::from(kind)];
        assert!(String::from_utf8_lossy(script.request(at)).contains(path));
        at += if kind == 0 { 1 } else { 2 };
        assert!(kind == 0 || (kind, next) == (1, 2));
    }
    let asked = [Method::Get, Method::Get, Method::Delete];
    assert_eq!(file.kinds.iter().map(|kind| kind.method).collect::<Vec<_>>(), asked);
    assert_eq!(script.request(0).last(), Some(&b'\n'));
}

#[test]
fn a_connection_for_one_request_sends_one_connection_header() {
    let asks = |more: &str| {
        let place = Destination { host: "h", closes: true, ..Destination::default() };
        let http = compiled(&file(&format!("[[request]]\npath='/'\n{more}")), 1, place);
        String::from_utf8(http.script().request(0).to_vec()).unwrap()
    };
    let lines = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    assert_eq!(asks(""), lines);
    let lines = "GET / HTTP/1.1\r\nHost: h\r\nconnection: keep-alive\r\n\r\n";
    assert_eq!(asks("headers={connection='keep-alive'}"), lines);
}

#[test]
fn an_echo_expects_the_request_as_its_reply() {
    let file = file("[[request]]\npath='/{n=int:1..9}'\nexact='{n}'");
    let mut script = file.compose_echo(3, PLACE);
    script.close(1).unwrap();
    assert!((0..100).all(|i| script.reply(i) == script.request(i)));
}

#[test]
fn a_reply_is_sampled_only_for_a_get_whose_content_is_not_checked() {
    let asks = |text: &str| file(text).sample(PLACE).map(|sample| sample.asks);
    let get = Some(b"GET /a HTTP/1.1\r\nHost: h:1\r\n\r\n".to_vec());
    assert_eq!(asks("[[request]]\npath='/a'"), get);
    assert_eq!(asks("[[request]]\npath='/a'\nstatus=200"), get);
    assert_eq!(asks("[[request]]\npath='/a'\nmethod='POST'"), None);
    for checked in ["exact='x'", "regex='x'"] {
        assert_eq!(asks(&format!("[[request]]\npath='/a'\n{checked}")), None);
    }
}
