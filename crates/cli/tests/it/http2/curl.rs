//! curl as the client, on every model. The replies are those of HTTP/1.1.

use crate::support::{Server, on_every_shared};
use std::process::Command;

/// Returns curl's output, which includes the heads of the replies.
fn curl(args: &[&str]) -> String {
    let mut command = Command::new("curl");
    let output = command.args(["-sS", "-i", "--max-time", "20", "--noproxy", "*"]).args(args);
    let output = output.output().expect("curl runs (scripts/setup installs it)");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "curl {:.200}: {said}", format!("{args:?}"));
    String::from_utf8(output.stdout).expect("text")
}

/// A reply without what differs between the versions and from second to second.
fn essence(reply: &str) -> String {
    let (head, content) = reply.trim_start().split_once("\r\n\r\n").expect("a head");
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status");
    let fields = lines.map(str::to_lowercase);
    let mut fields: Vec<String> =
        fields.filter(|line| !line.starts_with("date: ") && line != "connection: close").collect();
    fields.sort();
    let content = content.trim_end_matches(|c: char| c.is_ascii_digit());
    format!("{status} {fields:?} {content}")
}

#[test]
#[cfg_attr(not(has_curl), ignore = "curl is not installed (scripts/setup)")]
fn the_replies_are_those_of_http_1_on_every_model() {
    let (content, long) = ("c".repeat(60_000), "c".repeat(70_000));
    on_every_shared(|model| {
        for (service, path) in [("hello", "/"), ("hash", "/hash?n=2&salt=c0ffee")] {
            let old = Server::of(service, model, &[]);
            let new = Server::of(service, model, &["--http2"]);
            for (args, status) in [
                (&[][..], "200"),
                (&["-I"], "200"),
                (&["-X", "OPTIONS"], "204"),
                (&["-X", "OPTIONS", "--request-target", "*"], "204"),
                (&["-X", "DELETE"], "405"),
                (&["-X", "BREW"], "501"),
                (&["--path-as-is", "--request-target", "/nothing"], "404"),
                (&["--request-target", "/a\"b"], "400"),
                (&["--request-target", "/hash?n=0"], if service == "hash" { "400" } else { "404" }),
                (&["-H", "Expect:", "--data-binary", &content], "405"),
                (&["-H", "Expect: tea"], "417"),
                (&["-H", "Expect: 100-continue", "--data-binary", &long], "413"),
            ] {
                let ask = |server: &Server, more: &[&str]| {
                    let url = format!("http://{}{path}", server.addr);
                    curl(&[args, more, &[&url]].concat())
                };
                let reply = ask(&new, &["--http2-prior-knowledge"]);
                assert!(reply.starts_with(&format!("HTTP/2 {status}")), "{args:?}: {reply}");
                let expected = essence(&ask(&old, &[]));
                assert_eq!(essence(&reply), expected, "{model} {service} {args:?}");
            }
        }
    });
}

#[test]
#[cfg_attr(not(has_curl), ignore = "curl is not installed (scripts/setup)")]
fn a_client_that_awaits_continue_is_asked_for_its_content() {
    let server = Server::of("hello", "epoll", &["--http2"]);
    let url = format!("http://{}/", server.addr);
    let content = "c".repeat(60_000);
    let expect = ["-H", "Expect: 100-continue", "--expect100-timeout", "15"];
    let more = ["--http2-prior-knowledge", "--data-binary", &content, &url];
    let reply = curl(&[&expect[..], &more].concat());
    assert!(reply.starts_with("HTTP/2 100 \r\n\r\nHTTP/2 405 \r\n"), "{reply}");
}
