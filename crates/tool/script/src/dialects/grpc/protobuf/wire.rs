//! Checks that an encoded message has only what its descriptor describes: known fields, each in its form. A
//! decoder would keep other fields aside, or take them for something else.
//!
//! Source: the encoding of Protocol Buffers, protobuf.dev/programming-guides/encoding.

use super::{cost::Cost, field::Field};
use prost_reflect::{
    DynamicMessage, Kind, MessageDescriptor, Syntax,
    prost::{
        DecodeError,
        encoding::{WireType, decode_key, decode_varint},
    },
};

/// Maximum number of messages inside each other, as of other decoders.
const DEEPEST: u32 = 100;

/// What is wrong, and in which field.
#[derive(Debug)]
struct Fault {
    /// The names of the fields, the innermost first.
    path: Vec<String>,
    what: String,
}

/// Decodes a message that has only what its type describes, and costs at most `most` when decoded.
pub(super) fn decode(
    of: &MessageDescriptor,
    bytes: &[u8],
    most: Cost,
) -> Result<DynamicMessage, String> {
    let name = of.full_name();
    check(of, bytes, most).map_err(|why| format!("a message {name} with {why}"))?;
    DynamicMessage::decode(of.clone(), bytes)
        .map_err(|error| format!("no message {name} ({error})"))
}

/// Checks a message without decoding it.
///
/// # Errors
/// What is wrong with it, as the end of a sentence: "a message with …".
pub(super) fn check(of: &MessageDescriptor, mut bytes: &[u8], most: Cost) -> Result<(), String> {
    let mut walk = Walk { left: most, most };
    walk.message(&mut bytes, of, None, 0).map_err(|Fault { path, what }| match &path[..] {
        [] => what,
        path => {
            let names: Vec<&str> = path.iter().rev().map(String::as_str).collect();
            format!("{what}, in `{}`", names.join("."))
        }
    })
}

/// A walk through a message and all that is inside.
struct Walk {
    /// What the rest may cost.
    left: Cost,
    most: Cost,
}

impl Walk {
    /// Checks a message that ends with the bytes, or with the end of the group of this number.
    fn message(
        &mut self,
        bytes: &mut &[u8],
        of: &MessageDescriptor,
        group: Option<u32>,
        depth: u32,
    ) -> Result<(), Fault> {
        if depth > DEEPEST {
            return Err(Fault::new(format!("more than {DEEPEST} messages inside each other")));
        }
        self.pay(Cost::MESSAGE)?;
        while !bytes.is_empty() {
            let (number, wire_type) = decode_key(bytes)?;
            if wire_type == WireType::EndGroup {
                if group == Some(number) {
                    return Ok(());
                }
                return Err(Fault::new(format!("the end of a group {number} that has not begun")));
            }
            let Some(field) = Field::numbered(of, number) else {
                let name = of.full_name();
                return Err(Fault::new(format!("the field {number}, which {name} does not have")));
            };
            self.values(bytes, &field, wire_type, depth).map_err(|mut fault| {
                fault.path.push(field.name().to_owned());
                fault
            })?;
        }
        match group {
            None => Ok(()),
            Some(number) => Err(Fault::new(format!("a group {number} without its end"))),
        }
    }

    /// Checks a value of a field, or several packed ones.
    fn values(
        &mut self,
        bytes: &mut &[u8],
        field: &Field,
        wire_type: WireType,
        depth: u32,
    ) -> Result<(), Fault> {
        let (kind, expected) = (field.kind(), field.wire_type());
        let is_packable =
            field.is_list() && !matches!(kind, Kind::String | Kind::Bytes | Kind::Message(_));
        if is_packable && wire_type == WireType::LengthDelimited {
            let mut packed = delimited(bytes)?;
            while !packed.is_empty() {
                self.scalar(&mut packed, &kind, expected)?;
            }
            return Ok(());
        }
        if wire_type != expected {
            return Err(Fault::new(format!(
                "the wire type {wire_type:?} in place of {expected:?}"
            )));
        }
        match kind {
            Kind::Message(of) if field.is_group() => {
                self.message(bytes, &of, Some(field.number()), depth + 1)
            }
            Kind::Message(of) => self.message(&mut delimited(bytes)?, &of, None, depth + 1),
            kind => self.scalar(bytes, &kind, expected),
        }
    }

    /// Checks a value that is no message.
    fn scalar(&mut self, bytes: &mut &[u8], kind: &Kind, wire_type: WireType) -> Result<(), Fault> {
        self.pay(Cost::SCALAR)?;
        match wire_type {
            WireType::Varint => {
                let number = decode_varint(bytes)? as i32;
                match kind {
                    // A decoder keeps it as an unknown field, and the field itself has its previous value.
                    Kind::Enum(of)
                        if of.parent_file().syntax() == Syntax::Proto2
                            && of.get_value(number).is_none() =>
                    {
                        let name = of.full_name();
                        Err(Fault::new(format!("the value {number}, which {name} does not have")))
                    }
                    _ => Ok(()),
                }
            }
            WireType::SixtyFourBit => take(bytes, 8).map(drop),
            WireType::ThirtyTwoBit => take(bytes, 4).map(drop),
            _ => delimited(bytes).map(drop),
        }
    }

    fn pay(&mut self, cost: Cost) -> Result<(), Fault> {
        let Some(left) = self.left.0.checked_sub(cost.0) else {
            return Err(Fault::new(format!(
                "more values than expected: decoded, it takes more than {}",
                self.most
            )));
        };
        self.left = Cost(left);
        Ok(())
    }
}

/// Takes a length and so many bytes.
fn delimited<'b>(bytes: &mut &'b [u8]) -> Result<&'b [u8], Fault> {
    let length = decode_varint(bytes)?;
    take(bytes, usize::try_from(length).unwrap_or(usize::MAX))
}

fn take<'b>(bytes: &mut &'b [u8], length: usize) -> Result<&'b [u8], Fault> {
    let Some((taken, rest)) = bytes.split_at_checked(length) else {
        let left = bytes.len();
        return Err(Fault::new(format!("a value of {length} bytes, of which {left} came")));
    };
    *bytes = rest;
    Ok(taken)
}

impl Fault {
    fn new(what: String) -> Fault {
        Fault { path: Vec::new(), what }
    }
}

impl From<DecodeError> for Fault {
    fn from(error: DecodeError) -> Fault {
        let text = error.to_string();
        let what = text.strip_prefix("failed to decode Protobuf message: ").unwrap_or(&text);
        Fault::new(format!("invalid bytes ({what})"))
    }
}
