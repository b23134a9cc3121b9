//! `regatta load http://…` with custom requests, from flags and from workload files. Requests arrive as
//! specified, and replies that break any kind of expectation are found and shown.

mod api;

use crate::support::{Server, refused, regatta, run};
use api::Fault;
use regatta_testkit::child::Ended;
use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

/// Runs `regatta load http://ADDR PATH` with more arguments.
fn load(addr: SocketAddr, path: &str, more: &[&str]) -> Ended {
    let url = format!("http://{addr}{path}");
    run(regatta!("load {url} -c 4").args(more))
}

fn text(output: &Ended) -> String {
    output.stdout.clone() + &output.stderr
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads").join(name)
}

fn assert_passes(output: &Ended, requests: &str) {
    let text = text(output);
    assert_eq!(output.code(), 0, "{text}");
    assert!(text.contains(requests) && text.contains("\nerrors      none\n"), "{text}");
}

/// Checks for exit status 1, and that the expected and the received text are printed.
fn assert_found(output: &Ended, expected: &str, received: &str) {
    let text = text(output);
    assert_eq!(output.code(), 1, "{text}");
    let line = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("no {name:?} in {text}"))
    };
    assert!(line("  expected").contains(expected), "{text}");
    assert!(line("  received").contains(received), "{text}");
}

#[test]
fn the_example_files_pass_against_correct_servers() {
    let hello = Server::start(regatta!("serve hello --model epoll"));
    let file = example("http.toml");
    let more = ["-n", "5000", "-p", "8", "--workload", file.to_str().unwrap()];
    assert_passes(&load(hello.addr, "", &more), "5,000 in ");

    let api = api::start(Fault::None);
    let file = example("api.toml");
    let more = ["-n", "2000", "-p", "3", "--workload", file.to_str().unwrap()];
    assert_passes(&load(api.addr, "", &more), "2,000 in ");
}

#[test]
fn every_planted_fault_is_found_and_shown() {
    let file = example("api.toml");
    for (fault, expected, received) in [
        (Fault::Total, "/total = ", "\\\"total\\\":"),
        (Fault::NumberAsText, "/total = ", "\\\"total\\\":\\\""),
        (Fault::NoTags, "/tags/0 = \"new\"", "\\\"tags\\\":[]"),
        (Fault::NoJson, "a content in JSON", "{"),
        (Fault::NoLocation, "the field location matching /items/\\d+", "HTTP/1.1 201"),
        (Fault::Location, "the field location matching /items/\\d+", "Location: /items/seven"),
        (Fault::Status, "status 201", "HTTP/1.1 200"),
        (Fault::ETag, "the field etag: \"", "ETag: \\\"0\\\""),
        (Fault::Content, "the content ", ": ?"),
    ] {
        let api = api::start(fault);
        let more = ["-n", "2000", "--workload", file.to_str().unwrap()];
        let output = load(api.addr, "", &more);
        let text = text(&output);
        assert!(text.contains("\nverdict     disqualified"), "{fault:?}: {text}");
        assert_found(&output, expected, received);
    }
}

#[test]
fn requests_are_sent_as_the_flags_specify() {
    let api = api::start(Fault::None);
    let folder = tempfile::tempdir().unwrap();
    let body = folder.path().join("body.json");
    fs::write(&body, "{\"n\": {1}}\n").unwrap();
    let sent = [
        "-X",
        "PATCH",
        "-H",
        "X-A: b",
        "-H",
        "x-a:  {c} ",
        "-H",
        "Host: other.example",
        "--body-file",
        body.to_str().unwrap(),
    ];
    let expected = [
        "--expect-status",
        "200",
        "--expect-header",
        "x-of: a test",
        "--expect-header",
        "Content-Length",
        "--expect-json",
        "/method=PATCH",
        "--expect-json",
        "/path=/a/b?c=%20d",
        "--expect-json",
        "/body={\"n\": {1}}\n",
        "--expect-json",
        "/headers=[\"Host: other.example\",\"X-A: b\",\"x-a: {c}\",\"Content-Length: 11\"]",
    ];
    let more = [&["-n", "50"][..], &sent, &expected].concat();
    assert_passes(&load(api.addr, "/a/b?c=%20d", &more), "50 in ");

    let text =
        r#"{"body":"","headers":["Host: h","Content-Length: 0"],"method":"POST","path":"/"}"#;
    let more = ["-n", "50", "--method", "POST", "-H", "Host: h", "--expect-body", text];
    assert_passes(&load(api.addr, "", &more), "50 in ");
    let more = ["-n", "50", "--body", "x", "--expect-regex", "(?s).*\"body\":\"x\".*\"GET\".*"];
    assert_passes(&load(api.addr, "/", &more), "50 in ");
}

#[test]
fn failed_expectations_are_reported() {
    let api = api::start(Fault::None);
    for (more, expected, received) in [
        (["--expect-status", "404"], "status 404", "HTTP/1.1 200"),
        (["--expect-status", "3xx"], "a status from 300 to 399", "HTTP/1.1 200"),
        (["--expect-header", "ETag"], "the field etag", "HTTP/1.1 200"),
        (["--expect-header", "X-Of: an exam"], "the field x-of: an exam", "X-Of: a test"),
        (["--expect-body", "hello"], "the content hello", "\\\"method\\\":\\\"GET\\\""),
        (["--expect-regex", "[0-9]+"], "a content matching [0-9]+", "\\\"method\\\""),
        (["--expect-json", "/id"], "/id present", "\\\"method\\\""),
        (["--expect-json", "/method=POST"], "/method = \"POST\"", "\\\"GET\\\""),
        (["--expect-json", "/body=null"], "/body = null", "\\\"body\\\":\\\"\\\""),
    ] {
        assert_found(
            &load(api.addr, "/", &[&["-n", "50"][..], &more].concat()),
            expected,
            received,
        );
    }
}

#[test]
fn invalid_flags_are_refused_with_the_permitted_values() {
    let api = api::start(Fault::None);
    let file = example("api.toml");
    let file = file.to_str().unwrap();
    for (more, said) in [
        (&["-X", "get"][..], "expected one of GET, HEAD, POST"),
        (&["-X", "CONNECT"], "expected one of GET"),
        (&["-H", "X-A"], "expected a header 'Name: value'"),
        (&["-H", "X A: b"], "is not a header name"),
        (&["-H", "X-A: b\nc"], "the value of a header cannot contain '\\n'"),
        (&["-H", "content-length: 3"], "the load sends content-length itself"),
        (&["-H", "Transfer-Encoding: chunked"], "bodies are sent whole"),
        (&["-H", "Host: a", "-H", "host: b"], "--header sets Host twice"),
        (&["--body", "a", "--body-file", "b"], "cannot be used with"),
        (&["--body-file", "no/such"], "no/such"),
        (&["--expect-status", "20x"], "expected 200 to 599, a class such as 2xx, or any"),
        (&["--expect-status", "100"], "is not a final status"),
        (&["--expect-body", "a", "--expect-regex", "b"], "cannot be used with"),
        (&["--expect-regex", "a("], "is not a valid regular expression"),
        (&["--expect-json", "id=1"], "\"id\" is not a JSON Pointer"),
        (&["-X", "HEAD", "--expect-body", "a"], "the reply to HEAD has no body"),
        (&["--workload", file, "-X", "GET"], "--method cannot be used with --workload api"),
        (&["--workload", file, "-H", "X-A: b"], "--header cannot be used with --workload api"),
    ] {
        let printed = load(api.addr, "/", &[&["-n", "5"], more].concat()).with_status(2).stderr;
        assert!(printed.contains(said), "{more:?}: {printed}");
    }
    let url = format!("line://{}", api.addr);
    let said = refused(regatta!("load {url} --expect-status 200"));
    assert!(said.contains("--expect-status applies only to HTTP"), "{said}");
}

#[test]
fn a_custom_host_can_be_used_with_a_workload_file() {
    let api = api::start(Fault::None);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let file =
        "protocol = 'http'\n[[request]]\npath = '/'\njson = { '/headers/0' = 'Host: a.example' }";
    fs::write(&path, file).unwrap();
    let more = ["-n", "20", "--workload", path.to_str().unwrap(), "-H", "Host: a.example"];
    assert_passes(&load(api.addr, "", &more), "20 in ");
}

#[test]
fn a_workload_file_and_a_url_of_different_protocols_are_refused() {
    let api = api::start(Fault::None);
    let lines = example("double.toml");
    let printed =
        load(api.addr, "", &["--workload", lines.to_str().unwrap()]).with_status(2).stderr;
    assert!(printed.contains("line://"), "{printed}");
    let http = example("api.toml");
    let url = format!("line://{}", api.addr);
    let said = refused(regatta!("load {url} --workload").arg(&http));
    assert!(said.contains("http://"), "{said}");
}
