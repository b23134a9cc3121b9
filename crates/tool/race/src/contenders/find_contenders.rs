//! Contenders: a contender is a manifest in a folder. Finds them and checks whether they can run here.

use crate::contenders::{lines_of_code::lines_of_code, manifest::Manifest};
use regatta_host::{
    NotFound, RunningUrl, container_engine, find_on_path, find_server, has_image, is_executable,
    search_path,
};
use regatta_record::RunningServer;
use std::{
    collections::BTreeMap,
    fs,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// A program that can be raced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contender {
    /// Its manifest.
    pub manifest: Manifest,
    /// Its folder: its working directory, and the base of its relative paths.
    pub dir: PathBuf,
}

/// Maximum length of the first line of a version, in bytes.
const LONGEST_VERSION: u64 = 200;

/// An error in a contender's manifest or files: the place, and a sentence.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {because}")]
pub struct ContenderError {
    place: String,
    because: String,
}

impl ContenderError {
    pub(crate) fn new(place: &Path, because: impl ToString) -> ContenderError {
        ContenderError { place: place.display().to_string(), because: because.to_string() }
    }
}

impl Contender {
    /// Whether it is built in: this program itself is the server.
    pub(crate) fn is_built_in(&self) -> bool {
        self.manifest.start.first().is_some_and(|program| program == "{regatta}")
    }

    /// Reads one `manifest.toml`.
    pub fn read(path: &Path) -> Result<Contender, ContenderError> {
        let at = |because: String| ContenderError::new(path, because);
        let text = fs::read_to_string(path).map_err(|error| at(error.to_string()))?;
        let manifest = Manifest::parse(&text).map_err(at)?;
        let path = fs::canonicalize(path).map_err(|error| at(error.to_string()))?;
        let dir = path.parent().map(Path::to_path_buf).unwrap_or_default();
        Ok(Contender { manifest, dir })
    }

    /// Reads `*/manifest.toml` of a folder, in the order of the folders' names. Two contenders of the
    /// same name are an error.
    pub fn find_all(folder: &Path) -> Result<Vec<Contender>, ContenderError> {
        let at = |error: io::Error| ContenderError::new(folder, error);
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).map_err(at)? {
            let path = entry.map_err(at)?.path().join("manifest.toml");
            if path.is_file() {
                paths.push(path);
            }
        }
        paths.sort();
        let mut seen: BTreeMap<String, PathBuf> = BTreeMap::new();
        let mut contenders = Vec::new();
        for path in paths {
            let contender = Contender::read(&path)?;
            let name = contender.manifest.name.clone();
            if let Some(other) = seen.insert(name.clone(), path.clone()) {
                let because = format!("its name {name:?} is also that of {}", other.display());
                return Err(ContenderError::new(&path, because));
            }
            contenders.push(contender);
        }
        Ok(contenders)
    }

    /// Returns the programs that it needs and that are not on PATH.
    pub fn absent(&self) -> Vec<&str> {
        let needs = self.manifest.needs.iter().map(String::as_str);
        needs.filter(|program| find_on_path(program).is_none()).collect()
    }

    /// Finds its server, if it is already running; `None` if it is started instead.
    pub fn running(&self) -> Option<Result<RunningServer, NotFound>> {
        let url = self.manifest.url.as_ref()?;
        let port = RunningUrl::parse(url).ok()?.port;
        Some(find_server(url, port))
    }

    /// Returns why it cannot be started here, and what to do; `None` if nothing is missing.
    pub fn missing(&self) -> Option<String> {
        if let Some(running) = self.running() {
            return running.err().map(|error| error.to_string());
        }
        let Manifest { name, packages, setup, start, backends, .. } = &self.manifest;
        let absent = self.absent();
        let install = format!("`regatta peers install {name}`");
        if !absent.is_empty() {
            let absent = absent.join(", ");
            return Some(match (packages.is_empty(), setup.is_empty()) {
                (false, _) => format!("not on PATH: {absent}; run {install}"),
                (true, true) => format!("not on PATH: {absent}; install it"),
                (true, false) => format!("not on PATH: {absent}; install it, then run {install}"),
            });
        }
        if let Some(missing) = self.missing_for_container() {
            return Some(missing);
        }
        // A program that runs in a container is in its image.
        let start = if self.manifest.image.is_some() { &Vec::new() } else { start };
        let workloads = self.manifest.workloads.iter();
        let starts = || backends.iter().map(|backend| &backend.start).chain([start]);
        let programs = workloads.flat_map(|workload| {
            starts().filter_map(move |start| Some(start.first()?.replace("{workload}", workload)))
        });
        // A program with another placeholder is known only at the start, which reports it if missing.
        let lacks = |program: &String| {
            !program.contains('{')
                && !match program.contains('/') {
                    true => is_executable(&self.dir.join(program)),
                    false => find_on_path(program).is_some(),
                }
        };
        let program = { programs }.find(lacks)?;
        Some(match setup.is_empty() {
            false => format!("not built yet; run {install}"),
            true => self.not_found(&program),
        })
    }

    /// Returns what its container lacks, and what to do. An image that `setup` builds is not pulled.
    fn missing_for_container(&self) -> Option<String> {
        let Manifest { name, image, setup, mounts, .. } = &self.manifest;
        let image = image.as_ref()?;
        if container_engine().is_none() {
            return Some("it runs in a container: install podman or docker".to_owned());
        }
        if let Some(mount) = mounts.iter().find(|mount| !self.dir.join(&mount.from).exists()) {
            let (from, to) = (self.dir.join(&mount.from), mount.to.display());
            return Some(format!(
                "there is no {}, which its container sees as {to}; correct `mounts`",
                from.display()
            ));
        }
        let is_unbuilt = !setup.is_empty() && has_image(image) == Some(false);
        is_unbuilt
            .then(|| format!("its image is not built yet; run `regatta peers install {name}`"))
    }

    /// Says where a program was looked for, and what to do.
    fn not_found(&self, program: &str) -> String {
        // Without the `.` of `./program`.
        let path: PathBuf = self.dir.join(program).components().collect();
        match program.contains('/') {
            true if path.is_dir() => format!("{} is a folder, not a program", path.display()),
            true if path.exists() => {
                let path = path.display();
                format!("{path} is not executable; run: chmod +x {path}")
            }
            true => {
                format!("there is no program {}; build it, or correct its path", path.display())
            }
            false if is_executable(&path) => format!(
                "{program} is not on PATH, but {} is a program; write ./{program}",
                path.display()
            ),
            false => format!(
                "{program} is not found in any folder of PATH; install it, or write its path"
            ),
        }
    }

    /// Returns the version that its runtime prints; `None` if the manifest has no version command, or
    /// if that cannot be run or prints nothing within five seconds.
    pub fn version(&self) -> Option<String> {
        const LIMIT: Duration = Duration::from_secs(5);
        let (program, arguments) = self.manifest.version.split_first()?;
        let mut child = Command::new(program)
            .args(arguments)
            .env("PATH", search_path())
            .current_dir(&self.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let stdout = child.stdout.take()?;
        let (sender, line) = mpsc::channel();
        // The output after the first line is read too, so that the program never blocks on a full pipe.
        // If a descendant keeps the pipe open, the thread lives until the descendant closes it.
        thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            let mut first = Vec::new();
            let read = reader.by_ref().take(LONGEST_VERSION).read_until(b'\n', &mut first);
            // Some programs print tabs.
            let words = |line: &[u8]| {
                String::from_utf8_lossy(line).split_whitespace().collect::<Vec<_>>().join(" ")
            };
            // The caller may have given up. A read error ends the output.
            let _ = sender.send(read.map(|_| words(&first)));
            let _ = io::copy(&mut reader, &mut io::sink());
        });
        let deadline = Instant::now() + LIMIT;
        let line = line.recv_timeout(LIMIT).ok();
        while child.try_wait().ok()?.is_none() {
            if Instant::now() > deadline {
                child.kill().ok()?;
            }
            thread::sleep(Duration::from_millis(2));
        }
        line?.ok().filter(|line| !line.is_empty())
    }

    /// Counts the lines of code of its source files for a workload; `None` if it names none.
    pub fn lines_of_code(&self, workload: &str) -> Result<Option<u32>, ContenderError> {
        if self.manifest.source.is_empty() {
            return Ok(None);
        }
        let count = |file: &String| {
            lines_of_code(&self.dir.join(file.replace("{workload}", workload)))
                .map_err(|error| ContenderError::new(&self.dir, error))
        };
        self.manifest.source.iter().map(count).sum::<Result<u32, _>>().map(Some)
    }
}

#[cfg(test)]
pub(crate) mod tests;
