//! What leader and agent of a session send over NATS (pure).

/// Bytes of a packet before its data.
const HEADER: usize = 17;
/// Most bytes of data in a packet: with its header, 512 KiB. By default, a broker takes 1 MiB.
pub(super) const SEGMENT: usize = (512 << 10) - HEADER;
/// Longest reason for the end of a session, in bytes.
const LONGEST_REASON: usize = 4096;

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Packet {
    /// The leader opens the session.
    Open,
    /// A part of what one side writes.
    Segment(Segment),
    /// The session is over: why, as a clause. Nothing follows.
    Close(String),
}

/// A part of what one side writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Number of bytes before it, since the session began.
    pub offset: u64,
    /// Number of bytes that its sender has received.
    pub ack: u64,
    /// The part.
    pub bytes: Vec<u8>,
}

impl Packet {
    /// The packet as bytes.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Packet::Open => vec![b'O'],
            Packet::Segment(Segment { offset, ack, bytes }) => {
                [&[b'S'][..], &offset.to_le_bytes(), &ack.to_le_bytes(), bytes].concat()
            }
            Packet::Close(because) => {
                let end = because.floor_char_boundary(LONGEST_REASON);
                [b"C", &because.as_bytes()[..end]].concat()
            }
        }
    }

    /// Reads a packet. `None`: these bytes are none.
    pub fn decode(bytes: &[u8]) -> Option<Packet> {
        let (kind, rest) = bytes.split_first()?;
        match kind {
            b'O' if rest.is_empty() => Some(Packet::Open),
            b'S' => {
                let (offset, rest) = rest.split_first_chunk()?;
                let (ack, bytes) = rest.split_first_chunk()?;
                let [offset, ack] = [offset, ack].map(|number| u64::from_le_bytes(*number));
                let is_short = bytes.len() <= SEGMENT;
                is_short.then(|| Packet::Segment(Segment { offset, ack, bytes: bytes.to_vec() }))
            }
            b'C' if rest.len() <= LONGEST_REASON => {
                Some(Packet::Close(String::from_utf8_lossy(rest).into_owned()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn packets_are_read_as_they_were_written() {
        let segment = Segment { offset: 1 << 40, ack: 7, bytes: vec![b'x'; SEGMENT] };
        assert_eq!(Packet::Segment(segment.clone()).encode().len(), 512 << 10);
        for packet in [Packet::Open, Packet::Segment(segment), Packet::Close("it ended".into())] {
            assert_eq!(Packet::decode(&packet.encode()), Some(packet));
        }
    }

    #[test]
    fn a_long_reason_is_cut_between_two_characters() {
        let packet = Packet::Close("ä".repeat(3_000) + "x").encode();
        assert_eq!(Packet::decode(&packet), Some(Packet::Close("ä".repeat(2_048))));
    }

    #[test]
    fn other_bytes_are_no_packets() {
        let long = [&b"S0123456701234567"[..], &vec![0; SEGMENT + 1]].concat();
        for bytes in [&b""[..], b"X", b"Ox", b"S", b"S0123456701234", &long, &[b'C'; 5_000]] {
            assert_eq!(Packet::decode(bytes), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_packet_or_none(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Some(packet @ (Packet::Open | Packet::Segment(_))) = Packet::decode(&bytes) {
                prop_assert_eq!(packet.encode(), bytes);
            }
        }
    }
}
