//! What stands behind a contender: `[[backend]]` in its manifest. Parsing and checks, no file access.

use regatta_host::Ready;
use regatta_record::RoleUsage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One kind of process that is started before a contender, for it to talk to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backend {
    /// Name of its role: lower-case letters, digits, `-` and `_`.
    pub name: String,
    /// Program and arguments. Of the placeholders, `{port}` is the process's own, `{run}` a folder of
    /// its own, and `{instance}` its number, from 1.
    pub start: Vec<String>,
    /// What shows that a process of it is ready.
    #[serde(default)]
    pub ready: Ready,
    /// How many processes of it there are, at most [`Backend::MOST`].
    #[serde(default = "one")]
    pub count: u32,
    /// The CPUs of its processes. Absent: those that are neither the contender's nor the load's, or
    /// the contender's where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// Environment variables; placeholders are filled in.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Templates of configuration files, as those of a contender.
    #[serde(default)]
    pub config: Vec<String>,
}

fn one() -> u32 {
    1
}

impl Backend {
    /// Most processes of one kind.
    pub const MOST: u32 = 64;

    /// Whether the backends of `contender` can be; the error is a sentence.
    pub(crate) fn check_all(contender: &str, backends: &[Backend]) -> Result<(), String> {
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
                "the name of a backend has lower-case letters, digits, '-' and '_', and is not \
                 {:?}: {name:?}",
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
                "nothing tells the backend {name} of {contender} its port: put {{port}} into start, \
                 env or a config template"
            ));
        }
        if let Some(wrong) = config.iter().find(|file| !file.ends_with(".in")) {
            return Err(format!(
                "a template of the backend {name} of {contender} does not end in .in: {wrong:?}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::manifest::Manifest;

    fn parse(backends: &str) -> Result<Manifest, String> {
        Manifest::parse(&format!(
            "name = 'front'\nabout = 'x'\nworkloads = ['hello']\n\
             start = ['front', '{{port}}', '{{backends}}']\n{backends}"
        ))
    }

    #[test]
    fn a_backend_needs_a_name_and_a_start() {
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
    fn mistakes_are_told_with_what_was_expected() {
        let app = "[[backend]]\nname = 'app'\nstart = ['app', '{port}']\n";
        for (text, expected) in [
            (format!("{app}{app}"), "two backends of front are named app"),
            (app.replace("'app'", "'App'"), "lower-case letters"),
            (app.replace("name = 'app'", "name = 'server'"), "is not \"server\""),
            (app.replace("['app', '{port}']", "[]"), "has an empty start command"),
            (app.replace("{port}", "80"), "nothing tells the backend app of front its port"),
            (format!("{app}count = 0\n"), "from 1 to 64"),
            (format!("{app}count = 65\n"), "from 1 to 64"),
            (format!("{app}config = ['a.conf']\n"), "does not end in .in"),
            (format!("{app}readi = 'tcp'\n"), "unknown field `readi`"),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.contains(expected), "{error:?} should tell {expected:?}");
        }
    }
}
