//! Sessions that receive posts from others, in their straight-line loops: for threads and for
//! tasks.

use crate::styles::{
    client::{Client, Taking},
    peer::{Blocking, Peer, Waiting},
    play::{LIMITS, secs},
    played::{Action, Played},
};
use futures_lite::future::{block_on, yield_now};
use regatta_engine::{Context, Post, Push, PushOutcome, RoomName};
use regatta_service::{
    Flow, Limits, Never, Now, Session,
    style::member::{self, PushEndpoint, Wake},
};
use std::{
    cell::RefCell,
    collections::VecDeque,
    io,
    time::{Duration, Instant},
};

/// Maximum number of pending pushes for a member.
const WAITING: usize = 4;

/// The messages of members.
#[derive(Clone, Debug, PartialEq, Eq)]
struct News(String);

impl Push for News {}

/// The number of members that a counted push is queued for.
const COUNTED: u32 = 7;

/// A member of a chat. It obeys lines: `join`, `leave`, `say …`, `count n …` (a counted push with
/// ticket n), `ring n` (sets the alarm to n seconds), `many n` (n lines, one per call of
/// `on_drained`), `pause n` (accepts no input for n seconds), `end`, `part`.
#[derive(Default)]
struct Chatter {
    partial: Vec<u8>,
    inside: Option<Instant>,
    alarm: Option<Instant>,
    owes: usize,
    paused: bool,
}

impl Chatter {
    fn obey(&mut self, line: &str, context: &mut Context<'_, Self>) -> Flow {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "join" => context.post(Post::Join(RoomName::LOBBY)),
            "leave" => context.post(Post::Leave),
            "say" => context.post(Post::Others(News(rest.to_owned()))),
            "count" => {
                let (ticket, what) = rest.split_once(' ').unwrap();
                context.post(Post::Counted(News(what.to_owned()), ticket.parse().unwrap()));
            }
            "ring" => self.alarm = Some(context.now.instant + secs(rest.parse().unwrap())),
            "pause" => {
                self.paused = true;
                self.alarm = Some(context.now.instant + secs(rest.parse().unwrap()));
            }
            "many" => self.owes = rest.parse().unwrap(),
            "end" => return Flow::Close,
            "part" => return Flow::ClosedByClient,
            _ => panic!("an unknown command: {word}"),
        }
        context.out.extend_from_slice(b"ok\n");
        Flow::Continue
    }
}

impl Session for Chatter {
    type Job = Never;
    type Push = News;
    type Local = ();

    fn on_bytes(&mut self, context: &mut Context<'_, Self>, bytes: &mut [u8]) -> Flow {
        for byte in bytes {
            if *byte != b'\n' {
                self.partial.push(*byte);
                continue;
            }
            let line = String::from_utf8(std::mem::take(&mut self.partial)).unwrap();
            self.inside = None;
            let flow = self.obey(&line, context);
            if flow != Flow::Continue {
                return flow;
            }
        }
        if !self.partial.is_empty() {
            self.inside.get_or_insert(context.now.instant);
        }
        Flow::Continue
    }

    fn on_drained(&mut self, context: &mut Context<'_, Self>) -> Flow {
        self.owes -= 1;
        context.out.extend_from_slice(b"more\n");
        Flow::Continue
    }

    fn on_end(&mut self, context: &mut Context<'_, Self>) -> Flow {
        context.out.extend_from_slice(b"bye\n");
        Flow::Close
    }

    fn on_push(&mut self, _: Now, News(push): &News, out: &mut Vec<u8>) -> PushOutcome {
        out.extend_from_slice(format!("heard {push}\n").as_bytes());
        if push == "close" { PushOutcome::Close } else { PushOutcome::Queued }
    }

    fn on_overrun(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"slow\n");
    }

    /// An even ticket causes another counted push.
    fn on_queued(&mut self, context: &mut Context<'_, Self>, ticket: u64, members: u32) -> Flow {
        context.out.extend_from_slice(format!("queued {ticket} for {members}\n").as_bytes());
        if ticket.is_multiple_of(2) {
            context.post(Post::Counted(News("again".to_owned()), ticket + 1));
        }
        Flow::Continue
    }

    fn on_alarm(&mut self, context: &mut Context<'_, Self>) -> Flow {
        self.alarm = None;
        self.paused = false;
        context.out.extend_from_slice(b"ring\n");
        Flow::Continue
    }

    fn wants_input(&self) -> bool {
        !self.paused
    }

    fn wants_drained(&self) -> bool {
        self.owes > 0
    }

    fn inside(&self) -> Option<Instant> {
        self.inside
    }

    fn alarm(&self) -> Option<Instant> {
        self.alarm
    }
}

/// Pushes from others to the member, and the posts of the member.
#[derive(Default)]
struct Others {
    to_come: VecDeque<(Duration, News)>,
    mail: VecDeque<News>,
    overrun: bool,
    posted: Vec<String>,
}

impl Others {
    fn of(pushes: &[(u64, &str)]) -> Self {
        let to_come = pushes.iter().map(|(at, push)| (secs(*at), News((*push).to_owned())));
        Others { to_come: to_come.collect(), ..Others::default() }
    }

    /// Moves pushes that have arrived to the mailbox. Without room for one, the member is overrun.
    fn deliver(&mut self, now: Duration) {
        while let Some((_, push)) = self.to_come.pop_front_if(|(at, _)| *at <= now) {
            match self.mail.len() < WAITING {
                true => self.mail.push_back(push),
                false => self.overrun = true,
            }
        }
    }

    /// Waits. A push that has already arrived is returned before input.
    fn wait(&mut self, peer: &mut Peer, reads: bool, until: Instant) -> Wake<News> {
        let until = peer.at(until);
        self.deliver(peer.elapsed());
        while self.mail.is_empty() {
            let push_at = self.to_come.front().map(|(at, _)| *at);
            let due = push_at.map_or(until, |at| at.min(until));
            if peer.wait(due, |peer| reads && peer.is_readable()) {
                return Wake::Readable;
            }
            self.deliver(peer.elapsed());
            if self.mail.is_empty() && peer.elapsed() >= until {
                return Wake::Deadline;
            }
        }
        Wake::Push(self.mail.pop_front().expect("there is one"))
    }
}

impl Others {
    fn post(&mut self, post: Post<News>) -> u32 {
        let members = if matches!(post, Post::Counted(..)) { COUNTED } else { 0 };
        self.posted.push(match post {
            Post::Join(_) => "join".to_owned(),
            Post::Leave => {
                self.mail.clear();
                self.to_come.clear();
                "leave".to_owned()
            }
            Post::Others(News(push)) => format!("say {push}"),
            Post::Counted(News(push), ticket) => format!("count {ticket} {push}"),
            Post::To(room, News(push)) => format!("to {} {push}", room.as_str()),
            Post::Enter(_) | Post::Exit(_) => panic!("it is in one room"),
            Post::Remote(room, News(push), ticket) => {
                format!("remote {} {ticket} {push}", room.as_str())
            }
        });
        members
    }
}

/// Pushes that arrived while the member was busy are delivered before they are requested.
macro_rules! room {
    ($stream:ident, $peer:tt, $others:tt) => {
        impl PushEndpoint<News> for $stream<'_, RefCell<&mut Others>> {
            fn post(&mut self, post: Post<News>) -> u32 {
                self.$others.get_mut().post(post)
            }

            fn next(&mut self) -> Option<News> {
                let others = self.$others.get_mut();
                others.deliver(self.$peer.elapsed());
                others.mail.pop_front()
            }

            fn is_overrun(&self) -> bool {
                let mut others = self.$others.borrow_mut();
                others.deliver(self.$peer.elapsed());
                others.overrun
            }

            fn is_gone(&self) -> bool {
                self.$peer.is_gone()
            }
        }
    };
}

room!(Blocking, peer, others);
room!(Waiting, 0, 1);

impl member::BlockingMember<News> for Blocking<'_, RefCell<&mut Others>> {
    fn wait(&mut self, reads: bool, until: Instant) -> io::Result<Wake<News>> {
        Ok(self.others.get_mut().wait(self.peer, reads, until))
    }

    fn read_now(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.peer.read_if_readable(into)
    }
}

impl member::AsyncMember<News> for Waiting<'_, RefCell<&mut Others>> {
    async fn wait(&mut self, reads: bool, until: Instant) -> io::Result<Wake<News>> {
        yield_now().await;
        Ok(self.1.get_mut().wait(self.0, reads, until))
    }

    fn read_now(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read_if_readable(into)
    }
}

/// Runs a member in both loops. `check` receives its actions and its posts.
fn play(client: &Client, pushes: &[(u64, &str)], check: impl Fn(&Played, &[String], &str)) {
    let (mut peer, mut others) = (Peer::new(client), Others::of(pushes));
    let mut stream = Blocking::new(&mut peer, RefCell::new(&mut others), LIMITS, true);
    let result = member::serve_blocking(Chatter::default(), &mut stream, LIMITS);
    check(&peer.over(result), &others.posted, "blocking");

    let (mut peer, mut others) = (Peer::new(client), Others::of(pushes));
    let stream = Waiting(&mut peer, RefCell::new(&mut others));
    let result = block_on(member::serve(Chatter::default(), stream, LIMITS));
    check(&peer.over(result), &others.posted, "task");
}

/// The output in each second, with a bar between writes: `0: ok, ok; 5: bye`.
fn transcript(played: &Played) -> String {
    let mut transcript = String::new();
    let mut last = None;
    for (at, action) in &played.actions {
        let Action::Wrote(bytes, _) = action else { continue };
        let lines = std::str::from_utf8(bytes).unwrap().trim_end().replace('\n', ", ");
        let separator = if last.is_some() { "; " } else { "" };
        match last.replace(at.as_secs()) == Some(at.as_secs()) {
            true => transcript += &format!(" | {lines}"),
            false => transcript += &format!("{separator}{}: {lines}", at.as_secs()),
        }
    }
    transcript
}

#[test]
fn pushes_are_handled_between_requests_and_in_order() {
    let client = Client::new().send("join\n").pause(secs(4)).send("say a\nsay b\n");
    let client = client.pause(secs(2)).half_close();
    let pushes = [(1, "one"), (2, "two"), (2, "three"), (5, "four")];
    play(&client, &pushes, |played, posted, how| {
        let expected = "0: ok; 1: heard one; 2: heard two, heard three; 4: ok, ok; \
                        5: heard four; 6: bye";
        assert_eq!((&transcript(played)[..], played.error), (expected, None), "{how}");
        assert_eq!(posted, ["join", "say a", "say b", "leave"], "{how}: closing posts a leave");
        assert_eq!((played.finished(), played.closed), (None, secs(6)), "{how}");
    });
}

#[test]
fn the_sender_of_a_counted_push_learns_for_how_many_it_is_queued() {
    let client = Client::new().send("join\ncount 2 x\ncount 5 y\n").pause(secs(1)).half_close();
    play(&client, &[], |played, posted, how| {
        let expected = "0: ok, ok, ok, queued 2 for 7, queued 5 for 7, queued 3 for 7; 1: bye";
        assert_eq!((&transcript(played)[..], played.error), (expected, None), "{how}");
        assert_eq!(posted, ["join", "count 2 x", "count 5 y", "count 3 again", "leave"], "{how}");
    });
}

#[test]
fn the_alarm_rings_at_its_time_whatever_else_happens() {
    let client = Client::new().send("ring 3\n").pause(secs(2)).send("join\n").pause(secs(5));
    play(&client.send("ring 100\n"), &[(1, "x")], |played, _, how| {
        let expected = "0: ok; 1: heard x; 2: ok; 3: ring; 7: ok";
        assert_eq!(&transcript(played)[..], expected, "{how}: then the idle timeout closes it");
        assert_eq!(played.error, Some(io::ErrorKind::TimedOut), "{how}");
    });
}

#[test]
fn a_session_that_wants_room_is_called_until_it_wants_none() {
    let client = Client::new().send("many 3\n").pause(secs(1)).half_close();
    play(&client, &[], |played, _, how| {
        assert_eq!(transcript(played), "0: ok | more | more | more; 1: bye", "{how}");
    });
}

/// The first push takes at least 8 s. Meanwhile others arrive: four that wait, and perhaps one more, 6 s after the start.
#[test]
fn a_member_that_missed_a_push_gets_its_last_words_and_is_closed() {
    let pushes = [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e"), (6, "f")];
    let all = "ok\nheard a\nheard b\nheard c\nheard d\nheard e\nbye\n";
    let cut = (secs(6) + Limits::LAST_OUTPUT, Some(io::ErrorKind::TimedOut));
    for (byte_takes, fit, output, end) in [
        (2, 5, all, None),
        // Its last byte is written after 13 s, and the server lingers.
        (1, 6, "ok\nheard a\nslow\n", Some((secs(13) + Limits::LINGER, None))),
        // It does not take them in time.
        (3, 6, "ok\nheard", Some(cut)),
    ] {
        let takes = Taking::Steadily(1, secs(byte_takes));
        let client = Client::new().send_buffer(3).take(takes).send("join\n");
        play(&client.pause(secs(60)).half_close(), &pushes[..fit], |played, _, how| {
            let how = format!("{how}, a byte in {byte_takes} s, {fit} pushes");
            assert_eq!(String::from_utf8_lossy(&played.output()), output, "{how}");
            let (closed, error) = end.unwrap_or((played.closed, None));
            assert_eq!((played.closed, played.error), (closed, error), "{how}");
        });
    }
}

#[test]
fn a_member_is_closed_as_its_session_returns() {
    let (end, part) = (Client::new().send("end\n"), Client::new().send("part\n"));
    let half_close = Client::new().half_close();
    let pushed = Client::new();
    for (client, pushes, finished, closed) in [
        (end, &[][..], Some(0), 2),
        (part, &[], Some(0), 0),
        (half_close, &[], None, 0),
        // Pushes after this one are not handled.
        (pushed, &[(1, "close"), (1, "late")], Some(1), 3),
    ] {
        play(&client, pushes, |played, _, how| {
            assert_eq!(played.finished(), finished.map(secs), "{how}: {client:?}");
            assert_eq!((played.closed, played.error), (secs(closed), None), "{how}: {client:?}");
            assert!(!transcript(played).contains("late"), "{how}");
        });
    }
}

#[test]
fn a_silent_member_times_out_and_one_inside_a_request_sooner() {
    let in_time = |played: &Played, active: Duration| {
        let silence = played.closed.saturating_sub(active);
        played.error == Some(io::ErrorKind::TimedOut)
            && (LIMITS.idle..=LIMITS.idle * 3 / 2).contains(&silence)
    };
    play(&Client::new(), &[], |played, _, how| {
        assert!(in_time(played, Duration::ZERO), "{how}: closed at {:?}", played.closed);
    });
    play(&Client::new().pause(secs(50)).send("join\n"), &[], |played, _, how| {
        assert!(in_time(played, secs(50)), "{how}: closed at {:?}", played.closed);
    });
    let stopped = Client::new().pause(secs(3)).send("jo").pause(secs(5)).send("i");
    play(&stopped, &[(4, "x")], |played, _, how| {
        assert_eq!(played.closed, secs(3) + LIMITS.request, "{how}: a push does not extend it");
    });
}

/// It sends nothing, but acknowledges the pushes it receives.
#[test]
fn a_member_that_only_listens_is_kept_while_it_acknowledges_pushes() {
    let idle = LIMITS.idle.as_secs();
    let pushes: Vec<_> = (1..=10).map(|n| (n * idle * 3 / 4, "news")).collect();
    let last = pushes[9].0;
    play(&Client::new(), &pushes, |played, _, how| {
        assert_eq!(transcript(played).matches("heard news").count(), 10, "{how}");
        let silence = played.closed.as_secs() - last;
        assert!((idle..=idle * 3 / 2).contains(&silence), "{how}: {silence} s");
    });
    let deaf = Client::new().send("join\n").pause(secs(1)).take(Taking::Nothing);
    play(&deaf, &pushes, |played, _, how| {
        assert!(played.closed <= LIMITS.idle * 3 / 2, "{how}: {:?}", played.closed);
    });
}

/// Input that arrives meanwhile is read later, including its end. Only a reset closes the
/// connection.
#[test]
fn a_paused_member_receives_pushes_and_does_not_time_out() {
    let long = 3 * LIMITS.idle.as_secs();
    let client = Client::new().send(format!("pause {long}\n")).pause(secs(1)).send("say a\n");
    play(&client.clone().half_close(), &[(2, "x"), (long, "y")], |played, posted, how| {
        let expected = format!("0: ok; 2: heard x; {long}: heard y | ring | ok | bye");
        assert_eq!((transcript(played), played.error), (expected, None), "{how}");
        assert_eq!(posted, ["say a", "leave"], "{how}");
    });
    // A reset is only noticed by a periodic check.
    play(&client.pause(secs(99)).reset(), &[(2, "x")], |played, posted, how| {
        assert_eq!(played.error, Some(io::ErrorKind::ConnectionReset), "{how}");
        let seen = secs(100)..=secs(100) + Limits::LIVENESS_INTERVAL;
        assert!(seen.contains(&played.closed), "{how}: {:?}", played.closed);
        assert!(posted.is_empty(), "{how}: unread input is not executed");
    });
}
