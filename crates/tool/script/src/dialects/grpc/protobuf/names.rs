//! Names in errors, and of types that JSON treats in a way of their own.

use prost_reflect::MessageDescriptor;

/// Maximum number of names in an error.
const MOST_NAMES: usize = 30;

/// Maximum number of characters of a name that are shown.
const SHOWN: usize = 200;

/// Maximum number of characters of an error of a library that are shown.
pub(super) const SHOWN_ERROR: usize = 1_000;

/// A name in an error; a long one is cut.
pub(super) fn cut(name: &str) -> String {
    cut_to(SHOWN, name)
}

/// A text in an error, with at most this number of characters.
pub(super) fn cut_to(longest: usize, text: &str) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}... ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

/// Names in an error; `none` if there are none.
pub(super) fn listed(names: impl Iterator<Item = String>, none: &str) -> String {
    let mut names: Vec<String> = names.take(MOST_NAMES + 1).map(|name| cut(&name)).collect();
    if names.len() > MOST_NAMES {
        names[MOST_NAMES] = "...".into();
    }
    if names.is_empty() { none.into() } else { names.join(", ") }
}

/// Whether JSON writes messages of this type in a form of its own.
pub(super) fn is_well_known(of: &MessageDescriptor) -> bool {
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
pub(super) fn is_wrapper(of: &MessageDescriptor) -> bool {
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
