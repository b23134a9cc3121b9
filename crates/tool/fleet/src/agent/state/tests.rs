use super::*;
use proptest::prelude::*;
use regatta_record::{LeaderCommand, LoadProgress};
use regatta_script::Workload;

const SECOND: u64 = 1_000_000_000;

fn message(seq: u64, body: Request) -> Event {
    Event::Message(Box::new(ToAgent { seq, body }))
}

fn prepare(processes: u32) -> Request {
    let workload = Workload::parse("double").unwrap();
    let plan = Plan::closed("127.0.0.1:1".parse().unwrap(), workload);
    let parts = (0..processes).map(|process| Part::equal(process, processes, processes)).collect();
    Request::Prepare { plan: Box::new(plan), parts }
}

/// The effects in words.
fn words(effects: &[Effect]) -> Vec<String> {
    let word = |effect: &Effect| match effect {
        Effect::Send(message) => match &message.body {
            Answer::Refused { because } => format!("refuse {}: {because}", message.seq),
            body => {
                let json = serde_json::to_value(body).unwrap();
                let name = json
                    .as_object()
                    .map_or(json.clone(), |one| one.keys().next().unwrap().as_str().into());
                format!("{} {}", name.as_str().unwrap(), message.seq)
            }
        },
        Effect::Start { parts, .. } => format!("start {}", parts.len()),
        Effect::Order(order) => format!("order {:?}", order.order),
        Effect::Kill => "kill".into(),
        Effect::Site { seq, ask } => format!("site {seq}: {ask}"),
        Effect::Exit => "exit".into(),
    };
    effects.iter().map(word).collect()
}

fn on(agent: &mut Agent, event: Event, now_ns: u64) -> Vec<String> {
    words(&agent.on(event, now_ns))
}

fn running() -> Agent {
    let mut agent = Agent::new(0);
    let lease = Request::Lease { ms: 10_000 };
    assert_eq!(on(&mut agent, message(1, lease), 0), ["pulse 1"]);
    assert_eq!(on(&mut agent, message(2, prepare(2)), 0), ["kill", "start 2"]);
    assert_eq!(on(&mut agent, Event::Started(vec![1, 2]), 0), ["prepared 2"]);
    agent
}

#[test]
fn a_session_from_its_lease_to_its_end() {
    let mut agent = running();
    let order = |order| Request::Order(Order { order, at_ns: None });
    let effects = on(&mut agent, message(3, order(LeaderCommand::Connect)), 0);
    assert_eq!(effects, ["order Connect", "taken 3"]);
    let message_of_process = Box::new(ProcessMessage::Progress(LoadProgress::default()));
    let report = Event::Report { process: 1, message: message_of_process };
    assert_eq!(on(&mut agent, report, 0), ["report 0"]);
    assert_eq!(on(&mut agent, message(4, Request::Abort), 0), ["kill", "aborted 4"]);
    assert_eq!(on(&mut agent, message(5, prepare(1)), 0), ["kill", "start 1"]);
    assert_eq!(on(&mut agent, Event::Started(vec![3]), 0), ["prepared 5"]);
    assert_eq!(on(&mut agent, Event::LeaderGone, 0), ["kill", "exit"]);
}

#[test]
fn without_a_message_until_the_lease_is_over_the_load_is_killed() {
    let mut agent = running();
    assert_eq!(agent.deadline_ns(), 10 * SECOND);
    assert_eq!(on(&mut agent, message(3, Request::Renew), 4 * SECOND), ["pulse 3"]);
    assert_eq!(agent.deadline_ns(), 14 * SECOND);
    assert_eq!(on(&mut agent, Event::Tick, 14 * SECOND - 1), [""; 0]);
    assert_eq!(on(&mut agent, Event::Tick, 14 * SECOND), ["kill", "exit"]);
    assert_eq!(on(&mut agent, message(4, prepare(1)), 15 * SECOND), [""; 0]);
}

#[test]
fn a_message_that_takes_longer_than_the_lease_renews_it_while_parts_of_it_come() {
    let mut agent = running();
    for now_ns in (1..=10).map(|nth| nth * 4 * SECOND) {
        agent.receives(now_ns);
        assert_eq!(on(&mut agent, Event::Tick, now_ns), [""; 0]);
    }
    assert_eq!(on(&mut agent, message(3, prepare(1)), 41 * SECOND), ["kill", "start 1"]);
    on(&mut agent, Event::Started(vec![3]), 41 * SECOND);
    agent.receives(44 * SECOND);
    // A late look at an earlier part.
    agent.receives(40 * SECOND);
    assert_eq!(on(&mut agent, Event::Tick, 54 * SECOND - 1), [""; 0]);
    assert_eq!(on(&mut agent, Event::Tick, 54 * SECOND), ["kill", "exit"]);
}

#[test]
fn an_order_that_comes_late_is_carried_out_and_reported() {
    let mut agent = running();
    let order = |at_ns| Request::Order(Order { order: LeaderCommand::OpenWindow, at_ns });
    for (seq, now_ns, expected) in [(3, 99, 0), (4, 100, 0), (5, 130, 30)] {
        let effects = agent.on(message(seq, order(Some(100))), now_ns);
        assert_eq!(words(&effects)[0], "order OpenWindow");
        let Effect::Send(taken) = &effects[1] else { panic!("{effects:?}") };
        assert_eq!(taken.body, Answer::Taken { late_by_ns: expected });
    }
}

#[test]
fn requests_that_do_not_fit_are_refused_with_the_reason() {
    let mut agent = Agent::new(0);
    let mut refused = |body, because: &str| {
        assert_eq!(on(&mut agent, message(7, body), 0), [format!("refuse 7: {because}")]);
    };
    for ms in [99, 600_001, u64::MAX] {
        let because = format!("expected a lease of 100 to 600000 ms, got one of {ms} ms");
        refused(Request::Lease { ms }, &because);
    }
    refused(prepare(0), "expected 1 to 64 parts of a load, got 0");
    refused(prepare(65), "expected 1 to 64 parts of a load, got 65");
    let order = Order { order: LeaderCommand::Connect, at_ns: None };
    refused(Request::Order(order), "there are no load processes to order");
    assert_eq!(agent.deadline_ns(), 10 * SECOND, "the usual lease");
}

#[test]
fn processes_that_cannot_be_started_leave_the_agent_ready_for_a_load() {
    let mut agent = Agent::new(0);
    on(&mut agent, message(2, prepare(1)), 0);
    let effects = on(&mut agent, Event::NotStarted("no file".into()), 0);
    assert_eq!(effects, ["refuse 2: no file"]);
    assert_eq!(on(&mut agent, message(3, prepare(1)), 0), ["kill", "start 1"]);
}

#[test]
fn the_lease_is_renewed_while_the_site_carries_out_a_request() {
    let mut agent = Agent::new(0);
    let start = Request::Site("start".into());
    assert_eq!(on(&mut agent, message(2, start), 0), ["site 2: \"start\""]);
    assert_eq!(on(&mut agent, message(3, Request::Renew), 8 * SECOND), ["pulse 3"]);
    let answer = |seq, answer| Event::OfSite { seq, answer };
    assert_eq!(on(&mut agent, answer(2, Ok("x".into())), 12 * SECOND), ["site 2"]);
    let refused = on(&mut agent, answer(3, Err("there is no such file".into())), 12 * SECOND);
    assert_eq!(refused, ["refuse 3: there is no such file"]);
    assert_eq!(on(&mut agent, Event::Tick, 18 * SECOND), ["kill", "exit"]);
}

/// The machine of an agent in a property: its load processes, whether the site runs something, and whether it
/// exited.
#[derive(Default)]
struct Simulated {
    children: usize,
    site: bool,
    exited: bool,
}

impl Simulated {
    /// Carries out effects; `starts` says whether processes can be started.
    fn carry_out(&mut self, agent: &mut Agent, effects: Vec<Effect>, starts: bool, now_ns: u64) {
        for effect in effects {
            assert!(!self.exited, "{effect:?} after the exit");
            match effect {
                Effect::Send(_) => {}
                Effect::Start { parts, .. } => {
                    assert_eq!(self.children, 0, "processes of an earlier load");
                    let event = if starts {
                        self.children = parts.len();
                        Event::Started(vec![1; parts.len()])
                    } else {
                        Event::NotStarted("no".into())
                    };
                    let next = agent.on(event, now_ns);
                    self.carry_out(agent, next, starts, now_ns);
                }
                Effect::Order(_) => assert!(self.children > 0, "an order for nobody"),
                Effect::Kill => (self.children, self.site) = (0, false),
                Effect::Site { .. } => self.site = true,
                Effect::Exit => {
                    assert_eq!(self.children, 0, "it exits with load processes");
                    assert!(!self.site, "it exits with contenders");
                    self.exited = true;
                }
            }
        }
    }
}

fn any_event() -> impl Strategy<Value = (u8, u64, bool, u64)> {
    (0..12_u8, 0..12_u64, any::<bool>(), 0..3 * SECOND)
}

fn event(which: u8, seq: u64) -> Event {
    let order = |order, at_ns| Request::Order(Order { order, at_ns });
    match which {
        0 | 1 => message(seq, Request::Lease { ms: 2_000 }),
        2 | 3 => message(seq, prepare(1 + seq as u32 % 3)),
        4 => message(seq, order(LeaderCommand::Connect, None)),
        5 => message(seq, order(LeaderCommand::OpenWindow, Some(seq))),
        6 => message(seq, Request::Abort),
        7 => message(seq, Request::Renew),
        8 => message(seq, Request::Clock),
        9 => message(seq, Request::Site(seq.into())),
        10 => Event::Ended { process: 0, how: "ended".into() },
        _ => Event::Tick,
    }
}

proptest! {
    /// Whatever a leader sends, nothing that it runs is left once it is gone, or once it is silent for the lease.
    #[test]
    fn every_history_ends_without_load_processes(
        events in prop::collection::vec(any_event(), 0..60),
        closes in any::<bool>(),
    ) {
        let (mut agent, mut machine, mut now_ns) = (Agent::new(0), Simulated::default(), 0);
        for (which, seq, starts, later_ns) in events {
            now_ns += later_ns;
            if seq % 3 == 0 {
                agent.receives(now_ns);
            }
            let effects = agent.on(event(which, seq), now_ns);
            machine.carry_out(&mut agent, effects, starts, now_ns);
        }
        if !closes {
            now_ns = now_ns.max(agent.deadline_ns());
        }
        let last = if closes { Event::LeaderGone } else { Event::Tick };
        let effects = agent.on(last, now_ns);
        machine.carry_out(&mut agent, effects, true, now_ns);
        prop_assert!(machine.exited && machine.children == 0 && !machine.site);
    }
}
