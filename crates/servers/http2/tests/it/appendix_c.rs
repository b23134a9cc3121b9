//! The examples of RFC 7541, appendix C, decoded and encoded.

use regatta_http2::{
    Rule,
    hpack::{Decoder, Encoder, Field, Fields, Indexing},
};

type Pair = (&'static str, &'static str);

/// A block, its fields, and the dynamic table behind it.
struct Example {
    hex: &'static str,
    fields: &'static [Pair],
    table: &'static [Pair],
}

const GET: Pair = (":method", "GET");
const HTTP: Pair = (":scheme", "http");
const ROOT: Pair = (":path", "/");
const AUTHORITY: Pair = (":authority", "www.example.com");
const NO_CACHE: Pair = ("cache-control", "no-cache");
const CUSTOM: Pair = ("custom-key", "custom-value");
const PRIVATE: Pair = ("cache-control", "private");
const DATE_21: Pair = ("date", "Mon, 21 Oct 2013 20:13:21 GMT");
const DATE_22: Pair = ("date", "Mon, 21 Oct 2013 20:13:22 GMT");
const LOCATION: Pair = ("location", "https://www.example.com");
const GZIP: Pair = ("content-encoding", "gzip");
const COOKIE: Pair = ("set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1");
const STATUS_302: Pair = (":status", "302");
const STATUS_307: Pair = (":status", "307");

const REQUESTS: [(&[Pair], &[Pair]); 3] = [
    (&[GET, HTTP, ROOT, AUTHORITY], &[AUTHORITY]),
    (&[GET, HTTP, ROOT, AUTHORITY, NO_CACHE], &[NO_CACHE, AUTHORITY]),
    (
        &[GET, (":scheme", "https"), (":path", "/index.html"), AUTHORITY, CUSTOM],
        &[CUSTOM, NO_CACHE, AUTHORITY],
    ),
];

const RESPONSES: [(&[Pair], &[Pair]); 3] = [
    (&[STATUS_302, PRIVATE, DATE_21, LOCATION], &[LOCATION, DATE_21, PRIVATE, STATUS_302]),
    (&[STATUS_307, PRIVATE, DATE_21, LOCATION], &[STATUS_307, LOCATION, DATE_21, PRIVATE]),
    (&[(":status", "200"), PRIVATE, DATE_22, LOCATION, GZIP, COOKIE], &[COOKIE, GZIP, DATE_22]),
];

fn examples(of: &[(&'static [Pair], &'static [Pair]); 3], hex: [&'static str; 3]) -> Vec<Example> {
    let all = of.iter().zip(hex);
    all.map(|((fields, table), hex)| Example { hex, fields, table }).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn pairs<'a>(all: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    all.map(|(name, value)| (text(name), text(value))).collect()
}

/// Decodes the blocks of a connection, and encodes their fields again.
fn check(examples: &[Example], mut encoder: Encoder, limit: usize) {
    let (mut decoder, mut fields) = (Decoder::new(4096), Fields::default());
    decoder.set_limit(limit);
    encoder.resize(limit);
    if limit < 4096 {
        // The examples reduce the table by other means, so this block is not in them.
        let mut update = Vec::new();
        encoder.encode([], &mut update);
        assert_eq!(decoder.decode(&update, &mut fields), Ok(()));
    }
    for Example { hex, fields: expected, table } in examples {
        let block = bytes(hex);
        decoder.decode(&block, &mut fields).unwrap();
        let owned = |all: &[Pair]| pairs(all.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())));
        let decoded = fields.iter().map(|Field { name, value, .. }| (name, value));
        assert_eq!(pairs(decoded), owned(expected));
        assert_eq!(pairs(decoder.table()), owned(table));
        let size: usize = expected.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
        assert_eq!(fields.size(), size);
        let mut encoded = Vec::new();
        let literals =
            expected.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes(), Indexing::Incremental));
        encoder.encode(literals, &mut encoded);
        assert_eq!(encoded, block, "{hex}");
    }
}

#[test]
fn c_2_single_fields() {
    let custom = ("custom-key", "custom-header");
    for (hex, field, indexing, is_inserted) in [
        (
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            custom,
            Indexing::Incremental,
            true,
        ),
        ("040c 2f73 616d 706c 652f 7061 7468", (":path", "/sample/path"), Indexing::Without, false),
        (
            "1008 7061 7373 776f 7264 0673 6563 7265 74",
            ("password", "secret"),
            Indexing::Never,
            false,
        ),
        ("82", GET, Indexing::Without, false),
    ] {
        let (mut decoder, mut fields) = (Decoder::new(4096), Fields::default());
        decoder.decode(&bytes(hex), &mut fields).unwrap();
        let (name, value) = (field.0.as_bytes(), field.1.as_bytes());
        let never_indexed = indexing == Indexing::Never;
        assert_eq!(fields.iter().collect::<Vec<_>>(), [Field { name, value, never_indexed }]);
        assert_eq!(decoder.table().next(), is_inserted.then_some((name, value)));
        let mut encoded = Vec::new();
        Encoder::default().plain().encode([(name, value, indexing)], &mut encoded);
        assert_eq!(encoded, bytes(hex));
    }
}

#[test]
fn c_3_requests_without_huffman_coding() {
    let hex = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    check(&examples(&REQUESTS, hex), Encoder::default().plain(), 4096);
}

#[test]
fn c_4_requests_with_huffman_coding() {
    let hex = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    check(&examples(&REQUESTS, hex), Encoder::default(), 4096);
}

#[test]
fn c_5_responses_without_huffman_coding() {
    let hex = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 \
         2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 \
         6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d \
         54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 \
         5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e \
         3d31",
    ];
    check(&examples(&RESPONSES, hex), Encoder::default().plain(), 256);
}

#[test]
fn c_6_responses_with_huffman_coding() {
    let hex = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 \
         2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab \
         77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f \
         9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ];
    check(&examples(&RESPONSES, hex), Encoder::default(), 256);
}

#[test]
fn a_reduced_table_must_be_announced_and_a_raised_one_may_be() {
    let (mut decoder, mut fields) = (Decoder::new(4096), Fields::default());
    let mut encoder = Encoder::default();
    encoder.resize(100);
    encoder.resize(3000);
    let mut block = Vec::new();
    encoder.encode([(&b":method"[..], &b"GET"[..], Indexing::Without)], &mut block);
    // The smallest size and the last one (RFC 7541, 4.2).
    assert_eq!(block, [0x3f, 69, 0x3f, 0x99, 0x17, 0x82]);
    decoder.set_limit(3000);
    assert!(decoder.owes_update());
    assert_eq!(decoder.decode(&block, &mut fields), Ok(()));
    assert!(!decoder.owes_update());
    decoder.set_limit(2999);
    assert_eq!(decoder.decode(&[0x82], &mut fields), Err(Rule::TableSizeMissing));
    decoder.set_limit(4096);
    assert_eq!(decoder.decode(&[0x82], &mut fields), Ok(()));
}
