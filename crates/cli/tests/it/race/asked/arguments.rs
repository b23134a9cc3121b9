//! Invalid arguments are refused before anything is started.

use crate::support::race::course::{Course, SHORT};

#[test]
fn invalid_arguments_are_refused_with_the_permitted_values() {
    let course = Course::new();
    course.write("wrong.toml", "name = 'wrong'\nrounds = 'many'\n");
    course.write("key.toml", "workload = 'double'\n\nroundz = 3\n");
    course.write("load.toml", "[[load]]\nconections = 3\n");
    course.write("slip.toml", "contenders = ['epol', 'null']\n");
    course.write("other.toml", "contenders = ['nobody-at-all', 'null', 'epoll']\n");
    course.write("unserved.toml", "workload = 'dialogue'\ncontenders = ['silent', 'epoll']\n");
    let manifest =
        "name = 'silent'\nabout = 'x'\nworkloads = ['double']\nstart = ['x', '{port}']\n";
    course.write("peers/silent/manifest.toml", manifest);
    for (args, said) in [
        (&["dubble"][..], &["no race `dubble`", "quick, double, models, sweep, dialogue"][..]),
        (&["epol"], &["no race `epol`; did you mean `epoll`?"]),
        (&["./old {port}"], &["a single server has nothing to be compared with"]),
        (&["epoll", "nginx"], &["\"nginx\" is not given its port"]),
        (&["./a {port}", "./b {port}", "--http", "items"], &["--http", "a path starts with /"]),
        (&["hello", "--http", "/"], &["the race hello defines what to send"]),
        (&["--http", "/"], &["no known contender serves http", "'./old --port {port}'"]),
        (&["--http", "/", "--workload", "double"], &["--http", "cannot be used with"]),
        (&["-c", "0"], &["--connections", "above 0"]),
        (&["--rate", "50%"], &["--rate", "50% of slowest"]),
        (&["--resume", "out", "-c", "2"], &["cannot be used with", "--connections"]),
        (&["./mine.toml"], &["cannot read the race ./mine.toml"]),
        (&["wrong.toml"], &["the race wrong.toml cannot be understood", "line 2"]),
        (&["key.toml"], &["key.toml", "line 3, column 1", "did you mean `rounds`?"]),
        (&["load.toml"], &["load.toml", "line 2, column 1", "did you mean `connections`?"]),
        (&["slip.toml"], &["names the contender epol,", "did you mean `epoll`?", "--skip epol"]),
        (&["other.toml"], &["names the contender nobody-at-all, but there is no manifest"]),
        (&["unserved.toml"], &["the contender silent, which does not serve dialogue"]),
        (&["--only", "null,nul"], &["no contender \"nul\" in this race; did you mean `null`?"]),
        (
            &["--only", "null,nginx"],
            &["no contender \"nginx\" in this race; expected one of: epoll, "],
        ),
        (&["--skip", "nodejs"], &["no contender \"nodejs\"", "expected one of: epoll, "]),
        (&["--baseline", "nodejs"], &["the baseline nodejs does not take part", "epoll"]),
        (&["--only", "null"], &["no contender can race"]),
        (&["--window", "5"], &["--window", "250ms or 10s"]),
        (&["--window", "5 parsecs"], &["--window", "250ms or 10s"]),
        (&["--window", "49ms"], &["the window of 49ms is too short", "50ms"]),
        (&["--rounds", "0"], &["--rounds", "1.."]),
        (&["--seed", "9223372036854775808"], &["the seed 9223372036854775808", "below 2^63"]),
        (&["--seed", "18446744073709551616"], &["--seed", "18446744073709551616"]),
        (&["--seed", "-1"], &["-1"]),
        (&["--server-cpus", "4095"], &["CPU 4095 is not available"]),
        (&["--contender", "mine"], &["'name=command {port}'", "not \"mine\""]),
        (&["--contender", "mine="], &["mine has an empty start command"]),
        (&["--contender", "my server=x {port}"], &["a name must have only letters"]),
        (&["--contender", "mine=sh -c 'x {port}"], &["'name=command {port}'", "quote"]),
        (&["--resume", "out", "--rounds", "2"], &["cannot be used with", "--rounds"]),
        (&["--precision", "2"], &["--precision", "with the % sign, e.g. 5%"]),
        (&["--precision", "2%", "--rounds", "4"], &["--precision needs at least 5 rounds"]),
        (&["--only", "epoll,null", "--precision", "2%"], &["--precision has nothing to compare"]),
        (&["--fail-over", "-5%"], &["-5"]),
        (
            &["--only", "null,epoll", "--baseline", "epoll", "--fail-over", "5%"],
            &["--fail-over has nothing to compare with epoll", "--contender"],
        ),
        (&["--rounds", "1", "--fail-over", "5%"], &["--fail-over needs confidence intervals"]),
        (&["--resume", "out", "--fail-over", "5%"], &["cannot be used with", "--fail-over"]),
        (&["--json", "-", "--md", "-"], &["--json", "--md", "stdout"]),
    ] {
        let args = [args, if args[0] == "--resume" { &[] } else { &["--out", "out"] }].concat();
        let ended = course.race(&args);
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {}", ended.stderr);
        ended.assert_printed(said);
        assert!(ended.stdout.is_empty(), "{args:?}: {}", ended.stdout);
        assert!(!course.out().exists(), "{args:?} created a result directory");
    }
    assert!(course.processes().is_empty());
}

#[test]
fn a_contender_argument_overrides_only_but_not_skip() {
    let course = Course::new();
    let good = |name: &str| format!("{name}=sh -c 'exec \"$ILL\" {{port}}'");
    let (one, two) = (good("one"), good("two"));
    let given = ["--contender", &one, "--contender", &two, "--skip", "two", "--json", "-"];
    let ended = course.race(&[&SHORT[..], &given].concat()).raced();
    course.assert_nothing_left();
    assert_eq!(ended.summary().asked.contenders, ["null", "one"]);
}

#[test]
fn an_unknown_column_is_an_error_with_the_names_and_the_nearest() {
    let course = Course::new();
    for args in [&["quick", "--columns", "cost,p9"][..], &["quick", "--columns", "ration"]] {
        let ended = course.race(args).with_status(2);
        ended.assert_printed(&[
            "--columns",
            "possible values: contender, cost, machine, ratio",
            "similar",
        ]);
    }
    assert!(course.log().is_empty(), "a contender was started");
}
