//! Workloads over HTTP/2.

use super::{dialect::Dialect2, requests::Requests, sample};
use crate::{
    dialects::{
        Workload,
        http::{Content, Http1, HttpAsks},
    },
    protocol::{Asks, Canned, CompileOptions, Destination, Protocol, Sample, Speech},
    script::TooLarge,
};
use regatta_record::Heads;
use serde::{Deserialize, Serialize};

/// A workload of HTTP, over HTTP/2.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http2Asks {
    asks: HttpAsks,
    /// Whether connections use TLS: the scheme of the requests.
    over_tls: bool,
    /// Whether the server answers each request with the same bytes.
    is_canned: bool,
}

/// In replies that are always the same, the time may be off by this number of seconds: 126 years.
const ANY_TIME: u64 = 4_000_000_000;

impl Http2Asks {
    /// The default workload of this path.
    pub(super) fn usual(path: Option<&str>) -> Self {
        Http2Asks { asks: Http1::usual(path), over_tls: false, is_canned: false }
    }

    /// Adopts a workload.
    pub(super) fn of(workload: &Workload, over_tls: bool) -> Result<Self, String> {
        let name = workload.name();
        let Workload::Http(asks) = workload else {
            return Err(format!("the workload {name} is not one of HTTP"));
        };
        match asks {
            HttpAsks::Hello { .. }
            | HttpAsks::Hash { .. }
            | HttpAsks::Requests(_)
            | HttpAsks::File(_) => Ok(Http2Asks { asks: asks.clone(), over_tls, is_canned: false }),
            HttpAsks::CannedHello { .. } | HttpAsks::EchoOf(_) => {
                Err(format!("the workload {name} compares replies of HTTP/1.1 byte for byte"))
            }
        }
    }
}

impl Asks for Http2Asks {
    type Dialect = Dialect2;

    fn name(&self) -> &str {
        self.asks.name()
    }

    fn compile(&self, order: &CompileOptions<'_>) -> Result<Speech<Dialect2>, TooLarge> {
        let Speech::Own(http) = self.asks.compile(order)? else {
            unreachable!("adopted workloads do not compare replies byte for byte")
        };
        let (script, mut kinds, of, salted) = http.into_parts();
        for kind in kinds.iter_mut().filter(|_| self.is_canned) {
            kind.content = Content::Clock { within: ANY_TIME };
        }
        let requests = Requests::compile(&script, self.over_tls, salted);
        let pipeline = order.pipeline as u32;
        Ok(Speech::Own(Dialect2 { script, kinds, of, requests, pipeline }))
    }

    fn text(&self) -> Option<&str> {
        self.asks.text()
    }

    /// The requests are the same, because the server needs not know their length.
    fn canned(&self, _: Destination<'_>) -> Option<(Self, Canned)> {
        let canned = Canned { request_bytes: 1, reply: sample::canned_hello().into() };
        self.asks.is_hello().then(|| (Http2Asks { is_canned: true, ..self.clone() }, canned))
    }

    fn sample(&self, place: Destination<'_>) -> Option<Sample> {
        let http = self.asks.sample(place)?;
        let identical = self.with_heads(Heads::Identical);
        let order = CompileOptions { seed: 0, pipeline: 1, place, ..CompileOptions::default() };
        let compiled = identical.as_ref().unwrap_or(self).compile(&order);
        let Ok(Speech::Own(dialect)) = compiled else { return None };
        let asks = sample::asks(&dialect);
        // As over HTTP/1.1, nothing needs to be known of a content that a built-in workload checks.
        let seen = if self.text().is_some() { sample::reply_with_content } else { sample::reply };
        Some(Sample { asks, seen, is_only: http.is_only })
    }

    fn with_n(&self, n: u32) -> Option<Self> {
        self.asks.with_n(n).map(|asks| Http2Asks { asks, ..self.clone() })
    }

    fn with_heads(&self, heads: Heads) -> Option<Self> {
        self.asks.with_heads(heads).map(|asks| Http2Asks { asks, ..self.clone() })
    }

    fn is_sequential(&self) -> bool {
        self.asks.has_steps()
    }
}
