//! Deferred jobs: in whatever order they finish, and however the input is split, the output is the
//! same as if each had run at once.

use crate::styles::{
    client::Client,
    play::{LIMITS, STYLES, Style, all_styles, cut, play, play_with_workers, same, secs},
    played::Action,
};
use proptest::prelude::*;
use regatta_engine::{Context, Post};
use regatta_service::{
    CallOutcome, Flow, Job, Never, Now, Service, ServiceProgram, Session, SessionFactory,
    double::{Lines, Request},
};
use std::{
    ffi::CStr,
    io,
    sync::Arc,
    time::{Duration, Instant},
};

/// A service that replies to each line with a repeated letter. The first byte of a line is the
/// letter: `i` replies at once, `j` through a job, `s` through a short job; upper case also closes
/// the connection. The digits after it are the number of repetitions.
#[derive(Clone)]
struct Repeat;

struct Repetition {
    line: Vec<u8>,
    file: Arc<CStr>,
}

fn write(line: &[u8], reply: &mut Vec<u8>) -> Flow {
    let times = std::str::from_utf8(&line[1..]).unwrap().parse().unwrap();
    reply.extend(std::iter::repeat_n(line[0], times));
    reply.push(b'\n');
    if line[0].is_ascii_uppercase() { Flow::Close } else { Flow::Continue }
}

impl Service for Repeat {
    type Codec = Lines;
    type Job = Repetition;
    type Local = ();

    fn call(
        &mut self,
        (): &mut (),
        _: Now,
        request: Request<'_>,
        reply: &mut Vec<u8>,
    ) -> CallOutcome<Repetition> {
        let Request::NotAnInteger(line) = request else { return Flow::Close.into() };
        match line[0].to_ascii_lowercase() {
            b'i' => write(line, reply).into(),
            _ => CallOutcome::Needs(Repetition { line: line.into(), file: c"/dev/null".into() }),
        }
    }
}

impl Job for Repetition {
    fn file(&self) -> &Arc<CStr> {
        &self.file
    }

    fn is_short(&self) -> bool {
        self.line[0].eq_ignore_ascii_case(&b's')
    }

    fn finish(self, _: Now, file: io::Result<&[u8]>, reply: &mut Vec<u8>) -> Flow {
        assert_eq!(file.unwrap(), b"", "/dev/null is empty");
        write(&self.line, reply)
    }
}

/// The expected output.
fn expected(input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in input.split_inclusive(|byte| *byte == b'\n') {
        if let Some(line) = line.strip_suffix(b"\n")
            && write(line, &mut out) == Flow::Close
        {
            break;
        }
    }
    out
}

fn line() -> impl Strategy<Value = String> {
    let length = prop_oneof![20 => 0usize..50, 1 => 0usize..70_000];
    let kind = prop_oneof![
        20 => Just('i'), 20 => Just('j'), 10 => Just('s'),
        1 => Just('I'), 1 => Just('J'), 1 => Just('S'),
    ];
    (kind, length).prop_map(|(kind, length)| format!("{kind}{length}\n"))
}

proptest! {
    #[test]
    fn replies_are_sent_in_the_order_of_the_requests(
        lines in proptest::collection::vec(line(), 0..200),
        partial in "[ij]?",
        cuts in proptest::collection::vec(1usize..700, 1..12),
        choices in proptest::collection::vec(any::<usize>(), 1..50),
    ) {
        let input = (lines.concat() + &partial).into_bytes();
        let expected = expected(&input);
        let pieces = cut(&input, &cuts);
        all_styles(ServiceProgram(Repeat), &pieces, &expected);
        for shorts_too in [false, true] {
            let client = Client::of(&pieces);
            let played = play_with_workers(&ServiceProgram(Repeat), &client, LIMITS, shorts_too, &choices);
            same(&played.output(), &expected, ("short jobs elsewhere too", shorts_too));
        }
    }
}

/// A session that is called without a core, and its output.
struct Direct {
    session: <ServiceProgram<Repeat> as SessionFactory>::Session,
    out: Vec<u8>,
    now: Now,
}

impl Direct {
    fn new() -> Self {
        let now = Now { instant: Instant::now(), unix_s: 0 };
        Direct { session: ServiceProgram(Repeat).session(now), out: Vec::new(), now }
    }

    fn call(
        &mut self,
        what: impl FnOnce(
            &mut <ServiceProgram<Repeat> as SessionFactory>::Session,
            &mut Context<'_, <ServiceProgram<Repeat> as SessionFactory>::Session>,
        ) -> Flow,
    ) -> Flow {
        let mut posts: Vec<Post<Never>> = Vec::new();
        let (now, out) = (self.now, &mut self.out);
        what(&mut self.session, &mut Context { now, local: &mut (), out, posts: &mut posts })
    }

    fn receive(&mut self, bytes: &[u8]) -> Flow {
        self.call(|session, context| session.on_bytes(context, &mut bytes.to_vec()))
    }

    fn room(&mut self) -> Flow {
        self.call(|session, context| session.on_drained(context))
    }
}

#[test]
fn a_client_that_waits_for_its_job_does_not_time_out_and_its_input_is_bounded() {
    // The job takes longer than both timeouts. Then the client has an incomplete request.
    let client = Client::new().jobs_take(secs(100)).send("j1\ni");
    for style in STYLES {
        let played = play(style, &ServiceProgram(Repeat), &client, LIMITS);
        assert_eq!(
            played.output(),
            b"j\n",
            "{style:?}: a client waiting for its job is not silent"
        );
        assert!(played.closed >= secs(100), "{style:?}");
        assert!(played.closed <= secs(100) + LIMITS.request, "{style:?}: {:?}", played.closed);
    }

    let mut one = Direct::new();
    assert_eq!(one.receive(b"j1\ni"), Flow::Continue);
    assert!(one.session.is_working() && one.session.wants_input());
    one.receive(&[b"1\n", &b"j1\n".repeat(100)[..]].concat());
    assert!(!one.session.wants_input());
    let mut jobs = Vec::new();
    while let Some(job) = one.session.slots().unwrap().next_job() {
        jobs.push(job);
    }
    assert_eq!((jobs.len(), one.out.len()), (64, 0));
    let ((id, job), now) = (jobs.remove(0), one.now);
    one.session.slots().unwrap().finish(id, |reply| job.finish(now, Ok(b""), reply));
    one.room();
    assert_eq!(one.out, b"j\ni\n");
    assert!(one.session.slots().unwrap().next_job().is_some(), "there is room for another job");
    // A job that does not belong to this connection.
    one.session.slots().unwrap().finish(id, |_| unreachable!());
}

#[test]
fn a_long_job_does_not_delay_earlier_replies() {
    let client = Client::of(&[b"s1\ni2\nj3\ns4\nj5\nj6\n".to_vec()]).jobs_take(secs(1));
    for style in STYLES {
        let played = play(style, &ServiceProgram(Repeat), &client, LIMITS);
        let mut transcript = String::new();
        let mut at = Duration::ZERO;
        for (when, action) in &played.actions {
            if *when > at {
                transcript += "|";
                at = *when;
            }
            if let Action::Wrote(bytes, _) = action {
                transcript += std::str::from_utf8(bytes).unwrap();
            }
        }
        let transcript = transcript.replace('\n', " ");
        assert_eq!(transcript, "s ii |jjj ssss |jjjjj |jjjjjj ", "{style:?}");
    }
}

#[test]
fn after_a_reset_the_connection_closes_when_its_job_ends() {
    let client = Client::new().jobs_take(secs(9)).send("i1\nj2\nj3\n").pause(secs(1)).reset();
    for style in STYLES {
        let played = play(style, &ServiceProgram(Repeat), &client, LIMITS);
        assert_eq!(played.output(), b"i\n", "{style:?}");
        let closed = played.closed;
        // The reset comes during the first job. A callback server may run the second one, too.
        assert!(closed == secs(9) || style == Style::Callback && closed <= secs(18), "{closed:?}");
    }
}

#[test]
fn jobs_are_wanted_until_their_connection_closes() {
    let mut one = Direct::new();
    one.receive(b"j1\nj2\n");
    let wanted = one.session.slots().unwrap().wanted();
    assert!(wanted.upgrade().is_some());
    drop(one);
    assert!(wanted.upgrade().is_none());
    let mut one = Direct::new();
    one.receive(b"J1\nj2\n");
    let now = one.now;
    let slots = one.session.slots().unwrap();
    let (wanted, (id, job)) = (slots.wanted(), slots.next_job().unwrap());
    slots.finish(id, |reply| job.finish(now, Ok(b""), reply));
    assert!(wanted.upgrade().is_some());
    assert_eq!(one.room(), Flow::Close);
    assert!(wanted.upgrade().is_none(), "the second reply is not sent");
}
