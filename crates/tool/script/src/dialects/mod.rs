//! The protocols of the load: one folder and one row of the table each. A folder defines how its
//! protocol is written and checked; no other code of this crate depends on a protocol.

pub mod grpc;
pub mod http;
pub mod http2;
pub mod line;
pub mod memcached;
pub mod redis;
pub mod websocket;

use crate::{
    dialect::Dialect,
    exact::Exact,
    protocol::{
        Asks, Canned, CompileOptions, Destination, Protocol, ProtocolInfo, Sample, Scheme, Speech,
        Version,
    },
    readiness_probe::ReadinessProbe,
    script::{Script, TooLarge},
    workload::file::{FileText, WorkloadError},
};
use regatta_record::{Heads, Operation};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Generates the table: for each row a variant of [`Workload`] and one of [`Compiled`]. A row after
/// `adopting` has no URLs, workload files and built-in workloads: it adopts those of another row.
macro_rules! table {
    ($($Name:ident: $Protocol:ty,)*; adopting: $($Other:ident: $Adopting:ty,)*) => {
        /// The protocols.
        pub const ROWS: &[ProtocolInfo] = &[$(<$Protocol as Protocol>::INFO),*];

        /// The versions of protocols that adopt the workloads of others.
        pub fn versions() -> impl Iterator<Item = Version> {
            [$(<$Adopting as Protocol>::VERSION),*].into_iter().flatten()
        }

        table! { $($Name: $Protocol,)* $($Other: $Adopting,)* }
    };
    ($($Name:ident: $Protocol:ty,)*) => {
        /// What to send, and which replies are correct.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[serde(try_from = "AsJson", into = "AsJson")]
        pub enum Workload {
            $(
                #[doc = concat!("See [`", stringify!($Protocol), "`].")]
                $Name(<$Protocol as Protocol>::Asks),
            )*
        }

        /// A compiled workload: its exchanges and the checks of their replies.
        #[derive(Debug)]
        pub enum Compiled {
            /// All replies are known to the byte.
            Exact(Exact),
            $(
                #[doc = concat!("See [`", stringify!($Protocol), "`].")]
                $Name(<<$Protocol as Protocol>::Asks as Asks>::Dialect),
            )*
        }

        impl Workload {
            /// Returns all built-in workloads.
            pub fn built_in() -> Vec<Workload> {
                let all = [$(
                    <$Protocol as Protocol>::built_in().into_iter().map(Workload::$Name).collect(),
                )*];
                all.into_iter().flat_map(|of_one: Vec<Workload>| of_one).collect()
            }

            /// Returns the default workload of the protocol of this name; `path` is the path and
            /// query of the URL. `None` if there is no such protocol.
            pub fn usual(protocol: &str, path: Option<&str>) -> Option<Workload> {
                $(if protocol == <$Protocol as Protocol>::INFO.name {
                    return Some(Workload::$Name(<$Protocol as Protocol>::usual(path)));
                })*
                None
            }

            fn read_as(protocol: &str, file: FileText<'_>) -> Option<Result<Workload, String>> {
                $(if protocol == <$Protocol as Protocol>::INFO.name {
                    return Some(<$Protocol as Protocol>::read(file).map(Workload::$Name));
                })*
                None
            }

            /// The protocol of the workload.
            pub fn protocol(&self) -> ProtocolInfo {
                match self { $(Workload::$Name(_) => <$Protocol as Protocol>::INFO),* }
            }

            /// Of what its protocol is a version, if it adopted the workload of another protocol.
            pub fn version(&self) -> Option<Version> {
                match self { $(Workload::$Name(_) => <$Protocol as Protocol>::VERSION),* }
            }

            /// The name on the command line and in manifests; for a file, its own name.
            pub fn name(&self) -> &str {
                match self { $(Workload::$Name(asks) => asks.name()),* }
            }

            /// The name of the service that a server must provide for this workload, as in
            /// manifests.
            pub fn service(&self) -> &str {
                match self { $(Workload::$Name(asks) => asks.service()),* }
            }

            /// The kind of operation that costs are divided by.
            pub fn cost_per(&self) -> Operation {
                match self { $(
                    Workload::$Name(asks) => kinds(asks)[asks.cost_per()].clone()
                ),* }
            }

            /// The kind of operation whose latency limits the capacity.
            pub fn limited(&self) -> Operation {
                match self { $(
                    Workload::$Name(asks) => kinds(asks)[asks.limited()].clone()
                ),* }
            }

            /// The largest number of messages of a reply that is a stream of them, `u32::MAX` if it may have any
            /// number; `None` if no reply is a stream.
            pub fn most_messages(&self) -> Option<u32> {
                match self { $(Workload::$Name(asks) => asks.most_messages()),* }
            }

            /// Whether servers of its protocol may send unsolicited messages, even if this workload
            /// causes none.
            pub fn is_pushed(&self) -> bool {
                match self { $(
                    Workload::$Name(_) => {
                        <<$Protocol as Protocol>::Asks as Asks>::Dialect::PUSHES
                    }
                )* }
            }

            /// Number of words of memory that several load processes share.
            pub fn shared_words(&self) -> usize {
                match self { $(Workload::$Name(asks) => asks.shared_words()),* }
            }

            /// The whole text of its workload file, which needs no other file. `None` for other
            /// workloads, and if its requests are sent to a server that echoes them.
            pub fn text(&self) -> Option<&str> {
                match self { $(Workload::$Name(asks) => asks.text()),* }
            }

            /// The same requests for a server that echoes them; `None` if the workload has no such
            /// form.
            pub fn echoed(&self) -> Option<Workload> {
                match self { $(Workload::$Name(asks) => asks.echoed().map(Workload::$Name)),* }
            }

            /// The same number of requests, all of the mean length, for a server that answers each
            /// with the same bytes without reading it, and what that server needs to know. `None`
            /// if there is no such reply.
            pub fn canned(&self, place: Destination<'_>) -> Option<(Workload, Canned)> {
                match self { $(
                    Workload::$Name(asks) => {
                        asks.canned(place).map(|(asks, canned)| (Workload::$Name(asks), canned))
                    }
                )* }
            }

            /// The same workload with these heads; `None` if it has no built-in heads.
            pub fn with_heads(&self, heads: Heads) -> Option<Workload> {
                match self { $(
                    Workload::$Name(asks) => asks.with_heads(heads).map(Workload::$Name)
                ),* }
            }

            /// The same workload for a server with its own variant of the protocol, by the name of
            /// the adapter; `None` if the workload has no such adapter.
            pub fn adapted(&self, adapter: &str) -> Option<Workload> {
                match self { $(
                    Workload::$Name(asks) => asks.adapted(adapter).map(Workload::$Name)
                ),* }
            }

            /// Whether connections may store anything on the server before their first request: see
            /// [`Asks::prepares`].
            pub fn prepares(&self) -> bool {
                match self { $(Workload::$Name(asks) => asks.prepares()),* }
            }

            /// The same workload with keys that all connections share, and a check of what all of
            /// them saw; `None` if there are no such keys.
            pub fn sharing_keys(&self) -> Option<Workload> {
                match self { $(
                    Workload::$Name(asks) => asks.sharing_keys().map(Workload::$Name)
                ),* }
            }

            /// The same requests and expected replies in the protocol of this name, which adopts them
            /// from another one. `over_tls`: whether connections use TLS.
            ///
            /// # Errors
            /// The protocol cannot send this workload; the error is a sentence.
            pub fn adopted(&self, protocol: &str, over_tls: bool) -> Result<Workload, String> {
                $(if protocol == <$Protocol as Protocol>::INFO.name {
                    return <$Protocol as Protocol>::adopt(self, over_tls).map(Workload::$Name);
                })*
                Err(format!("the protocol {protocol:?} is not supported"))
            }

            /// Whether replies may come in another order than their requests: see
            /// [`Dialect::MULTIPLEXED`].
            pub fn is_multiplexed(&self) -> bool {
                match self { $(
                    Workload::$Name(_) => {
                        <<$Protocol as Protocol>::Asks as Asks>::Dialect::MULTIPLEXED
                    }
                )* }
            }

            /// Whether the requests of a connection must be answered one after the other: see
            /// [`Asks::is_sequential`].
            pub fn is_sequential(&self) -> bool {
                match self { $(Workload::$Name(asks) => asks.is_sequential()),* }
            }

            /// Whether no server may answer before it has the whole request: see
            /// [`Asks::needs_whole_requests`].
            pub fn needs_whole_requests(&self) -> bool {
                match self { $(Workload::$Name(asks) => asks.needs_whole_requests()),* }
            }

            /// A request that samples what a reply is like; `None` if replies are not described.
            pub fn sample(&self, place: Destination<'_>) -> Option<Sample> {
                match self { $(Workload::$Name(asks) => asks.sample(place)),* }
            }

            /// The same workload with `n` rounds of work per request; `None` if requests have no
            /// such number.
            pub fn with_n(&self, n: u32) -> Option<Workload> {
                match self { $(Workload::$Name(asks) => asks.with_n(n).map(Workload::$Name)),* }
            }

            /// The workload as JSON.
            fn to_json(&self) -> AsJson {
                let protocol = self.protocol().name.to_owned();
                let asks = match self { $(Workload::$Name(asks) => serde_json::to_value(asks)),* };
                AsJson { protocol, asks: asks.expect("all keys in a workload are text") }
            }

            /// The workload of [`Workload::to_json`]. The error is a sentence.
            fn of_json(json: AsJson) -> Result<Workload, String> {
                let AsJson { protocol, asks } = json;
                $(if protocol == <$Protocol as Protocol>::INFO.name {
                    return serde_json::from_value(asks).map(Workload::$Name).map_err(|error| {
                        format!("the workload in the message cannot be read: {error}")
                    });
                })*
                Err(format!("the protocol {protocol:?} is not supported"))
            }

            fn compiled(&self, order: &CompileOptions<'_>) -> Result<Compiled, TooLarge> {
                match self { $(
                    Workload::$Name(asks) => Ok(match asks.compile(order)? {
                        Speech::Exact(exact) => Compiled::Exact(exact),
                        Speech::Own(dialect) => Compiled::$Name(dialect),
                    }),
                )* }
            }
        }

        impl Compiled {
            /// All exchanges of the run.
            pub fn script(&self) -> &Script {
                match self {
                    Compiled::Exact(exact) => exact.script(),
                    $(Compiled::$Name(dialect) => dialect.script(),)*
                }
            }

            /// Passes the dialect to a visitor, which is compiled for each dialect.
            pub fn visit<V: Visitor>(&self, visitor: V) -> V::Out {
                match self {
                    Compiled::Exact(exact) => visitor.visit(exact),
                    $(Compiled::$Name(dialect) => visitor.visit(dialect),)*
                }
            }
        }

        $(
            impl From<<$Protocol as Protocol>::Asks> for Workload {
                fn from(asks: <$Protocol as Protocol>::Asks) -> Self {
                    Workload::$Name(asks)
                }
            }
        )*
    };
}

table! {
    Line: line::Line,
    Http: http::Http1,
    Memcached: memcached::MemcachedText,
    WebSocket: websocket::WebSocket,
    Redis: redis::Resp,
    Grpc: grpc::Grpc,
    ;
    adopting:
    Http2: http2::Http2,
}

/// A workload as JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AsJson {
    /// The protocol, by its name in workload files.
    protocol: String,
    /// The requests, in a form specific to the protocol.
    asks: serde_json::Value,
}

impl From<Workload> for AsJson {
    fn from(workload: Workload) -> Self {
        workload.to_json()
    }
}

impl TryFrom<AsJson> for Workload {
    type Error = String;

    fn try_from(json: AsJson) -> Result<Self, String> {
        Workload::of_json(json)
    }
}

/// An operation that is generic over the dialect.
pub trait Visitor {
    /// The result of the visit.
    type Out;

    /// Visits the dialect.
    fn visit<D: Dialect>(self, dialect: &D) -> Self::Out;
}

/// The default workload of the first protocol.
impl Default for Workload {
    fn default() -> Self {
        Self::usual(ROWS[0].name, None).expect("the table has a first line")
    }
}

/// The requests or replies of a script exceed the limit of their memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a pipeline of {pipeline} requests is too long for {workload}, because its requests or \
     replies are long; use a smaller pipeline"
)]
pub struct TooLong {
    pipeline: usize,
    workload: String,
}

impl Workload {
    /// The built-in workload of this name.
    pub fn parse(name: &str) -> Option<Workload> {
        Self::built_in().into_iter().find(|workload| workload.name() == name)
    }

    /// Reads a workload file, and the files that it names, relative to it.
    ///
    /// # Errors
    /// What is wrong with the file, and how to correct it.
    pub fn read(path: &Path) -> Result<Workload, WorkloadError> {
        FileText::read(path, Self::of_file)
    }

    /// Reads a workload from a text that [`Workload::text`] returned; it needs no other file.
    /// `name` is its name if the text gives none.
    ///
    /// # Errors
    /// The same as those of [`Workload::read`].
    pub fn from_text(text: &str, name: &str) -> Result<Workload, WorkloadError> {
        Self::of_file(FileText::alone(text, name))
            .map_err(|because| WorkloadError { origin: name.into(), because })
    }

    fn of_file(file: FileText<'_>) -> Result<Workload, String> {
        let forms = || {
            let names = ROWS.iter().map(|row| format!("{:?}", row.name)).collect::<Vec<_>>();
            format!("write: protocol = {}", names.join(", or "))
        };
        let Some(protocol) = file.protocol()? else {
            return Err(format!("it does not name its protocol; {}", forms()));
        };
        Self::read_as(&protocol, file).unwrap_or_else(|| {
            Err(format!("the protocol {protocol:?} is not supported; {}", forms()))
        })
    }

    /// Returns the seeded exchanges of a run.
    ///
    /// # Errors
    /// Requests or replies are too long for this pipeline.
    pub fn compile(&self, order: &CompileOptions<'_>) -> Result<Compiled, TooLong> {
        self.compiled(order).map_err(|TooLarge| TooLong {
            pipeline: order.pipeline,
            workload: self.name().to_owned(),
        })
    }
}

/// Returns the kinds of operations that are counted for a workload.
fn kinds<A: Asks>(_: &A) -> &'static [Operation] {
    A::Dialect::OPERATIONS
}

/// The names of all adapters: see [`Workload::adapted`].
pub fn adapters() -> impl Iterator<Item = &'static str> {
    ROWS.iter().flat_map(|row| row.adapters.iter().copied())
}

/// Returns the protocol and scheme for the name of a URL scheme, in lower case.
pub fn of_scheme(name: &str) -> Option<(ProtocolInfo, Scheme)> {
    ROWS.iter().find_map(|row| {
        let scheme = row.schemes.iter().find(|scheme| scheme.name == name)?;
        Some((*row, *scheme))
    })
}

/// Builds a readiness probe of the server `host` for `path`, in the first protocol that has one.
pub fn readiness_probe(path: &str, host: &str) -> Option<ReadinessProbe> {
    ROWS.iter().find_map(|row| row.readiness_probe).map(|probe| probe(path, host))
}
