//! Checks JSON of a message for what its deserialization accepts in silence, or reports without a place: names
//! given twice, of which the last would win; unknown names; and numbers that would become others.

use super::{
    field::Field,
    names::{cut, is_well_known, is_wrapper, listed},
};
use prost_reflect::{EnumDescriptor, Kind, MessageDescriptor};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{collections::HashSet, fmt};

/// Maximum number of values inside each other.
const DEEPEST: u32 = 100;

/// The members of an object as written.
struct Members<'j>(Vec<(String, &'j RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

/// A place in the JSON.
pub(super) struct Place<'p> {
    /// The place around it.
    outer: Option<&'p Place<'p>>,
    name: String,
    depth: u32,
}

/// Checks JSON of a message of this type. What its deserialization refuses with a good message is not
/// checked.
///
/// # Errors
/// What is wrong, and where.
pub(super) fn check(of: &MessageDescriptor, json: &str) -> Result<(), String> {
    let json: &RawValue =
        serde_json::from_str(json).map_err(|error| format!("no JSON: {error}"))?;
    message(of, json, &Place::root())
}

fn message(of: &MessageDescriptor, json: &RawValue, at: &Place<'_>) -> Result<(), String> {
    match of.full_name() {
        "google.protobuf.Any" => any(of, json, at),
        "google.protobuf.Struct" | "google.protobuf.Value" | "google.protobuf.ListValue" => {
            free(json, at)
        }
        // The wrapped value has no presence.
        _ if is_wrapper(of) => {
            Field::numbered(of, 1).map_or(Ok(()), |field| scalar(&field, json, at))
        }
        "google.protobuf.Timestamp" | "google.protobuf.Duration" => time(json, at),
        "google.protobuf.FieldMask" => mask(json, at),
        _ if is_well_known(of) => Ok(()),
        _ => fields(of, members(json, at)?, at),
    }
}

/// Checks the members of a message.
fn fields(
    of: &MessageDescriptor,
    members: Vec<(String, &RawValue)>,
    at: &Place<'_>,
) -> Result<(), String> {
    let mut numbers = HashSet::new();
    for (name, json) in members {
        let Some(field) = Field::named(of, &name) else {
            let names = Field::all(of).map(|field| field.name().to_owned());
            let (of, known) = (of.full_name(), listed(names, "no fields"));
            return Err(at.refuse(&format!("{of} has no field {:?}; it has {known}", cut(&name))));
        };
        let at = at.inside(&name)?;
        if !numbers.insert(field.number()) {
            return Err(at.refuse("the field is given twice, by its two names; remove one"));
        }
        if json.get() != "null" {
            value(&field, json, &at)?;
        }
    }
    Ok(())
}

/// Checks the value of a field.
fn value(field: &Field, json: &RawValue, at: &Place<'_>) -> Result<(), String> {
    if field.is_list() {
        for (i, json) in elements(json).into_iter().enumerate() {
            element(field, json, &at.inside(&format!("[{i}]"))?)?;
        }
        return Ok(());
    }
    let Kind::Message(entry) = field.kind() else { return scalar(field, json, at) };
    if !field.is_map() {
        return message(&entry, json, at);
    }
    let (of_key, of_value) = (entry.map_entry_key_field(), entry.map_entry_value_field());
    let is_text = matches!(of_key.kind(), Kind::String | Kind::Bool);
    let of_value = Field::Own(of_value);
    let mut keys = HashSet::new();
    for (key, json) in members(json, at)? {
        let at = at.inside(&format!("[{key:?}]"))?;
        // An integer has several forms: 1 and 01.
        if !is_text && key.parse::<i128>().is_ok_and(|key| !keys.insert(key)) {
            return Err(at.refuse("the key is given twice; remove one"));
        }
        value(&of_value, json, &at)?;
    }
    Ok(())
}

/// Checks an element of a list.
fn element(field: &Field, json: &RawValue, at: &Place<'_>) -> Result<(), String> {
    match field.kind() {
        Kind::Message(of) => message(&of, json, at),
        _ => scalar(field, json, at),
    }
}

/// Checks a value that is no message.
fn scalar(field: &Field, json: &RawValue, at: &Place<'_>) -> Result<(), String> {
    let text: Option<String> = serde_json::from_str(json.get()).ok();
    let (kind, json) = (field.kind(), json.get());
    let fault = match kind {
        Kind::Enum(of) => return named(&of, text.as_deref(), at),
        Kind::Float | Kind::Double => {
            let has_sign = field.has_presence() || field.is_list();
            real(text.as_deref().unwrap_or(json), kind == Kind::Float, has_sign)
        }
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
            integer(json, json.parse::<i64>().is_ok(), TWO_TO_63)
        }
        Kind::Uint64 | Kind::Fixed64 => integer(json, json.parse::<u64>().is_ok(), 2.0 * TWO_TO_63),
        _ => None,
    };
    fault.map_or(Ok(()), |fault| Err(at.refuse(&format!("{} {fault}", cut(json)))))
}

/// What is wrong with a floating-point number. `has_sign`: the encoding distinguishes -0 from 0.
fn real(text: &str, is_float: bool, has_sign: bool) -> Option<&'static str> {
    let number: f64 = text.parse().ok()?;
    let number = if is_float { f64::from(number as f32) } else { number };
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    if !number.is_finite() && !["NaN", "Infinity", "-Infinity"].contains(&text) {
        Some("is out of range; expected a number, \"NaN\", \"Infinity\" or \"-Infinity\"")
    } else if number == 0.0 && mantissa.contains(|digit| ('1'..='9').contains(&digit)) {
        Some("is too small: it would become 0")
    } else if number == 0.0 && number.is_sign_negative() && !has_sign {
        Some("cannot be distinguished from 0 here; write the message as hex digits")
    } else {
        None
    }
}

/// What is wrong with an integer of 64 bits. The deserialization takes the nearest one of a number with a
/// fraction or an exponent.
fn integer(json: &str, is_integer: bool, limit: f64) -> Option<&'static str> {
    let number: f64 = json.parse().ok()?;
    if is_integer || number.abs() < TWO_TO_53 {
        None
    } else if number.abs() >= limit {
        Some("is out of range; expected a 64-bit integer")
    } else {
        Some("may not be exact; write it without a fraction and an exponent")
    }
}

/// Checks a `Timestamp` or a `Duration`.
fn time(json: &RawValue, at: &Place<'_>) -> Result<(), String> {
    let Ok(text) = serde_json::from_str::<String>(json.get()) else { return Ok(()) };
    let (_, fraction) = text.split_once('.').unwrap_or_default();
    let refuse = |what| Err(at.refuse(&format!("{} {what}", cut(json.get()))));
    if fraction.chars().take_while(char::is_ascii_digit).count() > 9 {
        return refuse("is more precise than nanoseconds; expected at most 9 digits");
    }
    if text.contains(":60") {
        return refuse("has a leap second, which a Timestamp cannot have");
    }
    Ok(())
}

/// Checks a `FieldMask`.
fn mask(json: &RawValue, at: &Place<'_>) -> Result<(), String> {
    let Ok(text) = serde_json::from_str::<String>(json.get()) else { return Ok(()) };
    if !text.is_empty() && text.split(',').any(str::is_empty) {
        return Err(at.refuse(&format!("{} has an empty path; remove a comma", cut(json.get()))));
    }
    Ok(())
}

/// Below this number, a floating-point number is an integer as it was written.
const TWO_TO_53: f64 = 9_007_199_254_740_992.0;

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// Checks the name of a value of an enum.
fn named(of: &EnumDescriptor, name: Option<&str>, at: &Place<'_>) -> Result<(), String> {
    let Some(name) = name.filter(|name| of.get_value_by_name(name).is_none()) else {
        return Ok(());
    };
    let names = of.values().map(|value| value.name().to_owned());
    let (of, known) = (of.full_name(), listed(names, "none"));
    Err(at.refuse(&format!("{of} has no value {:?}; it has {known}", cut(name))))
}

/// Checks a message of any type, which names its type.
fn any(of: &MessageDescriptor, json: &RawValue, at: &Place<'_>) -> Result<(), String> {
    let mut members = members(json, at)?;
    let Some(position) = members.iter().position(|(name, _)| name == "@type") else {
        return Err(at.refuse(
            "expected \"@type\" with the type of the message, as in \
             {\"@type\": \"type.googleapis.com/PACKAGE.MESSAGE\"}",
        ));
    };
    let (_, json) = members.remove(position);
    let Ok(url) = serde_json::from_str::<String>(json.get()) else { return Ok(()) };
    let Some((_, name)) = url.rsplit_once('/') else {
        let url = cut(&url);
        return Err(
            at.refuse(&format!("the type {url:?} has no slash; write type.googleapis.com/{url}"))
        );
    };
    let Some(of) = of.parent_pool().get_message_by_name(name) else {
        return Err(at.refuse(&format!(
            "the type {} is not in the .proto files; import the file that has it, or write the message as \
             hex digits",
            cut(name)
        )));
    };
    if !is_well_known(&of) {
        return fields(&of, members, at);
    }
    for (name, json) in members.iter().filter(|(name, _)| name == "value") {
        message(&of, json, &at.inside(name)?)?;
    }
    Ok(())
}

/// Checks JSON of any form.
fn free(json: &RawValue, at: &Place<'_>) -> Result<(), String> {
    for (name, json) in members(json, at)? {
        free(json, &at.inside(&name)?)?;
    }
    for (i, json) in elements(json).into_iter().enumerate() {
        free(json, &at.inside(&format!("[{i}]"))?)?;
    }
    Ok(())
}

/// The members of an object, no two of the same name; none if it is no object.
pub(super) fn members<'j>(
    json: &'j RawValue,
    at: &Place<'_>,
) -> Result<Vec<(String, &'j RawValue)>, String> {
    let Ok(Members(members)) = serde_json::from_str(json.get()) else { return Ok(Vec::new()) };
    let mut names = HashSet::new();
    match members.iter().find(|(name, _)| !names.insert(name)) {
        None => Ok(members),
        Some((name, _)) => Err(at.refuse(&format!("{:?} is given twice; remove one", cut(name)))),
    }
}

/// The elements of a list; none if it is no list.
pub(super) fn elements(json: &RawValue) -> Vec<&RawValue> {
    serde_json::from_str(json.get()).unwrap_or_default()
}

impl Place<'_> {
    pub fn root() -> Place<'static> {
        Place { outer: None, name: String::new(), depth: 0 }
    }

    pub fn inside<'p>(&'p self, name: &str) -> Result<Place<'p>, String> {
        let depth = self.depth + 1;
        if depth > DEEPEST {
            return Err(format!("the JSON has more than {DEEPEST} values inside each other"));
        }
        Ok(Place { outer: Some(self), name: name.to_owned(), depth })
    }

    /// A text about this place.
    pub fn refuse(&self, what: &str) -> String {
        let path = self.path();
        if path.is_empty() { what.to_owned() } else { format!("`{}`: {what}", cut(&path)) }
    }

    fn path(&self) -> String {
        let outer = self.outer.map_or(String::new(), Place::path);
        let dot = if outer.is_empty() || self.name.starts_with('[') { "" } else { "." };
        format!("{outer}{dot}{}", self.name)
    }
}
