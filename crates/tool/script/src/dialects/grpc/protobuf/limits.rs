//! How long a message may be, and what it may cost to decode it, if it can still be equal to the expected one.

use super::{cost::Cost, field::Field, wire::decode};
use crate::dialects::grpc::rules::LONGEST_MESSAGE;
use prost_reflect::{DynamicMessage, ReflectMessage, Value, prost_types};

/// How much more than the expected message an equal one may be: in bytes, and decoded. Other encodings of a
/// message are longer if its numbers are not packed, if fields are sent several times, and if lengths and
/// numbers have more bytes than they need.
const FACTOR: u64 = 8;

/// This many bytes are right in addition.
const MORE_BYTES: u64 = 1 << 16;

/// What a message may cost in addition.
const MORE: Cost = Cost::of_bytes(16 << 20);

/// Maximum number of bytes of a field of at most 8 bytes, with its number.
const LONGEST_FIELD: u64 = 16;

/// The most that a message can have which is equal to another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Number of bytes of its encoding.
    pub bytes: usize,
    pub cost: Cost,
}

impl Limits {
    /// The limits of messages that are equal to this one, which has this number of bytes.
    pub fn of(message: &DynamicMessage, bytes: usize) -> Limits {
        let Cost(cost) = of_message(message);
        // An encoder may write defaults: at most one for each unit of the costs.
        let bytes = FACTOR * bytes as u64 + LONGEST_FIELD * cost + MORE_BYTES;
        Limits { bytes: LONGEST_MESSAGE.min(bytes as usize), cost: Cost(FACTOR * cost + MORE.0) }
    }
}

/// The cost of a message with all defaults that an encoder may write.
fn of_message(message: &DynamicMessage) -> Cost {
    let of = message.descriptor();
    let fields = Field::all(&of).filter_map(|field| field.value(message));
    let fields: u64 = fields.map(|value| of_value(&value).0).sum();
    Cost(Cost::MESSAGE.0 + fields + of_any(message).0)
}

fn of_value(value: &Value) -> Cost {
    match value {
        Value::Message(message) => of_message(message),
        Value::List(values) => Cost(values.iter().map(|value| of_value(value).0).sum()),
        Value::Map(entries) => {
            let entry = Cost::MESSAGE.0 + Cost::SCALAR.0;
            Cost(entries.values().map(|value| entry + of_value(value).0).sum())
        }
        _ => Cost::SCALAR,
    }
}

/// The cost of the message inside a message of any type; 0 if it is another message.
fn of_any(message: &DynamicMessage) -> Cost {
    let inner = any(message).and_then(|any| {
        let name = any.type_url.rsplit('/').next().unwrap_or_default();
        let of = message.descriptor().parent_pool().get_message_by_name(name)?;
        decode(&of, &any.value, Cost::MOST).ok()
    });
    inner.map_or(Cost(0), |inner| of_message(&inner))
}

/// A message of any type; `None` if it is another message.
pub(super) fn any(message: &DynamicMessage) -> Option<prost_types::Any> {
    let is_any = message.descriptor().full_name() == "google.protobuf.Any";
    if is_any { message.transcode_to().ok() } else { None }
}
