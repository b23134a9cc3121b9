//! What can be asked over HTTP.

use super::{
    built_in::{canned_reply, compile_hash, hello},
    file::HttpFile,
    receive::Http,
    requests::HttpWorkload,
};
use crate::{
    exact::Exact,
    protocol::{Asks, Canned, Order, Place, Speech},
    script::{Script, TooLarge},
    sent::SentFile,
    workload::file::FileText,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A workload over HTTP.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpAsks {
    /// GET, answered with the time.
    Hello,
    /// GET, answered with a digest of [`crate::hash_file`], computed `n` times, for a salt that is
    /// another one in each request.
    Hash {
        /// From 1 to 100,000.
        n: u32,
    },
    /// Requests without placeholders.
    Requests(#[serde(with = "super::requests::shared")] Arc<HttpWorkload>),
    /// The requests of `hello`; the reply is the same each time, to the byte.
    CannedHello,
    /// A workload file.
    File(FileAsks),
    /// The requests of a workload file; the reply is the request.
    EchoOf(FileAsks),
}

/// The requests of a workload file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "SentFile", try_from = "SentFile")]
pub struct FileAsks(Arc<HttpFile>);

impl From<FileAsks> for SentFile {
    fn from(FileAsks(file): FileAsks) -> Self {
        SentFile { name: file.name().to_owned(), text: file.text().to_owned() }
    }
}

impl TryFrom<SentFile> for FileAsks {
    type Error = String;

    fn try_from(sent: SentFile) -> Result<Self, String> {
        Ok(FileAsks(Arc::new(HttpFile::read(sent.file())?)))
    }
}

impl HttpAsks {
    pub(super) fn read(file: FileText<'_>) -> Result<Self, String> {
        Ok(HttpAsks::File(FileAsks(Arc::new(HttpFile::read(file)?))))
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
            HttpAsks::Hello | HttpAsks::CannedHello => "hello",
            HttpAsks::Hash { .. } => "hash",
            HttpAsks::Requests(requests) => requests.name(),
            HttpAsks::File(FileAsks(file)) | HttpAsks::EchoOf(FileAsks(file)) => file.name(),
        }
    }

    fn compile(&self, order: &Order<'_>) -> Result<Speech<Http>, TooLarge> {
        let Order { seed, place, .. } = *order;
        let exact = |mut script: Script| {
            script.close(order.pipeline)?;
            Ok(Speech::Exact(Exact::new(script)))
        };
        match self {
            HttpAsks::Hello => hello(place).compile(order).map(Speech::Own),
            HttpAsks::Hash { n } => compile_hash(*n, order).map(Speech::Own),
            HttpAsks::Requests(requests) => requests.compile(order).map(Speech::Own),
            HttpAsks::CannedHello => {
                let (script, _) = hello(place).compose(seed, place);
                exact(script.answered_with(canned_reply(place.closes).as_bytes()))
            }
            HttpAsks::File(FileAsks(file)) => file.compile(order).map(Speech::Own),
            HttpAsks::EchoOf(FileAsks(file)) => exact(file.compose_echo(seed, place)),
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            HttpAsks::File(FileAsks(file)) => Some(file.text()),
            _ => None,
        }
    }

    fn echoed(&self) -> Option<Self> {
        match self {
            HttpAsks::File(file) | HttpAsks::EchoOf(file) => Some(HttpAsks::EchoOf(file.clone())),
            _ => None,
        }
    }

    fn canned(&self, place: Place<'_>) -> Option<(Self, Canned)> {
        matches!(self, HttpAsks::Hello | HttpAsks::CannedHello).then(|| {
            let request_bytes = hello(place).longest(place);
            (HttpAsks::CannedHello, Canned { request_bytes, reply: canned_reply(place.closes) })
        })
    }

    fn with_n(&self, n: u32) -> Option<Self> {
        matches!(self, HttpAsks::Hash { .. }).then_some(HttpAsks::Hash { n })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

    #[test]
    fn every_request_has_the_length_that_is_told_and_every_reply_is_the_canned_one() {
        for closes in [false, true] {
            let place = Place { host: "127.0.0.1:40001", path: None, closes };
            let order = Order { seed: 1, pipeline: 16, place };
            let (asks, canned) = HttpAsks::Hello.canned(place).unwrap();
            let Ok(Speech::Exact(exact)) = asks.compile(&order) else { panic!("not exact") };
            let Ok(Speech::Own(hello)) = HttpAsks::Hello.compile(&order) else { panic!("exact") };
            let script = exact.script();
            for i in 0..script.count() + 16 {
                assert_eq!(script.request(i), hello.script().request(i));
                assert_eq!(script.request(i).len(), canned.request_bytes);
                assert_eq!(script.reply(i), canned.reply.as_bytes());
            }
        }
    }
}
