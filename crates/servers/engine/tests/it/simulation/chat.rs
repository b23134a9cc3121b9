//! Sessions that post to each other over one to three cores. They join and leave, post messages,
//! count the recipients, set alarms, switch from lines to masked frames, take a long input without
//! buffering it, and are slow consumers.

mod session;

use self::session::{Chats, Said};
use regatta_engine::{
    Flow, Letter, LetterDecoder, Never, Now, Sessions,
    simulator::{Expected, Fault, Random, Scenario, Visit, assert_finds, assert_holds},
};
use regatta_testkit::by_tier;
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

fn histories() -> u64 {
    by_tier(5_000, 30_000)
}

/// Bytes of pending output above which a push cuts a member: it is a slow consumer.
const BACKLOG: usize = 3000;
/// Maximum size of a command, and of the output that one requests, in bytes.
const LONGEST: usize = 255;
const BLOB: usize = 9999;

/// What the model knows about a client.
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

/// A letter, as the model has it.
#[derive(Clone, Debug, PartialEq)]
enum Mail {
    Said(Vec<u8>),
    /// The sending core counts the recipients.
    Counted(Vec<u8>, Count),
}

/// A count of a core, by its number there, for this member and its ticket.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Count {
    core: usize,
    number: u64,
    who: usize,
    ticket: usize,
}

#[derive(Default)]
struct Model {
    members: Vec<Member>,
    said: usize,
    /// Selects where letters are cut.
    carried: usize,
    /// Letters in flight, from each core to each other.
    letters: Vec<Vec<VecDeque<Mail>>>,
    /// Answers to counts that each core has not received. They name the core that counts, but not
    /// the one that answers.
    answers: Vec<Vec<Count>>,
    /// Counts of each core so far.
    counted: Vec<u64>,
    /// The counts that are incomplete, and the number of cores that have not answered.
    counts: Vec<(Count, usize)>,
    wrong: Option<String>,
}

impl Model {
    /// A core posts a letter to all others.
    fn post(&mut self, core: usize, mail: &Mail) {
        for (to, letters) in self.letters[core].iter_mut().enumerate() {
            if to != core {
                letters.push_back(mail.clone());
            }
        }
    }

    /// A core receives a letter. Returns it and its sender. It is the next letter of that sender.
    fn take(&mut self, core: usize, is_it: impl Fn(usize, &Mail) -> bool) -> Option<(usize, Mail)> {
        let mut boxes = self.letters.iter_mut().map(|to| &mut to[core]).enumerate();
        boxes.find_map(|(from, letters)| {
            letters.pop_front_if(|first| is_it(from, first)).map(|mail| (from, mail))
        })
    }

    /// A core receives an answer to a count, possibly of its own.
    fn answered(&mut self, core: usize, count: Count, all: &mut [Expected]) {
        if count.core != core {
            return;
        }
        let at = self.counts.iter().position(|(one, _)| *one == count);
        let at = at.expect("a count is complete once");
        self.counts[at].1 -= 1;
        if self.counts[at].1 == 0 {
            self.counts.swap_remove(at);
            self.queued(count.who, count.ticket, all);
        }
    }

    /// All cores have answered.
    fn queued(&mut self, who: usize, ticket: usize, all: &mut [Expected]) {
        if !self.members[who].left && !all[who].closes {
            all[who].output.extend_from_slice(format!("queued {ticket}\n").as_bytes());
        }
    }

    /// The members of this core receive a message.
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

/// Returns the first command in the input, and its total size in bytes.
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
    /// The output that may be pending before a push, the push, and the replies to one read.
    const PENDING: usize = 64 * 1024 + 4 * BLOB;
    const GROWTH: usize = 1200;
    const HELD: usize = LONGEST + 2;
    const BACKLOG: usize = BACKLOG + 1;
    const DRAINS: bool = true;

    fn begin(&mut self, random: &mut Random) -> usize {
        self.members.clear();
        (self.said, self.carried, self.wrong) = (0, 0, None);
        self.counts.clear();
        let cores = random.pick(&[1, 2, 2, 3]);
        self.counted = vec![0; cores];
        self.answers = vec![Vec::new(); cores];
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
            match random.weighted(&[40, 8, 5, 10, 10, 4, 4, 9, 10]) {
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
                8 => {
                    self.said += 1;
                    add(mask, &format!("count {}", self.said), input);
                }
                _ if random.chance(ends) => add(mask, random.pick(&["bye", "part"]), input),
                _ => add(mask, "nothing", input),
            }
        }
    }

    fn opened(&mut self, who: usize, core: usize, _: Now, _: &mut [Expected]) {
        self.members[who].core = core;
    }

    #[expect(clippy::too_many_lines, reason = "one case for each frame")]
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
                "join" | "leave" | "say" | "count" => posts.push((verb.into(), argument.into())),
                _ => {}
            }
            if !expected.closes {
                expected.output.extend_from_slice(b"ok\n");
            }
        }
        // A stream is not buffered.
        let taken = if member.stream.is_some() { expected.input.len() } else { expected.taken };
        expected.marks.push((taken, expected.output.len()));
        if taken == expected.input.len() {
            expected.inside = None;
        } else if streamed || expected.taken > before {
            expected.inside = Some(now.instant);
        } else {
            expected.inside.get_or_insert(now.instant);
        }
        // The others receive the posts in this order.
        for (verb, argument) in posts {
            match verb.as_str() {
                "join" => self.members[who].joined = true,
                "leave" => self.members[who].joined = false,
                _ => {
                    let (core, text) = (self.members[who].core, format!("p {argument}\n"));
                    self.say(core, Some(who), text.as_bytes(), all);
                    if verb == "say" {
                        self.post(core, &Mail::Said(text.into_bytes()));
                        continue;
                    }
                    let ticket = argument.parse().unwrap();
                    let others = self.letters.len() - 1;
                    if others == 0 {
                        self.queued(who, ticket, all);
                    } else {
                        self.counted[core] += 1;
                        let count = Count { core, number: self.counted[core], who, ticket };
                        self.counts.push((count, others));
                        self.post(core, &Mail::Counted(text.into_bytes(), count));
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

    fn retired(&mut self, who: usize, now: Now, all: &mut [Expected]) {
        let (member, expected) = (&mut self.members[who], &mut all[who]);
        if member.alarm.take_if(|at| *at <= now.instant).is_some() {
            expected.output.extend_from_slice(b"alarm\n");
        }
        expected.output.extend_from_slice(b"retired\n");
        expected.closes = true;
    }

    fn left(&mut self, who: usize, _: &mut [Expected]) {
        self.members[who].left = true;
    }

    /// Encodes, cuts and decodes the letter, as between processes.
    fn carried(&mut self, letter: Letter<Said>) -> Letter<Said> {
        let (mut bytes, mut letters) = (Vec::new(), Vec::new());
        letter.write(&mut bytes);
        self.carried = self.carried.wrapping_mul(5).wrapping_add(3);
        let (front, rest) = bytes.split_at(self.carried % (bytes.len() + 1));
        let mut decoder = LetterDecoder::default();
        let whole = decoder.decode(front, &mut letters).and(decoder.decode(rest, &mut letters));
        assert_eq!((whole, letters.len()), (Ok(()), 1));
        letters.remove(0)
    }

    fn heard(&mut self, core: usize, letter: &Letter<Said>, _: Now, all: &mut [Expected]) {
        if let Letter::Queued { to, count, .. } = letter {
            let is_it = |one: &Count| (one.core, one.number) == (*to as usize, *count);
            match self.answers[core].iter().position(is_it) {
                Some(at) => {
                    let count = self.answers[core].swap_remove(at);
                    self.answered(core, count, all);
                }
                None => {
                    self.wrong = Some(format!("core {core} receives an answer that no core sent"))
                }
            }
            return;
        }
        // The letters of each core arrive in order.
        let mail = self.take(core, |own, mail| match (letter, mail) {
            (Letter::Push(_, said), Mail::Said(text)) => *said.0 == text[..],
            (Letter::Counted { push, from, count, .. }, Mail::Counted(text, own_count)) => {
                let is_it = (*from as usize, *count) == (own, own_count.number);
                is_it && *push.0 == text[..]
            }
            _ => false,
        });
        match mail {
            None => {
                let letter = match letter {
                    Letter::Push(_, said) | Letter::Counted { push: said, .. } => {
                        said.0.escape_ascii().to_string()
                    }
                    _ => "of another kind".to_owned(),
                };
                self.wrong = Some(format!("core {core} receives \"{letter}\" out of order"));
            }
            Some((_, Mail::Said(text))) => self.say(core, None, &text, all),
            Some((_, Mail::Counted(text, count))) => {
                self.say(core, None, &text, all);
                let others =
                    self.answers.iter_mut().enumerate().filter(|(other, _)| *other != core);
                others.for_each(|(_, answers)| answers.push(count));
            }
        }
    }

    fn over(&mut self) -> Result<(), String> {
        let mut in_flight = self.letters.iter().flatten().flatten();
        match (self.wrong.take(), in_flight.next()) {
            (Some(wrong), _) => Err(wrong),
            (None, Some(letter)) => Err(format!("{letter:?} was never received")),
            (None, None) if !self.counts.is_empty() => Err("a count was never completed".into()),
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
fn sessions_that_post_hold_in_the_simulator() {
    assert_holds(Model::default, histories());
}

#[test]
fn injected_faults_are_detected() {
    for fault in [
        Fault::LostByte,
        Fault::DoubledByte,
        Fault::ReplyAfterTheEnd,
        Fault::NeverCloses,
        Fault::MissedTimer,
        Fault::LostLetter,
        Fault::SwappedLetters,
        Fault::LostChange,
        Fault::LostInputAtStop,
    ] {
        assert_finds(Model::default, fault, 3000);
    }
}
