//! Servers that cannot be reached, and servers that never answer.

use crate::lies::{load, server::Server};
use regatta_testkit::client::refusing;

#[test]
fn closed_loops_and_bursts_exit_with_status_2_if_the_server_cannot_be_reached() {
    let nobody = refusing();
    for scheme in ["line", "http"] {
        for more in [
            &[][..],
            &["-n", "10", "-c", "2"],
            &["--churn", "-d", "1s"],
            &["--churn", "-n", "10", "-c", "2"],
            &["--burst", "1x2x2"],
        ] {
            let ended = load(&format!("{scheme}://{}", nobody.addr), more).with_status(2);
            assert!(ended.stderr.contains("Connection refused"), "{more:?}: {}", ended.stderr);
        }
    }
}

/// The server accepts every connection and reads from it.
#[test]
fn a_counted_run_gives_up_on_a_server_that_never_answers() {
    let server = Server::lines(|_, _, _| Some(String::new()));
    let more = ["-n", "10000", "-c", "8", "--timeout", "200ms"];
    let ended = load(&server.line_url(), &more).with_status(1);
    assert!(ended.line("errors").contains("timeout"), "{}", ended.stdout);
    assert!(ended.line("verdict").contains("stopped"), "{}", ended.stdout);
}
