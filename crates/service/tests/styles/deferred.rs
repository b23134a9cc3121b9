//! Deferred jobs: whatever the order in which they are done, and however the bytes are cut, what goes
//! out is what would have if each had been done at once.

use crate::play::{all_styles, cut};
use proptest::prelude::*;
use regatta_service::{
    Called, Defer, Flow, Job, Limits, Program, Service, Shared,
    double::{Lines, Request},
    style::Session,
};
use std::{
    ffi::CStr,
    io,
    sync::Arc,
    time::{Duration, Instant},
};

/// Repeats lines. The first byte says how: `i` at once, `j` and `s` (short) by a job, in capitals
/// and then the end; the length is what the digits behind it say.
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

    fn call(&mut self, request: Request<'_>, reply: &mut Vec<u8>) -> Called<Repetition> {
        let Request::NotAnInteger(line) = request else { return Flow::Close.into() };
        match line[0].to_ascii_lowercase() {
            b'i' => write(line, reply).into(),
            _ => Called::Needs(Repetition { line: line.into(), file: c"/dev/null".into() }),
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

    fn finish(self, file: io::Result<&[u8]>, reply: &mut Vec<u8>) -> Flow {
        assert_eq!(file.unwrap(), b"", "what is in /dev/null");
        write(&self.line, reply)
    }
}

/// What must come out.
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

/// As a callback model plays it that takes jobs on. `choices` says of the jobs under way which one
/// is done next, and when.
fn deferring(pieces: &[Vec<u8>], defer: Defer, choices: &[usize]) -> Vec<u8> {
    let now = Instant::now();
    let mut session = Shared(Repeat).session(Limits::default(), now, defer);
    let (mut pieces, mut choices) = (pieces.iter(), choices.iter().cycle());
    let (mut jobs, mut sent, mut out, mut ended) = (Vec::new(), Vec::new(), Vec::new(), false);
    loop {
        let choice = *choices.next().unwrap();
        let wants_input = !ended && session.wants_input();
        let mut flow = if wants_input && (choice % 2 == 0 || jobs.is_empty()) {
            match pieces.next() {
                Some(piece) => session.on_bytes(now, piece, &mut out),
                None => {
                    ended = true;
                    session.on_end(now, &mut out)
                }
            }
        } else {
            assert!(!jobs.is_empty(), "it waits for nothing");
            let (id, job): (_, Repetition) = jobs.swap_remove(choice % jobs.len());
            let slots = session.slots().expect("it has deferred one");
            slots.finish(id, |reply| job.finish(Ok(b""), reply));
            session.on_writable(now, &mut out)
        };
        while !out.is_empty() {
            assert!(out.len() < 1 << 20, "replies are bounded");
            sent.append(&mut out);
            if flow == Flow::Continue {
                flow = session.on_writable(now, &mut out);
            }
        }
        if flow == Flow::Close {
            return sent;
        }
        while let Some(slots) = session.slots()
            && let Some(job) = slots.next_job()
        {
            jobs.push(job);
        }
        assert!(jobs.len() <= 64, "jobs are bounded");
    }
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
    fn replies_keep_their_order(
        lines in proptest::collection::vec(line(), 0..200),
        partial in "[ij]?",
        cuts in proptest::collection::vec(1usize..700, 1..12),
        choices in proptest::collection::vec(any::<usize>(), 1..50),
    ) {
        let input = (lines.concat() + &partial).into_bytes();
        let expected = expected(&input);
        let pieces = cut(&input, &cuts);
        all_styles(Shared(Repeat), &pieces, &expected);
        for defer in [Defer::Nothing, Defer::Long, Defer::All] {
            let got = deferring(&pieces, defer, &choices);
            assert_eq!(got.escape_ascii().to_string(), expected.escape_ascii().to_string());
        }
    }
}

#[test]
fn one_that_waits_for_its_job_is_not_silent_and_its_input_is_bounded() {
    let limits = Limits { idle: Duration::from_secs(60), request: Duration::from_secs(10) };
    let start = Instant::now();
    let at = |s| start + Duration::from_secs(s);
    let mut session = Shared(Repeat).session(limits, start, Defer::All);
    let mut out = Vec::new();
    assert_eq!(session.on_bytes(at(1), b"j1\ni", &mut out), Flow::Continue);
    assert_eq!(session.on_tick(at(100)), Flow::Continue, "the silence is the server's");
    assert!(session.wants_input());
    session.on_bytes(at(100), &[b"1\n", &b"j1\n".repeat(100)[..]].concat(), &mut out);
    assert!(!session.wants_input());
    let mut jobs = Vec::new();
    while let Some(job) = session.slots().unwrap().next_job() {
        jobs.push(job);
    }
    assert_eq!((jobs.len(), out.len()), (64, 0));
    let (id, job) = jobs.remove(0);
    session.slots().unwrap().finish(id, |reply| job.finish(Ok(b""), reply));
    session.on_writable(at(101), &mut out);
    assert_eq!(out, b"j\ni\n");
    assert!(session.slots().unwrap().next_job().is_some(), "there is room for another one");
    // A job that is not of this connection.
    session.slots().unwrap().finish(id, |_| unreachable!());
}

#[test]
fn a_long_job_that_is_done_at_once_holds_up_no_reply_and_nobody_twice() {
    let mut session = Shared(Repeat).session(Limits::default(), Instant::now(), Defer::Nothing);
    let mut out = Vec::new();
    session.on_bytes(Instant::now(), b"s1\ns2\nj3\ns4\nj5\nj6\n", &mut out);
    let mut written = Vec::new();
    while !out.is_empty() {
        let text = String::from_utf8(std::mem::take(&mut out)).unwrap();
        written.push((text, session.had_its_turn()));
        session.on_writable(Instant::now(), &mut out);
    }
    let expected = [
        ("s\nss\n", false),
        ("jjj\n", true),
        ("ssss\n", false),
        ("jjjjj\n", true),
        ("jjjjjj\n", false), // nothing is left to do
    ];
    assert_eq!(written, expected.map(|(text, turn)| (text.to_owned(), turn)));
}

#[test]
fn jobs_are_wanted_until_their_connection_is_gone_or_ends() {
    let session = || Shared(Repeat).session(Limits::default(), Instant::now(), Defer::All);
    let mut out = Vec::new();
    let mut one = session();
    one.on_bytes(Instant::now(), b"j1\nj2\n", &mut out);
    let wanted = one.slots().unwrap().wanted();
    assert!(wanted.upgrade().is_some());
    drop(one);
    assert!(wanted.upgrade().is_none());
    let mut one = session();
    one.on_bytes(Instant::now(), b"J1\nj2\n", &mut out);
    let slots = one.slots().unwrap();
    let (wanted, (id, job)) = (slots.wanted(), slots.next_job().unwrap());
    slots.finish(id, |reply| job.finish(Ok(b""), reply));
    assert!(wanted.upgrade().is_some());
    assert_eq!(one.on_writable(Instant::now(), &mut out), Flow::Close);
    assert!(wanted.upgrade().is_none(), "the other reply is not sent");
}
