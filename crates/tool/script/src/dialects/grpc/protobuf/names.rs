//! Names in errors, and of types that JSON treats in a way of their own.

use prost_reflect::MessageDescriptor;

/// Maximum number of names in an error.
const MOST_NAMES: usize = 30;

/// Names in an error; `none` if there are none.
pub(super) fn listed(names: impl Iterator<Item = String>, none: &str) -> String {
    let mut names: Vec<String> = names.take(MOST_NAMES + 1).collect();
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
