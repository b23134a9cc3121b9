//! The line programs: both forms of `double`, and the dialogue.

use super::FAULTS;
use regatta_engine::{
    Flow, Never, Now, Sessions,
    simulator::{Expected, Random, Scenario, Visit, assert_finds, assert_holds},
};
use regatta_service::{Program, REPLY_FULL, ServiceProgram, by_hand, double};
use regatta_testkit::by_tier;

fn histories() -> u64 {
    by_tier(3_000, 34_000)
}

/// Maximum length of a line in bytes, and the reply to a longer one.
const LONGEST: usize = 1024;
const TOO_LONG: &[u8] = b"error: line longer than 1024 bytes\n";

/// The reply to a line, given without its line end. `None` closes the connection.
type Reply = fn(&mut Memory, &[u8]) -> Option<Vec<u8>>;

/// The state of a dialogue.
#[derive(Default)]
struct Memory {
    first: Option<Vec<u8>>,
}

/// The double of a line, computed with 128-bit integers.
fn double_of(_: &mut Memory, line: &[u8]) -> Option<Vec<u8>> {
    if line == b"end" {
        return None;
    }
    let text = String::from_utf8_lossy(line);
    let digits = text.strip_prefix(['+', '-']).unwrap_or(&text);
    let number = text.parse::<i128>().ok().filter(|n| {
        let fits = (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(n);
        fits && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    Some(match number {
        Some(number) => format!("{}\n", 2 * number).into_bytes(),
        None => {
            let shown = line.iter().take(32).map(|byte| match byte {
                b'\\' => "\\\\".to_owned(),
                0x20..=0x7e => char::from(*byte).to_string(),
                byte => format!("\\x{byte:02x}"),
            });
            format!("error: not an integer: {}\n", shown.collect::<String>()).into_bytes()
        }
    })
}

/// The dialogue: a first name, a last name, a greeting.
fn dialogue(memory: &mut Memory, line: &[u8]) -> Option<Vec<u8>> {
    if line.is_empty() {
        return Some(b"error: a name is empty\n".to_vec());
    }
    match memory.first.take() {
        None if line == b"end" => None,
        None => {
            memory.first = Some(line.to_vec());
            Some(b"last name?\n".to_vec())
        }
        Some(first) => Some([b"hello ", &first[..], b" ", line, b"\n"].concat()),
    }
}

/// A line program. `GROWTH` is the maximum output per byte of input, for programs that do not write
/// replies in between.
struct Lines<P, const GROWTH: usize> {
    program: P,
    reply: Reply,
    memories: Vec<Memory>,
}

impl<P, const GROWTH: usize> Lines<P, GROWTH> {
    fn new(program: P, reply: Reply) -> Self {
        Lines { program, reply, memories: Vec::new() }
    }
}

impl<P: Program, const GROWTH: usize> Scenario for Lines<P, GROWTH>
where
    P::Session: regatta_engine::Session<Job = Never>,
{
    type Engine = Sessions<P>;
    const NAME: &'static str = "lines";
    const NEVER: &[Visit] = &[
        Visit::StateConnecting,
        Visit::EndPart,
        Visit::EndAborted,
        Visit::EndConnect,
        Visit::EndGone,
        Visit::TimerConnect,
        Visit::TimerAlarm,
        Visit::TimerEngine,
        Visit::JobDone,
        Visit::JobLate,
        Visit::Letter,
    ];
    const RARE: &[u64] = &[3_338, 3_360, 10_067];
    const PENDING: usize = 64 * 1024 + REPLY_FULL + 2 * LONGEST;
    const GROWTH: usize = GROWTH;
    const HELD: usize = LONGEST + 2;

    fn begin(&mut self, _: &mut Random) -> usize {
        self.memories.clear();
        1
    }

    fn engine(&mut self, _: usize) -> Sessions<P> {
        Sessions::new(self.program.clone())
    }

    fn script(&mut self, who: usize, random: &mut Random, input: &mut Vec<u8>) {
        self.memories.truncate(who);
        self.memories.push(Memory::default());
        let lines = match random.weighted(&[300, 695, 5]) {
            0 => random.below(4),
            1 => random.magnitude(1, 60) as usize,
            _ => random.magnitude(1 << 12, 1 << 14) as usize,
        };
        let odd = random.pick(&[0, 10, 200]);
        for _ in 0..lines {
            line(random, odd, input);
        }
    }

    fn handed(&mut self, who: usize, now: Now, bytes: &[u8], all: &mut [Expected]) {
        let expected = &mut all[who];
        if expected.closes {
            return;
        }
        expected.input.extend_from_slice(bytes);
        let before = expected.taken;
        loop {
            let rest = &expected.input[expected.taken..];
            let end = rest.iter().position(|byte| *byte == b'\n');
            let line = &rest[..end.unwrap_or(rest.len())];
            // The line end may be `\r\n`, with the `\n` still missing.
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.len() > LONGEST {
                expected.output.extend_from_slice(TOO_LONG);
                expected.closes = true;
                break;
            }
            let Some(end) = end else { break };
            match (self.reply)(&mut self.memories[who], line) {
                Some(reply) => expected.output.extend_from_slice(&reply),
                None => expected.closes = true,
            }
            expected.taken += end + 1;
            expected.marks.push((expected.taken, expected.output.len()));
            if expected.closes {
                break;
            }
        }
        expected.note_start(before, now);
    }

    fn work(&mut self, job: Never, _: Now, _: &mut Vec<u8>) -> Flow {
        match job {}
    }
}

fn line(random: &mut Random, odd: usize, input: &mut Vec<u8>) {
    if !random.chance(odd) {
        let sign = random.pick(&["", "", "-", "+"]);
        let number = random.magnitude(0, u64::MAX / 2);
        input.extend_from_slice(format!("{sign}{number}\n").as_bytes());
        return;
    }
    match random.below(9) {
        0 => input.extend_from_slice(b"end\n"),
        1 => input.extend_from_slice(b"\n"),
        2 => input.extend_from_slice(b"7\r\n"),
        3 => input.extend_from_slice(b"18446744073709551616\n-9223372036854775808\r\n"),
        4 => input.extend_from_slice(b"\\ \xff\x00\n"),
        5 => {
            let length = LONGEST - 3 + random.below(6);
            input.resize(input.len() + length, b'9');
            input.extend_from_slice(random.pick(&[&b"\n"[..], b"\r\n"]));
        }
        _ => input.extend_from_slice(b"Grace\nHopper\n"),
    }
}

type SharedDouble = Lines<ServiceProgram<double::Double>, 0>;

fn shared_double() -> SharedDouble {
    Lines::new(ServiceProgram(double::Double), double_of)
}

#[test]
fn double_matches_its_model() {
    assert_holds(shared_double, histories());
}

#[test]
fn double_by_hand_matches_its_model() {
    assert_holds(|| Lines::<_, 16>::new(by_hand::Double, double_of), histories());
}

#[test]
fn dialogue_by_hand_matches_its_model() {
    assert_holds(|| Lines::<_, 16>::new(by_hand::Dialogue, dialogue), histories());
}

#[test]
fn planted_faults_are_found() {
    for fault in FAULTS {
        assert_finds(shared_double, fault, 1000);
    }
}
