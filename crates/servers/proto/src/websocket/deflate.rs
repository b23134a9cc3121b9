//! permessage-deflate (RFC 7692): the negotiation, and both directions.

use super::{CloseCode, Role, Violation};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// The negotiated settings (RFC 7692, 7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeflateSettings {
    /// The server compresses each message separately.
    pub server_no_context_takeover: bool,
    /// The client compresses each message separately.
    pub client_no_context_takeover: bool,
    /// The base-2 logarithm of the server's window in bytes: 9 to 15, or 8 if another server chose
    /// that.
    pub server_max_window_bits: u8,
    /// The base-2 logarithm of the client's window in bytes: 8 to 15.
    pub client_max_window_bits: u8,
}

impl Default for DeflateSettings {
    fn default() -> Self {
        DeflateSettings {
            server_no_context_takeover: false,
            client_no_context_takeover: false,
            server_max_window_bits: 15,
            client_max_window_bits: 15,
        }
    }
}

/// The bytes removed from the end of each compressed message (RFC 7692, 7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// Inflates the messages of a connection. Allocates about 40 KB at the first compressed message. If
/// messages are compressed separately, it frees them after each message.
#[derive(Debug)]
pub(super) struct Inflate {
    stream: Option<Decompress>,
    keeps: bool,
}

impl Inflate {
    /// Creates the inflater for data that `reader` reads.
    pub(super) fn new(reader: Role, settings: DeflateSettings) -> Self {
        let alone = match reader {
            Role::Server => settings.client_no_context_takeover,
            Role::Client => settings.server_no_context_takeover,
        };
        Inflate { stream: None, keeps: !alone }
    }

    /// Inflates a part of a message and appends the result. Fails if `out` becomes longer than
    /// `limit`, or if the part is not valid compressed data.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        last: bool,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Violation> {
        // The largest window can inflate data of any window.
        let stream = self.stream.get_or_insert_with(|| Decompress::new(false));
        inflate(stream, bytes, limit, out)?;
        if last {
            inflate(stream, &TAIL, limit, out)?;
            if !self.keeps {
                self.stream = None;
            }
        }
        Ok(())
    }
}

fn inflate(
    stream: &mut Decompress,
    mut bytes: &[u8],
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), Violation> {
    loop {
        if out.len() == out.capacity() {
            // One byte over the limit shows that it is exceeded.
            let more = (4 * bytes.len()).max(out.len()).max(256);
            out.reserve_exact(more.min(limit + 1 - out.len()));
        }
        let (before, room) = (stream.total_in(), out.capacity() - out.len());
        let status = stream.decompress_vec(bytes, out, FlushDecompress::None).map_err(|_| {
            Violation { code: CloseCode::PROTOCOL, why: "a message is not compressed as agreed" }
        })?;
        bytes = &bytes[(stream.total_in() - before) as usize..];
        if out.len() > limit {
            return Err(Violation::TOO_BIG);
        }
        match status {
            // A final block may be followed by another stream (RFC 7692, 7.2.3.4).
            Status::StreamEnd if !bytes.is_empty() => stream.reset(false),
            Status::StreamEnd => {
                stream.reset(false);
                return Ok(());
            }
            // The input taken may inflate to more than there was room for.
            Status::Ok | Status::BufError if out.len() == out.capacity() && room > 0 => {}
            _ if bytes.is_empty() => return Ok(()),
            Status::Ok => {}
            Status::BufError => {
                return Err(Violation::protocol("a message is not compressed as agreed"));
            }
        }
    }
}

/// Compresses the messages of a connection.
#[derive(Debug)]
pub struct Deflate {
    stream: Compress,
    keeps: bool,
}

impl Deflate {
    /// Creates the compressor for data that `reader` will read.
    pub fn new(reader: Role, settings: DeflateSettings) -> Self {
        let (alone, bits) = match reader {
            Role::Client => (settings.server_no_context_takeover, settings.server_max_window_bits),
            Role::Server => (settings.client_no_context_takeover, settings.client_max_window_bits),
        };
        let stream = Compress::new_with_window_bits(Compression::fast(), false, bits.clamp(9, 15));
        Deflate { stream, keeps: !alone }
    }

    /// Appends a compressed message: the payload of frames, the first of which has `compressed`
    /// set.
    pub fn message(&mut self, mut payload: &[u8], out: &mut Vec<u8>) {
        if !self.keeps {
            self.stream.reset();
        }
        let start = out.len();
        loop {
            out.reserve(payload.len() / 2 + 64);
            let before = self.stream.total_in();
            let status = self.stream.compress_vec(payload, out, FlushCompress::Sync);
            payload = &payload[(self.stream.total_in() - before) as usize..];
            // Everything was flushed once room remains.
            if payload.is_empty() && out.len() < out.capacity() || status.is_err() {
                break;
            }
        }
        if out[start..].ends_with(&TAIL) {
            out.truncate(out.len() - TAIL.len());
        }
        if out.len() == start {
            out.push(0); // an empty message (RFC 7692, 7.2.3.6)
        }
    }
}

/// Negotiation.
impl DeflateSettings {
    /// Returns the settings for the first acceptable offer of a client, from the values of its
    /// Sec-WebSocket-Extensions fields (RFC 7692, 5.1 and 7.1). `own`: what the server asks for.
    pub fn accept<'a>(
        offers: impl IntoIterator<Item = &'a str>,
        own: DeflateSettings,
    ) -> Option<DeflateSettings> {
        let offers = offers.into_iter().flat_map(|value| value.split(','));
        offers.map(str::trim).find_map(|offer| accept_one(offer, own))
    }

    /// Returns the settings that a server agreed to, for a client that sent
    /// [`DeflateSettings::OFFER`]. `None` if the reply is not understood; the connection must then
    /// fail.
    pub fn agreed(extension: &str) -> Option<DeflateSettings> {
        let mut settings = DeflateSettings::default();
        for (name, value) in parameters(extension)? {
            match (name, value) {
                ("server_no_context_takeover", None) => settings.server_no_context_takeover = true,
                ("client_no_context_takeover", None) => settings.client_no_context_takeover = true,
                ("server_max_window_bits", Some(bits)) => settings.server_max_window_bits = bits,
                ("client_max_window_bits", Some(bits)) => settings.client_max_window_bits = bits,
                _ => return None,
            }
        }
        Some(settings)
    }

    /// The value of Sec-WebSocket-Extensions in a server's reply.
    pub fn to_response(self) -> String {
        let mut text = "permessage-deflate".to_string();
        if self.server_no_context_takeover {
            text += "; server_no_context_takeover";
        }
        if self.client_no_context_takeover {
            text += "; client_no_context_takeover";
        }
        if self.server_max_window_bits < 15 {
            text += &format!("; server_max_window_bits={}", self.server_max_window_bits);
        }
        if self.client_max_window_bits < 15 {
            text += &format!("; client_max_window_bits={}", self.client_max_window_bits);
        }
        text
    }

    /// The offer of a client: everything.
    pub const OFFER: &str = "permessage-deflate; client_max_window_bits";
}

fn accept_one(offer: &str, own: DeflateSettings) -> Option<DeflateSettings> {
    let mut agreed = own;
    // Without the parameter, the client's window must not be limited.
    agreed.client_max_window_bits = 15;
    for (name, value) in parameters(offer)? {
        match (name, value) {
            ("server_no_context_takeover", None) => agreed.server_no_context_takeover = true,
            ("client_no_context_takeover", None) => agreed.client_no_context_takeover = true,
            ("server_max_window_bits", Some(bits)) => {
                agreed.server_max_window_bits = agreed.server_max_window_bits.min(bits);
            }
            ("client_max_window_bits", bits) => {
                agreed.client_max_window_bits = own.client_max_window_bits.min(bits.unwrap_or(15));
            }
            _ => return None,
        }
    }
    // zlib does not support windows below 2⁹ bytes, although the extension allows 2⁸.
    (agreed.server_max_window_bits >= 9).then_some(agreed)
}

/// Returns the parameters of a permessage-deflate offer. Each may occur once. Window bits are 8 to
/// 15.
fn parameters(extension: &str) -> Option<Vec<(&str, Option<u8>)>> {
    let mut parts = extension.split(';').map(str::trim);
    if parts.next() != Some("permessage-deflate") {
        return None;
    }
    let mut found: Vec<(&str, Option<u8>)> = Vec::new();
    for part in parts {
        let (name, value) = match part.split_once('=') {
            None => (part, None),
            Some((name, value)) => {
                let value = value.trim().trim_matches('"');
                // Neither a sign nor a leading zero is allowed (RFC 7692, 7.1.2.1).
                let plain =
                    value.bytes().all(|byte| byte.is_ascii_digit()) && !value.starts_with('0');
                let bits = value.parse().ok().filter(|bits| plain && (8..=15).contains(bits));
                (name.trim(), Some(bits?))
            }
        };
        if found.iter().any(|(other, _)| *other == name) {
            return None;
        }
        found.push((name, value));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use regatta_testkit::pieces::pieces;

    const BOTH: [bool; 2] = [false, true];

    fn settings(alone: bool, bits: u8) -> DeflateSettings {
        DeflateSettings {
            server_no_context_takeover: alone,
            client_no_context_takeover: alone,
            server_max_window_bits: bits,
            client_max_window_bits: bits,
        }
    }

    #[test]
    fn inflates_the_examples_of_the_rfc() {
        // RFC 7692, 7.2.3.1 and 7.2.3.2: "Hello", twice, in a shared context.
        let mut inflate = Inflate::new(Role::Server, settings(false, 15));
        for message in
            [&[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00][..], &[0xf2, 0x00, 0x11, 0x00, 0x00]]
        {
            let mut out = Vec::new();
            inflate.push(message, true, 5, &mut out).unwrap();
            assert_eq!(out, b"Hello");
        }
        // 7.2.3.4: a block with the BFINAL bit; 7.2.3.3: one without compression.
        for message in [
            &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00][..],
            &[0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00],
        ] {
            let mut out = Vec::new();
            Inflate::new(Role::Server, settings(true, 15))
                .push(message, true, 5, &mut out)
                .unwrap();
            assert_eq!(out, b"Hello");
        }
    }

    #[test]
    fn a_zip_bomb_is_refused_at_the_limit() {
        let mut compressed = Vec::new();
        Deflate::new(Role::Server, settings(false, 15))
            .message(&vec![0; 10 << 20], &mut compressed);
        assert!(compressed.len() < 200_000, "{}", compressed.len());
        let mut out = Vec::new();
        let result = Inflate::new(Role::Server, settings(false, 15)).push(
            &compressed,
            true,
            1 << 20,
            &mut out,
        );
        assert_eq!(result, Err(Violation::TOO_BIG));
        assert!(out.capacity() <= (1 << 20) + 1, "{}", out.capacity());
    }

    #[test]
    fn invalid_data_is_refused() {
        let mut out = Vec::new();
        let mut inflate = Inflate::new(Role::Client, settings(false, 15));
        assert_eq!(inflate.push(&[0xff; 9], true, 1000, &mut out).unwrap_err().code, 1002);
    }

    #[test]
    fn offers_are_accepted_within_the_servers_settings() {
        let own = DeflateSettings { client_max_window_bits: 12, ..DeflateSettings::default() };
        let accept = |offer: &str| DeflateSettings::accept([offer], own).map(|it| it.to_response());
        let is = |text: &str| Some(text.to_string());
        assert_eq!(accept("permessage-deflate"), is("permessage-deflate"));
        assert_eq!(
            accept("permessage-deflate; client_max_window_bits"),
            is("permessage-deflate; client_max_window_bits=12")
        );
        assert_eq!(
            accept("permessage-deflate; client_max_window_bits=\"10\" ;server_no_context_takeover"),
            is("permessage-deflate; server_no_context_takeover; client_max_window_bits=10")
        );
        // The first acceptable offer wins.
        assert_eq!(
            accept(
                "x-other, permessage-deflate; server_max_window_bits=8, permessage-deflate; server_max_window_bits=9"
            ),
            is("permessage-deflate; server_max_window_bits=9")
        );
        for refused in [
            "",
            "permessage-bzip2",
            "permessage-deflate; unknown",
            "permessage-deflate; server_max_window_bits",
            "permessage-deflate; server_max_window_bits=16",
            "permessage-deflate; server_max_window_bits=010",
            "permessage-deflate; server_max_window_bits=+9",
            "permessage-deflate; server_no_context_takeover=1",
            "permessage-deflate; client_max_window_bits; client_max_window_bits=9",
        ] {
            assert_eq!(accept(refused), None, "{refused}");
        }
    }

    #[test]
    fn a_client_understands_the_servers_reply() {
        for alone in BOTH {
            for bits in [9, 15] {
                let settings = settings(alone, bits);
                assert_eq!(DeflateSettings::agreed(&settings.to_response()), Some(settings));
            }
        }
        assert_eq!(DeflateSettings::agreed("permessage-deflate; x"), None);
    }

    proptest! {
        #[test]
        fn compressed_messages_are_inflated_unchanged(
            messages in proptest::collection::vec(
                prop_oneof![
                    "[ab]{0,2000}".prop_map(String::into_bytes),
                    proptest::collection::vec(any::<u8>(), 0..3000),
                ],
                1..5,
            ),
            alone: bool,
            bits in 9_u8..=15,
            cuts in proptest::collection::vec(1usize..700, 1..10),
        ) {
            let settings = settings(alone, bits);
            for reader in [Role::Server, Role::Client] {
                let mut deflate = Deflate::new(reader, settings);
                let mut inflate = Inflate::new(reader, settings);
                for message in &messages {
                    let (mut compressed, mut out) = (Vec::new(), Vec::new());
                    deflate.message(message, &mut compressed);
                    let mut pieces = pieces(&compressed, &cuts).peekable();
                    while let Some(piece) = pieces.next() {
                        let is_last = pieces.peek().is_none();
                        inflate.push(piece, is_last, message.len(), &mut out).unwrap();
                    }
                    prop_assert_eq!(&out, message);
                }
            }
        }
    }
}
