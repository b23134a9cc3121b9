//! Servers that close when they must not.

use crate::lies::{
    load,
    server::{Server, reply},
};

#[test]
fn a_server_that_closes_after_each_reply_without_announcing_it_is_reported() {
    let server = Server::http(|_, _| (reply(200, "ok"), false));
    let ended = load(&server.http_url(), &["-c", "8", "-d", "1s"]).with_status(2);
    let said = "the server closed the connection between requests, without announcing it";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
}
