//! `select`: one thread, callbacks, select(2). A connection whose descriptor its set cannot hold is
//! refused.

use crate::{
    host::{Host, ServeError},
    reactor,
};
use regatta_service::Program;
use regatta_sys::select::{SET, Select};

/// Connections that it holds for certain: its set, less what a process has open besides.
pub(crate) const CONNECTIONS: u32 = SET as u32 - 24;

pub(crate) fn run<P: Program>(program: P, host: &Host) -> Result<(), ServeError> {
    reactor::run_alone(program, host, Select::new())
}
