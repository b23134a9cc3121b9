//! The first difference between two messages of the same type.
//!
//! Messages are equal if every decoder sees the same in them: the order of fields and of the entries of maps
//! does not matter, and neither does packing. A field without presence that is absent has its default. A field
//! with presence must be set in both or in none. Floating-point numbers are equal if they have the same bits, or
//! if both are NaN: 0 and -0 differ.

use super::{
    cost::Cost,
    field::Field,
    limits::{Limits, any},
    wire::decode,
};
use crate::dialects::grpc::hex::in_hex;
use prost_reflect::{DynamicMessage, Kind, MapKey, ReflectMessage, Value};
use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    fmt::Write,
};

/// Maximum number of characters of a text that are shown.
const SHOWN: usize = 100;

/// A difference.
#[derive(Debug, PartialEq)]
pub(super) struct Difference {
    /// The path of the field, e.g. `items[2].price`.
    pub path: String,
    /// What it is: `7`, `not set`.
    pub received: String,
    pub expected: String,
}

/// Finds the first difference.
pub(super) fn difference(
    expected: &DynamicMessage,
    received: &DynamicMessage,
) -> Option<Difference> {
    Comparison::default().messages(expected, received).err().map(|difference| *difference)
}

/// A comparison, at a path.
#[derive(Default)]
struct Comparison {
    path: String,
}

type Outcome = Result<(), Box<Difference>>;

impl Comparison {
    fn messages(&mut self, expected: &DynamicMessage, received: &DynamicMessage) -> Outcome {
        match (any(expected), any(received)) {
            (Some(a), Some(b)) if a.type_url == b.type_url && a.value != b.value => {
                self.anys((expected, &a.value), (received, &b.value), &a.type_url)
            }
            _ => self.fields(expected, received),
        }
    }

    fn fields(&mut self, expected: &DynamicMessage, received: &DynamicMessage) -> Outcome {
        for field in Field::all(&expected.descriptor()) {
            let name = if self.path.is_empty() {
                field.name().to_owned()
            } else {
                format!(".{}", field.name())
            };
            self.at(&name, |at| match (field.value(expected), field.value(received)) {
                (None, None) => Ok(()),
                (Some(expected), Some(received)) => at.values(&field.kind(), &expected, &received),
                (expected, received) => {
                    let shown = |value: Option<Cow<'_, Value>>| match value {
                        Some(value) => shown(&field.kind(), &value),
                        None => "not set".into(),
                    };
                    at.differ(shown(expected), shown(received))
                }
            })?;
        }
        Ok(())
    }

    fn values(&mut self, kind: &Kind, expected: &Value, received: &Value) -> Outcome {
        let is_equal = match (expected, received) {
            (Value::Message(expected), Value::Message(received)) => {
                return self.messages(expected, received);
            }
            (Value::List(expected), Value::List(received)) => {
                return self.lists(kind, expected, received);
            }
            (Value::Map(expected), Value::Map(received)) => {
                return self.maps(kind, expected, received);
            }
            (Value::F32(a), Value::F32(b)) => {
                a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
            }
            (Value::F64(a), Value::F64(b)) => {
                a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
            }
            (expected, received) => expected == received,
        };
        if is_equal { Ok(()) } else { self.differ(shown(kind, expected), shown(kind, received)) }
    }

    fn lists(&mut self, kind: &Kind, expected: &[Value], received: &[Value]) -> Outcome {
        for (i, (expected, received)) in expected.iter().zip(received).enumerate() {
            self.at(&format!("[{i}]"), |at| at.values(kind, expected, received))?;
        }
        if expected.len() == received.len() {
            return Ok(());
        }
        let shown = |list: &[Value]| format!("{} values", list.len());
        self.differ(shown(expected), shown(received))
    }

    fn maps(
        &mut self,
        kind: &Kind,
        expected: &HashMap<MapKey, Value>,
        received: &HashMap<MapKey, Value>,
    ) -> Outcome {
        let Kind::Message(entry) = kind else { return Ok(()) };
        let kind = entry.map_entry_value_field().kind();
        let keys: BTreeSet<&MapKey> = expected.keys().chain(received.keys()).collect();
        for key in keys {
            let of_key = entry.map_entry_key_field().kind();
            let place = format!("[{}]", shown(&of_key, &key.clone().into()));
            self.at(&place, |at| match (expected.get(key), received.get(key)) {
                (Some(expected), Some(received)) => at.values(&kind, expected, received),
                (expected, received) => {
                    let shown = |value: Option<&Value>| {
                        value.map_or("not set".into(), |value| shown(&kind, value))
                    };
                    at.differ(shown(expected), shown(received))
                }
            })?;
        }
        Ok(())
    }

    /// Messages of any type, and the bytes of the messages inside, which differ. They are decoded if the
    /// `.proto` files have this type.
    fn anys(
        &mut self,
        (expected, expected_bytes): (&DynamicMessage, &[u8]),
        (received, received_bytes): (&DynamicMessage, &[u8]),
        url: &str,
    ) -> Outcome {
        let name = url.rsplit('/').next().unwrap_or_default();
        let of = expected.descriptor().parent_pool().get_message_by_name(name);
        let inner = of.and_then(|of| decode(&of, expected_bytes, Cost::MOST).ok());
        let Some(inner) = inner else { return self.fields(expected, received) };
        let limits = Limits::of(&inner, expected_bytes.len());
        match decode(&inner.descriptor(), received_bytes, limits.cost) {
            Ok(received) => self.messages(&inner, &received),
            Err(why) => {
                let place = if self.path.is_empty() { "value" } else { ".value" };
                self.at(place, |at| at.differ(format!("a {name}"), why))
            }
        }
    }

    /// Compares at a place below the current one.
    fn at(&mut self, place: &str, compare: impl FnOnce(&mut Self) -> Outcome) -> Outcome {
        let length = self.path.len();
        self.path.push_str(place);
        let outcome = compare(self);
        self.path.truncate(length);
        outcome
    }

    fn differ(&self, expected: String, received: String) -> Outcome {
        Err(Box::new(Difference { path: self.path.clone(), received, expected }))
    }
}

/// A value, for people.
fn shown(kind: &Kind, value: &Value) -> String {
    match (value, kind) {
        (Value::EnumNumber(number), Kind::Enum(of)) => match of.get_value(*number) {
            Some(value) => value.name().to_owned(),
            None => number.to_string(),
        },
        (Value::F32(number), _) => number.to_string(),
        (Value::F64(number), _) => number.to_string(),
        (Value::String(text), _) => quoted(text),
        (Value::Bytes(bytes), _) => format!("the bytes {} ({} bytes)", in_hex(bytes), bytes.len()),
        (Value::Message(message), _) => format!("a {}", message.descriptor().full_name()),
        (Value::List(values), _) => format!("{} values", values.len()),
        (Value::Map(entries), _) => format!("{} entries", entries.len()),
        (value, _) => value.to_string(),
    }
}

/// A text in quotes; a long one is cut.
fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    let is_cut = shown.len() < text.len();
    shown = format!("{shown:?}");
    if is_cut {
        let _ = write!(shown, "... ({} bytes)", text.len());
    }
    shown
}
