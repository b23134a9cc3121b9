//! Puts the entries of maps in the order of their keys. The encoder writes them in a random order, and runs with
//! the same seed send the same bytes.

use prost_reflect::{
    DynamicMessage, Kind, MapKey, MessageDescriptor,
    prost::{
        Message,
        encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field},
    },
    prost_types::Any,
};

/// Returns the same message with sorted maps, also inside messages of any type; `None` if the bytes are none.
pub(super) fn sort_maps(of: &MessageDescriptor, bytes: &[u8]) -> Option<Vec<u8>> {
    if of.full_name() != "google.protobuf.Any" {
        return fields(of, &mut { bytes });
    }
    let mut any = Any::decode(bytes).ok()?;
    let name = any.type_url.rsplit('/').next()?;
    if let Some(inner) = of.parent_pool().get_message_by_name(name) {
        any.value = sort_maps(&inner, &any.value)?;
    }
    Some(any.encode_to_vec())
}

/// Sorts the fields of a message, or of a group up to its end.
fn fields(of: &MessageDescriptor, rest: &mut &[u8]) -> Option<Vec<u8>> {
    // Each with the number of the field and the key of the entry.
    let mut values: Vec<(u32, Option<MapKey>, Vec<u8>)> = Vec::new();
    let mut end = &[][..];
    while !rest.is_empty() {
        let start = *rest;
        let (number, wire_type) = decode_key(rest).ok()?;
        if wire_type == WireType::EndGroup {
            end = &start[..start.len() - rest.len()];
            break;
        }
        let kind = of.get_field(number).map(|field| field.kind());
        let kind = kind.or_else(|| of.get_extension(number).map(|field| field.kind()));
        let Some(Kind::Message(inner)) = kind else {
            skip_field(wire_type, number, rest, DecodeContext::default()).ok()?;
            values.push((number, None, start[..start.len() - rest.len()].to_vec()));
            continue;
        };
        let (head, mut key) = (start.len() - rest.len(), None);
        let (head, content) = if wire_type == WireType::StartGroup {
            (&start[..head], fields(&inner, rest)?)
        } else {
            let length = usize::try_from(decode_varint(rest).ok()?).ok()?;
            let head = &start[..start.len() - rest.len()];
            let (content, behind) = rest.split_at_checked(length)?;
            *rest = behind;
            if inner.is_map_entry() {
                let entry = DynamicMessage::decode(inner.clone(), content).ok()?;
                key = entry.get_field(&inner.map_entry_key_field()).into_owned().into_map_key();
            }
            (head, sort_maps(&inner, content)?)
        };
        values.push((number, key, [head, &content].concat()));
    }
    values.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    let values = values.iter().map(|(.., bytes)| &**bytes);
    Some(values.chain([end]).collect::<Vec<_>>().concat())
}
