//! Configuration files of the services that run for long, e.g. `regatta shard --config shard.toml`. Each option
//! is a key: `--node-timeout 5s` is `node_timeout = "5s"`. A file is read as options before those of the command
//! line, so both have the same values, limits and errors; an option of the command line replaces the key.

use crate::options::rooms::{self, RoomTables};
use clap::{Arg, ArgAction, ArgMatches, Command, error::ErrorKind, parser::ValueSource};
use std::{collections::BTreeMap, ffi::OsString, fs, path::PathBuf};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The commands that have a configuration file.
const COMMANDS: [&str; 2] = ["hub", "shard"];
/// Options that are no keys.
const NO_KEYS: [&str; 3] = ["config", "check", "help"];

/// A configuration file that was read.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigFile {
    /// Its path.
    pub path: PathBuf,
    /// Its keys that no option of the command line replaces, as names of options, each with its line.
    keys: BTreeMap<String, usize>,
    /// Its tables of rooms, if it is that of a hub.
    pub rooms: RoomTables,
}

impl ConfigFile {
    /// Explains what clap says about several options together, some of which are keys of this file: these are named
    /// with their lines. `None`: the error is about one option, which is of the command line, because each key is
    /// checked alone before.
    pub fn explained(&self, error: &clap::Error) -> Option<String> {
        if !matches!(error.kind(), ErrorKind::MissingRequiredArgument | ErrorKind::ArgumentConflict)
        {
            return None;
        }
        let named = with_keys(&first_paragraph(error), |long| {
            let line = self.keys.get(long);
            line.map(|line| format!("{} (line {line})", key_of(long)))
        });
        Some(format!("with the options in {}: {named}", self.path.display()))
    }
}

/// Adds the options of the configuration file that `arguments` name, if any, to these. The first two arguments are
/// the program and the command.
///
/// # Errors
/// A sentence with the path and the line of what is wrong in the file.
pub fn with_options_of_file(
    mut arguments: Vec<OsString>,
    program: &Command,
) -> Result<(Vec<OsString>, Option<ConfigFile>), String> {
    let name = arguments.get(1).and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let command = program.find_subcommand(&name).filter(|_| COMMANDS.contains(&&name[..]));
    let (Some(command), Some(path)) = (command, path_in(&arguments)) else {
        return Ok((arguments, None));
    };
    let text = fs::read_to_string(&path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let line = |offset: usize| text[..offset].matches('\n').count() + 1;
    let at =
        |offset: usize, what: String| format!("{}, line {}: {what}", path.display(), line(offset));
    let table = DeTable::parse(&text).map_err(|error| {
        at(error.span().map_or(0, |span| span.start), error.message().to_owned())
    })?;
    let (mut added, mut keys) = (Vec::new(), BTreeMap::new());
    let mut tables = RoomTables::default();
    for (key, value) in table.get_ref() {
        let start = key.span().start;
        if has_rooms(command) && key.get_ref() == rooms::KEY {
            tables = RoomTables::read(value, line).map_err(|(offset, what)| at(offset, what))?;
            continue;
        }
        let option = option_of(key.get_ref(), command).map_err(|what| at(start, what))?;
        let key = key.get_ref();
        let long = option.get_long().expect("it was found by its name");
        let options =
            options_of(key, value, option).map_err(|what| at(value.span().start, what))?;
        check(program, &arguments[..2], &options).map_err(|what| at(value.span().start, what))?;
        if !is_given(long, &arguments) {
            keys.insert(long.to_owned(), line(start));
            added.extend(options);
        }
    }
    arguments.splice(2..2, added);
    Ok((arguments, Some(ConfigFile { path, keys, rooms: tables })))
}

/// Whether the file of a command may have tables of rooms.
fn has_rooms(command: &Command) -> bool {
    command.get_name() == "hub"
}

/// The path of `--config`, unless help is asked for.
fn path_in(arguments: &[OsString]) -> Option<PathBuf> {
    let mut path = None;
    let mut options = arguments.iter().skip(2);
    while let Some(option) = options.next() {
        match option.to_str().unwrap_or_default() {
            "--help" | "-h" => return None,
            "--config" => path = path.or_else(|| options.next().map(PathBuf::from)),
            option => path = path.or_else(|| option.strip_prefix("--config=").map(PathBuf::from)),
        }
    }
    path
}

/// Whether the command line has this option. (No value begins with `--`.)
fn is_given(long: &str, arguments: &[OsString]) -> bool {
    let is_it = |argument: &str| {
        let rest = argument.strip_prefix("--").and_then(|option| option.strip_prefix(long));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    arguments.iter().skip(2).filter_map(|argument| argument.to_str()).any(is_it)
}

/// Finds the option of a key.
fn option_of<'a>(key: &str, command: &'a Command) -> Result<&'a Arg, String> {
    let is_key = |arg: &&Arg| arg.get_long().is_some_and(|long| !NO_KEYS.contains(&long));
    let long = key.replace('_', "-");
    let options = || command.get_arguments().filter(is_key);
    match options().find(|arg| arg.get_long() == Some(&long)) {
        Some(_) if key.contains('-') => {
            Err(format!("there is no key {key}; write {}", key.replace('-', "_")))
        }
        Some(option) => Ok(option),
        None => {
            let mut keys: Vec<String> = options()
                .filter_map(|arg| arg.get_long())
                .map(|long| long.replace('-', "_"))
                .collect();
            if has_rooms(command) {
                keys.push(format!("[[{}]]", rooms::KEY));
            }
            Err(format!("there is no key {key}; expected one of: {}", keys.join(", ")))
        }
    }
}

/// The value of a key as options.
fn options_of(
    key: &str,
    value: &Spanned<DeValue<'_>>,
    option: &Arg,
) -> Result<Vec<OsString>, String> {
    let long = option.get_long().unwrap_or_default();
    if !option.get_action().takes_values() {
        return match value.get_ref() {
            DeValue::Boolean(true) => Ok(vec![format!("--{long}").into()]),
            DeValue::Boolean(false) => Ok(Vec::new()),
            other => Err(format!("{key}: expected true or false, got {}", other.type_str())),
        };
    }
    let one = |value: &DeValue<'_>| match value {
        DeValue::String(text) => Ok(format!("--{long}={text}").into()),
        DeValue::Integer(number) => Ok(format!("--{long}={number}").into()),
        DeValue::Float(number) => Ok(format!("--{long}={number}").into()),
        other => Err(format!("{key}: expected a string or a number, got {}", other.type_str())),
    };
    match value.get_ref() {
        DeValue::Array(all) if matches!(option.get_action(), ArgAction::Append) => {
            all.iter().map(|value| one(value.get_ref())).collect()
        }
        DeValue::Array(_) => Err(format!("{key}: expected one value, got a list")),
        value => one(value).map(|option| vec![option]),
    }
}

/// Checks options alone, so that a wrong value is reported with its line. Whether they contradict others is found
/// when all are parsed.
fn check(program: &Command, command: &[OsString], options: &[OsString]) -> Result<(), String> {
    let parsed = program.clone().try_get_matches_from(command.iter().chain(options));
    let Err(error) = parsed else { return Ok(()) };
    match error.kind() {
        ErrorKind::MissingRequiredArgument | ErrorKind::ArgumentConflict => Ok(()),
        _ => Err(with_keys(&first_paragraph(&error), |long| Some(key_of(long)))),
    }
}

/// The key of an option.
fn key_of(long: &str) -> String {
    long.replace('-', "_")
}

/// What clap says about an error, in one line, without the usage.
fn first_paragraph(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let words = first.trim_start_matches("error: ").split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

/// Replaces options as clap writes them, e.g. `'--grace <TIME>'`, by what `name` says, if it says something.
fn with_keys(text: &str, name: impl Fn(&str) -> Option<String>) -> String {
    let (mut named, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("--") {
        let (before, option) = rest.split_at(at);
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let end = option[2..].find(|c| !is_name(c)).map_or(option.len(), |end| end + 2);
        let (long, after) = (&option[2..end], &option[end..]);
        let is_quoted = before.ends_with('\'');
        // The name of its value.
        let after_value = after.strip_prefix(" <").and_then(|value| Some(value.split_once('>')?.1));
        let after_value = after_value.unwrap_or(after);
        let after_value = after_value.strip_prefix("...").unwrap_or(after_value);
        match name(long) {
            Some(key) if !long.is_empty() => {
                named.push_str(if is_quoted { &before[..at - 1] } else { before });
                named.push_str(&key);
                let close = after_value.strip_prefix('\'').filter(|_| is_quoted);
                rest = close.unwrap_or(after_value);
            }
            _ => {
                named.push_str(&rest[..at + end]);
                rest = after;
            }
        }
    }
    named + rest
}

/// The configuration as `--check` prints it: each option with its value and where that comes from; defaults are
/// comments. `None`: it was not asked for.
pub fn checked(
    program: &Command,
    matches: &ArgMatches,
    file: Option<&ConfigFile>,
) -> Option<String> {
    let (name, matches) = matches.subcommand()?;
    let command = program.find_subcommand(name).filter(|_| COMMANDS.contains(&name))?;
    matches.get_flag("check").then(|| {
        let options = command.get_arguments().filter_map(|arg| Some((arg.get_long()?, arg)));
        let lines = options.filter(|(long, _)| !NO_KEYS.contains(long)).map(|(long, arg)| {
            let line = format!("{} = {}", long.replace('-', "_"), value_of(matches, arg));
            let from = match matches.value_source(arg.get_id().as_str()) {
                Some(ValueSource::DefaultValue) | None => return format!("# {}", line.trim_end()),
                Some(_) => match file.filter(|file| file.keys.contains_key(long)) {
                    Some(file) => file.path.display().to_string(),
                    None => "command line".into(),
                },
            };
            format!("{line:<40}  # {from}")
        });
        let mut lines: Vec<String> = lines.collect();
        lines.push(String::new());
        let rooms = file.map(|file| file.rooms.to_toml(&file.path.display().to_string()));
        lines.join("\n") + &rooms.unwrap_or_default()
    })
}

/// The values of the options of a command as they were written, by key.
pub fn values(command: &Command, matches: &ArgMatches) -> BTreeMap<String, Vec<OsString>> {
    let options = command.get_arguments().filter_map(|arg| Some((arg.get_long()?, arg)));
    let options = options.filter(|(long, _)| !NO_KEYS.contains(long));
    let value = |(long, arg): (&str, &Arg)| {
        let raw = matches.try_get_raw(arg.get_id().as_str()).ok().flatten();
        (long.replace('-', "_"), raw.into_iter().flatten().map(OsString::from).collect())
    };
    options.map(value).collect()
}

/// The value of an option as TOML; empty if it has none.
fn value_of(matches: &ArgMatches, option: &Arg) -> String {
    let id = option.get_id().as_str();
    if !option.get_action().takes_values() {
        return matches.get_flag(id).to_string();
    }
    let raw = matches.get_raw(id).into_iter().flatten();
    let texts: Vec<_> = raw.map(|value| value.to_string_lossy().into_owned()).collect();
    let quoted = |text: &String| toml::Value::String(text.clone()).to_string();
    match (option.get_action(), &texts[..]) {
        (_, []) => String::new(),
        (ArgAction::Append, all) => {
            format!("[{}]", all.iter().map(quoted).collect::<Vec<_>>().join(", "))
        }
        (_, [one, ..]) if one.parse().is_ok_and(|n: i64| n.to_string() == *one) => one.clone(),
        (_, [one, ..]) => quoted(one),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::help::command;
    use std::io::Write;

    fn read(text: &str, more: &[&str]) -> Result<(Vec<String>, Option<ConfigFile>), String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let path = file.path().to_str().unwrap();
        let arguments = [&["regatta", "shard", "--config", path], more].concat();
        let arguments = arguments.into_iter().map(OsString::from).collect();
        let (arguments, file) = with_options_of_file(arguments, &command())
            .map_err(|error| error.replace(path, "FILE"))?;
        let arguments = arguments.into_iter().skip(2).map(|one| one.into_string().unwrap());
        let arguments = arguments.map(|one| one.replace(path, "FILE")).collect();
        Ok((arguments, file))
    }

    #[test]
    fn keys_become_options_before_those_of_the_command_line() {
        let text = "client_buffer = 32\nnodes = [\"a:1\", 'b:2:1 two']\nnode_timeout = \"5s\"\n";
        let (arguments, file) = read(text, &["--cores", "1"]).unwrap();
        let expected = [
            "--client-buffer=32",
            "--node-timeout=5s",
            "--nodes=a:1",
            "--nodes=b:2:1 two",
            "--config",
            "FILE",
            "--cores",
            "1",
        ];
        assert_eq!(arguments, expected);
        let keys: Vec<(String, usize)> = file.unwrap().keys.into_iter().collect();
        let expected = [("client-buffer", 1), ("node-timeout", 3), ("nodes", 2)];
        assert_eq!(keys, expected.map(|(long, line)| (long.to_owned(), line)));
    }

    #[test]
    fn an_option_of_the_command_line_replaces_a_key() {
        for more in [&["--nodes", "c:3"][..], &["--nodes=c:3"]] {
            let (arguments, file) = read("nodes = [\"a:1\", \"b:2\"]\n", more).unwrap();
            assert_eq!(arguments, [&["--config", "FILE"], more].concat());
            assert!(file.unwrap().keys.is_empty());
        }
        // An option whose name begins like another one.
        let (arguments, _) = read("max_request = 8\n", &["--max-requests=1"]).unwrap();
        assert_eq!(arguments[0], "--max-request=8");
    }

    #[test]
    fn what_is_wrong_is_reported_with_its_line() {
        for (text, expected) in [
            (
                "\nnode_timeout = \"fast\"\n",
                "FILE, line 2: invalid value 'fast' for node_timeout: ",
            ),
            (
                "node-timeout = \"5s\"",
                "FILE, line 1: there is no key node-timeout; write node_timeout",
            ),
            (
                "\n\nnode = 1",
                "FILE, line 3: there is no key node; expected one of: model, listen, ",
            ),
            ("config = \"other.toml\"", "FILE, line 1: there is no key config; expected one of: "),
            ("grace = true", "FILE, line 1: grace: expected a string or a number, got boolean"),
            ("grace = [\"1s\"]", "FILE, line 1: grace: expected one value, got a list"),
            ("nodes = [[1]]", "FILE, line 1: nodes: expected a string or a number, got array"),
            ("[grace]\nx = 1", "FILE, line 1: grace: expected a string or a number, got table"),
            ("grace = \"1s\"\ngrace = \"2s\"", "FILE, line 2: duplicate key"),
            ("grace = \"1s\nnodes = 1", "FILE, line 1: "),
        ] {
            let error = read(text, &[]).unwrap_err();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
        // Also if the command line replaces it: the file is wrong.
        assert!(read("grace = \"x\"", &["--grace", "1s"]).is_err());
        let arguments = ["regatta", "hub", "--config=/no/such"].map(OsString::from).to_vec();
        let error = with_options_of_file(arguments, &command()).unwrap_err();
        assert!(error.starts_with("cannot read /no/such: "), "{error}");
    }

    #[test]
    fn keys_that_contradict_each_other_are_named_with_their_lines() {
        let explained = |text: &str, more: &[&str]| {
            let (arguments, file) = read(text, more).unwrap();
            let all = ["regatta".to_owned(), "shard".to_owned()].into_iter().chain(arguments);
            let error = command().try_get_matches_from(all).unwrap_err();
            let path = file.as_ref().unwrap().path.display().to_string();
            file.unwrap().explained(&error).map(|text| text.replace(&path, "FILE"))
        };
        let missing =
            "with the options in FILE: the following required arguments were not provided: ";
        assert_eq!(
            explained("nodes = [\"a:1\"]\nhot_keys = true\n", &[]),
            Some(format!("{missing}--metrics <ADDR>"))
        );
        assert_eq!(explained("nodes = [\"a:1\"]", &["--no-such"]), None);
    }

    #[test]
    fn options_in_a_text_are_replaced_by_keys() {
        let key = |long: &str| (long != "other").then(|| key_of(long));
        for (text, expected) in [
            ("value '--' for '--node-timeout <TIME>': no", "value '--' for node_timeout: no"),
            ("'--a <A>' cannot be used with '--other <B>'", "a cannot be used with '--other <B>'"),
            ("with: --a-b <A> --other <X> --c", "with: a_b --other <X> c"),
            ("'--nodes <NODES>...' and '--d'", "nodes and d"),
            ("none", "none"),
        ] {
            assert_eq!(with_keys(text, key), expected);
        }
    }

    #[test]
    fn flags_are_true_or_false() {
        let hub = |text: &str| {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            let arguments = ["regatta".into(), "hub".into(), "--config".into(), file.path().into()];
            let (arguments, _) = with_options_of_file(arguments.to_vec(), &command())?;
            Ok::<_, String>(arguments[2].clone())
        };
        assert_eq!(hub("presence = true").unwrap(), "--presence");
        assert_eq!(hub("presence = false").unwrap(), "--config");
        assert!(hub("presence = 1").unwrap_err().contains("expected true or false, got integer"));
    }

    #[test]
    fn other_commands_and_help_read_no_file() {
        for arguments in [
            &["regatta"][..],
            &["regatta", "load", "--config", "/no/such"],
            &["regatta", "shard", "--nodes", "a:1"],
            &["regatta", "shard", "--config"],
            &["regatta", "shard", "--config", "/no/such", "--help"],
        ] {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            let read = with_options_of_file(arguments.clone(), &command());
            assert_eq!(read, Ok((arguments, None)));
        }
    }

    /// What `--check` prints is a configuration file with the same values.
    #[test]
    fn a_checked_configuration_can_be_read_again() {
        let text = "nodes = [\"a:1\", \"b:2\"]\nhash_tag = \"{}\"\nmap = \"ketama\"\n";
        let print = |text: &str, more: &[&str]| {
            let (arguments, file) = read(text, more).unwrap();
            let all = ["regatta".to_owned(), "shard".to_owned()].into_iter().chain(arguments);
            let matches = command().try_get_matches_from(all).unwrap();
            checked(&command(), &matches, file.as_ref())
        };
        assert_eq!(print(text, &[]), None);
        let printed = print(text, &["--check", "--grace", "1s"]).unwrap();
        let line = |key: &str| {
            let lines =
                printed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
            lines.into_iter().find(|line| line.trim_start_matches("# ").starts_with(key)).unwrap()
        };
        assert!(line("nodes =").starts_with("nodes = [\"a:1\", \"b:2\"] # /"), "{printed}");
        assert_eq!(line("grace ="), "grace = \"1s\" # command line");
        assert_eq!(line("node_timeout ="), "# node_timeout = \"10s\"");
        assert_eq!(line("client_buffer ="), "# client_buffer = 64");
        assert_eq!(line("password_file ="), "# password_file =");
        let zeros = print("node_user = \"007\"\nnode_password_file = \"7\"", &["--check"]).unwrap();
        assert!(
            zeros.contains("\nnode_user = \"007\" ") && zeros.contains("\nnode_password_file = 7 "),
            "{zeros}"
        );
        let again = print(&printed, &["--check"]).unwrap();
        let values = |text: &str| {
            text.lines()
                .map(|line| line.split("  # ").next().unwrap().trim().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(values(&again), values(&printed));
    }
}
