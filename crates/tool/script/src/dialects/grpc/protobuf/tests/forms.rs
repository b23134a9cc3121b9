//! Random messages, each in random encodings that are all right, and with a random change.
//!
//! The encoder here is independent of the one in use: it writes fields in any order, packed or not, several
//! times, and with defaults.

use super::*;
use proptest::prelude::*;
use rand::{Rng, SeedableRng, rngs::StdRng, seq::SliceRandom};
use std::collections::BTreeMap;

/// Some of the fields of `test.Item`.
#[derive(Clone, Debug, Default)]
struct Item {
    id: i32,
    name: String,
    price: f64,
    stock: Option<i32>,
    sizes: Vec<i32>,
    tags: Vec<String>,
    counts: BTreeMap<String, i64>,
    parts: BTreeMap<i32, Item>,
    kind: Kind,
    prices: Vec<f64>,
    items: Vec<Item>,
}

#[derive(Clone, Debug, Default)]
enum Kind {
    #[default]
    None,
    Text(String),
    Inner(Box<Item>),
    Color(i32),
}

fn text(random: &mut StdRng) -> String {
    (0..random.random_range(0..3)).map(|_| ['a', 'b', 'ä'][random.random_range(0..3)]).collect()
}

fn number(random: &mut StdRng) -> i32 {
    [0, 1, -1, 127, 128, i32::MAX, i32::MIN][random.random_range(0..7)]
}

fn real(random: &mut StdRng) -> f64 {
    [0.0, -0.0, 1.5, -1.5, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE][random.random_range(0..7)]
}

fn several<T>(random: &mut StdRng, make: impl Fn(&mut StdRng) -> T) -> Vec<T> {
    (0..random.random_range(0..4)).map(|_| make(random)).collect()
}

impl Item {
    fn random(random: &mut StdRng, depth: u32) -> Item {
        let inner = |random: &mut StdRng| Item::random(random, depth + 1);
        let has_inner = depth < 2 && random.random_bool(0.5);
        Item {
            id: number(random),
            name: text(random),
            price: real(random),
            stock: random.random_bool(0.5).then(|| number(random)),
            sizes: several(random, number),
            tags: several(random, text),
            counts: several(random, |random| (text(random), i64::from(number(random))))
                .into_iter()
                .collect(),
            parts: if has_inner {
                several(random, |random| (number(random), inner(random))).into_iter().collect()
            } else {
                BTreeMap::new()
            },
            kind: match random.random_range(0..4) {
                0 => Kind::Text(text(random)),
                1 if has_inner => Kind::Inner(inner(random).into()),
                2 => Kind::Color(random.random_range(0..4)),
                _ => Kind::None,
            },
            prices: several(random, real),
            items: if has_inner { several(random, inner) } else { Vec::new() },
        }
    }

    /// Changes one value.
    fn change(&mut self, random: &mut StdRng) {
        match random.random_range(0..12) {
            0 => self.id ^= 1 << random.random_range(0..31),
            1 => self.name.push('c'),
            2 => self.price = if self.price.is_nan() { 0.0 } else { -self.price },
            3 => self.stock = if self.stock.is_none() { Some(0) } else { None },
            4 => self.sizes.push(0),
            5 => match &mut self.tags[..] {
                [] => self.tags.push(String::new()),
                [first, ..] => first.push('c'),
            },
            6 => match self.counts.pop_first() {
                None => drop(self.counts.insert(String::new(), 0)),
                Some((key, value)) if random.random_bool(0.5) => {
                    self.counts.insert(key, value ^ 1);
                }
                Some(_) => {}
            },
            7 => match self.parts.values_mut().next() {
                None => drop(self.parts.insert(0, Item::default())),
                Some(part) => part.change(random),
            },
            8 => match &mut self.kind {
                Kind::None => self.kind = Kind::Text(String::new()),
                Kind::Text(text) if text.is_empty() => self.kind = Kind::Color(0),
                Kind::Text(_) => self.kind = Kind::None,
                Kind::Inner(inner) => inner.change(random),
                Kind::Color(color) => *color ^= 1,
            },
            9 => match &mut self.prices[..] {
                [] => self.prices.push(-0.0),
                [.., last] => *last = if last.is_nan() { 0.0 } else { -*last },
            },
            10 => match &mut self.items[..] {
                [] => self.items.push(Item::default()),
                [.., last] => last.change(random),
            },
            // Only the order.
            _ if self.sizes.first() != self.sizes.last() => self.sizes.reverse(),
            _ => self.id ^= 1,
        }
    }

    /// Writes it in a random encoding.
    fn write(&self, random: &mut StdRng) -> Vec<u8> {
        // The values of each field in their order. Members of the oneof are one field.
        let mut fields: Vec<Vec<Vec<u8>>> = Vec::new();
        let junk = number(random);
        let mut single = |is_default: bool, other: Vec<u8>, value: Vec<u8>| {
            let mut values = if random.random_bool(0.2) { vec![other] } else { Vec::new() };
            // A default must be written only after another value.
            if !is_default || !values.is_empty() || random.random_bool(0.3) {
                values.push(value);
            }
            fields.push(values);
        };
        single(self.id == 0, int(1, junk), int(1, self.id));
        single(self.name.is_empty(), delimited(2, b"x"), delimited(2, self.name.as_bytes()));
        single(self.price.to_bits() == 0, double(3, 3.0), double(3, nan(self.price, junk)));
        if let Some(stock) = self.stock {
            single(false, int(5, junk), int(5, stock));
        }
        fields.push(list(random, 6, &self.sizes, |size| varints(&[*size])));
        fields.push(self.tags.iter().map(|tag| delimited(7, tag.as_bytes())).collect());
        let reals = |price: &f64| nan(*price, junk).to_le_bytes().to_vec();
        fields.push(list(random, 22, &self.prices, reals));
        let counts = self.counts.iter().map(|(key, value)| {
            (delimited(1, key.as_bytes()), key.is_empty(), varint(2, *value as u64), *value == 0)
        });
        fields.push(map(random, 8, counts.collect()));
        let parts: Vec<_> =
            self.parts.iter().map(|(key, part)| (key, part.write(random))).collect();
        let parts = parts
            .into_iter()
            .map(|(key, part)| (int(1, *key), *key == 0, delimited(2, &part), part.is_empty()));
        fields.push(map(random, 9, parts.collect()));
        fields.push(self.items.iter().map(|item| delimited(28, &item.write(random))).collect());
        fields.push(self.kind.write(random));
        interleaved(random, fields)
    }
}

impl Kind {
    fn write(&self, random: &mut StdRng) -> Vec<Vec<u8>> {
        // Another member before it has no effect.
        let other = |random: &mut StdRng| {
            [delimited(10, b"x"), varint(12, 2)][random.random_range(0..2)].clone()
        };
        let mut values = Vec::new();
        if !matches!(self, Kind::None) && random.random_bool(0.3) {
            values.push(delimited(11, &varint(1, 5)));
            values.push(other(random));
        }
        match self {
            Kind::None => {}
            Kind::Text(text) => values.push(delimited(10, text.as_bytes())),
            Kind::Color(color) => values.push(int(12, *color)),
            // In two parts, which are merged: the second has one field again.
            Kind::Inner(inner) => {
                values.push(delimited(11, &inner.write(random)));
                if random.random_bool(0.3) {
                    values.push(delimited(11, &int(1, inner.id)));
                }
            }
        }
        values
    }
}

/// Another NaN in place of one.
fn nan(value: f64, junk: i32) -> f64 {
    if value.is_nan() {
        f64::from_bits(value.to_bits() ^ u64::from(junk as u32 & 0xff))
    } else {
        value
    }
}

/// An integer, which may be longer than it needs to be.
fn int(number: u32, value: i32) -> Vec<u8> {
    let mut bytes = varint(number, i64::from(value) as u64);
    if (1..128).contains(&value) {
        *bytes.last_mut().unwrap() |= 0x80;
        bytes.extend([0x80, 0]);
    }
    bytes
}

fn varints(values: &[i32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    values.iter().for_each(|value| encode_varint(i64::from(*value) as u64, &mut bytes));
    bytes
}

/// The values of a list, in runs that are packed or not.
fn list<T>(
    random: &mut StdRng,
    field: u32,
    values: &[T],
    bytes: impl Fn(&T) -> Vec<u8>,
) -> Vec<Vec<u8>> {
    let mut written = Vec::new();
    let mut rest = values;
    while !rest.is_empty() {
        let (run, after) = rest.split_at(random.random_range(0..=rest.len()));
        rest = after;
        if random.random_bool(0.5) {
            written.push(delimited(field, &run.iter().flat_map(&bytes).collect::<Vec<_>>()));
        } else {
            written.extend(run.iter().map(|value| {
                let value = bytes(value);
                let is_double = field == 22;
                let mut bytes = Vec::new();
                let wire_type = if is_double { WireType::SixtyFourBit } else { WireType::Varint };
                encode_key(field, wire_type, &mut bytes);
                [bytes, value].concat()
            }));
        }
    }
    written
}

/// The entries of a map in random order: key, whether that is the default, value, whether that is the default.
fn map(
    random: &mut StdRng,
    field: u32,
    mut entries: Vec<(Vec<u8>, bool, Vec<u8>, bool)>,
) -> Vec<Vec<u8>> {
    entries.shuffle(random);
    let mut written = Vec::new();
    for (key, is_default_key, value, is_default_value) in entries {
        if random.random_bool(0.2) {
            // Replaced by the next one.
            written.push(delimited(field, &key));
        }
        let mut parts = Vec::new();
        if !is_default_key || random.random_bool(0.5) {
            parts.push(key);
        }
        if !is_default_value || random.random_bool(0.5) {
            parts.push(value);
        }
        parts.shuffle(random);
        written.push(delimited(field, &parts.concat()));
    }
    written
}

/// All values, those of each field in their order.
fn interleaved(random: &mut StdRng, fields: Vec<Vec<Vec<u8>>>) -> Vec<u8> {
    let mut fields: Vec<_> = fields.into_iter().map(Vec::into_iter).collect();
    let mut bytes = Vec::new();
    while !fields.is_empty() {
        let at = random.random_range(0..fields.len());
        match fields[at].next() {
            Some(value) => bytes.extend(value),
            None => drop(fields.swap_remove(at)),
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_encoding_is_right_and_every_change_is_found(seed in any::<u64>()) {
        let mut random = StdRng::seed_from_u64(seed);
        let item = Item::random(&mut random, 0);
        let types = super::types();
        let expectation = types.expectation(GET, &item.write(&mut random)).unwrap();
        for _ in 0..4 {
            let other = item.write(&mut random);
            prop_assert_eq!(expectation.fault(&other), None);
            let mut changed = item.clone();
            changed.change(&mut random);
            let changed = changed.write(&mut random);
            prop_assert!(expectation.fault(&changed).is_some(), "{:?}", item);
        }
    }
}
