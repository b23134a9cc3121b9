//! Regions of pages whose text follows from other files: tables of races in `published/`, and the fields of
//! the JSON. A region is between `<!-- from: SOURCE -->` and `<!-- end -->`. `scripts/publish --fill` writes
//! them; without it, this test compares them.
//!
//! | source | text |
//! |---|---|
//! | `published/RACE/table.txt` | the file |
//! | `published/RACE/page.png` | the picture |
//! | `published/scoreboard/NAME.md` | the file |
//! | `published` | a table of all published races |
//! | `published/open-loop` | the table of percentiles of the page about open loops |
//! | `published/capacity` | the result of a search for a capacity |
//! | `published/quick load` | the cost of the load beside that of the null server |
//! | `published/RACE over its loads` | the answer over all loads, and the ratios at each |
//! | `published/RACE at LOAD` | the answer and the table of a load; `*` in it stands for any number |
//! | `TYPE in CRATE/FILE.rs` | the fields of a type of the JSON or of a file, from their comments |

use super::fields;
use crate::support::docs::{files, pages, root};
use regatta_record::{LoadResult, NULL, Summary};
use regex::{Captures, Regex};
use serde::Deserialize;
use std::fs;

/// How a published race was run, from its `about.toml`.
#[derive(Deserialize)]
struct About {
    race: String,
    arguments: String,
    commit: String,
    date: String,
    minutes: u64,
    /// Of results without a summary, which has it.
    machine: Option<String>,
}

#[test]
fn every_region_is_filled() {
    let is_filling = std::env::var_os("DOCS_FILL").is_some();
    let (mut wrong, mut count) = (Vec::new(), 0);
    let mut pages = pages();
    pages.push(root().join("published/README.md"));
    for path in pages {
        let page = fs::read_to_string(&path).expect("a page");
        let filled = filled(&page, |source| {
            count += 1;
            let text = text_of(source);
            if text.is_none() && !is_filling {
                wrong.push(format!("{source} is not published; run scripts/publish"));
            }
            text
        });
        if filled == page {
            continue;
        }
        if is_filling {
            fs::write(&path, filled).expect("a page");
        } else {
            wrong.push(format!("{}: run scripts/publish --fill", path.display()));
        }
    }
    assert!(
        wrong.is_empty(),
        "regions do not have the text of their sources:\n{}",
        wrong.join("\n")
    );
    assert!(count > 5, "only {count} regions were found");
}

/// Returns a page with the text of its regions. A region whose source does not exist keeps its text.
fn filled(page: &str, mut text_of: impl FnMut(&str) -> Option<String>) -> String {
    let region = Regex::new(r"(?s)(<!-- from: ([^\n]*?) -->\n)(.*?)(<!-- end -->)").unwrap();
    let starts = page.matches("<!-- from:").count();
    assert_eq!(region.find_iter(page).count(), starts, "a region has no `<!-- end -->`");
    let fill = |found: &Captures| {
        let text = text_of(&found[2]).unwrap_or_else(|| found[3].to_owned());
        format!("{}{text}{}", &found[1], &found[4])
    };
    region.replace_all(page, fill).into_owned()
}

/// Returns the text of a source, or `None` if it is not published.
fn text_of(source: &str) -> Option<String> {
    let read = |name: &str| fs::read_to_string(root().join(name)).ok();
    let published = |folder: &str| -> Option<(About, Summary)> {
        let about = toml::from_str(&read(&format!("{folder}/about.toml"))?).expect("about.toml");
        let summary = serde_json::from_str(&read(&format!("{folder}/summary.json"))?);
        Some((about, summary.expect("summary.json")))
    };
    if let Some((folder, load)) = source.split_once(" at ") {
        let (about, summary) = published(folder)?;
        return Some(at_load(&about, &summary, load));
    }
    if let Some(folder) = source.strip_suffix(" over its loads") {
        let (about, summary) = published(folder)?;
        return Some(over_loads(&about, &summary, &read(&format!("{folder}/table.txt"))?));
    }
    if let Some((name, file)) = source.split_once(" in ") {
        let (name_of_crate, file) = file.split_once('/').expect("CRATE/FILE.rs");
        let code = read(&format!("crates/tool/{name_of_crate}/src/{file}")).expect("a source file");
        // What is read has required keys, and what is written has keys that may be absent.
        return Some(fields::table(&code, name, name_of_crate != "record"));
    }
    match source {
        "published" => Some(list()),
        "published/open-loop" => Some(open_loop(
            &read("published/open-loop/closed.json")?,
            &read("published/open-loop/open.json")?,
        )),
        "published/capacity" => {
            let output = read("published/capacity/output.txt")?;
            // The result, and the lines on which its remark continues.
            let mut lines = output.lines().skip_while(|line| !line.starts_with("capacity"));
            let first = lines.next()?;
            let rest = lines.take_while(|line| line.starts_with(' '));
            let found: Vec<&str> = [first].into_iter().chain(rest).map(str::trim_end).collect();
            Some(format!("\n```text\n{}\n```\n\n", found.join("\n")))
        }
        "published/quick load" => load_beside_null(&read("published/quick/summary.json")?),
        _ if source.ends_with(".png") => {
            let is_there = root().join(source).is_file();
            is_there.then(|| format!("\n![The page of a race]({source})\n\n"))
        }
        _ if source.ends_with(".txt") => {
            let text = read(source)?;
            let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
            Some(format!("\n```text\n{}\n```\n\n", lines.join("\n")))
        }
        _ if source.ends_with(".md") => Some(format!("\n{}\n\n", read(source)?.trim_end())),
        _ => panic!("unknown source {source:?}"),
    }
}

/// A table of the published races, with the machine.
fn list() -> String {
    let mut text =
        "\n| race | date | minutes | contenders × loads | commit | machine | arguments |\n\
                    |---|---|---|---|---|---|---|\n"
            .to_owned();
    let folder = fs::read_dir(root().join("published")).expect("published/");
    let mut paths: Vec<_> = folder.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        let Ok(about) = fs::read_to_string(path.join("about.toml")) else { continue };
        let about: About = toml::from_str(&about).expect("about.toml");
        let summary = fs::read_to_string(path.join("summary.json")).ok();
        let summary: Option<Summary> =
            summary.map(|text| serde_json::from_str(&text).expect("summary.json"));
        let none = || "–".to_owned();
        let known = about.machine.clone().unwrap_or_else(none);
        let (cells, machine) = summary.map_or_else(
            || (none(), known),
            |summary| {
                let asked = &summary.asked;
                let cells = format!("{} × {}", asked.contenders.len(), asked.loads.len());
                let gib = asked.setup.memory_bytes as f64 / f64::from(1 << 30);
                let setup = &asked.setup;
                let kernel = setup.kernel.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
                (cells, format!("{}, {} CPUs, {gib:.0} GiB, {kernel}", setup.cpu, setup.cpus))
            },
        );
        let About { race, arguments, commit, date, minutes, .. } = about;
        let arguments = if arguments.is_empty() { String::new() } else { format!("`{arguments}`") };
        text += &format!(
            "| [{race}]({race}/) | {date} | {minutes} | {cells} | {commit} | {machine} | {arguments} |\n"
        );
    }
    text + "\n"
}

/// The answer and the table of one load of a race, with the date. In `load`, `*` stands for any number, because
/// the rate of a load follows from the machine.
///
/// # Panics
///
/// If the race has no such load, or several.
fn at_load(about: &About, summary: &Summary, load: &str) -> String {
    let markdown = regatta_report::markdown(summary);
    let load = regex::escape(load).replace(r"\*", "[0-9.k]+");
    let only = |pattern: &str| {
        let pattern = Regex::new(pattern).unwrap();
        let found: Vec<_> = pattern.captures_iter(&markdown).map(|one| one[1].to_owned()).collect();
        assert_eq!(found.len(), 1, "{pattern} in the results of {}: {found:?}", about.race);
        found.into_iter().next().unwrap()
    };
    let many = summary.asked.loads.len() > 1;
    let subject = if many { format!("- {load}: ") } else { String::new() };
    let answer = only(&format!(r"(?m)^{subject}(\*\*.*)$"));
    let rows = only(&format!(r"(?s)\n### [^·\n]* · {load}(?: · [^\n]*)?\n(.*?)(?:\n### |$)"));
    let rows = with_columns(rows.trim(), &SHOWN);
    format!("\n{answer}\n\n{}:\n\n{rows}\n\n", origin(about, summary))
}

/// How, when and where a race was run.
fn origin(about: &About, summary: &Summary) -> String {
    let About { race, arguments, date, commit, .. } = about;
    let command = format!("regatta race {race} {arguments}");
    format!("`{}` on {date}, commit {commit}, {}", command.trim_end(), summary.asked.setup.cpu)
}

/// The answer of a race over its loads, and the ratios at each load, as in the terminal.
///
/// # Panics
///
/// If the race has only one load.
fn over_loads(about: &About, summary: &Summary, table: &str) -> String {
    let starting = |start| table.split("\n\n").filter(move |block| block.starts_with(start));
    let blocks: Vec<&str> = starting("Over ").chain(starting("cost as a multiple of ")).collect();
    assert!(blocks.len() > 1, "{} is a race with several loads", about.race);
    let origin = origin(about, summary);
    format!("\n{origin}:\n\n```text\n{}\n```\n\n", blocks.join("\n\n"))
}

/// The columns of a load's table in the book, if it has them; the whole table is wider than a page.
const SHOWN: [&str; 11] = [
    "contender",
    "cost",
    "ratio",
    "result",
    "instance",
    "rate",
    "large",
    "then",
    "p50",
    "p99",
    "memory",
];

/// Returns Markdown whose tables have only the columns whose titles begin with one of `shown`.
fn with_columns(markdown: &str, shown: &[&str]) -> String {
    let cells = |row: &str| -> Vec<String> {
        row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut kept: Option<Vec<usize>> = None;
    let mut lines = Vec::new();
    for line in markdown.lines() {
        if !line.starts_with('|') {
            kept = None;
            lines.push(line.to_owned());
            continue;
        }
        let row = cells(line);
        let kept = kept.get_or_insert_with(|| {
            let is_shown = |title: &str| shown.contains(&title.split(' ').next().unwrap_or(""));
            (0..row.len()).filter(|&column| is_shown(&row[column])).collect()
        });
        let row: Vec<&str> = kept.iter().map(|&column| row[column].as_str()).collect();
        lines.push(format!("| {} |", row.join(" | ")));
    }
    lines.join("\n")
}

/// The percentiles of a closed and of an open loop over a server that stalls for 100 ms in every second,
/// and the true ones.
fn open_loop(closed: &str, open: &str) -> String {
    let row = |name: &str, text: &str| {
        let result: LoadResult = serde_json::from_str(text).expect("the JSON of a load");
        let latency = &result.latency_ns;
        let percentiles = [latency.p50, latency.p90, latency.p99, latency.p99_9];
        let cells = percentiles.map(|ns| match ns.map(|ns| ns as f64 / 1e6) {
            None => "–".to_owned(),
            Some(ms @ ..1.0) => format!("{ms:.2}"),
            Some(ms @ ..10.0) => format!("{ms:.1}"),
            Some(ms) => format!("{ms:.0}"),
        });
        format!("| {name} | {} |\n", cells.join(" | "))
    };
    format!(
        "\n| ms | p50 | p90 | p99 | p99.9 |\n|---|---|---|---|---|\n{}{}| the truth | 0.1 | 0.1 | 90 | 99 |\n\n",
        row("closed loop", closed),
        row("open loop", open)
    )
}

/// A sentence: the CPU per request of the load beside that of the null server. `None` if the null server
/// has no cost.
fn load_beside_null(summary: &str) -> Option<String> {
    let summary: Summary = serde_json::from_str(summary).expect("summary.json");
    let null = summary.cells.iter().find(|cell| cell.contender == NULL)?;
    let (load, server) = (null.load_cpu_ns_per_request?, null.cost_ns_per_request?);
    Some(format!(
        "\nThe load generator costs {:.2} times as much CPU per request as a server that does not look at \
         the bytes (`null`, {}, in the published race `quick`).\n\n",
        load.mean / server.mean,
        null.load
    ))
}

#[test]
fn a_region_gets_the_text_of_its_source_and_keeps_it_without_one() {
    let page = "a\n<!-- from: x -->\nold\n<!-- end -->\nb\n<!-- from: y -->\nkept\n<!-- end -->\n";
    let text = filled(page, |source| (source == "x").then(|| "new\n".to_owned()));
    assert_eq!(text, page.replace("old", "new"));
}

#[test]
fn a_table_keeps_the_columns_that_are_shown() {
    let table = "a | b\n| cost µs | rate now /s | max |\n| --: | --: | --: |\n| 1 | 2 | 3 |\n\n\
                 | max |\n| 4 |";
    let text = with_columns(table, &["cost", "rate"]);
    assert_eq!(text, "a | b\n| cost µs | rate now /s |\n| --: | --: |\n| 1 | 2 |\n\n|  |\n|  |");
}

#[test]
#[should_panic(expected = "a region has no")]
fn a_region_without_an_end_is_found() {
    filled("<!-- from: x -->\nold\n", |_| None);
}

/// What is published was measured on a machine whose folders concern nobody.
#[test]
fn nothing_published_names_a_folder_of_the_machine() {
    for path in files(&root().join("published"), "json") {
        let text = fs::read_to_string(&path).expect("a file");
        for folder in ["\"/home", "\"/root", "\"/tmp", "\"/work"] {
            assert!(!text.contains(folder), "{}: {folder}", path.display());
        }
    }
}
