//! Combines a race file, the command line and the known contenders into the race to run.

mod unfit_for_duels;

use crate::{
    ask::{
        choice::{
            PEERS, baseline, check_known, check_over, check_unique, choose, does_not_serve, serves,
            serves_otherwise,
        },
        contest::{Contest, SHORTEST_WINDOW},
        elsewhere, heads, over,
    },
    contenders::{find_contenders::Contender, manifest::Manifest, nearest::hint},
};
use regatta_host::RunningUrl;
use regatta_judge::{LEAST_PASSES, MOST_PASSES};
use regatta_record::{
    Asked, Core, CpuSets, Entry, FORMAT, Heads, NULL, RunningServer, Schedule, ServerMachine,
    Setup, twin_name,
};
use regatta_script::Workload;
use serde::Deserialize;
use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// Maximum number of passes of a race that only a time ends.
const MOST_IN_TIME: u32 = 10_000;

/// What the command line changes in a race file.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Number of passes.
    pub rounds: Option<u32>,
    /// Target half-width of the confidence intervals of all ratios, as a fraction.
    pub precision: Option<f64>,
    /// How much more than the baseline a contender may cost, as a fraction.
    pub fail_over: Option<f64>,
    /// Time after which no pass starts.
    pub time: Option<Duration>,
    /// How contenders take turns.
    pub schedule: Option<Schedule>,
    /// Length of a slice of a duel.
    pub slice: Option<Duration>,
    /// Length of the window.
    pub window: Option<Duration>,
    /// Maximum time that each contender is observed before its first round; zero: not observed.
    pub settle: Option<Duration>,
    /// Seed; must be below 2⁶³ because TOML has no larger integers.
    pub seed: Option<u64>,
    /// The contenders to run; empty: all of them.
    pub only: Vec<String>,
    /// The contenders to leave out.
    pub skip: Vec<String>,
    /// The contender that ratios are taken to.
    pub baseline: Option<String>,
    /// More contenders, as `name=command {port}`. They replace those of the same name.
    pub contenders: Vec<String>,
    /// CPUs of the contenders.
    pub server_cpus: Option<Vec<u32>>,
    /// CPUs of the load.
    pub load_cpus: Option<Vec<u32>>,
    /// Whether the load sleeps while it is idle, instead of busy-polling.
    pub load_sleeps: bool,
    /// The heads of the requests.
    pub heads: Option<Heads>,
    /// The machine of the contenders, if it is another one.
    pub server: Option<ServerMachine>,
}

/// Why the requested race cannot be run, as a sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PrepareError(String);

/// Returns the checkout that this program was built from, if it still exists. The lines of code of
/// the built-in contenders are counted there, and its `peers/` are found from any directory.
fn checkout() -> Option<PathBuf> {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")).ok()
}

/// Returns the folder of peers: `peers/` in the working directory if it has a manifest below it,
/// otherwise that of the checkout.
pub fn peers_folder() -> Option<PathBuf> {
    let here = PathBuf::from("peers");
    let has_manifest = |folder: fs::DirEntry| folder.path().join("manifest.toml").is_file();
    if fs::read_dir(&here).is_ok_and(|mut folders| folders.any(|f| f.is_ok_and(has_manifest))) {
        return Some(here);
    }
    checkout().map(|checkout| checkout.join("peers")).filter(|folder| folder.is_dir())
}

/// Returns the built-in contenders.
pub fn built_in() -> Vec<Contender> {
    #[derive(Deserialize)]
    struct File {
        contender: Vec<Manifest>,
    }
    let file: File = toml::from_str(include_str!("../../../../../../races/contenders.toml"))
        .expect("the bundled manifests are right");
    let here = || env::current_dir().unwrap_or_else(|_| "/".into());
    let dir = checkout().unwrap_or_else(here);
    file.contender.into_iter().map(|manifest| Contender { manifest, dir: dir.clone() }).collect()
}

/// Decides the contenders, loads and CPUs of a race. `known` are all known contenders, `setup`
/// describes the machine. Loads at a share of what the contenders can do are entered as
/// closed loops; [`pilot`](crate::pilot()) replaces them with loads at a rate.
#[expect(clippy::too_many_lines, reason = "it fills one record")]
pub fn prepare(
    contest: &Contest,
    changes: &Changes,
    known: &[Contender],
    setup: Setup,
) -> Result<Asked, PrepareError> {
    let workload = contest.workload.as_str();
    let service = &contest.service();
    let spoken = match &contest.workload_file {
        Some(text) => {
            Workload::from_text(text, workload).map_err(|error| PrepareError(error.to_string()))?
        }
        None => Workload::parse(workload).ok_or_else(|| {
            PrepareError(format!(
                "there is no built-in workload {workload:?}; to use a workload file, give its \
                 path, which ends in .toml"
            ))
        })?,
    };
    let over = contest.over.as_deref();
    let spoken = over::adopted(spoken, over).map_err(PrepareError)?;
    let window = changes.window.unwrap_or(contest.window);
    if window < SHORTEST_WINDOW {
        return Err(PrepareError(format!(
            "the window of {window:?} is too short to measure anything; it must be at least 50ms"
        )));
    }
    let known = &with_own(contest, known)?;
    check_over(contest, known, &changes.only).map_err(PrepareError)?;
    let server = changes.server.as_ref();
    let mut entries = named(contest, known, server);
    if contest.all_named {
        entries.iter().try_for_each(check_can_race)?;
    }
    // A contender named with --only takes part even if the race file does not name it.
    for name in &changes.only {
        let asked_for = |c: &&Contender| c.manifest.name == *name && serves(contest, c);
        if !entries.iter().any(|entry| entry.name == *name) {
            entries.extend(
                known.iter().find(asked_for).map(|one| entry(contest, one, service, server)),
            );
        }
    }
    let mut given = Vec::new();
    for argument in &changes.contenders {
        let entry = of_argument(contest, argument, service, server)?;
        entries.retain(|other| other.name != entry.name);
        given.push(entry.name.clone());
        entries.push(entry);
    }
    choose(&mut entries, &given, &changes.only, &changes.skip).map_err(PrepareError)?;
    check_known(contest, known, &entries, &given).map_err(PrepareError)?;
    check_unique(&entries).map_err(PrepareError)?;
    check_running(&entries, &spoken).map_err(PrepareError)?;
    let baseline = baseline(contest, changes.baseline.as_ref(), &entries).map_err(PrepareError)?;
    let precision = precision(contest, changes);
    // A number of rounds alone replaces what the file says of the end.
    let keeps_time = changes.rounds.is_none() || precision.is_some();
    let time = changes.time.or(contest.time.filter(|_| keeps_time));
    let rounds = rounds(contest, changes, precision)?;
    if changes.precision.is_some() {
        check_compared("--precision", &entries, &baseline)?;
    }
    if changes.fail_over.is_some() {
        check_gate(&entries, &baseline, rounds)?;
    }
    // The race file's choice, or the baseline if that contender does not take part: without a twin
    // there is no noise floor. A single round has no interval, so a twin would show nothing.
    let twin_of = contest.twin_of.iter().chain([&baseline]).find_map(|name| {
        let takes_part =
            |e: &Entry| rounds > 1 && e.name == *name && e.name != NULL && e.skipped.is_none();
        entries.iter().position(takes_part)
    });
    let twin_of = twin_of.map(|at| {
        let original = entries[at].name.clone();
        let twin = Entry { name: twin_name(&original), ..entries[at].clone() };
        entries.insert(at + 1, twin);
        original
    });
    let seed = changes.seed.unwrap_or_else(|| rand::random::<u64>() >> 32);
    if seed >= 1 << 63 {
        return Err(PrepareError(format!("the seed {seed} is too large; it must be below 2^63")));
    }
    let cpus = match server {
        Some(server) => of_two_machines(changes, server, &setup.cores)?,
        None => cpu_sets(changes, &setup.cores)?,
    };
    let (loads, left_out) = contest.loads(&cpus);
    if loads.is_empty() {
        let left_out = left_out.join("; ");
        return Err(PrepareError(format!(
            "none of this race's loads can run on this machine: {left_out}"
        )));
    }
    if let Some(load) = loads.iter().find(|load| load.pipeline > 1 && spoken.is_sequential()) {
        return Err(PrepareError(format!(
            "the workload {workload} has conversations, whose steps follow one another, but servers process \
             the {} requests of a connection{} at the same time; use a pipeline of 1",
            load.pipeline,
            over::in_words(over)
        )));
    }
    let asked = Asked {
        format: FORMAT,
        name: contest.name.clone(),
        workload: workload.into(),
        over: contest.over.clone(),
        cost_per: spoken.cost_per(),
        latency_of: spoken.limited(),
        contenders: entries.iter().map(|e| e.name.clone()).collect(),
        baseline,
        twin_of,
        rounds,
        precision,
        schedule: changes.schedule.unwrap_or(contest.schedule),
        slice_s: changes.slice.or(contest.slice).map(|slice| slice.as_secs_f64()),
        time_s: time.map(|time| time.as_secs_f64()),
        fail_over: changes.fail_over,
        busy_poll: !changes.load_sleeps,
        window_s: window.as_secs_f64(),
        warm_up_s: contest.warm_up.as_secs_f64(),
        settle_s: changes.settle.unwrap_or(contest.settle).as_secs_f64(),
        seed,
        heads: heads::chosen(changes.heads.or(contest.heads), &spoken).map_err(PrepareError)?,
        then_source: contest.then_source.clone(),
        then: contest.then(&cpus, &loads),
        loads,
        cpus,
        setup,
        fingerprint: None,
        server: server.cloned(),
        left_out,
        pilot: Vec::new(),
        pilot_shares: Vec::new(),
        workload_file: contest.workload_file.clone(),
        entries,
    };
    if server.is_some() {
        elsewhere::check(&asked).map_err(PrepareError)?;
    }
    unfit_for_duels::check(&asked).map_err(PrepareError)?;
    Ok(asked)
}

/// Returns the target precision. A number of rounds on the command line replaces that of the race file.
fn precision(contest: &Contest, changes: &Changes) -> Option<f64> {
    changes.precision.or(contest.precision.filter(|_| changes.rounds.is_none()))
}

/// Returns the number of passes; with a target precision or a time, the maximum.
fn rounds(
    contest: &Contest,
    changes: &Changes,
    precision: Option<f64>,
) -> Result<u32, PrepareError> {
    if precision.is_none() {
        // A time on the command line replaces the number of the race file.
        let of_file = if changes.time.is_some() { MOST_IN_TIME } else { contest.rounds };
        return Ok(changes.rounds.unwrap_or(of_file));
    }
    let most = changes.rounds.unwrap_or(MOST_PASSES);
    if most < LEAST_PASSES {
        return Err(PrepareError(format!(
            "--precision needs at least {LEAST_PASSES} rounds, but --rounds {most} permits fewer; \
             with --precision, --rounds is the maximum number of rounds"
        )));
    }
    Ok(most)
}

/// Checks that there is a contender to compare with the baseline.
fn check_compared(option: &str, entries: &[Entry], baseline: &str) -> Result<(), PrepareError> {
    let judged = |e: &Entry| e.name != baseline && e.name != NULL && e.skipped.is_none();
    entries.iter().any(judged).then_some(()).ok_or_else(|| {
        PrepareError(format!(
            "{option} has nothing to compare with {baseline}; add a contender, e.g. --contender \
             'new=./new {{port}}'"
        ))
    })
}

/// Checks that the gate has a contender to judge, and an interval to judge it by.
fn check_gate(entries: &[Entry], baseline: &str, rounds: u32) -> Result<(), PrepareError> {
    check_compared("--fail-over", entries, baseline)?;
    if rounds < 2 {
        return Err(PrepareError(
            "--fail-over needs confidence intervals, and thus at least 2 rounds; use --rounds 10"
                .into(),
        ));
    }
    Ok(())
}

/// Returns the contenders that the file names, or all that serve its workload on one node. One that is unknown or
/// does not serve the workload gets an entry that is marked as skipped.
fn named(contest: &Contest, known: &[Contender], server: Option<&ServerMachine>) -> Vec<Entry> {
    let serves = |c: &&Contender| serves(contest, c);
    let service = &contest.service();
    let entry = |one: &Contender| entry(contest, one, service, server);
    if contest.contenders.is_empty() {
        // Those with several nodes cannot be in duels, so they take part only if they are named or of the race file.
        let takes_part = |c: &&Contender| is_own(contest, c) || !c.manifest.has_nodes();
        return known.iter().filter(serves).filter(takes_part).map(entry).collect();
    }
    let mut entries: Vec<Entry> = Vec::new();
    for name in &contest.contenders {
        let called = |c: &&Contender| match name.as_str() {
            PEERS => !c.is_built_in() && !is_own(contest, c) && !c.manifest.has_nodes(),
            name => c.manifest.name == name,
        };
        let mut found: Vec<Entry> = known.iter().filter(serves).filter(called).map(entry).collect();
        if found.is_empty() && name != PEERS {
            let is_known = known.iter().any(|c| c.manifest.name == *name);
            let serving = known.iter().filter(serves).map(|c| c.manifest.name.as_str());
            let called = |c: &&Contender| c.manifest.name == *name;
            let otherwise = known.iter().filter(called).any(|c| serves_otherwise(contest, c));
            // A bundled race over another protocol is one of those that speak it.
            if otherwise && contest.bundled && !contest.all_named {
                continue;
            }
            let why = match is_known {
                true => format!(
                    "it {}{}",
                    does_not_serve(contest, otherwise),
                    these_do(contest, serving)
                ),
                false => format!("there is no manifest of that name{}", hint(name, serving)),
            };
            found.push(Entry { skipped: Some(why), ..blank(name) });
        }
        // `peers` may already have added this name.
        found.retain(|entry| entries.iter().all(|other| other.name != entry.name));
        entries.append(&mut found);
    }
    entries
}

/// Names the contenders that serve the workload, if the user has named all that take part.
fn these_do<'a>(contest: &Contest, serving: impl Iterator<Item = &'a str>) -> String {
    let serving: Vec<&str> = serving.filter(|_| contest.all_named).collect();
    if serving.is_empty() { String::new() } else { format!("; these do: {}", serving.join(", ")) }
}

/// Returns the entry of a contender from the command line. One that cannot be started is an error,
/// because the user named it explicitly.
fn of_argument(
    contest: &Contest,
    argument: &str,
    service: &str,
    server: Option<&ServerMachine>,
) -> Result<Entry, PrepareError> {
    let manifest = Manifest::from_argument(argument, service).map_err(PrepareError)?;
    let manifest = manifest.speaking(contest.over.as_deref());
    let own = Contender { manifest, dir: working_directory()? };
    let mut entry = entry(contest, &own, service, server);
    if server.is_some() {
        // It may have the name of a peer.
        entry.skipped = elsewhere::why_not(&own, false);
    }
    check_can_race(&entry)?;
    Ok(entry)
}

/// Checks that running servers are asked what they speak, and that none is entered twice.
fn check_running(entries: &[Entry], spoken: &Workload) -> Result<(), String> {
    let mut ports: Vec<(u16, &str)> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.skipped.is_none()) {
        let Some(RunningServer { url, port, .. }) = &entry.running else { continue };
        RunningUrl::parse(url)?.check_asked(url, spoken)?;
        if let Some((_, other)) = ports.iter().find(|(known, _)| known == port) {
            return Err(format!(
                "{} and {other} are the same server, 127.0.0.1:{port}; to see how much the figures of \
                 one server vary, race it against another one: its twin shows that",
                entry.name
            ));
        }
        ports.push((*port, &entry.name));
    }
    Ok(())
}

fn check_can_race(entry: &Entry) -> Result<(), PrepareError> {
    let because = |why| PrepareError(format!("the contender {} cannot race: {why}", entry.name));
    entry.skipped.as_ref().map_or(Ok(()), |why| Err(because(why)))
}

/// Returns the contenders that the race file defines, then the `known` ones except their namesakes.
fn with_own(contest: &Contest, known: &[Contender]) -> Result<Vec<Contender>, PrepareError> {
    let dir = working_directory()?;
    let own = contest.own.iter().map(|m| Contender { manifest: m.clone(), dir: dir.clone() });
    let others = known.iter().filter(|one| !is_own(contest, one)).cloned();
    Ok(own.chain(others).collect())
}

/// Whether the race file defines this contender, or one of the same name.
fn is_own(contest: &Contest, contender: &Contender) -> bool {
    contest.own.iter().any(|own| own.name == contender.manifest.name)
}

fn working_directory() -> Result<PathBuf, PrepareError> {
    env::current_dir()
        .map_err(|error| PrepareError(format!("cannot determine the working directory: {error}")))
}

fn blank(name: &str) -> Entry {
    Entry { name: name.into(), ..Entry::default() }
}

/// Returns the entry of a contender. What is on its machine is looked up only if that is this one.
fn entry(
    contest: &Contest,
    contender: &Contender,
    service: &str,
    server: Option<&ServerMachine>,
) -> Entry {
    let contender = &contender.started_over(contest.over.as_deref());
    let manifest = &contender.manifest;
    let running = contender.running().filter(|_| server.is_none());
    let is_peer = !contender.is_built_in() && !is_own(contest, contender);
    Entry {
        about: manifest.about.clone(),
        start: manifest.start.clone(),
        version: if server.is_none() { contender.version() } else { None },
        released: manifest.released.clone(),
        env: manifest.env.clone(),
        // Missing sources (of an installed program without its checkout) are not counted.
        lines_of_code: contender.lines_of_code(service).unwrap_or_default(),
        manifest: toml::to_string(manifest).expect("a manifest can be written as TOML"),
        dir: server.map_or_else(|| contender.dir.clone(), |server| server.dir.clone()),
        stand_in_for: manifest.stand_in_for.clone(),
        one_core_as: manifest.one_core_as.clone(),
        skipped: match (&running, server) {
            (_, Some(_)) => elsewhere::why_not(contender, is_peer),
            (Some(running), None) => running.as_ref().err().map(ToString::to_string),
            (None, None) => contender.missing(),
        },
        running: running.and_then(Result::ok),
        ..blank(&manifest.name)
    }
}

/// Returns the given CPUs of two machines, or all.
fn of_two_machines(
    changes: &Changes,
    server: &ServerMachine,
    cores: &[Core],
) -> Result<CpuSets, PrepareError> {
    let Changes { server_cpus, load_cpus, .. } = changes.clone();
    elsewhere::cpu_sets(server, server_cpus, (cores, load_cpus)).map_err(PrepareError)
}

/// Returns the given CPUs. Roles without given CPUs get whole cores ([`CpuSets::divide`]).
fn cpu_sets(changes: &Changes, cores: &[Core]) -> Result<CpuSets, PrepareError> {
    let given = changes.server_cpus.iter().chain(&changes.load_cpus).flatten();
    let mut all: Vec<u32> = cores.iter().flat_map(|core| core.cpus.iter().copied()).collect();
    all.sort_unstable();
    if all.is_empty() {
        return Err(PrepareError("cannot determine the CPUs of this machine".to_owned()));
    }
    if let Some(cpu) = given.copied().find(|cpu| !all.contains(cpu)) {
        return Err(PrepareError(format!("CPU {cpu} is not available; regatta may use {all:?}")));
    }
    Ok(CpuSets::divide(cores, changes.server_cpus.clone(), changes.load_cpus.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::contest::bundled_races;

    /// Returns the contenders of a race if all contenders of this checkout are known.
    fn names_in(contest: &Contest) -> Result<Vec<String>, PrepareError> {
        let mut known = built_in();
        let peers = checkout().unwrap().join("peers");
        known.extend(Contender::find_all(&peers).unwrap());
        // Do not start programs to ask for their versions.
        known.iter_mut().for_each(|one| one.manifest.version.clear());
        let entries = named(contest, &with_own(contest, &known)?, None);
        check_unique(&entries).map_err(PrepareError)?;
        Ok(entries.into_iter().map(|entry| entry.name).collect())
    }

    #[test]
    fn no_contender_enters_a_bundled_race_twice() {
        for contest in bundled_races() {
            let names = names_in(&contest).unwrap_or_else(|e| panic!("{}: {e}", contest.name));
            assert!(!names.is_empty(), "{}", contest.name);
        }
        let fairness = names_in(&Contest::find("fairness").unwrap()).unwrap();
        assert_eq!(fairness.iter().filter(|name| name.ends_with("-offload")).count(), 4);
    }

    #[test]
    fn a_time_needs_no_precision_and_replaces_the_rounds_of_the_file() {
        let head = "name='x'\nworkload='double'\nrounds=7\n[[load]]\nconnections=1\n";
        let contest = Contest::parse(head, "x").unwrap();
        let of = |change: Changes| {
            let only = vec!["epoll".to_owned()];
            let change = Changes { only, ..change };
            let setup = regatta_host::read_setup("0", None, Vec::new());
            let asked = prepare(&contest, &change, &built_in(), setup).unwrap();
            (asked.rounds, asked.time_s)
        };
        let time = Some(Duration::from_secs(40));
        assert_eq!(of(Changes::default()), (7, None));
        assert_eq!(of(Changes { time, ..Changes::default() }), (MOST_IN_TIME, Some(40.0)));
        let rounds = Some(9);
        assert_eq!(of(Changes { time, rounds, ..Changes::default() }), (9, Some(40.0)));
        let timed = Contest { time: Some(Duration::from_secs(60)), ..contest.clone() };
        let of_file = |change| {
            let change = Changes { only: vec!["epoll".into(), "green".into()], ..change };
            let setup = regatta_host::read_setup("0", None, Vec::new());
            prepare(&timed, &change, &built_in(), setup).unwrap().time_s
        };
        assert_eq!(of_file(Changes { rounds, ..Changes::default() }), None);
        let precision = Some(0.01);
        assert_eq!(of_file(Changes { rounds, precision, ..Changes::default() }), Some(60.0));
    }

    #[test]
    fn contenders_with_several_nodes_take_part_if_they_are_named_or_of_the_race_file() {
        let names = |head: &str| {
            let race = format!("name='x'\nworkload='hub'\n{head}[[load]]\nconnections=2\n");
            names_in(&Contest::parse(&race, "x").unwrap()).unwrap()
        };
        let of_several = |names: Vec<String>| -> Vec<String> {
            let has = |name: &String| ["hub-nodes", "mine"].contains(&&**name);
            names.into_iter().filter(has).collect()
        };
        let none: [&str; 0] = [];
        assert_eq!(of_several(names("")), none);
        assert_eq!(of_several(names("contenders=['epoll','peers']\n")), none);
        assert_eq!(of_several(names("contenders=['peers','hub-nodes']\n")), ["hub-nodes"]);
        let mine = "[[contender]]\nname='mine'\nabout='own'\nworkloads=['hub']\nstart=['x','{port}']\n\
                    [[contender.backend]]\nname='n'\nnode=true\nstart=['x','{port}']\n";
        assert_eq!(of_several(names(mine)), ["mine"]);
    }

    #[test]
    fn a_contender_of_the_race_file_replaces_its_namesake_and_is_not_a_peer() {
        let race = |more: &str| {
            let head = "name='x'\nworkload='double'\nrounds=1\nwindow='1s'\nwarm_up='0s'\n";
            let own = "about='own'\nworkloads=['double']\nstart=['sh','{port}']\n";
            let more = more.replace("OWN", own);
            Contest::parse(&format!("{head}{more}[[load]]\nconnections=1\n"), "x").unwrap()
        };
        let contest = race("[[contender]]\nname='epoll'\nOWN");
        let names = names_in(&contest).unwrap();
        assert_eq!(names.iter().filter(|name| *name == "epoll").count(), 1, "{names:?}");
        let known = with_own(&contest, &built_in()).unwrap();
        let epoll = known.iter().find(|one| one.manifest.name == "epoll").unwrap();
        assert_eq!(epoll.manifest.about, "own");

        let contest = race("contenders=['peers','epoll']\n[[contender]]\nname='mine'\nOWN");
        let names = names_in(&contest).unwrap();
        assert!(!names.contains(&"mine".into()), "{names:?}");
        let contest = race("contenders=['peers','mine']\n[[contender]]\nname='mine'\nOWN");
        assert_eq!(names_in(&contest).unwrap().last().map(String::as_str), Some("mine"));

        let twice = "[[contender]]\nname='mine'\nOWN";
        let error = names_in(&race(&format!("{twice}{twice}"))).unwrap_err().to_string();
        assert!(error.starts_with("two contenders are named mine; rename one"), "{error}");
    }
}
