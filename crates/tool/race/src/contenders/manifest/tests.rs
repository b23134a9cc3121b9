use super::*;

const SHORT: &str = r#"
name = "node"
about = "Node.js net, one process"
workloads = ["double"]
start = ["node", "server.js", "--port", "{port}"]
"#;

fn error_of(text: &str) -> String {
    Manifest::parse(text).unwrap_err()
}

#[test]
fn four_lines_are_enough() {
    let manifest = Manifest::parse(SHORT).unwrap();
    assert_eq!(manifest.name, "node");
    assert_eq!(manifest.ready, Ready::Tcp);
    assert_eq!(manifest.limits, Limits::default());
    assert!(manifest.needs.is_empty() && manifest.config.is_empty());
}

#[test]
fn optional_fields_are_read() {
    let text = format!(
        "{SHORT}{}",
        r#"needs = ["node"]
setup = ["npm ci"]
ready = "/health"
source = ["server.js"]
path = "/ws"
adapter = "canned"
env = { PORT = "{port}" }
config = ["nginx.conf.in"]
limits = { connections = 256, pipeline = 1 }
stand_in_for = "Phoenix"
one_core_as = "epoll"
"#
    );
    let manifest = Manifest::parse(&text).unwrap();
    assert_eq!(manifest.ready, Ready::Path("/health".into()));
    assert_eq!(manifest.adapter, Some(Adapter::Canned));
    assert_eq!(manifest.limits, Limits { connections: Some(256), pipeline: Some(1) });
    assert_eq!(manifest.env["PORT"], "{port}");
    assert_eq!(manifest.stand_in_for.as_deref(), Some("Phoenix"));
    assert_eq!(manifest.one_core_as.as_deref(), Some("epoll"));
}

#[test]
fn errors_say_what_was_expected() {
    let with = |line: &str| format!("{SHORT}{line}\n");
    let expectations = [
        (with("strat = []"), "unknown field `strat`"),
        (with("ready = \"udp\""), "`ready` must be \"tcp\" or a path"),
        (
            with("adapter = \"cable\""),
            "there is no adapter \"cable\"; there are echo, canned, phoenix, actioncable, \
             centrifuge and nats",
        ),
        (with("limits = { connection = 1 }"), "unknown field `connection`"),
        (with("limits = { connections = 0 }"), "a limit of 0 connections"),
        (with("limits = { pipeline = 0 }"), "a limit of 0 pipelined requests"),
        (with("config = [\"nginx.conf\"]"), "\"nginx.conf\" of node must end in .in"),
        (with("path = \"ws\""), "must start with '/'"),
        (with("one_core_as = \"node\""), "must name another contender"),
        (
            SHORT.replace("double", "mine.toml"),
            "the workload \"mine.toml\"; expected one of double,",
        ),
        (SHORT.replace("double", "a b"), "the name of a workload file: letters"),
        (SHORT.replace("\"double\"", ""), "names no workload"),
        (SHORT.replace("{port}", "80"), "node is not given its port"),
        (SHORT.replace("\"node\"\n", "\"a b\"\n"), "a name must have only letters"),
        ("name = \"x\"".to_string(), "missing field"),
    ];
    for (text, expected) in expectations {
        let error = error_of(&text);
        assert!(error.contains(expected), "{error:?} should contain {expected:?}");
    }
    assert!(error_of(&with("strat = []")).contains("line 6"), "it names the place");
}

#[test]
fn released_must_be_a_date() {
    let with = |date: &str| Manifest::parse(&format!("{SHORT}released = \"{date}\"\n"));
    assert_eq!(with("2026-01-30").unwrap().released.as_deref(), Some("2026-01-30"));
    for wrong in ["2026-02-30", "January 2026", ""] {
        let error = with(wrong).unwrap_err();
        assert!(error.contains("`released` of node must be a date"), "{error}");
    }
}

#[test]
fn splits_a_command_as_a_shell_would() {
    let argument = r#"old=./my server --title "a b" --port={port}"#;
    let manifest = Manifest::from_argument(argument, "hello").unwrap();
    assert_eq!(manifest.name, "old");
    assert_eq!(manifest.start, ["./my", "server", "--title", "a b", "--port={port}"]);
    assert_eq!(manifest.workloads, ["hello"]);
    for (wrong, expected) in [
        ("server {port}", "'name=command {port}'"),
        ("a=server 'x {port}", "missing closing quote"),
        ("a=", "empty start command"),
        ("a=server", "a is not given its port"),
    ] {
        let error = Manifest::from_argument(wrong, "hello").unwrap_err();
        assert!(error.contains(expected), "{error:?} should contain {expected:?}");
    }
}
