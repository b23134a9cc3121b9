//! The expected messages of a stream, from JSON with placeholders for their numbers.
//!
//! The JSON becomes a template of the bytes that the encoder of the load writes, so a message with these bytes is
//! right without being decoded. Any other one is decoded and compared by its fields.

use super::{
    cost::Cost,
    expectation::Expectation,
    field::Field,
    json,
    limits::Limits,
    members::{Place, elements, members},
    names::{is_well_known, is_wrapper},
    order::sort_maps,
    wire::decode,
};
use crate::dialects::grpc::{
    placeholder::Text,
    template::{Form, Number, Part, Template},
};
use prost_reflect::{
    DynamicMessage, Kind, MessageDescriptor, ReflectMessage, Value,
    prost::{
        Message,
        encoding::{WireType, decode_key, decode_varint, encode_key},
    },
};
use serde_json::value::RawValue;

/// The number with which the JSON is read. With it, no number in a message is 0, the default of fields.
const SAMPLE: u64 = 2;

/// Where placeholders may be in JSON.
const WHERE: &str = "a placeholder must be a whole value, as in {\"id\": {n}}, or in a text, but not inside an escape";

/// What each message of a stream must be, by its fields.
#[derive(Debug)]
pub struct Numbered {
    of: MessageDescriptor,
    /// The encoding of the load.
    template: Template,
    /// The message, if all are the same.
    same: Option<Expectation>,
    /// The largest number of a message with which the values of all fields are in range.
    last: u64,
    longest: usize,
}

impl Numbered {
    /// Reads the JSON of the messages, which have this type. A stream has `messages` of them, if that is known.
    ///
    /// # Errors
    /// What is wrong with the JSON, and where.
    pub fn new(
        of: &MessageDescriptor,
        text: &str,
        messages: Option<u32>,
    ) -> Result<Numbered, String> {
        let text = Text::parse(text)?;
        let with_number = |why| match text.is_constant() {
            true => why,
            false => format!("{why} (with {SAMPLE} in place of {{n}})"),
        };
        let sample = json::encode(of, &text.filled(SAMPLE)).map_err(with_number)?;
        if text.is_constant() {
            let same = Expectation::new(of, &sample)?;
            let longest = same.longest();
            let template = Template::new(vec![Part::Bytes(sample)])?;
            let (same, last) = (Some(same), u64::MAX);
            return Ok(Numbered { of: of.clone(), template, same, last, longest });
        }
        let message = decode(of, &sample, Cost::MOST)?;
        let quoted = text.quoted();
        let quoted: &RawValue = serde_json::from_str(&quoted).map_err(|_| WHERE)?;
        let needed = u64::from(messages.unwrap_or(1).max(1));
        let mut builder = Builder { needed, last: u64::MAX };
        let template = Template::new(builder.message(&message, quoted, &Place::root())?)?;
        let longest = Limits::of(&message, template.length(u64::MAX) as usize).bytes;
        Ok(Numbered { of: of.clone(), template, same: None, last: builder.last, longest })
    }

    /// The bytes of each message in the encoding of the load. One with other bytes may be right, too.
    #[inline]
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// Whether the message with this number can be right.
    #[inline]
    pub fn is_in_range(&self, number: u64) -> bool {
        number <= self.last
    }

    /// Maximum number of bytes of a message that can be right.
    #[inline]
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Returns what is wrong with the message of this number, if anything.
    pub fn fault(&self, number: u64, bytes: &[u8]) -> Option<String> {
        if let Some(same) = &self.same {
            return same.fault(bytes);
        }
        if !self.is_in_range(number) {
            return Some("its number is too large for a field of the expected message".into());
        }
        let mut expected = Vec::new();
        self.template.write(number, usize::MAX, &mut expected);
        match Expectation::new(&self.of, &expected) {
            Ok(expected) => expected.fault(bytes),
            Err(why) => Some(why),
        }
    }
}

/// Whether JSON has a placeholder inside.
fn has_placeholder(json: &RawValue) -> bool {
    // `Numbered::new` has refused unknown ones.
    Text::parse(json.get()).is_ok_and(|text| !text.is_constant())
}

/// Builds the parts of messages.
struct Builder {
    /// The largest number of a message that is needed.
    needed: u64,
    /// The largest number with which all values so far are in range.
    last: u64,
}

impl Builder {
    /// The parts of a message whose JSON has placeholders.
    fn message(
        &mut self,
        message: &DynamicMessage,
        json: &RawValue,
        at: &Place<'_>,
    ) -> Result<Vec<Part>, String> {
        let of = message.descriptor();
        if is_wrapper(&of) {
            let wrapped = Field::numbered(&of, 1).zip(message.get_field_by_number(1));
            if let Some((field, value)) = wrapped {
                return self.field(&field, &value, json, at);
            }
        }
        if is_well_known(&of) {
            return Err(at.refuse(&misplaced(&format!("a {}", of.full_name()))));
        }
        let mut members = members(json, at)?;
        if let Some((name, _)) = members.iter().find(|(name, _)| name.contains("{n")) {
            return Err(at.refuse(&misplaced(&format!("the name {name:?}"))));
        }
        members.retain(|(_, json)| has_placeholder(json));
        let mut fields: Vec<Field> = Field::all(&of).collect();
        fields.sort_by_key(Field::number);
        let mut parts = Vec::new();
        for field in fields {
            let Some(value) = field.value(message) else { continue };
            let is_of = |name: &str| {
                Field::named(&of, name).is_some_and(|named| named.number() == field.number())
            };
            match members.iter().find(|(name, _)| is_of(name)) {
                Some((name, json)) => {
                    parts.extend(self.field(&field, &value, json, &at.inside(name)?)?);
                }
                None => parts.push(Part::Bytes(alone(&field, value.into_owned())?)),
            }
        }
        Ok(parts)
    }

    /// The parts of a field whose JSON has placeholders, with its key.
    fn field(
        &mut self,
        field: &Field,
        value: &Value,
        json: &RawValue,
        at: &Place<'_>,
    ) -> Result<Vec<Part>, String> {
        if field.is_map() {
            return Err(at.refuse(&misplaced("a map")));
        }
        if let Value::List(values) = value {
            return self.list(field, values, json, at);
        }
        let (key, value) = (key(field, field.wire_type()), self.value(field, value, json, at)?);
        Ok(match value[..] {
            [Part::Number(number)] if !field.has_presence() => vec![Part::UnlessZero(key, number)],
            _ => [vec![Part::Bytes(key)], value].concat(),
        })
    }

    fn list(
        &mut self,
        field: &Field,
        values: &[Value],
        json: &RawValue,
        at: &Place<'_>,
    ) -> Result<Vec<Part>, String> {
        let is_packed = field.is_packed();
        let mut parts = Vec::new();
        for (i, (value, json)) in values.iter().zip(elements(json)).enumerate() {
            if !has_placeholder(json) {
                let bytes = alone(field, Value::List(vec![value.clone()]))?;
                parts.push(Part::Bytes(if is_packed { content(&bytes)? } else { bytes }));
                continue;
            }
            if !is_packed {
                parts.push(Part::Bytes(key(field, field.wire_type())));
            }
            parts.extend(self.value(field, value, json, &at.inside(&format!("[{i}]"))?)?);
        }
        Ok(match is_packed {
            true => {
                vec![Part::Bytes(key(field, WireType::LengthDelimited)), Part::Delimited(parts)]
            }
            false => parts,
        })
    }

    /// The parts of one value whose JSON has placeholders, behind its key.
    fn value(
        &mut self,
        field: &Field,
        value: &Value,
        json: &RawValue,
        at: &Place<'_>,
    ) -> Result<Vec<Part>, String> {
        match (field.kind(), value) {
            (Kind::Message(_), Value::Message(message)) => {
                let parts = self.message(message, json, at)?;
                Ok(match field.is_group() {
                    true => [parts, vec![Part::Bytes(key(field, WireType::EndGroup))]].concat(),
                    false => vec![Part::Delimited(parts)],
                })
            }
            (Kind::String, _) => {
                Ok(vec![Part::Delimited(text(json).map_err(|why| at.refuse(&why))?)])
            }
            (kind, _) => self.number(&kind, json, at).map(|number| vec![Part::Number(number)]),
        }
    }

    /// A number.
    fn number(&mut self, kind: &Kind, json: &RawValue, at: &Place<'_>) -> Result<Number, String> {
        let Some((form, most)) = form(kind) else {
            return Err(at.refuse(&misplaced(&format!("a field of the type {kind:?}"))));
        };
        let text = Text::parse(json.get())?;
        let ([("\"", plus)], "\"") = (&text.pieces[..], text.last) else {
            return Err(at.refuse("a number must be a placeholder alone, e.g. {n+100}"));
        };
        if self.needed.saturating_add_signed(*plus) > most {
            let (needed, placeholder) = (self.needed, json.get().trim_matches('"'));
            return Err(at.refuse(&format!(
                "{placeholder} is out of range in message {needed}; a field of the type {kind:?} has exactly the \
                 numbers up to {most}"
            )));
        }
        self.last = self.last.min(most.saturating_add_signed(-plus));
        Ok(Number { plus: *plus, form })
    }
}

/// How numbers of this kind are encoded, and the largest one. Each of them is another value.
fn form(kind: &Kind) -> Option<(Form, u64)> {
    let (least, most) = (i32::MAX as u64, i64::MAX as u64);
    Some(match kind {
        Kind::Int32 => (Form::Varint, least),
        Kind::Int64 => (Form::Varint, most),
        Kind::Uint32 => (Form::Varint, u32::MAX.into()),
        Kind::Uint64 => (Form::Varint, u64::MAX),
        Kind::Sint32 => (Form::Zigzag, least),
        Kind::Sint64 => (Form::Zigzag, most),
        Kind::Sfixed32 => (Form::Fixed32, least),
        Kind::Sfixed64 => (Form::Fixed64, most),
        Kind::Fixed32 => (Form::Fixed32, u32::MAX.into()),
        Kind::Fixed64 => (Form::Fixed64, u64::MAX),
        Kind::Float => (Form::Float, 1 << f32::MANTISSA_DIGITS),
        Kind::Double => (Form::Double, 1 << f64::MANTISSA_DIGITS),
        Kind::Bool | Kind::String | Kind::Bytes | Kind::Message(_) | Kind::Enum(_) => return None,
    })
}

/// The parts of a text in JSON.
fn text(json: &RawValue) -> Result<Vec<Part>, String> {
    let quoted = json.get();
    let inner = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let text = Text::parse(inner.unwrap_or(quoted))?;
    let unescaped = |text: &str| {
        let text: Result<String, _> = serde_json::from_str(&format!("\"{text}\""));
        text.map(|text| Part::Bytes(text.into_bytes())).map_err(|_| WHERE.to_owned())
    };
    let mut parts = Vec::new();
    for (before, plus) in &text.pieces {
        parts.push(unescaped(before)?);
        parts.push(Part::Number(Number { plus: *plus, form: Form::Digits }));
    }
    parts.push(unescaped(text.last)?);
    Ok(parts)
}

fn misplaced(place: &str) -> String {
    format!(
        "a placeholder in {place}; expected it in a text, or in place of an integer or a floating-point number"
    )
}

/// The key of a field.
fn key(field: &Field, wire_type: WireType) -> Vec<u8> {
    let mut key = Vec::new();
    encode_key(field.number(), wire_type, &mut key);
    key
}

/// The encoding of a field, with its key.
fn alone(field: &Field, value: Value) -> Result<Vec<u8>, String> {
    let mut message = DynamicMessage::new(field.parent());
    field.set(&mut message, value);
    let bytes = sort_maps(&field.parent(), &message.encode_to_vec());
    bytes.ok_or_else(|| "the encoding of the message is no message".into())
}

/// What is behind the key and the length of a field.
fn content(mut bytes: &[u8]) -> Result<Vec<u8>, String> {
    let read = decode_key(&mut bytes).and_then(|_| decode_varint(&mut bytes));
    read.map(|_| bytes.to_vec()).map_err(|error| error.to_string())
}
