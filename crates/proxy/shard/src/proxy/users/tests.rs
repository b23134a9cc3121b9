//! Logins over connections to nodes that a test plays itself.

use crate::{Auth, Nodes, Proxy, Settings, Shared};
use regatta_engine::{Conn, Core, Limits, Next, Now};
use regatta_keyspace::map::{Map, Slots};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

const WRONG: &str = "-WRONGPASS invalid\r\n";

/// The core of a proxy with `--auth nodes`, without sockets.
struct Bench {
    core: Core<Proxy>,
    shared: Arc<Shared>,
}

fn settings(nodes: usize, first_port: u16) -> Settings {
    let address = |node: usize| ([127, 0, 0, 1], first_port + node as u16).into();
    let nodes = Nodes::new((0..nodes).map(|node| (format!("n{node}"), address(node))));
    let mut settings = Settings::new(Map::new(1, Slots::even(nodes.count()).unwrap()), nodes);
    settings.auth = Auth { of_nodes: true, ..Auth::default() };
    settings.hot_keys = true;
    settings
}

impl Bench {
    fn new(nodes: usize) -> Self {
        let now = Now { instant: Instant::now(), unix_s: 1_800_000_000 };
        let shared = Arc::new(Shared::new(settings(nodes, 1)));
        let core = Core::new(Proxy::new(Arc::clone(&shared), 1), Limits::default(), now);
        Bench { core, shared }
    }

    fn clients(&mut self, count: usize) -> Vec<Conn> {
        (0..count).map(|_| self.core.accept()).collect()
    }

    /// Bytes arrive from a client or a node.
    fn from(&mut self, conn: Conn, bytes: &str) {
        self.core.received(conn, bytes.to_owned().into_bytes().as_mut_slice());
    }

    /// Returns what is sent to a client or a node. It ends with `FIN` if the proxy closes the connection.
    fn to(&mut self, conn: Conn) -> String {
        let mut sent = String::new();
        loop {
            match self.core.next(conn, &()) {
                Next::Write { .. } => {
                    let output = self.core.output(conn).to_vec();
                    sent.push_str(std::str::from_utf8(&output).unwrap());
                    self.core.wrote(conn, output.len());
                }
                Next::Wait => return sent,
                Next::ShutdownWrite | Next::Close => {
                    self.core.closed(conn);
                    return sent + "FIN";
                }
            }
        }
    }

    /// Opens the next connection to a node, which is at this port.
    fn open(&mut self, port: u16) -> Conn {
        let (conn, to) = self.core.next_connect().expect("a connection");
        assert_eq!(to.port(), port);
        self.core.connected(conn);
        conn
    }

    /// A connection is lost.
    fn lose(&mut self, conn: Conn) {
        self.core.failed(conn);
        assert!(self.to(conn).ends_with("FIN"));
    }

    fn after(&mut self, time: Duration) {
        let now = self.core.now();
        self.core.turn(Now { instant: now.instant + time, ..now });
        self.core.tick(&());
    }

    /// Lets clients send AUTH, each with its number as the password.
    fn guess(&mut self, clients: &[Conn]) {
        for (number, client) in clients.iter().enumerate() {
            self.from(*client, &format!("AUTH ann {number}\r\n"));
        }
    }

    /// Returns which of these passwords are sent to a node.
    fn tried(&mut self, conn: Conn) -> Vec<usize> {
        let sent = self.to(conn);
        let password = |auth: &str| auth.trim_end().rsplit_once("\r\n").unwrap().1.parse().unwrap();
        sent.split("*3\r\n$4\r\nAUTH\r\n").skip(1).map(password).collect()
    }

    /// Logs a client in as ann, over a connection that is open.
    fn log_in(&mut self, client: Conn, login: Conn) {
        self.from(client, "AUTH ann right\r\n");
        assert!(self.to(login).ends_with("AUTH\r\n$3\r\nann\r\n$5\r\nright\r\n"));
        self.from(login, "+OK\r\n");
        assert_eq!(self.to(client), "+OK\r\n");
    }

    fn samples(&self) -> String {
        let page = self.shared.hot_keys.json(self.core.now().instant, 0);
        let (_, rest) = page.split_once("\"samples\":").unwrap();
        rest.split_once(',').unwrap().0.to_owned()
    }
}

#[test]
fn few_logins_are_in_flight_and_the_others_follow_in_their_order() {
    let mut bench = Bench::new(1);
    let clients = bench.clients(30);
    bench.guess(&clients);
    let login = bench.open(1);
    assert_eq!(bench.tried(login), (0..8).collect::<Vec<_>>());
    bench.from(login, &WRONG.repeat(3));
    assert_eq!(bench.tried(login), [8, 9, 10]);
    assert_eq!(clients[..4].iter().map(|one| bench.to(*one)).collect::<String>(), WRONG.repeat(3));
    // Who has left needs no place.
    bench.lose(clients[12]);
    bench.from(login, &WRONG.repeat(8));
    assert_eq!(bench.tried(login), [11, 13, 14, 15, 16, 17, 18, 19]);
    bench.from(login, &["+OK\r\n", &WRONG.repeat(7)].concat());
    assert_eq!(bench.tried(login), (20..28).collect::<Vec<_>>());
    assert_eq!(bench.to(clients[11]), "+OK\r\n");
    // A client that comes now is the last one.
    bench.from(clients[0], "AUTH ann 77\r\n");
    bench.from(login, &WRONG.repeat(8));
    assert_eq!(bench.tried(login), [28, 29, 77]);
    bench.from(login, &WRONG.repeat(3));
    assert_eq!(bench.tried(login), [0; 0]);
    assert_eq!(bench.to(clients[29]), WRONG);
}

#[test]
fn clients_that_wait_to_be_tried_continue_when_the_connection_is_lost() {
    let mut bench = Bench::new(1);
    let clients = bench.clients(20);
    bench.guess(&clients);
    let login = bench.open(1);
    bench.lose(login);
    for client in &clients[..8] {
        assert!(bench.to(*client).starts_with("-SHARDDOWN node n0: the node closed"));
    }
    let login = bench.open(1);
    assert_eq!(bench.tried(login), (8..16).collect::<Vec<_>>());
    bench.lose(login);
    // This one cannot be opened: the node is down.
    let (conn, _) = bench.core.next_connect().unwrap();
    bench.lose(conn);
    for client in &clients[16..] {
        assert!(bench.to(*client).starts_with("-SHARDDOWN node n0: cannot connect"));
    }
    assert!(bench.core.next_connect().is_none());
}

#[test]
fn clients_that_wait_to_be_tried_are_tried_at_the_node_of_a_reload() {
    let mut bench = Bench::new(1);
    let clients = bench.clients(12);
    bench.guess(&clients);
    let before = bench.open(1);
    assert_eq!(bench.tried(before).len(), 8);
    bench.shared.reload(settings(1, 11));
    bench.after(Duration::from_millis(100));
    let after = bench.open(11);
    assert_eq!(bench.tried(after), [8, 9, 10, 11]);
    bench.from(before, &WRONG.repeat(8));
    assert_eq!(bench.to(before), "FIN");
    assert_eq!(bench.to(clients[7]), WRONG);
    bench.from(after, &WRONG.repeat(4));
    assert_eq!(bench.to(clients[11]), WRONG);
}

/// Their turn comes, but another node is asked now.
#[test]
fn clients_that_wait_to_be_tried_do_not_need_those_before_them() {
    let mut bench = Bench::new(2);
    let all = bench.clients(40);
    // Those with even numbers are tried at the first node.
    let clients: Vec<Conn> = all.into_iter().skip(1).step_by(2).collect();
    bench.guess(&clients);
    let login = bench.open(1);
    assert_eq!(bench.tried(login).len(), 8);
    let mut other = bench.clients(2);
    bench.from(other.remove(1), "PING\r\n");
    let (shared, to) = bench.core.next_connect().unwrap();
    assert_eq!(to.port(), 1);
    bench.lose(shared);
    bench.from(login, &WRONG.repeat(8));
    let login = bench.open(2);
    assert_eq!(bench.tried(login), (8..16).collect::<Vec<_>>());
    bench.after(Duration::from_millis(100));
    bench.from(login, &WRONG.repeat(8));
    assert_eq!(bench.tried(login), (16..20).collect::<Vec<_>>());
}

#[test]
fn a_connection_that_has_failed_tries_nobody() {
    let mut bench = Bench::new(1);
    let clients = bench.clients(2);
    bench.guess(&clients[..1]);
    let login = bench.open(1);
    bench.from(login, WRONG);
    bench.core.failed(login);
    // The proxy does not know it yet.
    bench.from(clients[1], "AUTH ann 7\r\n");
    let other = bench.open(1);
    assert_eq!(bench.tried(other), [7]);
    assert!(bench.to(login).ends_with("FIN"));
    bench.from(other, "+OK\r\n");
    assert_eq!(bench.to(clients[1]), "+OK\r\n");
}

#[test]
fn a_connection_that_tries_nobody_is_closed_after_a_minute() {
    let mut bench = Bench::new(1);
    let client = bench.clients(1)[0];
    bench.guess(&[client]);
    let login = bench.open(1);
    bench.from(login, WRONG);
    bench.after(Duration::from_millis(100));
    bench.after(Duration::from_secs(59));
    assert!(bench.core.due().unwrap() <= bench.core.now().instant + Duration::from_secs(1));
    assert!(!bench.to(login).ends_with("FIN"));
    bench.guess(&[client]);
    assert_eq!(bench.tried(login), [0]);
    bench.from(login, WRONG);
    bench.after(Duration::from_secs(59));
    assert!(!bench.to(login).ends_with("FIN"), "it was used");
    bench.after(Duration::from_secs(1));
    assert!(bench.to(login).ends_with("FIN"));
    bench.guess(&[client]);
    let login = bench.open(1);
    assert_eq!(bench.tried(login), [0]);
}

#[test]
fn a_node_that_loses_a_connection_while_it_tries_a_user_is_asked_again_after_50_ms() {
    let mut bench = Bench::new(1);
    let client = bench.clients(1)[0];
    bench.guess(&[client]);
    let login = bench.open(1);
    bench.from(login, WRONG);
    let (_, _) = (bench.to(login), bench.to(client));
    bench.log_in(client, login);
    bench.from(client, "GET a\r\n");
    let shared = bench.open(1);
    assert!(bench.to(shared).contains("AUTH"));
    bench.lose(shared);
    let lost = "-SHARDDOWN node n0: the node closed the connection before it replied\r\n";
    assert_eq!(bench.to(client), lost);
    bench.after(Duration::from_millis(49));
    bench.from(client, "GET a\r\n");
    assert_eq!(bench.to(client), lost);
    assert!(bench.core.next_connect().is_none(), "it is asked again too early");
    bench.after(Duration::from_millis(1));
    bench.from(client, "GET a\r\n");
    let shared = bench.open(1);
    bench.from(shared, "+OK\r\n-NOPERM\r\n");
    assert!(bench.to(shared).contains("GET"));
    assert_eq!(bench.shared.counts.lost.get(), 1);
}

#[test]
fn a_refusal_of_a_preparation_is_no_lost_connection() {
    let mut bench = Bench::new(1);
    let client = bench.clients(1)[0];
    for reply in ["-ERR DB index is out of range\r\n", "-NOPERM no select\r\n"] {
        bench.from(client, "SELECT 99\r\n");
        let shared = bench.open(1);
        assert!(bench.to(shared).contains("SELECT"));
        bench.from(shared, reply);
        assert_eq!(bench.to(client), reply);
        assert!(bench.to(shared).ends_with("FIN"));
    }
    bench.guess(&[client]);
    let login = bench.open(1);
    bench.from(login, "+OK\r\n");
    let (_, _) = (bench.to(login), bench.to(client));
    bench.from(client, "GET a\r\n");
    let shared = bench.open(1);
    assert!(bench.to(shared).contains("AUTH"));
    bench.from(shared, WRONG);
    assert_eq!(bench.to(client), "-WRONGPASS node n0: invalid\r\n");
    assert_eq!(bench.shared.counts.lost.get(), 0);
    bench.lose(login);
    assert_eq!(bench.shared.counts.lost.get(), 0, "it was not in use");
}

#[test]
fn keys_of_strangers_are_not_hot() {
    let mut bench = Bench::new(1);
    let clients = bench.clients(2);
    bench.from(clients[0], "GET stranger\r\n");
    let shared = bench.open(1);
    bench.from(shared, &"-NOAUTH x\r\n".repeat(2));
    for _ in 0..64 {
        bench.from(clients[0], "GET stranger\r\n");
        bench.from(shared, "-NOAUTH x\r\n");
        assert!(bench.to(clients[0]).ends_with("-NOAUTH x\r\n"));
    }
    assert_eq!(bench.samples(), "0");
    bench.guess(&clients[1..]);
    let login = bench.open(1);
    bench.from(login, "+OK\r\n");
    let (_, _) = (bench.to(login), bench.to(clients[1]));
    bench.from(clients[1], "GET a\r\n");
    let shared = bench.open(1);
    bench.from(shared, "+OK\r\n-NOPERM x\r\n");
    bench.from(shared, "$-1\r\n");
    for _ in 0..64 {
        bench.from(clients[1], "GET a\r\n");
        bench.from(shared, "-NOPERM x\r\n");
    }
    assert_eq!(bench.samples(), "1");
}

#[test]
fn keys_of_clients_that_need_no_password_are_hot() {
    let mut bench = Bench::new(1);
    let client = bench.clients(1)[0];
    bench.from(client, "PING\r\n");
    let shared = bench.open(1);
    bench.from(shared, "-NOPERM no info\r\n+PONG\r\n");
    for _ in 0..64 {
        bench.from(client, "GET a\r\n");
        bench.from(shared, "$-1\r\n");
    }
    assert_eq!(bench.samples(), "1");
}

#[test]
fn few_requests_of_strangers_are_in_flight() {
    let mut bench = Bench::new(1);
    let clients = bench.clients(11);
    for client in &clients {
        bench.from(*client, "GET a\r\n");
    }
    let shared = bench.open(1);
    let gets = |bench: &mut Bench| bench.to(shared).matches("GET").count();
    // The first one is INFO, of the proxy.
    assert_eq!(gets(&mut bench), 3);
    bench.from(shared, &"-NOAUTH x\r\n".repeat(2));
    assert_eq!(gets(&mut bench), 2);
    bench.from(shared, &"-NOAUTH x\r\n".repeat(4));
    assert_eq!(gets(&mut bench), 4);
    // Such an error may come before a password is asked for.
    bench.from(shared, "-ERR unknown command\r\n");
    assert_eq!(gets(&mut bench), 1);
    // The node no longer needs a password.
    bench.from(shared, "$-1\r\n");
    assert_eq!(gets(&mut bench), 1);
    let many = bench.clients(50);
    for client in &many {
        bench.from(*client, "GET a\r\n");
    }
    assert_eq!(gets(&mut bench), 50);
}

#[test]
fn strangers_open_no_connections_of_their_own() {
    let mut bench = Bench::new(1);
    let clients = bench.clients(2);
    bench.from(clients[0], "SUBSCRIBE a\r\n");
    let own = bench.open(1);
    bench.from(own, "-NOAUTH Authentication required.\r\n");
    assert_eq!(bench.to(clients[0]), "-NOAUTH Authentication required.\r\n");
    assert!(bench.to(own).ends_with("FIN"));
    let refused = "-NOAUTH Authentication required.\r\n";
    let mut shared = None;
    for line in ["SUBSCRIBE a", "BLPOP a 0", "WATCH a", "MULTI", "PSUBSCRIBE a"] {
        bench.from(clients[1], &format!("{line}\r\n"));
        let shared = *shared.get_or_insert_with(|| {
            let shared = bench.open(1);
            bench.from(shared, "-NOAUTH x\r\n");
            shared
        });
        assert!(bench.to(shared).ends_with("HELLO\r\n$1\r\n2\r\n"), "{line}");
        bench.from(shared, "-NOAUTH HELLO must\r\n");
        assert_eq!(bench.to(clients[1]), refused, "{line}");
        assert!(bench.core.next_connect().is_none(), "{line}");
    }
    // The node no longer needs a password.
    bench.from(clients[1], "BLPOP a 0\r\n");
    bench.from(shared.unwrap(), "*0\r\n");
    let own = bench.open(1);
    assert!(bench.to(own).contains("BLPOP"));
}
