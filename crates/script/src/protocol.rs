//! What a protocol brings along, beside how it is spoken: its name and URL schemes, its built-in
//! workloads, its workload files. One folder of [`crate::dialects`] implements this.

use crate::{
    dialect::Dialect, exact::Exact, knock::Knock, script::TooLarge, workload::file::FileText,
};
use regatta_record::{Heads, ReplySeen};
use serde::{Serialize, de::DeserializeOwned};
use std::{fmt::Debug, sync::atomic::AtomicU64};

/// A row of the table of dialects.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name that workload files give: `protocol = "…"`.
    pub name: &'static str,
    /// The URL schemes under which it is asked, the plain one first.
    pub schemes: &'static [Scheme],
    /// What TLS offers as the protocol inside it (ALPN, RFC 7301); `None`: nothing is offered.
    pub alpn: Option<&'static str>,
    /// The form of a URL, for messages: `line://HOST:PORT`.
    pub url: &'static str,
    /// Whether such a URL has a path with its query.
    pub paths: bool,
    /// The names of its adapters: servers that speak it in their own way, in which
    /// [`Asks::adapted`] asks.
    pub adapters: &'static [&'static str],
    /// How to ask a server of a host for a path, to see whether it is ready; `None`: accepting a
    /// connection is all that there is to see.
    pub knock: Option<fn(path: &str, host: &str) -> Knock>,
}

/// A URL scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// Its name, in lower case.
    pub name: &'static str,
    /// The port of a URL that has none; `None`: it must have one.
    pub port: Option<u16>,
    /// Whether TLS is between.
    pub tls: bool,
}

/// A protocol.
pub trait Protocol {
    /// What stands in the table.
    const ROW: Row;
    /// What is asked in it.
    type Asks: Asks;

    /// The workloads that need no file.
    fn built_in() -> Vec<Self::Asks>;

    /// What is asked where nobody says what. `path` is that of the URL, with its query.
    fn usual(path: Option<&str>) -> Self::Asks;

    /// Reads a workload file.
    ///
    /// # Errors
    /// What is wrong with it, and how it is written rightly.
    fn read(file: FileText<'_>) -> Result<Self::Asks, String>;
}

/// What is asked in a protocol, and what must come back; not compiled yet. Its serialised form is sent
/// to load processes, which compile it themselves.
pub trait Asks: Clone + Debug + Send + Sync + Serialize + DeserializeOwned {
    /// What it is compiled into.
    type Dialect: Dialect;

    /// Its name, as on the command line and in manifests.
    fn name(&self) -> &str;

    /// The name of what a server must serve to be asked this, as in manifests: one service may be asked in
    /// several ways.
    fn service(&self) -> &str {
        self.name()
    }

    /// Its exchanges, laid out and closed.
    ///
    /// # Errors
    /// They take too much memory.
    fn compile(&self, order: &Order<'_>) -> Result<Speech<Self::Dialect>, TooLarge>;

    /// The kind of operation that costs are per, by its place in the dialect's
    /// [`Dialect::OPERATIONS`]: the requests, unless a workload exists for what follows from them, e.g.
    /// deliveries. The kind must be verified (see [`crate::Heard`]), and so must be how many of them a
    /// request entails.
    fn cost_per(&self) -> usize {
        0
    }

    /// How many words of memory all load processes share, where a load takes several: see
    /// [`Order::shared`]. 0: they need to know nothing of each other.
    fn shared_words(&self) -> usize {
        0
    }

    /// The kind of operation whose latency a capacity is limited by, by its place among them: the requests,
    /// unless a reply may come before the work is done.
    fn limited(&self) -> usize {
        0
    }

    /// The whole text of its workload file, where it is one and is checked as that says.
    fn text(&self) -> Option<&str> {
        None
    }

    /// The same requests of a server that sends back what it gets; `None` where that is no reply.
    fn echoed(&self) -> Option<Self> {
        None
    }

    /// As many requests, and bytes of requests, for a server that sends the same bytes for each of them
    /// without looking, and what it needs to know for that. `None` where there is no such reply.
    fn canned(&self, place: Place<'_>) -> Option<(Self, Canned)> {
        let _ = place;
        None
    }

    /// The same with these heads; `None` where they are not built in.
    fn with_heads(&self, heads: Heads) -> Option<Self> {
        let _ = heads;
        None
    }

    /// The same of a server that speaks the protocol in its own way, by the name of the adapter;
    /// `None` where there is no such adapter.
    fn adapted(&self, adapter: &str) -> Option<Self> {
        let _ = adapter;
        None
    }

    /// Whether connections send more than their requests before the first of them, e.g. what their keys
    /// hold at first. A load of a counted number of requests begins to count when all have done so.
    fn prepares(&self) -> bool {
        false
    }

    /// The same with keys that all connections share. What all of them saw is then checked together, when
    /// the load has ended, within one process. `None` where there are no such keys.
    fn sharing_keys(&self) -> Option<Self> {
        None
    }

    /// A request to see what a reply is like; `None` where nothing is told of replies.
    fn sample(&self, place: Place<'_>) -> Option<Sample> {
        let _ = place;
        None
    }

    /// The same with `n` rounds of work asked of each request; `None` where requests have no such
    /// number.
    fn with_n(&self, n: u32) -> Option<Self> {
        let _ = n;
        None
    }
}

/// What a workload is compiled for.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// Decides everything that is drawn.
    pub seed: u64,
    /// The most requests that one connection has outstanding.
    pub pipeline: usize,
    /// Whom the requests name.
    pub place: Place<'a>,
    /// Words that this process shares with the other load processes, zeros at first: at least
    /// [`Asks::shared_words`]. `None`: there is one process.
    pub shared: Option<&'static [AtomicU64]>,
}

/// Whom the requests name, and what of them follows from the plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place<'a> {
    /// The host that is asked, as it stands in the URL.
    pub host: &'a str,
    /// The path of a built-in workload instead of its own.
    pub path: Option<&'a str>,
    /// A connection serves one request, and requests say so where they can.
    pub closes: bool,
}

/// A compiled workload.
#[derive(Debug)]
pub enum Speech<D> {
    /// All replies are known to the byte.
    Exact(Exact),
    /// Replies are checked as the dialect does it.
    Own(D),
}

/// One request on a connection of its own, to see what a reply is like.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The bytes that ask.
    pub asks: Vec<u8>,
    /// What is seen of the reply; `None` as long as it is not whole.
    pub seen: fn(&[u8]) -> Option<ReplySeen>,
}

/// What a server needs to serve without looking at a byte: a length and a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canned {
    /// Length of every request, in bytes.
    pub request_bytes: usize,
    /// The reply to every request.
    pub reply: &'static str,
}
