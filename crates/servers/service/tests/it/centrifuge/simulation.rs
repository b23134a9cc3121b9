//! Seeded simulations: two cores, letters that are late or lost, clients in several rooms that accept little, lose their
//! connections, and come back with their positions. What each gets is compared with what was sent.

use super::{Cores, Socket, with_history};
use regatta_engine::simulator::Random;
use regatta_service::hub::Settings;
use regatta_testkit::{
    by_tier,
    histories::{self, Counts},
};
use serde_json::{Value, json};
use std::{collections::HashMap, time::Duration};

const CLIENTS: usize = 4;
const ROOMS: [&str; 3] = ["red", "green", "blue"];
const STEPS: usize = 150;

/// What a client knows of a room.
#[derive(Default)]
struct Seat {
    epoch: Option<String>,
    /// The offset of its last message.
    offset: u64,
    /// It has sent a command and not got the reply yet.
    asks: bool,
    is_in: bool,
}

#[derive(Default)]
struct Client {
    socket: Option<Socket>,
    seats: [Seat; 3],
    /// The rooms of its commands.
    asked: HashMap<u64, usize>,
}

#[derive(Debug, Default)]
struct Seen {
    messages: usize,
    recovered: usize,
    lost: usize,
    gaps: usize,
}

struct World {
    random: Random,
    cores: Cores,
    clients: Vec<Client>,
    /// The messages of each room.
    sent: [Vec<String>; 3],
    /// How many of them are kept.
    kept: u64,
    loses_letters: bool,
    seen: Seen,
}

impl World {
    fn new(seed: u64, loses_letters: bool) -> World {
        let mut random = Random::new(seed);
        let kept = random.magnitude(1, 20);
        let mut settings = Settings { presence: random.chance(500), ..with_history(kept as usize) };
        // At most 3 s of each step pass, and nothing becomes too old.
        settings.limits.history.time = Duration::from_secs(3_600);
        World {
            random,
            cores: Cores::new(settings),
            clients: (0..CLIENTS).map(|_| Client::default()).collect(),
            sent: Default::default(),
            kept,
            loses_letters,
            seen: Seen::default(),
        }
    }

    fn connects(&mut self, who: usize) {
        let core = self.random.below(2);
        let client = &mut self.clients[who];
        let mut socket = self.cores.opens(core, "/connection/websocket");
        socket.last_id = 1;
        self.cores.sends(&socket, r#"{"id":1,"connect":{}}"#);
        client.socket = Some(socket);
        client.asked.clear();
        for seat in &mut client.seats {
            (seat.asks, seat.is_in) = (false, false);
        }
    }

    fn loses(&mut self, who: usize) {
        if let Some(socket) = self.clients[who].socket.take() {
            self.cores.loses(socket);
        }
    }

    fn subscribes(&mut self, who: usize, room: usize) {
        let client = &mut self.clients[who];
        let (Some(socket), seat) = (&mut client.socket, &mut client.seats[room]) else { return };
        if seat.asks || seat.is_in {
            return;
        }
        seat.asks = true;
        socket.last_id += 1;
        client.asked.insert(u64::from(socket.last_id), room);
        let mut asked = json!({"channel": ROOMS[room], "join_leave": true});
        if let Some(epoch) = &seat.epoch {
            asked["recover"] = json!(true);
            asked["epoch"] = json!(epoch);
            asked["offset"] = json!(seat.offset);
        }
        let command = json!({"id": socket.last_id, "subscribe": asked});
        self.cores.sends(socket, &command.to_string());
    }

    fn unsubscribes(&mut self, who: usize, room: usize) {
        let client = &mut self.clients[who];
        let (Some(socket), seat) = (&mut client.socket, &mut client.seats[room]) else { return };
        if !seat.is_in {
            return;
        }
        // What is on its way is not for it any longer.
        seat.is_in = false;
        socket.last_id += 1;
        let command = json!({"id": socket.last_id, "unsubscribe": {"channel": ROOMS[room]}});
        self.cores.sends(socket, &command.to_string());
    }

    fn publishes(&mut self, who: usize, room: usize) {
        let Some(socket) = &mut self.clients[who].socket else { return };
        let long = if self.random.chance(300) { self.random.between(5_000, 40_000) } else { 1 };
        let data = format!("{} {}", self.sent[room].len() + 1, "x".repeat(long as usize));
        self.cores.publishes(socket, ROOMS[room], json!(data));
        self.sent[room].push(data);
    }

    fn carries(&mut self, to: usize) {
        let Some(letter) = self.cores.mail[to].pop_front() else { return };
        if !(self.loses_letters && self.random.chance(300)) {
            self.cores.cores[to].heard(letter);
        }
        self.cores.collects();
    }

    /// The socket of a client accepts at most so many bytes. Returns whether it has more.
    fn reads(&mut self, who: usize, most: usize) -> Result<bool, String> {
        let Some(mut socket) = self.clients[who].socket.take() else { return Ok(false) };
        let has_more = self.cores.reads(&mut socket, most);
        let lines = socket.lines();
        if let Some(closed) = &socket.closed {
            return Err(format!("client {who} is closed: {closed:?}"));
        }
        self.clients[who].socket = Some(socket);
        for line in lines {
            self.hears(who, &line).map_err(|why| format!("client {who}: {why}"))?;
        }
        Ok(has_more)
    }

    fn hears(&mut self, who: usize, line: &Value) -> Result<(), String> {
        if let Some(room) = line["id"].as_u64().and_then(|id| self.clients[who].asked.remove(&id)) {
            return self.is_subscribed(who, room, &line["subscribe"]);
        }
        let push = &line["push"];
        let Some(room) = ROOMS.iter().position(|name| push["channel"] == *name) else {
            return if line["error"].is_null() { Ok(()) } else { Err(line.to_string()) };
        };
        let seat = &mut self.clients[who].seats[room];
        if push["unsubscribe"]["code"] == 2500 {
            let missing = self.sent[room].len() as u64 - seat.offset;
            if missing <= self.kept {
                return Err(format!("a gap although only {missing} are missing"));
            }
            seat.is_in = false;
            self.seen.gaps += 1;
        } else if push["pub"].is_object() && seat.is_in {
            self.gets(who, room, &push["pub"])?;
        }
        Ok(())
    }

    fn is_subscribed(&mut self, who: usize, room: usize, result: &Value) -> Result<(), String> {
        let top = self.sent[room].len() as u64;
        let seat = &mut self.clients[who].seats[room];
        let epoch = result["epoch"].as_str().ok_or("no epoch")?.to_owned();
        let offset = result["offset"].as_u64().ok_or("no offset")?;
        let is_known = seat.epoch.as_ref() == Some(&epoch);
        let recovers = seat.epoch.is_some();
        if result["was_recovering"].as_bool().unwrap_or(false) != recovers {
            return Err(format!("it was recovering: {recovers}"));
        }
        (seat.asks, seat.is_in) = (false, true);
        if result["recovered"] == true {
            if !is_known {
                return Err("it has recovered another epoch".to_owned());
            }
            self.seen.recovered += 1;
            for one in result["publications"].as_array().into_iter().flatten() {
                self.gets(who, room, one)?;
            }
            let last = self.clients[who].seats[room].offset;
            return if last == offset {
                Ok(())
            } else {
                Err(format!("{last} instead of {offset}"))
            };
        }
        if recovers {
            let missing = top - seat.offset;
            if is_known && missing <= self.kept {
                return Err(format!("not recovered although only {missing} are missing"));
            }
            self.seen.lost += 1;
        }
        if !result["publications"].is_null() || offset > top {
            return Err(format!("not recovered, at {offset} of {top}: {result}"));
        }
        (seat.epoch, seat.offset) = (Some(epoch), offset);
        Ok(())
    }

    fn gets(&mut self, who: usize, room: usize, publication: &Value) -> Result<(), String> {
        let seat = &mut self.clients[who].seats[room];
        let offset = publication["offset"].as_u64().ok_or("no offset")?;
        if offset != seat.offset + 1 {
            return Err(format!("{offset} in {} after {}", ROOMS[room], seat.offset));
        }
        if publication["data"] != *self.sent[room][offset as usize - 1] {
            return Err(format!("{offset} in {} is another message", ROOMS[room]));
        }
        seat.offset = offset;
        self.seen.messages += 1;
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        let (who, room) = (self.random.below(CLIENTS), self.random.below(ROOMS.len()));
        match self.random.weighted(&[30, 20, 3, 10, 40, 40, 2]) {
            0 => self.publishes(who, room),
            1 => self.subscribes(who, room),
            2 => self.unsubscribes(who, room),
            3 if self.clients[who].socket.is_none() => self.connects(who),
            3 if self.random.chance(200) => self.loses(who),
            4 => self.carries(who % 2),
            5 => {
                let most = self.random.magnitude(1, 100_000) as usize;
                self.reads(who, most)?;
            }
            // Longer than a room keeps messages for those that are about to get them.
            6 => self.cores.passes(Duration::from_secs(3)),
            _ => {}
        }
        Ok(())
    }

    /// Everything arrives. Then all clients are at the last message of each room.
    fn settles(&mut self) -> Result<(), String> {
        for turn in 0..4 {
            for who in 0..CLIENTS {
                if self.clients[who].socket.is_none() {
                    self.connects(who);
                }
                while self.reads(who, usize::MAX)? {}
                (0..ROOMS.len()).for_each(|room| self.subscribes(who, room));
            }
            // What a lost letter has announced is noticed with the next message.
            for room in 0..ROOMS.len() {
                (0..2).for_each(|_| self.publishes(turn % CLIENTS, room));
            }
            self.cores.delivers();
            for who in 0..CLIENTS {
                while self.reads(who, usize::MAX)? {}
            }
        }
        for (who, client) in self.clients.iter().enumerate() {
            for (room, seat) in client.seats.iter().enumerate() {
                let top = self.sent[room].len() as u64;
                if !seat.is_in || seat.offset != top {
                    let (is_in, at) = (seat.is_in, seat.offset);
                    return Err(format!("client {who} ends at {at} of {top}, in: {is_in}"));
                }
            }
        }
        Ok(())
    }
}

fn simulate(loses_letters: bool) {
    let history = |seed, all: &mut [usize; 4]| {
        let mut world = World::new(seed, loses_letters);
        (0..STEPS).try_for_each(|_| world.step()).and_then(|()| world.settles())?;
        let Seen { messages, recovered, lost, gaps } = world.seen;
        all.add(&[messages, recovered, lost, gaps]);
        Ok(())
    };
    let all = histories::check("SIMULATION_SEED", by_tier(200, 100_000), history);
    assert!(all.is_none_or(|all| all.iter().all(|seen| *seen > 10)), "{all:?}");
}

#[test]
fn a_client_gets_every_message_of_each_room_once_and_in_order_or_hears_that_some_are_gone() {
    simulate(false);
}

#[test]
fn lost_letters_delay_messages_and_lose_none() {
    simulate(true);
}
