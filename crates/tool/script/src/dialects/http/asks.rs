//! Workloads over HTTP.

use super::{
    built_in::{
        canned_reply, compile_hash, compile_hello, compose_canned, sample_hash, sample_hello,
    },
    file::HttpFile,
    reply::receive::Http,
    requests::HttpWorkload,
};
use crate::{
    exact::Exact,
    protocol::{Asks, Canned, CompileOptions, Destination, Sample, Speech},
    script::{Script, TooLarge},
    workload::file::{FileText, WorkloadFile},
};
use regatta_record::Heads;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A workload over HTTP.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpAsks {
    /// GET requests; the reply is the time.
    Hello {
        /// The heads of the requests.
        heads: Heads,
    },
    /// GET requests; the reply is a digest of [`crate::hash_file`], computed in `n` rounds from a salt
    /// that differs in each request.
    Hash {
        /// Number of rounds, from 1 to 100,000.
        n: u32,
        /// The heads of the requests.
        heads: Heads,
    },
    /// Requests without placeholders.
    Requests(#[serde(with = "super::requests::shared")] Arc<HttpWorkload>),
    /// As many requests as `hello`, all of the mean length of its requests. Every reply has the same
    /// bytes.
    CannedHello {
        /// The heads of the requests of `hello`.
        heads: Heads,
    },
    /// A workload file.
    File(#[serde(with = "crate::sent::file")] Arc<HttpFile>),
    /// The requests of a workload file; the reply is the request, byte for byte.
    EchoOf(#[serde(with = "crate::sent::file")] Arc<HttpFile>),
}

impl HttpAsks {
    /// Whether it has conversations of several steps.
    pub(in crate::dialects) fn has_steps(&self) -> bool {
        match self {
            HttpAsks::File(file) | HttpAsks::EchoOf(file) => file.has_steps(),
            _ => false,
        }
    }

    /// Whether it is `hello`.
    pub(in crate::dialects) fn is_hello(&self) -> bool {
        matches!(self, HttpAsks::Hello { .. })
    }

    pub(super) fn read(file: FileText<'_>) -> Result<Self, String> {
        Ok(HttpAsks::File(Arc::new(HttpFile::read(file)?)))
    }
}

impl From<HttpWorkload> for HttpAsks {
    fn from(requests: HttpWorkload) -> Self {
        HttpAsks::Requests(Arc::new(requests))
    }
}

impl Asks for HttpAsks {
    type Dialect = Http;

    fn name(&self) -> &str {
        match self {
            HttpAsks::Hello { .. } | HttpAsks::CannedHello { .. } => "hello",
            HttpAsks::Hash { .. } => "hash",
            HttpAsks::Requests(requests) => requests.name(),
            HttpAsks::File(file) | HttpAsks::EchoOf(file) => &file.kept().name,
        }
    }

    fn compile(&self, order: &CompileOptions<'_>) -> Result<Speech<Http>, TooLarge> {
        let CompileOptions { seed, place, .. } = *order;
        let exact = |mut script: Script| {
            script.close(order.pipeline)?;
            Ok(Speech::Exact(Exact::new(script)))
        };
        match self {
            HttpAsks::Hello { heads } => compile_hello(*heads, order).map(Speech::Own),
            HttpAsks::Hash { n, heads } => compile_hash(*n, *heads, order).map(Speech::Own),
            HttpAsks::Requests(requests) => requests.compile(order).map(Speech::Own),
            HttpAsks::CannedHello { heads } => exact(compose_canned(*heads, seed, place)),
            HttpAsks::File(file) => file.compile(order).map(Speech::Own),
            HttpAsks::EchoOf(file) => exact(file.compose_echo(seed, place)),
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            HttpAsks::File(file) => Some(&file.kept().text),
            _ => None,
        }
    }

    fn echoed(&self) -> Option<Self> {
        match self {
            HttpAsks::File(file) | HttpAsks::EchoOf(file) => Some(HttpAsks::EchoOf(file.clone())),
            _ => None,
        }
    }

    fn canned(&self, place: Destination<'_>) -> Option<(Self, Canned)> {
        let (HttpAsks::Hello { heads } | HttpAsks::CannedHello { heads }) = *self else {
            return None;
        };
        // The mean length is the same for all seeds.
        let request_bytes = compose_canned(heads, 0, place).mean_request();
        let canned = Canned { request_bytes, reply: canned_reply(place.closes).as_bytes().into() };
        Some((HttpAsks::CannedHello { heads }, canned))
    }

    fn with_n(&self, n: u32) -> Option<Self> {
        match *self {
            HttpAsks::Hash { heads, .. } => Some(HttpAsks::Hash { n, heads }),
            _ => None,
        }
    }

    fn sample(&self, place: Destination<'_>) -> Option<Sample> {
        match *self {
            HttpAsks::Hello { .. } => Some(sample_hello(place)),
            HttpAsks::Hash { .. } => Some(sample_hash(place)),
            HttpAsks::File(ref file) => file.sample(place),
            _ => None,
        }
    }

    fn with_heads(&self, heads: Heads) -> Option<Self> {
        match *self {
            HttpAsks::Hello { .. } => Some(HttpAsks::Hello { heads }),
            HttpAsks::Hash { n, .. } => Some(HttpAsks::Hash { n, heads }),
            HttpAsks::CannedHello { .. } => Some(HttpAsks::CannedHello { heads }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
