//! Messages by their fields: `.proto` files, messages as JSON, and the comparison of messages. One message of
//! Protocol Buffers has many encodings, so bytes alone do not show whether a message is right.
//!
//! `proto` compiles `.proto` files into descriptors, which [`Types`] has. `json` reads a message as JSON, after
//! `members` has refused what it would read in another way than written. A message that arrives is compared
//! by `expectation`: `wire` refuses what the descriptors do not describe, and `compare` finds the first field
//! that differs.

mod compare;
mod expectation;
mod field;
mod json;
mod members;
mod proto;
#[cfg(test)]
mod tests;
mod wire;

pub(super) use expectation::Expectation;

use crate::{sent, workload::disk};
use prost_reflect::{DescriptorPool, MessageDescriptor, MethodDescriptor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::{fmt, path::Path, sync::Arc};

/// Maximum number of bytes of descriptors.
const MOST_BYTES: usize = 4 << 20;

/// Maximum number of names in an error.
const MOST_NAMES: usize = 30;

/// The services and messages of a `.proto` file and of all that it imports. Clones share them.
#[derive(Clone)]
pub struct Types(Arc<Shared>);

struct Shared {
    /// A `FileDescriptorSet`, encoded.
    set: Vec<u8>,
    pool: DescriptorPool,
}

impl Types {
    /// Reads a `.proto` file and all that it imports: at most 4 MiB and 500 files. An import is looked up in the folder
    /// of the file, and then in the folders above it, as far as the path names them. The well-known types are
    /// built in.
    ///
    /// # Errors
    /// What is wrong with a file, with its line.
    pub fn read(path: &Path) -> Result<Types, String> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let folders: Vec<&Path> = path.ancestors().skip(1).collect();
        Self::compile(&name, &folders, &mut disk::read_bytes)
    }

    /// Compiles the file of this name in the first of these folders. `read` returns the content of a file.
    pub(super) fn compile(
        name: &str,
        folders: &[&Path],
        read: &mut dyn FnMut(&Path) -> Result<Vec<u8>, String>,
    ) -> Result<Types, String> {
        Self::of_set(proto::compile(name, &mut |name| proto::find(name, folders, read))?)
    }

    fn of_set(set: Vec<u8>) -> Result<Types, String> {
        if set.len() > MOST_BYTES {
            return Err(format!(
                "the descriptors of the .proto files have {} bytes; expected at most {MOST_BYTES}",
                set.len()
            ));
        }
        let pool = DescriptorPool::decode(&set[..]).map_err(|error| format!("{error:?}"))?;
        Ok(Types(Arc::new(Shared { set, pool })))
    }

    /// Checks that the method at this path is known, and unary.
    ///
    /// # Errors
    /// What is known instead.
    pub fn check_method(&self, path: &str) -> Result<(), String> {
        self.method(path).map(drop)
    }

    /// Encodes a message for the method at this path, from its JSON.
    ///
    /// # Errors
    /// What is wrong with the path or the JSON.
    pub fn message(&self, path: &str, json: &str) -> Result<Vec<u8>, String> {
        json::encode(&self.method(path)?.input(), json)
    }

    /// Encodes a message that the method at this path returns, from its JSON.
    ///
    /// # Errors
    /// What is wrong with the path or the JSON.
    pub fn reply(&self, path: &str, json: &str) -> Result<Vec<u8>, String> {
        json::encode(&self.method(path)?.output(), json)
    }

    /// Checks that the empty message is one for the method at this path.
    ///
    /// # Errors
    /// Which field is missing in it.
    pub fn check_empty(&self, path: &str) -> Result<(), String> {
        json::check_empty(&self.method(path)?.input())
    }

    /// What a reply of the method at this path must be, by the fields of this message.
    pub(super) fn expectation(&self, path: &str, message: &[u8]) -> Result<Expectation, String> {
        Expectation::new(&self.method(path)?.output(), message)
    }

    fn method(&self, path: &str) -> Result<MethodDescriptor, String> {
        let (service, method) =
            path.strip_prefix('/').and_then(|path| path.split_once('/')).unwrap_or_default();
        let Some(service) = self.0.pool.get_service_by_name(service) else {
            let names = self.0.pool.services().map(|service| service.full_name().to_owned());
            return Err(format!(
                "the service {service} is not in the .proto files, which have {}",
                listed(names, "no service")
            ));
        };
        let Some(found) = service.methods().find(|known| known.name() == method) else {
            let names = service.methods().map(|method| method.name().to_owned());
            return Err(format!(
                "the service {} has no method {method}; it has {}",
                service.full_name(),
                listed(names, "none")
            ));
        };
        if found.is_client_streaming() || found.is_server_streaming() {
            return Err(format!("the method {path} streams messages; expected a unary method"));
        }
        Ok(found)
    }
}

/// Names in an error; `none` if there are none.
fn listed(names: impl Iterator<Item = String>, none: &str) -> String {
    let mut names: Vec<String> = names.take(MOST_NAMES + 1).collect();
    if names.len() > MOST_NAMES {
        names[MOST_NAMES] = "...".into();
    }
    if names.is_empty() { none.into() } else { names.join(", ") }
}

/// Whether JSON writes messages of this type in a form of its own.
fn is_well_known(of: &MessageDescriptor) -> bool {
    is_wrapper(of)
        || matches!(
            of.full_name(),
            "google.protobuf.Any"
                | "google.protobuf.Timestamp"
                | "google.protobuf.Duration"
                | "google.protobuf.Struct"
                | "google.protobuf.FieldMask"
                | "google.protobuf.ListValue"
                | "google.protobuf.Value"
                | "google.protobuf.Empty"
        )
}

/// Whether this is one of the types that wrap a single value.
fn is_wrapper(of: &MessageDescriptor) -> bool {
    let wrapped =
        of.full_name().strip_prefix("google.protobuf.").and_then(|name| name.strip_suffix("Value"));
    matches!(
        wrapped,
        Some(
            "Float"
                | "Double"
                | "Int32"
                | "Int64"
                | "UInt32"
                | "UInt64"
                | "Bool"
                | "String"
                | "Bytes"
        )
    )
}

impl fmt::Debug for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Types").field(&self.0.set).finish()
    }
}

impl PartialEq for Types {
    fn eq(&self, other: &Types) -> bool {
        self.0.set == other.0.set
    }
}

impl Eq for Types {}

impl Serialize for Types {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        sent::bytes::serialize(&self.0.set, serializer)
    }
}

impl<'de> Deserialize<'de> for Types {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Types, D::Error> {
        Types::of_set(sent::bytes::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
