use super::*;
use regatta_proto::websocket::CloseCode;

fn named(name: Option<&str>) -> Option<Person> {
    name.map(|name| Person { name: Some(name.into()), ..Person::default() })
}

fn of_user(user: &str) -> Option<Person> {
    Some(Person { user: Some(user.into()), ..Person::default() })
}

#[test]
fn a_census_that_lists_all_knows_who_is_where() {
    let census = Arc::new(Census::new(true));
    let limits = Limits::default();
    let enter = |room: &str, person| {
        census.enter(&RoomName::of(room), person, &limits, Instant::now()).unwrap()
    };
    let (ann, bob) = (enter("red", of_user("ann")), enter("red", of_user("bob")));
    let (again, nobody) = (enter("blue", of_user("ann")), enter("", None));
    let users = |room: &str| {
        let people = census.people(&RoomName::of(room), 9);
        people.iter().map(|(_, one)| one.user().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((users("red"), users("")), (vec!["ann".into(), "bob".into()], vec![String::new()]));
    assert_eq!((census.users(), census.members(), census.occupied().len()), (3, 4, 3));
    assert!(census.occupied().contains(&(RoomName::of("red"), 2)));
    assert_eq!((bob.user(), nobody.user()), ("bob", ""));
    drop((ann, bob, again, nobody));
    assert!(census.occupied().is_empty() && census.users() == 0);
    let usual = Arc::new(Census::default());
    let _ann = usual.enter(&RoomName::LOBBY, of_user("ann"), &limits, Instant::now()).unwrap();
    assert!(usual.people(&RoomName::LOBBY, 9).is_empty() && !usual.knows_all());
}

#[test]
fn each_limit_refuses_members_until_one_leaves() {
    let census = Arc::new(Census::default());
    let limits = Limits { members: 4, members_of_room: 2, rooms: 2, ..Limits::default() };
    let enter = |room: &str| census.enter(&RoomName::of(room), None, &limits, Instant::now());
    let (a, b) = (enter("").unwrap(), enter("").unwrap());
    assert_eq!(enter("").unwrap_err(), Full::Room);
    let red = enter("red").unwrap();
    assert_eq!(enter("blue").unwrap_err(), Full::Rooms);
    let more = enter("red").unwrap();
    assert_eq!(enter("red").unwrap_err(), Full::Hub);
    drop((red, more));
    let blue = enter("blue").expect("red has no members left");
    assert_eq!(census.rooms().len(), 2);
    drop((a, b, blue));
    assert!(census.members.get() == 0 && census.rooms().is_empty());
    assert_eq!((census.entered.get(), census.refused.get()), (5, 3));
}

/// An order for this user, and for this member, if it is one.
fn order(user: &str, number: Option<usize>) -> Arc<Dismissal> {
    let (user, reason) = (user.to_owned(), String::new());
    let (spared, code) = (Vec::new(), CloseCode(3503));
    Arc::new(Dismissal { user, number, spared, code, reason, only_leaves: false })
}

#[test]
fn an_order_is_noted_for_each_member_that_it_is_for_until_it_leaves() {
    let census = Arc::new(Census::new(true));
    let (limits, now) = (Limits::default(), Instant::now());
    let enter =
        |room: &str, user| census.enter(&RoomName::of(room), of_user(user), &limits, now).unwrap();
    let (ann, mut bob, again) = (enter("red", "ann"), enter("red", "bob"), enter("blue", "ann"));
    let of_ann = order("ann", None);
    let mut rooms = census.dismiss(&of_ann, None);
    rooms.sort_by_key(|room| room.as_str().to_owned());
    assert_eq!(rooms, [RoomName::of("blue"), RoomName::of("red")]);
    // From the order on, before any connection is closed.
    assert_eq!((census.members(), census.users()), (1, 1));
    assert_eq!(census.occupied(), [(RoomName::of("red"), 1)]);
    assert_eq!((ann.others(), bob.others(), again.others()), (1, 0, 0));
    assert_eq!((ann.dismissal(), bob.dismissal()), (Some(Arc::clone(&of_ann)), None));
    let later = enter("red", "ann");
    assert_eq!((later.dismissal(), again.dismissal()), (None, Some(of_ann)));
    let of_bob = order("", Some(bob.number()));
    assert_eq!(census.dismiss(&of_bob, Some(&RoomName::of("blue"))), []);
    assert_eq!(census.dismiss(&of_bob, Some(&RoomName::of("red"))), [RoomName::of("red")]);
    // Before it is dropped, it is neither listed nor counted.
    bob.leave();
    assert_eq!((bob.others(), ann.others(), bob.dismissal()), (1, 1, None));
    assert_eq!((census.people(&RoomName::of("red"), 9).len(), census.members()), (1, 1));
    drop((ann, bob, again));
    assert_eq!((later.others(), census.members()), (0, 1), "nobody leaves twice");
    drop(later);
    assert!(census.occupied().is_empty() && census.members() == 0);
    assert!(census.dismissed().is_empty());
}

#[test]
fn the_place_of_a_dismissed_member_is_free_at_once() {
    let census = Arc::new(Census::new(true));
    let limits = Limits { members: 1, members_of_room: 1, rooms: 1, ..Limits::default() };
    let enter = |room: &str, user| {
        census.enter(&RoomName::of(room), of_user(user), &limits, Instant::now())
    };
    let ann = enter("red", "ann").unwrap();
    assert_eq!(enter("red", "bob").unwrap_err(), Full::Hub);
    census.dismiss(&order("ann", None), None);
    let bob = enter("blue", "bob").unwrap();
    drop(ann);
    assert_eq!((census.members(), bob.others(), census.occupied().len()), (1, 0, 1));
}

#[test]
fn the_rate_of_a_room_is_that_of_the_newest_join_for_all_of_its_members() {
    let census = Arc::new(Census::default());
    let now = Instant::now();
    let enter = |rate| {
        let limits = Limits { broadcasts_of_room: NonZeroU32::new(rate), ..Limits::default() };
        census.enter(&RoomName::LOBBY, None, &limits, now).unwrap()
    };
    let old = enter(1000);
    let new = enter(2);
    assert_eq!(
        [&old, &old, &old, &new].map(|one| one.may_broadcast(now)),
        [true, true, false, false]
    );
    let _any = enter(0);
    assert!(old.may_broadcast(now) && new.may_broadcast(now));
}

#[test]
fn a_room_lists_the_names_of_its_members() {
    let census = Arc::new(Census::default());
    let limits = Limits::default();
    let enter = |room: &str, name| {
        census.enter(&RoomName::of(room), named(name), &limits, Instant::now()).unwrap()
    };
    let (b, silent, a) = (enter("", Some("b")), enter("", None), enter("", Some("a")));
    let other = enter("red", Some("c"));
    let names = |one: &Presence, most| {
        let (members, names) = one.here(most);
        (members, names.join(" "))
    };
    assert_eq!(names(&a, 9), (3, "b a".into()));
    assert_eq!(names(&silent, 1), (3, "b".into()));
    drop(b);
    assert_eq!(names(&a, 9), (2, "a".into()));
    assert_eq!(
        (names(&other, 9), other.note(Change::Joined).name, silent.note(Change::Left).name),
        ((1, "c".into()), Some("c".into()), None)
    );
}

#[test]
fn metrics_are_families_with_help_and_type() {
    let census = Arc::new(Census::default());
    let _in = census.enter(&RoomName::LOBBY, None, &Limits::default(), Instant::now()).unwrap();
    census.deliveries.add(7);
    census.denies(Denied::OtherRoom);
    census.denies_key();
    let text = census.metrics(&PolicyCounts::default(), &Memory::new(9));
    for line in [
        "# TYPE regatta_hub_members gauge",
        "regatta_hub_members 1",
        "regatta_hub_rooms 1",
        "regatta_hub_members_total 1",
        "# TYPE regatta_hub_deliveries_total counter",
        "regatta_hub_deliveries_total 7",
        "regatta_hub_slow_total{policy=\"skip\"} 0",
        "regatta_hub_memory_bytes 0",
        "regatta_hub_memory_limit_bytes 9",
        "regatta_hub_memory_closed_total 0",
        "regatta_hub_denied_total{because=\"origin\"} 0",
        "regatta_hub_denied_total{because=\"other_room\"} 1",
        "regatta_hub_denied_total{because=\"api_key\"} 1",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} in\n{text}");
    }
}

#[test]
fn processes_share_counters_but_not_rooms() {
    let all: Vec<Counter> = (0..13).map(|_| Counter::default()).collect();
    let process = || {
        let mut all = all.iter().cloned();
        Arc::new(Census::shared(|| all.next().ok_or("too many are made")).unwrap())
    };
    let (one, other) = (process(), process());
    let limits = Limits { members: 2, ..Limits::default() };
    let _lobby = one.enter(&RoomName::LOBBY, None, &limits, Instant::now()).unwrap();
    let red = other.enter(&RoomName::of("red"), None, &limits, Instant::now()).unwrap();
    assert_eq!(one.enter(&RoomName::LOBBY, None, &limits, Instant::now()).unwrap_err(), Full::Hub);
    drop(red);
    let _lobby = one.enter(&RoomName::LOBBY, None, &limits, Instant::now()).unwrap();
    other.deliveries.add(7);
    let text = one.metrics(&PolicyCounts::default(), &Memory::new(9));
    for line in [
        "regatta_hub_members 2",
        "regatta_hub_members_total 3",
        "regatta_hub_refused_total 1",
        "regatta_hub_deliveries_total 7",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} in\n{text}");
    }
    // The held memory is that of one process.
    assert!(!text.contains("regatta_hub_rooms") && !text.contains("memory_bytes"), "{text}");
}

#[test]
fn a_process_learns_of_other_members_from_notes() {
    let entered = Counter::default();
    let process = || {
        // All counters are the same one: the others do not matter here.
        Arc::new(Census::shared(|| Ok::<_, ()>(entered.clone())).unwrap())
    };
    let (one, other) = (process(), process());
    let (red, limits) = (RoomName::of("red"), Limits::default());
    let a = one.enter(&red, named(Some("a")), &limits, Instant::now()).unwrap();
    assert_eq!(other.record_remote(&red, &a.note(Change::Joined)), Some(1));
    let b = other.enter(&red, named(Some("b")), &limits, Instant::now()).unwrap();
    assert_eq!(b.here(9), (2, vec!["a".into(), "b".into()]), "in the order of arrival");
    assert_eq!(one.record_remote(&red, &b.note(Change::Joined)), Some(2));
    let gone = a.note(Change::Left);
    drop(a);
    assert_eq!(other.record_remote(&red, &gone), Some(1));
    assert_eq!(b.here(9), (1, vec!["b".into()]));
    let gone = b.note(Change::Left);
    drop(b);
    assert_eq!(one.record_remote(&red, &gone), Some(0));
    assert!(one.rooms().is_empty() && other.rooms().is_empty());
    let shared = Arc::new(Census::default());
    assert_eq!(shared.record_remote(&red, &gone), None, "its threads share all rooms");
}
