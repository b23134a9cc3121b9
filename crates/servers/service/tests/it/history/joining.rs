//! A member that joins while others publish. On `green`, `async` and `threads`, a join is carried out after the call of
//! the session, so a push in between does not reach it.

use crate::hub::OPENING;
use regatta_engine::{Context, Flow, Now, Post, Session, SessionFactory};
use regatta_proto::websocket::Frame;
use regatta_service::hub::{Broadcast, Connection, HistoryLimits, Hub, Settings};
use std::time::Instant;

/// A session without its engine: what it has posted is not carried out.
struct Alone {
    member: Connection,
    out: Vec<u8>,
    posts: Vec<Post<Broadcast>>,
}

impl Alone {
    fn joins(hub: &Hub) -> Alone {
        Alone::joins_with(hub, OPENING)
    }

    fn joins_with(hub: &Hub, opening: &[u8]) -> Alone {
        let (member, out, posts) = (hub.session(now()), Vec::new(), Vec::new());
        let mut alone = Alone { member, out, posts };
        alone.receives(opening);
        alone
    }

    fn call(&mut self, what: impl FnOnce(&mut Connection, &mut Context<'_, Connection>) -> Flow) {
        assert_eq!(self.flow(what), Flow::Continue);
    }

    fn flow(
        &mut self,
        what: impl FnOnce(&mut Connection, &mut Context<'_, Connection>) -> Flow,
    ) -> Flow {
        let Alone { member, out, posts } = self;
        what(member, &mut Context { now: now(), local: &mut (), out, posts })
    }

    fn receives(&mut self, bytes: &[u8]) {
        self.call(|member, context| member.on_bytes(context, &mut bytes.to_vec()));
    }

    /// Broadcasts this number. Returns what is pushed to the others.
    fn says(&mut self, payload: usize) -> Broadcast {
        self.says_long(payload, 0)
    }

    /// The same, with so many spaces behind it.
    fn says_long(&mut self, payload: usize, spaces: usize) -> Broadcast {
        let text = format!(r#"{{"type":"broadcast","payload":[{payload}{:spaces$}]}}"#, "");
        let mut bytes = Vec::new();
        Frame::text(text.as_bytes()).write_masked([1, 2, 3, 4], &mut bytes);
        self.receives(&bytes);
        match self.posts.pop() {
            Some(Post::Counted(push, _)) => push,
            other => panic!("{other:?}"),
        }
    }

    /// How often it has received this number.
    fn has(&self, payload: usize) -> usize {
        let text = format!(r#""payload":[{payload}],"offset":"#);
        self.out.windows(text.len()).filter(|part| *part == text.as_bytes()).count()
    }
}

fn now() -> Now {
    Now { instant: Instant::now(), unix_s: 0 }
}

#[test]
fn a_message_between_the_position_of_a_member_and_its_join_is_delivered_once() {
    for reaches_it in [false, true] {
        let mut settings = Settings::default();
        settings.limits.history = HistoryLimits { messages: 9, ..HistoryLimits::NONE };
        let hub = Hub::new(settings);
        let mut speaker = Alone::joins(&hub);
        speaker.says(1);
        let mut member = Alone::joins(&hub);
        let push = speaker.says(2);
        if reaches_it {
            member.member.on_push(now(), &push, &mut member.out);
        }
        // Its join is carried out, and it is called before it waits.
        assert!(member.member.alarm().is_some_and(|at| at <= Instant::now()));
        member.call(|member, context| member.on_alarm(context));
        assert_eq!(member.member.wants_drained(), !reaches_it);
        member.call(|member, context| member.on_drained(context));
        assert_eq!((member.has(1), member.has(2)), (0, 1), "from before it joined, and after");
        assert!(!member.member.wants_drained());
    }
}

/// At a stop, or when its client closes its side, a member that is behind gets what was sent until then, and then its
/// Close frame.
#[test]
fn a_member_that_is_behind_gets_the_rest_before_its_close_frame() {
    const LONG: usize = 40_000;
    let mut settings = Settings::default();
    settings.limits.history = HistoryLimits { messages: 9, ..HistoryLimits::NONE };
    let hub = Hub::new(settings);
    let mut speaker = Alone::joins(&hub);
    let first = String::from_utf8_lossy(&speaker.out).into_owned();
    let epoch = first.split(r#""epoch":""#).nth(1).and_then(|rest| rest.get(..16)).unwrap();
    for n in 1..=4 {
        speaker.says_long(n, LONG);
    }
    let opening = String::from_utf8(OPENING.to_vec()).unwrap();
    let opening = opening.replace("/ws ", &format!("/ws?epoch={epoch}&offset=0 "));
    let mut member = Alone::joins_with(&hub, opening.as_bytes());
    member.call(|member, context| member.on_drained(context));
    let closes = |out: &[u8]| out.ends_with(&[0x88, 2, 0x03, 0xE9]);
    assert!(member.out.len() < 3 * LONG, "two of four messages");
    member.call(|member, context| member.on_end(context));
    let later = speaker.says(5);
    member.member.on_push(now(), &later, &mut member.out);
    assert!(!closes(&member.out) && member.member.wants_drained());
    // The output is written.
    member.out.clear();
    let flow = member.flow(|member, context| member.on_drained(context));
    assert!(flow == Flow::Close && closes(&member.out));
    assert!(member.out.len() > 2 * LONG, "the other two");
    assert_eq!(member.has(5), 0, "sent after the end");
}
