//! Which server the link of a hub connects to, and with which password.

use regatta_engine::{Conn, Core, Limits, Next, Now, Sessions};
use regatta_service::hub::{Broker, BrokerLink, Hub, Place, Settings};
use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

/// What a hub has printed.
static PRINTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct World {
    core: Core<Sessions<Hub, BrokerLink>>,
    now: Now,
}

impl World {
    fn new(broker: Broker) -> World {
        let log = |line: &str| PRINTED.lock().unwrap().push(line.to_owned());
        let hub = Hub::new(Settings { broker: Some(Arc::new(broker)), log, ..Settings::default() });
        let now = Now { instant: Instant::now(), unix_s: 1_000_000_000 };
        let sessions = Sessions::with_uplink(hub.clone(), hub.broker_link());
        World { core: Core::new(sessions, Limits::default(), now), now }
    }

    fn passes(&mut self, time: Duration) {
        self.now.instant += time;
        self.core.turn(self.now);
        if self.core.due().is_some_and(|due| due <= self.now.instant) {
            self.core.tick(&());
        }
    }

    fn loses(&mut self, conn: Conn) {
        self.core.failed(conn);
        while self.core.has(conn) && self.core.next(conn, &()) != Next::Close {}
        self.core.closed(conn);
    }
}

struct Fixed(Result<Vec<SocketAddr>, String>);

impl Place for Fixed {
    fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        self.0.clone()
    }
}

fn broker(name: &str, place: impl Place + 'static) -> Broker {
    Broker {
        name: name.to_owned(),
        place: Arc::new(place),
        user: None,
        password: None,
        tls: None,
        prefix: "x".to_owned(),
        is_in_cluster: false,
        node: 1,
        secret: 2,
        health: Arc::default(),
    }
}

fn printed(name: &str) -> Vec<String> {
    let start = format!("regatta: broker {name}: ");
    let all = PRINTED.lock().unwrap();
    all.iter().filter_map(|line| line.strip_prefix(&start)).map(str::to_owned).collect()
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn each_address_of_a_name_is_tried_in_turn() {
    let all: Vec<SocketAddr> =
        ["[::1]:6379", "127.0.0.1:6379"].map(|at| at.parse().unwrap()).into();
    let mut world = World::new(broker("two", Fixed(Ok(all.clone()))));
    world.passes(SECOND);
    for round in 0..3 {
        for address in &all {
            let (conn, to) = world.core.next_connect().expect("it connects at once");
            assert_eq!(to, *address, "{round}");
            if round == 2 && to == all[1] {
                world.core.connected(conn);
                assert!(world.core.output(conn).starts_with(b"*4\r\n$5\r\nHELLO"));
            } else {
                world.loses(conn);
            }
        }
        assert!(world.core.next_connect().is_none(), "there is a pause");
        world.passes(3 * SECOND);
    }
    let why = "no connection: it does not accept connections; the hub tries again";
    assert_eq!(printed("two")[..1], [why], "the same reason once");
}

#[test]
fn one_address_that_does_not_answer_does_not_hide_the_other() {
    let all = ["[::1]:6379", "127.0.0.1:6379"].map(|at| at.parse().unwrap()).into();
    let mut world = World::new(broker("mute", Fixed(Ok(all))));
    world.passes(SECOND);
    world.core.next_connect().expect("the first");
    world.passes(3 * SECOND);
    let (conn, to) = world.core.next_connect().expect("the second");
    assert!(to.is_ipv4());
    world.core.connected(conn);
    world.core.received(conn, &mut b"-LOADING Redis is loading\r\n".to_vec());
    assert_eq!(
        printed("mute"),
        [
            "no connection: [::1]:6379: it does not accept connections; 127.0.0.1:6379: it says: LOADING Redis is \
          loading; the hub tries again"
        ]
    );
}

#[test]
fn a_place_without_an_address_says_why() {
    let mut world = World::new(broker("none", Fixed(Err("its name cannot be resolved".into()))));
    (0..9).for_each(|_| world.passes(SECOND));
    assert!(world.core.next_connect().is_none());
    assert_eq!(
        printed("none"),
        ["no connection: its name cannot be resolved; the hub tries again"]
    );
}

#[test]
fn each_connection_gets_the_newest_password() {
    let count = AtomicUsize::new(0);
    let password = move || Arc::new(format!("password-{}", count.fetch_add(1, SeqCst)));
    let place = Fixed(Ok(vec!["127.0.0.1:6379".parse().unwrap()]));
    let broker = Broker { password: Some(Arc::new(password)), ..broker("login", place) };
    let mut world = World::new(broker);
    for round in 0..3 {
        world.passes(3 * SECOND);
        let (conn, _) = world.core.next_connect().expect("it connects");
        world.core.connected(conn);
        let hello = String::from_utf8(world.core.output(conn).to_vec()).unwrap();
        assert!(hello.contains(&format!("\r\ndefault\r\n$10\r\npassword-{round}\r\n")), "{hello}");
        world.loses(conn);
    }
}
