//! A field of a message: one of its own, or an extension of it.

use prost_reflect::{
    DynamicMessage, ExtensionDescriptor, FieldDescriptor, Kind, MessageDescriptor, Value,
    prost::encoding::WireType,
};
use std::borrow::Cow;

pub(super) enum Field {
    Own(FieldDescriptor),
    Extension(ExtensionDescriptor),
}

/// Calls a method that both kinds of descriptors have.
macro_rules! of_either {
    ($field:expr, $method:ident) => {
        match $field {
            Field::Own(field) => field.$method(),
            Field::Extension(field) => field.$method(),
        }
    };
}

impl Field {
    /// The field of a message with this number.
    pub fn numbered(of: &MessageDescriptor, number: u32) -> Option<Field> {
        let own = of.get_field(number).map(Field::Own);
        own.or_else(|| of.get_extension(number).map(Field::Extension))
    }

    /// The field of a message that JSON calls so.
    pub fn named(of: &MessageDescriptor, name: &str) -> Option<Field> {
        let own = of.get_field_by_json_name(name).or_else(|| of.get_field_by_name(name));
        let own = own.map(Field::Own);
        own.or_else(|| of.get_extension_by_json_name(name).map(Field::Extension))
    }

    /// All fields of a message, by their numbers, and then its extensions.
    pub fn all(of: &MessageDescriptor) -> impl Iterator<Item = Field> {
        of.fields().map(Field::Own).chain(of.extensions().map(Field::Extension))
    }

    /// Its name as written in the `.proto` file; that of an extension as in JSON.
    pub fn name(&self) -> &str {
        match self {
            Field::Own(field) => field.name(),
            Field::Extension(field) => field.json_name(),
        }
    }

    pub fn number(&self) -> u32 {
        of_either!(self, number)
    }

    pub fn kind(&self) -> Kind {
        of_either!(self, kind)
    }

    pub fn is_list(&self) -> bool {
        of_either!(self, is_list)
    }

    pub fn is_map(&self) -> bool {
        of_either!(self, is_map)
    }

    /// Whether it is a list whose numbers have one key together.
    pub fn is_packed(&self) -> bool {
        of_either!(self, is_packed)
    }

    pub fn is_group(&self) -> bool {
        of_either!(self, is_group)
    }

    /// Whether being absent differs from being the default.
    pub fn has_presence(&self) -> bool {
        of_either!(self, supports_presence)
    }

    pub fn is_required(&self) -> bool {
        matches!(self, Field::Own(field) if field.is_required())
    }

    /// Its value in a message; `None` if it is absent, and that differs from being the default.
    pub fn value<'m>(&self, message: &'m DynamicMessage) -> Option<Cow<'m, Value>> {
        let is_set = match self {
            Field::Own(field) => message.has_field(field),
            Field::Extension(field) => message.has_extension(field),
        };
        (is_set || !self.has_presence()).then(|| match self {
            Field::Own(field) => message.get_field(field),
            Field::Extension(field) => message.get_extension(field),
        })
    }

    /// The message that has it.
    pub fn parent(&self) -> MessageDescriptor {
        match self {
            Field::Own(field) => field.parent_message().clone(),
            Field::Extension(field) => field.containing_message(),
        }
    }

    /// Sets it in a message. The value must be of its kind.
    pub fn set(&self, message: &mut DynamicMessage, value: Value) {
        match self {
            Field::Own(field) => message.set_field(field, value),
            Field::Extension(field) => message.set_extension(field, value),
        }
    }

    /// How one value of it is encoded.
    pub fn wire_type(&self) -> WireType {
        match self.kind() {
            Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => WireType::SixtyFourBit,
            Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => WireType::ThirtyTwoBit,
            Kind::Message(_) if self.is_group() => WireType::StartGroup,
            Kind::String | Kind::Bytes | Kind::Message(_) => WireType::LengthDelimited,
            Kind::Bool
            | Kind::Int32
            | Kind::Int64
            | Kind::Uint32
            | Kind::Uint64
            | Kind::Sint32
            | Kind::Sint64
            | Kind::Enum(_) => WireType::Varint,
        }
    }
}
