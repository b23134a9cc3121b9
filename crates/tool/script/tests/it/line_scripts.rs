//! The compiled scripts of workload files of lines.

use regatta_script::{CompileOptions, Compiled, Destination, Workload};
use std::{collections::HashSet, path::Path};

/// Number of exchanges in a script of short lines.
const EXCHANGES: usize = 1 << 18;

fn compile(workload: &Workload, seed: u64) -> Compiled {
    workload
        .compile(&CompileOptions {
            seed,
            pipeline: 1,
            place: Destination::default(),
            ..CompileOptions::default()
        })
        .unwrap()
}

fn compiled(text: &str) -> Compiled {
    let text = format!("protocol = 'line'\n{text}");
    compile(&Workload::from_text(&text, "test").unwrap(), 5)
}

/// The first `n` exchanges: request and reply, newlines included.
fn first(n: u32, text: &str) -> Vec<(String, String)> {
    let compiled = compiled(text);
    let script = compiled.script();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (0..n).map(|i| (text(script.request(i)), text(script.reply(i)))).collect()
}

fn example(name: &str) -> Workload {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../workloads");
    Workload::read(&folder.join(name)).unwrap()
}

#[test]
fn computes_replies_from_requests() {
    for (send, exact, check) in [
        (
            "{n=int:-9223372036854775808..18446744073709551615}",
            "{n*2}",
            (|sent, reply| reply == (sent.parse::<i128>().unwrap() * 2).to_string())
                as fn(&str, &str) -> bool,
        ),
        ("{a=int:0..9} {b=int:0..9}", "{a*b-a+1}", |sent, reply| {
            let digit = |at: usize| i32::from(sent.as_bytes()[at] - b'0');
            reply == (digit(0) * digit(2) - digit(0) + 1).to_string()
        }),
        ("{s=alnum:5}", "{upper:s}{lower:s}{len:s}", |sent, reply| {
            reply == format!("{}{}5", sent.to_uppercase(), sent.to_lowercase())
        }),
        ("x{s=hex:0..20}", "{reverse:request} {request}", |sent, reply| {
            reply == format!("{} {sent}", sent.chars().rev().collect::<String>())
        }),
        ("{{{n=counter:7}}}", "{n-7}", |sent, reply| {
            let n: u32 =
                sent.strip_prefix('{').unwrap().strip_suffix('}').unwrap().parse().unwrap();
            reply == (n - 7).to_string()
        }),
        ("{n=int:5..5}{m=n+1}", "{len:n} {m*10}", |sent, reply| (sent, reply) == ("56", "1 60")),
    ] {
        let exchanges = first(200, &format!("[[request]]\nsend='{send}'\nexact='{exact}'"));
        for (sent, reply) in exchanges {
            let (sent, reply) = (sent.strip_suffix('\n'), reply.strip_suffix('\n'));
            assert!(check(sent.unwrap(), reply.unwrap()), "{send}: {sent:?} {reply:?}");
        }
    }
}

#[test]
fn a_counter_does_not_repeat_within_a_script() {
    let compiled = compiled("[[request]]\nsend='{counter:10}'\nexact=''");
    let script = compiled.script();
    assert_eq!(script.count() as usize, EXCHANGES);
    assert_eq!(script.request(0), b"10\n");
    let distinct: HashSet<&[u8]> = (0..script.count()).map(|i| script.request(i)).collect();
    assert_eq!(distinct.len(), EXCHANGES);
}

#[test]
fn draws_lines_in_turn_or_at_random() {
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
fn chooses_requests_by_weight_and_keeps_conversations_whole() {
    let compiled = compiled(
        "[[request]]\nweight=3\nsend='one'\nexact='ONE'\n[[request]]\nsteps=[\n\
         {send='two {n=int:0..9}', exact='TWO'}, {send='three', prefix='THREE {n}'}]",
    );
    let script = compiled.script();
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
fn a_script_of_long_lines_has_fewer_exchanges() {
    let line = "x".repeat(65_536);
    let lines = format!("[lines]\nlong = ['{line}']");
    let request = "[[request]]\nsend='{line:long}'\nexact='{request}'";
    let compiled = compiled(&format!("{request}\n{lines}"));
    let script = compiled.script();
    assert!(script.bytes() < (64 << 20) + (1 << 20), "{} bytes", script.bytes());
    assert_eq!(script.count(), 512);
}

#[test]
fn recompiles_the_same_script_from_the_text() {
    for name in ["double.toml", "dialogue.toml", "patterns.toml"] {
        let (workload, mut bytes) = (example(name), Vec::new());
        let text = workload.text().unwrap();
        let again = Workload::from_text(text, workload.name()).unwrap();
        for workload in [&workload, &again] {
            let compiled = compile(workload, 9);
            let (script, end) = (compiled.script(), compiled.script().period());
            bytes.push((
                script.requests(0, end.request).to_vec(),
                script.replies(0, end.reply).to_vec(),
            ));
        }
        assert!(bytes[0] == bytes[1], "{name}: {text}");
        assert_eq!(again.text(), Some(text));
    }
}

#[test]
fn only_replies_not_known_to_the_byte_are_checked_by_line() {
    let is_exact = |workload: &Workload| matches!(compile(workload, 1), Compiled::Exact(_));
    assert!(is_exact(&example("double.toml")) && is_exact(&example("dialogue.toml")));
    let patterns = example("patterns.toml");
    assert!(!is_exact(&patterns) && is_exact(&patterns.echoed().unwrap()));
}

#[test]
fn an_echo_has_the_same_requests_and_expects_them_back() {
    let file = example("patterns.toml");
    let (asked, echoed) = (compile(&file, 1), compile(&file.echoed().unwrap(), 1));
    for i in 0..500 {
        assert_eq!(asked.script().request(i), echoed.script().request(i));
        assert_eq!(echoed.script().reply(i), echoed.script().request(i));
    }
}
