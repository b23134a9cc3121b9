//! `regatta load --on` over real SSH servers, on machines whose clocks differ.

use crate::support::{Server, lab::Lab, processes::assert_right};
use std::process::Command;

#[test]
#[cfg_attr(
    not(all(has_ip, has_sshd)),
    ignore = "ip or sshd is not installed (scripts/setup --all)"
)]
fn two_machines_with_other_clocks_load_a_server_over_ssh() {
    let Some(lab) = Lab::up("--machines 2 --clocks 7,1000") else { return };
    let server = Server::double("epoll", &["--listen", "0.0.0.0:0"]);
    let url = format!("line://198.18.0.1:{}", server.addr.port());
    let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
    command.args(["load", &url, "--on", "lab1,lab2", "--deploy", "-c", "20", "-d", "1s"]);
    let output = command.args(["--json", "-"]).env("REGATTA_SSH", &lab.ssh).output().unwrap();
    let result = assert_right(&output, 20, 2);
    let on = &result["agents"];
    // The machines share the CPUs of this one.
    assert!(on["edges_within_ns"].as_u64().unwrap() < 100_000_000, "{on:#}");
    for agent in on["agents"].as_array().unwrap() {
        assert!(agent["requests"].as_u64().unwrap() > 0, "{agent:#}");
        assert!(agent["clock_bound_ns"].as_u64().unwrap() < 10_000_000, "{agent:#}");
    }
}
