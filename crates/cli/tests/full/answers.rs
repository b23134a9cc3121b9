//! A contender whose answers are right except for one.

use crate::support::race::course::Course;
use regatta_record::{Kind, Outcome, Round};

#[test]
fn one_wrong_answer_in_a_million_is_found_and_shown() {
    let course = Course::alone();
    course.write_race("'null'", "50s", "connections = 8\npipeline = 16");
    let bad = "bad=sh -c 'exec \"$ILL\" {port} wrong-at 1000000'";
    // The null server is skipped because its window would last 50 s. The wrong reply ends this window.
    let args = "race.toml --schedule rounds --settle 0s --skip null --out out --json - --contender";
    let args: Vec<&str> = args.split(' ').chain([bad]).collect();
    let ended = course.race(&args).with_status(1);
    course.assert_nothing_left();

    let round: Round = serde_json::from_slice(course.rounds().trim_ascii_end()).unwrap();
    let Outcome::Disqualified { exchange: Some(exchange), .. } = round.outcome else {
        panic!("no exchange in {round:?}");
    };
    let number = |text: &str| text.trim_end_matches("\\n").parse::<i128>().unwrap();
    assert_eq!(number(&exchange.expected), 2 * number(&exchange.sent), "{exchange:?}");
    assert_eq!(number(&exchange.received), 2 * number(&exchange.sent) + 1, "{exchange:?}");
    // All other replies were correct. Only requests in flight are not counted.
    assert!(round.requests > 900_000, "{}", round.requests);
    let exchange = [
        format!("sent {}", exchange.sent),
        format!("expected {}", exchange.expected),
        format!("received {}", exchange.received),
    ];
    let said = ["a reply was wrong", &exchange[0], &exchange[1], &exchange[2]];
    ended.assert_verdict("bad", Kind::Disqualified, &said);
    let printed = |part: &String| part.replacen(' ', "", 1);
    let stderr = ended.stderr.replace(' ', "");
    assert!(exchange.iter().all(|part| stderr.contains(&printed(part))), "{stderr}");
}
