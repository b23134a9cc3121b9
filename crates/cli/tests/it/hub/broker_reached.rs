//! How a hub reaches its broker: passwords that change, and TLS.

use crate::{
    hub::broker::member,
    support::{
        Server,
        hub::{
            Printed, hear, hub, hub_command, metric, printed_through, send, with_metrics_and_lines,
        },
        hubs::{joined, joined_at},
        on_models, refused, regatta,
        shard::{
            nodes::Node,
            sentinel::Sentinel,
            tls::{Ca, Signed, TlsClient, text},
        },
        until,
    },
};
use regatta_testkit::port;
use serde_json::json;
use std::{
    fs,
    net::{SocketAddr, TcpStream},
};

const UP: &str = "regatta_hub_broker_up";
const FAILED: &str = "regatta_hub_broker_failed_total";

#[test]
fn a_password_that_is_changed_is_read_again() {
    let broker = Node::start(&["--requirepass", "first"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, "first").unwrap();
    let (mut server, operators) =
        joined("percore", &broker, &["--broker-password-file", text(&file)]);
    let mut printed = Printed::by(&mut server, String::new());
    // Nobody has written the new one yet, and the file is away.
    fs::remove_file(&file).unwrap();
    let mut operator = broker.client();
    for line in ["AUTH first", "CONFIG SET requirepass second"] {
        assert_eq!(operator.say(line), "+OK\r\n");
    }
    operator.say("CLIENT KILL TYPE pubsub");
    until("the old one is refused", || metric(operators, FAILED) > 6);
    assert_eq!(metric(operators, UP), 0);
    // The file is looked at once in a second.
    let kept = format!("cannot read {}", text(&file));
    printed.through(&kept);
    let new = folder.path().join("new");
    fs::write(&new, "second").unwrap();
    fs::rename(&new, &file).unwrap();
    until("the new one is used", || metric(operators, UP) == 1);
    printed.through("new connections get the new password in");
    let printed = printed.text;
    let count = |part: &str| printed.matches(part).count();
    assert_eq!((count(&kept), count("the previous password stays in use")), (1, 1), "{printed}");
    assert_eq!(count("WRONGPASS"), 1, "{printed}");
    assert!(!printed.contains("second") && !printed.contains("first"), "{printed}");
}

fn url(scheme: &str, broker: &Node) -> String {
    format!("{scheme}://{}", broker.addr())
}

/// Starts a hub. Returns it with the address of its metrics, and what it has printed.
fn reports(url: &str, options: &[String]) -> (Server, SocketAddr, String) {
    let options = [&["--broker", url], &strs(options)[..]].concat();
    with_metrics_and_lines(hub_command("percore", &options))
}

/// The options of a hub that trusts a CA. `own`: its certificate.
fn trusting(ca: &Ca, own: Option<&Signed>) -> Vec<String> {
    let mut options = vec!["--broker-ca".to_owned(), text(&ca.file()).to_owned()];
    if let Some(Signed { certificate, key }) = own {
        let own = [("--broker-cert", certificate), ("--broker-key", key)];
        options.extend(
            own.into_iter().flat_map(|(name, file)| [name.to_owned(), text(file).to_owned()]),
        );
    }
    options
}

fn strs(options: &[String]) -> Vec<&str> {
    options.iter().map(String::as_str).collect()
}

on_models! { hubs_meet_at_a_broker_over_tls: epoll, percore, uring }

fn hubs_meet_at_a_broker_over_tls(model: &str) {
    const MANY: usize = 300;
    let ca = Ca::new("A");
    let broker = ca.node(&ca.sign("broker"), true);
    let options = trusting(&ca, Some(&ca.sign("hub")));
    let url = url("rediss", &broker);
    let (one, operators) = joined_at(model, &url, &strs(&options));
    let (other, _) = joined_at(model, &url, &strs(&options));
    let (mut here, mut there) = (member(&one, "/red"), member(&other, "/red"));
    // Some are longer than a record of TLS.
    let payload =
        |number: usize| json!([number, "y".repeat(if number % 50 == 7 { 100_000 } else { 9 })]);
    for number in 0..MANY {
        send(&mut here, &json!({"type": "broadcast", "payload": payload(number)}));
    }
    for number in 0..MANY {
        let expected = json!({"type": "broadcast", "payload": payload(number)});
        assert_eq!(hear(&mut there), expected, "{model}");
    }
    send(&mut there, &json!({"type": "broadcast", "payload": "back"}));
    while hear(&mut here)["payload"] != "back" {}
    let before = metric(operators, "regatta_hub_broker_lost_total");
    // A loss of the connection is followed by another handshake.
    assert_eq!(kill_connections(&broker, &ca), ":2\r\n", "{model}");
    while hear(&mut here)["type"] != "gap" {}
    while hear(&mut there)["type"] != "gap" {}
    assert_eq!(metric(operators, "regatta_hub_broker_lost_total"), before + 1, "{model}");
}

/// Lets a server over TLS close the connections of all hubs.
fn kill_connections(broker: &Node, ca: &Ca) -> String {
    let stream = TcpStream::connect(broker.addr()).unwrap();
    let config = ca.client(Some(&ca.sign("operator")));
    TlsClient::over(stream, &config).say("CLIENT KILL TYPE pubsub")
}

#[test]
fn a_broker_whose_certificate_is_wrong_is_not_used_and_the_reason_is_said_once() {
    let (ca, other) = (Ca::new("A"), Ca::new("B"));
    let (right, old) = (ca.sign("broker"), ca.sign_until("old", 2001));
    let mut broker = other.node(&other.sign("stranger"), false);
    let url = url("rediss", &broker);
    let options = trusting(&ca, None);
    let (mut server, operators, before) = reports(&url, &options);
    let has_failed_again = || {
        let before = metric(operators, FAILED);
        until("attempts have failed", || metric(operators, FAILED) > before + 2);
        assert_eq!(metric(operators, UP), 0);
    };
    has_failed_again();
    broker.restart_tls(&ca.node_options(&old, false));
    has_failed_again();
    broker.restart_tls(&ca.node_options(&right, true));
    has_failed_again();
    broker.restart_tls(&ca.node_options(&right, false));
    until("it is up", || metric(operators, UP) == 1);
    let printed = printed_through(&mut server, before, "the server requires a client certificate");
    for why in [
        "the server's certificate is not signed by a trusted CA",
        "the server's certificate has expired",
        "the server requires a client certificate",
    ] {
        let line = format!("regatta: broker {}: no connection: {why}", broker.addr());
        let lines = printed.lines().filter(|printed| printed.starts_with(&line)).count();
        assert_eq!(lines, 1, "{why}: {printed}");
    }
}

#[test]
fn a_ca_that_is_renewed_is_read_again() {
    let (ca, other) = (Ca::new("A"), Ca::new("B"));
    let broker = ca.node(&ca.sign("broker"), false);
    let trusted = ca.file().with_file_name("trusted");
    fs::copy(other.file(), &trusted).unwrap();
    let url = url("rediss", &broker);
    let options = ["--broker", &url, "--broker-ca", text(&trusted)];
    let (_server, operators) = hub("percore", &options);
    until("attempts have failed", || metric(operators, FAILED) > 2);
    fs::copy(ca.file(), &trusted).unwrap();
    until("it is up", || metric(operators, UP) == 1);
}

#[test]
fn the_certificate_of_a_broker_must_have_its_name() {
    let ca = Ca::new("A");
    let broker = ca.node(&ca.sign("broker"), false);
    let url = url("rediss", &broker);
    let (_right, _) = joined_at("percore", &url, &strs(&trusting(&ca, None)));
    let mut options = trusting(&ca, None);
    options.extend(["--broker-server-name".to_owned(), "broker.example".to_owned()]);
    let (mut server, operators, before) = reports(&url, &options);
    until("attempts have failed", || metric(operators, FAILED) > 2);
    assert_eq!(metric(operators, UP), 0);
    let printed =
        printed_through(&mut server, before, "the server's certificate is not accepted: ");
    assert_eq!(
        printed.matches("the server's certificate is not accepted: ").count(),
        1,
        "{printed}"
    );
}

#[test]
fn a_server_without_tls_is_not_used_over_tls() {
    let ca = Ca::new("A");
    let broker = Node::start(&[]);
    let url = url("rediss", &broker);
    let options = trusting(&ca, None);
    let (mut server, operators, before) = reports(&url, &options);
    until("an attempt has failed", || metric(operators, FAILED) > 0);
    let printed = printed_through(&mut server, before, "no connection: ");
    let says =
        ["may not speak TLS", "does not speak TLS", "closed the connection in the TLS handshake"];
    assert!(says.iter().any(|why| printed.contains(why)), "{printed}");
}

#[test]
fn the_nodes_of_a_cluster_are_reached_over_tls() {
    let ca = Ca::new("A");
    let bus = port::free().to_string();
    let more = ["--tls-cluster", "yes", "--cluster-enabled", "yes", "--cluster-port", &bus];
    let options = [ca.node_options(&ca.sign("broker"), false), more.map(str::to_owned).into()];
    let node = Node::start_tls(&options.concat());
    let stream = TcpStream::connect(node.addr()).unwrap();
    let mut operator = TlsClient::over(stream, &ca.client(Some(&ca.sign("operator"))));
    assert_eq!(operator.say("CLUSTER ADDSLOTSRANGE 0 16383"), "+OK\r\n");
    let named = ["--broker-server-name".to_owned(), "localhost".to_owned()];
    let options = [trusting(&ca, None), named.into()].concat();
    let (_server, operators) = joined_at("percore", &url("rediss+cluster", &node), &strs(&options));
    assert_eq!(metric(operators, UP), 1);
}

#[test]
fn sentinels_and_their_master_are_reached_over_tls() {
    let (ca, stranger) = (Ca::new("A"), Ca::new("B"));
    let own = ca.sign("broker");
    let broker = ca.node(&own, false);
    let sentinel = Sentinel::start_tls(&[("m", &broker)], &ca.node_options(&own, false));
    let url = format!("rediss+sentinel://{}/m", sentinel.addr());
    let named = |ca: &Ca| {
        let more = ["--broker-server-name".to_owned(), "localhost".to_owned()];
        [trusting(ca, None), more.into()].concat()
    };
    let (_server, operators) = joined_at("percore", &url, &strs(&named(&ca)));
    assert_eq!(metric(operators, UP), 1);
    let options = named(&stranger);
    let (mut server, operators, before) = reports(&url, &options);
    until("attempts have failed", || metric(operators, FAILED) > 2);
    let why =
        format!("{}: the server's certificate is not signed by a trusted CA", sentinel.addr());
    printed_through(&mut server, before, &why);
}

#[test]
fn options_for_tls_that_do_not_fit_are_refused() {
    for (url, options, why) in [
        ("rediss://127.0.0.1:1", &[][..], "needs --broker-ca"),
        ("redis://127.0.0.1:1", &["--broker-ca", "ca.pem"], "--broker-ca has no use"),
        ("rediss://127.0.0.1:1", &["--broker-ca", "/no/file"], "cannot read /no/file"),
        ("rediss+sentinel://a/m", &["--broker-ca", "ca.pem"], "needs --broker-server-name"),
    ] {
        let error = refused(regatta!("hub --check --broker {url}").args(options));
        assert!(error.contains(why), "{options:?}: {error}");
    }
}
