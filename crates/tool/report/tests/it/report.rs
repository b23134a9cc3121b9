//! Tests of all report formats on the summary of a simulated race (`summary.json`, made by the example
//! `simulated_race` of regatta-judge). It covers many cases: a name that is HTML, escape sequences in
//! error output, voided figures, skipped, failed and disqualified contenders.

use regatta_record::{CellFinding, Kind, Summary, Verdict};
use regatta_report::{COLUMNS, csv, json, markdown, terminal, terminal_with};
use unicode_width::UnicodeWidthStr;

fn summary() -> Summary {
    serde_json::from_str(include_str!("../summary.json")).expect("the fixture is a summary")
}

fn line<'a>(text: &'a str, start: &str) -> &'a str {
    text.lines()
        .find(|l| l.starts_with(start))
        .unwrap_or_else(|| panic!("no line {start:?}:\n{text}"))
}

/// A line with single spaces between words.
fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_wide_terminal_shows_every_column_and_bars() {
    let text = terminal(&summary(), 160, false);
    assert!(text.starts_with("quick · double · 7 rounds of 2 s · seed 42\n"));
    assert!(line(&text, "AMD EPYC").contains("server on CPU 0, load on CPU 1"));
    assert!(line(&text, "noise floor ±1.3%").ends_with("may appear to differ by this much"));
    assert_eq!(
        words(line(&text, "contender")),
        "contender cost ratio to epoll ratio, log scale result rate p50 p99 max verdict memory"
    );
    assert_eq!(words(line(&text, "     ")), "µs/req 1 2.2 k/s µs µs µs MiB");
    let node = words(line(&text, "node"));
    assert!(node.starts_with("node 7.9 [7.7–8.2] 1.75 [1.73–1.77] │ "), "{node}");
    assert!(node.ends_with(" server-bound 61.1"), "{node}");
    assert!(node.contains('●'), "{node}");
    assert!(line(&text, "epoll ").contains("baseline"));
    assert!(line(&text, "percore").contains("unclear"), "neither tied nor different");
    assert!(line(&text, "threads").contains("(999)"), "void: in parentheses");
    assert!(line(&text, "null").contains("≥ 257"));
    assert!(text.contains("skipped · erlang: `erl` is not on PATH; get it with: apt-get install"));
    assert!(text.contains("doubt: node at 1000 conn had errors (12 timeout)"));
    assert!(text.contains(r"received -2\n<b>oops</b>"), "the exchange");
}

#[test]
fn the_answer_comes_before_the_first_table() {
    for width in [80, 120, 200] {
        let text = terminal(&summary(), width, false);
        let answer = text.find("64 conn: 7 contenders cost from").expect("an answer");
        assert!(answer < text.find("\ncontender ").unwrap(), "{width}: {text}");
        let machine = text.find("AMD EPYC").unwrap();
        assert!(machine > text.rfind("\nuring ").unwrap(), "{width}: the machine comes last");
    }
}

#[test]
fn rate_and_p99_are_visible_at_80_columns_and_remarks_are_shorter_than_tables() {
    let s = summary();
    let text = terminal(&s, 80, false);
    assert_eq!(
        words(line(&text, "contender")),
        "contender cost ratio to epoll result rate p99 verdict"
    );
    assert!(text.contains("\n  not shown") || text.contains("\nnot shown: p50, max, memory"));
    for load in &s.asked.loads {
        let title = format!("double · {load}");
        let table: Vec<&str> =
            text.lines().skip_while(|l| *l != title).take_while(|l| !l.is_empty()).collect();
        let rows = table.iter().take_while(|l| !l.starts_with("not shown")).count() - 3;
        // A remark on a disqualification or failure is never cut.
        let bad = ["disqualified · ", "failed · "];
        let remarks = table[rows + 4..].iter().skip_while(|l| bad.iter().any(|b| l.starts_with(b)));
        let remarks = remarks.skip_while(|l| l.starts_with("  ")).count();
        assert!(rows >= 10 && remarks <= rows, "{load}: {remarks} of {rows}: {table:#?}");
    }
}

#[test]
fn the_legend_has_only_marks_that_occur() {
    let s = summary();
    let legend = |s: &Summary, width| {
        let text = terminal(s, width, false);
        let from = text.find("[ ] 95% interval").expect("a legend");
        let from = text[..from].rfind("\n\n").unwrap();
        words(text[from..].trim_start().split("\n\n").next().unwrap())
    };
    let at_80 = legend(&s, 80);
    for mark in ["tied: ", "unclear: ", "≤ ≥ bounds: ", "( ) not valid", "– no figure", "null: "]
    {
        assert!(at_80.contains(mark), "{mark}: {at_80}");
    }
    for mark in ["├●┤", "not known"] {
        assert!(!at_80.contains(mark), "{mark}: {at_80}");
    }
    assert!(legend(&s, 160).contains("├●┤ ratio with interval"));
    let mut valid = s.clone();
    for cell in &mut valid.cells {
        cell.verdict = Verdict::new(Kind::ServerBound, "");
    }
    assert!(!legend(&valid, 80).contains("( )") && !legend(&valid, 80).contains('≥'));
}

#[test]
fn chosen_columns_are_shown_in_their_order() {
    let s = summary();
    let chosen = |names: &[&str], width| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        terminal_with(&s, width, false, &names)
    };
    let text = chosen(&["p99", "lines", "cost"], 80);
    assert_eq!(words(line(&text, "contender")), "contender p99 lines of cost");
    assert!(!text.contains("not shown"), "{text}");
    let text = chosen(&["bar", "p99"], 60);
    assert_eq!(words(line(&text, "contender")), "contender ratio, log scale p99");
    let all: Vec<&str> = COLUMNS.to_vec();
    for width in [40, 80, 200] {
        let text = chosen(&all, width);
        assert_eq!(text.lines().find(|line| line.width() > width), None, "{width}");
    }
}

#[test]
fn a_narrow_terminal_drops_columns_not_lines() {
    let s = summary();
    for width in 40..200 {
        let text = terminal(&s, width, false);
        for line in text.lines() {
            assert!(line.width() <= width, "{width}: {} is {}", line, line.width());
        }
        // One line for each load, and one in the table of contenders.
        let rows = text.lines().filter(|l| l.starts_with("node ")).count();
        assert_eq!(rows, if width < 120 { 3 } else { 3 + 1 });
    }
    assert!(line(&terminal(&s, 76, false), "haskell-").starts_with("haskell-con"));
}

#[test]
fn colours_only_on_request_and_escapes_control_characters() {
    let s = summary();
    assert!(
        s.cells.iter().any(|c| c.verdict.because().contains('\u{1b}')),
        "the fixture is hostile"
    );
    for text in [terminal(&s, 100, false), markdown(&s), csv(&s)] {
        assert!(!text.contains('\u{1b}'));
        assert!(text.contains("31mexhausted"), "shown, but escaped");
    }
    let coloured = terminal(&s, 100, true);
    assert!(coloured.contains("\u{1b}[31mdisqualified"));
    assert!(coloured.contains("\u{1b}[2m(999)"));
    let mut plain = coloured;
    for style in ["0", "1", "2", "31", "32", "33"] {
        plain = plain.replace(&format!("\u{1b}[{style}m"), "");
    }
    let trimmed: Vec<&str> = plain.lines().map(str::trim_end).collect();
    assert_eq!(trimmed.join("\n") + "\n", terminal(&s, 100, false), "colour changes nothing else");
}

#[test]
fn markdown_has_a_table_for_each_load_with_equal_columns() {
    let text = markdown(&summary());
    let rows: Vec<&str> = text.lines().filter(|l| l.starts_with('|')).collect();
    let (overview, rest) = rows.split_at(2 + 3);
    assert!(overview.iter().all(|r| r.matches('|').count() == 1 + 1 + 9), "loads × contenders");
    let (of_loads, contenders) = rest.split_at(3 * (2 + 12));
    let columns: Vec<usize> = of_loads.iter().map(|r| r.matches('|').count() - 1).collect();
    for of_load in columns.chunks(2 + 12) {
        assert!(of_load.iter().all(|n| *n == of_load[0] && (9..=11).contains(n)), "{columns:?}");
    }
    assert_eq!(contenders.len(), 2 + 12);
    assert!(contenders.iter().all(|r| r.matches('|').count() == 4), "name, version, start");
    assert!(text.contains("| &lt;script&gt;alert(1)&lt;/script&gt; | – | – |"));
    assert!(text.contains("### Doubts") && text.contains("### Skipped"));
    assert!(!text.contains("<script"));
}

#[test]
fn csv_has_a_line_for_each_cell() {
    let s = summary();
    let text = csv(&s);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + s.cells.len());
    assert!(lines[0].starts_with("workload,connections,pipeline,churn,contender,rounds"));
    let node = lines.iter().find(|l| l.contains("\"node\"")).unwrap();
    assert!(node.starts_with("\"double\",64,1,false,\"node\",7,"), "{node}");
    assert!(node.contains(",dearer,8,8,"));
    let skipped = lines.iter().find(|l| l.contains("\"erlang\"")).unwrap();
    assert!(skipped.contains(",skipped,cost rate latency memory,"), "{skipped}");
}

#[test]
fn json_is_the_summary() {
    let s = summary();
    assert_eq!(serde_json::from_str::<Summary>(&json(&s)).unwrap(), s);
    let value: serde_json::Value = serde_json::from_str(&json(&s)).unwrap();
    assert!(value["noise_floor"].is_number());
    let cell = &value["cells"][1];
    for field in [
        "workload",
        "load",
        "contender",
        "rounds",
        "cost_ns_per_request",
        "rate_per_s",
        "latency_ns",
        "memory_bytes",
        "ratio_to_baseline",
        "band",
        "verdict",
    ] {
        assert!(!cell[field].is_null(), "{field}");
    }
    assert!(cell["cost_ns_per_request"]["low"].is_number());
}

#[test]
fn a_co_bound_rate_is_a_lower_bound_beside_other_verdicts() {
    let mut s = summary();
    let node = s.cells.iter_mut().find(|c| c.contender == "node").unwrap();
    node.verdict = Verdict::new(Kind::Noisy, "steal");
    node.verdict.findings.push(CellFinding::new(Kind::CoBound, "both busy"));
    assert!(line(&terminal(&s, 160, false), "node").contains(" ≥ 124 "));
    let json: Summary = serde_json::from_str(&json(&s)).unwrap();
    assert!(json.cells.iter().any(|c| c.contender == "node" && c.verdict.is(Kind::CoBound)));
}

#[test]
fn reports_an_empty_race() {
    let mut s = summary();
    s.complete = false;
    s.noise_floor = None;
    for c in &mut s.cells {
        c.verdict.first_mut().kind = Kind::Skipped;
        (c.cost_ns_per_request, c.band, c.relation) = (None, None, None);
    }
    let text = terminal(&s, 80, false);
    assert!(text.contains("INCOMPLETE"));
    assert!(text.contains("not raced yet: 64 conn; 64 conn × 16; 1000 conn"), "{text}");
    assert!(!text.contains("noise floor"), "nothing was measured: {text}");
    assert!(!text.contains("\ncontender "), "no empty tables: {text}");
}
