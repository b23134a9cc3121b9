//! URLs of servers that already run.

use regatta_host::{RunningUrl, named_url};

#[test]
fn a_url_names_a_port_of_this_machine_and_what_is_spoken_there() {
    let parsed = |url: &str| RunningUrl::parse(url).unwrap();
    for (url, protocol, port, path) in [
        ("http://127.0.0.1:8080/items?a=1#x", "http", 8080, Some("/items?a=1")),
        ("HTTP://LocalHost", "http", 80, None),
        ("http://127.0.0.1:82/", "http", 82, Some("/")),
        ("http://127.0.0.1:81?a", "http", 81, Some("/?a")),
        ("redis://127.0.0.1:6379", "redis", 6379, None),
        ("line://127.0.0.1:4000", "line", 4000, None),
        ("ws://127.0.0.1:4000/ws", "websocket", 4000, Some("/ws")),
    ] {
        let expected = RunningUrl { protocol, port, path: path.map(str::to_owned) };
        assert_eq!(parsed(url), expected, "{url}");
    }
    assert_eq!(named_url("a=http://localhost"), Some((Some("a"), "http://localhost")));
    assert_eq!(named_url("http://localhost/?a=b"), Some((None, "http://localhost/?a=b")));
    assert_eq!(named_url("./a {port} --url=http://localhost"), None);
    assert_eq!(named_url("URL=http://localhost ./a {port}"), None);
}

#[test]
fn another_url_is_an_error_with_the_reason() {
    for (url, said) in [
        ("http://example.org/", "must run on this machine"),
        ("http://10.0.0.1:80/", "`regatta load http://10.0.0.1:80/`"),
        ("http://[::1]:80/", "listen on 127.0.0.1"),
        ("http://me@127.0.0.1:80/", "listen on 127.0.0.1"),
        ("https://127.0.0.1:80/", "without TLS, as http://"),
        ("http://127.0.0.1:0/", "no port from 1 to 65535"),
        ("http://127.0.0.1:99999/", "no port from 1 to 65535"),
        ("line://127.0.0.1", "no port"),
        ("line://127.0.0.1:1/x", "has no paths"),
        ("http://127.0.0.1:1/a b", "percent-encode"),
        ("gopher://127.0.0.1:1", "is not the URL of a server"),
    ] {
        let error = RunningUrl::parse(url).unwrap_err();
        assert!(error.contains(said), "{url}: {error}");
    }
}
