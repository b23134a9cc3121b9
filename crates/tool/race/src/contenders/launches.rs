//! The launches of a contender's processes: its manifest, with the placeholders of one start filled in.

use crate::contenders::{
    backend::Backend,
    find_contenders::{Contender, ContenderError},
    manifest::Manifest,
    placeholders::{BackendPorts, UnknownPlaceholder, Values},
};
use regatta_host::{
    Container, Containment, InContainer, Launch, RoleLaunch, container_engine, free_port,
    search_path,
};
use regatta_record::RoleUsage;
use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    io,
    net::Ipv4Addr,
    os::unix::fs::PermissionsExt,
    path::Path,
};

/// The CPUs of the roles of a contender.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoleCpus<'a> {
    /// CPUs of the server; empty: any.
    pub server: &'a [u32],
    /// CPUs of backends that name none themselves; empty: any.
    pub backends: &'a [u32],
}

impl Contender {
    /// Returns free ports for its backends, in the order of the manifest.
    pub fn backend_ports(&self) -> io::Result<Vec<BackendPorts>> {
        let each = self.manifest.backends.iter().map(|backend| {
            let ports = (0..backend.count).map(|_| free_port()).collect::<io::Result<_>>()?;
            Ok(BackendPorts { name: backend.name.clone(), ports })
        });
        each.collect()
    }

    /// Returns the launches of its backends, then of the server, under the name `name`. Fills in their
    /// configuration templates: the server's are written to `values.run`, a backend's to a folder
    /// below `values.home`.
    pub fn launches(
        &self,
        name: &str,
        values: &Values<'_>,
        cpus: &RoleCpus<'_>,
    ) -> Result<Vec<RoleLaunch>, ContenderError> {
        let mut roles = Vec::new();
        for (backend, ports) in self.manifest.backends.iter().zip(values.backends) {
            roles.push(self.backend(name, (backend, &ports.ports), values, cpus)?);
        }
        let Manifest { start, env, config, ready, image, .. } = &self.manifest;
        let image = image.as_deref();
        let how = How { name: name.to_owned(), start, env, config, image };
        let launch = self.launch(how, values, cpus.server)?;
        let server = RoleUsage::SERVER.to_owned();
        roles.push(RoleLaunch { name: server, ready: ready.clone(), launches: vec![launch] });
        Ok(roles)
    }

    fn backend(
        &self,
        name: &str,
        (backend, ports): (&Backend, &[u16]),
        values: &Values<'_>,
        cpus: &RoleCpus<'_>,
    ) -> Result<RoleLaunch, ContenderError> {
        let Backend { name: role, start, env, config, ready, .. } = backend;
        let cpus = match (&backend.cpus[..], backend.node) {
            ([], true) => cpus.server,
            ([], false) => cpus.backends,
            (own, _) => own,
        };
        let host = if backend.node { values.host } else { Ipv4Addr::LOCALHOST.into() };
        let mut launches = Vec::new();
        for (&port, instance) in ports.iter().zip(1..) {
            let run = values.home.join(format!("{role}-{instance}"));
            make_folder(&run).map_err(|error| ContenderError::new(&run, error))?;
            let name = match ports.len() {
                1 => format!("{name}'s backend {role}"),
                _ => format!("{name}'s backend {role} {instance}"),
            };
            let (run, instance) = (run.as_path(), Some(instance));
            // Without CPUs of its own it has those of the server.
            let cores = if cpus.is_empty() { values.cores } else { cpus.len() };
            let own = Values { host, port, run, instance, cores, ..*values };
            launches.push(self.launch(
                How { name, start, env, config, image: None },
                &own,
                cpus,
            )?);
        }
        Ok(RoleLaunch { name: role.clone(), ready: ready.clone(), launches })
    }

    fn launch(
        &self,
        how: How<'_>,
        values: &Values<'_>,
        cpus: &[u32],
    ) -> Result<Launch, ContenderError> {
        let at = |because: String| ContenderError::new(&self.dir, because);
        let unknown = |error: UnknownPlaceholder| at(error.to_string());
        let How { name, start, env: variables, config, image } = how;
        let mut command = values.fill_all(start).map_err(unknown)?;
        let mut env = BTreeMap::new();
        for (variable, value) in variables {
            env.insert(variable.clone(), values.fill(value).map_err(unknown)?);
        }
        let mut container = None;
        if let Some(image) = image {
            let engine = container_engine();
            let engine =
                engine.ok_or_else(|| at("neither podman nor docker is installed".into()))?;
            let own = container.insert(Container::new(engine));
            let options = &self.manifest.container_keys().options(&self.dir);
            let (words, run, env) = (command, values.run, &env);
            command = own.command(InContainer { image, words, run, cpus, env, options });
        }
        env.entry("PATH".into()).or_insert_with(search_path);
        for template in config {
            write_config(&self.dir.join(template), values)
                .map_err(|error| at(format!("{template}: {error}")))?;
        }
        let (dir, host, port) = (self.dir.clone(), values.host, values.port);
        let cpus = cpus.to_vec();
        let containment = Containment::Best;
        Ok(Launch { name, command, dir, env, host, port, cpus, containment, container })
    }
}

/// The templates of one process.
struct How<'a> {
    name: String,
    start: &'a [String],
    env: &'a BTreeMap<String, String>,
    config: &'a [String],
    /// Image of the container that it runs in.
    image: Option<&'a str>,
}

/// Creates a folder that is world-readable regardless of the umask, because some servers switch to
/// another user.
fn make_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o755))
}

/// Fills in a template: `a/nginx.conf.in` becomes `{run}/nginx.conf`. The result is world-readable
/// regardless of the umask, because some servers switch to another user.
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
    use crate::contenders::find_contenders::tests::{folder, manifest};
    use tempfile::TempDir;

    #[test]
    fn fills_in_all_placeholders_of_a_launch() {
        let more = "env = { WHERE = \"{dir}\" }\nconfig = [\"n.conf.in\"]";
        let peers = folder(&[
            ("x/manifest.toml", &manifest("x", more)),
            ("x/n.conf.in", "server { listen {port}; pid {run}/pid; }"),
        ]);
        let contender = Contender::read(&peers.path().join("x/manifest.toml")).unwrap();
        let run = TempDir::new().unwrap();
        let regatta = Path::new("/bin/regatta");
        let (dir, run) = (contender.dir.as_path(), run.path());
        let values = Values { dir, regatta, ..Values::at(run) };
        let cpus = RoleCpus { server: &[0, 1], backends: &[] };
        let roles = contender.launches("x", &values, &cpus).unwrap();
        let [RoleLaunch { name, launches, .. }] = &roles[..] else { panic!("{roles:?}") };
        let launch = &launches[0];
        assert_eq!((name.as_str(), launch.name.as_str()), ("server", "x"));
        assert_eq!(launch.command, ["sh", "-c", "serve 4001 2"]);
        assert_eq!(Path::new(&launch.env["WHERE"]), dir);
        assert_eq!((launch.port, &launch.cpus[..]), (4001, &[0, 1][..]));
        let config = fs::read_to_string(run.join("n.conf")).unwrap();
        assert_eq!(config, format!("server {{ listen 4001; pid {}/pid; }}", run.display()));
    }

    #[test]
    fn an_unknown_placeholder_stops_the_launch() {
        let text = manifest("x", "").replace("{cores}", "{threads}");
        let peers = folder(&[("x/manifest.toml", &text)]);
        let contender = Contender::read(&peers.path().join("x/manifest.toml")).unwrap();
        let values = Values::at(peers.path());
        let cpus = RoleCpus::default();
        let error = contender.launches("x", &values, &cpus);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("unknown placeholder {threads}"), "{error}");
    }

    #[test]
    fn starts_backends_before_the_server_each_with_its_own_folder_and_name() {
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
            dir: &contender.dir,
            regatta: Path::new("/bin/regatta"),
            backends: &ports,
            ..Values::at(run.path())
        };
        let cpus = RoleCpus { server: &[0, 1], backends: &[2] };
        let roles = contender.launches("twin", &values, &cpus).unwrap();
        let names: Vec<Vec<&str>> = roles
            .iter()
            .map(|role| role.launches.iter().map(|launch| launch.name.as_str()).collect())
            .collect();
        let app = vec!["twin's backend app 1", "twin's backend app 2"];
        assert_eq!(names, [app, vec!["twin's backend db"], vec!["twin"]]);
        assert_eq!(roles[0].ready, regatta_host::Ready::Path("/up".into()));
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
}
