//! Workload files against correct and wrong servers, with each way to specify the expected reply.

use crate::common::{Server, assert_undisturbed, plan, run};
use regatta_load::{Drive, Plan, Until};
use regatta_record::Exchange;
use regatta_script::Workload;
use std::{path::Path, time::Duration};

/// The three ways to specify the expected reply.
const WAYS: [(&str, &str); 3] =
    [("exact", "exact = '{n*2}'"), ("prefix", "prefix = '{n*2}'"), ("regex", "regex = '14'")];

fn workload(way: &str) -> Workload {
    let text = format!("protocol = 'line'\n[[request]]\nsend = '{{n=int:7..7}}'\n{way}");
    Workload::from_text(&text, "test").unwrap()
}

fn wrong(server: &Server, way: &str, pipeline: usize) -> Exchange {
    let workload = workload(way);
    let until = Until::Elapsed(Duration::from_secs(20));
    let tally = run(&Plan { workload, pipeline, until, ..plan(server.address) }).unwrap();
    assert!(tally.window_ns < 15_000_000_000, "the run went on after the wrong reply");
    assert!(tally.errors.wrong_reply >= 1);
    tally.first_wrong.clone().unwrap()
}

#[test]
fn a_correct_server_passes_with_each() {
    let server = Server::double();
    for (_, way) in WAYS {
        for (pipeline, drive) in [(32, Drive::Closed), (1, Drive::Churn)] {
            let workload = workload(way);
            let plan = Plan { workload, connections: 3, pipeline, drive, ..plan(server.address) };
            assert_undisturbed(&run(&plan).unwrap());
        }
    }
}

#[test]
fn a_wrong_byte_is_found_with_each_also_in_place_of_the_newline() {
    for reply in ["15\n", "\n", "1\n4\n"] {
        let server = Server::lines(move |i, _| Some(if i == 50 { reply } else { "14\n" }.into()));
        for (name, way) in WAYS {
            let exchange = wrong(&server, way, 8);
            assert_eq!(exchange.reply_index, 50, "{name} {reply:?}: {exchange:?}");
            assert_eq!(exchange.sent, "7\\n");
        }
    }
    // The newline is missing: the next reply is on the same line, whose prefix is correct.
    let server = Server::lines(|i, _| Some(if i == 50 { "14" } else { "14\n" }.into()));
    for (name, way) in WAYS.into_iter().filter(|(name, _)| *name != "prefix") {
        let exchange = wrong(&server, way, 8);
        assert_eq!(exchange.reply_index, 50, "{name}: {exchange:?}");
    }
}

#[test]
fn an_unsolicited_line_is_found_with_each() {
    let server = Server::lines(|i, _| Some(if i == 50 { "14\n14\n" } else { "14\n" }.into()));
    for (name, way) in WAYS {
        let exchange = wrong(&server, way, 1);
        assert_eq!(exchange.reply_index, 51, "{name}: {exchange:?}");
        assert_eq!((exchange.sent.as_str(), exchange.received.as_str()), ("7\\n", "14\\n"));
        assert!(exchange.expected.starts_with("nothing more"), "{name}: {exchange:?}");
    }
}

#[test]
fn the_exchange_describes_the_expected_reply() {
    let server = Server::lines(|_, _| Some("no\n".into()));
    let expected = ["14\\n", "a line starting with 14", "a line matching 14"];
    for ((_, way), expected) in WAYS.iter().zip(expected) {
        let exchange = wrong(&server, way, 1);
        assert_eq!((exchange.expected.as_str(), exchange.received.as_str()), (expected, "no\\n"));
    }
}

#[test]
fn the_examples_pass_against_their_servers() {
    let example = |name: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../workloads");
        Workload::read(&folder.join(name)).unwrap()
    };
    let double = Server::lines(|_, line| {
        Some(match line.parse::<i128>() {
            Ok(n) => format!("{}\n", n * 2),
            Err(_) => format!("error: not an integer: {line}\n"),
        })
    });
    let dialogue = Server::start(|stream, requests| {
        let first = std::sync::Mutex::new(None::<String>);
        crate::common::answer_lines(stream, requests, |_, line| {
            let mut first = first.lock().unwrap();
            Some(match first.take() {
                Some(first) => format!("hello {first} {line}\n"),
                None => {
                    *first = Some(line.into());
                    "last name?\n".into()
                }
            })
        });
    });
    let echo = Server::lines(|_, line| Some(format!("{line}\n")));
    for (server, workload) in [
        (&double, example("double.toml")),
        (&double, example("patterns.toml")),
        (&dialogue, example("dialogue.toml")),
        (&echo, example("patterns.toml").echoed().unwrap()),
    ] {
        let plan = Plan { workload, connections: 3, pipeline: 9, ..plan(server.address) };
        assert_undisturbed(&run(&plan).unwrap());
    }
}

#[test]
fn lines_too_long_for_the_pipeline_are_refused() {
    let text = format!(
        "protocol = 'line'\n[[request]]\nsend = '{{line:long}}'\nprefix = ''\n[lines]\nlong = ['{}']",
        "x".repeat(60_000)
    );
    let workload = Workload::from_text(&text, "long").unwrap();
    let server = Server::double();
    let plan = Plan { workload, pipeline: Plan::MAX_PIPELINE, ..plan(server.address) };
    let error = run(&plan).unwrap_err().to_string();
    assert!(error.contains("use a smaller pipeline"), "{error}");
}
