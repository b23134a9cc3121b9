//! curl as the client, on every model.

use crate::support::{Server, on_every_shared};
use std::{
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

/// Returns curl's output, which includes the heads of the replies.
fn curl(args: &[&str]) -> String {
    let mut command = Command::new("curl");
    let output = command.args(["-sS", "-i", "--max-time", "20", "--noproxy", "*"]).args(args);
    let output = output.output().expect("curl runs (scripts/setup installs it)");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "curl {args:?}: {said}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
#[cfg_attr(not(has_curl), ignore = "curl is not installed (scripts/setup)")]
fn curl_is_answered_on_every_model() {
    on_every_shared(|model| {
        let server = Server::of("hello", model, &[]);
        let url = &format!("http://{}/", server.addr);
        gets(url);
        other_methods(url);
        uploads(url);
        connections(url);
    });
}

fn gets(url: &str) {
    let reply = curl(&[url]);
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("\r\nContent-Type: text/plain\r\n"), "{reply}");
    let seconds = body.strip_prefix("Hello. The time is ").expect(body);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    assert!(seconds.parse::<u64>().unwrap().abs_diff(now) <= 2, "{seconds}, and it is {now}");
    let shown = head.lines().find_map(|line| line.strip_prefix("Date: ")).expect("a Date");
    let date = Command::new("date").args(["-u", "-d", shown, "+%s"]).output().expect("date runs");
    assert_eq!(String::from_utf8(date.stdout).unwrap().trim(), seconds, "{shown}");
    // curl fails if content comes after a HEAD.
    let reply = curl(&["-I", url, url]);
    assert_eq!(reply.matches("\r\nContent-Length: 29\r\n").count(), 2, "{reply}");
    assert!(!reply.contains("Hello"), "{reply}");
    assert!(curl(&[&format!("{url}nothing")]).starts_with("HTTP/1.1 404 Not Found\r\n"));
}

fn other_methods(url: &str) {
    for more in [&[][..], &["--request-target", "*"]] {
        let reply = curl(&[&["-X", "OPTIONS", url], more].concat());
        assert!(reply.starts_with("HTTP/1.1 204 No Content\r\n"), "{reply}");
        assert!(reply.contains("\r\nAllow: GET, HEAD, OPTIONS\r\n"), "{reply}");
    }
    let reply = curl(&["-X", "DELETE", url]);
    assert!(reply.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"), "{reply}");
    assert!(reply.contains("\r\nAllow: GET, HEAD, OPTIONS\r\n"), "{reply}");
    assert!(curl(&["-X", "BREW", url]).starts_with("HTTP/1.1 501 Not Implemented\r\n"));
}

fn uploads(url: &str) {
    let content = "c".repeat(60_000);
    for (fields, interim) in [
        (&["-H", "Expect:"][..], ""),
        (
            &["-H", "Expect: 100-continue", "--expect100-timeout", "15"],
            "HTTP/1.1 100 Continue\r\n\r\n",
        ),
        (&["-H", "Expect:", "-H", "Transfer-Encoding: chunked"], ""),
    ] {
        let args = [fields, &["--data-binary", &content, url]].concat();
        let reply = curl(&args);
        let refused = format!("{interim}HTTP/1.1 405 Method Not Allowed\r\n");
        assert!(reply.starts_with(&refused), "{fields:?}: {reply}");
    }
    // Refused because of the announced length, before curl sends the content.
    let content = "c".repeat(70_000);
    let reply = curl(&["-H", "Expect: 100-continue", "--data-binary", &content, url]);
    assert!(reply.starts_with("HTTP/1.1 413 Content Too Large\r\n"), "{reply}");
}

fn connections(url: &str) {
    let connects = |args: &[&str]| -> Vec<String> {
        let shown = curl(&[args, &["-w", "\nconnects %{num_connects}\n"]].concat());
        shown.lines().filter_map(|line| line.strip_prefix("connects ")).map(str::to_owned).collect()
    };
    assert_eq!(connects(&[url, url, url]), ["1", "0", "0"], "kept alive");
    assert_eq!(connects(&["-H", "Connection: close", url, url]), ["1", "1"]);
    assert_eq!(connects(&["--http1.0", url, url]), ["1", "1"]);
    let kept = &["--http1.0", "-H", "Connection: keep-alive", url, url];
    assert_eq!(connects(kept), ["1", "0"]);
}
