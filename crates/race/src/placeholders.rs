//! `{port}` and its like in a manifest, filled in at each start.

use crate::{canned_reply, hash_file};
use std::path::Path;

/// What the placeholders of one start stand for.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    /// `{port}`: where the contender is to listen on 127.0.0.1.
    pub port: u16,
    /// `{workload}`: what it is to serve, by name.
    pub workload: &'a str,
    /// `{cores}`: how many CPUs it has.
    pub cores: usize,
    /// `{churn}`: `true` where every request comes on a connection of its own, otherwise `false`.
    pub churn: bool,
    /// `{request_bytes}`: the length of every request, where the contender is given one.
    /// `{reply}` is then the file in `run` with the reply that it sends.
    pub request_bytes: Option<usize>,
    /// `{dir}`: the folder of its manifest, which is also its working directory.
    pub dir: &'a Path,
    /// `{run}`: an empty folder of this start, for filled-in configuration, sockets and pid files.
    /// `{file}` is the file in it that the workload `hash` reads.
    pub run: &'a Path,
    /// `{regatta}`: this program.
    pub regatta: &'a Path,
    /// `{nodes}`: addresses of the processes started beside it, joined by commas.
    pub nodes: &'a [String],
}

/// A placeholder that stands for nothing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown placeholder {{{name}}} in {text:?}; there are {{port}}, {{workload}}, {{cores}}, \
     {{churn}}, {{dir}}, {{run}}, {{file}}, {{regatta}}, {{request_bytes}} and {{reply}} with the \
     adapter canned, and {{nodes}} where processes are started beside it"
)]
pub struct UnknownPlaceholder {
    name: String,
    text: String,
}

impl Values<'_> {
    /// Fills in all placeholders of `text`. Only a lower-case word in braces is one, so that JSON
    /// may stand in an argument.
    pub fn fill(&self, text: &str) -> Result<String, UnknownPlaceholder> {
        self.replace(text, |name| {
            Err(UnknownPlaceholder { name: name.to_string(), text: text.to_string() })
        })
    }

    /// Fills in the known placeholders of a configuration file, which may have braces of its own.
    pub fn fill_known(&self, text: &str) -> String {
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
            "port" => Some(self.port.to_string()),
            "workload" => Some(self.workload.to_string()),
            "cores" => Some(self.cores.to_string()),
            "churn" => Some(self.churn.to_string()),
            "request_bytes" => self.request_bytes.map(|bytes| bytes.to_string()),
            "reply" if self.request_bytes.is_some() => {
                Some(canned_reply::path(self.run).display().to_string())
            }
            "dir" => Some(self.dir.display().to_string()),
            "run" => Some(self.run.display().to_string()),
            "file" => Some(hash_file::path(self.run).display().to_string()),
            "regatta" => Some(self.regatta.display().to_string()),
            "nodes" if !self.nodes.is_empty() => Some(self.nodes.join(",")),
            _ => None,
        }
    }
}

/// `port` of `{port}…`.
fn word_in_braces(text: &str) -> Option<&str> {
    let (word, _) = text.strip_prefix('{')?.split_once('}')?;
    let is_word = !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    is_word.then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(nodes: &[String]) -> Values<'_> {
        let (dir, run, regatta) =
            (Path::new("/p/node"), Path::new("/tmp/r"), Path::new("/b/regatta"));
        let request_bytes = None;
        Values {
            port: 4001,
            workload: "double",
            cores: 2,
            churn: false,
            request_bytes,
            dir,
            run,
            regatta,
            nodes,
        }
    }

    #[test]
    fn every_placeholder_has_its_value() {
        let nodes = ["127.0.0.1:1".to_string(), "127.0.0.1:2".to_string()];
        let filled =
            values(&nodes).fill("{regatta} {dir} {run} {file} :{port} -N{cores} {nodes}").unwrap();
        let files = "/b/regatta /p/node /tmp/r /tmp/r/hash.bin";
        assert_eq!(filled, format!("{files} :4001 -N2 127.0.0.1:1,127.0.0.1:2"));
    }

    #[test]
    fn an_unknown_one_is_an_error_that_lists_the_known() {
        let error = values(&[]).fill("--listen {prot}").unwrap_err().to_string();
        assert!(error.starts_with("unknown placeholder {prot} in \"--listen {prot}\""), "{error}");
        assert!(values(&[]).fill("{nodes}").is_err(), "nothing was started beside it");
        assert!(values(&[]).fill("{reply}").is_err(), "it is given no reply");
    }

    #[test]
    fn one_that_is_given_a_reply_learns_the_length_of_a_request() {
        let values = Values { request_bytes: Some(40), churn: true, ..values(&[]) };
        let filled = values.fill("{request_bytes} {reply} {churn}").unwrap();
        assert_eq!(filled, "40 /tmp/r/reply true");
    }

    #[test]
    fn other_braces_stay() {
        let json = r#"{"port":{port}} {} {A} {"#;
        assert_eq!(values(&[]).fill(json).unwrap(), r#"{"port":4001} {} {A} {"#);
        let config = "server { listen {port}; log {user}; }";
        assert_eq!(values(&[]).fill_known(config), "server { listen 4001; log {user}; }");
    }
}
