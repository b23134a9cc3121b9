//! Messages from JSON, as the mapping of Protocol Buffers writes them (protobuf.dev/programming-guides/json).

use super::{
    compare,
    cost::Cost,
    field::Field,
    members,
    names::{SHOWN_ERROR, cut_to},
    order::sort_maps,
    wire::decode,
};
use crate::dialects::grpc::rules;
use prost_reflect::{
    DynamicMessage, MessageDescriptor, ReflectMessage, Value, prost::Message as _,
};
use serde_json::Deserializer;

/// Encodes a message of this type from its JSON.
///
/// # Errors
/// What is wrong with the JSON, and where.
pub(super) fn encode(of: &MessageDescriptor, json: &str) -> Result<Vec<u8>, String> {
    members::check(of, json)?;
    let mut text = Deserializer::from_str(json);
    let message = DynamicMessage::deserialize(of.clone(), &mut text)
        .and_then(|message| text.end().map(|()| message))
        .map_err(|error| {
            let error = cut_to(SHOWN_ERROR, &error.to_string());
            format!("no JSON of a message {}: {error}", of.full_name())
        })?;
    check_required(&message)?;
    let bytes = message.encode_to_vec();
    let bytes = sort_maps(of, &bytes).ok_or("the encoding of the message is no message")?;
    rules::check_length(bytes.len())?;
    let again = decode(of, &bytes, Cost::MOST)?;
    match compare::difference(&message, &again) {
        None => Ok(bytes),
        Some(lost) => Err(format!(
            "`{}` cannot be {} in JSON; write the message as hex digits",
            lost.path, lost.expected
        )),
    }
}

/// Checks that the empty message is one of this type.
///
/// # Errors
/// The required field.
pub(super) fn check_empty(of: &MessageDescriptor) -> Result<(), String> {
    check_required(&DynamicMessage::new(of.clone()))
}

/// Checks that required fields are set.
fn check_required(message: &DynamicMessage) -> Result<(), String> {
    for field in Field::all(&message.descriptor()) {
        match field.value(message).as_deref() {
            None if field.is_required() => {
                let name = message.descriptor().full_name().to_owned();
                return Err(format!("the required field `{}` of {name} is missing", field.name()));
            }
            Some(value) => check_required_in(value)?,
            None => {}
        }
    }
    Ok(())
}

fn check_required_in(value: &Value) -> Result<(), String> {
    match value {
        Value::Message(message) => check_required(message),
        Value::List(values) => values.iter().try_for_each(check_required_in),
        Value::Map(entries) => entries.values().try_for_each(check_required_in),
        _ => Ok(()),
    }
}
