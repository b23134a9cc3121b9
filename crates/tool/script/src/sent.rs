//! Serialisation of parts of workloads in messages to other processes.

use crate::workload::file::{FileText, Kept, WorkloadFile};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::sync::Arc;

/// A workload file as a text that needs no other file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SentFile {
    /// Its name if the text gives none.
    name: String,
    text: String,
}

/// A workload file, which is read again from its text. For `#[serde(with = "…")]`.
pub(crate) mod file {
    use super::*;

    pub fn serialize<F: WorkloadFile, S: Serializer>(
        file: &Arc<F>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let Kept { name, text, .. } = file.kept();
        SentFile { name: name.clone(), text: text.clone() }.serialize(serializer)
    }

    pub fn deserialize<'de, F: WorkloadFile, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<F>, D::Error> {
        let SentFile { name, text } = SentFile::deserialize(deserializer)?;
        F::read(FileText::alone(&text, &name)).map(Arc::new).map_err(D::Error::custom)
    }
}

/// Bytes, in base64.
#[derive(Debug, Serialize, Deserialize)]
struct Sent(#[serde(with = "bytes")] Vec<u8>);

/// Bytes, in base64. For `#[serde(with = "…")]`.
pub(crate) mod bytes {
    use super::*;

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        BASE64_STANDARD.decode(String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Bytes that may be absent, in base64. For `#[serde(with = "…")]`.
pub(crate) mod optional_bytes {
    use super::*;

    pub fn serialize<S: Serializer>(bytes: &Option<Vec<u8>>, to: S) -> Result<S::Ok, S::Error> {
        bytes.clone().map(Sent).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<u8>>, D::Error> {
        Ok(Option::<Sent>::deserialize(from)?.map(|Sent(bytes)| bytes))
    }
}

/// A regular expression that matches whole texts, as the user wrote it. For `#[serde(with = "…")]`.
pub(crate) mod pattern {
    use super::*;
    use crate::workload::regex::{as_written, regex};
    use ::regex::bytes::Regex;

    pub fn serialize<S: Serializer>(pattern: &Regex, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(as_written(pattern))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Regex, D::Error> {
        regex(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
