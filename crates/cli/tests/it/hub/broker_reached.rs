//! How a hub reaches its broker: passwords that change.

use crate::{
    hub::broker::joined,
    support::{Server, hub::metric, shard::nodes::Node, until},
};
use std::{fs, io::Read, path::Path};

const UP: &str = "regatta_hub_broker_up";
const FAILED: &str = "regatta_hub_broker_failed_total";

/// Ends a hub. Returns what it has printed.
fn printed(mut server: Server) -> String {
    let mut stderr = server.child.stderr.take().expect("it is piped");
    server.child.kill().expect("it runs");
    let mut text = String::new();
    stderr.read_to_string(&mut text).expect("text");
    text
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn a_password_that_is_changed_is_read_again() {
    let broker = Node::start(&["--requirepass", "first"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, "first").unwrap();
    let (server, operators) =
        joined("percore", &broker, &["--broker-password-file", text(&file)]);
    // Nobody has written the new one yet, and the file is away.
    fs::remove_file(&file).unwrap();
    let mut operator = broker.client();
    for line in ["AUTH first", "CONFIG SET requirepass second"] {
        assert_eq!(operator.say(line), "+OK\r\n");
    }
    operator.say("CLIENT KILL TYPE pubsub");
    until("the old one is refused", || metric(operators, FAILED) > 2);
    assert_eq!(metric(operators, UP), 0);
    fs::write(&file, "second").unwrap();
    until("the new one is used", || metric(operators, UP) == 1);
    let printed = printed(server);
    let count = |part: &str| printed.matches(part).count();
    let kept = format!("cannot read {}", text(&file));
    assert_eq!((count(&kept), count("the previous password stays in use")), (1, 1), "{printed}");
    assert_eq!(count("new connections get the new password in"), 1, "{printed}");
    assert_eq!(count("WRONGPASS"), 1, "{printed}");
    assert!(!printed.contains("second") && !printed.contains("first"), "{printed}");
}
