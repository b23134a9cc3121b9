//! Workloads for memcached.

use super::{built_in, file::CacheFile, receive::Memcached, step::Exchanges};
use crate::{
    exact::Exact,
    protocol::{Asks, CompileOptions, Speech},
    script::TooLarge,
    workload::file::{FileText, WorkloadFile},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A workload for memcached.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemcachedAsks {
    /// Stores an item and reads it back on the same connection.
    Cache,
    /// A workload file.
    File(#[serde(with = "crate::sent::file")] Arc<CacheFile>),
}

impl MemcachedAsks {
    pub(super) fn read(file: FileText<'_>) -> Result<Self, String> {
        Ok(MemcachedAsks::File(Arc::new(CacheFile::read(file)?)))
    }
}

impl Asks for MemcachedAsks {
    type Dialect = Memcached;

    fn name(&self) -> &str {
        match self {
            MemcachedAsks::Cache => "cache",
            MemcachedAsks::File(file) => &file.kept.name,
        }
    }

    fn compile(&self, order: &CompileOptions<'_>) -> Result<Speech<Memcached>, TooLarge> {
        let Exchanges { mut script, expectations } = match self {
            MemcachedAsks::Cache => built_in::cache(order.seed),
            MemcachedAsks::File(file) => file.compose(order.seed),
        };
        script.close(order.pipeline)?;
        Ok(match expectations {
            None => Speech::Exact(Exact::new(script)),
            Some(expectations) => Speech::Own(Memcached::new(script, expectations)),
        })
    }

    fn text(&self) -> Option<&str> {
        match self {
            MemcachedAsks::Cache => None,
            MemcachedAsks::File(file) => Some(&file.kept.text),
        }
    }
}
