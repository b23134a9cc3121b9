use super::*;
use crate::cluster::view::Range;

fn at(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], port))
}

/// A view in which these nodes own these slots. The name of a node is its port.
fn view(epoch: u64, ranges: &[(u16, u16, u16)]) -> View {
    let ranges = ranges.iter().map(|(first, last, port)| Range {
        first: *first,
        last: *last,
        id: port.to_string().into_bytes(),
        address: at(*port),
    });
    let nodes = || 1_u16..6;
    View {
        is_ok: true,
        epoch,
        ranges: ranges.collect(),
        ids: nodes().map(|port| port.to_string().into_bytes()).collect(),
        addresses: nodes().map(at).collect(),
        masters: nodes().map(at).collect(),
        ..View::default()
    }
}

/// Asks, and answers with this.
fn turn(topology: &mut Topology, now: Instant, answer: Result<View, String>) -> Option<Change> {
    topology.ask(now).expect("it is time to ask");
    topology.answered(answer, now, 0.5)
}

fn owners(change: &Change, slots: &[u16]) -> Vec<String> {
    slots.iter().map(|slot| change.nodes[change.cluster.node_of(*slot)].0.clone()).collect()
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn one_question_is_in_flight() {
    let (mut topology, now) = (Topology::new(vec![at(1), at(2)]), Instant::now());
    assert_eq!(topology.ask(now), Some(at(1)));
    topology.want(None);
    assert_eq!((topology.ask(now + SECOND), topology.due()), (None, None));
    let change = topology.answered(Ok(view(1, &[(0, 9, 3)])), now, 0.5).unwrap();
    assert_eq!(owners(&change, &[9]), ["10.0.0.1:3"]);
    // A reason came meanwhile; the questions are still apart.
    assert_eq!(topology.ask(now), None);
    assert!(topology.ask(now + PAUSE).is_some());
}

#[test]
fn a_view_of_an_earlier_epoch_is_not_adopted() {
    let (mut topology, now) = (Topology::new(vec![at(1)]), Instant::now());
    turn(&mut topology, now, Ok(view(5, &[(0, 16383, 1)]))).unwrap();
    topology.want(None);
    let old = Ok(view(4, &[(0, 16383, 2)]));
    assert_eq!(turn(&mut topology, now + SECOND, old), None);
    // Another node is asked soon.
    let new = Ok(view(5, &[(0, 16383, 3)]));
    assert_eq!(owners(&turn(&mut topology, now + 2 * SECOND, new).unwrap(), &[5]), ["10.0.0.1:3"]);
}

#[test]
fn a_view_of_a_node_without_a_majority_counts_only_if_all_say_so() {
    let (mut topology, now) = (Topology::new(vec![at(1), at(2)]), Instant::now());
    let down = |epoch, port| Ok(View { is_ok: false, ..view(epoch, &[(0, 16383, port)]) });
    assert_eq!(turn(&mut topology, now, down(7, 1)), None);
    let change = turn(&mut topology, now + SECOND, down(6, 2)).unwrap();
    assert_eq!(owners(&change, &[0]), ["10.0.0.1:1"], "the highest epoch");
}

#[test]
fn the_node_that_knows_best_is_asked_first() {
    let (mut topology, now) = (Topology::new(vec![at(1)]), Instant::now());
    turn(&mut topology, now, Ok(view(1, &[(0, 16383, 1)]))).unwrap();
    topology.want(Some(at(4)));
    topology.want(None);
    // Nothing is sent to an address that no view contains.
    topology.want(Some(at(99)));
    assert_eq!(topology.ask(now + SECOND), Some(at(4)));
}

#[test]
fn pauses_double_while_nothing_changes() {
    let (mut topology, mut now) = (Topology::new(vec![at(1)]), Instant::now());
    turn(&mut topology, now, Ok(view(1, &[(0, 16383, 1)]))).unwrap();
    let mut pauses = Vec::new();
    for _ in 0..6 {
        topology.want(None);
        let due = topology.due().unwrap();
        pauses.push((due - now).as_millis());
        now = due;
        assert_eq!(turn(&mut topology, now, Ok(view(1, &[(0, 16383, 1)]))), None);
    }
    assert_eq!(pauses, [100, 100, 200, 400, 800, 1000]);
    assert_eq!(topology.due(), Some(now + INTERVAL), "without a reason");
}

#[test]
fn all_nodes_are_asked_in_turn() {
    let (mut topology, mut now) = (Topology::new(vec![at(1), at(9)]), Instant::now());
    turn(&mut topology, now, Ok(view(1, &[(0, 16383, 1)]))).unwrap();
    let mut asked = BTreeSet::new();
    for _ in 0..6 {
        topology.want(None);
        now += 2 * SECOND;
        asked.insert(topology.ask(now).unwrap());
        assert_eq!(topology.answered(Err("it is down".into()), now, 0.5), None);
    }
    assert_eq!(asked, (1..6).chain([9]).map(at).collect(), "also the seeds");
    assert_eq!(topology.why(), "it is down");
}

#[test]
fn a_master_keeps_its_place() {
    let (mut topology, now) = (Topology::new(vec![at(1)]), Instant::now());
    let one =
        turn(&mut topology, now, Ok(view(1, &[(0, 9, 1), (10, 19, 2), (20, 29, 3)]))).unwrap();
    topology.want(None);
    let two = turn(&mut topology, now + SECOND, Ok(view(2, &[(0, 9, 4), (10, 29, 3)]))).unwrap();
    assert_eq!(one.cluster.node_of(20), two.cluster.node_of(20));
    assert_eq!(owners(&two, &[0, 10, 20]), ["10.0.0.1:4", "10.0.0.1:3", "10.0.0.1:3"]);
    assert_eq!(two.nodes.iter().filter(|(name, _)| !name.is_empty()).count(), 2);
    assert_eq!((two.nodes.len(), &two.nodes[PLACES - 1]), (PLACES, &nobody()));
}

#[test]
fn a_node_that_gets_its_first_slot_keeps_its_place() {
    let (mut topology, now) = (Topology::new(vec![at(1)]), Instant::now());
    assert_eq!(topology.admit(at(2)), None, "nothing is known yet");
    turn(&mut topology, now, Ok(view(1, &[(0, 16383, 1)]))).unwrap();
    let guest = topology.admit(at(2)).unwrap();
    let place = guest.nodes.iter().position(|(_, address)| *address == at(2)).unwrap();
    assert!(!guest.cluster.order().contains(&place));
    assert_eq!(topology.admit(at(2)), None, "it has a place");
    assert_eq!(topology.admit(at(99)), None, "no view contains it");
    topology.want(None);
    let change = turn(&mut topology, now + SECOND, Ok(view(1, &[(0, 9, 2), (10, 16383, 1)])));
    assert_eq!(change.unwrap().cluster.node_of(0), place);
}

#[test]
fn the_number_of_guests_has_a_limit() {
    let (mut topology, now) = (Topology::new(vec![at(1)]), Instant::now());
    let all = View { masters: (1..60).map(at).collect(), ..view(1, &[(0, 16383, 1)]) };
    turn(&mut topology, now, Ok(all)).unwrap();
    let last = (2..60).filter_map(|port| topology.admit(at(port))).last().unwrap();
    let used: Vec<_> = last.nodes.iter().filter(|(name, _)| !name.is_empty()).collect();
    assert_eq!(used.len(), 1 + MAX_GUESTS);
    assert!(used.iter().any(|(_, address)| *address == at(59)));
}

#[test]
fn a_view_of_another_cluster_is_not_adopted() {
    let (mut topology, now) = (Topology::new(vec![at(1)]), Instant::now());
    turn(&mut topology, now, Ok(view(5, &[(0, 16383, 1)]))).unwrap();
    topology.take_news();
    // It has taken over the address of a replica, and its epoch is higher.
    let ids = ["x", "y", "5"].map(|id| id.as_bytes().to_vec());
    let other = View { ids: ids.into(), ..view(14, &[(0, 16383, 9)]) };
    for second in 1..9 {
        topology.want(Some(at(3)));
        let answer = Ok(other.clone());
        assert_eq!(turn(&mut topology, now + second * SECOND, answer), None);
        assert_eq!(topology.why(), "node 10.0.0.1:3: it is of another cluster");
    }
    let news = topology.take_news();
    assert!(
        matches!(&news[..], [News::Foreign(from), News::Unknown(_)] if *from == at(3)),
        "{news:?}"
    );
    topology.want(None);
    let own = view(6, &[(0, 16383, 2)]);
    assert!(turn(&mut topology, now + 20 * SECOND, Ok(own)).is_some(), "its own cluster counts");
    assert_eq!(topology.take_news(), [News::Known { epoch: 6, masters: 1 }]);
}

#[test]
fn a_guest_that_the_cluster_no_longer_reports_is_dropped() {
    let (mut topology, now) = (Topology::new(vec![at(1)]), Instant::now());
    let own = view(1, &[(0, 16383, 1)]);
    turn(&mut topology, now, Ok(own.clone())).unwrap();
    for port in [2, 3] {
        topology.admit(at(port)).unwrap();
    }
    // Node 3 is down or a replica now, or was forgotten.
    topology.want(None);
    let masters = own.masters.iter().copied().filter(|node| *node != at(3)).collect();
    let change = turn(&mut topology, now + SECOND, Ok(View { masters, ..own.clone() })).unwrap();
    let named: Vec<&str> =
        change.nodes.iter().map(|(name, _)| &name[..]).filter(|name| !name.is_empty()).collect();
    assert_eq!(named, ["10.0.0.1:1", "10.0.0.1:2"]);
    assert_eq!(topology.admit(at(3)), None, "no request is sent to it");
    let (change, has_all) = topology.admit_all();
    assert!(
        has_all && change.unwrap().nodes.iter().filter(|(name, _)| !name.is_empty()).count() == 4
    );
}

#[test]
fn a_view_that_a_command_needs_is_asked_for_after_the_command() {
    let (mut topology, now) = (Topology::new(vec![at(1)]), Instant::now());
    let own = || Ok(view(1, &[(0, 99, 1), (100, 16383, 2)]));
    turn(&mut topology, now, own()).unwrap();
    topology.want(None);
    topology.ask(now + SECOND).unwrap();
    // One is in flight already; it is not the right one.
    let needed = topology.want_fresh();
    assert_eq!((needed, topology.want_fresh()), (3, 3), "one question for all that wait");
    topology.answered(own(), now + SECOND, 0.5);
    assert_eq!(topology.confirmed(), 2);
    assert_eq!(topology.due(), Some(now + SECOND + FRESH_PAUSE), "the pause is short");
    let asked = topology.ask(now + 2 * SECOND).unwrap();
    assert!([at(1), at(2)].contains(&asked), "an owner of slots knows best");
    topology.answered(Err("it is down".into()), now + 2 * SECOND, 0.5);
    assert_eq!((topology.confirmed(), topology.due()), (2, Some(now + 2 * SECOND + FRESH_PAUSE)));
    topology.ask(now + 3 * SECOND).unwrap();
    topology.answered(own(), now + 3 * SECOND, 0.5);
    assert!(topology.confirmed() >= needed);
    assert_eq!(topology.due(), Some(now + 3 * SECOND + INTERVAL), "nobody needs another one");
}

#[test]
fn commands_do_not_hurry_questions_that_no_node_answers() {
    let (mut topology, mut now) = (Topology::new(vec![at(1)]), Instant::now());
    turn(&mut topology, now, Ok(view(1, &[(0, 16383, 1)]))).unwrap();
    topology.want_fresh();
    let (start, mut questions) = (now, 0);
    while now < start + 10 * SECOND {
        now = topology.due().unwrap().max(now);
        turn(&mut topology, now, Err("it is down".into()));
        questions += 1;
    }
    // Five candidates each second.
    assert!(questions < 70, "{questions}");
    assert!(topology.have_all_failed() && !topology.have_all_failed());
}
