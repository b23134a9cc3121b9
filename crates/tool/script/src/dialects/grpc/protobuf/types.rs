//! The types of messages, from `.proto` files.

use super::{
    Expectation, Numbered, descriptors, json,
    names::{SHOWN_ERROR, cut_to, listed},
    proto,
};
use crate::{sent, workload::disk};
use prost_reflect::{
    DescriptorPool, MethodDescriptor, prost::Message, prost_types::FileDescriptorSet,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::{fmt, path::Path, sync::Arc};

/// Maximum number of bytes of descriptors.
const MOST_BYTES: usize = 4 << 20;

fn check_length(bytes: usize) -> Result<(), String> {
    if bytes > MOST_BYTES {
        return Err(format!(
            "the descriptors of the .proto files have {bytes} bytes; expected at most {MOST_BYTES}"
        ));
    }
    Ok(())
}

/// The services and messages of a `.proto` file and of all that it imports. Clones share them.
#[derive(Clone)]
pub struct Types(Arc<Shared>);

struct Shared {
    /// A `FileDescriptorSet`, encoded. It has no source code, and only options that messages depend on.
    set: Vec<u8>,
    pool: DescriptorPool,
}

impl Types {
    /// Reads a `.proto` file and all that it imports: at most 4 MiB and 500 files. An import is looked up in the
    /// folder of the file, and then in the folders above it that the path names. The well-known types are built
    /// in.
    ///
    /// # Errors
    /// What is wrong with a file, with its line.
    pub fn read(path: &Path) -> Result<Types, String> {
        let Some(name) = path.file_name().map(|name| name.to_string_lossy()) else {
            return Err(format!(
                "{} is not the name of a file; expected FILE.proto",
                path.display()
            ));
        };
        let folders: Vec<&Path> = path.ancestors().skip(1).collect();
        Self::compile(&name, &folders, &mut disk::read_bytes)
    }

    /// Compiles the file of this name in the first of these folders. `read` returns the content of a file.
    pub(in crate::dialects::grpc) fn compile(
        name: &str,
        folders: &[&Path],
        read: &mut dyn FnMut(&Path) -> Result<Vec<u8>, String>,
    ) -> Result<Types, String> {
        Self::of_set(proto::compile(name, &mut |name| proto::find(name, folders, read))?)
    }

    fn of_bytes(set: &[u8]) -> Result<Types, String> {
        check_length(set.len())?;
        Self::of_set(descriptors::read(set)?)
    }

    /// The types of descriptors that have been checked.
    fn of_set(set: FileDescriptorSet) -> Result<Types, String> {
        let bytes = set.encode_to_vec();
        check_length(bytes.len())?;
        let pool = DescriptorPool::from_file_descriptor_set(set);
        let pool = pool.map_err(|error| cut_to(SHOWN_ERROR, &format!("{error:?}")))?;
        Ok(Types(Arc::new(Shared { set: bytes, pool })))
    }

    /// Checks that the method at this path is known, takes one message, and returns a stream of them or one.
    ///
    /// # Errors
    /// What is known instead.
    pub fn check_method(&self, path: &str, is_stream: bool) -> Result<(), String> {
        let method = self.method(path)?;
        let why = match (method.is_client_streaming(), method.is_server_streaming(), is_stream) {
            (true, ..) => "takes a stream of messages; expected one that takes one message",
            (_, true, false) => {
                "returns a stream of messages; expected a unary method, or `--stream` (`stream = true`)"
            }
            (_, false, true) => "returns one message; expected one that returns a stream",
            _ => return Ok(()),
        };
        Err(format!("the method {path} {why}"))
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
    pub(in crate::dialects::grpc) fn expectation(
        &self,
        path: &str,
        message: &[u8],
    ) -> Result<Expectation, String> {
        Expectation::new(&self.method(path)?.output(), message)
    }

    /// What each message of a stream that the method at this path returns must be, by the fields of this JSON. A
    /// stream has `messages` of them, if that is known.
    pub(in crate::dialects::grpc) fn numbered(
        &self,
        path: &str,
        json: &str,
        messages: Option<u32>,
    ) -> Result<Numbered, String> {
        Numbered::new(&self.method(path)?.output(), json, messages)
    }

    /// The encoded descriptors.
    #[cfg(test)]
    pub(super) fn set(&self) -> &[u8] {
        &self.0.set
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
        Ok(found)
    }
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
        Types::of_bytes(&sent::bytes::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
