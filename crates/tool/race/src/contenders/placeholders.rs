//! The placeholders of a manifest, such as `{port}`, which are filled in at each start.

use crate::contenders::run_files;
use std::{net::IpAddr, path::Path};

/// The values of the placeholders for one start.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    /// `{host}`: the address that the contender must listen on: 127.0.0.1, unless the load comes from another
    /// machine.
    pub host: IpAddr,
    /// `{port}`: the port that the contender must listen on.
    pub port: u16,
    /// `{workload}`: the name of the workload to serve.
    pub workload: &'a str,
    /// `{cores}`: the number of its CPUs.
    pub cores: usize,
    /// `{churn}`: `true` if every request has a connection of its own, otherwise `false`.
    pub churn: bool,
    /// `{request_bytes}`: the length of every request, for a contender with the adapter `canned`.
    /// `{reply}` is then the file in `home` that holds the reply to send.
    pub request_bytes: Option<usize>,
    /// `{dir}`: the folder of its manifest, which is also its working directory.
    pub dir: &'a Path,
    /// `{run}`: a folder of this process, for filled-in configuration, sockets and pid files.
    pub run: &'a Path,
    /// `{regatta}`: this program.
    pub regatta: &'a Path,
    /// The folder of the whole start: `run`, except for backends. It holds `{file}`, the file that the
    /// workload `hash` reads, and `{reply}`.
    pub home: &'a Path,
    /// `{instance}`: the number of a process of a backend, from 1.
    pub instance: Option<u32>,
    /// The ports of its backends. `{backends}` are the addresses of all of them, `{backend.NAME}` those
    /// of one backend and `{backend.NAME.ports}` its ports, joined by commas. An argument, or a line
    /// of a template, with `{backend.NAME.address}` or `{backend.NAME.port}` is repeated for each
    /// process of that backend. `{backend.NAME.1.address}` and `{backend.NAME.1.port}` belong to its
    /// first process.
    pub backends: &'a [BackendPorts],
}

/// The ports on 127.0.0.1 of one backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendPorts {
    /// Its name.
    pub name: String,
    /// The port of each of its processes.
    pub ports: Vec<u16>,
}

/// An unknown placeholder.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown placeholder {{{name}}} in {text:?}; expected {{host}}, {{port}}, {{workload}}, {{cores}}, \
     {{churn}}, {{dir}}, {{run}}, {{file}} or {{regatta}}; with the adapter canned also \
     {{request_bytes}} and {{reply}}; in a backend also {{instance}}; with backends also \
     {{backends}}, {{backend.NAME}}, {{backend.NAME.ports}}, {{backend.NAME.address}}, \
     {{backend.NAME.port}}, and for a single process, numbered from 1, \
     {{backend.NAME.1.address}} and {{backend.NAME.1.port}}"
)]
pub struct UnknownPlaceholder {
    name: String,
    text: String,
}

impl Values<'_> {
    /// Fills in the arguments of a command. Repeats an argument with `{backend.NAME.address}` or
    /// `{backend.NAME.port}` for each process of that backend.
    pub fn fill_all(&self, arguments: &[String]) -> Result<Vec<String>, UnknownPlaceholder> {
        let mut filled = Vec::new();
        for argument in arguments {
            match self.repeated(argument) {
                Some(texts) => {
                    for text in texts {
                        filled.push(self.fill(&text)?);
                    }
                }
                None => filled.push(self.fill(argument)?),
            }
        }
        Ok(filled)
    }

    /// Fills in all placeholders of `text`. Only a lower-case word in braces is a placeholder, so that
    /// an argument may contain JSON.
    pub fn fill(&self, text: &str) -> Result<String, UnknownPlaceholder> {
        self.replace(text, |name| {
            Err(UnknownPlaceholder { name: name.to_string(), text: text.to_string() })
        })
    }

    /// Fills in the known placeholders of a configuration file and leaves all other braces unchanged.
    /// Repeats a line with `{backend.NAME.address}` or `{backend.NAME.port}` for each process of that
    /// backend.
    pub fn fill_known(&self, text: &str) -> String {
        let mut repeated = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            match self.repeated(line) {
                Some(lines) => lines.iter().for_each(|line| repeated.push_str(line)),
                None => repeated.push_str(line),
            }
        }
        let text = &repeated;
        let keep = |name: &str| Ok::<_, std::convert::Infallible>(format!("{{{name}}}"));
        match self.replace(text, keep) {
            Ok(filled) => filled,
            Err(never) => match never {},
        }
    }

    fn replace<E>(
        &self,
        text: &str,
        unknown: impl Fn(&str) -> Result<String, E>,
    ) -> Result<String, E> {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let (before, braced) = rest.split_at(open);
            filled.push_str(before);
            match word_in_braces(braced) {
                Some(name) => {
                    filled.push_str(&self.value(name).map_or_else(|| unknown(name), Ok)?);
                    rest = &braced[name.len() + 2..];
                }
                None => {
                    filled.push('{');
                    rest = &braced[1..];
                }
            }
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn value(&self, name: &str) -> Option<String> {
        match name {
            "host" => Some(self.host.to_string()),
            "port" => Some(self.port.to_string()),
            "workload" => Some(self.workload.to_string()),
            "cores" => Some(self.cores.to_string()),
            "churn" => Some(self.churn.to_string()),
            "request_bytes" => self.request_bytes.map(|bytes| bytes.to_string()),
            "reply" if self.request_bytes.is_some() => {
                Some(run_files::canned_reply(self.home).display().to_string())
            }
            "instance" => self.instance.map(|nth| nth.to_string()),
            "dir" => Some(self.dir.display().to_string()),
            "run" => Some(self.run.display().to_string()),
            "file" => Some(run_files::hashed(self.home).display().to_string()),
            "regatta" => Some(self.regatta.display().to_string()),
            "backends" if !self.backends.is_empty() => {
                Some(joined(self.backends.iter().flat_map(|one| &one.ports), address))
            }
            name => self.of_backend(name.strip_prefix("backend.")?),
        }
    }

    /// Returns the value of `NAME`, `NAME.ports`, `NAME.1.address` or `NAME.1.port`. Names have no dots.
    fn of_backend(&self, path: &str) -> Option<String> {
        let path: Vec<&str> = path.split('.').collect();
        let backend = self.backends.iter().find(|one| one.name == path[0])?;
        let nth = |number: &str| backend.ports.get(number.parse::<usize>().ok()?.checked_sub(1)?);
        match path[1..] {
            [] => Some(joined(backend.ports.iter(), address)),
            ["ports"] => Some(joined(backend.ports.iter(), u16::to_string)),
            [number, "address"] => nth(number).map(address),
            [number, "port"] => nth(number).map(u16::to_string),
            _ => None,
        }
    }

    /// If `text` contains `{backend.NAME.address}` or `{backend.NAME.port}`, returns it once for each
    /// process of that backend, with these filled in.
    fn repeated(&self, text: &str) -> Option<Vec<String>> {
        self.backends.iter().find_map(|backend| {
            let one_port = format!("{{backend.{}.port}}", backend.name);
            let one_address = format!("{{backend.{}.address}}", backend.name);
            let is_named = text.contains(&one_port) || text.contains(&one_address);
            let fill = |port: &u16| {
                text.replace(&one_port, &port.to_string()).replace(&one_address, &address(port))
            };
            is_named.then(|| backend.ports.iter().map(fill).collect())
        })
    }
}

fn address(port: &u16) -> String {
    format!("127.0.0.1:{port}")
}

fn joined<'a>(ports: impl Iterator<Item = &'a u16>, text: impl Fn(&u16) -> String) -> String {
    ports.map(text).collect::<Vec<_>>().join(",")
}

/// Returns `port` for `{port}…`, and `backend.db-1.ports` for `{backend.db-1.ports}…`.
fn word_in_braces(text: &str) -> Option<&str> {
    let (word, _) = text.strip_prefix('{')?.split_once('}')?;
    let plain = |b: u8| b.is_ascii_lowercase() || b == b'_';
    let of_backend = |b: u8| plain(b) || b.is_ascii_digit() || b == b'-' || b == b'.';
    let is_word = match word.starts_with("backend.") {
        true => word.bytes().all(of_backend),
        false => !word.is_empty() && word.bytes().all(plain),
    };
    is_word.then_some(word)
}

#[cfg(test)]
impl<'a> Values<'a> {
    /// For tests: the workload `double` on port 4001 and two cores, with every path at `path`.
    pub(crate) fn at(path: &'a Path) -> Self {
        Values {
            host: std::net::Ipv4Addr::LOCALHOST.into(),
            port: 4001,
            workload: "double",
            cores: 2,
            churn: false,
            request_bytes: None,
            dir: path,
            run: path,
            home: path,
            regatta: path,
            instance: None,
            backends: &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(backends: &[BackendPorts]) -> Values<'_> {
        let (dir, run, regatta) =
            (Path::new("/p/node"), Path::new("/tmp/r"), Path::new("/b/regatta"));
        Values { dir, regatta, backends, ..Values::at(run) }
    }

    fn backends() -> [BackendPorts; 2] {
        [("app-1", &[7, 8][..]), ("db", &[9])]
            .map(|(name, ports)| BackendPorts { name: name.into(), ports: ports.to_vec() })
    }

    #[test]
    fn fills_in_the_placeholders_of_a_start() {
        let filled = values(&[]).fill("{regatta} {dir} {run} {file} :{port} -N{cores}").unwrap();
        assert_eq!(filled, "/b/regatta /p/node /tmp/r /tmp/r/hash.bin :4001 -N2");
    }

    #[test]
    fn fills_in_addresses_and_ports_of_backends() {
        let backends = backends();
        let values = values(&backends);
        let filled = values.fill("{backends} {backend.app-1} {backend.app-1.ports}").unwrap();
        let app = "127.0.0.1:7,127.0.0.1:8";
        assert_eq!(filled, format!("{app},127.0.0.1:9 {app} 7,8"));
        for wrong in ["{backend.web}", "{backend.app-1.host}", "{instance}"] {
            assert!(values.fill(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_argument_or_line_that_names_one_process_is_repeated_for_each() {
        let backends = backends();
        let values = values(&backends);
        let arguments = ["-p{port}", "--to={backend.app-1.address}", "{backend.db.port}"];
        let filled = values.fill_all(&arguments.map(String::from)).unwrap();
        assert_eq!(filled, ["-p4001", "--to=127.0.0.1:7", "--to=127.0.0.1:8", "9"]);
        let config = "up {\n  server {backend.app-1.address};\n}\n# {backend.web.port} {x}";
        let expected = "up {\n  server 127.0.0.1:7;\n  server 127.0.0.1:8;\n}\n\
                        # {backend.web.port} {x}";
        assert_eq!(values.fill_known(config), expected);
    }

    #[test]
    fn one_process_of_a_backend_is_named_by_its_number() {
        let backends = backends();
        let values = values(&backends);
        let filled = values.fill("{backend.app-1.2.address} {backend.app-1.1.port}").unwrap();
        assert_eq!(filled, "127.0.0.1:8 7");
        let config = "a: {backend.app-1.1.address}\nb: {backend.app-1.2.address}\n";
        assert_eq!(values.fill_known(config), "a: 127.0.0.1:7\nb: 127.0.0.1:8\n");
        for wrong in ["app-1.0.port", "app-1.3.port", "app-1.x.port", "app-1.1", "app-1.1.port.x"] {
            let error = values.fill(&format!("{{backend.{wrong}}}")).unwrap_err().to_string();
            assert!(error.contains("{backend.NAME.1.port}"), "{error}");
        }
    }

    #[test]
    fn backends_share_the_files_of_their_start() {
        let own = Path::new("/tmp/r/app-1");
        let values = Values { run: own, instance: Some(1), ..values(&[]) };
        assert_eq!(
            values.fill("{run} {file} {instance}").unwrap(),
            "/tmp/r/app-1 /tmp/r/hash.bin 1"
        );
    }

    #[test]
    fn an_unknown_placeholder_is_an_error_that_lists_the_known_ones() {
        let error = values(&[]).fill("--listen {prot}").unwrap_err().to_string();
        assert!(error.starts_with("unknown placeholder {prot} in \"--listen {prot}\""), "{error}");
        assert!(error.contains("{backend.NAME.port}"), "{error}");
        assert!(values(&[]).fill("{backends}").is_err(), "it has no backends");
        assert!(values(&[]).fill("{reply}").is_err(), "it has no canned reply");
    }

    #[test]
    fn a_canned_contender_gets_the_request_length_and_the_reply_file() {
        let values = Values { request_bytes: Some(40), churn: true, ..values(&[]) };
        let filled = values.fill("{request_bytes} {reply} {churn}").unwrap();
        assert_eq!(filled, "40 /tmp/r/reply true");
    }

    #[test]
    fn leaves_other_braces_unchanged() {
        let json = r#"{"port":{port}} {} {A} {"#;
        assert_eq!(values(&[]).fill(json).unwrap(), r#"{"port":4001} {} {A} {"#);
        let config = "server { listen {port}; log {user}; }";
        assert_eq!(values(&[]).fill_known(config), "server { listen 4001; log {user}; }");
    }
}
