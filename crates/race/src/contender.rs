//! A contender: a manifest in a folder. Finding them, whether they can run here, and what starts
//! them.

use crate::{
    backend::Backend,
    lines_of_code::lines_of_code,
    manifest::Manifest,
    placeholders::{BackendPorts, UnknownPlaceholder, Values},
};
use regatta_host::{
    Containment, Launch, RoleLaunch, find_on_path, free_port, is_executable, search_path,
};
use regatta_record::RoleUsage;
use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    io::{self, BufRead, BufReader, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// A program that can be raced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contender {
    /// What it says of itself.
    pub manifest: Manifest,
    /// Its folder: where it is started, and what its files are relative to.
    pub dir: PathBuf,
}

/// The CPUs of the roles of a contender.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoleCpus<'a> {
    /// The server's; none: any.
    pub server: &'a [u32],
    /// Those of backends that name none; none: any.
    pub backends: &'a [u32],
}

/// Longest first line of a version, in bytes.
const LONGEST_VERSION: u64 = 200;

/// What is wrong with a contender's manifest or files: where, and a sentence.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {because}")]
pub struct ContenderError {
    place: String,
    because: String,
}

impl ContenderError {
    fn new(place: &Path, because: impl ToString) -> ContenderError {
        ContenderError { place: place.display().to_string(), because: because.to_string() }
    }
}

impl Contender {
    /// Reads one `manifest.toml`.
    pub fn read(path: &Path) -> Result<Contender, ContenderError> {
        let at = |because: String| ContenderError::new(path, because);
        let text = fs::read_to_string(path).map_err(|error| at(error.to_string()))?;
        let manifest = Manifest::parse(&text).map_err(at)?;
        let path = fs::canonicalize(path).map_err(|error| at(error.to_string()))?;
        let dir = path.parent().map(Path::to_path_buf).unwrap_or_default();
        Ok(Contender { manifest, dir })
    }

    /// Reads `*/manifest.toml` of a folder, in the order of the folders' names. Two of one name are
    /// an error.
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

    /// The programs that it needs and that are not on PATH.
    pub fn absent(&self) -> Vec<&str> {
        let needs = self.manifest.needs.iter().map(String::as_str);
        needs.filter(|program| find_on_path(program).is_none()).collect()
    }

    /// Why it cannot be started here, and what to do; `None` if all that it needs is found.
    pub fn missing(&self) -> Option<String> {
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
        let workloads = self.manifest.workloads.iter();
        let starts = || backends.iter().map(|backend| &backend.start).chain([start]);
        let programs = workloads.flat_map(|workload| {
            starts().filter_map(move |start| Some(start.first()?.replace("{workload}", workload)))
        });
        // One with another placeholder is known only at the start, which then tells.
        let lacks = |program: &String| {
            !program.contains('{')
                && !match program.contains('/') {
                    true => is_executable(&self.dir.join(program)),
                    false => find_on_path(program).is_some(),
                }
        };
        let program = { programs }.find(lacks)?;
        Some(match setup.is_empty() {
            false => format!("{program} is not there yet; run {install}"),
            true => format!("{program} is not there; install it"),
        })
    }

    /// Free ports for its backends, in the order of the manifest.
    pub fn backend_ports(&self) -> io::Result<Vec<BackendPorts>> {
        let each = self.manifest.backends.iter().map(|backend| {
            let ports = (0..backend.count).map(|_| free_port()).collect::<io::Result<_>>()?;
            Ok(BackendPorts { name: backend.name.clone(), ports })
        });
        each.collect()
    }

    /// How to start it, called `name`: its backends and then the server, with their templates filled
    /// in and written to `values.run`.
    pub fn launches(
        &self,
        name: &str,
        values: &Values<'_>,
        cpus: &RoleCpus<'_>,
        containment: Containment,
    ) -> Result<Vec<RoleLaunch>, ContenderError> {
        let mut roles = Vec::new();
        for (backend, ports) in self.manifest.backends.iter().zip(values.backends) {
            roles.push(self.backend(name, backend, &ports.ports, values, cpus, containment)?);
        }
        let Manifest { start, env, config, ready, .. } = &self.manifest;
        let how = How { name: name.to_owned(), start, env, config };
        let launch = self.launch(how, values, cpus.server, containment)?;
        let server = RoleUsage::SERVER.to_owned();
        roles.push(RoleLaunch { name: server, ready: ready.clone(), launches: vec![launch] });
        Ok(roles)
    }

    fn backend(
        &self,
        name: &str,
        backend: &Backend,
        ports: &[u16],
        values: &Values<'_>,
        cpus: &RoleCpus<'_>,
        containment: Containment,
    ) -> Result<RoleLaunch, ContenderError> {
        let Backend { name: role, start, env, config, ready, .. } = backend;
        let cpus = if backend.cpus.is_empty() { cpus.backends } else { &backend.cpus };
        let mut launches = Vec::new();
        for (&port, instance) in ports.iter().zip(1..) {
            let run = values.home.join(format!("{role}-{instance}"));
            folder(&run).map_err(|error| ContenderError::new(&run, error))?;
            let name = match ports.len() {
                1 => format!("{name}'s backend {role}"),
                _ => format!("{name}'s backend {role} {instance}"),
            };
            let (run, instance) = (run.as_path(), Some(instance));
            let own = Values { port, run, instance, cores: cpus.len(), ..*values };
            launches.push(self.launch(
                How { name, start, env, config },
                &own,
                cpus,
                containment,
            )?);
        }
        Ok(RoleLaunch { name: role.clone(), ready: ready.clone(), launches })
    }

    fn launch(
        &self,
        how: How<'_>,
        values: &Values<'_>,
        cpus: &[u32],
        containment: Containment,
    ) -> Result<Launch, ContenderError> {
        let at = |because: String| ContenderError::new(&self.dir, because);
        let told = |error: UnknownPlaceholder| at(error.to_string());
        let How { name, start, env: variables, config } = how;
        let command = values.fill_all(start).map_err(told)?;
        let mut env = BTreeMap::new();
        for (variable, value) in variables {
            env.insert(variable.clone(), values.fill(value).map_err(told)?);
        }
        env.entry("PATH".into()).or_insert_with(search_path);
        for template in config {
            write_config(&self.dir.join(template), values)
                .map_err(|error| at(format!("{template}: {error}")))?;
        }
        let (dir, port, cpus) = (self.dir.clone(), values.port, cpus.to_vec());
        Ok(Launch { name, command, dir, env, port, cpus, containment })
    }

    /// Version of its runtime, as that prints it; `None` where nothing asks for it or it does not
    /// answer within five seconds.
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
        // What comes after the first line is read too, so that no program waits for room in the pipe.
        // A descendant may keep the pipe open; then the thread stays until that ends.
        thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            let mut first = Vec::new();
            let read = reader.by_ref().take(LONGEST_VERSION).read_until(b'\n', &mut first);
            // A caller that gave up waits for nothing, and a pipe that breaks has said its last.
            let _ = sender.send(read.map(|_| String::from_utf8_lossy(&first).trim().to_owned()));
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

    /// Lines of code of its source files for a workload; `None` where it names none.
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

/// What is filled in for one process.
struct How<'a> {
    name: String,
    start: &'a [String],
    env: &'a BTreeMap<String, String>,
    config: &'a [String],
}

/// A folder that anybody may read, whatever the umask, since some servers become another user.
fn folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o755))
}

/// `a/nginx.conf.in` becomes `{run}/nginx.conf`. Anybody may read it, whatever the umask, since some
/// servers become another user.
fn write_config(template: &Path, values: &Values) -> io::Result<()> {
    let text = fs::read_to_string(template)?;
    let name = template.file_stem().unwrap_or(template.as_os_str());
    let config = values.run.join(name);
    fs::write(&config, values.fill_known(&text))?;
    fs::set_permissions(config, Permissions::from_mode(0o644))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn folder(files: &[(&str, &str)]) -> TempDir {
        let folder = TempDir::new().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn manifest(name: &str, more: &str) -> String {
        format!(
            "name = \"{name}\"\nabout = \"x\"\nworkloads = [\"double\"]\n\
             start = [\"sh\", \"-c\", \"serve {{port}} {{cores}}\"]\n{more}"
        )
    }

    #[test]
    fn finds_the_manifests_of_a_folder_in_order() {
        let peers = folder(&[
            ("go/manifest.toml", &manifest("go", "")),
            ("bun/manifest.toml", &manifest("bun", "")),
            ("node/README.md", "no manifest"),
            ("loose.toml", "neither"),
        ]);
        let found = Contender::find_all(peers.path()).unwrap();
        let names: Vec<&str> = found.iter().map(|one| one.manifest.name.as_str()).collect();
        assert_eq!(names, ["bun", "go"]);
        assert!(found[0].dir.ends_with("bun"));
    }

    #[test]
    fn a_wrong_manifest_and_a_second_of_one_name_are_told_with_their_place() {
        let wrong = folder(&[("go/manifest.toml", "name = 1")]);
        let error = Contender::find_all(wrong.path()).unwrap_err().to_string();
        assert!(error.contains("go/manifest.toml: "), "{error}");
        let two = folder(&[
            ("a/manifest.toml", &manifest("same", "")),
            ("b/manifest.toml", &manifest("same", "")),
        ]);
        let error = Contender::find_all(two.path()).unwrap_err().to_string();
        assert!(error.contains("b/manifest.toml: its name \"same\" is also that of"), "{error}");
        let error = Contender::find_all(Path::new("/no/peers")).unwrap_err().to_string();
        assert!(error.starts_with("/no/peers: "), "{error}");
    }

    #[test]
    fn what_is_missing_is_told_with_the_remedy() {
        let check = |text: String| {
            let peers = folder(&[("x/manifest.toml", &text)]);
            Contender::read(&peers.path().join("x/manifest.toml")).unwrap().missing()
        };
        assert_eq!(check(manifest("x", "needs = [\"sh\"]")), None);
        let absent = check(manifest("x", "needs = [\"sh\", \"no-such-compiler\"]"));
        assert_eq!(absent.unwrap(), "not on PATH: no-such-compiler; install it");
        let unbuilt = manifest("x", "setup = [\"make\"]").replace("\"sh\"", "\"build/x\"");
        let expected = "build/x is not there yet; run `regatta peers install x`";
        assert_eq!(check(unbuilt).unwrap(), expected);
        assert_eq!(check(manifest("x", "").replace("\"sh\"", "\"{regatta}\"")), None);
    }

    #[test]
    fn a_launch_has_everything_filled_in() {
        let more = "env = { WHERE = \"{dir}\" }\nconfig = [\"n.conf.in\"]";
        let peers = folder(&[
            ("x/manifest.toml", &manifest("x", more)),
            ("x/n.conf.in", "http { listen {port}; pid {run}/pid; }"),
        ]);
        let contender = Contender::read(&peers.path().join("x/manifest.toml")).unwrap();
        let run = TempDir::new().unwrap();
        let regatta = Path::new("/bin/regatta");
        let (dir, run) = (contender.dir.as_path(), run.path());
        let values = Values {
            port: 4001,
            workload: "double",
            cores: 2,
            churn: false,
            request_bytes: None,
            dir,
            run,
            home: run,
            regatta,
            instance: None,
            backends: &[],
        };
        let cpus = RoleCpus { server: &[0, 1], backends: &[] };
        let roles = contender.launches("x", &values, &cpus, Containment::Best).unwrap();
        let [RoleLaunch { name, launches, .. }] = &roles[..] else { panic!("{roles:?}") };
        let launch = &launches[0];
        assert_eq!((name.as_str(), launch.name.as_str()), ("server", "x"));
        assert_eq!(launch.command, ["sh", "-c", "serve 4001 2"]);
        assert_eq!(Path::new(&launch.env["WHERE"]), dir);
        assert_eq!((launch.port, &launch.cpus[..]), (4001, &[0, 1][..]));
        let config = fs::read_to_string(run.join("n.conf")).unwrap();
        assert_eq!(config, format!("http {{ listen 4001; pid {}/pid; }}", run.display()));
    }

    #[test]
    fn an_unknown_placeholder_stops_the_launch() {
        let text = manifest("x", "").replace("{cores}", "{threads}");
        let peers = folder(&[("x/manifest.toml", &text)]);
        let contender = Contender::read(&peers.path().join("x/manifest.toml")).unwrap();
        let here = peers.path();
        let values = Values {
            port: 1,
            workload: "double",
            cores: 1,
            churn: false,
            request_bytes: None,
            dir: here,
            run: here,
            home: here,
            regatta: here,
            instance: None,
            backends: &[],
        };
        let cpus = RoleCpus::default();
        let error = contender.launches("x", &values, &cpus, Containment::Best);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("unknown placeholder {threads}"), "{error}");
    }

    #[test]
    fn the_first_line_of_the_version_is_told() {
        let version = |command: &str| {
            let text = manifest("x", &format!("version = [\"sh\", \"-c\", \"{command}\"]"));
            let peers = folder(&[("x/manifest.toml", &text)]);
            Contender::read(&peers.path().join("x/manifest.toml")).unwrap().version()
        };
        assert_eq!(version("echo go1.26; echo more").as_deref(), Some("go1.26"));
        assert_eq!(version("exit 1"), None);
    }

    #[test]
    fn a_version_with_pages_of_text_behind_it_is_told_at_once() {
        let pages =
            "echo v2; i=0; while [ $i -lt 9000 ]; do echo 0123456789abcdef; i=$((i+1)); done";
        let text = manifest("x", &format!("version = [\"sh\", \"-c\", \"{pages}\"]"));
        let peers = folder(&[("x/manifest.toml", &text)]);
        let contender = Contender::read(&peers.path().join("x/manifest.toml")).unwrap();
        let began = Instant::now();
        assert_eq!(contender.version().as_deref(), Some("v2"));
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    }

    #[test]
    fn backends_are_started_before_the_server_each_with_a_folder_and_a_name_of_its_own() {
        let more = "config = [\"n.conf.in\"]\n\
                    [[backend]]\nname = \"app\"\ncount = 2\nready = \"/up\"\n\
                    start = [\"app\", \"{port}\", \"{run}\", \"{file}\", \"{cores}\"]\n\
                    [[backend]]\nname = \"db\"\nstart = [\"db\", \"{port}\"]\ncpus = [7]\n";
        let peers = folder(&[
            ("x/manifest.toml", &manifest("x", more)),
            ("x/n.conf.in", "to {backend.app.address};\n"),
        ]);
        let contender = Contender::read(&peers.path().join("x/manifest.toml")).unwrap();
        let run = TempDir::new().unwrap();
        let ports = contender.backend_ports().unwrap();
        let values = Values {
            port: 4001,
            workload: "double",
            cores: 2,
            churn: false,
            request_bytes: None,
            dir: &contender.dir,
            run: run.path(),
            home: run.path(),
            regatta: Path::new("/bin/regatta"),
            instance: None,
            backends: &ports,
        };
        let cpus = RoleCpus { server: &[0, 1], backends: &[2] };
        let roles = contender.launches("twin", &values, &cpus, Containment::Best).unwrap();
        let names: Vec<Vec<&str>> = roles
            .iter()
            .map(|role| role.launches.iter().map(|launch| launch.name.as_str()).collect())
            .collect();
        let app = vec!["twin's backend app 1", "twin's backend app 2"];
        assert_eq!(names, [app, vec!["twin's backend db"], vec!["twin"]]);
        assert_eq!(roles[0].ready, regatta_host::Ready::Http("/up".into()));
        let second = &roles[0].launches[1];
        let own = run.path().join("app-2");
        let file = run.path().join("hash.bin");
        let [own, file] = [&own, &file].map(|path| path.display().to_string());
        let port = ports[0].ports[1].to_string();
        assert_eq!(second.command, ["app", &port, &own, &file, "1"]);
        assert_eq!(second.cpus, [2]);
        assert_eq!(roles[1].launches[0].cpus, [7]);
        let config = fs::read_to_string(run.path().join("n.conf")).unwrap();
        let [first, second] = ports[0].ports[..] else { panic!("{ports:?}") };
        assert_eq!(config, format!("to 127.0.0.1:{first};\nto 127.0.0.1:{second};\n"));
    }

    #[test]
    fn lines_of_all_sources_are_counted() {
        let peers = folder(&[
            ("x/manifest.toml", &manifest("x", "source = [\"a.js\", \"../y/b.py\"]")),
            ("x/a.js", "// no\nyes\nyes\n"),
            ("y/b.py", "# no\nyes\n"),
            ("z/manifest.toml", &manifest("z", "")),
        ]);
        let lines = |name: &str| {
            let path = peers.path().join(name).join("manifest.toml");
            Contender::read(&path).unwrap().lines_of_code("double").unwrap()
        };
        assert_eq!(lines("x"), Some(3));
        assert_eq!(lines("z"), None);
    }
}
