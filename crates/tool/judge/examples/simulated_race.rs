//! Prints the summary of a simulated race with a bit of everything, for the tests of reports.
//!
//! `cargo run -p regatta-judge --example simulated_race > crates/tool/report/tests/summary.json`

#[path = "../tests/simulated/mod.rs"]
#[allow(dead_code)]
mod simulated;

use regatta_judge::judge;
use regatta_record::{Asked, Exchange, LoadShape, Outcome, Round, Setup};
use simulated::{LOAD, QUIET, Truth, asked, rounds};

const LOADS: [LoadShape; 3] = [LOAD, LoadShape::closed(64, 16), LoadShape::closed(1000, 1)];

fn main() {
    let contenders = contenders();
    let names: Vec<&str> = contenders.iter().map(|c| c.name).collect();
    let mut rounds = rounds(&contenders, &LOADS, 7, QUIET, 11);
    mishaps(&mut rounds);
    let mut asked = asked(&names, 7, &LOADS);
    describe(&mut asked, &contenders);
    let summary = judge(&asked, &rounds);
    println!("{}", serde_json::to_string_pretty(&summary).expect("a summary is plain data"));
}

fn contenders() -> Vec<Truth> {
    [
        ("epoll", 4_410.0, 3, 214),
        ("epoll-twin", 4_410.0, 3, 214),
        ("null", 3_700.0, 2, 61),
        ("percore", 4_425.0, 3, 260),
        ("uring", 3_980.0, 5, 402),
        ("poll", 4_900.0, 3, 198),
        ("select", 5_110.0, 3, 205),
        ("threads", 6_180.0, 12, 96),
        ("async", 5_260.0, 6, 110),
        ("node", 7_640.0, 61, 31),
        ("haskell-conduit", 9_350.0, 38, 44),
        ("erlang", 8_800.0, 70, 52),
        ("<script>alert(1)</script>", 4_000.0, 2, 12),
    ]
    .map(|(name, cost_ns, memory_mib, lines)| Truth { name, cost_ns, memory_mib, lines })
    .to_vec()
}

/// Problems that occur in real races.
fn mishaps(rounds: &mut Vec<Round>) {
    rounds.retain(|r| r.contender != "erlang");
    rounds.retain(|r| !(r.contender == "select" && r.load == LOADS[2] && r.round > 0));
    for r in rounds {
        match (r.contender.as_str(), r.load) {
            ("<script>alert(1)</script>", _) if r.round == 2 => {
                r.outcome = Outcome::Disqualified {
                    because: "the 4,711th reply was wrong".to_owned(),
                    exchange: Some(Exchange {
                        sent: r"9223372036854775807\n".to_owned(),
                        expected: r"18446744073709551614\n".to_owned(),
                        received: r"-2\n<b>oops</b>".to_owned(),
                        reply_index: 4_710,
                    }),
                };
            }
            ("select", load) if load == LOADS[2] => {
                r.outcome = Outcome::CannotHold {
                    because: "1,000 connections and its own descriptors exceed the 1,000 that \
                              select is given here"
                        .to_owned(),
                };
            }
            ("haskell-conduit", load) if load == LOADS[2] && r.round > 4 => {
                r.outcome = Outcome::Failed {
                    because: "died with exit status 251 inside the window; its last words: \
                              haskell-conduit: heap \u{1b}[31mexhausted\u{1b}[0m; give it more \
                              memory (+RTS -M1g)"
                        .to_owned(),
                };
            }
            ("threads", load) if load == LOADS[0] => {
                let slow = r.round % 3 == 0;
                r.slices.iter_mut().for_each(|s| *s = if slow { *s * 5 / 9 } else { *s });
            }
            ("async", load) if load == LOADS[1] => {
                r.slices.iter_mut().enumerate().for_each(|(i, s)| *s = *s * (100 - i as u64) / 100);
            }
            ("node", load) if load == LOADS[2] && r.round == 1 => r.errors.timeout = 12,
            _ => {}
        }
    }
}

fn describe(asked: &mut Asked, contenders: &[Truth]) {
    asked.name = "quick".to_owned();
    for (entry, truth) in asked.entries.iter_mut().zip(contenders) {
        entry.lines_of_code = Some(truth.lines);
        match truth.name {
            "erlang" => {
                entry.skipped = Some(
                    "`erl` is not on PATH; get it with: apt-get install erlang-base".to_owned(),
                );
            }
            "node" => {
                entry.about = "Node.js net, one process".to_owned();
                entry.start = ["node", "server.js", "--port", "{port}"].map(str::to_owned).to_vec();
                entry.version = Some("v22.14.0".to_owned());
            }
            "haskell-conduit" => entry.stand_in_for = Some("Haskell threads".to_owned()),
            model => {
                entry.about = format!("double, waiting by {model}");
                entry.start = ["regatta", "serve", "double", "--model", model, "--listen"]
                    .map(str::to_owned)
                    .to_vec();
                entry.start.push("127.0.0.1:{port}".to_owned());
            }
        }
    }
    asked.setup = Setup {
        regatta: "0.1.0 (9cc7547)".to_owned(),
        command_line: ["regatta", "race", "quick", "--rounds", "7"].map(str::to_owned).to_vec(),
        kernel: "Linux 6.18.5 #1 SMP PREEMPT_DYNAMIC".to_owned(),
        cpu: "AMD EPYC 9R14".to_owned(),
        cpus: 2,
        cores: Vec::new(),
        memory_bytes: 8_232_345_600,
        clock_source: "kvm-clock".to_owned(),
        nice: None,
        governor: None,
        mitigations: vec!["spectre_v2: Enhanced IBRS".to_owned()],
        open_files: 20_000,
        somaxconn: Some(4_096),
        port_range: Some((32_768, 60_999)),
        cgroup: "v1".to_owned(),
        started_unix_s: 1_790_000_000,
    };
}
