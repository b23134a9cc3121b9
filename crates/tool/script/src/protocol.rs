//! What a protocol provides besides its dialect: its name and URL schemes, its built-in workloads
//! and its workload files. Each folder of [`crate::dialects`] implements this.

use crate::{
    dialect::Dialect, dialects::Workload, exact::Exact, greeting::Greeting,
    readiness_probe::ReadinessProbe, script::TooLarge, workload::file::FileText,
};
use regatta_record::{Heads, Machines, ReplySeen};
use serde::{Serialize, de::DeserializeOwned};
use std::{borrow::Cow, fmt::Debug, sync::atomic::AtomicU64, time::Duration};

/// A row of the table of dialects.
#[derive(Clone, Copy, Debug)]
pub struct ProtocolInfo {
    /// The name in workload files: `protocol = "…"`.
    pub name: &'static str,
    /// The URL schemes of the protocol, the one without TLS first.
    pub schemes: &'static [Scheme],
    /// Protocol offered in the TLS handshake (ALPN, RFC 7301); `None` offers nothing.
    pub alpn: Option<&'static str>,
    /// The form of a URL, for messages: `line://HOST:PORT`.
    pub url: &'static str,
    /// Whether such a URL has a path and query.
    pub paths: bool,
    /// Names of its adapters, for servers with their own variant of the protocol: see
    /// [`Asks::adapted`].
    pub adapters: &'static [&'static str],
    /// Builds a readiness probe from a path and a host; `None` if the protocol has no probe.
    pub readiness_probe: Option<fn(path: &str, host: &str) -> ReadinessProbe>,
    /// Shows whether a server speaks the protocol.
    pub greeting: Greeting,
}

/// A URL scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// Its name, in lower case.
    pub name: &'static str,
    /// The default port; `None` if a URL must have one.
    pub port: Option<u16>,
    /// Whether the connection uses TLS.
    pub tls: bool,
}

/// A protocol that adopts the workloads of another one, as a version of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The name of the protocol, as in [`ProtocolInfo::name`].
    pub protocol: &'static str,
    /// The name of the other one. It is also the key in race files that selects the version.
    pub of: &'static str,
    /// The value of that key.
    pub number: u32,
    /// The protocol, for people.
    pub named: &'static str,
}

/// A protocol.
pub trait Protocol {
    /// Its row in the table.
    const INFO: ProtocolInfo;
    /// Of what it is a version, if it adopts the workloads of another protocol.
    const VERSION: Option<Version> = None;
    /// Its workloads.
    type Asks: Asks;

    /// The workloads that need no file.
    fn built_in() -> Vec<Self::Asks>;

    /// The default workload. `path` is the path and query of the URL.
    fn usual(path: Option<&str>) -> Self::Asks;

    /// Reads a workload file.
    ///
    /// # Errors
    /// What is wrong with the file, and how to correct it.
    fn read(file: FileText<'_>) -> Result<Self::Asks, String>;

    /// The requests and expected replies of a workload of another protocol, in this one. `over_tls`:
    /// whether connections use TLS.
    ///
    /// # Errors
    /// It cannot send this workload; the error is a sentence.
    fn adopt(workload: &Workload, over_tls: bool) -> Result<Self::Asks, String> {
        let _ = over_tls;
        Err(format!("the workload {} cannot be sent over {}", workload.name(), Self::INFO.name))
    }
}

/// A workload in a protocol, not compiled yet: what to send and which replies are correct. Its
/// serialised form is sent to load processes, which compile it themselves.
pub trait Asks: Clone + Debug + Send + Sync + Serialize + DeserializeOwned {
    /// The dialect that it is compiled into.
    type Dialect: Dialect;

    /// Its name on the command line and in manifests.
    fn name(&self) -> &str;

    /// The name of the service that a server must provide for this workload, as in manifests.
    /// Several workloads may use one service.
    fn service(&self) -> &str {
        self.name()
    }

    /// Returns its exchanges, laid out and closed.
    ///
    /// # Errors
    /// The exchanges take too much memory.
    fn compile(&self, order: &CompileOptions<'_>) -> Result<Speech<Self::Dialect>, TooLarge>;

    /// Index in the dialect's [`Dialect::OPERATIONS`] of the operation that costs are divided by:
    /// requests, unless the workload exists for their consequences, e.g. deliveries. Operations of
    /// this kind must be verified (see [`crate::Heard`]), and so must the number of them that a
    /// request entails.
    fn cost_per(&self) -> usize {
        0
    }

    /// Number of words of memory that load processes share if a load has several: see
    /// [`CompileOptions::shared`]. 0 if they do not need to know of each other.
    fn shared_words(&self) -> usize {
        0
    }

    /// Index of the operation whose latency limits the capacity: requests, unless a reply may
    /// arrive before the work is done.
    fn limited(&self) -> usize {
        0
    }

    /// The largest number of messages of a reply that is a stream of them, `u32::MAX` if it may have any number;
    /// `None` if no reply is a stream.
    fn most_messages(&self) -> Option<u32> {
        None
    }

    /// The whole text of its workload file, if it is from a file and is checked as the file says.
    fn text(&self) -> Option<&str> {
        None
    }

    /// The same requests for a server that echoes them; `None` if the workload has no such form.
    fn echoed(&self) -> Option<Self> {
        None
    }

    /// The same number of requests, all of the mean length, for a server that answers each with the
    /// same bytes without reading it, and what that server needs to know. `None` if there is no
    /// such reply.
    fn canned(&self, place: Destination<'_>) -> Option<(Self, Canned)> {
        let _ = place;
        None
    }

    /// The same workload with these heads; `None` if it has no built-in heads.
    fn with_heads(&self, heads: Heads) -> Option<Self> {
        let _ = heads;
        None
    }

    /// The same workload for a server with its own variant of the protocol, by the name of the
    /// adapter; `None` if the workload has no such adapter.
    fn adapted(&self, adapter: &str) -> Option<Self> {
        let _ = adapter;
        None
    }

    /// Whether connections may store anything on the server before their first request, e.g. the
    /// initial values of their keys. A load of a fixed number of requests starts to count when all
    /// connections have done so.
    fn prepares(&self) -> bool {
        false
    }

    /// The same workload with keys that all connections share. What all connections saw is then
    /// checked together, after the load has ended, within one process. `None` if there are no such
    /// keys.
    fn sharing_keys(&self) -> Option<Self> {
        None
    }

    /// A request that samples what a reply is like; `None` if replies are not described.
    fn sample(&self, place: Destination<'_>) -> Option<Sample> {
        let _ = place;
        None
    }

    /// Whether a connection may have only one request in flight, although the protocol permits more:
    /// its servers process them at the same time, and a step of a conversation must follow the one
    /// before it.
    fn is_sequential(&self) -> bool {
        false
    }

    /// Whether no server may answer before it has the whole request. Of the requests in a workload file, usually only
    /// its author knows that.
    fn needs_whole_requests(&self) -> bool {
        false
    }

    /// The same workload with `n` rounds of work per request; `None` if requests have no such
    /// number.
    fn with_n(&self, n: u32) -> Option<Self> {
        let _ = n;
        None
    }
}

/// Parameters of compiling a workload.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompileOptions<'a> {
    /// Seed of everything random.
    pub seed: u64,
    /// Maximum number of requests in flight on one connection.
    pub pipeline: usize,
    /// What the requests address.
    pub place: Destination<'a>,
    /// Words that this process shares with the other load processes, initially zero: at least
    /// [`Asks::shared_words`]. `None` if there is only one process, or no words are shared.
    pub shared: Option<&'static [AtomicU64]>,
    /// The machines of the load, if there are several and their connections must know of each other.
    pub machines: Option<&'a Machines>,
    /// What is promised about messages that the server pushes.
    pub pushes: Pushes<'a>,
}

/// What is promised about the messages that a server pushes, and the nodes of the server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pushes<'a> {
    /// The host of each node, as written in its URL: the connection in slot `n` is at node
    /// `n % hosts.len()`. Empty: there is one, [`Destination::host`].
    pub hosts: &'a [&'a str],
    /// All connections must get the messages in one order. Otherwise only those of one sender have an
    /// order.
    pub in_one_order: bool,
    /// The server may announce that messages are lost, where the protocol has such an announcement. It is
    /// counted ([`crate::Dialect::announced`]). Otherwise it is an error.
    pub may_be_lost: bool,
    /// Wrong messages are counted, and the load continues.
    pub tolerates: bool,
}

/// What the requests address, and the parts of requests that depend on the plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Destination<'a> {
    /// The requested host, as written in the URL.
    pub host: &'a str,
    /// The path of the URL. It replaces the path of a built-in workload, or names a database.
    pub path: Option<&'a str>,
    /// Whether a connection serves one conversation. Its last request announces this where the
    /// protocol can.
    pub closes: bool,
    /// How long the load waits for a reply. Requests announce it where the protocol has a deadline. `None`
    /// announces none.
    pub timeout: Option<Duration>,
}

/// A compiled workload.
#[derive(Debug)]
pub enum Speech<D> {
    /// All replies are known to the byte.
    Exact(Exact),
    /// Replies are checked by the dialect.
    Own(D),
}

/// One request on a connection of its own, to see what a reply is like.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The request, in bytes.
    pub asks: Vec<u8>,
    /// Describes the reply; `None` until it is complete, and if it is invalid.
    pub seen: fn(&[u8]) -> Option<ReplySeen>,
    /// Whether every request of the workload is this one, and any content is right.
    pub is_only: bool,
}

/// What a server needs to reply without parsing requests: a length and a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canned {
    /// Length of every request, in bytes.
    pub request_bytes: usize,
    /// The reply to every request.
    pub reply: Cow<'static, [u8]>,
}
