//! Workloads in the line protocol.

use super::{
    built_in::{Reply, dialogue, integers},
    file::LineFile,
    receive::Lines,
};
use crate::{
    exact::Exact,
    protocol::{Asks, CompileOptions, Speech},
    script::{Script, TooLarge},
    workload::file::{FileText, WorkloadFile},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A workload of lines.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineAsks {
    /// Decimal 64-bit integers; the reply is exactly twice the request.
    Double,
    /// The same requests; the reply is the request.
    Echo,
    /// First name → `last name?`, last name → `hello FIRST LAST`, alternating.
    Dialogue,
    /// A workload file.
    File(#[serde(with = "crate::sent::file")] Arc<LineFile>),
    /// The requests of a workload file; the reply is the request.
    EchoOf(#[serde(with = "crate::sent::file")] Arc<LineFile>),
}

impl LineAsks {
    pub(super) fn read(file: FileText<'_>) -> Result<Self, String> {
        Ok(LineAsks::File(Arc::new(LineFile::read(file)?)))
    }
}

impl Asks for LineAsks {
    type Dialect = Lines;

    fn name(&self) -> &str {
        match self {
            LineAsks::Double => "double",
            LineAsks::Echo => "echo",
            LineAsks::Dialogue => "dialogue",
            LineAsks::File(file) | LineAsks::EchoOf(file) => &file.kept.name,
        }
    }

    fn compile(&self, order: &CompileOptions<'_>) -> Result<Speech<Lines>, TooLarge> {
        let exact = |mut script: Script| {
            script.close(order.pipeline)?;
            Ok(Speech::Exact(Exact::new(script)))
        };
        match self {
            LineAsks::Double => exact(integers(order.seed, Reply::Double)),
            LineAsks::Echo => exact(integers(order.seed, Reply::Same)),
            LineAsks::Dialogue => exact(dialogue(order.seed)),
            LineAsks::File(file) => match file.compose(order.seed, false) {
                (script, None) => exact(script),
                (mut script, Some(patterns)) => {
                    script.close(order.pipeline)?;
                    Ok(Speech::Own(Lines::new(script, patterns)))
                }
            },
            LineAsks::EchoOf(file) => exact(file.compose(order.seed, true).0),
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            LineAsks::File(file) => Some(&file.kept.text),
            _ => None,
        }
    }

    fn echoed(&self) -> Option<Self> {
        Some(match self {
            LineAsks::File(file) | LineAsks::EchoOf(file) => LineAsks::EchoOf(file.clone()),
            LineAsks::Double | LineAsks::Echo | LineAsks::Dialogue => LineAsks::Echo,
        })
    }
}
