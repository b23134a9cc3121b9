//! Workloads for Redis.

use super::{built_in, file::MixFile, reply::receive::Redis};
use crate::{
    protocol::{Asks, CompileOptions, Speech},
    script::TooLarge,
    workload::file::{FileText, WorkloadFile},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A workload for Redis.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RedisAsks {
    what: What,
    /// Whether all clients use the same keys, and their histories are checked together.
    shares_keys: bool,
}

/// The commands of a workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum What {
    /// A mix of all commands.
    Shard,
    /// A workload file.
    File(#[serde(with = "crate::sent::file")] Arc<MixFile>),
}

impl RedisAsks {
    /// Returns the built-in workload.
    pub(super) fn shard() -> Self {
        RedisAsks { what: What::Shard, shares_keys: false }
    }

    pub(super) fn read(file: FileText<'_>) -> Result<Self, String> {
        let file = Arc::new(MixFile::read(file)?);
        Ok(RedisAsks { what: What::File(file), shares_keys: false })
    }

    fn compiled(&self, file: &MixFile, order: &CompileOptions<'_>) -> Result<Redis, TooLarge> {
        let mut exchanges = file.mix.compose(order.seed, &file.kept.lists);
        exchanges.script.close(order.pipeline)?;
        Ok(Redis::new(exchanges, &file.mix, order.place.path, self.shares_keys))
    }
}

impl Asks for RedisAsks {
    type Dialect = Redis;

    fn name(&self) -> &str {
        match &self.what {
            What::Shard => "shard",
            What::File(file) => &file.kept.name,
        }
    }

    fn service(&self) -> &str {
        "shard"
    }

    fn compile(&self, order: &CompileOptions<'_>) -> Result<Speech<Redis>, TooLarge> {
        let dialect = match &self.what {
            What::Shard => self.compiled(&built_in::shard(), order),
            What::File(file) => self.compiled(file, order),
        };
        dialect.map(Speech::Own)
    }

    fn text(&self) -> Option<&str> {
        match &self.what {
            What::Shard => None,
            What::File(file) => Some(&file.kept.text),
        }
    }

    fn prepares(&self) -> bool {
        !self.shares_keys
    }

    fn sharing_keys(&self) -> Option<Self> {
        Some(RedisAsks { shares_keys: true, ..self.clone() })
    }
}
