//! A container is removed on every path, also before it is ready. Its engine is a script that behaves
//! like docker: what it runs is not below its client, and stays if the client is killed.

use super::common::{LIMIT, helper, launch, wait_until};
use regatta_host::{
    Container, ContainerOptions, Containment, InContainer, Launch, NotReady, Ready, Running,
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;

/// A folder with the engine and its containers: a file for each.
fn engine() -> TempDir {
    let folder = TempDir::new().unwrap();
    let script = r#"#!/bin/sh
cd "$(dirname "$0")"
case $1 in
run)
    touch "container-$2"; trap "" TERM
    for _ in $(seq 6000); do test ! -e inspected || break; sleep 0.01; done
    echo "the address is in use" >&2; exit 98;;
inspect) touch inspected; echo 0;;
rm) test -e "container-$3" && rm "container-$3";;
*) exit 1;;
esac
"#;
    let path = folder.path().join("docker");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn contained(engine: &Path) -> Launch {
    let docker = engine.join("docker");
    let container = Container::new(docker.clone());
    let mut launch = launch(Containment::Without, "");
    let words = container.command(InContainer {
        image: "image",
        words: vec![],
        run: engine,
        cpus: &[],
        env: &[].into(),
        options: &ContainerOptions::default(),
    });
    let name = words.iter().find_map(|word| word.strip_prefix("--name=")).unwrap();
    launch.command = [docker.to_str().unwrap(), "run", name].map(String::from).to_vec();
    launch.container = Some(container);
    launch
}

fn containers(engine: &Path) -> usize {
    let names = fs::read_dir(engine).unwrap().flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_str().unwrap().starts_with("container-")).count()
}

fn started(engine: &Path) -> Running {
    let running = Running::start(helper(), &contained(engine)).unwrap();
    wait_until("the container is created", || containers(engine) == 1);
    running
}

#[test]
fn a_container_that_never_became_ready_is_removed_by_a_stop() {
    let engine = engine();
    let mut running = started(engine.path());
    running.wait_ready(&Ready::Tcp, Duration::from_millis(50)).unwrap_err();
    running.stop(Duration::ZERO).unwrap();
    assert_eq!(containers(engine.path()), 0);
}

/// It ends while the engine is asked for it, and the engine knows no process of it.
#[test]
fn a_container_that_ends_while_another_program_answers_on_its_port_says_why() {
    let engine = engine();
    let mut running = started(engine.path());
    let _other = TcpListener::bind(running.address()).unwrap();
    let why = running.wait_ready(&Ready::Tcp, LIMIT).unwrap_err();
    let NotReady::Ended { words, .. } = &why else { panic!("{why}") };
    assert!(words.contains("the address is in use"), "{why}");
}

#[test]
fn a_container_is_removed_if_its_contender_is_dropped() {
    let engine = engine();
    drop(started(engine.path()));
    assert_eq!(containers(engine.path()), 0);
}

#[test]
fn a_container_is_removed_if_the_supervisor_was_killed() {
    let engine = engine();
    let running = started(engine.path());
    let supervisor = Pid::from_raw(running.supervisor_pid() as i32).unwrap();
    kill_process(supervisor, Signal::KILL).unwrap();
    running.stop(LIMIT).unwrap_err();
    assert_eq!(containers(engine.path()), 0);
}

#[test]
fn a_container_is_removed_if_race_was_killed() {
    let engine = engine();
    let launch = contained(engine.path());
    let mut race = Command::new(helper())
        .args(["race", &serde_json::to_string(&launch).unwrap()])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the container is created", || containers(engine.path()) == 1);
    race.kill().unwrap();
    race.wait().unwrap();
    wait_until("the container is removed", || containers(engine.path()) == 0);
}
