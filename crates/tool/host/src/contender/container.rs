//! A contender in a container, run by podman or docker. With either engine, the processes of a container
//! have their own control group, and usage is read from that group: under docker they are not
//! descendants of the supervisor. The engine's client stays in the foreground below the supervisor,
//! forwards SIGTERM, and ends with the container.

use crate::{
    contender::ulimits,
    group::cgroup::{Cgroup, Version},
    machine::on_path::find_on_path,
    process::tree::{Process, named},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

/// How long an engine may take to create a container after its client was killed.
const AGAIN: Duration = Duration::from_millis(500);

/// The container of one launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// The engine's program.
    engine: PathBuf,
    /// The container's unique name.
    name: String,
}

/// What runs in a container, and how.
#[derive(Clone, Debug)]
pub struct InContainer<'a> {
    /// The image.
    pub image: &'a str,
    /// Program and arguments; empty: those of the image.
    pub words: Vec<String>,
    /// A folder that is mounted at the same path.
    pub run: &'a Path,
    /// Its CPUs; empty: all.
    pub cpus: &'a [u32],
    /// Its environment variables.
    pub env: &'a BTreeMap<String, String>,
    /// What a manifest asks for in addition.
    pub options: &'a ContainerOptions,
}

/// What a container has in addition to the usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerOptions {
    /// Files and folders that it sees, read-only: their paths on this machine, and in the container. No path
    /// contains a colon, which separates them for the engine.
    pub mounts: Vec<(PathBuf, PathBuf)>,
    /// Limits of its processes (setrlimit(2)) by name, soft and hard alike; `None`: as high as possible.
    pub ulimits: BTreeMap<String, Option<u64>>,
    /// Whether its processes may make all system calls. Otherwise the engine's profile applies.
    pub unconfined: bool,
}

/// Returns the program that runs containers here: podman, which needs no daemon, otherwise docker;
/// `None` if neither is on PATH.
pub fn container_engine() -> Option<PathBuf> {
    ["podman", "docker"].into_iter().find_map(find_on_path)
}

/// Returns why containers cannot be run here, as a phrase; `None` if the engine answers.
pub fn engine_trouble() -> Option<String> {
    let Some(engine) = container_engine() else {
        return Some("neither podman nor docker is on PATH".to_owned());
    };
    let answer = Command::new(&engine).arg("info").stdin(Stdio::null()).output();
    match answer {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Some(format!("`{} info`: {said}", engine.display()))
        }
        Err(error) => Some(format!("`{} info`: {error}", engine.display())),
    }
}

/// Returns the identifier of an image, which changes with every build. Pulls a missing image, as the
/// engine would at the first start. Returns `None` if that fails or no engine answers.
pub fn image_id(image: &str) -> Option<String> {
    let engine = container_engine()?;
    id_here(&engine, image).or_else(|| {
        asked(&engine, &["pull", "--quiet", image]).ok()?;
        id_here(&engine, image)
    })
}

/// Whether an image is on this machine. It is not pulled. `None` if no engine is on PATH.
pub fn has_image(image: &str) -> Option<bool> {
    Some(id_here(&container_engine()?, image).is_some())
}

fn id_here(engine: &Path, image: &str) -> Option<String> {
    let id = asked(engine, &["image", "inspect", "--format={{.Id}}", image]).ok();
    id.filter(|id| !id.is_empty())
}

/// Runs an engine command and returns its output, without white space around it.
fn asked(engine: &Path, words: &[&str]) -> io::Result<String> {
    let output = Command::new(engine).args(words).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(io::Error::other(format!("{} {words:?}: {said}", engine.display())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Container {
    /// Returns a container with a unique name, to be run by `engine`.
    pub fn new(engine: PathBuf) -> Container {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Container { engine, name: format!("regatta-{}-{count}", std::process::id()) }
    }

    /// Returns the command that runs it, on the host's network. Its limit on open files is that of this process;
    /// its limit on processes is the hard limit of this process, at most 32,768.
    pub fn command(&self, what: InContainer<'_>) -> Vec<String> {
        let InContainer { image, words, run, cpus, env, options } = what;
        let mut command = vec![
            self.engine.display().to_string(),
            "run".into(),
            "--rm".into(),
            format!("--name={}", self.name),
            "--network=host".into(),
            format!("--volume={0}:{0}", run.display()),
        ];
        command.extend(ulimits::options(&self.engine, &options.ulimits));
        for (from, to) in &options.mounts {
            command.push(format!("--volume={}:{}:ro", from.display(), to.display()));
        }
        if options.unconfined {
            command.push("--security-opt=seccomp=unconfined".into());
        }
        if !cpus.is_empty() {
            let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
            command.push(format!("--cpuset-cpus={}", cpus.join(",")));
        }
        command.extend(env.iter().map(|(name, value)| format!("--env={name}={value}")));
        command.push(image.to_owned());
        command.extend(words);
        command
    }

    /// Returns the control group of the container, which must be running: version 2 if that counts CPU
    /// time, otherwise version 1.
    pub(crate) fn cgroup(&self) -> io::Result<Cgroup> {
        let failed = |what: String| io::Error::other(format!("container {}: {what}", self.name));
        let pid = self.asked(&["inspect", "--format={{.State.Pid}}", &self.name])?;
        let pid: u32 =
            pid.parse().map_err(|_| failed(format!("expected its process id, got {pid:?}")))?;
        let counts =
            |version| Cgroup::of_process(version, pid).filter(|group| group.cpu_ns().is_ok());
        let group = [Version::V2, Version::V1].into_iter().find_map(counts);
        group.ok_or_else(|| failed(format!("cannot read the control group of process {pid}")))
    }

    /// Makes sure that none of its processes runs. Waits up to `grace` for them to end, because its
    /// client has forwarded SIGTERM, then lets the engine remove it. Returns the processes that
    /// remain.
    pub(crate) fn end(&self, group: &Cgroup, grace: Duration) -> Vec<Process> {
        let ends_within = |limit: Duration| {
            let deadline = Instant::now() + limit;
            while !group.all_pids().is_empty() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(5));
            }
            group.all_pids().is_empty()
        };
        ends_within(grace);
        // Run this even if no process is left: the engine keeps a record of the container if its client
        // was killed before the removal. The remaining processes show whether this failed.
        let _ = self.asked(&["rm", "--force", &self.name]);
        ends_within(grace);
        group.all_pids().into_iter().map(named).collect()
    }

    /// Removes the container in whatever state it is, with its processes. Its client may have been
    /// killed while the engine was still creating it, so an engine that finds no container is asked
    /// once more.
    pub(crate) fn remove(&self) {
        if self.asked(&["rm", "--force", &self.name]).is_err() {
            thread::sleep(AGAIN);
            let _ = self.asked(&["rm", "--force", &self.name]);
        }
    }

    /// Runs an engine command and returns its output, without white space around it.
    fn asked(&self, words: &[&str]) -> io::Result<String> {
        asked(&self.engine, words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command_of(container: &Container, options: &ContainerOptions) -> Vec<String> {
        container.command(InContainer {
            image: "x:1",
            words: vec!["/serve".to_owned(), "4001".to_owned()],
            run: Path::new("/r"),
            cpus: &[0, 2],
            env: &[("WHO".to_owned(), "me".to_owned())].into(),
            options,
        })
    }

    #[test]
    fn a_container_gets_its_cpus_its_folder_and_a_unique_name() {
        let engine = PathBuf::from("/usr/bin/podman");
        let [one, other] = [(); 2].map(|()| Container::new(engine.clone()));
        assert_ne!(one.name, other.name);
        let command = command_of(&one, &ContainerOptions::default());
        assert_eq!(command[..3], ["/usr/bin/podman", "run", "--rm"]);
        for word in ["--network=host", "--cpuset-cpus=0,2", "--volume=/r:/r", "--env=WHO=me"] {
            assert!(command.iter().any(|one| one == word), "{word} in {command:?}");
        }
        let starts = |start: &str| command.iter().filter(|one| one.starts_with(start)).count();
        assert_eq!(
            ["--ulimit=nofile=", "--ulimit=nproc=", "--ulimit=", "--security"].map(starts),
            [1, 1, 2, 0]
        );
        assert_eq!(command[command.len() - 3..], ["x:1", "/serve", "4001"]);
    }

    #[test]
    fn a_container_gets_what_its_manifest_asks_for_before_its_image() {
        let options = ContainerOptions {
            mounts: vec![("/srv/a b".into(), "/data".into())],
            ulimits: [("memlock".to_owned(), None), ("nofile".to_owned(), Some(9))].into(),
            unconfined: true,
        };
        let command = command_of(&Container::new("/usr/bin/docker".into()), &options);
        let image = command.iter().position(|word| word == "x:1").unwrap();
        for word in [
            "--volume=/srv/a b:/data:ro",
            "--ulimit=memlock=-1:-1",
            "--ulimit=nofile=9:9",
            "--security-opt=seccomp=unconfined",
        ] {
            assert!(command[..image].iter().any(|one| one == word), "{word} in {command:?}");
        }
        assert_eq!(command.iter().filter(|one| one.starts_with("--ulimit=nofile")).count(), 1);
    }
}
