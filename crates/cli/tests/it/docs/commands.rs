//! The arguments of every command are checked, and wrong ones are found.

use crate::support::docs::commands::{How, difference, play_all, played};
use std::fs;

#[test]
fn every_command_has_valid_arguments() {
    play_all(How::Check);
}

#[test]
fn a_wrong_command_in_a_page_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.md");
    for (text, expected) in [
        ("```sh\nregatta models\n```\n", None),
        ("```sh\nregatta modles\n```\n", Some("modles")),
        ("```sh status=2\nregatta modles\n```\n", None),
        ("```sh\nregatta load line://127.0.0.1:4000 -d 5s\n```\n", Some("Connection refused")),
        ("```sh\nregatta race --only epol\n```\n", Some("epol")),
        ("```sh skipped: slow\nregatta race --rouns 3\n```\n", Some("wrong arguments")),
        ("```sh skipped: slow\nscripts/tset\n```\n", Some("scripts/tset is no program")),
        ("`regatta race --rouns 3`\n", Some("wrong arguments")),
        ("```sh\nregatta services\n```\n```text output\nhash HTTP: …\n```\n", Some("no line")),
    ] {
        fs::write(&page, text).expect("a page");
        let wrong = played(&page, How::Run).join("\n");
        match expected {
            None => assert_eq!(wrong, "", "{text}"),
            Some(expected) => assert!(wrong.contains(expected), "{text}: {wrong:?}"),
        }
    }
}

#[test]
fn a_different_shape_of_output_is_found() {
    let output = "head\nsent 12,345 in 1.5 s\nmore\nlast  3\n";
    assert_eq!(difference("sent 1 in 2 s\n…\nlast 4\n", output), None);
    assert!(difference("last 4\nsent 1 in 2 s\n", output).is_some());
    assert!(difference("sent 1 in 2 ms\n", output).is_some());
}
