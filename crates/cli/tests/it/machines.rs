//! The file of machines: names for `--on` and `--server`. A script in place of `ssh` runs the commands here.

use crate::support::{Server, regatta, run};
use regatta_testkit::child::Ended;
use serde_json::Value;
use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
};
use tempfile::TempDir;

const REGATTA: &str = env!("CARGO_BIN_EXE_regatta");

/// A folder with the script in place of `ssh`, which appends its arguments but the last to `log`, and with the file
/// `machines.toml`.
struct Place(TempDir);

impl Place {
    fn new(machines: &str) -> Place {
        let folder = TempDir::new().unwrap();
        let path = folder.path();
        let script = format!(
            "#!/bin/sh\n\
             for last; do [ -z \"$command\" ] || echo \"$command\" >> {0}/log; command=$last; done\n\
             export HOME={0}\n\
             exec sh -c \"$command\"\n",
            path.display()
        );
        fs::write(path.join("ssh"), script).unwrap();
        fs::set_permissions(path.join("ssh"), Permissions::from_mode(0o755)).unwrap();
        fs::write(path.join("machines.toml"), machines).unwrap();
        symlink(REGATTA, path.join("my regatta")).unwrap();
        Place(folder)
    }

    fn run(&self, args: &[&str]) -> Ended {
        let mut command = regatta!("");
        command.args(args).env("REGATTA_SSH", self.0.path().join("ssh"));
        command.env("REGATTA_MACHINES", self.0.path().join("machines.toml"));
        run(command.current_dir(self.0.path()))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.0.path().join("log")).unwrap_or_default()
    }
}

#[test]
fn a_load_runs_on_a_machine_by_its_name() {
    let place = Place::new(
        "[gen1]\nssh = \"bench@10.0.0.7\"\noptions = [\"-p\", \"2222\"]\nprogram = \"~/my regatta\"\n",
    );
    let server = Server::double("epoll", &[]);
    let url = format!("line://{}", server.addr);
    let done = place.run(&[
        "load",
        &url,
        "-d",
        "200ms",
        "--warm-up",
        "50ms",
        "--on",
        "gen1",
        "--json",
        "-",
    ]);
    assert_eq!(done.code(), 0, "{done:?}");
    let result: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(result["agents"]["agents"][0]["name"], "gen1");
    let log = place.log();
    assert!(log.starts_with("-p\n2222\n-T\n-oBatchMode=yes\n"), "{log}");
    assert!(log.ends_with("\nbench@10.0.0.7\n"), "{log}");
}

#[test]
fn a_race_takes_the_address_of_its_server_from_the_file() {
    // An address that the machine does not have.
    let place = Place::new("[sut]\nprogram = \"~/my regatta\"\naddress = \"198.51.100.7\"\n");
    let servers = ["a=./a {host}:{port}", "b=./b {host}:{port}"];
    let race =
        [&["race", "--debug-build", "--workload", "double", "--server", "sut"][..], &servers]
            .concat();
    let refused = place.run(&race);
    assert_eq!(refused.code(), 2, "{refused:?}");
    assert!(refused.stderr.contains("198.51.100.7"), "{refused:?}");
    let other = place.run(&[&race[..], &["--server-address", "198.51.100.8"]].concat());
    assert!(other.stderr.contains("198.51.100.8"), "the option comes first: {other:?}");
}

#[test]
fn a_wrong_file_is_refused_with_its_line_before_anything_starts() {
    let place = Place::new("[gen1]\n\nadress = \"10.0.0.7\"\n");
    let refused = place.run(&["load", "line://127.0.0.1:1", "--on", "gen1"]);
    assert_eq!(refused.code(), 2, "{refused:?}");
    let expected = "machines.toml, line 3: gen1: there is no key adress; expected one of: \
                    ssh, options, program, address\n";
    assert!(refused.stderr.ends_with(expected), "{refused:?}");
    fs::remove_file(place.0.path().join("machines.toml")).unwrap();
    let refused = place.run(&["load", "line://127.0.0.1:1", "--on", "gen1"]);
    assert!(refused.stderr.contains("machines.toml (REGATTA_MACHINES): "), "{refused:?}");
    assert_eq!(place.log(), "");
}
