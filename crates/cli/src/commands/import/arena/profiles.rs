//! HttpArena's profiles (`scripts/lib/profiles.sh`): the requests and expected replies of those that the load speaks,
//! and why the others are left out.

use super::{
    checkout::{Checkout, LeftOut},
    dataset,
};
use crate::commands::import::files::Generated;
use anyhow::{Context, bail};
use regatta_race::Contest;
use regatta_script::Workload;
use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

/// The profiles that are imported, in HttpArena's order.
const IMPORTED: [&str; 4] = ["baseline", "pipelined", "limited-conn", "json"];

const DATABASE: &str = "a database, which an imported contender does not have";
const OVER_TLS: &str = "TLS on another port, which races do not load";
const COMPOSE: &str = "a stack of several containers (compose)";
const HTTP2: &str = "HTTP/2, for which no workload is imported";
const ECHO: &str = "an echo over WebSocket, for which there is no workload";

/// Why other profiles are left out.
const LEFT_OUT: [(&str, &str); 33] = [
    ("8gbit", OVER_TLS),
    ("api-16", DATABASE),
    ("api-4", DATABASE),
    ("async", "delayed replies, whose delay is not checked"),
    ("async-db", DATABASE),
    ("baseline-h2", HTTP2),
    ("baseline-h2c", HTTP2),
    ("baseline-h3", "HTTP/3, which the load does not speak"),
    ("crud", DATABASE),
    ("echo-100k", OVER_TLS),
    ("echo-10k", OVER_TLS),
    ("echo-ws", ECHO),
    ("echo-ws-limited", ECHO),
    ("echo-ws-pipeline", ECHO),
    ("fortunes", DATABASE),
    ("gateway-64", COMPOSE),
    ("gateway-h3", COMPOSE),
    ("in-out", OVER_TLS),
    ("json-comp", "compressed replies, which the load does not decompress"),
    ("json-h2c", HTTP2),
    ("json-tls", OVER_TLS),
    ("latency-10k", "`baseline` at a rate: add `rate = 10000` to the load of its race"),
    ("latency-1m", "`baseline` at a rate: add `rate = 1000000` to the load of its race"),
    ("millionaire", "`baseline` at a rate: add `rate = 1000000` to the load of its race"),
    ("production-stack", COMPOSE),
    ("static", "files in several encodings, which are not checked"),
    ("static-h2", HTTP2),
    ("static-h3", "HTTP/3, which the load does not speak"),
    ("static-tls", OVER_TLS),
    ("stream-grpc", "gRPC, for which no workload is imported"),
    ("unary-grpc", "gRPC, for which no workload is imported"),
    ("unary-grpc-tls", "gRPC, for which no workload is imported"),
    ("upload", "bodies of up to 20 MB, which a program of HttpArena makes"),
];

/// A profile that is imported, with its workload.
#[derive(Debug)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// The `[[request]]` of its workload.
    requests: String,
}

/// The profiles that the user wants.
#[derive(Debug)]
pub struct Requested(Vec<&'static str>);

impl Requested {
    /// Parses their names. None are all.
    ///
    /// # Errors
    /// If one cannot be imported.
    pub fn parse(names: &[String]) -> anyhow::Result<Requested> {
        if let Some(name) = names.iter().find(|name| !IMPORTED.contains(&name.as_str())) {
            let known = IMPORTED.join(", ");
            bail!(
                "the profile {name:?} cannot be imported ({}); expected some of: {known}",
                why_not(name)
            );
        }
        let is_wanted = |name: &&str| names.is_empty() || names.iter().any(|wanted| wanted == name);
        Ok(Requested(IMPORTED.into_iter().filter(is_wanted).collect()))
    }

    /// Whether the user asks about a profile: without `--profiles`, about all.
    pub fn wants(&self, name: &str) -> bool {
        self.0.len() == IMPORTED.len() || self.0.contains(&name)
    }

    /// Whether a profile is one of those that are imported.
    pub fn is_known(&self, name: &str) -> bool {
        IMPORTED.contains(&name)
    }

    /// Returns those that can be imported from this checkout.
    pub fn usable(&self, checkout: &Checkout, left_out: &mut Vec<LeftOut>) -> Vec<Profile> {
        let mut usable = Vec::new();
        for name in &self.0 {
            let requests = match *name {
                "baseline" => Ok(baseline()),
                "pipelined" => Ok(PIPELINED.to_owned()),
                "limited-conn" => Ok(limited()),
                _ => checkout.dataset().and_then(|data| dataset::requests(&data)),
            };
            match requests {
                Ok(requests) => usable.push(Profile { name, requests }),
                Err(because) => left_out.push((format!("the profile {name}"), because)),
            }
        }
        usable
    }
}

/// Why a profile is left out.
pub fn why_not(name: &str) -> &'static str {
    let known = LEFT_OUT.iter().find(|(known, _)| *known == name);
    known.map_or("no profile that regatta knows", |(_, why)| why)
}

/// The name of a profile's workload.
pub fn workload_name(profile: &str) -> String {
    format!("arena-{profile}")
}

/// The path that answers once an entry with these profiles is ready.
pub fn ready(profiles: &[String]) -> &'static str {
    let has = |name: &str| profiles.iter().any(|profile| profile == name);
    match () {
        () if has("baseline") || has("limited-conn") => "/baseline11?a=1&b=1",
        () if has("pipelined") => "/pipeline",
        () => "/json/1?m=1",
    }
}

impl Profile {
    /// The path of its race.
    pub fn race_path(&self) -> PathBuf {
        Path::new("races").join(format!("{}.toml", workload_name(self.name)))
    }

    /// Returns its workload file and its race.
    ///
    /// # Errors
    /// Only if this program is wrong: a file is not valid.
    pub fn files(&self) -> anyhow::Result<[Generated; 2]> {
        let name = workload_name(self.name);
        let (about, load) = match self.name {
            "baseline" => (BASELINE_ABOUT, "connections = [64, 512]\n"),
            "pipelined" => (PIPELINED_ABOUT, "connections = [64, 512]\npipeline = 16\n"),
            "limited-conn" => (LIMITED_ABOUT, "connections = [64, 512]\nchurn = true\n"),
            _ => (JSON_ABOUT, "connections = [64, 512]\n"),
        };
        let workload = format!("{about}name = \"{name}\"\nprotocol = \"http\"\n{}", self.requests);
        Workload::from_text(&workload, &name).context("a workload is wrong")?;
        let race = format!(
            "# HttpArena's profile `{}` for all contenders that serve it. They always listen on the same port, so they\n\
             # run one after the other. HttpArena has 4,096 connections.\n\
             workload = \"../workloads/{name}.toml\"\nschedule = \"rounds\"\n\n[[load]]\n{load}",
            self.name
        );
        Contest::parse(&race, &format!("{name}.toml")).context("a race is wrong")?;
        let path = Path::new("workloads").join(format!("{name}.toml"));
        Ok([Generated { path, text: workload }, Generated { path: self.race_path(), text: race }])
    }
}

const BASELINE_ABOUT: &str = "\
# HttpArena's profile `baseline`: the sum of two parameters of the query, and of the body if there is one. HttpArena
# sends fixed numbers (13, 42 and 20); here they are random, with as many digits, so a fixed reply is wrong.
";

const LIMITED_ABOUT: &str = "\
# HttpArena's profile `limited-conn`: the requests of `baseline`, ten of a kind on each connection. The last one sends
# `Connection: close`.
";

const PIPELINED_ABOUT: &str = "\
# HttpArena's profile `pipelined`: 16 requests in flight on each connection.
";

const JSON_ABOUT: &str = "\
# HttpArena's profile `json`: the first items of data/dataset.json, each with `total`, which is price × quantity × m.
# The whole body is compared, regardless of the order of members. HttpArena opens a new connection after 25 requests;
# here connections stay open.
";

const PIPELINED: &str = "
[[request]]
path = \"/pipeline\"
status = 200
expect_headers = { Content-Type = { regex = \"(?i)text/plain.*\" } }
exact = \"ok\"
";

/// What the replies of `baseline` have in common.
const PLAIN: &str =
    "status = 200, expect_headers = { Content-Type = { regex = \"(?i)text/plain.*\" } }";

/// The kinds of requests of `baseline`: the keys beside those of the reply. `#` is the number of the step.
const KINDS: [&str; 3] = [
    "path = \"/baseline11?a={a#=int:10..99}&b={b#=int:10..99}\", exact = \"{a#+b#}\"",
    "method = \"POST\", path = \"/baseline11?a={a#=int:10..99}&b={b#=int:10..99}\", \
     headers = { Content-Type = \"text/plain\" }, body = \"{c#=int:10..99}\", exact = \"{a#+b#+c#}\"",
    "method = \"POST\", path = \"/baseline11?a={a#=int:10..99}&b={b#=int:10..99}\", \
     headers = { Content-Type = \"text/plain\" }, body = \"{c#=int:10..99}\", chunked = true, \
     exact = \"{a#+b#+c#}\"",
];

/// The requests of `baseline`.
fn baseline() -> String {
    conversations(1)
}

/// The requests of `limited-conn`: HttpArena closes a connection after ten.
fn limited() -> String {
    conversations(10)
}

fn conversations(steps: usize) -> String {
    let mut text = String::new();
    for kind in KINDS {
        text.push_str("\n[[request]]\nsteps = [\n");
        for step in 1..=steps {
            let number = if steps == 1 { String::new() } else { step.to_string() };
            let _ = writeln!(text, "  {{ {}, {PLAIN} }},", kind.replace('#', &number));
        }
        text.push_str("]\n");
    }
    text
}
