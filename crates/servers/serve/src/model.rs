//! The I/O models and their traits.

use crate::models::{fork, prefork, select, threads};

/// An I/O model: how a server waits for its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// A blocking process per connection.
    Fork,
    /// A fixed pool of blocking processes, with one connection each.
    Prefork,
    /// A blocking thread per connection.
    Threads,
    /// Stackful coroutines over epoll, a scheduler per core.
    Green,
    /// One thread, callbacks, select.
    Select,
    /// One thread, callbacks, poll.
    Poll,
    /// One thread, callbacks, epoll.
    Epoll,
    /// A process per core, callbacks, epoll.
    Cluster,
    /// A thread per core, callbacks, epoll.
    Percore,
    /// A ring and a thread per core, callbacks, io_uring.
    Uring,
    /// Tokio tasks.
    Async,
}

/// The properties by which I/O models are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// The processes or threads that it runs on, and their number.
    pub runs_on: &'static str,
    /// The system call in which it waits.
    pub waits_in: &'static str,
    /// Whether the program's calls seem to block.
    pub blocking: bool,
    /// Whether the program must be written as callbacks.
    pub callbacks: bool,
    /// Maximum number of connections, if something other than memory and descriptors limits it.
    pub limit: Option<u32>,
}

impl Model {
    /// All models, in the order of the catalogue.
    pub const ALL: [Model; 11] = [
        Model::Fork,
        Model::Prefork,
        Model::Threads,
        Model::Green,
        Model::Select,
        Model::Poll,
        Model::Epoll,
        Model::Cluster,
        Model::Percore,
        Model::Uring,
        Model::Async,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Model::Fork => "fork",
            Model::Prefork => "prefork",
            Model::Threads => "threads",
            Model::Green => "green",
            Model::Select => "select",
            Model::Poll => "poll",
            Model::Epoll => "epoll",
            Model::Cluster => "cluster",
            Model::Percore => "percore",
            Model::Uring => "uring",
            Model::Async => "async",
        }
    }

    /// Returns the properties of the model.
    pub fn traits(self) -> Traits {
        let blocking = |runs_on, waits_in| Traits {
            runs_on,
            waits_in,
            blocking: true,
            callbacks: false,
            limit: None,
        };
        let callbacks = |runs_on, waits_in| Traits {
            runs_on,
            waits_in,
            blocking: false,
            callbacks: true,
            limit: None,
        };
        match self {
            Model::Fork => Traits {
                limit: Some(fork::CONNECTIONS),
                ..blocking("process per connection", "read")
            },
            Model::Prefork => {
                Traits { limit: Some(prefork::WORKERS), ..blocking("256 processes", "read") }
            }
            Model::Threads => Traits {
                limit: Some(threads::CONNECTIONS),
                ..blocking("thread per connection", "read")
            },
            Model::Green => blocking("thread per core", "epoll_wait"),
            Model::Select => {
                Traits { limit: Some(select::CONNECTIONS), ..callbacks("one thread", "select") }
            }
            Model::Poll => callbacks("one thread", "poll"),
            Model::Epoll => callbacks("one thread", "epoll_wait"),
            Model::Cluster => callbacks("process per core", "epoll_wait"),
            Model::Percore => callbacks("thread per core", "epoll_wait"),
            Model::Uring => callbacks("thread per core", "io_uring_enter"),
            Model::Async => {
                Traits { callbacks: false, ..callbacks("thread per core", "epoll_wait") }
            }
        }
    }

    /// Returns why it does not run on this machine, and what to do; `None` if it does.
    pub fn refused(self) -> Option<String> {
        if self == Model::Uring { regatta_sys::uring::refused() } else { None }
    }
}
