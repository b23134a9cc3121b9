//! Proxies: which commands do they answer as one Redis does, which do they refuse, and which replies are wrong
//! without an error? And does a client ever get a wrong reply if each request has its own connection?

use super::{OURS, contenders, load, load_in_words, publish, start, url};
use crate::support::{
    contender::Running,
    shard::{
        client::Client,
        differential::{
            exchange::{line, show},
            generate::{Documented, Generator, documented, filling},
            least,
            same::{Tree, comparable},
        },
        nodes::Node,
    },
};
use rand::{SeedableRng, rngs::SmallRng};
use regatta_host::Role;
use regatta_keyspace::command::{Command, flag};
use regatta_race::Contender;
use regatta_testkit::{child::in_own_process, machine};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    io::{self, ErrorKind},
    net::SocketAddr,
    time::Duration,
};

/// A connection for each request.
const CHURN: [&str; 5] = ["-c", "50", "--churn", "--tolerate", "100%"];
/// Random requests for each command, besides those of every form.
const EACH: usize = 30;
/// Number of requests from one filling of the servers to the next.
const UNTIL_FILLED: usize = 20;
/// A proxy that has not replied after this time does not reply. The longest wait in a request is 20 ms.
const PATIENCE: Duration = Duration::from_secs(2);
/// A command whose requests were lost this often is not asked again.
const MAX_LOST: usize = 3;
/// Commands that no client of a proxy sends: they move keys between servers, or test the server.
const LEFT_OUT: [&str; 4] = ["migrate", "restore-asking", "pfdebug", "pfselftest"];
/// One server without a proxy. Nothing may be found wrong with it.
const CONTROL: &str = "redis-direct";

/// What became of a request.
#[derive(Debug)]
enum Fate {
    /// The reply of one Redis, which is not an error.
    Same,
    /// An error where one Redis has one.
    SameError,
    /// An error where one Redis has none.
    Refused,
    /// No reply: the connection was closed, or none came in time.
    Lost,
    /// The proxy no longer listens.
    Crashed,
    /// Another reply than that of one Redis, and not an error. In words.
    Wrong(String),
}

/// The requests of one command, by their fate.
#[derive(Default)]
struct Score {
    same: usize,
    refused: usize,
    lost: usize,
    crashed: usize,
    wrong: usize,
    /// The first exchange that was wrong.
    first: Option<String>,
}

impl Score {
    fn add(&mut self, fate: Fate) {
        match fate {
            Fate::Same => self.same += 1,
            Fate::SameError => {}
            Fate::Refused => self.refused += 1,
            Fate::Lost => self.lost += 1,
            Fate::Crashed => self.crashed += 1,
            Fate::Wrong(exchange) => {
                self.wrong += 1;
                self.first.get_or_insert(exchange);
            }
        }
    }
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn no_reply_is_wrong_without_an_error() {
    let _turn = machine::alone();
    in_own_process(Duration::from_secs(3600), || {
        let mut table = String::from(
            "| proxy | commands answered | answered in part | refused | wrong without an error | stop the proxy | a connection for each request |\n\
             |---|---|---|---|---|---|---|\n",
        );
        let (mut notes, mut faults) = (String::new(), Vec::new());
        for contender in contenders("shard") {
            let name = &contender.manifest.name;
            let Some(scores) = compare(&contender) else { continue };
            let wrong: Vec<_> = scores.iter().filter(|(_, score)| score.wrong > 0).collect();
            writeln!(table, "| {name} | {} | {} |", cells(&scores), churn(&contender))
                .expect("a text grows");
            if let Some((_, Score { first: Some(first), .. })) = wrong.first() {
                let all: Vec<_> = wrong.iter().map(|(command, _)| format!("`{command}`")).collect();
                write!(
                    notes,
                    "\n{name}, wrong: {}. The first:\n\n```text\n{first}\n```\n",
                    all.join(", ")
                )
                .expect("a text grows");
            }
            let refuses =
                scores.values().any(|score| score.refused + score.lost + score.crashed > 0);
            // A peer may be wrong: that is its result.
            if name == OURS && !wrong.is_empty()
                || name == CONTROL && (refuses || !wrong.is_empty())
            {
                faults.push(name.clone());
            }
        }
        write!(
            table,
            "\nThe last column by `{}`, on one core.\n{notes}",
            load_in_words("redis", &CHURN)
        )
        .expect("a text grows");
        publish("proxies", &table);
        assert!(faults.is_empty(), "wrong or refused, and must not be: {}", faults.join(", "));
    });
}

/// The columns on commands.
fn cells(scores: &BTreeMap<String, Score>) -> String {
    let (mut answered, mut partly, mut refused, mut wrong) = (0, 0, 0, 0);
    for score in scores.values() {
        let is_refused = score.refused + score.lost + score.crashed > 0;
        *match (score.wrong > 0, is_refused, score.same > 0) {
            (true, ..) => &mut wrong,
            (_, false, _) => &mut answered,
            (_, _, true) => &mut partly,
            _ => &mut refused,
        } += 1;
    }
    let crashed: Vec<_> = scores.iter().filter(|(_, score)| score.crashed > 0).collect();
    let crashed: Vec<_> = crashed.iter().map(|(command, _)| format!("`{command}`")).collect();
    let crashed = if crashed.is_empty() { "none".into() } else { crashed.join(", ") };
    format!("{answered} of {} | {partly} | {refused} | {wrong} | {crashed}", scores.len())
}

/// Loads a fresh proxy with a connection for each request. What was found, in words. Ours must make no error.
fn churn(contender: &Contender) -> String {
    let running = start(contender, "shard");
    let found = load(contender, &url(contender, "redis", running.addr), &CHURN);
    let stopped = running.stop();
    let result = match found {
        Ok(result) => result,
        Err(why) => {
            assert_ne!(contender.manifest.name, OURS, "{why}");
            return format!("no result: {why}");
        }
    };
    let (wrong, lost) =
        (result.errors.wrong_reply, result.errors.failed() - result.errors.wrong_reply);
    let lost = if lost > 0 { format!(", {lost} lost") } else { String::new() };
    assert!(contender.manifest.name != OURS || result.errors.failed() == 0 && stopped.is_ok());
    let stopped = stopped.err().map_or_else(String::new, |why| format!("; {why}"));
    format!("{} right, {wrong} wrong{lost}{stopped}", result.requests)
}

/// Compares a proxy with one Redis, command by command; `None` if it is neither a proxy nor the control.
fn compare(contender: &Contender) -> Option<BTreeMap<String, Score>> {
    let running = start(contender, "shard");
    if nodes(&running).is_empty() && contender.manifest.name != CONTROL {
        return None;
    }
    let one = Node::start(&[]);
    let mut direct = one.client();
    let commands = documented(&mut direct);
    direct.say("SET a hello");
    let Tree::Text(dumped) = Tree::read(&direct.ask(&["DUMP", "a"])) else { panic!("a text") };
    let mut generator = Generator::new(SmallRng::seed_from_u64(7), dumped);
    let mut sides =
        Sides { contender, running: Some(running), one, deadly: BTreeSet::new(), clients: None };
    let known = |name: &str| Command::all().iter().find(|command| command.name == name);
    let is_data = |command: &&Documented| {
        known(&command.name).is_some_and(|one| one.has(flag::WRITE) || one.has(flag::READONLY))
            && !LEFT_OUT.contains(&&command.name[..])
    };
    Some(
        commands
            .iter()
            .filter(is_data)
            .map(|command| (command.name.clone(), sides.score(command, &mut generator)))
            .collect(),
    )
}

/// The nodes behind a proxy.
fn nodes(running: &Running) -> Vec<SocketAddr> {
    let (_server, behind) = running.roles.all().split_last().expect("the server comes last");
    behind.iter().flat_map(Role::addresses).collect()
}

/// The proxy with its nodes, and one Redis with the same data.
struct Sides<'a> {
    contender: &'a Contender,
    running: Option<Running>,
    one: Node,
    /// The requests of the filling that stop the proxy.
    deadly: BTreeSet<usize>,
    /// A connection to the proxy and one to the one Redis.
    clients: Option<(Client, Client)>,
}

impl Sides<'_> {
    /// Asks for one command in every form.
    fn score(&mut self, command: &Documented, generator: &mut Generator) -> Score {
        let mut requests = generator.forms(command, least(&command.name));
        requests.extend((0..EACH).map(|_| generator.request(command)));
        let mut score = Score::default();
        let mut since_filled = UNTIL_FILLED;
        for request in &requests {
            if since_filled == UNTIL_FILLED {
                self.fill();
                since_filled = 0;
            }
            let fate = self.exchange(&command.name, request);
            // Otherwise both sides may have other data. SPOP removes random elements.
            let alike = matches!(fate, Fate::Same | Fate::SameError) && command.name != "spop";
            since_filled = if alike { since_filled + 1 } else { UNTIL_FILLED };
            score.add(fate);
            if score.lost + score.crashed == MAX_LOST {
                break;
            }
        }
        score
    }

    /// Gives both sides the same data: what the proxy refuses, the one Redis does not get either. Leaves out what
    /// stopped the proxy before.
    fn fill(&mut self) {
        let requests = filling();
        let filled = (0..=requests.len()).any(|_| self.is_filled(&requests));
        assert!(filled, "{} does not stay up", self.contender.manifest.name);
    }

    /// Returns `false` if the proxy stopped meanwhile.
    fn is_filled(&mut self, requests: &[Vec<String>]) -> bool {
        let running = self.running.as_ref().expect("it was started");
        let mut servers = nodes(running);
        if servers.is_empty() {
            servers.push(running.addr);
        }
        for addr in servers.into_iter().chain([self.one.addr()]) {
            assert_eq!(Client::connect(addr).say("FLUSHALL"), "+OK\r\n");
        }
        self.clients = None;
        for (i, request) in requests.iter().enumerate() {
            if self.deadly.contains(&i) {
                continue;
            }
            let Some((mut sharded, mut direct)) = self.connected() else { return false };
            if let Ok(Some(reply)) = ask(&mut sharded, request) {
                if !matches!(reply, Tree::Error(_)) {
                    direct.ask(request);
                }
                self.clients = Some((sharded, direct));
                continue;
            }
            drop((sharded, direct));
            match self.connected() {
                Some(clients) => self.clients = Some(clients),
                None => {
                    self.deadly.insert(i);
                    return false;
                }
            }
        }
        true
    }

    /// A connection to both sides: the last one, if it was not lost. If the proxy no longer listens, it is
    /// started again, and there is none.
    fn connected(&mut self) -> Option<(Client, Client)> {
        if self.clients.is_some() {
            return self.clients.take();
        }
        let addr = self.running.as_ref().expect("it was started").addr;
        let Ok(sharded) = Client::try_connect(addr) else {
            // The old one is stopped first: no two run at a time.
            self.running = None;
            self.running = Some(start(self.contender, "shard"));
            return None;
        };
        sharded.stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Some((sharded, self.one.client()))
    }

    fn exchange(&mut self, name: &str, request: &[Vec<u8>]) -> Fate {
        // A proxy may have closed a connection after its last reply.
        let is_old = self.clients.is_some();
        let Some((mut sharded, mut direct)) = self.connected() else { return Fate::Crashed };
        let reply = match ask(&mut sharded, request) {
            Ok(Some(reply)) => reply,
            Ok(None) if is_old => return self.exchange(name, request),
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                return Fate::Wrong(format!("{}\n  the proxy: {error}", line(request)));
            }
            Ok(None) | Err(_) => return Fate::Lost,
        };
        let expected = Tree::read(&direct.ask(request));
        self.clients = Some((sharded, direct));
        let same = comparable(name, expected.clone()) == comparable(name, reply.clone());
        match [&expected, &reply].map(|one| matches!(one, Tree::Error(_))) {
            [true, true] => Fate::SameError,
            [false, true] => Fate::Refused,
            [false, false] if same => Fate::Same,
            _ => Fate::Wrong(format!(
                "{}\n  one Redis: {}\n  the proxy: {}",
                line(request),
                show(&expected),
                show(&reply)
            )),
        }
    }
}

/// Sends a request and returns its reply; `None` if the connection is closed.
fn ask<T: AsRef<[u8]>>(client: &mut Client, request: &[T]) -> io::Result<Option<Tree>> {
    if client.try_send(request).is_err() {
        return Ok(None);
    }
    Ok(client.try_next()?.map(|reply| Tree::read(&reply)))
}
