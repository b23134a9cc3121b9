use super::*;

fn at(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], port))
}

const SECOND: Duration = Duration::from_secs(1);

/// Three Sentinels and these masters.
fn masters(names: &[&str]) -> Masters {
    let nodes: Vec<_> =
        names.iter().map(|name| ((*name).to_owned(), format!("{name}-m"))).collect();
    Masters::new([1, 2, 3].map(|port| Some(at(port))).into(), &nodes)
}

/// All Sentinels give these.
fn all(ports: &[u16]) -> [Option<&[u16]>; 3] {
    [Some(ports); 3]
}

/// Runs a round in which each Sentinel gives these addresses; port 0: it knows none. `None`: it does not answer.
fn round(masters: &mut Masters, now: Instant, answers: [Option<&[u16]>; 3]) -> Switches {
    let question = masters.ask(now, 0.0).expect("it is time to ask");
    let mut switches = Vec::new();
    for (number, _) in &question.sentinels {
        let answer = answers[*number].map(|ports| {
            let one = |port: &u16| match port {
                0 => Reported::Nothing("none".into()),
                port => Reported::At(at(*port)),
            };
            ports.iter().map(one).collect()
        });
        let answer = answer.ok_or_else(|| "cut off".to_owned());
        switches.extend(masters.answered((question.round, *number), answer, now, 0.0));
    }
    switches
}

#[test]
fn the_address_that_a_majority_of_the_configured_gives_counts() {
    for (answers, expected) in [
        ([Some(&[7][..]), Some(&[7]), Some(&[7])], Some(7)),
        ([Some(&[7]), None, Some(&[7])], Some(7)),
        ([Some(&[8]), Some(&[7]), Some(&[7])], Some(7)),
        ([Some(&[8]), Some(&[7]), Some(&[9])], None),
        // All that answer agree, but they are a minority.
        ([Some(&[7]), None, None], None),
        ([Some(&[7]), Some(&[0]), Some(&[0])], None),
    ] {
        let mut masters = masters(&["a"]);
        let switches = round(&mut masters, Instant::now(), answers);
        let expected: Switches = expected.map(|port| (0, at(port))).into_iter().collect();
        assert_eq!(switches, expected, "{answers:?}");
        assert_eq!(masters.are_known(), !expected.is_empty());
    }
}

#[test]
fn a_minority_that_is_cut_off_changes_nothing() {
    let (mut masters, now) = (masters(&["a"]), Instant::now());
    round(&mut masters, now, [Some(&[7]), Some(&[7]), Some(&[7])]);
    assert_eq!(
        round(&mut masters, now + 11 * SECOND, [Some(&[8]), Some(&[8]), Some(&[7])]),
        [(0, at(8))]
    );
    for second in 12..20 {
        masters.want(false, now + second * SECOND);
        assert_eq!(round(&mut masters, now + second * SECOND, [None, None, Some(&[7])]), []);
    }
    assert_eq!(masters.addresses().next(), Some(("a", Some(at(8)))));
}

#[test]
fn answers_of_different_rounds_are_not_added() {
    let (mut masters, now) = (masters(&["a"]), Instant::now());
    let first = masters.ask(now, 0.0).unwrap();
    let answer = |port| Ok(vec![Reported::At(at(port))]);
    assert_eq!(masters.answered((first.round, 0), answer(7), now, 0.0), []);
    // The others do not answer in time.
    let second = masters
        .ask(now + LONGEST_ROUND + SECOND, 0.0)
        .or_else(|| masters.ask(now + LONGEST_ROUND + 2 * SECOND, 0.0));
    let second = second.unwrap();
    let now = now + LONGEST_ROUND + 2 * SECOND;
    assert_eq!(masters.answered((first.round, 1), answer(7), now, 0.0), [], "late");
    assert_eq!(masters.answered((second.round, 1), answer(7), now, 0.0), []);
    assert_eq!(masters.answered((second.round, 1), answer(7), now, 0.0), [], "twice");
    assert_eq!(masters.answered((second.round, 2), answer(7), now, 0.0), [(0, at(7))]);
}

#[test]
fn a_sentinel_that_is_listed_twice_has_one_vote() {
    let nodes = [("a".to_owned(), "a".to_owned())];
    let mut masters = Masters::new(vec![Some(at(1)), Some(at(1)), Some(at(2))], &nodes);
    let now = Instant::now();
    let question = masters.ask(now, 0.0).unwrap();
    assert_eq!(question.sentinels, [(0, at(1)), (2, at(2))]);
    let answer = || Ok(vec![Reported::At(at(7))]);
    assert_eq!(masters.answered((1, 0), answer(), now, 0.0), []);
    assert_eq!(masters.answered((1, 1), answer(), now, 0.0), [], "it was not asked");
    assert_eq!(masters.answered((1, 2), answer(), now, 0.0), [(0, at(7))]);
}

#[test]
fn a_server_is_the_master_of_one_node_only() {
    let (mut masters, now) = (masters(&["a", "b"]), Instant::now());
    assert_eq!(round(&mut masters, now, all(&[7, 7])), [(0, at(7))]);
    assert!(!masters.are_known());
    assert!(masters.why(1).starts_with("they give 10.0.0.1:7, which is the master of a; 2 of 3"));
    // What they gave before is not the reason of a later round.
    assert_eq!(round(&mut masters, now + SECOND, [None, None, None]), []);
    assert!(masters.why(1).starts_with("2 of 3"), "{}", masters.why(1));
    assert_eq!(round(&mut masters, now + 2 * SECOND, all(&[7, 8])), [(1, at(8))]);
}

#[test]
fn only_what_has_moved_changes() {
    let (mut masters, now) = (masters(&["a", "b"]), Instant::now());
    round(&mut masters, now, all(&[7, 8]));
    assert_eq!(round(&mut masters, now + 11 * SECOND, all(&[7, 9])), [(1, at(9))]);
    let counts = masters.counts(now + 12 * SECOND, now);
    assert_eq!((counts.answering, counts.configured, counts.switches), (3, 3, 1));
    assert_eq!(counts.age, SECOND);
}

#[test]
fn rounds_are_apart_and_come_every_ten_seconds() {
    let (mut masters, now) = (masters(&["a"]), Instant::now());
    let question = masters.ask(now, 0.0);
    assert!(question.is_some() && masters.ask(now + SECOND, 0.0).is_none(), "one is in flight");
    masters.configure(masters.sentinels.clone(), &[("a".into(), "a-m".into())]);
    round(&mut masters, now, all(&[7]));
    masters.subscribe(now);
    assert_eq!(masters.due(now), now + INTERVAL);
    masters.want(false, now);
    let mut last = now;
    let mut pauses = Vec::new();
    for _ in 0..6 {
        let due = masters.due(last);
        assert!(masters.ask(due - Duration::from_millis(1), 0.0).is_none());
        round(&mut masters, due, all(&[7]));
        masters.want(false, due);
        pauses.push((due - last).as_millis());
        last = due;
    }
    assert_eq!(pauses, [100, 200, 400, 800, 1000, 1000]);
    // A failover is announced.
    masters.want(true, last);
    assert_eq!(masters.due(last), last + PAUSE);
    round(&mut masters, last + PAUSE, all(&[7]));
    assert_eq!(masters.due(last), last + 2 * PAUSE, "others learn of it soon");
}

#[test]
fn a_configuration_keeps_masters_by_their_names() {
    let (mut masters, now) = (masters(&["a", "b"]), Instant::now());
    round(&mut masters, now, all(&[7, 8]));
    let question = masters.ask(now + 11 * SECOND, 0.0).unwrap();
    let nodes = [("x".to_owned(), "b-m".to_owned()), ("y".to_owned(), "new".to_owned())];
    masters.configure(vec![Some(at(1))], &nodes);
    let known: Vec<_> = masters.addresses().collect();
    assert_eq!(known, [("x", Some(at(8))), ("y", None)]);
    let answer = Ok(vec![Reported::At(at(9)), Reported::At(at(9))]);
    assert_eq!(masters.answered((question.round, 0), answer, now, 0.0), [], "of the others");
    assert!(masters.has(b"b-m") && !masters.has(b"a-m"));
}

#[test]
fn another_sentinel_is_subscribed_to_after_a_loss() {
    let (mut masters, now) = (masters(&["a"]), Instant::now());
    masters.set_sentinels(vec![Some(at(1)), None, Some(at(3))]);
    assert_eq!(masters.subscribe(now), Some((0, at(1))));
    assert_eq!(masters.subscribe(now), None);
    masters.unsubscribed(now);
    assert_eq!(masters.subscribe(now), None);
    assert_eq!(masters.subscribe(now + SUBSCRIBE_PAUSE), Some((2, at(3))));
    masters.unsubscribed(now);
    assert_eq!(masters.subscribe(now + SUBSCRIBE_PAUSE), Some((0, at(1))));
}

#[test]
fn each_change_is_reported_once() {
    let (mut masters, now) = (masters(&["a"]), Instant::now());
    let mut news = |second: u32, answers: [Option<&[u16]>; 3]| {
        masters.want(false, now);
        round(&mut masters, now + 10 * second * SECOND, answers);
        masters.take_news()
    };
    let why = "the master of a is not known: 2 of 3 Sentinels must agree; 10.0.0.1:1: cut off; 10.0.0.1:2: none; \
               10.0.0.1:3: 10.0.0.1:7";
    assert_eq!(news(0, [None, Some(&[0]), Some(&[7])]), [why]);
    assert_eq!(news(1, [None, Some(&[0]), Some(&[7])]), [""; 0]);
    assert_eq!(news(2, all(&[7])), ["the master of a is 10.0.0.1:7"]);
    assert_eq!(news(3, all(&[7])), [""; 0]);
    assert_eq!(news(4, all(&[8])), ["the master of a is 10.0.0.1:8 now; before: 10.0.0.1:7"]);
    assert_eq!(news(5, [Some(&[8]), None, None]), [""; 0], "it may be a failover");
    assert_eq!(news(6, [Some(&[8]), None, None]).len(), 1);
    assert_eq!(news(7, all(&[8])), ["the master of a is 10.0.0.1:8"]);
}
