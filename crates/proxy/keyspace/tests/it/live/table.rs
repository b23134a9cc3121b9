//! Generates the table of commands from the data of a redis-server (COMMAND and COMMAND DOCS).

use super::{Client, Reply};
use std::fmt::Write as _;

/// Returns the version of a server, e.g. 7.0.15.
pub fn version(client: &mut Client) -> String {
    let info = client.ask(&["INFO", "server"]);
    let line = info.text().lines().find_map(|line| line.strip_prefix("redis_version:"));
    line.expect("the version").to_owned()
}

/// Returns the source text of `src/command/table.rs`.
pub fn render(client: &mut Client) -> String {
    let version = version(client);
    let lines = lines(client);
    let mut text = format!(
        "//! What redis-server {version} says of its commands. This file is generated, do not edit it:\n\
         //! `cargo run -p regatta-keyspace --example command_table` prints it.\n\
         \n\
         use super::{{\n    \
             entry::{{Command, command, container}},\n    \
             flag::*,\n    \
             spec::{{Begin, Find, index, keyword, number, range, spec}},\n\
         }};\n\
         \n\
         /// The version of the redis-server whose commands these are.\n\
         pub const VERSION: &str = \"{version}\";\n\
         \n\
         /// All commands and subcommands, sorted by name.\n\
         #[rustfmt::skip]\n\
         #[expect(clippy::large_const_arrays, reason = \"read at compile time only\")]\n\
         pub(super) const TABLE: [Command; {}] = [\n",
        lines.len()
    );
    for line in lines {
        writeln!(text, "    {line}").expect("room");
    }
    text + "];\n"
}

/// Returns a line for each command and subcommand, sorted by name.
pub fn lines(client: &mut Client) -> Vec<String> {
    let commands = client.ask(&["COMMAND"]);
    let documents = client.ask(&["COMMAND", "DOCS"]);
    let mut found = Vec::new();
    for command in commands.list() {
        let document = documents.value(command.list()[0].text());
        add(command, document, &mut found);
    }
    found.sort();
    found.into_iter().map(|(_, line)| line).collect()
}

/// Adds the lines of a command and its subcommands, with their names.
fn add(command: &Reply, document: &Reply, found: &mut Vec<(String, String)>) {
    let [name, arity, flags, _, _, _, _, _, specs, subcommands] = command.list() else {
        panic!("{command:?} does not have the form of a command in Redis 7");
    };
    let name = name.text();
    let kind = if subcommands.list().is_empty() { "command" } else { "container" };
    let specs: Vec<String> = specs.list().iter().map(key_spec).collect();
    let line = format!(
        "{kind}(\"{name}\", {}, {}, \"{}\", \"{}\", &[{}]),",
        arity.integer(),
        set(flags),
        document.value("since").text(),
        document.value("group").text(),
        specs.join(", ")
    );
    found.push((name.to_owned(), line));
    for subcommand in subcommands.list() {
        let document = document.value("subcommands").value(subcommand.list()[0].text());
        add(subcommand, document, found);
    }
}

/// Converts flags to the names of constants.
fn set(flags: &Reply) -> String {
    let names: Vec<String> =
        flags.list().iter().map(|flag| flag.text().to_ascii_uppercase()).collect();
    if names.is_empty() { "0".to_owned() } else { names.join(" | ") }
}

fn key_spec(spec: &Reply) -> String {
    let (begin, find) = (spec.value("begin_search"), spec.value("find_keys"));
    let number = |of: &Reply, name: &str| of.value("spec").value(name).integer();
    let begin = match begin.value("type").text() {
        "index" => format!("index({})", number(begin, "index")),
        "keyword" => {
            let word = begin.value("spec").value("keyword").text();
            format!("keyword(\"{word}\", {})", number(begin, "startfrom"))
        }
        _ => "Begin::Unknown".to_owned(),
    };
    let numbers = |kind: &str, names: [&str; 3]| {
        let numbers = names.map(|name| number(find, name).to_string());
        format!("{kind}({})", numbers.join(", "))
    };
    let find = match find.value("type").text() {
        "range" => numbers("range", ["lastkey", "keystep", "limit"]),
        "keynum" => numbers("number", ["keynumidx", "firstkey", "keystep"]),
        _ => "Find::Unknown".to_owned(),
    };
    format!("spec({}, {begin}, {find})", set(spec.value("flags")))
}
