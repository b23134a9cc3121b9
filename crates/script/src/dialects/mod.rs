//! The protocols that a load speaks: one folder and one line of the table each. A folder says how the
//! protocol is written and checked; nothing outside of these folders knows any of them.

pub mod http;
pub mod line;
pub mod memcached;
pub mod redis;
pub mod websocket;

use crate::{
    dialect::Dialect,
    exact::Exact,
    knock::Knock,
    protocol::{Asks, Canned, Order, Place, Protocol, Row, Sample, Scheme, Speech},
    script::{Script, TooLarge},
    workload::file::{FileText, WorkloadError},
};
use regatta_record::{AskedWorkload, Heads, Operation};
use std::path::Path;

/// Makes the table: for each line a variant of [`Workload`] and one of [`Compiled`].
macro_rules! table {
    ($($Name:ident: $Protocol:ty,)*) => {
        /// The protocols.
        pub const ROWS: &[Row] = &[$(<$Protocol as Protocol>::ROW),*];

        /// What is sent, and what must come back.
        #[derive(Clone, Debug)]
        pub enum Workload {
            $(
                #[doc = concat!("See [`", stringify!($Protocol), "`].")]
                $Name(<$Protocol as Protocol>::Asks),
            )*
        }

        /// A workload that was compiled: its exchanges, and how what comes is checked.
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
            /// All that are built in.
            pub fn built_in() -> Vec<Workload> {
                let all = [$(
                    <$Protocol as Protocol>::built_in().into_iter().map(Workload::$Name).collect(),
                )*];
                all.into_iter().flat_map(|of_one: Vec<Workload>| of_one).collect()
            }

            /// What is asked in the protocol of this name where nobody says what; `path` is that of
            /// the URL, with its query. `None` if there is no such protocol.
            pub fn usual(protocol: &str, path: Option<&str>) -> Option<Workload> {
                $(if protocol == <$Protocol as Protocol>::ROW.name {
                    return Some(Workload::$Name(<$Protocol as Protocol>::usual(path)));
                })*
                None
            }

            fn read_as(protocol: &str, file: FileText<'_>) -> Option<Result<Workload, String>> {
                $(if protocol == <$Protocol as Protocol>::ROW.name {
                    return Some(<$Protocol as Protocol>::read(file).map(Workload::$Name));
                })*
                None
            }

            /// The protocol in which it is asked.
            pub fn protocol(&self) -> Row {
                match self { $(Workload::$Name(_) => <$Protocol as Protocol>::ROW),* }
            }

            /// The name as on the command line and in manifests; of a file, its own.
            pub fn name(&self) -> &str {
                match self { $(Workload::$Name(asks) => asks.name()),* }
            }

            /// The name of what a server must serve to be asked this, as in manifests.
            pub fn service(&self) -> &str {
                match self { $(Workload::$Name(asks) => asks.service()),* }
            }

            /// The kind of operation that costs are per.
            pub fn cost_per(&self) -> Operation {
                match self { $(
                    Workload::$Name(asks) => kinds(asks)[asks.cost_per()].clone()
                ),* }
            }

            /// The kind of operation whose latency a capacity is limited by.
            pub fn limited(&self) -> Operation {
                match self { $(
                    Workload::$Name(asks) => kinds(asks)[asks.limited()].clone()
                ),* }
            }

            /// Whether servers send unasked what follows from it.
            pub fn is_pushed(&self) -> bool {
                match self { $(Workload::$Name(asks) => kinds(asks).len() > 1),* }
            }

            /// How many words of memory several load processes share.
            pub fn shared_words(&self) -> usize {
                match self { $(Workload::$Name(asks) => asks.shared_words()),* }
            }

            /// The whole text of its workload file, which needs no other file; `None` for others, and
            /// where its requests are asked of a server that sends them back.
            pub fn text(&self) -> Option<&str> {
                match self { $(Workload::$Name(asks) => asks.text()),* }
            }

            /// The same requests of a server that sends back what it gets; `None` where that is no
            /// reply.
            pub fn echoed(&self) -> Option<Workload> {
                match self { $(Workload::$Name(asks) => asks.echoed().map(Workload::$Name)),* }
            }

            /// As many requests, and bytes of requests, for a server that sends the same bytes for each
            /// of them without looking, and what that server needs to know. `None` where there is no
            /// such reply.
            pub fn canned(&self, place: Place<'_>) -> Option<(Workload, Canned)> {
                match self { $(
                    Workload::$Name(asks) => {
                        asks.canned(place).map(|(asks, canned)| (Workload::$Name(asks), canned))
                    }
                )* }
            }

            /// The same with these heads; `None` where they are not built in.
            pub fn with_heads(&self, heads: Heads) -> Option<Workload> {
                match self { $(
                    Workload::$Name(asks) => asks.with_heads(heads).map(Workload::$Name)
                ),* }
            }

            /// The same of a server that speaks the protocol in its own way, by the name of the
            /// adapter; `None` where there is no such adapter.
            pub fn adapted(&self, adapter: &str) -> Option<Workload> {
                match self { $(
                    Workload::$Name(asks) => asks.adapted(adapter).map(Workload::$Name)
                ),* }
            }

            /// Whether a connection sends more than its requests before the first of them, in a load
            /// that counts requests: see [`Asks::prepares`].
            pub fn prepares(&self) -> bool {
                match self { $(Workload::$Name(asks) => asks.prepares()),* }
            }

            /// The same with keys that all connections share, and a check of what all of them saw;
            /// `None` where there are no such keys.
            pub fn sharing_keys(&self) -> Option<Workload> {
                match self { $(
                    Workload::$Name(asks) => asks.sharing_keys().map(Workload::$Name)
                ),* }
            }

            /// A request to see what a reply is like; `None` where nothing is told of replies.
            pub fn sample(&self, place: Place<'_>) -> Option<Sample> {
                match self { $(Workload::$Name(asks) => asks.sample(place)),* }
            }

            /// The same with `n` rounds of work asked of each request; `None` where requests have no
            /// such number.
            pub fn with_n(&self, n: u32) -> Option<Workload> {
                match self { $(Workload::$Name(asks) => asks.with_n(n).map(Workload::$Name)),* }
            }

            /// The workload in a message to another process.
            pub fn to_message(&self) -> AskedWorkload {
                let protocol = self.protocol().name.to_owned();
                let asks = match self { $(Workload::$Name(asks) => serde_json::to_value(asks)),* };
                AskedWorkload { protocol, asks: asks.expect("all keys in a workload are text") }
            }

            /// The workload that [`Workload::to_message`] put into a message.
            ///
            /// # Errors
            /// What is wrong with the message, in one sentence.
            pub fn of_message(message: &AskedWorkload) -> Result<Workload, String> {
                let asks = message.asks.clone();
                $(if message.protocol == <$Protocol as Protocol>::ROW.name {
                    return serde_json::from_value(asks).map(Workload::$Name).map_err(|error| {
                        format!("the workload in the message cannot be read: {error}")
                    });
                })*
                Err(format!("the protocol {:?} is not spoken", message.protocol))
            }

            fn compiled(&self, order: &Order<'_>) -> Result<Compiled, TooLarge> {
                match self { $(
                    Workload::$Name(asks) => Ok(match asks.compile(order)? {
                        Speech::Exact(exact) => Compiled::Exact(exact),
                        Speech::Own(dialect) => Compiled::$Name(dialect),
                    }),
                )* }
            }
        }

        impl Compiled {
            /// Its exchanges.
            pub fn script(&self) -> &Script {
                match self {
                    Compiled::Exact(exact) => exact.script(),
                    $(Compiled::$Name(dialect) => dialect.script(),)*
                }
            }

            /// Hands the dialect to a visitor, which is compiled for each.
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
}

/// Does something with a dialect, whichever it is.
pub trait Visitor {
    /// What comes of it.
    type Out;

    /// Does it.
    fn visit<D: Dialect>(self, dialect: &D) -> Self::Out;
}

/// What is asked where nobody says anything: the usual of the first protocol.
impl Default for Workload {
    fn default() -> Self {
        Self::usual(ROWS[0].name, None).expect("the table has a first line")
    }
}

/// A script does not fit into memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{pipeline} requests of {workload} outstanding on a connection are too many for requests or \
     replies that long; use a smaller pipeline"
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
    /// What is wrong with it, and how it is written rightly.
    pub fn read(path: &Path) -> Result<Workload, WorkloadError> {
        FileText::read(path, Self::of_file)
    }

    /// The workload of a text that [`Workload::text`] gave; it needs no other file. `name` is its
    /// name where the text has none.
    ///
    /// # Errors
    /// As those of [`Workload::read`].
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
            return Err(format!("it does not say its protocol; {}", forms()));
        };
        Self::read_as(&protocol, file)
            .unwrap_or_else(|| Err(format!("the protocol {protocol:?} is not spoken; {}", forms())))
    }

    /// The seeded exchanges of a run.
    ///
    /// # Errors
    /// Where requests or replies are too long for that many outstanding.
    pub fn compile(&self, order: &Order<'_>) -> Result<Compiled, TooLong> {
        self.compiled(order).map_err(|TooLarge| TooLong {
            pipeline: order.pipeline,
            workload: self.name().to_owned(),
        })
    }
}

/// The kinds of operations that are counted of what is asked so.
fn kinds<A: Asks>(_: &A) -> &'static [Operation] {
    A::Dialect::OPERATIONS
}

/// The names of all adapters: see [`Workload::adapted`].
pub fn adapters() -> impl Iterator<Item = &'static str> {
    ROWS.iter().flat_map(|row| row.adapters.iter().copied())
}

/// The protocol of this URL scheme, whose name is in lower case.
pub fn of_scheme(name: &str) -> Option<(Row, Scheme)> {
    ROWS.iter().find_map(|row| {
        let scheme = row.schemes.iter().find(|scheme| scheme.name == name)?;
        Some((*row, *scheme))
    })
}

/// How to ask the server of `host` for `path`, to see whether it is ready: in the first protocol that
/// has paths.
pub fn knock(path: &str, host: &str) -> Option<Knock> {
    ROWS.iter().find_map(|row| row.knock).map(|knock| knock(path, host))
}
