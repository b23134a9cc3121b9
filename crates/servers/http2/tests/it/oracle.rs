//! Field blocks against other implementations: `httlib-hpack` and `loona-hpack` decode what this crate
//! encodes, and this crate decodes what they encode.

use rand::{Rng, SeedableRng, rngs::StdRng};
use regatta_http2::hpack::{Decoder, Encoder, Field, Fields, Indexing};
use std::env;

type List = Vec<(Vec<u8>, Vec<u8>)>;

/// Blocks of a connection, which share one table.
const BLOCKS_PER_CONNECTION: usize = 50;

const NAMES: [&str; 10] = [
    ":status",
    ":path",
    ":authority",
    "date",
    "server",
    "content-type",
    "x-a",
    "x-request-id",
    "set-cookie",
    "etag",
];

/// Number of blocks for each of the four directions: 2,000, or `HTTP2_BLOCKS`.
fn blocks() -> usize {
    env::var("HTTP2_BLOCKS").map_or(2_000, |text| text.parse().expect("HTTP2_BLOCKS is a number"))
}

/// Random fields. Some repeat, so that tables are used; some have any bytes.
fn list(random: &mut StdRng) -> List {
    let mut list = Vec::new();
    for _ in 0..random.random_range(1..12) {
        let name = match random.random_range(0..4) {
            0 => text(random, 30),
            _ => NAMES[random.random_range(0..NAMES.len())].into(),
        };
        let value = match random.random_range(0..5) {
            0 => (0..random.random_range(0..200)).map(|_| random.random()).collect(),
            1 => text(random, 400),
            2 => b"200".to_vec(),
            _ => random.random_range(0..30_u32).to_string().into_bytes(),
        };
        list.push((name, value));
    }
    list
}

fn text(random: &mut StdRng, most: usize) -> Vec<u8> {
    let length = random.random_range(1..most);
    (0..length).map(|_| random.random_range(b' '..=b'~').to_ascii_lowercase()).collect()
}

/// Calls `connection` with a generator for each connection, until enough blocks were checked.
fn connections(seed: u64, mut connection: impl FnMut(&mut StdRng)) {
    for nth in 0..blocks().div_ceil(BLOCKS_PER_CONNECTION) as u64 {
        connection(&mut StdRng::seed_from_u64(seed << 32 | nth));
    }
}

fn owned(fields: &Fields) -> List {
    fields.iter().map(|Field { name, value, .. }| (name.to_vec(), value.to_vec())).collect()
}

/// Encodes with random representations and table sizes; calls `decode` with each block.
fn encode(random: &mut StdRng, mut decode: impl FnMut(&[u8]) -> List) {
    let mut encoder = Encoder::default();
    if random.random() {
        encoder = encoder.plain();
    }
    for _ in 0..BLOCKS_PER_CONNECTION {
        if random.random_range(0..10) == 0 {
            encoder.resize(random.random_range(0..=4096));
        }
        let list = list(random);
        let fields = list.iter().map(|(name, value)| {
            let indexing = [Indexing::Incremental, Indexing::Without, Indexing::Never];
            (&name[..], &value[..], indexing[random.random_range(0..3)])
        });
        let mut block = Vec::new();
        encoder.encode(fields.collect::<Vec<_>>(), &mut block);
        assert_eq!(decode(&block), list);
    }
}

#[test]
fn httlib_decodes_our_blocks() {
    connections(1, |random| {
        let mut decoder = httlib_hpack::Decoder::default();
        encode(random, |block| {
            let (mut block, mut fields) = (block.to_vec(), Vec::new());
            decoder.decode(&mut block, &mut fields).expect("a valid block");
            fields.into_iter().map(|(name, value, _)| (name, value)).collect()
        });
    });
}

#[test]
fn loona_decodes_our_blocks() {
    connections(2, |random| {
        let mut decoder = loona_hpack::Decoder::new();
        encode(random, |block| decoder.decode(block).expect("a valid block"));
    });
}

#[test]
fn we_decode_the_blocks_of_httlib() {
    connections(3, |random| {
        let mut encoder = httlib_hpack::Encoder::default();
        let (mut decoder, mut fields) = (Decoder::new(1 << 20), Fields::default());
        for _ in 0..BLOCKS_PER_CONNECTION {
            let mut block = Vec::new();
            if random.random_range(0..10) == 0 {
                let size = random.random_range(0..=4096);
                encoder.update_max_dynamic_size(size, &mut block).expect("a valid size");
            }
            let list = list(random);
            for (name, value) in &list {
                // Huffman coding of both strings, insertion or never, and the best representation.
                let coding = random.random_range(0..4);
                let indexing = [0, 0x4, 0x8][random.random_range(0..3)];
                let flags = coding | indexing | 0x10;
                encoder.encode((name.clone(), value.clone(), flags), &mut block).expect("encoded");
            }
            decoder.decode(&block, &mut fields).expect("a valid block");
            assert_eq!(owned(&fields), list);
        }
    });
}

#[test]
fn we_decode_the_blocks_of_loona() {
    connections(4, |random| {
        let mut encoder = loona_hpack::Encoder::new();
        let (mut decoder, mut fields) = (Decoder::new(1 << 20), Fields::default());
        for _ in 0..BLOCKS_PER_CONNECTION {
            let list = list(random);
            let block = encoder.encode(list.iter().map(|(name, value)| (&name[..], &value[..])));
            decoder.decode(&block, &mut fields).expect("a valid block");
            assert_eq!(owned(&fields), list);
        }
    });
}
