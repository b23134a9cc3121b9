//! The machine, the settings and the contenders, as tables.

use regatta_record::{Entry, ServerMachine, Setup, Summary, joined};
use regatta_report::{numbers, protocol_in_words, table::visible};
use serde::Serialize;

/// A contender as described on the page.
#[derive(Debug, Serialize)]
pub struct Contender {
    name: String,
    about: String,
    version: String,
    age: String,
    /// The command, after its environment.
    start: String,
    /// The directory of its manifest, which usually contains its source.
    dir: String,
    /// Its manifest: all settings.
    manifest: String,
    lines_of_code: Option<u32>,
    /// Size of a reply in bytes.
    reply: String,
    skipped: bool,
}

/// The contenders, in the order of the race.
pub fn contenders(summary: &Summary) -> Vec<Contender> {
    let about = |e: &Entry| match &e.stand_in_for {
        Some(system) => format!("{} (stands in for {system})", e.about),
        None => e.about.clone(),
    };
    let reply = |e: &Entry| {
        let mut cells = summary.cells.iter().filter(|cell| cell.contender == e.name);
        let reply = cells.find_map(|cell| cell.reply)?;
        let date = if reply.has_date { "with Date" } else { "without Date" };
        Some(format!("{} bytes, {date}", numbers::grouped(reply.bytes)))
    };
    let of = |e: &Entry| Contender {
        about: visible(&about(e)),
        reply: reply(e).unwrap_or_default(),
        ..contender(e, &summary.asked.setup)
    };
    summary.asked.entries.iter().map(of).collect()
}

/// A contender, without the size of its reply.
pub fn contender(e: &Entry, setup: &Setup) -> Contender {
    Contender {
        name: visible(&e.name),
        about: visible(&e.about),
        version: visible(&e.version(setup).unwrap_or_default()),
        age: e.age(setup.started_unix_s).unwrap_or_default(),
        start: visible(&e.command()),
        dir: visible(&e.dir.display().to_string()),
        manifest: e.manifest.trim().lines().map(visible).collect::<Vec<_>>().join("\n"),
        lines_of_code: e.lines_of_code,
        reply: String::new(),
        skipped: e.skipped.is_some(),
    }
}

/// The machine in one line.
pub fn machine(summary: &Summary) -> String {
    let asked = &summary.asked;
    let (server, load) = (joined(&asked.cpus.server, ","), joined(&asked.cpus.load, ","));
    match &asked.server {
        None => {
            format!("{}; server on CPU {server}, load on CPU {load}", hardware(&asked.setup))
        }
        Some(machine) => format!(
            "server on CPU {server} of {} ({}); load on CPU {load} of another machine ({})",
            visible(&machine.name),
            hardware(&machine.setup),
            hardware(&asked.setup)
        ),
    }
}

/// CPU, memory and kernel in one line.
pub fn hardware(setup: &Setup) -> String {
    let kernel = setup.kernel.split(" #").next().unwrap_or_default();
    let cpu = if setup.cpu.is_empty() { "unknown CPU" } else { &setup.cpu };
    let memory = numbers::memory(setup.memory_bytes);
    visible(&format!("{cpu}, {} CPUs, {memory}, {kernel}", setup.cpus))
}

/// Names and values of the settings and of the machine.
pub fn settings(summary: &Summary) -> Vec<(&'static str, String)> {
    let asked = &summary.asked;
    let over = protocol_in_words(asked.over.as_deref()).map(str::to_owned);
    let rows = [
        ("CPUs of the server", joined(&asked.cpus.server, ", ")),
        ("CPUs of the load", joined(&asked.cpus.load, ", ")),
        ("rounds", asked.rounds.to_string()),
        ("window", format!("{} s, after at most {} s of warm-up", asked.window_s, asked.warm_up_s)),
        ("observed before", format!("at most {} s, until the cost is steady", asked.settle_s)),
        ("seed", asked.seed.to_string()),
        ("protocol", over.unwrap_or_else(|| "the usual one of the workload".to_owned())),
        ("heads", asked.heads.map_or_else(|| "not applicable".to_owned(), |it| it.to_string())),
    ];
    let rows = rows.map(|(name, value)| (name, visible(&value)));
    let of_server = asked.server.iter().map(|machine| {
        let ServerMachine { name, address, setup, .. } = machine;
        let text = format!("{name} at {address}: {}", hardware(setup));
        ("server machine", visible(&text))
    });
    of_machine(&asked.setup).into_iter().chain(of_server).chain(rows).collect()
}

/// Names and values of the machine, and of the start.
pub fn of_machine(setup: &Setup) -> Vec<(&'static str, String)> {
    let unknown = || "unknown".to_owned();
    let rows = [
        ("started", numbers::date(setup.started_unix_s)),
        ("regatta", setup.regatta.clone()),
        ("command line", shell_words::join(&setup.command_line)),
        ("kernel", setup.kernel.clone()),
        ("CPU", format!("{} ({} online)", setup.cpu, setup.cpus)),
        ("memory", numbers::memory(setup.memory_bytes)),
        ("clock source", setup.clock_source.clone()),
        ("frequency governor", setup.governor.clone().unwrap_or_else(|| "none".to_owned())),
        ("mitigations", setup.mitigations.join("; ")),
        ("open files", numbers::grouped(setup.open_files)),
        ("somaxconn", setup.somaxconn.map_or_else(unknown, numbers::grouped)),
        ("local ports", setup.port_range.map_or_else(unknown, |(a, b)| format!("{a} to {b}"))),
        ("cgroup", setup.cgroup.clone()),
    ];
    rows.map(|(name, value)| (name, visible(&value))).to_vec()
}
