//! The dashboard for Grafana, the rules for Prometheus and the compose file: they name only metrics and commands that
//! exist, and have the form that those programs expect.

use crate::support::{Server, hub::with_metrics, regatta, run};
use regex::Regex;
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
};
use yaml_rust2::{Yaml, YamlLoader};

fn deployed(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn page(addr: SocketAddr) -> String {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

/// Starts a service, and returns the families of its metrics.
fn families(arguments: &[&str]) -> (Server, BTreeSet<String>) {
    let (server, addr) = with_metrics(regatta!("").args(arguments).args([
        "--listen",
        "127.0.0.1:0",
        "--metrics",
        "127.0.0.1:0",
    ]));
    let page = page(addr);
    let families = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let names = families.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    (server, names)
}

fn existing() -> BTreeSet<String> {
    let (_hub, mut all) = families(&["hub"]);
    // The broker does not exist: it is away.
    let (_joined, more) = families(&["hub", "--broker", "redis://127.0.0.1:1"]);
    all.extend(more);
    let (_managed, more) = families(&["hub", "--broker", "redis+sentinel://127.0.0.1:1/one"]);
    all.extend(more);
    // The node does not exist: it is down.
    for map in [&[][..], &["--map", "cluster"]] {
        let (_shard, more) = families(&[&["shard", "--nodes", "127.0.0.1:1"], map].concat());
        all.extend(more);
    }
    let managed = ["shard", "--nodes", "sentinel:one", "--sentinels", "127.0.0.1:1"];
    let (_managed, more) = families(&managed);
    all.extend(more);
    assert!(all.len() > 15, "{all:?}");
    all
}

/// Checks that an expression has only metrics that exist.
fn check(expression: &str, existing: &BTreeSet<String>) {
    let name = Regex::new("regatta_[a-z_]+").unwrap();
    let names: Vec<&str> = name.find_iter(expression).map(|found| found.as_str()).collect();
    assert!(!names.is_empty(), "{expression}");
    for name in names {
        let family = name.strip_suffix("_bucket").unwrap_or(name);
        assert!(existing.contains(family), "{name} of {expression}");
    }
}

#[test]
fn the_dashboard_shows_only_metrics_that_exist_and_all_of_them() {
    let dashboard: Value = serde_json::from_str(&deployed("grafana.json")).unwrap();
    let existing = existing();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut all = String::new();
    for target in panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten() {
        let expression = target["expr"].as_str().unwrap();
        check(expression, &existing);
        all.push_str(expression);
    }
    // The number of clients that have connected is in the number of connections.
    let missing = existing.iter().filter(|name| !all.contains(&***name));
    let missing: Vec<_> = missing.filter(|name| !name.ends_with("_replies_total")).collect();
    assert!(missing.len() <= 1, "not shown: {missing:?}");
}

/// The rules of Grafana's model: unique numbers, places in 24 columns that do not overlap, variables that exist.
#[test]
fn the_dashboard_has_the_form_of_grafana() {
    let text = deployed("grafana.json");
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    assert!(dashboard["schemaVersion"].as_u64() >= Some(36) && dashboard["uid"].is_string());
    let variables: BTreeSet<&str> = dashboard["templating"]["list"]
        .as_array()
        .unwrap()
        .iter()
        .map(|variable| variable["name"].as_str().unwrap())
        .collect();
    let used = Regex::new(r"\$\{?([a-z]+)").unwrap();
    for name in used.captures_iter(&text).map(|found| found.get(1).unwrap().as_str()) {
        assert!(variables.contains(name), "${name}");
    }
    let panels = dashboard["panels"].as_array().unwrap();
    let (mut ids, mut places) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}: its id is taken");
        let [x, y, w, h] =
            ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().unwrap());
        assert!(w > 0 && x + w <= 24, "{title}");
        for place in (x..x + w).flat_map(|column| (y..y + h).map(move |line| (column, line))) {
            assert!(places.insert(place), "{title} overlaps another panel");
        }
        assert!(["row", "timeseries"].contains(&panel["type"].as_str().unwrap()), "{title}");
        let targets = panel["targets"].as_array().map_or(&[][..], Vec::as_slice);
        let refs: BTreeSet<_> = targets.iter().map(|target| target["refId"].as_str()).collect();
        assert_eq!(refs.len(), targets.len(), "{title}");
        assert!(panel["type"] == "row" || panel["description"].is_string(), "{title}");
    }
}

#[test]
fn the_alerts_are_of_metrics_that_exist() {
    let rules = YamlLoader::load_from_str(&deployed("alerts.yaml")).unwrap().remove(0);
    let existing = existing();
    let rules = rules["groups"][0]["rules"].as_vec().unwrap();
    for rule in rules {
        assert!(rule["alert"].as_str().is_some_and(|name| name.starts_with("Regatta")), "{rule:?}");
        check(rule["expr"].as_str().unwrap(), &existing);
        assert!(rule["annotations"]["summary"].as_str().is_some(), "{rule:?}");
        assert!(["critical", "warning"].contains(&rule["labels"]["severity"].as_str().unwrap()));
    }
    assert!(rules.len() >= 5);
}

/// Every option in the compose file exists.
#[test]
fn the_containers_run_commands_that_exist() {
    let file = YamlLoader::load_from_str(&deployed("compose.yaml")).unwrap().remove(0);
    for service in ["hub", "shard"] {
        let command = file["services"][service]["command"].as_vec().unwrap();
        let words: Vec<&str> = command.iter().filter_map(Yaml::as_str).collect();
        assert_eq!(words[0], service);
        let help = run(regatta!("{service} --help")).stdout;
        for option in words.iter().filter(|word| word.starts_with("--")) {
            assert!(help.contains(option), "{service} {option}");
        }
        assert!(file["services"][service]["stop_grace_period"].as_str().is_some());
        let check = file["services"][service]["healthcheck"]["test"].as_vec().unwrap();
        let check: Vec<&str> = check.iter().skip(2).filter_map(Yaml::as_str).collect();
        // The check of a service that does not run: its options are known, so it cannot connect.
        let ended = run(regatta!("").args(&check));
        let error = &ended.stderr;
        assert!(error.contains("cannot connect to") || ended.code() < 2, "{error}");
    }
}
