//! From a race file, the command line and the contenders that are known to what is asked.

use crate::{
    choice::{PEERS, baseline, check_known, check_unique, choose, serves},
    contender::Contender,
    contest::{Contest, SHORTEST_WINDOW},
    heads,
    manifest::Manifest,
    nearest::hint,
};
use regatta_judge::{LEAST_PASSES, MOST_PASSES};
use regatta_record::{Asked, Core, CpuSets, Entry, FORMAT, Heads, NULL, Setup, twin_name};
use regatta_script::Workload;
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// What the command line changes in a race file.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Passes.
    pub rounds: Option<u32>,
    /// Half-width that the intervals of all ratios are to have, as a fraction.
    pub precision: Option<f64>,
    /// How much dearer than the baseline a contender may be, as a fraction.
    pub fail_over: Option<f64>,
    /// Length of the window.
    pub window: Option<Duration>,
    /// How long each contender is observed at most before its first round; zero: it is not.
    pub settle: Option<Duration>,
    /// Seed; must be below 2⁶³, since TOML has no larger integers.
    pub seed: Option<u64>,
    /// Only these of the file's contenders.
    pub only: Vec<String>,
    /// All but these.
    pub skip: Vec<String>,
    /// The contender that ratios are taken to.
    pub baseline: Option<String>,
    /// More contenders, as `name=command {port}`.
    pub contenders: Vec<String>,
    /// CPUs of the contender.
    pub server_cpus: Option<Vec<u32>>,
    /// CPUs of the load.
    pub load_cpus: Option<Vec<u32>>,
    /// The load sleeps while there is nothing for it to do.
    pub load_sleeps: bool,
    /// The heads of the requests.
    pub heads: Option<Heads>,
}

/// What was asked cannot be run; a sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PrepareError(String);

/// The checkout that this program was built from, if it is still there: its own sources are counted
/// as lines of code, and its `peers/` are found from anywhere.
fn checkout() -> Option<PathBuf> {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).ok()
}

/// The folder of peers: `peers/` here if there is a manifest below it, or else that of the checkout.
pub fn peers_folder() -> Option<PathBuf> {
    let here = PathBuf::from("peers");
    let has_manifest = |folder: fs::DirEntry| folder.path().join("manifest.toml").is_file();
    if fs::read_dir(&here).is_ok_and(|mut folders| folders.any(|f| f.is_ok_and(has_manifest))) {
        return Some(here);
    }
    checkout().map(|checkout| checkout.join("peers")).filter(|folder| folder.is_dir())
}

/// The built-in contenders.
pub fn built_in() -> Vec<Contender> {
    #[derive(Deserialize)]
    struct File {
        contender: Vec<Manifest>,
    }
    let file: File = toml::from_str(include_str!("../../../races/contenders.toml"))
        .expect("the bundled manifests are right");
    let here = || env::current_dir().unwrap_or_else(|_| "/".into());
    let dir = checkout().unwrap_or_else(here);
    file.contender.into_iter().map(|manifest| Contender { manifest, dir: dir.clone() }).collect()
}

/// Settles what a race consists of. `known` are the contenders that there are, `setup` the machine.
/// Loads at a share of what the contenders can do stand there in closed loop: [`crate::pilot`] puts
/// their rates in.
pub fn prepare(
    contest: &Contest,
    changes: &Changes,
    known: &[Contender],
    setup: Setup,
) -> Result<Asked, PrepareError> {
    let workload = contest.workload.as_str();
    let service = &contest.service();
    let spoken = match &contest.workload_file {
        Some(text) => Workload::from_text(text, workload)
            .map_err(|error| PrepareError(error.to_string()))?,
        None => Workload::parse(workload).ok_or_else(|| {
            PrepareError(format!(
                "the load does not speak the workload {workload:?} yet; a file of your own is named \
                 by its path, which ends in .toml"
            ))
        })?,
    };
    let window = changes.window.unwrap_or(contest.window);
    if window < SHORTEST_WINDOW {
        return Err(PrepareError(format!(
            "the window of {window:?} is too short to measure anything; give it 50ms at least"
        )));
    }
    let known = &with_own(contest, known)?;
    let mut entries = named(contest, known);
    // Whoever is asked for by name takes part, whether the file thought of it or not.
    for name in &changes.only {
        let asked_for = |c: &&Contender| c.manifest.name == *name && serves(contest, c);
        if !entries.iter().any(|entry| entry.name == *name) {
            entries.extend(known.iter().find(asked_for).map(|one| entry(one, service)));
        }
    }
    let mut given = Vec::new();
    for argument in &changes.contenders {
        let entry = of_argument(argument, service)?;
        entries.retain(|other| other.name != entry.name);
        given.push(entry.name.clone());
        entries.push(entry);
    }
    choose(&mut entries, &given, &changes.only, &changes.skip).map_err(PrepareError)?;
    check_known(contest, known, &entries, &given).map_err(PrepareError)?;
    check_unique(&entries).map_err(PrepareError)?;
    let baseline = baseline(contest, changes.baseline.as_ref(), &entries).map_err(PrepareError)?;
    let rounds = rounds(contest, changes)?;
    if changes.precision.is_some() {
        check_compared("--precision", &entries, &baseline)?;
    }
    if changes.fail_over.is_some() {
        check_gate(&entries, &baseline, rounds)?;
    }
    // The file's, or the baseline where that one does not take part: without a twin there is no
    // noise floor. One round has no interval, so a twin would show nothing.
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
    let cpus = cpu_sets(changes, &setup.cores)?;
    let (loads, left_out) = contest.loads(&cpus);
    if loads.is_empty() {
        let left_out = left_out.join("; ");
        return Err(PrepareError(format!("no load of this race can be had here: {left_out}")));
    }
    Ok(Asked {
        format: FORMAT,
        name: contest.name.clone(),
        workload: workload.into(),
        cost_per: spoken.cost_per(),
        latency_of: spoken.limited(),
        contenders: entries.iter().map(|e| e.name.clone()).collect(),
        baseline,
        twin_of,
        rounds,
        precision: changes.precision,
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
        left_out,
        pilot: Vec::new(),
        workload_file: contest.workload_file.clone(),
        entries,
    })
}

/// Passes; with a precision the most of them.
fn rounds(contest: &Contest, changes: &Changes) -> Result<u32, PrepareError> {
    if changes.precision.is_none() {
        return Ok(changes.rounds.unwrap_or(contest.rounds));
    }
    let most = changes.rounds.unwrap_or(MOST_PASSES);
    if most < LEAST_PASSES {
        return Err(PrepareError(format!(
            "--precision takes at least {LEAST_PASSES} rounds, and --rounds {most} permits fewer; \
             --rounds is the most that may be run"
        )));
    }
    Ok(most)
}

/// A ratio needs another one than the baseline.
fn check_compared(option: &str, entries: &[Entry], baseline: &str) -> Result<(), PrepareError> {
    let judged = |e: &Entry| e.name != baseline && e.name != NULL && e.skipped.is_none();
    entries.iter().any(judged).then_some(()).ok_or_else(|| {
        PrepareError(format!(
            "{option} has nothing to compare with {baseline}: enter another one, as --contender \
             'new=./new {{port}}'"
        ))
    })
}

/// A gate needs something to judge, and an interval to judge it by.
fn check_gate(entries: &[Entry], baseline: &str, rounds: u32) -> Result<(), PrepareError> {
    check_compared("--fail-over", entries, baseline)?;
    if rounds < 2 {
        return Err(PrepareError(
            "--fail-over needs intervals, and so at least 2 rounds; give it 10 (--rounds 10)"
                .into(),
        ));
    }
    Ok(())
}

/// The contenders that the file names, or all that serve its workload. One that is not known gets an
/// entry that is skipped.
fn named(contest: &Contest, known: &[Contender]) -> Vec<Entry> {
    let serves = |c: &&Contender| serves(contest, c);
    let service = &contest.service();
    if contest.contenders.is_empty() {
        return known.iter().filter(serves).map(|one| entry(one, service)).collect();
    }
    let mut entries: Vec<Entry> = Vec::new();
    for name in &contest.contenders {
        let called = |c: &&Contender| match name.as_str() {
            PEERS => !c.is_built_in() && !is_own(contest, c),
            name => c.manifest.name == name,
        };
        let mut found: Vec<Entry> =
            known.iter().filter(serves).filter(called).map(|one| entry(one, service)).collect();
        if found.is_empty() && name != PEERS {
            let is_known = known.iter().any(|c| c.manifest.name == *name);
            let serving = known.iter().filter(serves).map(|c| c.manifest.name.as_str());
            let why = match is_known {
                true => format!("it does not serve {service}"),
                false => format!("there is no manifest of that name{}", hint(name, serving)),
            };
            found.push(Entry { skipped: Some(why), ..blank(name) });
        }
        // A name that `peers` has brought already.
        found.retain(|entry| entries.iter().all(|other| other.name != entry.name));
        entries.append(&mut found);
    }
    entries
}

/// A contender of the command line. One that is not there is a slip of whoever gave it: an error.
fn of_argument(argument: &str, service: &str) -> Result<Entry, PrepareError> {
    let manifest = Manifest::from_argument(argument, service).map_err(PrepareError)?;
    let entry = entry(&Contender { manifest, dir: working_directory()? }, service);
    match &entry.skipped {
        None => Ok(entry),
        Some(why) => Err(PrepareError(format!("the contender {} cannot race: {why}", entry.name))),
    }
}

/// The contenders of the race file itself, and those that are `known`, but for namesakes of the
/// file's own.
fn with_own(contest: &Contest, known: &[Contender]) -> Result<Vec<Contender>, PrepareError> {
    let dir = working_directory()?;
    let own = contest.own.iter().map(|m| Contender { manifest: m.clone(), dir: dir.clone() });
    let others = known.iter().filter(|one| !is_own(contest, one)).cloned();
    Ok(own.chain(others).collect())
}

/// Whether a contender is the race file's own, or a namesake of one that is.
fn is_own(contest: &Contest, contender: &Contender) -> bool {
    contest.own.iter().any(|own| own.name == contender.manifest.name)
}

fn working_directory() -> Result<PathBuf, PrepareError> {
    env::current_dir()
        .map_err(|error| PrepareError(format!("the working directory cannot be told: {error}")))
}

fn blank(name: &str) -> Entry {
    Entry {
        name: name.into(),
        about: String::new(),
        start: Vec::new(),
        version: None,
        released: None,
        env: BTreeMap::new(),
        lines_of_code: None,
        manifest: String::new(),
        dir: PathBuf::new(),
        stand_in_for: None,
        one_core_as: None,
        skipped: None,
    }
}

fn entry(contender: &Contender, service: &str) -> Entry {
    let manifest = &contender.manifest;
    Entry {
        about: manifest.about.clone(),
        start: manifest.start.clone(),
        version: contender.version(),
        released: manifest.released.clone(),
        env: manifest.env.clone(),
        // Sources that are not there (an installed program without its checkout) are not counted.
        lines_of_code: contender.lines_of_code(service).unwrap_or_default(),
        manifest: toml::to_string(manifest).expect("a manifest has a form in TOML"),
        dir: contender.dir.clone(),
        stand_in_for: manifest.stand_in_for.clone(),
        one_core_as: manifest.one_core_as.clone(),
        skipped: contender.missing(),
        ..blank(&manifest.name)
    }
}

/// CPUs as asked for; what is not asked for is made of whole cores ([`CpuSets::shared_out`]).
fn cpu_sets(changes: &Changes, cores: &[Core]) -> Result<CpuSets, PrepareError> {
    let given = changes.server_cpus.iter().chain(&changes.load_cpus).flatten();
    let mut all: Vec<u32> = cores.iter().flat_map(|core| core.cpus.iter().copied()).collect();
    all.sort_unstable();
    if all.is_empty() {
        return Err(PrepareError("the CPUs cannot be told".to_owned()));
    }
    if let Some(cpu) = given.copied().find(|cpu| !all.contains(cpu)) {
        return Err(PrepareError(format!("there is no CPU {cpu} to use; there are {all:?}")));
    }
    Ok(CpuSets::shared_out(cores, changes.server_cpus.clone(), changes.load_cpus.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::bundled_races;

    /// Who takes part where all contenders of this checkout are known.
    fn names_in(contest: &Contest) -> Result<Vec<String>, PrepareError> {
        let mut known = built_in();
        let peers = checkout().unwrap().join("peers");
        known.extend(Contender::find_all(&peers).unwrap());
        // Nobody need be started to be named.
        known.iter_mut().for_each(|one| one.manifest.version.clear());
        let entries = named(contest, &with_own(contest, &known)?);
        check_unique(&entries).map_err(PrepareError)?;
        Ok(entries.into_iter().map(|entry| entry.name).collect())
    }

    #[test]
    fn nobody_enters_a_bundled_race_twice() {
        for contest in bundled_races() {
            let names = names_in(&contest).unwrap_or_else(|e| panic!("{}: {e}", contest.name));
            assert!(!names.is_empty(), "{}", contest.name);
        }
        let fairness = names_in(&Contest::find("fairness").unwrap()).unwrap();
        assert_eq!(fairness.iter().filter(|name| name.ends_with("-offload")).count(), 4);
    }

    #[test]
    fn a_contender_of_the_race_file_replaces_its_namesake_and_is_no_peer() {
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
