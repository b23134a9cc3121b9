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
fn a_container_may_have_a_fixed_port_mounts_and_limits() {
    let text = "name = \"x\"\nabout = \"x\"\nworkloads = [\"double\"]\nimage = \"localhost/x\"\nport = 8080\n\
                mounts = [{ from = \"data\", to = \"/data\" }]\nseccomp = \"unconfined\"\n\
                ulimits = { memlock = \"unlimited\", nofile = 65536 }\n";
    let manifest = Manifest::parse(text).unwrap();
    let options = manifest.container_keys().options(std::path::Path::new("/peers/x"));
    assert_eq!((manifest.port, options.unconfined), (Some(8080), true));
    assert_eq!(options.mounts, [("/peers/x/data".into(), "/data".into())]);
    let limits = [("memlock".to_owned(), None), ("nofile".to_owned(), Some(65_536))];
    assert_eq!(options.ulimits, limits.into());
    // It is stored with a race.
    let stored = toml::to_string(&manifest).unwrap();
    assert_eq!(Manifest::parse(&stored).unwrap(), manifest);
}

#[test]
fn errors_of_the_keys_of_containers_say_what_was_expected() {
    let boxed = SHORT.replace("start =", "image = \"localhost/x\"\nstart =");
    let mount = |from: &str, to: &str| format!("mounts = [{{ from = {from:?}, to = {to:?} }}]");
    let twice = "mounts = [{ from = \"a\", to = \"/d\" }, { from = \"b\", to = \"/d/\" }]";
    for (line, expected) in [
        ("port = 0", "the `port` of node is 0; expected 1 to 65535"),
        ("port = 65536", "65536"),
        (&mount("", "/d"), "`from` is empty"),
        (&mount("a:b", "/d"), "\"a:b\" must not contain a colon"),
        (&mount("a", "/d\n"), "must not contain a colon or a control character"),
        (&mount("a", "d"), "`to` = \"d\" must be an absolute path"),
        (&mount("a", "/d/../etc"), "without `..`"),
        (&mount("a", "/"), "must be an absolute path"),
        (twice, "/d/ is mounted twice"),
        ("mounts = [{ from = \"a\" }]", "missing field `to`"),
        ("ulimits = { memlok = 1 }", "there is no limit \"memlok\"; expected one of core,"),
        (
            "ulimits = { memlock = \"all\" }",
            "\"all\" is not a limit; expected a number, or \"unlimited\"",
        ),
        ("ulimits = { memlock = -1 }", "expected a number, or \"unlimited\""),
        ("seccomp = \"off\"", "expected `unconfined`"),
    ] {
        let error = error_of(&format!("{boxed}{line}\n"));
        assert!(error.contains(expected), "{error:?} should contain {expected:?}");
    }
    for (line, key) in [
        (&mount("a", "/d")[..], "mounts"),
        ("ulimits = { memlock = 1 }", "ulimits"),
        ("seccomp = \"unconfined\"", "seccomp"),
    ] {
        let error = error_of(&format!("{SHORT}{line}\n"));
        assert!(error.contains(&format!("`{key}` of node applies only to containers")), "{error}");
    }
    let running = "name = \"x\"\nabout = \"x\"\nworkloads = [\"hello\"]\nurl = \"http://127.0.0.1:80/\"\nport = 80\n";
    assert!(error_of(running).contains("remove `port`"));
    let fixed = SHORT.replace("{port}", "80") + "port = 80\n";
    assert_eq!(Manifest::parse(&fixed).unwrap().port, Some(80));
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
