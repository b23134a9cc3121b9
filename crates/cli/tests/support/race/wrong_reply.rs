//! A contender with one wrong reply.

use super::course::Course;
use regatta_record::{Kind, Outcome, Round};

/// Races `bad`, whose reply number `at` is wrong, and checks that this reply is found and shown, behind more than
/// `least` correct ones.
#[track_caller]
pub fn assert_is_shown(course: &Course, args: &[&str], at: u32, least: u64) {
    course.write_race("'null'", "50s", "connections = 8\npipeline = 16");
    let bad = format!("bad=sh -c 'exec \"$ILL\" {{port}} wrong-at {at}'");
    // The null server is skipped because its window would last 50 s. The wrong reply ends this window.
    let race = ["race.toml", "--skip", "null", "--out", "out", "--json", "-", "--contender", &bad];
    let ended = course.race(&[&race[..], args].concat()).with_status(1);
    course.assert_nothing_left();

    let round: Round = serde_json::from_slice(course.rounds().trim_ascii_end()).unwrap();
    let Outcome::Disqualified { exchange: Some(exchange), .. } = round.outcome else {
        panic!("no exchange in {round:?}");
    };
    let number = |text: &str| text.trim_end_matches("\\n").parse::<i128>().unwrap();
    assert_eq!(number(&exchange.expected), 2 * number(&exchange.sent), "{exchange:?}");
    assert_eq!(number(&exchange.received), 2 * number(&exchange.sent) + 1, "{exchange:?}");
    assert!(round.requests > least, "{}", round.requests);
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
