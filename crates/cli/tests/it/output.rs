//! Every subcommand on a closed or full stdout: a closed pipe (`| head`) is not an error, a full disk is
//! one, and nothing panics.

use crate::support::{
    Server,
    hub::{hub, with_metrics},
    regatta,
};

use regatta_testkit::child::Killed;
use std::{
    fs::File,
    io::{BufRead, BufReader, pipe},
    net::{SocketAddr, TcpStream},
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Output, Stdio},
};
use tempfile::TempDir;

/// Subcommands that run until they are stopped. Their output is at most the address on which they listen.
const SERVERS: [&str; 4] = ["agent", "hub", "serve", "shard"];

/// The formats of other programs.
const FORMATS: [&str; 4] = ["bmf", "gha-benchmark", "prometheus", "hdr-log"];

/// Of the server's replies: a load as fast as they come leaves CPU to other tests.
const DELAY: [&str; 2] = ["--delay", "fixed:2ms"];

/// A folder with the result of a short race in `out`, a server to load, a hub, and a proxy with metrics.
struct Place {
    folder: TempDir,
    server: Server,
    hub: (Server, SocketAddr),
    _proxy: Server,
    metrics: SocketAddr,
}

impl Place {
    fn new() -> Place {
        let proxy =
            ["shard", "--model", "epoll", "--nodes", "127.0.0.1:1", "--metrics", "127.0.0.1:0"];
        let (_proxy, metrics) = with_metrics(regatta(&proxy));
        let (folder, server) = (TempDir::new().unwrap(), Server::double("epoll", &DELAY));
        let hub = hub("epoll", &[]);
        let place = Place { folder, server, hub, _proxy, metrics };
        std::fs::write(place.folder.path().join("race.toml"), RACE_FILE).unwrap();
        let raced = place.run(&[&RACE[..], &["--out", "out"]].concat(), Stdio::piped());
        assert_raced(&raced);
        place
    }

    fn run(&self, args: &[&str], stdout: Stdio) -> Output {
        self.command(args).stdout(stdout).output().unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = regatta(args);
        command.current_dir(self.folder.path());
        command
    }

    /// For each subcommand that ends by itself, arguments with which it prints to stdout.
    fn printing(&self) -> Vec<Vec<String>> {
        let url = format!("line://{}", self.server.addr);
        let capacity = "--limit p99=200ms --max 2 --window 100ms --warm-up 100ms --time-limit 30s";
        let mut all = vec![
            RACE.map(String::from).to_vec(),
            words("race double --dry-run"),
            words(&format!("load {url} -c 2 -d 100ms --warm-up 100ms")),
            words(&format!("load {url} -c 2 -d 100ms --warm-up 100ms --json -")),
            words(&format!("capacity {url} {capacity}")),
            words("report out"),
            words("report out --replay"),
            words("diff out out"),
            words("doctor"),
            words(concat!(
                "import httparena ",
                env!("CARGO_MANIFEST_DIR"),
                "/tests/it/import/httparena"
            )),
            words(&format!("shard status {}", self.metrics)),
            words(&format!("shard status {} --json", self.metrics)),
            words(&format!("hub status {}", self.hub.1)),
            words("models"),
            words("services"),
            words("completions bash"),
            words("--version"),
        ];
        let forms = ["html", "json", "md", "csv"].into_iter().chain(FORMATS);
        all.extend(forms.map(|form| words(&format!("report out --{form} -"))));
        // Only a checkout has peers. The import writes others beside this one.
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let peers = self.folder.path().join("peers");
        std::fs::create_dir(&peers).unwrap();
        symlink(checkout.join("peers/nginx"), peers.join("nginx")).unwrap();
        all.push(words("peers"));
        all.push(words("--help"));
        all.extend(subcommands().into_iter().map(|name| vec![name, "--help".into()]));
        all
    }
}

const RACE: [&str; 6] = ["race", "race.toml", "--debug-build", "--load-sleeps", "--settle", "0s"];

const RACE_FILE: &str = "name = 'short'\nworkload = 'double'\ncontenders = ['epoll', 'null']\nrounds = 1\n\
                         window = '50ms'\nwarm_up = '0s'\n[[load]]\nconnections = 4\nrate = 200\n";

/// A busy machine may void a cost, which is status 1.
fn assert_raced(ended: &Output) {
    assert!(matches!(ended.status.code(), Some(0 | 1)), "{}", text(&ended.stderr));
}

fn regatta(args: &[&str]) -> Command {
    let mut command = regatta!("");
    command.args(args).stdin(Stdio::null()).stderr(Stdio::piped());
    command
}

/// A pipe that nobody reads.
fn closed() -> Stdio {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    writer.into()
}

/// A device on which every write fails, as on a full disk.
fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(String::from).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The names that `regatta --help` lists.
fn subcommands() -> Vec<String> {
    let help = regatta(&["--help"]).output().unwrap();
    let help = text(&help.stdout);
    let (_, list) = help.split_once("Commands:\n").expect("a list of commands");
    let list = list.lines().take_while(|line| !line.is_empty());
    // A continued description is indented further.
    let names = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(String::from).collect()
}

#[test]
fn a_closed_stdout_is_no_error_and_a_full_one_is() {
    let place = Place::new();
    for args in place.printing() {
        let shown = args.join(" ");
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let on = |stdout| {
            let ended = place.run(&args, stdout);
            (ended.status.code(), text(&ended.stderr))
        };
        let (status, stderr) = on(closed());
        // A machine may be bad, a cost may not be trusted, and a capacity may have no value.
        let may_fail = ["doctor", "race", "capacity"].contains(&args[0]) && args[1..] != ["--help"];
        assert!(status == Some(0) || may_fail && status == Some(1), "{shown}: {status:?} {stderr}");
        assert!(!stderr.contains("stdout") && !stderr.contains("panicked"), "{shown}: {stderr}");
        let (status, stderr) = on(full());
        assert_eq!(status, Some(2), "{shown}: {stderr}");
        let expected = "regatta: cannot write to stdout: No space left on device";
        assert!(stderr.contains(expected) && !stderr.contains("panicked"), "{shown}: {stderr}");
    }
}

#[test]
fn the_list_of_printing_commands_is_complete() {
    let place = Place::new();
    let printing = place.printing();
    let names = subcommands();
    assert!(names.len() > 10 && names.contains(&"race".into()), "{names:?}");
    for name in names.iter().filter(|name| !SERVERS.contains(&name.as_str())) {
        // They print only help, write files that must be new, or need a broker.
        let least = if ["man", "fleet", "agents"].contains(&name.as_str()) { 1 } else { 2 };
        let tried = printing.iter().filter(|args| args[0] == *name).count();
        assert!(tried >= least, "no arguments with which `regatta {name}` prints");
    }
}

#[test]
fn an_error_on_a_closed_stderr_keeps_its_exit_status() {
    let place = Place::new();
    for (args, expected) in [
        ("no-such-command", 2),
        ("peers", 0),
        ("peers install no-such-peer", 2),
        ("load line://127.0.0.1:1 -d 100ms", 2),
        ("report no-such-folder", 2),
    ] {
        for closed_or_full in [closed, full] {
            let args: Vec<&str> = args.split(' ').collect();
            let mut command = place.command(&args);
            let ended = command.stdout(Stdio::null()).stderr(closed_or_full()).status().unwrap();
            assert_eq!(ended.code(), Some(expected), "{args:?}");
        }
    }
}

#[test]
fn servers_run_although_nobody_reads_their_output() {
    for args in ["serve double", "shard --nodes 127.0.0.1:1"] {
        for closed_or_full in [closed, full] {
            let args: Vec<&str> = args.split(' ').chain(["--listen", "127.0.0.1:0"]).collect();
            let child = regatta(&args).stdout(closed_or_full()).spawn().unwrap();
            let mut child = Killed(child);
            let mut line = String::new();
            let mut stderr = BufReader::new(child.0.stderr.as_mut().unwrap());
            stderr.read_line(&mut line).unwrap();
            let (_, addr) = line.split_once("listening on ").expect(&line);
            let (addr, because) = addr.split_once(", but cannot write to stdout: ").expect(&line);
            assert!(!because.is_empty());
            TcpStream::connect(addr).unwrap();
        }
    }
}

#[test]
fn a_race_writes_the_same_files_for_other_programs_as_a_report() {
    let place = Place::new();
    let files: Vec<String> =
        FORMATS.iter().flat_map(|f| [format!("--{f}"), format!("{f}.1")]).collect();
    let mut args: Vec<&str> = RACE.iter().copied().chain(["--out", "again"]).collect();
    args.extend(files.iter().map(String::as_str));
    let raced = place.run(&args, Stdio::piped());
    assert_raced(&raced);
    assert!(text(&raced.stdout).contains("epoll"), "the table is printed too");
    for format in FORMATS {
        let shown = place.run(&["report", "again", &format!("--{format}"), "-"], Stdio::piped());
        let written = std::fs::read(place.folder.path().join(format!("{format}.1"))).unwrap();
        assert!(text(&written).contains("epoll"), "{format}: {}", text(&written));
        assert_eq!(text(&shown.stdout), text(&written), "{format}");
    }
}

#[test]
fn only_one_form_is_written_to_stdout() {
    let place = Place::new();
    for args in ["report out --bmf - --csv -", "report out --prometheus - --hdr-log -"] {
        let ended = place.run(&args.split(' ').collect::<Vec<_>>(), Stdio::piped());
        assert_eq!((ended.status.code(), text(&ended.stdout)), (Some(2), String::new()), "{args}");
        assert!(text(&ended.stderr).contains("only one form"), "{}", text(&ended.stderr));
    }
    for (args, expected) in [
        (["--bmf", "-"], "regatta report DIR --bmf -` writes to stdout later"),
        (["--hdr-log", "no/such/folder"], "cannot write no/such/folder"),
    ] {
        let ended = place.run(&[&RACE[..], &args].concat(), Stdio::piped());
        assert_eq!((ended.status.code(), text(&ended.stdout)), (Some(2), String::new()));
        assert!(text(&ended.stderr).contains(expected), "{}", text(&ended.stderr));
    }
}
