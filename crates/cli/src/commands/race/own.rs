//! The options that describe a race without a race file: what to send, and how much load.

use crate::options::values::{http_path, rate, small_count, workload};
use anyhow::{Context, bail};
use regatta_host::RunningUrl;
use regatta_race::{OwnLoad, Rate};
use regatta_script::Workload;
use std::num::NonZeroU32;

/// What to send, and how much load.
#[derive(Clone, Debug, clap::Args)]
pub struct OwnArgs {
    /// Send GET requests of this path, e.g. /items. Any status from 200 to 299 is right; to check more,
    /// write a workload file
    #[arg(long, value_name = "PATH", value_parser = http_path, conflicts_with = "workload")]
    http: Option<Workload>,
    /// What to send, and which replies to expect: a built-in workload, or your own workload file.
    /// Default: double, lines of integers
    #[arg(long, value_name = "NAME|FILE.toml", value_parser = workload)]
    workload: Option<Workload>,
    /// Speak HTTP/2 with prior knowledge (h2c). --pipeline is the number of streams on each connection. Named
    /// servers must speak it; without names, those of the race that do take part
    #[arg(long)]
    http2: bool,
    /// Number of open connections, in one load that replaces those of the race. Default: 64
    #[arg(short, long, value_name = "N", value_parser = small_count)]
    connections: Option<NonZeroU32>,
    /// Maximum requests in flight on each connection of that load. Default: 1
    #[arg(short, long, value_name = "N", value_parser = small_count)]
    pipeline: Option<NonZeroU32>,
    /// Requests per second of that load, scheduled in advance (open loop), e.g. 20k/s, or a share of what
    /// the servers can do, e.g. '50% of slowest'. Default: as fast as the replies arrive (closed loop)
    #[arg(long, value_name = "R", value_parser = rate_or_share)]
    rate: Option<Rate>,
}

impl OwnArgs {
    /// What to send, if the options say it, or the URL of a running server. All URLs among `words` must
    /// ask for the same.
    pub fn workload(&self, words: &[String]) -> anyhow::Result<Option<Workload>> {
        let given = self.http.clone().or_else(|| self.workload.clone());
        let urls = words.iter().filter_map(|word| Some((word, RunningUrl::of_word(word)?)));
        let urls = urls.map(|(word, url)| Ok((word, url.map_err(anyhow::Error::msg)?)));
        let urls: Vec<(&String, RunningUrl)> = urls.collect::<anyhow::Result<_>>()?;
        let Some(((first, url), others)) = urls.split_first() else { return Ok(given) };
        let path = |url: &RunningUrl| url.path.clone().unwrap_or_else(|| "/".to_owned());
        if let Some((word, other)) = others.iter().find(|(_, other)| other.protocol != url.protocol)
        {
            bail!(
                "{first} is a server of {} and {word} of {}: only servers that are asked the same can \
                 be compared",
                url.protocol,
                other.protocol
            );
        }
        let Some(given) = given else {
            if let Some((word, _)) = others.iter().find(|(_, other)| path(other) != path(url)) {
                bail!(
                    "{first} and {word} have different paths; only the same path can be compared"
                );
            }
            return usual(url).map(Some);
        };
        for (word, url) in &urls {
            let is_own = given.text().is_some() && path(url) != "/";
            if is_own && usual(url).ok().as_ref().and_then(Workload::text) != given.text() {
                bail!(
                    "{word}: the path is not what {} requests; leave the path out of the URL, or leave \
                     out the option",
                    given.name()
                );
            }
        }
        Ok(Some(given))
    }

    /// Name of the protocol to send it over, if it is not the usual one.
    pub fn over(&self) -> Option<&'static str> {
        self.http2.then_some("http2")
    }

    /// The load, if the options say it.
    pub fn load(&self) -> Option<OwnLoad> {
        let OwnArgs { connections, pipeline, rate, .. } = self;
        let is_given = connections.is_some() || pipeline.is_some() || rate.is_some();
        is_given.then(|| OwnLoad {
            connections: connections.map(NonZeroU32::get),
            pipeline: pipeline.map(NonZeroU32::get),
            rate: rate.clone(),
        })
    }
}

/// Returns what a URL asks for. It has the text of a file if the URL has a path, because a result
/// directory must contain it.
fn usual(url: &RunningUrl) -> anyhow::Result<Workload> {
    let path = url.path.as_deref().unwrap_or("/");
    match Workload::usual(url.protocol, Some(path)).context("the URL has no protocol")? {
        // A workload of options is neither built in nor a file.
        one if Workload::parse(one.name()).is_none() => {
            let get = http_path(path).map_err(anyhow::Error::msg)?;
            if get.protocol().name != one.protocol().name {
                bail!(
                    "what to send to servers of {} must be in a workload file: give --workload FILE.toml, \
                     and leave the path out of the URLs",
                    url.protocol
                );
            }
            Ok(get)
        }
        one => Ok(one),
    }
}

/// Parses requests per second, or a share such as `50% of slowest`.
fn rate_or_share(text: &str) -> Result<Rate, String> {
    if text.contains('%') {
        return Rate::of_share(text);
    }
    let number =
        rate(text).map_err(|error| format!("{error}; or a share, e.g. '50% of slowest'"))?;
    Ok(Rate::Number(number.get()))
}
