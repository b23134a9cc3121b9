//! Sessions that post to each other over two cores. They join and leave, say things, set alarms,
//! switch from lines to masked frames, take a long input without keeping it, and are slow consumers.

use regatta_engine::{
    Context, Flow, Never, Now, Post, Push, Session, Sessions, Start,
    simulator::{Expected, Fault, Random, Scenario, Visit, assert_finds, assert_holds},
};
use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

const HISTORIES: u64 = 30_000;

/// Pending output beyond which a member is a slow consumer.
const BACKLOG: usize = 3000;
/// Bytes of the longest command, and of the longest output that one asks for.
const LONGEST: usize = 255;
const BLOB: usize = 9999;

// ---- the session ----

/// What is said, as its listeners hear it.
#[derive(Clone)]
struct Said(Arc<[u8]>);

impl Push for Said {}

#[derive(Default)]
struct Chat {
    /// The beginning of a command.
    held: Vec<u8>,
    /// Commands come in frames: a length, a mask, and so many masked bytes.
    framed: bool,
    /// Bytes of a stream that are to come, and the sum of those that came.
    stream: Option<(usize, u64)>,
    alarm: Option<Instant>,
    /// It takes no input until the alarm.
    pauses: bool,
    inside: Option<Instant>,
}

impl Chat {
    /// Takes what can be taken of the front of `bytes`. Returns how much that is.
    fn take(&mut self, context: &mut Context<'_, Self>, bytes: &mut [u8]) -> (usize, Flow) {
        let (mut taken, all) = (0, bytes.len());
        loop {
            let rest = &mut bytes[taken..];
            if let Some((left, sum)) = &mut self.stream {
                let some = rest.len().min(*left);
                *sum += rest[..some].iter().map(|byte| u64::from(*byte)).sum::<u64>();
                *left -= some;
                taken += some;
                if *left > 0 {
                    return (taken, Flow::Continue);
                }
                context.out.extend_from_slice(format!("sum {sum}\n").as_bytes());
                self.stream = None;
                continue;
            }
            let (command, whole) = if self.framed {
                let [length, mask, rest @ ..] = rest else { return (taken, Flow::Continue) };
                let length = usize::from(*length);
                let Some(payload) = rest.get_mut(..length) else { return (taken, Flow::Continue) };
                payload.iter_mut().for_each(|byte| *byte ^= *mask);
                (&*payload, length + 2)
            } else {
                let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                    return (taken, Flow::Continue);
                };
                (&rest[..end], end + 1)
            };
            taken += whole;
            let command = std::str::from_utf8(command).unwrap_or("");
            let (verb, argument) = command.split_once(' ').unwrap_or((command, ""));
            let number = argument.parse().unwrap_or(0);
            match verb {
                "join" => context.post(Post::Join),
                "leave" => context.post(Post::Leave),
                "say" => {
                    let said = format!("p {argument}\n").into_bytes();
                    context.post(Post::Others(Said(said.into())));
                }
                "blob" => context.out.resize(context.out.len() + number, b'b'),
                "alarm" | "pause" => {
                    let after = Duration::from_millis(number as u64);
                    self.pauses |= verb == "pause";
                    self.alarm = Some(context.now.instant + after);
                }
                "stream" => self.stream = Some((number, 0)),
                "upgrade" => self.framed = true,
                "part" if taken == all => return (taken, Flow::Part),
                "bye" | "part" => {
                    context.out.extend_from_slice(b"bye\n");
                    return (taken, Flow::Close);
                }
                _ => {}
            }
            context.out.extend_from_slice(b"ok\n");
        }
    }
}

impl Session for Chat {
    type Job = Never;
    type Push = Said;
    type Local = ();
    const BACKLOG: usize = BACKLOG;

    fn on_open(&mut self, context: &mut Context<'_, Self>) -> Flow {
        context.out.extend_from_slice(b"hello\n");
        Flow::Continue
    }

    fn on_bytes(&mut self, context: &mut Context<'_, Self>, bytes: &mut [u8]) -> Flow {
        let mut held = std::mem::take(&mut self.held);
        let (taken, flow) = if held.is_empty() {
            let (taken, flow) = self.take(context, bytes);
            self.held.extend_from_slice(&bytes[taken..]);
            (taken, flow)
        } else {
            held.extend_from_slice(bytes);
            let (taken, flow) = self.take(context, &mut held);
            held.drain(..taken);
            self.held = held;
            (taken, flow)
        };
        if taken > 0 || self.held.is_empty() {
            self.inside = None;
        }
        if !self.held.is_empty() {
            self.inside.get_or_insert(context.now.instant);
        }
        flow
    }

    fn on_end(&mut self, context: &mut Context<'_, Self>) -> Flow {
        context.out.extend_from_slice(b"over\n");
        Flow::Close
    }

    fn on_push(&mut self, _: Now, push: &Said, out: &mut Vec<u8>) -> Flow {
        out.extend_from_slice(&push.0);
        if push.0.ends_with(b"!\n") { Flow::Close } else { Flow::Continue }
    }

    fn on_alarm(&mut self, context: &mut Context<'_, Self>) -> Flow {
        (self.alarm, self.pauses) = (None, false);
        context.out.extend_from_slice(b"alarm\n");
        Flow::Continue
    }

    fn wants_input(&self) -> bool {
        !self.pauses
    }

    fn inside(&self) -> Option<Instant> {
        self.inside
    }

    fn alarm(&self) -> Option<Instant> {
        self.alarm
    }
}

struct Chats;

impl Start for Chats {
    type Session = Chat;

    fn session(&self, _: Now) -> Chat {
        Chat::default()
    }
}

// ---- the model ----

/// What the model knows of a client.
#[derive(Clone, Default)]
struct Member {
    core: usize,
    joined: bool,
    left: bool,
    framed: bool,
    /// Bytes of the stream that it is sending.
    stream: Option<usize>,
    alarm: Option<Instant>,
}

#[derive(Default)]
struct Model {
    members: Vec<Member>,
    said: usize,
    /// Letters under way, of each core to each.
    letters: Vec<Vec<VecDeque<Vec<u8>>>>,
    wrong: Option<String>,
}

impl Model {
    /// A member of this core says something.
    fn say(&mut self, core: usize, from: Option<usize>, text: &[u8], all: &mut [Expected]) {
        for (who, member) in self.members.iter_mut().enumerate() {
            let expected = &mut all[who];
            if member.core != core || !member.joined || member.left || Some(who) == from {
                continue;
            }
            expected.may_abort = true;
            if !expected.closes {
                expected.output.extend_from_slice(text);
                expected.closes = text.ends_with(b"!\n");
            }
        }
    }
}

/// The command at the front of what came, and the bytes that it takes with what belongs to it.
fn command(framed: bool, input: &[u8]) -> Option<(String, usize)> {
    if framed {
        let (length, mask) = (usize::from(*input.first()?), *input.get(1)?);
        let payload = input.get(2..2 + length)?;
        let text = payload.iter().map(|byte| char::from(byte ^ mask)).collect();
        return Some((text, 2 + length));
    }
    let end = input.iter().position(|byte| *byte == b'\n')?;
    Some((String::from_utf8_lossy(&input[..end]).into_owned(), end + 1))
}

impl Scenario for Model {
    type Engine = Sessions<Chats>;
    const NAME: &'static str = "chat";
    const NEVER: &[Visit] = &[
        Visit::StateConnecting,
        Visit::EndConnect,
        Visit::TimerConnect,
        Visit::TimerEngine,
        Visit::JobDone,
        Visit::JobLate,
    ];
    /// What may be pending before a push, the push, and the replies to a read.
    const PENDING: usize = 64 * 1024 + 4 * BLOB;
    const GROWTH: usize = 1200;
    const HELD: usize = LONGEST + 2;
    const BACKLOG: usize = BACKLOG + 1;

    fn begin(&mut self, random: &mut Random) -> usize {
        self.members.clear();
        (self.said, self.wrong) = (0, None);
        let cores = random.pick(&[1, 2, 2, 3]);
        self.letters = vec![vec![VecDeque::new(); cores]; cores];
        cores
    }

    fn engine(&mut self, _: usize) -> Sessions<Chats> {
        Sessions::new(Chats)
    }

    fn script(&mut self, who: usize, random: &mut Random, input: &mut Vec<u8>) {
        self.members.resize(who + 1, Member::default());
        let mut mask = None;
        let add = |mask: Option<u8>, text: &str, input: &mut Vec<u8>| match mask {
            None => input.extend_from_slice(format!("{text}\n").as_bytes()),
            Some(mask) => {
                input.extend_from_slice(&[text.len() as u8, mask]);
                input.extend(text.bytes().map(|byte| byte ^ mask));
            }
        };
        if random.chance(900) {
            add(mask, "join", input);
        }
        let ends = random.pick(&[0, 0, 40]);
        for _ in 0..random.magnitude(1, 30) {
            mask = mask.map(|_| random.below(256) as u8);
            match random.weighted(&[50, 8, 5, 10, 10, 4, 4, 9]) {
                0 => {
                    self.said += 1;
                    let loud = if random.chance(3) { "!" } else { "" };
                    add(mask, &format!("say {who}.{}{loud}", self.said), input);
                }
                1 => add(mask, "join", input),
                2 => add(mask, "leave", input),
                3 => {
                    let verb = random.pick(&["alarm", "alarm", "alarm", "pause"]);
                    add(mask, &format!("{verb} {}", random.magnitude(0, 4000)), input);
                }
                4 => add(mask, &format!("blob {}", random.magnitude(1, BLOB as u64)), input),
                5 => {
                    let bytes = random.magnitude(0, 3000) as usize;
                    add(mask, &format!("stream {bytes}"), input);
                    for byte in 0..bytes {
                        input.push(byte as u8);
                    }
                }
                6 => {
                    add(mask, "upgrade", input);
                    mask = Some(0);
                }
                _ if random.chance(ends) => add(mask, random.pick(&["bye", "part"]), input),
                _ => add(mask, "nothing", input),
            }
        }
    }

    fn opened(&mut self, who: usize, core: usize, _: Now, all: &mut [Expected]) {
        self.members[who].core = core;
        all[who].output.extend_from_slice(b"hello\n");
    }

    fn handed(&mut self, who: usize, now: Now, bytes: &[u8], all: &mut [Expected]) {
        let (member, expected) = (&mut self.members[who], &mut all[who]);
        if expected.closes {
            return;
        }
        expected.input.extend_from_slice(bytes);
        let before = expected.taken;
        let streamed = member.stream.is_some();
        let mut posts: Vec<(String, String)> = Vec::new();
        while !expected.closes {
            let rest = &expected.input[expected.taken..];
            if let Some(bytes) = member.stream {
                let Some(stream) = rest.get(..bytes) else { break };
                let sum: u64 = stream.iter().map(|byte| u64::from(*byte)).sum();
                expected.output.extend_from_slice(format!("sum {sum}\n").as_bytes());
                expected.taken += bytes;
                member.stream = None;
                continue;
            }
            let Some((command, whole)) = command(member.framed, rest) else { break };
            expected.taken += whole;
            let (verb, argument) = command.split_once(' ').unwrap_or((&command, ""));
            match verb {
                "part" if expected.taken == expected.input.len() => expected.closes = true,
                "part" | "bye" => {
                    expected.output.extend_from_slice(b"bye\n");
                    expected.closes = true;
                }
                "blob" => expected.output.extend(vec![b'b'; argument.parse().unwrap()]),
                "alarm" | "pause" => {
                    expected.waits |= verb == "pause";
                    let after = Duration::from_millis(argument.parse().unwrap());
                    member.alarm = Some(now.instant + after);
                }
                "upgrade" => member.framed = true,
                "stream" => member.stream = Some(argument.parse().unwrap()),
                "join" | "leave" | "say" => posts.push((verb.into(), argument.into())),
                _ => {}
            }
            if !expected.closes {
                expected.output.extend_from_slice(b"ok\n");
            }
        }
        // A stream is not kept.
        let taken = if member.stream.is_some() { expected.input.len() } else { expected.taken };
        expected.marks.push((taken, expected.output.len()));
        if taken == expected.input.len() {
            expected.inside = None;
        } else if streamed || expected.taken > before {
            expected.inside = Some(now.instant);
        } else {
            expected.inside.get_or_insert(now.instant);
        }
        // The others hear it in this order.
        for (verb, argument) in posts {
            match verb.as_str() {
                "join" => self.members[who].joined = true,
                "leave" => self.members[who].joined = false,
                _ => {
                    let (core, text) = (self.members[who].core, format!("p {argument}\n"));
                    self.say(core, Some(who), text.as_bytes(), all);
                    for (to, letters) in self.letters[core].iter_mut().enumerate() {
                        if to != core {
                            letters.push_back(text.clone().into_bytes());
                        }
                    }
                }
            }
        }
    }

    fn ended(&mut self, who: usize, _: Now, all: &mut [Expected]) {
        if !all[who].closes {
            all[who].output.extend_from_slice(b"over\n");
            self.members[who].left = true;
        }
    }

    fn left(&mut self, who: usize, _: &mut [Expected]) {
        self.members[who].left = true;
    }

    fn heard(&mut self, core: usize, letter: &Said, _: Now, all: &mut [Expected]) {
        let mut from = self.letters.iter_mut().map(|to| &mut to[core]);
        // Each core's come in their order.
        match from.find(|letters| letters.front().is_some_and(|first| first[..] == *letter.0)) {
            Some(letters) => drop(letters.pop_front()),
            None => {
                let letter = letter.0.escape_ascii();
                self.wrong = Some(format!("core {core} hears \"{letter}\" out of its order"));
            }
        }
        self.say(core, None, &letter.0, all);
    }

    fn over(&mut self) -> Result<(), String> {
        let mut under_way = self.letters.iter().flatten().flatten();
        match (self.wrong.take(), under_way.next()) {
            (Some(wrong), _) => Err(wrong),
            (None, Some(letter)) => Err(format!("\"{}\" was never heard", letter.escape_ascii())),
            (None, None) => Ok(()),
        }
    }

    fn ticked(&mut self, core: usize, now: Now, all: &mut [Expected]) {
        for (who, member) in self.members.iter_mut().enumerate() {
            let rings = member.alarm.is_some_and(|at| at <= now.instant);
            if member.core == core && !member.left && !all[who].closes && rings {
                member.alarm = None;
                all[who].output.extend_from_slice(b"alarm\n");
            }
        }
    }

    fn turned(&mut self, core: usize, now: Now, all: &mut [Expected]) -> Result<(), String> {
        for (who, member) in self.members.iter().enumerate() {
            let rings = member.alarm.is_some_and(|at| at <= now.instant);
            if member.core == core && !member.left && !all[who].closes && rings {
                return Err(format!("{who}: the alarm is late"));
            }
        }
        Ok(())
    }

    fn work(&mut self, job: Never, _: Now, _: &mut Vec<u8>) -> Flow {
        match job {}
    }
}

#[test]
fn chat_holds() {
    assert_holds(Model::default, HISTORIES);
}

#[test]
fn planted_faults_are_found() {
    for fault in [
        Fault::LostByte,
        Fault::DoubledByte,
        Fault::ReplyAfterTheEnd,
        Fault::NeverCloses,
        Fault::MissedTimer,
        Fault::LostLetter,
        Fault::LostChange,
        Fault::LostInputAtStop,
    ] {
        assert_finds(Model::default, fault, 3000);
    }
}
