//! The parts of a wrong or unfinished reply that the load shows.

use crate::lies::{
    load,
    server::{Server, double, reply},
};

#[test]
fn an_unexpected_reply_is_shown_with_the_previous_request() {
    let server = Server::lines(|_, i, line| Some(double(line).repeat(if i == 5 { 2 } else { 1 })));
    let ended = load(&server.line_url(), &["-n", "100", "-c", "1"]).with_status(1);
    let sent: i128 = ended.line("sent").strip_suffix("\\n").unwrap().parse().unwrap();
    assert_eq!(ended.line("received"), format!("{}\\n", sent * 2));
    assert!(ended.line("expected").starts_with("nothing more"), "{}", ended.stdout);

    let server = Server::http(|i, _| (reply(200, "ok").repeat(if i == 5 { 2 } else { 1 }), true));
    let ended = load(&server.http_url(), &["-n", "100", "-c", "1"]).with_status(1);
    assert!(ended.line("sent").starts_with("GET / HTTP/1.1"), "{}", ended.stdout);
    assert!(ended.line("expected").starts_with("nothing more"), "{}", ended.stdout);
    assert!(ended.line("received").starts_with("HTTP/1.1 200 -"), "{}", ended.stdout);
}

/// The server sends one byte more than the length says.
#[test]
fn a_content_length_that_is_too_short_is_shown_with_its_reply() {
    for pipeline in ["1", "4"] {
        let server =
            Server::http(|_, _| ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhello".into(), true));
        let ended = load(&server.http_url(), &["-n", "100", "-c", "1", "-p", pipeline]);
        let ended = ended.with_status(1);
        let received = ended.line("received");
        assert!(received.contains("Content-Length: 4\\r\\n\\r\\nhell"), "{received}");
        assert!(received.contains('o'), "{received}");
    }
}

#[test]
fn the_received_part_of_an_unfinished_reply_is_shown() {
    for (came, shown) in [
        ("Content-Length: 10\r\n\r\nhello", "Content-Length: 10\\r\\n\\r\\nhello"),
        ("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "chunked\\r\\n\\r\\n5\\r\\nhello"),
    ] {
        let came = format!("HTTP/1.1 200 OK\r\n{came}");
        let server = Server::http(move |_, _| (came.clone(), true));
        let more = ["-n", "2", "-c", "1", "--timeout", "200ms"];
        let ended = load(&server.http_url(), &more).with_status(1);
        assert!(ended.line("received").contains(shown), "{}", ended.stdout);
        assert!(ended.line("received").contains("200ms"), "{}", ended.stdout);
        assert!(ended.line("errors").contains("timeout"), "{}", ended.stdout);
    }
    let server = Server::lines(|_, _, _| Some("1".into()));
    let workload = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    let text = "protocol = 'line'\n[[request]]\nsend = 'a'\nregex = '[0-9]+'\n";
    std::fs::write(workload.path(), text).unwrap();
    let file = workload.path().to_str().unwrap();
    let more = ["-n", "1", "-c", "1", "--timeout", "200ms", "--workload", file];
    let ended = load(&server.line_url(), &more).with_status(1);
    assert!(ended.line("received").starts_with("1, "), "{}", ended.stdout);
}
