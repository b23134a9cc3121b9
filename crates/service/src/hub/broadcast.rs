//! A message for many members: framed once, and compressed once if the hub compresses.

use super::{
    census::Note,
    compress::compressed,
    message::{Came, write_broadcast, write_presence},
};
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
    /// What it says of a member. Another process frames that anew, with the members that it knows of.
    note: Option<Note>,
}

/// What a broadcast is, in its first byte.
const MESSAGE: u8 = 0;
const IN: u8 = 1;
const OUT: u8 = 2;

impl Broadcast {
    /// That somebody has come or gone, and how many are there then.
    pub(super) fn presence(note: Note, members: usize) -> Self {
        let mut plain = Vec::new();
        write_presence(note.came, note.name.as_deref(), members, &mut plain);
        Broadcast(Arc::new(Frames { plain: plain.into(), compressed: None, note: Some(note) }))
    }

    /// What it says of a member.
    pub(super) fn note(&self) -> Option<&Note> {
        self.0.note.as_ref()
    }

    /// Frames a payload, and compresses it too if the hub does.
    pub(super) fn new(payload: &str, compresses: bool) -> Self {
        let mut plain = Vec::with_capacity(payload.len() + 64);
        let header = write_broadcast(payload, &mut plain);
        let text = Frame::text(&plain[header..]);
        let compressed = if compresses { compressed(text) } else { None };
        let compressed = compressed.map(Vec::into);
        Broadcast(Arc::new(Frames { plain: plain.into(), compressed, note: None }))
    }

    /// The frame for a member, who reads compressed ones or does not.
    pub(super) fn frame(&self, inflates: bool) -> &[u8] {
        let Frames { plain, compressed, .. } = &*self.0;
        compressed.as_ref().filter(|_| inflates).unwrap_or(plain)
    }
}

impl Push for Broadcast {
    fn size(&self) -> usize {
        self.0.plain.len()
    }
}

/// A kind (a byte). A message: the length of its plain frame (u32), that frame, and the compressed one, if
/// there is one. A note: the number of the member (u64), and its name, if it has one, which is not empty.
/// Numbers are little-endian.
impl Wire for Broadcast {
    fn write(&self, out: &mut Vec<u8>) {
        let Frames { plain, compressed, note } = &*self.0;
        if let Some(Note { came, number, name }) = note {
            out.push(if *came == Came::In { IN } else { OUT });
            out.extend_from_slice(&(*number as u64).to_le_bytes());
            out.extend_from_slice(name.as_deref().unwrap_or_default().as_bytes());
            return;
        }
        out.push(MESSAGE);
        let length = u32::try_from(plain.len()).expect("a frame is below 4 GiB");
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(plain);
        out.extend_from_slice(compressed.as_deref().unwrap_or_default());
    }

    /// A note has no frame until it is [framed](Broadcast::presence) here.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (kind, bytes) = bytes.split_first()?;
        let frames = match *kind {
            MESSAGE => {
                let (length, frames) = bytes.split_first_chunk()?;
                let length = u32::from_le_bytes(*length) as usize;
                let (plain, compressed) = frames.split_at_checked(length)?;
                let compressed = (!compressed.is_empty()).then(|| compressed.into());
                Frames { plain: plain.into(), compressed, note: None }
            }
            IN | OUT => {
                let (number, name) = bytes.split_first_chunk()?;
                let name = str::from_utf8(name).ok()?;
                let note = Note {
                    came: if *kind == IN { Came::In } else { Came::Out },
                    number: u64::from_le_bytes(*number) as usize,
                    name: (!name.is_empty()).then(|| name.into()),
                };
                Frames { plain: Box::default(), compressed: None, note: Some(note) }
            }
            _ => return None,
        };
        Some(Broadcast(Arc::new(frames)))
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
            let cut = &bytes[..5 + sent.0.plain.len() - 1];
            assert!(Broadcast::read(cut).is_none());
        }
        for bytes in [&b""[..], b"\0\0", b"\x01\0", b"\x03", b"\x01\0\0\0\0\0\0\0\0\xff"] {
            assert!(Broadcast::read(bytes).is_none(), "{bytes:?}");
        }
    }

    #[test]
    fn a_note_crosses_without_a_frame() {
        for (came, name) in [(Came::In, None), (Came::Out, Some("\u{fc}\"".into()))] {
            let note = Note { came, number: 70_000, name };
            let mut bytes = Vec::new();
            Broadcast::presence(note.clone(), 5).write(&mut bytes);
            let heard = Broadcast::read(&bytes).unwrap();
            assert_eq!((heard.note(), heard.frame(false)), (Some(&note), &b""[..]));
        }
    }
}
