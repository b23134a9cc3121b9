//! Protocols that a contender serves its workloads over, besides the one that a workload usually has.

use regatta_script::dialects::versions;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a contender is started to speak another protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Over {
    /// Arguments that follow those of `start`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Files that are counted as its lines of code, in place of `source`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Vec<String>>,
}

/// Checks the names of the protocols of the contender `name`. The error is a sentence.
pub(crate) fn check(name: &str, over: &BTreeMap<String, Over>) -> Result<(), String> {
    let is_known = |name: &String| versions().any(|version| version.protocol == *name);
    let Some(wrong) = over.keys().find(|name| !is_known(name)) else { return Ok(()) };
    let known: Vec<&str> = versions().map(|version| version.protocol).collect();
    Err(format!("`over` of {name} names {wrong:?}; expected {}", known.join(" or ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contenders::{find_contenders::Contender, manifest::Manifest};
    use regatta_host::Ready;

    fn manifest(over: &str) -> Result<Manifest, String> {
        Manifest::parse(&format!(
            "name = 'a'\nabout = 'a'\nworkloads = ['hello']\nstart = ['a', '{{port}}']\nready = '/'\n\
             source = ['one']\nover = {{ {over} }}\n"
        ))
    }

    fn second() -> &'static str {
        versions().next().unwrap().protocol
    }

    #[test]
    fn a_contender_is_started_with_the_arguments_of_the_protocol() {
        let how = format!("{} = {{ args = ['--second'], source = ['two'] }}", second());
        let manifest = manifest(&how).unwrap();
        let contender = Contender { manifest, dir: Default::default() };
        let Contender { manifest, .. } = contender.started_over(Some(second()));
        assert_eq!(manifest.start, ["a", "{port}", "--second"]);
        assert_eq!((&manifest.source[..], manifest.ready), (&["two".to_owned()][..], Ready::Tcp));
        assert_eq!(contender.started_over(None), contender);
    }

    #[test]
    fn a_manifest_can_be_stored_and_read_again() {
        let manifest = manifest(&format!("{} = {{}}", second())).unwrap();
        let text = toml::to_string(&manifest).unwrap();
        assert_eq!(Manifest::parse(&text).unwrap(), manifest);
    }

    #[test]
    fn an_unknown_protocol_is_an_error_that_names_the_known_ones() {
        let error = manifest("gopher = {}").unwrap_err();
        assert!(error.contains("\"gopher\"") && error.contains(second()), "{error}");
    }
}
