//! The file of machines: names for `--on` and `--server`, each with how to reach it. There is one for each user.

use crate::options::values::host;
use anyhow::{Context, anyhow};
use regatta_fleet::{Host, Ssh};
use std::{
    collections::BTreeMap,
    env, fs, io,
    net::IpAddr,
    path::{Path, PathBuf},
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The environment variable with the path of the file.
const VARIABLE: &str = "REGATTA_MACHINES";
/// Where the file is otherwise, below the folder for configurations.
const DEFAULT: &str = "regatta/machines.toml";
/// The keys of a machine.
const KEYS: &str = "ssh, options, program, address";

/// The machines of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Machines(BTreeMap<String, Named>);

/// A machine of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    host: Host,
    /// The address at which a load reaches servers there.
    address: Option<IpAddr>,
}

/// What is wrong in a file, and at which offset.
type WrongAt = (usize, String);

impl Machines {
    /// Reads the file that `REGATTA_MACHINES` names, or `regatta/machines.toml` in `$XDG_CONFIG_HOME` or `~/.config`,
    /// which may be absent.
    ///
    /// # Errors
    /// With the path, the line and the key of what is wrong.
    pub fn read() -> anyhow::Result<Machines> {
        if let Some(path) = env::var_os(VARIABLE) {
            let path = PathBuf::from(path);
            let text = fs::read_to_string(&path);
            let text = text.with_context(|| format!("cannot read {} ({VARIABLE})", path.display()));
            return Machines::parse(&text?, &path);
        }
        let folder =
            env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".config"));
        let Some(path) = folder.or_else(home).map(|folder| folder.join(DEFAULT)) else {
            return Ok(Machines::default());
        };
        match fs::read_to_string(&path) {
            Ok(text) => Machines::parse(&text, &path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Machines::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    fn parse(text: &str, path: &Path) -> anyhow::Result<Machines> {
        let at = |(offset, what): WrongAt| {
            let line = text[..offset].matches('\n').count() + 1;
            anyhow!("{}, line {line}: {what}", path.display())
        };
        let table = DeTable::parse(text).map_err(|error| {
            at((error.span().map_or(0, |span| span.start), error.message().to_owned()))
        })?;
        let mut machines = BTreeMap::new();
        for (name, value) in table.get_ref() {
            let (start, name) = (name.span().start, name.get_ref());
            let named = named(name, start, value.get_ref()).map_err(at)?;
            machines.insert(name.clone().into_owned(), named);
        }
        Ok(Machines(machines))
    }

    /// The command in the environment variable `REGATTA_SSH`, or `ssh`, which knows these machines.
    ///
    /// # Errors
    /// If the variable has no command.
    pub fn ssh(&self) -> anyhow::Result<Ssh> {
        let ssh = Ssh::new(&env::var("REGATTA_SSH").unwrap_or_else(|_| "ssh".into()));
        let hosts = self.0.iter().map(|(name, named)| (name.clone(), named.host.clone()));
        Ok(ssh.context("REGATTA_SSH")?.with_hosts(hosts.collect()))
    }

    /// The address at which a load reaches servers on a machine, if the file has it.
    pub fn address(&self, name: &str) -> Option<IpAddr> {
        self.0.get(name).and_then(|named| named.address)
    }
}

/// Reads a machine, whose name is at this offset.
fn named(name: &str, start: usize, value: &DeValue<'_>) -> Result<Named, WrongAt> {
    if name.contains(',') || host(name).is_err() {
        let what = format!("{name:?} cannot be a name of --on: expected a word, e.g. gen1");
        return Err((start, what));
    }
    let DeValue::Table(table) = value else {
        let what = value.type_str();
        return Err((
            start,
            format!("{name}: expected a table [{name}] with some of {KEYS}, got one {what}"),
        ));
    };
    let mut named = Named {
        host: Host { destination: name.to_owned(), options: Vec::new(), program: None },
        address: None,
    };
    for (key, value) in table {
        let wrong =
            |what: String| (value.span().start, format!("{name}.{}: {what}", key.get_ref()));
        match key.get_ref().as_ref() {
            "ssh" => named.host.destination = host(text(value).map_err(wrong)?).map_err(wrong)?,
            "options" => named.host.options = options(value).map_err(wrong)?,
            "program" => {
                named.host.program = Some(program(text(value).map_err(wrong)?).map_err(wrong)?)
            }
            "address" => named.address = Some(address(text(value).map_err(wrong)?).map_err(wrong)?),
            _ => {
                let what =
                    format!("{name}: there is no key {}; expected one of: {KEYS}", key.get_ref());
                return Err((key.span().start, what));
            }
        }
    }
    Ok(named)
}

fn text<'a>(value: &'a Spanned<DeValue<'_>>) -> Result<&'a str, String> {
    let what = value.get_ref();
    what.as_str().ok_or_else(|| format!("expected a string, got one {}", what.type_str()))
}

fn options(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, String> {
    let form = || "expected a list of options of ssh, e.g. [\"-p\", \"2222\"]".to_owned();
    let list = value.get_ref().as_array().ok_or_else(form)?;
    let words = list.iter().map(|word| word.get_ref().as_str().map(str::to_owned));
    let words = words.collect::<Option<Vec<String>>>().ok_or_else(form)?;
    // A word without a hyphen would be the destination.
    let is_good = words.first().is_none_or(|first| first.starts_with('-'))
        && !words.iter().any(|word| word.contains('\0'));
    is_good.then_some(words).ok_or_else(form)
}

fn program(path: &str) -> Result<String, String> {
    let is_good = !path.is_empty() && !path.chars().any(char::is_control);
    is_good.then(|| path.to_owned()).ok_or_else(|| {
        format!(
            "expected the path of regatta there, e.g. /opt/regatta or ~/bin/regatta; got {path:?}"
        )
    })
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("expected an IP address, e.g. 10.1.0.5; got {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> anyhow::Result<Machines> {
        Machines::parse(text, Path::new("m.toml"))
    }

    #[test]
    fn a_machine_has_how_to_reach_it() {
        let text = "[gen1]\nssh = \"bench@10.0.0.7\"\noptions = [\"-p\", \"2222\"]\n\
                    program = \"~/bin/regatta\"\naddress = \"10.1.0.7\"\n[sut]\n";
        let machines = parse(text).unwrap();
        let host = Host {
            destination: "bench@10.0.0.7".into(),
            options: vec!["-p".into(), "2222".into()],
            program: Some("~/bin/regatta".into()),
        };
        assert_eq!(machines.0["gen1"].host, host);
        assert_eq!(machines.address("gen1"), Some("10.1.0.7".parse().unwrap()));
        assert_eq!(machines.0["sut"].host.destination, "sut", "the name, unless there is another");
        assert_eq!((machines.address("sut"), machines.address("else")), (None, None));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_key() {
        for (text, expected) in [
            ("\n[gen1", "line 2: "),
            ("gen1 = \"x\"", "line 1: gen1: expected a table [gen1] with some of ssh, "),
            ("[a]\n\n[\"b c\"]", "line 3: \"b c\" cannot be a name of --on"),
            ("[\"a,b\"]", "line 1: \"a,b\" cannot be a name of --on"),
            ("[a]\nssh = 5", "line 2: a.ssh: expected a string, got one integer"),
            ("[a]\nssh = \"-oProxyCommand=x\"", "line 2: a.ssh: expected a destination of ssh"),
            ("[a]\noptions = \"-p 22\"", "line 2: a.options: expected a list of options"),
            ("[a]\noptions = [1]", "line 2: a.options: expected a list of options"),
            ("[a]\noptions = [\"host\"]", "line 2: a.options: expected a list of options"),
            ("[a]\nprogram = \"\"", "line 2: a.program: expected the path of regatta there"),
            ("[a]\naddress = \"sut\"", "line 2: a.address: expected an IP address"),
            (
                "[a]\nssh = \"b\"\nadress = \"x\"",
                "line 3: a: there is no key adress; expected one of: ssh, options, program, address",
            ),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("m.toml, {expected}")), "{text:?}: {error}");
        }
    }
}
