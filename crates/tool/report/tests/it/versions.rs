//! Tests that reports show a contender's version, its age, its command and its environment.

use regatta_record::{Entry, Summary};
use regatta_report::{markdown, terminal};

/// The fixture, dated 2026-09-21, with node's entry modified by `change`.
fn with_node(change: impl Fn(&mut Entry)) -> Summary {
    let mut summary: Summary =
        serde_json::from_str(include_str!("../summary.json")).expect("the fixture is a summary");
    summary.asked.setup.started_unix_s = 1_790_000_000;
    for entry in &mut summary.asked.entries {
        (entry.version, entry.released) = (None, None);
        entry.env.clear();
    }
    let node = summary.asked.entries.iter_mut().find(|entry| entry.name == "node");
    change(node.expect("the fixture has it"));
    summary
}

#[test]
fn shows_the_age_of_a_version_on_the_day_of_the_race() {
    let summary = with_node(|node| {
        (node.version, node.released) = (Some("v22.6.0".into()), Some("2024-08-15".into()));
        node.start =
            ["node", "--max-http-header-size=8192", "server.js"].map(String::from).to_vec();
        node.env = [("FILE".into(), "{file}".into())].into();
    });
    let command = "FILE={file} node --max-http-header-size=8192 server.js";
    for text in [terminal(&summary, 400, false), markdown(&summary)] {
        let row = text.lines().find(|line| line.contains("v22.6.0")).expect("a row");
        for words in ["node", "2.1 years old", command] {
            assert!(row.contains(words), "{words}: {row}");
        }
        assert!(!text.contains("bytes of a reply"), "none was seen: {text}");
    }
}

#[test]
fn shows_no_age_without_a_release_date() {
    let summary = with_node(|node| node.version = Some("v22.6.0".into()));
    let text = terminal(&summary, 400, false);
    assert!(text.contains("v22.6.0"), "{text}");
    assert!(!text.contains("years old") && !text.contains("  age  "), "{text}");
    let nothing = terminal(&with_node(|_| ()), 400, false);
    assert!(!nothing.contains("started by"), "no table without values: {nothing}");
}

#[test]
fn built_in_servers_have_the_version_of_regatta() {
    let mut summary = with_node(|node| node.version = Some("v22.6.0".into()));
    summary.asked.setup.regatta = "0.7.0".into();
    let epoll = summary.asked.entries.iter_mut().find(|entry| entry.name == "epoll").unwrap();
    epoll.start = ["{regatta}", "serve", "double"].map(String::from).to_vec();
    let text = terminal(&summary, 400, false);
    let row = text.lines().find(|line| line.starts_with("epoll ") && line.contains("{regatta}"));
    assert!(row.expect("a row").contains("regatta 0.7.0"), "{text}");
}

#[test]
fn results_of_earlier_versions_have_neither_release_nor_env() {
    let summary = with_node(|_| ());
    let text = serde_json::to_string(&summary).unwrap();
    assert!(!text.contains("\"released\"") && !text.contains("\"env\""), "absent keys are read");
    let read: Summary = serde_json::from_str(&text).unwrap();
    assert_eq!(read, summary);
}
