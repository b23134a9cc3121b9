//! A message for many members: framed once, and compressed once if the hub compresses.

use super::{compress::compressed, message::write_broadcast};
use regatta_engine::{Push, Wire};
use regatta_proto::websocket::Frame;
use std::sync::Arc;

/// A message for many members, framed once.
#[derive(Clone, Debug)]
pub struct Broadcast(Arc<Frames>);

#[derive(Debug, PartialEq, Eq)]
struct Frames {
    plain: Box<[u8]>,
    /// Where the hub compresses, and it is shorter.
    compressed: Option<Box<[u8]>>,
}

impl Broadcast {
    /// Of a frame that is not compressed.
    pub(super) fn plain(frame: Vec<u8>) -> Self {
        Broadcast(Arc::new(Frames { plain: frame.into(), compressed: None }))
    }

    /// Frames a payload, and compresses it too if the hub does.
    pub(super) fn new(payload: &str, compresses: bool) -> Self {
        let mut plain = Vec::with_capacity(payload.len() + 64);
        let header = write_broadcast(payload, &mut plain);
        let text = Frame::text(&plain[header..]);
        let compressed = if compresses { compressed(text) } else { None };
        Broadcast(Arc::new(Frames { plain: plain.into(), compressed: compressed.map(Vec::into) }))
    }

    /// The frame for a member, who reads compressed ones or does not.
    pub(super) fn frame(&self, inflates: bool) -> &[u8] {
        let Frames { plain, compressed } = &*self.0;
        compressed.as_ref().filter(|_| inflates).unwrap_or(plain)
    }
}

impl Push for Broadcast {
    fn size(&self) -> usize {
        self.0.plain.len()
    }
}

/// The length of the plain frame (u32, little-endian), that frame, and the compressed one, if there is one.
impl Wire for Broadcast {
    fn write(&self, out: &mut Vec<u8>) {
        let Frames { plain, compressed } = &*self.0;
        let length = u32::try_from(plain.len()).expect("a frame is below 4 GiB");
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(plain);
        out.extend_from_slice(compressed.as_deref().unwrap_or_default());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (length, frames) = bytes.split_first_chunk()?;
        let (plain, compressed) = frames.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let compressed = (!compressed.is_empty()).then(|| compressed.into());
        Some(Broadcast(Arc::new(Frames { plain: plain.into(), compressed })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broadcast_is_the_same_in_another_process() {
        let long = serde_json::to_string(&"abc ".repeat(200)).unwrap();
        for (payload, compresses) in [("1", false), ("1", true), (&long, false), (&long, true)] {
            let sent = Broadcast::new(payload, compresses);
            assert_eq!(sent.0.compressed.is_some(), compresses && payload.len() > 1);
            let mut bytes = Vec::new();
            sent.write(&mut bytes);
            assert_eq!(Broadcast::read(&bytes).unwrap().0, sent.0);
            // Without its end the plain frame is not whole.
            let cut = &bytes[..4 + sent.0.plain.len() - 1];
            assert!(Broadcast::read(cut).is_none());
        }
        assert!(Broadcast::read(b"\0\0").is_none());
    }
}
