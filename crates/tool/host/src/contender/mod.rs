//! The life of a contender: start, readiness, output, stop. Its supervisor, a process of its own, leaves none of its
//! processes behind (`supervise`). `start` spawns a process, in its control group and pinned to its CPUs; `container`
//! does that for an image.

pub(crate) mod attached;
pub(crate) mod container;
pub(crate) mod output;
pub(crate) mod ownership;
pub(crate) mod ready;
pub(crate) mod roles;
pub(crate) mod running;
pub(crate) mod running_url;
pub(crate) mod start;
pub(crate) mod stop_report;
pub(crate) mod supervise;
pub(crate) mod ulimits;
pub(crate) mod wire;
