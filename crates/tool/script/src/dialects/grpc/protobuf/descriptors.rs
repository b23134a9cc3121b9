//! Checks descriptors before they are used, and drops from them what messages do not depend on: those of a file,
//! and those that another process sends. The library that uses them expects some of their rules to hold, and
//! panics or overflows the stack otherwise.

use super::{cost::Cost, names::cut, wire};
use prost_reflect::{
    ReflectMessage,
    prost::Message,
    prost_types::{
        DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FieldOptions,
        FileDescriptorProto, FileDescriptorSet, MessageOptions, UninterpretedOption,
        field_descriptor_proto::{Label, Type},
    },
};

/// Maximum number of definitions: of messages, fields, enums, their values, services, methods and so on.
const MOST_DEFINITIONS: usize = 50_000;

/// Maximum number of braces inside each other in the value of an option, and of parts of its name.
const DEEPEST: usize = 100;

/// What descriptors may cost when they are decoded.
const MOST: Cost = Cost::of_bytes(64 << 20);

/// Decodes and checks a `FileDescriptorSet`.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(bytes: &[u8]) -> Result<FileDescriptorSet, String> {
    wire::check(&FileDescriptorSet::default().descriptor(), bytes, MOST)
        .map_err(|why| format!("descriptors with {why}"))?;
    let set = FileDescriptorSet::decode(bytes).map_err(|error| error.to_string())?;
    plain(set)
}

/// Checks descriptors. Returns them without source code and without the options that messages do not depend on.
///
/// # Errors
/// What is wrong with them.
pub(super) fn plain(mut set: FileDescriptorSet) -> Result<FileDescriptorSet, String> {
    let mut check = Check { definitions: 0 };
    set.file.iter_mut().try_for_each(|file| check.file(file))?;
    Ok(set)
}

/// A check of the definitions of all files.
struct Check {
    /// Number of definitions so far.
    definitions: usize,
}

/// Checks the options of definitions, which are not needed, and drops them.
macro_rules! drop_options {
    ($($definition:expr),*) => {$(
        if let Some(options) = $definition.options.take() {
            uninterpreted(&options.uninterpreted_option)?;
        }
    )*};
}

impl Check {
    fn count(&mut self, definitions: usize) -> Result<(), String> {
        self.definitions += definitions;
        if self.definitions > MOST_DEFINITIONS {
            return Err(format!(
                "the .proto files, with all imports, have more than {MOST_DEFINITIONS} messages, fields, enum \
                 values and so on; write a file with what the calls need"
            ));
        }
        Ok(())
    }

    fn file(&mut self, file: &mut FileDescriptorProto) -> Result<(), String> {
        if !matches!(file.syntax(), "" | "proto2" | "proto3") {
            return Err(format!(
                "{}: the syntax {:?}; expected proto2 or proto3",
                cut(file.name()),
                cut(file.syntax())
            ));
        }
        // The empty text is not the same as proto2, which it means.
        file.syntax.take_if(|syntax| syntax.is_empty());
        file.source_code_info = None;
        drop_options!(file);
        let dependencies = file.dependency.len() + file.public_dependency.len();
        self.count(dependencies + file.weak_dependency.len() + 1)?;
        for service in &mut file.service {
            self.count(1 + service.method.len())?;
            drop_options!(service);
            for method in &mut service.method {
                drop_options!(method);
            }
        }
        file.message_type.iter_mut().try_for_each(|message| self.message(message))?;
        file.enum_type.iter_mut().try_for_each(|of| self.enumeration(of))?;
        self.fields(&mut file.extension)
    }

    fn message(&mut self, message: &mut DescriptorProto) -> Result<(), String> {
        let others = message.oneof_decl.len() + message.extension_range.len();
        let reserved = message.reserved_range.len() + message.reserved_name.len();
        self.count(1 + others + reserved)?;
        for oneof in &mut message.oneof_decl {
            drop_options!(oneof);
        }
        for range in &mut message.extension_range {
            drop_options!(range);
        }
        let options = message.options.take().unwrap_or_default();
        uninterpreted(&options.uninterpreted_option)?;
        let MessageOptions { map_entry, .. } = options;
        let why = if options.message_set_wire_format() {
            Some("`message_set_wire_format` is not supported; remove the option")
        } else if map_entry == Some(true) && !is_entry(message) {
            Some(
                "`map_entry` with other fields than `key` and `value` of a map; write map<KEY, VALUE>",
            )
        } else {
            None
        };
        if let Some(why) = why {
            return Err(format!("the message {}: {why}", cut(message.name())));
        }
        if map_entry == Some(true) {
            message.options = Some(MessageOptions { map_entry, ..MessageOptions::default() });
        }
        self.fields(&mut message.field)?;
        self.fields(&mut message.extension)?;
        message.enum_type.iter_mut().try_for_each(|of| self.enumeration(of))?;
        message.nested_type.iter_mut().try_for_each(|message| self.message(message))
    }

    fn fields(&mut self, fields: &mut [FieldDescriptorProto]) -> Result<(), String> {
        self.count(fields.len())?;
        for field in fields {
            if let Some(options) = field.options.take() {
                uninterpreted(&options.uninterpreted_option)?;
                let packed = options.packed;
                let kept = || FieldOptions { packed, ..FieldOptions::default() };
                field.options = packed.is_some().then(kept);
            }
        }
        Ok(())
    }

    fn enumeration(&mut self, of: &mut EnumDescriptorProto) -> Result<(), String> {
        self.count(1 + of.value.len() + of.reserved_range.len() + of.reserved_name.len())?;
        let allow_alias = of.options.as_ref().and_then(|options| options.allow_alias);
        drop_options!(of);
        if allow_alias.is_some() {
            of.options.get_or_insert_default().allow_alias = allow_alias;
        }
        for value in &mut of.value {
            drop_options!(value);
        }
        Ok(())
    }
}

/// Whether the fields of a message are those of an entry of a map.
fn is_entry(message: &DescriptorProto) -> bool {
    let is_field = |field: &FieldDescriptorProto, name: &str, number: i32| {
        field.name() == name
            && field.number() == number
            && field.label() == Label::Optional
            && field.oneof_index.is_none()
    };
    let [key, value] = &message.field[..] else { return false };
    let not_keys = [Type::Double, Type::Float, Type::Bytes, Type::Enum, Type::Message, Type::Group];
    is_field(key, "key", 1)
        && is_field(value, "value", 2)
        && key.r#type.is_some_and(|of| Type::try_from(of).is_ok_and(|of| !not_keys.contains(&of)))
        && value.r#type() != Type::Group
}

/// Checks options as written in a file, before their values are read.
fn uninterpreted(options: &[UninterpretedOption]) -> Result<(), String> {
    for option in options {
        let names: Vec<&str> = option.name.iter().map(|part| &*part.name_part).collect();
        let why = match &names[..] {
            ["map_entry"] => "it is not for files; write map<KEY, VALUE>",
            ["message_set_wire_format"] if option.identifier_value() == "true" => {
                "it is not supported; remove the option"
            }
            _ if names.len() > DEEPEST || depth(option.aggregate_value()) > DEEPEST => {
                "it has more than 100 values inside each other"
            }
            _ => continue,
        };
        return Err(format!("the option `{}`: {why}", cut(&names.join("."))));
    }
    Ok(())
}

/// Number of brackets inside each other in the value of an option, outside of texts.
fn depth(value: &str) -> usize {
    let (mut depth, mut deepest, mut quote) = (0_usize, 0, None);
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', Some(_)) => drop(chars.next()),
            (_, Some(end)) if c == end => quote = None,
            ('"' | '\'', None) => quote = Some(c),
            ('{' | '<' | '[', None) => depth += 1,
            ('}' | '>' | ']', None) => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}
