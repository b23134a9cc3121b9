//! Compares the command table, the positions of keys and the texts of errors with a live
//! redis-server.

use crate::live::{Client, Redis, Reply, table};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use regatta_keyspace::{
    command::{Begin, Command, Description, Find, KeysError, VERSION, flag},
    map::{Map, Slots},
    route::{Plan, Route, decide},
};
use regatta_testkit::skip;

/// Starts a server. `None` if it is not of the release that the table describes, because another release
/// has other commands: the test is skipped.
fn server() -> Option<Redis> {
    let redis = Redis::start();
    let version = table::version(&mut redis.connect());
    let release = |version: &str| version.rsplit_once('.').map(|(release, _)| release.to_owned());
    if release(&version) != release(VERSION) {
        skip(&format!("the table describes Redis {VERSION}, the server is {version}"));
        return None;
    }
    Some(redis)
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn the_table_matches_the_server() {
    let Some(redis) = server() else { return };
    let saved = include_str!("../../src/command/table.rs");
    let entries = saved.lines().filter(|line| line.starts_with("    co")).map(str::trim_start);
    let (saved_lines, lines) = (entries.collect::<Vec<_>>(), table::lines(&mut redis.connect()));
    assert_eq!(saved_lines.len(), Command::all().len());
    for (saved, live) in saved_lines.iter().zip(&lines) {
        assert_eq!(saved, live, "run the example command_table");
    }
    assert_eq!(saved_lines.len(), lines.len(), "run the example command_table");
    if table::version(&mut redis.connect()) == VERSION {
        assert_eq!(saved, table::render(&mut redis.connect()), "run the example command_table");
    }
}

/// What a node describes is what the table says, in RESP2 and RESP3, unless a search for a word is necessary.
#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn the_server_describes_the_commands_of_the_table() {
    let Some(redis) = server() else { return };
    let mut client = redis.connect();
    let mut same = 0;
    for version in ["2", "3"] {
        client.bytes(&["HELLO", version]);
        for command in Command::all() {
            let reply = client.bytes(&["COMMAND", "INFO", command.name]);
            let description = Description::read(command.name, &reply).expect(command.name);
            let needs_words =
                command.specs.iter().any(|spec| !matches!(spec.begin, Begin::Index(_)));
            assert_eq!(
                description.is_of(command),
                !needs_words,
                "{}: {description:?}",
                command.name
            );
            if needs_words {
                // Under another name, because the keys of some of these are read in another way.
                let keys =
                    Description::read("x", &reply).unwrap().leak().keys(&["x"; 12][..]).err();
                assert_eq!(keys, Some(KeysError::Incomplete), "{}", command.name);
            } else {
                same += 1;
            }
        }
        assert_eq!(Description::read("foo", &client.bytes(&["COMMAND", "INFO", "foo"])), None);
    }
    assert!(same > 2 * 350, "only {same} commands");
}

/// Asserts that `COMMAND GETKEYS` and the table give the same keys for a request.
fn compare_keys(client: &mut Client, args: &[String]) {
    let question: Vec<&str> =
        ["COMMAND", "GETKEYS"].into_iter().chain(args.iter().map(String::as_str)).collect();
    let command = Command::find(args[0].as_bytes()).expect("a command");
    let command = args.get(1).and_then(|sub| command.subcommand(sub.as_bytes())).unwrap_or(command);
    let found: Option<Vec<&str>> =
        command.keys(args).ok().map(|keys| keys.map(|key| args[key].as_str()).collect());
    let found = found.unwrap_or_default();
    match client.ask(&question) {
        Reply::List(keys) => {
            assert_eq!(keys.iter().map(Reply::text).collect::<Vec<_>>(), found, "{args:?}");
        }
        Reply::Error(error) => {
            // With a count of 0, a destination is still a key.
            let counts_none = command.specs.iter().any(|spec| match (spec.begin, spec.find) {
                (Begin::Index(begin), Find::Number { at, .. }) => {
                    args.get(usize::from(begin + at)).is_some_and(|number| number == "0")
                }
                _ => false,
            });
            // PFMERGE has a destination even without sources. Redis accepts that.
            let has_no_sources = command.name == "pfmerge" && args.len() == 2;
            let is_known = found.is_empty() || counts_none || has_no_sources;
            assert!(is_known, "{args:?}: {}", error.escape_ascii());
        }
        other => panic!("{args:?}: {other:?}"),
    }
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn keys_match_those_of_the_server() {
    let Some(redis) = server() else { return };
    let mut client = redis.connect();
    for line in [
        "sort a",
        "sort a by w_* limit 0 1 get # get x desc store d",
        "sort a by store store d",
        "sort_ro a by w_*",
        "georadius a 1 2 3 m withdist count 5 any asc",
        "georadius a 1 2 3 m store d",
        "georadiusbymember a x 3 m storedist d",
        "xread streams a 0",
        "xread count 1 block 5 streams a b c 0 0 0",
        "xreadgroup group streams c streams a >",
        "xreadgroup group g c count 1 noack streams a b > >",
    ] {
        compare_keys(&mut client, &line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    }
    let mut random = SmallRng::seed_from_u64(11);
    let words = ["0", "1", "2", "3", "-1", "a", "b", "c", "weights", "limit", "ex", "store"];
    let mut compared = 0;
    for command in Command::all() {
        let has_keys = command.specs.iter().any(|spec| spec.flags & flag::NOT_KEY == 0);
        let by_options = ["sort", "georadius", "xread", "migrate"];
        if !has_keys || by_options.iter().any(|name| command.name.starts_with(name)) {
            continue;
        }
        for more in 0..40 {
            let mut args: Vec<String> = command.name.split('|').map(str::to_owned).collect();
            let arity = usize::from(command.arity.unsigned_abs());
            let count = if command.arity > 0 { arity } else { arity + more % 7 };
            args.resize_with(count, || words[random.random_range(0..words.len())].to_owned());
            compare_keys(&mut client, &args);
            compared += 1;
        }
    }
    assert!(compared > 5000, "only {compared} requests");
}

/// Asserts that the server's reply to a request and the decision over several nodes are the same
/// error.
fn decided(args: &[Vec<u8>]) -> Route {
    let map = Map::new(0, Slots::even(3).expect("a map"));
    decide(args, &map, &mut Plan::default()).route
}

fn compare_errors(client: &mut Client, args: &[Vec<u8>]) {
    let Route::Refused(text) = decided(args) else { panic!("{args:?} is not refused") };
    match client.ask(args) {
        Reply::Error(error) => {
            assert_eq!(error.escape_ascii().to_string(), text.escape_ascii().to_string());
        }
        other => panic!("{args:?}: {other:?}"),
    }
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn errors_have_the_wording_of_the_server() {
    let Some(redis) = server() else { return };
    let mut client = redis.connect();
    let long = |byte: u8| vec![byte; 200];
    let bytes = |words: &[&[u8]]| words.iter().map(|word| word.to_vec()).collect::<Vec<_>>();
    for args in [
        bytes(&[b"foo"]),
        bytes(&[b"FOO", b"", b"a b", b"'"]),
        bytes(&[b"", b"a"]),
        bytes(&[b"fo\r\no\0x", b"a\r\nb", b"c\0d", b"\x01\xff"]),
        vec![long(b'x'), long(b'y'), long(b'z')],
        vec![b"foo".to_vec(), vec![b'y'; 123], b"abc".to_vec(), b"def".to_vec()],
        bytes(&[b"client|id"]),
        bytes(&[b"client", b"foo"]),
        bytes(&[b"cLient", b"a\r\nb\0c", b"d"]),
        vec![b"config".to_vec(), long(b'x')],
        bytes(&[b"cluster", b"info"]),
        bytes(&[b"readonly"]),
        bytes(&[b"mset", b"a", b"1", b"b"]),
        bytes(&[b"msetnx", b"a", b"1", b"b"]),
        bytes(&[b"scan", b"x"]),
        bytes(&[b"scan", b"99999999999999999999"]),
    ] {
        compare_errors(&mut client, &args);
    }
    let (mut compared, mut left_to_nodes) = (0, 0);
    for command in Command::all() {
        let mut args: Vec<Vec<u8>> =
            command.name.split('|').map(|part| part.as_bytes().to_vec()).collect();
        let arity = usize::from(command.arity.unsigned_abs());
        if args.len() < arity {
            args.resize(arity - 1, b"x".to_vec());
            compare_errors(&mut client, &args);
            compared += 1;
        }
        if command.arity > 0 && !command.is_container {
            args.resize(arity + 1, b"x".to_vec());
            // A node decides whether its version takes more than one key and the known arguments.
            if matches!(decided(&args), Route::Refused(_)) {
                compare_errors(&mut client, &args);
                compared += 1;
            } else {
                assert!(command.has(flag::READONLY), "{}", command.name);
                left_to_nodes += 1;
            }
        }
    }
    assert!(compared > 300, "only {compared} requests");
    assert!((20..60).contains(&left_to_nodes), "{left_to_nodes}");
}
