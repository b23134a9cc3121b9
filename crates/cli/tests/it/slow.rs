//! Runs `regatta load` with slow clients and with TLS: its text, JSON and exit status.

use crate::support::{Server, json, regatta, run};
use regatta_testkit::child::Ended;

fn hello(more: &[&str]) -> Server {
    Server::start(regatta!("serve hello --model epoll").args(more))
}

fn load(scheme: &str, server: &Server, more: &[&str]) -> Ended {
    let url = format!("{scheme}://{}/", server.addr);
    run(regatta!("load {url}").args(more))
}

#[test]
fn a_server_with_a_request_timeout_closes_slow_clients_and_serves_new_ones() {
    let server = hello(&["--request-timeout", "2s"]);
    for part in ["headers", "body"] {
        // A generous deadline, so that a busy machine does not look like a busy server.
        let more = ["--slow", part, "-c", "200", "-d", "30s", "--within", "20s", "--json", "-"];
        let result = json(&load("http", &server, &more).with_status(0));
        assert_eq!((&result["opened"], &result["closed"]), (&200.into(), &200.into()), "{result}");
        assert_eq!((&result["alive"], &result["slow"]), (&0.into(), &part.into()));
        assert!(result["closed_age_s"]["min"].as_f64().unwrap() >= 1.5, "{result}");
        assert!(result["served"].as_u64().unwrap() > 0 && result["failed"] == 0, "{result}");
        let verdict = result["verdict"].as_str().unwrap();
        assert!(verdict.contains("kept serving") && verdict.contains("closed all"), "{verdict}");
    }
}

#[test]
fn a_server_that_slow_clients_block_ends_with_status_1() {
    let server = hello(&["--request-timeout", "60s", "--max-connections", "1"]);
    let more = ["--slow", "headers", "-c", "20", "-d", "1s", "--timeout", "300ms"];
    let text =
        load("http", &server, &[&more[..], &["--every", "50ms"]].concat()).with_status(1).stdout;
    assert!(text.contains("did not keep serving new clients"), "{text}");
    assert!(text.contains("no complete reply within 300ms"), "{text}");
    assert!(text.contains("it closed no slow connection"), "{text}");
}

/// The load opens its connections over one second, and ends before that.
#[test]
fn fewer_slow_clients_than_requested_end_with_status_1() {
    let server = hello(&[]);
    let more = ["--slow", "headers", "-c", "1000", "-d", "300ms", "--within", "20s", "--json", "-"];
    let result = json(&load("http", &server, &more).with_status(1));
    assert!(result["opened"].as_u64().unwrap() < 1000, "{result}");
    let verdict = result["verdict"].as_str().unwrap();
    assert!(verdict.contains("of 1,000 slow connections could be opened"), "{verdict}");
    assert!(!verdict.contains("closed all"), "{verdict}");
}

#[test]
fn invalid_arguments_end_with_status_2() {
    let server = hello(&[]);
    for (scheme, args, said) in [
        ("line", vec!["--slow", "headers"], "--slow needs a URL of the form http://"),
        ("https", vec!["--slow", "headers"], "--slow needs a URL of the form http://"),
        ("http", vec!["--slow", "trailers"], "expected one of: headers, body"),
        ("http", vec!["--slow", "body", "--rate", "5"], "cannot be used with"),
        ("http", vec!["--slow", "body", "-X", "POST"], "cannot be used with"),
        ("http", vec!["--every", "1s"], "--slow"),
        ("http", vec!["--insecure"], "apply only to https:// URLs"),
        ("https", vec!["--insecure", "--cacert", "a.pem"], "cannot be used with"),
        ("https", vec!["--cacert", "no/such.pem"], "cannot use the CA certificates in no/such.pem"),
        ("https", vec!["--insecure"], "expected TLS"),
        ("https", vec!["-n", "1000", "--churn", "--insecure"], "expected TLS"),
    ] {
        let printed = load(scheme, &server, &args).with_status(2).stderr;
        assert!(printed.contains(said), "{args:?}: {printed}");
    }
}
