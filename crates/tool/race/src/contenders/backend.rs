//! Backends of a contender: `[[backend]]` in its manifest. Parsing and checks, no file access.

use regatta_host::Ready;
use regatta_record::RoleUsage;
use regatta_script::Workload;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A kind of process that is started before a contender and that the contender connects to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backend {
    /// Name of its role: lower-case letters, digits, `-` and `_`.
    pub name: String,
    /// Program and arguments. The placeholders `{port}` and `{run}` are the port and the folder of the
    /// process itself; `{instance}` is its number, from 1.
    pub start: Vec<String>,
    /// The sign that a process of it is ready.
    #[serde(default)]
    pub ready: Ready,
    /// Number of its processes, at most 64. Absent: 1.
    #[serde(default = "one")]
    pub count: u32,
    /// Its processes are further nodes of the contender: the load spreads its connections over the contender and all
    /// of them. They run on the CPUs of the contender, and get its `{host}`. Only for hubs, in races in rounds: a
    /// duel stops contenders for seconds, and nodes would lose their connections to each other.
    #[serde(default, skip_serializing_if = "is_false")]
    pub node: bool,
    /// The CPUs of its processes. Absent: the CPUs that neither the contender nor the load uses; if
    /// there are none, those of the contender.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// Environment variables; placeholders are filled in.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Templates of configuration files, as in the manifest of a contender.
    #[serde(default)]
    pub config: Vec<String>,
}

fn one() -> u32 {
    1
}

fn is_false(is: &bool) -> bool {
    !is
}

impl Backend {
    /// Maximum number of processes of one backend.
    pub const MOST: u32 = 64;

    /// Checks the backends of `contender`. The error is a sentence.
    pub(crate) fn check_all(
        contender: &str,
        workloads: &[String],
        backends: &[Backend],
    ) -> Result<(), String> {
        let is_hub = |name: &String| Workload::parse(name).is_some_and(|one| one.is_pushed());
        if let Some(node) = backends.iter().find(|backend| backend.node)
            && let Some(other) = workloads.iter().find(|name| !is_hub(name))
        {
            return Err(format!(
                "the backend {} of {contender} is a node, and {contender} serves {other}: only hubs have nodes",
                node.name
            ));
        }
        for (nth, backend) in backends.iter().enumerate() {
            let name = &backend.name;
            if backends[..nth].iter().any(|other| other.name == *name) {
                return Err(format!(
                    "two backends of {contender} are named {name}; give one a `count`, or rename it"
                ));
            }
            backend.check(contender)?;
        }
        Ok(())
    }

    fn check(&self, contender: &str) -> Result<(), String> {
        let Backend { name, start, count, env, config, .. } = self;
        let is_good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        if name.is_empty() || !name.chars().all(is_good) || name == RoleUsage::SERVER {
            return Err(format!(
                "the name of a backend must have only lower-case letters, digits, '-' and '_', and \
                 must not be {:?}; it is {name:?}",
                RoleUsage::SERVER
            ));
        }
        if start.first().is_none_or(String::is_empty) {
            return Err(format!("the backend {name} of {contender} has an empty start command"));
        }
        if !(1..=Backend::MOST).contains(count) {
            return Err(format!(
                "the backend {name} of {contender} has a `count` of {count}; it may be from 1 to {}",
                Backend::MOST
            ));
        }
        let has_port = |text: &String| text.contains("{port}");
        if !start.iter().chain(env.values()).any(has_port) && config.is_empty() {
            return Err(format!(
                "the backend {name} of {contender} is not given its port: write {{port}} where its \
                 start command, env or config template needs the port"
            ));
        }
        if let Some(wrong) = config.iter().find(|file| !file.ends_with(".in")) {
            return Err(format!(
                "the config template {wrong:?} of the backend {name} of {contender} must end in .in"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::contenders::manifest::Manifest;

    fn parse(backends: &str) -> Result<Manifest, String> {
        Manifest::parse(&format!(
            "name = 'front'\nabout = 'x'\nworkloads = ['hello']\n\
             start = ['front', '{{port}}', '{{backends}}']\n{backends}"
        ))
    }

    #[test]
    fn a_backend_needs_only_a_name_and_a_start() {
        let backends =
            parse("[[backend]]\nname = 'app'\nstart = ['app', '{port}']\n").unwrap().backends;
        assert_eq!((backends.len(), backends[0].count), (1, 1));
        assert!(backends[0].cpus.is_empty() && backends[0].config.is_empty());
    }

    #[test]
    fn a_manifest_with_backends_survives_being_stored() {
        let text = "env = { A = '1' }\n[[backend]]\nname = 'app'\nstart = ['app', '{port}']\n\
                    ready = '/up'\ncount = 2\ncpus = [3]\nenv = { B = '{instance}' }\n\
                    [[backend]]\nname = 'db'\nstart = ['db', '{port}']\n";
        let manifest = parse(text).unwrap();
        let stored = toml::to_string(&manifest).unwrap();
        assert_eq!(Manifest::parse(&stored).unwrap(), manifest, "{stored}");
    }

    #[test]
    fn errors_say_what_was_expected() {
        let app = "[[backend]]\nname = 'app'\nstart = ['app', '{port}']\n";
        for (text, expected) in [
            (format!("{app}{app}"), "two backends of front are named app"),
            (app.replace("'app'", "'App'"), "lower-case letters"),
            (app.replace("name = 'app'", "name = 'server'"), "must not be \"server\""),
            (app.replace("['app', '{port}']", "[]"), "has an empty start command"),
            (app.replace("{port}", "80"), "the backend app of front is not given its port"),
            (format!("{app}count = 0\n"), "from 1 to 64"),
            (format!("{app}count = 65\n"), "from 1 to 64"),
            (format!("{app}config = ['a.conf']\n"), "must end in .in"),
            (format!("{app}readi = 'tcp'\n"), "unknown field `readi`"),
            (format!("{app}node = true\n"), "front serves hello: only hubs have nodes"),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.contains(expected), "{error:?} should contain {expected:?}");
        }
    }
}
