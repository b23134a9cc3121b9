//! Messages as JSON, and their comparison, with the types of two `.proto` files.

mod cases;
mod files;
mod forms;
mod json;
mod numbered;

use super::{Expectation, Types};
use prost_reflect::prost::encoding::{WireType, encode_key, encode_varint};
use std::{path::Path, sync::LazyLock};

const ITEMS: &str = r#"
syntax = "proto3";
package test;

import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/empty.proto";
import "google/protobuf/field_mask.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "old.proto";

enum Color { NONE = 0; RED = 1; BLUE = 2; }

message Item {
  int32 id = 1;
  string name = 2;
  double price = 3;
  float weight = 4;
  optional int32 stock = 5;
  repeated int32 sizes = 6;
  repeated string tags = 7;
  map<string, int64> counts = 8;
  map<int32, Item> parts = 9;
  oneof kind { string text = 10; Item inner = 11; Color color = 12; }
  Color shade = 13;
  bytes data = 14;
  google.protobuf.Any any = 15;
  google.protobuf.Timestamp at = 16;
  google.protobuf.Duration during = 17;
  google.protobuf.DoubleValue maybe = 18;
  google.protobuf.Struct free = 19;
  google.protobuf.FieldMask mask = 20;
  repeated Color colors = 21;
  repeated double prices = 22;
  map<string, double> weights = 23;
  uint64 big = 24;
  sint64 small = 25;
  fixed32 fixed = 26;
  bool is_new = 27;
  repeated Item items = 28;
  google.protobuf.Value value = 29;
  google.protobuf.Empty nothing = 30;
  int64 long_name = 31;
  google.protobuf.Int64Value many = 32;
}

service Items {
  rpc Get(Item) returns (Item);
  rpc Old(old.Old) returns (old.Old);
  rpc Any(google.protobuf.Any) returns (google.protobuf.Any);
  rpc Watch(Item) returns (stream Item);
  rpc Put(stream Item) returns (Item);
}
"#;

const OLD: &str = r#"
syntax = "proto2";
package old;

message Old {
  enum Color { RED = 1; BLUE = 2; }
  required int32 id = 1;
  optional int32 size = 2 [default = 5];
  optional double weight = 3;
  repeated int32 sizes = 4;
  optional Color color = 5;
  repeated Color colors = 6 [packed = true];
  optional group Part = 7 { optional int32 n = 1; }
  optional Old inner = 8;
  extensions 100 to 199;
}
extend Old { optional string note = 100; repeated int32 marks = 101; }

service Olds { rpc Get(Old) returns (Old); }
"#;

const GET: &str = "/test.Items/Get";
const OLD_GET: &str = "/test.Items/Old";

/// The content of a file in this list of names and texts.
fn find(files: &[(&str, &str)], path: &Path) -> Result<Vec<u8>, String> {
    let name = path.to_string_lossy();
    let found = files.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| text.as_bytes().to_vec()).ok_or_else(|| format!("no {name}"))
}

fn types() -> Types {
    static TYPES: LazyLock<Types> = LazyLock::new(|| {
        let files = [("a/items.proto", ITEMS), ("a/old.proto", OLD)];
        Types::compile("items.proto", &[Path::new("a")], &mut |path| find(&files, path)).unwrap()
    });
    TYPES.clone()
}

/// What a message of the method at this path must be, by its JSON.
fn expectation(path: &str, json: &str) -> Expectation {
    let types = types();
    let bytes = types.reply(path, json).unwrap_or_else(|why| panic!("{json}: {why}"));
    types.expectation(path, &bytes).unwrap()
}

/// A field with a varint.
fn varint(number: u32, value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_key(number, WireType::Varint, &mut bytes);
    encode_varint(value, &mut bytes);
    bytes
}

/// A field with a length and bytes.
fn delimited(number: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_key(number, WireType::LengthDelimited, &mut bytes);
    encode_varint(content.len() as u64, &mut bytes);
    bytes.extend_from_slice(content);
    bytes
}

/// A field with a double.
fn double(number: u32, value: f64) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_key(number, WireType::SixtyFourBit, &mut bytes);
    bytes.extend_from_slice(&value.to_le_bytes());
    bytes
}

/// A field with a float.
fn float(number: u32, value: f32) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_key(number, WireType::ThirtyTwoBit, &mut bytes);
    bytes.extend_from_slice(&value.to_le_bytes());
    bytes
}

/// A field with varints in the packed form.
fn packed(number: u32, values: &[u64]) -> Vec<u8> {
    let mut content = Vec::new();
    values.iter().for_each(|value| encode_varint(*value, &mut content));
    delimited(number, &content)
}
