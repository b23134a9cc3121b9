//! Workloads over HTTP/2.

use super::{dialect::Dialect2, requests::Requests};
use crate::{
    dialects::{
        Workload,
        http::{Http1, HttpAsks},
    },
    protocol::{Asks, CompileOptions, Protocol, Speech},
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
}

impl Http2Asks {
    /// The default workload of this path.
    pub(super) fn usual(path: Option<&str>) -> Self {
        Http2Asks { asks: Http1::usual(path), over_tls: false }
    }

    /// Adopts a workload.
    pub(super) fn of(workload: &Workload, over_tls: bool) -> Result<Self, String> {
        let name = workload.name();
        let Workload::Http(asks) = workload else {
            return Err(format!("the workload {name} is not one of HTTP"));
        };
        match asks {
            HttpAsks::Hello { .. } | HttpAsks::Requests(_) | HttpAsks::File(_) => {
                Ok(Http2Asks { asks: asks.clone(), over_tls })
            }
            HttpAsks::Hash { .. } => Err(format!(
                "the workload {name} writes another salt into each request, which compressed headers do \
                 not permit yet"
            )),
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
        let (script, kinds, of) = http.into_parts();
        let requests = Requests::compile(&script, self.over_tls);
        Ok(Speech::Own(Dialect2 { script, kinds, of, requests, pipeline: order.pipeline as u32 }))
    }

    fn text(&self) -> Option<&str> {
        self.asks.text()
    }

    fn with_heads(&self, heads: Heads) -> Option<Self> {
        self.asks.with_heads(heads).map(|asks| Http2Asks { asks, ..self.clone() })
    }

    fn is_sequential(&self) -> bool {
        self.asks.has_steps()
    }
}
