//! How a Markdown page is read.

use crate::support::docs::page::{Page, Step};

#[test]
fn reads_steps_links_and_anchors() {
    let page = Page::from_text(
        "# A `b`: C\n\n<!-- setup:\ntrue\n-->\n[x](y.md#z) `regatta race`\n\n## A b c\n\n\
         ```sh status=1,3 raced\na\n```\n```sh skipped: no b\nb\n```\n```toml file=c\nd\n```\n\
         ```text output\ne\n```\n```text\nf\n```\n<!-- server=80: g -->\n",
    );
    assert_eq!(page.wrong, [""; 0]);
    let run = |text: &str, raced, statuses: &[i32]| Step::Run {
        commands: text.to_owned(),
        raced,
        statuses: statuses.to_vec(),
    };
    assert_eq!(
        page.steps,
        [
            (3, run("\ntrue\n", true, &[0])),
            (10, run("a\n", true, &[1, 3])),
            (13, Step::Check { commands: "b\n".into(), why: "no b".into() }),
            (16, Step::Write { name: "c".into(), text: "d\n".into() }),
            (19, Step::Compare { output: "e\n".into() }),
            (25, Step::Serve { command: " g ".into(), port: "80".into() }),
        ]
    );
    assert_eq!(page.links, [(6, "y.md#z".to_owned())]);
    assert_eq!(page.code, [(6, "regatta race".to_owned())]);
    assert_eq!(page.anchors, ["a-b-c", "a-b-c-1"]);
}

#[test]
fn refuses_blocks_that_no_test_would_see() {
    for (text, expected) in [
        ("```\na\n```\n", "1: expected a language"),
        ("\n```console\n$ a\n```\n", "2: expected a language"),
        ("```toml\na = 1\n```\n", "needs `file=NAME`"),
        ("```sh skiped: b\na\n```\n", "got \"skiped:\""),
        ("```sh status=x\na\n```\n", "status=x"),
        ("```text outptu\na\n```\n", "unknown words"),
        ("a\n\n    b\n", "3: an indented code block"),
    ] {
        let wrong = Page::from_text(text).wrong;
        assert!(matches!(&wrong[..], [why] if why.contains(expected)), "{text:?}: {wrong:?}");
    }
}
