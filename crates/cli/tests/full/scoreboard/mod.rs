//! How correct the proxies and the hubs are, from runs: our server beside every peer that is installed. Prints a
//! table for each, and writes it to the folder that the variable SCOREBOARD names, if there is one.

mod hubs;
mod proxies;

use crate::support::{contender::Running, regatta};
use regatta_race::{Adapter, Contender, RoleCpus, built_in, peers_folder};
use regatta_record::{EXHIBIT, LoadResult};
use regatta_testkit::skip;
use std::{fs, net::SocketAddr, path::Path};

/// The model with which our server takes part.
const OURS: &str = "epoll";
/// The arguments of a load that every table has, with the length of its window.
const LENGTH: [&str; 4] = ["-d", "5s", "--json", "-"];

/// Returns our server and the installed peers of a workload, exhibits last. Reports those that are missing.
fn contenders(workload: &str) -> Vec<Contender> {
    let mut all: Vec<Contender> =
        built_in().into_iter().filter(|one| one.manifest.name == OURS).collect();
    let folder = peers_folder().expect("this checkout has peers");
    all.extend(Contender::find_all(&folder).expect("the manifests are right"));
    all.retain(|one| one.manifest.workloads.iter().any(|name| name == workload));
    all.retain(|one| match one.missing() {
        Some(why) => {
            skip(&format!("{}: {why}", one.manifest.name));
            false
        }
        None => true,
    });
    all.sort_by_key(is_exhibit);
    all
}

fn is_exhibit(contender: &Contender) -> bool {
    contender.manifest.about.starts_with(EXHIBIT)
}

/// Starts a contender as in a race, on one core.
fn start(contender: &Contender, workload: &str) -> Running {
    Running::start(contender, workload, 1, &RoleCpus::default())
        .unwrap_or_else(|why| panic!("{} does not start: {why}", contender.manifest.name))
}

/// The URL of a running contender.
fn url(contender: &Contender, scheme: &str, addr: SocketAddr) -> String {
    let path =
        if scheme == "ws" { contender.manifest.path.as_deref().unwrap_or("/ws") } else { "" };
    format!("{scheme}://{addr}{path}")
}

/// Loads a server, and returns the result. The error says why there is none.
fn load(contender: &Contender, url: &str, arguments: &[&str]) -> Result<LoadResult, String> {
    let mut command = regatta!("load {url}");
    command.args(arguments).args(LENGTH);
    if let Some(Adapter::Speaks(name)) = contender.manifest.adapter {
        command.args(["--adapter", name]);
    }
    let output = command.output().expect("the load runs");
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).map_err(|_| {
        said.lines().last().map_or_else(|| output.status.to_string(), ToOwned::to_owned)
    })
}

/// The command of [`load`], for a reader.
fn load_in_words(scheme: &str, arguments: &[&str]) -> String {
    let url = format!("{scheme}://HOST:PORT");
    [&["regatta", "load", &url], arguments, &LENGTH[..2]].concat().join(" ")
}

/// Prints a table, and writes it to the folder for the scoreboard.
fn publish(name: &str, table: &str) {
    println!("{table}");
    if let Some(folder) = std::env::var_os("SCOREBOARD") {
        let path = Path::new(&folder).join(format!("{name}.md"));
        fs::write(&path, table).expect("the scoreboard can be written");
    }
}
