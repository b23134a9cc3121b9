//! Every combination of what can happen to a round, and what its outcome may then be.

use super::*;
use regatta_load::{Moment, Plan, Until};
use regatta_record::{Errors, Exchange};
use regatta_script::Workload;
use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::atomic::AtomicBool,
};

/// What a load, or the load beside it, can come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It never started.
    Absent,
    Right,
    /// All replies were right, but there were none.
    Empty,
    Wrong,
    Missing,
    /// The server no longer accepted or answered.
    Dead,
    Interrupted,
    /// Interrupted, as the load beside always is, with a wrong reply.
    InterruptedWrong,
    NotOpened,
    Descriptors,
    /// A fault of the machine.
    Machine,
}

use End::*;
const ENDS: [End; 11] = [
    Absent,
    Right,
    Empty,
    Wrong,
    Missing,
    Dead,
    Interrupted,
    InterruptedWrong,
    NotOpened,
    Descriptors,
    Machine,
];

impl End {
    fn loaded(self, base: &Tally) -> Option<Loaded> {
        let mut tally = base.clone();
        match self {
            Absent => return None,
            Right => {}
            Empty => tally.counts.requests = 0,
            Wrong => tally.first_wrong = Some(exchange()),
            Missing => tally.counts.errors.read = 1,
            Dead => tally.server_died = true,
            Interrupted => tally.interrupted = true,
            InterruptedWrong => {
                (tally.interrupted, tally.first_wrong) = (true, Some(exchange()));
            }
            NotOpened => {
                let last = "refused".into();
                return Some(Err(Error::NotOpened { opened: 0, wanted: 4, last }));
            }
            Descriptors => return Some(Err(Error::Descriptors { wanted: 4, possible: 3 })),
            Machine => return Some(Err(Error::Plan("a machine".into()))),
        }
        Some(Ok(tally))
    }

    fn is_wrong(self) -> bool {
        matches!(self, Wrong | InterruptedWrong)
    }
}

fn exchange() -> Exchange {
    let [sent, expected, received] = ["1", "2", "7"].map(str::to_owned);
    Exchange { sent, expected, received, reply_index: 0 }
}

/// A load without a fault.
fn tally() -> Tally {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut input = [0; 4096];
        while stream.read(&mut input).is_ok_and(|read| read > 0) {
            if stream.write_all(b"7\n").is_err() {
                return;
            }
        }
    });
    let double = Workload::parse("double").unwrap();
    let plan = Plan { until: Until::Requests(10), ..Plan::closed(address, double) };
    let stop = AtomicBool::new(false);
    let mut tally = regatta_load::run(&plan, &mut |_: Moment| {}, &mut |_| (), &stop).unwrap();
    server.join().unwrap();
    assert!(tally.first_wrong.take().is_some(), "the server answers wrongly");
    tally.counts.errors = Errors::default();
    tally.counts.requests = 5;
    (tally.interrupted, tally.server_died) = (false, false);
    tally
}

#[test]
#[expect(clippy::too_many_lines, reason = "one case for each rule")]
fn every_outcome_follows_from_what_happened_in_a_fixed_order_of_precedence() {
    const BACKEND: &str = "the backend died";
    const SERVER: &str = "the server died";
    const STOPPED: &str = "it had to be killed";
    let base = tally();
    let (mut finished, mut blamed, mut none, mut errors) = (0, 0, 0, 0);
    for bits in 0..32 {
        let [backend, server, interrupted, late, unclean] =
            [1, 2, 4, 8, 16].map(|bit| bits & bit > 0);
        for (measured, beside) in ENDS.iter().flat_map(|one| ENDS.map(|two| (*one, two))) {
            // The load beside was there, unless there was none.
            let case = (backend, server, interrupted, late, unclean, measured, beside);
            let said = |is: bool, text: &str| is.then(|| text.to_owned());
            let facts = Facts {
                name: "x",
                load: LoadShape::closed(4, 1),
                interrupted,
                deaths: Deaths { backend: said(backend, BACKEND), server: said(server, SERVER) },
                loaded: measured.loaded(&base),
                too_long: late.then_some(Duration::from_secs(9)),
                background: beside.loaded(&base),
                spoken: None,
                stopped: if unclean { Err(STOPPED.into()) } else { Ok(Some("a remark".into())) },
            };
            let concluded = match facts.conclude() {
                Ok(concluded) => concluded,
                Err(_) => {
                    assert!([measured, beside].contains(&Machine) && !backend, "{case:?}");
                    errors += 1;
                    continue;
                }
            };
            let Some(Concluded { outcome, remark, tally, background }) = concluded else {
                let is_cut = interrupted
                    || measured == Absent
                    || !late && matches!(measured, Interrupted | InterruptedWrong);
                assert!(is_cut, "{case:?}: a round is lost");
                none += 1;
                continue;
            };
            if outcome == Outcome::Finished {
                let is_whole = matches!(measured, Right | Empty);
                let is_beside = matches!(beside, Absent | Right | Interrupted);
                assert!(is_whole && is_beside, "{case:?}");
                assert!(!backend && !server && !late && !unclean, "{case:?}");
                assert_eq!(remark.as_deref(), Some("a remark"));
                assert!(tally.is_some() && background.is_some() == (beside != Absent), "{case:?}");
                finished += 1;
                continue;
            }
            blamed += 1;
            assert!(remark.is_none(), "{case:?}");
            assert!(!interrupted || is_wrong(&outcome), "{case:?}: blamed for an interruption");
            let text = format!("{outcome:?}");
            let of_beside = text.contains("among the large requests");
            assert!(!of_beside || beside != Absent, "{case:?}");
            match () {
                () if backend => assert_eq!(outcome, Outcome::Failed { because: BACKEND.into() }),
                () if measured == Wrong || measured == InterruptedWrong && late => {
                    assert!(is_wrong(&outcome) && !of_beside, "{case:?}: {outcome:?}");
                }
                () if beside.is_wrong() && matches!(measured, Right | Missing | Interrupted) => {
                    assert!(is_wrong(&outcome) && of_beside, "{case:?}: {outcome:?}");
                }
                () if is_wrong(&outcome) => {
                    assert!(of_beside && beside.is_wrong(), "{case:?}: {outcome:?}");
                }
                () if server && text.contains("CannotHold") => {
                    assert!([measured, beside].contains(&Descriptors), "{case:?}: {outcome:?}");
                }
                () if server => {
                    let because = SERVER.to_owned();
                    assert_eq!(outcome, Outcome::Failed { because }, "{case:?}");
                }
                () if text.contains(STOPPED) => {
                    assert!(unclean && matches!(measured, Right | Empty) && !late, "{case:?}");
                }
                () if text.contains("did not finish") => assert!(late, "{case:?}: {outcome:?}"),
                () => {}
            }
        }
    }
    assert!(finished >= 4 && blamed > 400 && none > 200 && errors > 100);
}

#[test]
fn what_the_server_speaks_is_added_to_a_fault_only() {
    let spoken = || Some("it speaks TLS".to_owned());
    let failed = Outcome::Failed { because: "no reply".into() };
    let said = |outcome| format!("{:?}", with_remark(outcome, spoken()));
    assert!(said(failed).contains("no reply; it speaks TLS"));
    let wrong = Outcome::Disqualified { because: "wrong".into(), exchange: Some(exchange()) };
    assert!(said(wrong).contains("wrong; it speaks TLS"));
    assert_eq!(with_remark(Outcome::Finished, spoken()), Outcome::Finished);
    let refused = Error::NotOpened { opened: 0, wanted: 1, last: "reset".into() };
    let Outcome::Failed { because } = not_loaded("x", refused, None, spoken()).unwrap() else {
        panic!("a server that accepts nothing fails")
    };
    assert!(because.starts_with("x: ") && because.ends_with("; it speaks TLS"), "{because}");
}

#[test]
fn a_server_that_lowers_its_limit_during_the_load_is_not_raced() {
    let mut tally = tally();
    tally.counts.in_flight_limit = Some(3);
    let facts = |loaded: Tally| Facts {
        name: "x",
        load: LoadShape::closed(1, 4),
        interrupted: false,
        deaths: Deaths { backend: None, server: None },
        loaded: Some(Ok(loaded)),
        too_long: None,
        background: None,
        spoken: None,
        stopped: Ok(None),
    };
    let outcome = facts(tally.clone()).conclude().unwrap().unwrap().outcome;
    let Outcome::CannotHold { because } = outcome else { panic!("{outcome:?}") };
    assert!(because.starts_with("x permits 3 requests in flight per connection; this load has 4"));
    tally.first_wrong = Some(exchange());
    let outcome = facts(tally).conclude().unwrap().unwrap().outcome;
    assert!(is_wrong(&outcome), "a wrong reply comes first: {outcome:?}");
}
