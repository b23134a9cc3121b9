//! Agents over SSH: the `ssh` program with the user's configuration and keys. It never asks for a password,
//! and notices within 6 s that the other machine is gone.

use crate::{
    error::Error,
    leader::Machine,
    machine::{Build, PROGRAM},
};
use regatta_record::visible;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::{
    collections::BTreeMap,
    env::consts::ARCH,
    ffi::OsString,
    fs::File,
    io,
    process::{Command, Output, Stdio},
    sync::{
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::Duration,
};

/// The options of `ssh` (ssh(1), ssh_config(5)).
const OPTIONS: [&str; 5] = [
    "-T",
    "-oBatchMode=yes",
    "-oConnectTimeout=5",
    "-oServerAliveInterval=2",
    "-oServerAliveCountMax=3",
];
/// Where the program is copied to, below the home folder of the user there.
const CACHE: &str = ".cache/regatta";

/// How a machine with a name is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The destination of `ssh`.
    pub destination: String,
    /// Options of `ssh`. They come before those that are always given, and `ssh` takes the first of two.
    pub options: Vec<String>,
    /// The path of regatta there, below the home folder if it starts with `~/`; `None`: on the search path.
    pub program: Option<String>,
}

/// The `ssh` program.
#[derive(Clone, Debug)]
pub struct Ssh {
    /// The program, and its first arguments.
    words: Vec<OsString>,
    /// Machines by their names. All other names are destinations.
    hosts: BTreeMap<String, Host>,
}

impl Ssh {
    /// `command` is `ssh`, or another program that takes the same arguments. It may have arguments, and is
    /// quoted as for a shell.
    ///
    /// # Errors
    /// [`Error::Command`] if it has no program, or a quote has no end.
    pub fn new(command: &str) -> Result<Ssh, Error> {
        let words = shell_words::split(command).unwrap_or_default();
        match words.is_empty() {
            true => Err(Error::Command(command.to_owned())),
            false => {
                let words = words.into_iter().map(OsString::from).collect();
                Ok(Ssh { words, hosts: BTreeMap::new() })
            }
        }
    }

    /// The same program, which reaches the machines with these names as they say.
    pub fn with_hosts(self, hosts: BTreeMap<String, Host>) -> Ssh {
        Ssh { hosts, ..self }
    }

    /// The machine with an agent: its program, or `regatta` on the search path of non-interactive shells there.
    pub fn machine(&self, host: &str) -> Machine {
        let program = self.hosts.get(host).and_then(|host| host.program.as_deref());
        let program = program.map_or_else(
            || "regatta".into(),
            |path| match path.strip_prefix("~/") {
                Some(rest) => format!("~/{}", shell_words::quote(rest)),
                None => shell_words::quote(path).into_owned(),
            },
        );
        self.agent(host, &program)
    }

    /// Copies this program, which is `build`, to `~/.cache/regatta/<sha256>/` on a machine, unless it is there,
    /// and returns the machine with an agent that is this copy.
    ///
    /// # Errors
    /// If the machine cannot be reached, has another architecture, or the file cannot be written;
    /// [`Error::Interrupted`] soon after `stop` is set.
    pub fn deploy(&self, host: &str, build: &Build, stop: &AtomicBool) -> Result<Machine, Error> {
        let fail =
            |because: String| Error::Agent { name: host.to_owned(), because: visible(&because) };
        let sha = &build.sha256;
        let path = format!("{CACHE}/{sha}/regatta");
        let ask = format!("sh -c 'echo \"machine $(uname -m)\"; test -x ~/{path} && echo present'");
        let output = self.run(host, &ask, Stdio::null(), stop)?;
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        // A login may print something before.
        let mut lines = answer.lines().skip_while(|line| !line.starts_with("machine "));
        let theirs = lines.next().and_then(|line| line.strip_prefix("machine "));
        let Some(theirs) = theirs else { return Err(fail(ended(&output))) };
        if theirs != ARCH {
            let (name, theirs, ours) = (host.to_owned(), visible(theirs), ARCH.to_owned());
            return Err(Error::OtherArchitecture { name, theirs, ours });
        }
        if lines.next() != Some("present") {
            let program = File::open(PROGRAM);
            let program =
                program.map_err(|error| Error::Machine { what: "read this program", error })?;
            // Renamed when it is complete, so that a copy that was cut off is never started.
            let write = format!(
                "sh -c 'mkdir -p ~/{CACHE}/{sha} && cat > ~/{path}.$$ && chmod 755 ~/{path}.$$ && \
                 mv -f ~/{path}.$$ ~/{path}'"
            );
            let output = self.run(host, &write, program.into(), stop)?;
            if !output.status.success() {
                return Err(fail(format!(
                    "did not take a copy of this program: {}",
                    ended(&output)
                )));
            }
        }
        Ok(self.agent(host, &format!("~/{path}")))
    }

    fn agent(&self, host: &str, program: &str) -> Machine {
        let mut words = self.to(host);
        words.push(format!("{program} agent --stdio").into());
        let (program, arguments) = (words.remove(0), words);
        Machine { name: host.to_owned(), program, arguments }
    }

    /// The words of a command that reaches a machine, without what runs there.
    fn to(&self, host: &str) -> Vec<OsString> {
        let named = self.hosts.get(host);
        let options = named.map_or(&[][..], |named| &named.options);
        let destination = named.map_or(host, |named| &named.destination);
        let mut words = self.words.clone();
        words.extend(options.iter().map(OsString::from));
        words.extend(OPTIONS.into_iter().chain([destination]).map(OsString::from));
        words
    }

    fn run(
        &self,
        host: &str,
        command: &str,
        stdin: Stdio,
        stop: &AtomicBool,
    ) -> Result<Output, Error> {
        let fail = |error: io::Error| Error::Machine { what: "run ssh", error };
        let words = self.to(host);
        let mut ssh = Command::new(&words[0]);
        ssh.args(&words[1..]).arg(command);
        let ssh = ssh.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let ssh = ssh.map_err(fail)?;
        let id = Pid::from_child(&ssh);
        // A number of the process could be that of another one when it is killed.
        let process = pidfd_open(id, PidfdFlags::empty()).map_err(|errno| fail(errno.into()))?;
        let (sender, ended) = mpsc::channel();
        thread::spawn(move || sender.send(ssh.wait_with_output()));
        loop {
            match ended.recv_timeout(Duration::from_millis(20)) {
                Ok(output) => return output.map_err(fail),
                Err(_) if stop.load(Relaxed) => {
                    let _ = pidfd_send_signal(&process, Signal::KILL);
                    return Err(Error::Interrupted);
                }
                Err(_) => {}
            }
        }
    }
}

/// How a command over SSH ended, as the rest of a sentence.
fn ended(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = stderr.lines().rfind(|line| !line.trim().is_empty());
    format!("cannot be reached with ssh: {}", last.map_or(output.status.to_string(), str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Instant};

    static NEVER: AtomicBool = AtomicBool::new(false);

    /// A program in place of `ssh`: runs the command here, in another home folder, after `before`.
    fn fake(folder: &Path, before: &str) -> Ssh {
        let path = folder.join("ssh");
        let home = folder.display();
        let script = format!(
            "#!/bin/sh\nfor last; do :; done\nexport HOME={home}\n{before}\nexec sh -c \"$last\"\n"
        );
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Ssh::new(path.to_str().unwrap()).unwrap()
    }

    fn build() -> Build {
        Build::running("1").unwrap()
    }

    fn last(machine: &Machine) -> String {
        machine.arguments.last().unwrap().to_string_lossy().into_owned()
    }

    #[test]
    fn the_program_is_copied_once_and_is_the_agent_then() {
        let folder = tempfile::tempdir().unwrap();
        let machine = fake(folder.path(), "").deploy("gen1", &build(), &NEVER).unwrap();
        let sha = build().sha256;
        assert_eq!(last(&machine), format!("~/.cache/regatta/{sha}/regatta agent --stdio"));
        let copy = folder.path().join(format!(".cache/regatta/{sha}/regatta"));
        let written = fs::metadata(&copy).unwrap();
        assert_eq!(written.len(), fs::metadata("/proc/self/exe").unwrap().len());
        assert_eq!(written.permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_dir(copy.parent().unwrap()).unwrap().count(), 1);
        fake(folder.path(), "").deploy("gen1", &build(), &NEVER).unwrap();
        let again = fs::metadata(&copy).unwrap();
        assert_eq!(again.modified().unwrap(), written.modified().unwrap(), "it was copied again");
    }

    #[test]
    fn another_architecture_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let ssh = fake(folder.path(), "echo Welcome; echo machine riscv64; exit 0");
        let error = ssh.deploy("gen1", &build(), &NEVER).unwrap_err().to_string();
        assert!(error.contains("gen1 is riscv64: build regatta for riscv64"), "{error}");
    }

    #[test]
    fn an_unreachable_machine_is_named_with_the_message_of_ssh() {
        let folder = tempfile::tempdir().unwrap();
        let ssh = fake(folder.path(), "echo 'ssh: Could not resolve hostname gen1' >&2; exit 255");
        let error = ssh.deploy("gen1", &build(), &NEVER).unwrap_err().to_string();
        let expected =
            "agent gen1 cannot be reached with ssh: ssh: Could not resolve hostname gen1";
        assert_eq!(error, expected);
    }

    #[test]
    fn a_copy_is_interrupted_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (ssh, began) = (fake(folder.path(), "exec sleep 60"), Instant::now());
        let stopped = ssh.deploy("gen1", &build(), &AtomicBool::new(true));
        assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
        assert!(began.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_machine_with_a_name_is_reached_as_it_says() {
        let host = |program: Option<&str>| Host {
            destination: "bench@10.0.0.7".into(),
            options: vec!["-p".into(), "22 22".into()],
            program: program.map(str::to_owned),
        };
        let command = |program| {
            let hosts = [("gen1".to_owned(), host(program))].into_iter().collect();
            let machine = Ssh::new("ssh").unwrap().with_hosts(hosts).machine("gen1");
            assert_eq!((machine.name.as_str(), machine.program.to_str()), ("gen1", Some("ssh")));
            let words = machine.arguments.iter().map(|one| one.to_string_lossy().into_owned());
            let words: Vec<String> = words.collect();
            let (last, before) = words.split_last().unwrap();
            assert_eq!(before, [&["-p", "22 22"][..], &OPTIONS, &["bench@10.0.0.7"]].concat());
            last.clone()
        };
        assert_eq!(command(None), "regatta agent --stdio");
        assert_eq!(command(Some("/opt/my regatta")), "'/opt/my regatta' agent --stdio");
        assert_eq!(command(Some("~/bin/re;gatta")), "~/'bin/re;gatta' agent --stdio");
        assert_eq!(Ssh::new("ssh").unwrap().machine("gen1").arguments[5], "gen1");
    }

    #[test]
    fn an_agent_is_a_command_over_ssh_without_questions() {
        let machine = Ssh::new("ssh -F 'my config'").unwrap().machine("bench@gen1");
        assert_eq!(machine.program, "ssh");
        let arguments: Vec<_> =
            machine.arguments.iter().map(|one| one.to_string_lossy().into_owned()).collect();
        let expected =
            [&["-F", "my config"][..], &OPTIONS, &["bench@gen1", "regatta agent --stdio"]].concat();
        assert_eq!(arguments, expected);
        for wrong in ["", " ", "ssh 'x"] {
            let error = Ssh::new(wrong).unwrap_err().to_string();
            assert!(error.starts_with("expected a command in place of ssh, got "), "{error}");
        }
    }
}
