//! Contenders that do not start.

use crate::support::race::course::Course;
use regatta_record::Kind;
use std::{fs, net::TcpListener};

#[test]
fn a_contender_that_never_listens_fails_after_half_a_minute() {
    let course = Course::new();
    let ended = course.race_short("bad=sh -c 'exec sleep 1000' {port}").with_status(1);
    course.assert_nothing_left();
    let said = ["bad was not ready within 30 s", "nothing accepts on 127.0.0.1:"];
    ended.assert_verdict("bad", Kind::Failed, &said);
}

#[test]
fn a_contender_that_exits_at_once_fails_with_its_message() {
    let course = Course::new();
    let ended = course.race_short("bad=sh -c 'exec \"$ILL\" {port} refuses'").with_status(1);
    course.assert_nothing_left();
    let said = ["bad exited with status 4 before it was ready", "no licence for this machine"];
    ended.assert_verdict("bad", Kind::Failed, &said);
    ended.assert_printed(&["failed: bad", "no licence"]);
}

#[test]
fn a_contender_whose_port_is_taken_fails_with_its_message() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let course = Course::new();
    let bad = format!("bad=sh -c 'exec \"$ILL\" {port}' {{port}}");
    let ended = course.race_short(&bad).with_status(1);
    course.assert_nothing_left();
    let said = [&*format!("cannot listen on {port}"), "in use", "exited with status 1"];
    ended.assert_verdict("bad", Kind::Failed, &said);
}

#[test]
fn a_contender_that_does_not_exist_is_wrong_usage() {
    let course = Course::new();
    for (command, said) in [
        ("bad=./no-such-program {port}", "/no-such-program; build it, or correct its path"),
        ("bad=no-such-program-at-all {port}", "no-such-program-at-all is not found"),
    ] {
        let ended = course.race_short(command).with_status(2);
        ended.assert_printed(&["the contender bad cannot race", said]);
        assert!(!course.out().exists(), "a result directory was created");
    }
}

#[test]
fn a_contender_that_cannot_be_executed_fails() {
    let course = Course::new();
    course.write("program", "#!/no/such/interpreter\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(course.path("program"), mode).unwrap();
    let ended = course.race_short("bad=./program {port}").with_status(1);
    course.assert_nothing_left();
    ended.assert_verdict("bad", Kind::Failed, &["bad cannot be started: `./program` in "]);
}

#[test]
fn a_contender_with_an_unknown_placeholder_fails() {
    let course = Course::new();
    let ended = course.race_short("bad=sh -c 'exec \"$ILL\" {port}' {threads}").with_status(1);
    course.assert_nothing_left();
    let said = ["unknown placeholder {threads}", "expected {host}, {port}, "];
    ended.assert_verdict("bad", Kind::Failed, &said);
    ended.assert_printed(&["failed: bad: "]);
}

#[test]
fn a_contender_without_the_port_in_its_command_is_wrong_usage() {
    let course = Course::new();
    let ended = course.race_short("bad=sh -c 'exec \"$ILL\" 4000'").with_status(2);
    ended.assert_printed(&["bad is not given its port", "{port}"]);
    assert!(!course.out().exists(), "a result directory was created");
}

/// A race of a contender that always listens on this port.
fn fixed(course: &Course, port: u16) {
    course.write(
        "fixed.toml",
        &format!(
            "workload = 'double'\ncontenders = ['fixed', 'null']\nrounds = 1\nwindow = '1s'\n\
             warm_up = '0s'\n[[load]]\nconnections = 4\nrate = 200\n[[contender]]\nname = 'fixed'\n\
             about = 'x'\nworkloads = ['double']\nport = {port}\n\
             start = ['sh', '-c', 'exec \"$ILL\" {port}']\n"
        ),
    );
}

#[test]
fn a_contender_with_a_fixed_port_listens_there_and_fails_if_that_is_taken() {
    let course = Course::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    fixed(&course, port);
    let args = ["fixed.toml", "--json", "-", "--out"];
    let refused = course.race(&[&args[..], &["out"]].concat()).with_status(1);
    let said = [&*format!("another program listens on port {port}, which is the only one")];
    refused.assert_verdict("fixed", Kind::Failed, &said);
    assert!(course.log().is_empty(), "it was started");
    drop(taken);
    course.race(&[&args[..], &["again"]].concat()).raced();
    let (_, said) = &course.log()[0];
    assert_eq!(*said, format!("listens {port}"));
    course.assert_nothing_left();
}

#[test]
fn contenders_of_one_port_are_refused_in_duels_and_raced_in_rounds() {
    let course = Course::new();
    let port = regatta_host::free_port().unwrap();
    fixed(&course, port);
    let text = fs::read_to_string(course.path("fixed.toml")).unwrap();
    let (head, own) = text.split_once("[[contender]]").unwrap();
    let other = own.replace("'fixed'", "'other'");
    let head = head.replace("'null'", "'other'");
    course.write("two.toml", &format!("{head}[[contender]]{own}[[contender]]{other}"));
    let refused = course.race(&["two.toml", "--out", "out"]).with_status(2);
    let said =
        format!("fixed and other always listen on port {port}, so they cannot be alive together");
    refused.assert_printed(&[&said, "(--schedule rounds)"]);
    assert!(!course.out().exists() && course.log().is_empty());
    course.race(&["two.toml", "--schedule", "rounds", "--out", "out"]).raced();
    let ports: Vec<String> = course.log().into_iter().map(|(_, said)| said).collect();
    assert_eq!(ports, [format!("listens {port}"), format!("listens {port}")]);
    course.assert_nothing_left();
}
