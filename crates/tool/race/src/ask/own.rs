//! A race that the command line describes without a race file: which servers, what to send, and how
//! much load.

use crate::{
    ask::{
        choice::serves,
        contest::{Contest, ContestError},
        loads::Loads,
        rate::Rate,
    },
    contenders::{
        bundled,
        command::{Command, names},
        find_contenders::Contender,
        manifest::Manifest,
        nearest::hint,
    },
};
use regatta_host::{RunningUrl, is_url, named_url};
use regatta_record::NULL;
use regatta_script::Workload;

/// What the command line says about a race beside its options.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnRace<'a> {
    /// A bundled race by name, the path of a race file, or two or more servers to compare: commands,
    /// images, URLs of running servers, or names of contenders. The first server is the baseline. Empty:
    /// the race `quick`, or the workload with the contenders that serve it.
    pub words: &'a [String],
    /// What to send, if no race names it.
    pub workload: Option<&'a Workload>,
    /// Name of the protocol to send it over, if it is not the usual one.
    pub over: Option<&'a str>,
    /// The load, if not that of the race.
    pub load: Option<&'a OwnLoad>,
    /// Whether the command line adds contenders by name and command.
    pub adds_contenders: bool,
}

/// One load in place of those of a race.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnLoad {
    /// Open connections; `None`: 64.
    pub connections: Option<u32>,
    /// Maximum number of requests in flight on each connection; `None`: 1.
    pub pipeline: Option<u32>,
    /// The rate of an open loop; `None`: a closed loop.
    pub rate: Option<Rate>,
}

/// Why the command line describes no race.
#[derive(Debug, thiserror::Error)]
pub enum OwnRaceError {
    /// An error of a bundled race, or of a race file.
    #[error(transparent)]
    Contest(#[from] ContestError),
    /// An error of the command line, as a sentence.
    #[error("{0}")]
    Words(String),
}

/// The race of servers on the command line: it ends when it has decided, or after about a minute.
const OF_WORDS: &str = "rounds = 50\nprecision = '1%'\ntime = '60s'\nwindow = '500ms'\n\
                        warm_up = '50ms'\nsettle = '2s'\n";

/// How two servers are compared, for messages.
const TWO: &str =
    "two or more servers to compare, e.g. './old --port {port}' './new --port {port}'";

impl Contest {
    /// Returns the race that the command line describes. `known` are all known contenders.
    pub fn of_command_line(own: OwnRace<'_>, known: &[Contender]) -> Result<Contest, OwnRaceError> {
        let over = own.over;
        let mut contest = match (own.words, own.workload) {
            ([], None) => Contest::find("quick")?,
            ([], Some(workload)) => of_workload((workload, over), own.adds_contenders, known)?,
            ([word], workload) if is_race(word) => {
                if let Some(workload) = workload {
                    return Err(OwnRaceError::Words(format!(
                        "the race {word} defines what to send, so it cannot be combined with {}; \
                         leave out one of the two",
                        workload.name()
                    )));
                }
                Contest::find(word)?
            }
            ([word], _) if !own.adds_contenders => return Err(not_alone(word, known)),
            (words, workload) => {
                of_words(words, (&workload.cloned().unwrap_or_default(), over), known)?
            }
        };
        contest.over = over.map(str::to_owned).or(contest.over);
        own.load.map_or(Ok(contest.clone()), |load| with_load(contest, load))
    }
}

/// Whether a word is a bundled race or the path of a race file.
fn is_race(word: &str) -> bool {
    let is_path = word.ends_with(".toml") && !word.contains(char::is_whitespace);
    is_path || bundled::RACES.iter().any(|(name, _)| *name == word)
}

/// Returns why a single word describes no race.
fn not_alone(word: &str, known: &[Contender]) -> OwnRaceError {
    let is_known = known.iter().any(|one| one.manifest.name == word);
    OwnRaceError::Words(match () {
        () if is_known => format!(
            "{word} is a contender, and a race needs two: name another one beside it, or race it \
             among the others with `--only {word},null`"
        ),
        () if is_url(word) => format!(
            "a single server has nothing to be compared with; expected {TWO}, or a second URL. To load \
             the running server: `regatta load {word}`"
        ),
        () if is_command(word) => format!(
            "a single server has nothing to be compared with; expected {TWO}. To race it against the \
             built-in servers: --contender 'mine={word}'"
        ),
        () => {
            let races = bundled::RACES.iter().map(|(name, _)| *name);
            let names = races.chain(known.iter().map(|one| one.manifest.name.as_str()));
            let hint = hint(word, names);
            let races = bundled::names();
            format!(
                "there is no race `{word}`{hint}; expected the path of a race file (.toml), {TWO}, or \
                 one of the bundled races: {races}"
            )
        }
    })
}

fn is_command(word: &str) -> bool {
    word.contains("{port}") || word.contains(char::is_whitespace) || word.starts_with("image:")
}

/// Returns the race of the built-in contenders and the peers that serve a workload. If the workload is the
/// user's own and the command line adds contenders, only these and the null server race.
fn of_workload(
    (workload, over): (&Workload, Option<&str>),
    adds_contenders: bool,
    known: &[Contender],
) -> Result<Contest, OwnRaceError> {
    if workload.text().is_none() {
        let name = workload.name().to_owned();
        return Ok(Contest { workload: name.clone(), name, ..Contest::find("quick")? });
    }
    let mut contest = empty(workload, over)?;
    let serving = known.iter().filter(|one| serves(&contest, one));
    let mut names: Vec<String> = serving.map(|one| one.manifest.name.clone()).collect();
    if names.iter().all(|name| name == NULL) && !adds_contenders {
        return Err(OwnRaceError::Words(format!(
            "no known contender serves {}; give {TWO}, or add one with --contender \
             'mine=./my-server --port {{port}}'",
            workload.name()
        )));
    }
    names.dedup();
    contest.contenders = names;
    Ok(contest)
}

/// Returns the race of servers on the command line and, where there is one, the null server.
fn of_words(
    words: &[String],
    (workload, over): (&Workload, Option<&str>),
    known: &[Contender],
) -> Result<Contest, OwnRaceError> {
    let mut contest = empty(workload, over)?;
    let is_known = |word: &str| known.iter().any(|one| one.manifest.name == word);
    let mut servers = Vec::new();
    for word in words {
        servers.push(if is_known(word) { None } else { Some(server(word, known)?) });
    }
    let mut taken: Vec<&str> = vec![NULL, "peers"];
    taken.extend(
        words.iter().zip(&servers).filter(|(_, own)| own.is_none()).map(|(w, _)| w.as_str()),
    );
    taken.extend(servers.iter().flatten().filter_map(|server| server.name.as_deref()));
    let unnamed = servers.iter().flatten().filter(|server| server.name.is_none());
    let commands: Vec<Command> = unnamed.filter_map(|server| server.command.clone()).collect();
    let mut derived = names(&commands, &taken).into_iter();
    for (word, server) in words.iter().zip(servers) {
        let Some(Server { name, text, command }) = server else {
            contest.contenders.push(word.clone());
            continue;
        };
        let name = name.or_else(|| derived.next()).unwrap_or_default();
        let manifest = match command {
            Some(command) => Manifest::of_command(&name, &text, command, workload.service()),
            None => Manifest::of_url(&name, &text, workload.service()),
        };
        contest.own.push(manifest.map_err(OwnRaceError::Words)?.speaking(over));
        contest.contenders.push(name);
    }
    contest.name = contest.contenders.join("-vs-");
    if contest.contenders.len() > 2 {
        contest.name =
            format!("{}-vs-{}-others", contest.contenders[0], contest.contenders.len() - 1);
    }
    contest.baseline = contest.contenders.first().cloned();
    contest.all_named = true;
    if known.iter().any(|one| one.manifest.name == NULL && serves(&contest, one)) {
        contest.contenders.push(NULL.to_owned());
    }
    Ok(contest)
}

/// Returns a race of the workload over a protocol, without contenders.
fn empty(workload: &Workload, over: Option<&str>) -> Result<Contest, ContestError> {
    let name = workload.name();
    let of_words = Contest::parse(OF_WORDS, name)?;
    let over = over.map(str::to_owned);
    let mut contest = Contest { loads: Loads::regimes(64, 1), over, ..of_words };
    match workload.text() {
        Some(_) => contest.ask(Ok(workload.clone()), name)?,
        None => contest.workload = name.to_owned(),
    }
    // There is no race file in which a name could be misspelt.
    Ok(Contest { bundled: true, ..contest })
}

/// A server on the command line.
struct Server {
    /// Its name, if the command line names it.
    name: Option<String>,
    /// Its command or URL as it was written.
    text: String,
    /// The command that starts it; `None` if it is already running.
    command: Option<Command>,
}

/// Returns the server that a word describes: a command or a URL, after its name and `=` if it has one.
fn server(word: &str, known: &[Contender]) -> Result<Server, OwnRaceError> {
    let wrong = |because: String| Err(OwnRaceError::Words(because));
    if is_race(word) {
        return wrong(format!(
            "{word} is a race, so it cannot be compared with a server; to add your own servers to that \
             race: `regatta race {word} --contender 'mine=./my-server --port {{port}}'`"
        ));
    }
    if let Some((name, url)) = named_url(word) {
        let port = RunningUrl::parse(url).map_err(OwnRaceError::Words)?.port;
        let name = name.map_or_else(|| format!("port-{port}"), str::to_owned);
        return Ok(Server { name: Some(name), text: url.to_owned(), command: None });
    }
    let (name, text) = match word.split_once('=') {
        Some((name, text)) if is_name(name) => (Some(name.to_owned()), text),
        _ => (None, word),
    };
    let command = Command::parse(text).map_err(OwnRaceError::Words)?;
    if command.start.is_empty() && command.image.is_none() {
        return wrong(format!("{word:?} is no command; expected {TWO}"));
    }
    if !command.has_port() {
        let names = known.iter().map(|one| one.manifest.name.as_str());
        let hint = if is_command(word) { String::new() } else { hint(word, names) };
        return wrong(format!(
            "{word:?} is not given its port{hint}; write {{port}} where the server needs it, e.g. \
             './server --port {{port}}' or 'PORT={{port}} ./server': regatta chooses a free port for \
             each start"
        ));
    }
    Ok(Server { name, text: text.to_owned(), command: Some(command) })
}

/// Whether the text before the first `=` names a server. Names in capitals are variables.
fn is_name(text: &str) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    let is_variable = Command::parse(&format!("{text}=")).is_ok_and(|one| one.start.is_empty());
    !text.is_empty() && text.chars().all(is_good) && !is_variable
}

/// Returns the race with another load in place of its own; without a rate, a race in two regimes stays one.
/// Published figures belong to the loads of the race, and are removed with them.
fn with_load(contest: Contest, load: &OwnLoad) -> Result<Contest, OwnRaceError> {
    let OwnLoad { connections, pipeline, rate } = load.clone();
    let (connections, pipeline) = (connections.unwrap_or(64), pipeline.unwrap_or(1));
    let loads = match rate {
        None if contest.loads == Loads::regimes(64, 1) => Loads::regimes(connections, pipeline),
        rate => vec![Loads::one(connections, pipeline, rate)],
    };
    match loads.iter().find_map(Loads::contradiction) {
        Some(because) => Err(OwnRaceError::Words(because)),
        None => Ok(Contest { loads, then_source: None, then: Vec::new(), ..contest }),
    }
}

#[cfg(test)]
mod tests;
