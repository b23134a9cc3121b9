//! From a workload file to the exchanges of a run.

use super::{
    conversation::Conversation,
    draw::{Drawer, Value},
    file::{Requests, WorkloadFile},
    line::{Expect, Lines, Step},
};
use crate::{
    http::Place,
    patterns::{Due, Patterns},
    script::{BYTES, Conversations, EXCHANGES, Script},
};
use rand::{SeedableRng, rngs::StdRng};

impl WorkloadFile {
    /// Seeded exchanges, whole conversations of them: as many as fit into [`EXCHANGES`] (of HTTP,
    /// fewer) and [`BYTES`], and at least one. `place`: who is asked, in HTTP. `echoed`: the reply to each is to
    /// be the request. Not closed.
    pub(super) fn compose(&self, seed: u64, place: Place<'_>, echoed: bool) -> Script {
        let mut drawer = Drawer::new(StdRng::seed_from_u64(seed), &self.lists);
        match &self.requests {
            Requests::Lines(lines) => lines.compose(&mut drawer, echoed),
            Requests::Http(http) => http.compose(&mut drawer, place, echoed),
        }
    }
}

/// Fills a script with whole conversations, chosen by their weight: as many as fit into `most`
/// exchanges and [`BYTES`], and at least one. `push` appends the exchange of a step; it is handed
/// what the conversation has captured so far.
pub(super) fn converse<S>(
    conversations: &[Conversation<S>],
    most: usize,
    script: &mut Script,
    drawer: &mut Drawer<'_>,
    mut push: impl FnMut(&S, &mut Script, &mut Vec<Value>, &mut Drawer<'_>),
) {
    let weights = conversations.iter().scan(0, |sum, conversation| {
        *sum += u64::from(conversation.weight);
        Some(*sum)
    });
    let weights: Vec<u64> = weights.collect();
    let all = weights.last().copied().unwrap_or(0);
    loop {
        let chosen = drawer.below(all);
        let chosen = weights.partition_point(|up_to| *up_to <= chosen);
        let conversation = &conversations[chosen];
        let is_full = script.pushed() + conversation.steps.len() > most;
        if is_full || script.bytes() > BYTES {
            return;
        }
        script.begin_conversation();
        let mut captures = Vec::new();
        for step in &conversation.steps {
            push(step, script, &mut captures, drawer);
        }
    }
}

/// Where conversations begin.
pub(super) fn lengths<S>(conversations: &[Conversation<S>]) -> Conversations {
    let mut lengths = conversations.iter().map(|one| one.steps.len() as u32);
    let first = lengths.next().unwrap_or(1);
    match lengths.all(|other| other == first) {
        true => Conversations::Each(first),
        false => Conversations::At(Vec::new()),
    }
}

impl Lines {
    fn compose(&self, drawer: &mut Drawer<'_>, echoed: bool) -> Script {
        // Where every reply is known to the byte, checking them is one comparison of memory.
        let patterns = (!echoed && !self.conversations.iter().all(is_exact))
            .then(|| Patterns::new(self.regexes.iter().cloned(), self.longest_reply));
        let mut script = Script::new(lengths(&self.conversations), patterns);
        let (mut request, mut reply) = (Vec::new(), Vec::new());
        converse(
            &self.conversations,
            EXCHANGES,
            &mut script,
            drawer,
            |step, script, captures, drawer| {
                request.clear();
                reply.clear();
                step.send.fill(&mut request, &[], captures, drawer);
                let due = match &step.expect {
                    Expect::Exact(template) => {
                        template.fill(&mut reply, &request, captures, drawer);
                        Due::Exact
                    }
                    Expect::Prefix(template) => {
                        template.fill(&mut reply, &request, captures, drawer);
                        Due::Prefix
                    }
                    Expect::Regex(n) => Due::Regex(*n),
                };
                request.push(b'\n');
                if echoed {
                    reply.clone_from(&request);
                } else if script.patterns().is_none() {
                    reply.push(b'\n');
                }
                script.push(&request, &reply, due);
            },
        );
        script
    }
}

fn is_exact(conversation: &Conversation<Step>) -> bool {
    conversation.steps.iter().all(|step| matches!(step.expect, Expect::Exact(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::HashSet, path::Path};

    fn script(text: &str) -> Script {
        let text = format!("protocol = 'line'\n{text}");
        let mut script =
            WorkloadFile::from_text(&text, "test").unwrap().compose(5, Place::default(), false);
        script.close(1).unwrap();
        script
    }

    /// The first `n` exchanges: request and reply, newlines included.
    fn first(n: u32, text: &str) -> Vec<(String, String)> {
        let script = script(text);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (0..n).map(|i| (text(script.request(i)), text(script.reply(i)))).collect()
    }

    fn example(name: &str) -> WorkloadFile {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
        WorkloadFile::read(&folder.join(name)).unwrap()
    }

    #[test]
    fn replies_are_computed_from_what_was_sent() {
        for (send, exact, check) in [
            (
                "{n=int:-9223372036854775808..18446744073709551615}",
                "{n*2}",
                (|sent, came| came == (sent.parse::<i128>().unwrap() * 2).to_string())
                    as fn(&str, &str) -> bool,
            ),
            ("{a=int:0..9} {b=int:0..9}", "{a*b-a+1}", |sent, came| {
                let digit = |at: usize| i32::from(sent.as_bytes()[at] - b'0');
                came == (digit(0) * digit(2) - digit(0) + 1).to_string()
            }),
            ("{s=alnum:5}", "{upper:s}{lower:s}{len:s}", |sent, came| {
                came == format!("{}{}5", sent.to_uppercase(), sent.to_lowercase())
            }),
            ("x{s=hex:0..20}", "{reverse:request} {request}", |sent, came| {
                came == format!("{} {sent}", sent.chars().rev().collect::<String>())
            }),
            ("{{{n=counter:7}}}", "{n-7}", |sent, came| {
                let n: u32 =
                    sent.strip_prefix('{').unwrap().strip_suffix('}').unwrap().parse().unwrap();
                came == (n - 7).to_string()
            }),
            ("{n=int:5..5}{m=n+1}", "{len:n} {m*10}", |sent, came| (sent, came) == ("56", "1 60")),
        ] {
            let exchanges = first(200, &format!("[[request]]\nsend='{send}'\nexact='{exact}'"));
            for (sent, came) in exchanges {
                let (sent, came) = (sent.strip_suffix('\n'), came.strip_suffix('\n'));
                assert!(check(sent.unwrap(), came.unwrap()), "{send}: {sent:?} {came:?}");
            }
        }
    }

    #[test]
    fn a_counter_gives_each_number_once_until_the_script_repeats() {
        let script = script("[[request]]\nsend='{counter:10}'\nexact=''");
        assert_eq!(script.count() as usize, EXCHANGES);
        assert_eq!(script.request(0), b"10\n");
        let distinct: HashSet<&[u8]> = (0..script.count()).map(|i| script.request(i)).collect();
        assert_eq!(distinct.len(), EXCHANGES);
    }

    #[test]
    fn lines_come_in_turn_or_at_random() {
        let lists = "[lines]\nletters = ['a', 'b', 'c']\n";
        let sent = |send: &str| {
            let text = format!("[[request]]\nsend='{send}'\nexact='{{request}}'\n{lists}");
            first(300, &text).into_iter().map(|(sent, _)| sent).collect::<Vec<_>>()
        };
        let in_turn = sent("{line:letters}");
        assert!(in_turn.chunks(3).all(|three| three == ["a\n", "b\n", "c\n"]));
        let random = sent("{random_line:letters}");
        let of = |letter: &str| random.iter().filter(|line| *line == letter).count();
        assert!(["a\n", "b\n", "c\n"].into_iter().all(|letter| of(letter) > 50));
        assert_ne!(random, in_turn);
    }

    #[test]
    fn requests_are_chosen_by_weight_and_conversations_stay_whole() {
        let script = script(
            "[[request]]\nweight=3\nsend='one'\nexact='ONE'\n[[request]]\nsteps=[\n\
             {send='two {n=int:0..9}', exact='TWO'}, {send='three', prefix='THREE {n}'}]",
        );
        let (mut at, mut ones, mut twos) = (0, 0, 0);
        while at < script.count() {
            assert_eq!(script.conversation_from(at), at);
            if script.request(at) == b"one\n" {
                (at, ones) = (at + 1, ones + 1);
                continue;
            }
            let sent = script.request(at).strip_suffix(b"\n").unwrap();
            let n = sent.strip_prefix(b"two ").unwrap();
            assert_eq!(script.request(at + 1), b"three\n");
            assert_eq!(script.reply(at + 1), [b"THREE ", n].concat());
            assert_eq!(script.conversation_from(at + 1), (at + 2) % script.count());
            (at, twos) = (at + 2, twos + 1);
        }
        let share = f64::from(ones) / f64::from(ones + twos);
        assert!((0.74..0.76).contains(&share), "{share} of the conversations");
    }

    #[test]
    fn long_lines_make_a_script_of_fewer_exchanges() {
        let line = "x".repeat(65_536);
        let lines = format!("[lines]\nlong = ['{line}']");
        let request = "[[request]]\nsend='{line:long}'\nexact='{request}'";
        let script = script(&format!("{request}\n{lines}"));
        assert!(script.bytes() < BYTES + (1 << 20), "{} bytes", script.bytes());
        assert_eq!(script.count(), 512);
    }

    #[test]
    fn the_text_alone_gives_the_same_script() {
        for name in ["double.toml", "dialogue.toml", "patterns.toml"] {
            let (file, mut bytes) = (example(name), Vec::new());
            let again = WorkloadFile::from_text(file.text(), file.name()).unwrap();
            for file in [&file, &again] {
                let mut script = file.compose(9, Place::default(), false);
                script.close(1).unwrap();
                let end = script.period();
                bytes.push((
                    script.requests(0, end.request).to_vec(),
                    script.replies(0, end.reply).to_vec(),
                ));
            }
            assert!(bytes[0] == bytes[1], "{name}: {}", file.text());
            assert_eq!(again.text(), file.text());
        }
    }

    #[test]
    fn only_replies_that_are_not_known_to_the_byte_are_looked_at_by_line() {
        let patterns = |name: &str, echoed| {
            example(name).compose(1, Place::default(), echoed).patterns().is_some()
        };
        assert!(!patterns("double.toml", false) && !patterns("dialogue.toml", false));
        assert!(patterns("patterns.toml", false) && !patterns("patterns.toml", true));
    }

    #[test]
    fn an_echo_is_asked_the_same_and_owes_the_same() {
        let file = example("patterns.toml");
        let (asked, mut echoed) =
            (file.compose(1, Place::default(), false), file.compose(1, Place::default(), true));
        echoed.close(1).unwrap();
        for i in 0..500 {
            assert_eq!(asked.request(i), echoed.request(i));
            assert_eq!(echoed.reply(i), echoed.request(i));
        }
    }
}
