//! Servers that are not there, and those that are and say nothing.

use crate::{load, server::Server};
use std::net::TcpListener;

/// A port where nobody listens.
fn nobody() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn a_server_that_cannot_be_reached_is_status_2_in_every_shape_of_load() {
    let port = nobody();
    for scheme in ["line", "http"] {
        for more in [
            &[][..],
            &["-n", "10", "-c", "2"],
            &["--churn", "-d", "1s"],
            &["--churn", "-n", "10", "-c", "2"],
            &["--burst", "1x2x2"],
        ] {
            let ended = load(&format!("{scheme}://127.0.0.1:{port}"), more).with_status(2);
            assert!(ended.stderr.contains("Connection refused"), "{more:?}: {}", ended.stderr);
        }
    }
}

/// It accepts every connection and reads it.
#[test]
fn a_counted_run_gives_up_a_server_that_never_answers() {
    let server = Server::lines(|_, _, _| Some(String::new()));
    let more = ["-n", "10000", "-c", "8", "--timeout", "200ms"];
    let ended = load(&server.line_url(), &more).with_status(1);
    assert!(ended.line("errors").contains("timeout"), "{}", ended.stdout);
    assert!(ended.line("verdict").contains("stopped"), "{}", ended.stdout);
}
