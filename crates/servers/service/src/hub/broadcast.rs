//! A message for many members, framed once, and compressed at most once; and orders to disconnect some.

use super::{
    compress::compressed,
    dismissal::Dismissal,
    history::{Asker, Position, Wanted},
    last_delivery::Sample,
    message::{
        Change, Note, payload_of, write_broadcast, write_gap, write_kept, write_presence,
        write_roster,
    },
};
use regatta_engine::{Charge, Memory, Push, Wire};
use regatta_proto::websocket::Frame;
use std::{slice, sync::Arc};

/// A message for many members, framed once.
#[derive(Clone, Debug)]
pub struct Broadcast(Arc<Frames>);

#[derive(Debug, Default)]
struct Frames {
    plain: Box<[u8]>,
    /// If the hub compresses, and the result is shorter.
    compressed: Option<Box<[u8]>>,
    kind: Kind,
    /// Its place in the history of its room, if that is kept.
    position: Option<Position>,
    /// Of the memory of this process. One that has just crossed processes is not charged yet.
    charge: Charge,
    /// If its deliveries are timed. It is dropped with the last holder of this broadcast.
    sample: Option<Sample>,
}

/// What a broadcast is.
#[derive(Debug, Default)]
enum Kind {
    /// A message of a member.
    #[default]
    Message,
    /// A message of a backend, or of a member whose engine does not count for how many it is queued.
    OfBackend,
    /// A message that the broker delivered: for members whose places are below this one.
    OfBroker { below: usize },
    /// A presence note. Another process frames it again, with its own number of members.
    Note(Note),
    /// Several of them, for clients that get each. It has no frame.
    Notes(Box<[Note]>),
    /// An order to disconnect members. It has no frame.
    Dismissal(Arc<Dismissal>),
    /// It says that messages are missing; to members of a room with a history, that this may be so.
    Gap,
    /// The members of a room on all hubs at a broker: for those that have no list yet and whose places are below this one,
    /// or for all that have one.
    List { below: Option<usize> },
    /// It asks the connection to the broker for the members of a room on all hubs. It has no frame.
    AsksForMembers,
    /// It asks the connection to the broker for messages of a history. It has no frame.
    Question { wanted: Wanted, asker: Asker },
}

/// The kind of a broadcast, in its first byte on the wire.
const MESSAGE: u8 = 0;
const IN: u8 = 1;
const OUT: u8 = 2;
const OF_BACKEND: u8 = 3;

impl Broadcast {
    /// Announces that a member joined or left, and the new number of members.
    pub(super) fn presence(note: Note, members: usize, memory: &Arc<Memory>) -> Self {
        let mut plain = Vec::new();
        write_presence(note.change, note.name.as_deref(), members, &mut plain);
        let frames = Frames { plain: plain.into(), kind: Kind::Note(note), ..Frames::default() };
        Broadcast(Arc::new(frames)).charged(memory)
    }

    /// Says to clients that these members have joined or left.
    pub(super) fn notes(notes: Vec<Note>, memory: &Arc<Memory>) -> Self {
        let kind = Kind::Notes(notes.into());
        Broadcast(Arc::new(Frames { kind, ..Frames::default() })).charged(memory)
    }

    /// Charges the memory of this process, unless others have it, too: then it was charged already.
    pub(super) fn charged(mut self, memory: &Arc<Memory>) -> Self {
        let size = self.size() + self.infos();
        if let Some(frames) = Arc::get_mut(&mut self.0) {
            let compressed = frames.compressed.as_deref().map_or(0, <[u8]>::len);
            frames.charge = Charge::new(Arc::clone(memory));
            // Whether there is room matters when somebody keeps it.
            frames.charge.set(size_of::<Frames>() + size + compressed);
        }
        self
    }

    /// Times its deliveries with this sample, unless others have it already.
    pub(super) fn sampled(mut self, sample: Option<Sample>) -> Self {
        if let Some(frames) = Arc::get_mut(&mut self.0) {
            frames.sample = sample;
        }
        self
    }

    /// The sample, if its deliveries are timed. Then a member holds it until its output with it is written.
    pub(super) fn sample(&self) -> Option<&Sample> {
        self.0.sample.as_ref()
    }

    /// The presence note, if this is one.
    pub(super) fn note(&self) -> Option<&Note> {
        if let Kind::Note(note) = &self.0.kind { Some(note) } else { None }
    }

    /// The presence notes for clients, if it has some.
    pub(super) fn all_notes(&self) -> &[Note] {
        match &self.0.kind {
            Kind::Note(note) => slice::from_ref(note),
            Kind::Notes(notes) => notes,
            _ => &[],
        }
    }

    /// The length of what these say of members to clients, in bytes.
    pub(super) fn infos(&self) -> usize {
        self.all_notes().iter().filter_map(|note| note.info.as_ref()).map(|info| info.len()).sum()
    }

    /// The order to disconnect members, if this is one.
    pub(super) fn dismissal(&self) -> Option<&Arc<Dismissal>> {
        if let Kind::Dismissal(dismissal) = &self.0.kind { Some(dismissal) } else { None }
    }

    /// Whether its deliveries are counted one by one: it is a message of a backend, for example.
    pub(super) fn is_of_backend(&self) -> bool {
        matches!(self.0.kind, Kind::OfBackend | Kind::OfBroker { .. })
    }

    /// Orders members to disconnect.
    pub(super) fn dismiss(dismissal: Arc<Dismissal>) -> Self {
        let frames = Frames { kind: Kind::Dismissal(dismissal), ..Frames::default() };
        Broadcast(Arc::new(frames))
    }

    /// Says that messages of a room without a history are missing.
    pub(super) fn gap() -> Self {
        let mut plain = Vec::new();
        write_gap(None, &mut plain);
        let frames = Frames { plain: plain.into(), kind: Kind::Gap, ..Frames::default() };
        Broadcast(Arc::new(frames))
    }

    /// Lists members of a room on all hubs. `below`: for members with a lower place that have no list yet; `None`: for all
    /// that have one.
    pub(super) fn list(
        names: &[Arc<str>],
        members: usize,
        below: Option<usize>,
        memory: &Arc<Memory>,
    ) -> Self {
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let mut plain = Vec::new();
        write_roster(&names, members, &mut plain);
        let kind = Kind::List { below };
        let frames = Frames { plain: plain.into(), kind, ..Frames::default() };
        Broadcast(Arc::new(frames)).charged(memory)
    }

    /// Whether this is about the members of a room. `place`: that of a member, who has no list yet if it `waits`. Returns
    /// `Some` with whether it is for this member.
    pub(super) fn of_presence(&self, place: usize, waits: bool) -> Option<bool> {
        match self.0.kind {
            Kind::Note(_) | Kind::List { below: None } => Some(!waits),
            Kind::List { below: Some(below) } => Some(waits && place < below),
            Kind::Notes(_) => Some(false),
            _ => None,
        }
    }

    /// Asks the connection to the broker for the members of a room on all hubs.
    pub(super) fn ask_for_members() -> Self {
        Broadcast(Arc::new(Frames { kind: Kind::AsksForMembers, ..Frames::default() }))
    }

    /// Whether it asks for the members of a room on all hubs.
    pub(super) fn asks_for_members(&self) -> bool {
        matches!(self.0.kind, Kind::AsksForMembers)
    }

    /// Whether it says that messages are missing.
    pub(super) fn is_gap(&self) -> bool {
        matches!(self.0.kind, Kind::Gap)
    }

    /// Asks the connection to the broker for messages of a history.
    pub(super) fn question(wanted: Wanted, asker: Asker) -> Self {
        let kind = Kind::Question { wanted, asker };
        Broadcast(Arc::new(Frames { kind, ..Frames::default() }))
    }

    /// What it asks for, and for whom, if it is a question.
    pub(super) fn asked(&self) -> Option<(Wanted, Asker)> {
        let Kind::Question { wanted, asker } = self.0.kind else { return None };
        Some((wanted, asker))
    }

    /// A payload for the broker: its frame is only the payload.
    pub(super) fn outgoing(payload: &str, is_of_backend: bool, memory: &Arc<Memory>) -> Self {
        let kind = if is_of_backend { Kind::OfBackend } else { Kind::Message };
        let frames = Frames { plain: payload.as_bytes().into(), kind, ..Frames::default() };
        Broadcast(Arc::new(frames)).charged(memory)
    }

    /// Frames the payload of a member's message, and also compresses it if `compresses`.
    pub(super) fn new(payload: &str, compresses: bool, memory: &Arc<Memory>) -> Self {
        Broadcast::framed(payload, compresses, Kind::Message, memory)
    }

    /// Like [`Broadcast::new`], for a message of a backend.
    pub(super) fn of_backend(payload: &str, compresses: bool, memory: &Arc<Memory>) -> Self {
        Broadcast::framed(payload, compresses, Kind::OfBackend, memory)
    }

    /// Like [`Broadcast::of_backend`], for a message of the broker that is for members whose places are below this one.
    pub(super) fn of_broker(
        payload: &str,
        below: usize,
        compresses: bool,
        memory: &Arc<Memory>,
    ) -> Self {
        Broadcast::framed(payload, compresses, Kind::OfBroker { below }, memory)
    }

    /// Whether it is older than the member with this place, which does not get it.
    pub(super) fn is_before(&self, place: usize) -> bool {
        matches!(self.0.kind, Kind::OfBroker { below } if place >= below)
    }

    fn framed(payload: &str, compresses: bool, kind: Kind, memory: &Arc<Memory>) -> Self {
        let mut plain = Vec::with_capacity(payload.len() + 64);
        let header = write_broadcast(payload, &mut plain);
        let compressed = compressed_if(compresses, &plain[header..]);
        let frames = Frames { plain: plain.into(), compressed, kind, ..Frames::default() };
        Broadcast(Arc::new(frames)).charged(memory)
    }

    /// Like [`Broadcast::new`], for a message with a place in the history of its room.
    pub(super) fn kept(
        payload: &str,
        position: Position,
        is_of_backend: bool,
        compresses: bool,
        memory: &Arc<Memory>,
    ) -> Self {
        let mut plain = Vec::with_capacity(payload.len() + 96);
        let header = write_kept(payload, position.offset, &mut plain);
        let compressed = compressed_if(compresses, &plain[header..]);
        let kind = if is_of_backend { Kind::OfBackend } else { Kind::Message };
        let (plain, position) = (plain.into(), Some(position));
        let frames = Frames { plain, compressed, kind, position, ..Frames::default() };
        Broadcast(Arc::new(frames)).charged(memory)
    }

    /// Its place in the history of its room, if that is kept.
    pub(super) fn position(&self) -> Option<Position> {
        self.0.position
    }

    /// The payload of a message; empty for others.
    pub(super) fn payload(&self) -> &[u8] {
        if !matches!(self.0.kind, Kind::Message | Kind::OfBackend | Kind::OfBroker { .. }) {
            return b"";
        }
        // A frame of a server is not masked (RFC 6455, 5.2).
        let header = match self.0.plain[1] {
            126 => 4,
            127 => 10,
            _ => 2,
        };
        payload_of(&self.0.plain[header..], self.0.position.map(|position| position.offset))
    }

    /// The memory that it is charged for, in bytes.
    pub(super) fn footprint(&self) -> usize {
        self.0.charge.bytes()
    }

    /// Returns the frame for a member. `inflates`: whether it accepts compressed frames.
    pub(super) fn frame(&self, inflates: bool) -> &[u8] {
        let Frames { plain, compressed, .. } = &*self.0;
        compressed.as_ref().filter(|_| inflates).unwrap_or(plain)
    }
}

/// Compresses the text of a message, if that is asked for and makes it shorter.
fn compressed_if(compresses: bool, text: &[u8]) -> Option<Box<[u8]>> {
    let compressed = if compresses { compressed(Frame::text(text)) } else { None };
    compressed.map(Vec::into)
}

impl Push for Broadcast {
    fn size(&self) -> usize {
        self.0.plain.len()
    }

    fn must_arrive(&self) -> bool {
        // The list of a new member comes once, and changes are of no use without it.
        matches!(self.0.kind, Kind::Dismissal(_) | Kind::Gap | Kind::List { below: Some(_) })
    }
}

/// The first byte is the kind. A message follows with the length of its plain frame (u32), that
/// frame, and the compressed frame, if any. A note follows with the number of the member (u64) and
/// its name, if any. Numbers are little-endian. Dismissals do not cross processes: nobody may order them
/// there.
impl Wire for Broadcast {
    fn write(&self, out: &mut Vec<u8>) {
        let Frames { plain, compressed, .. } = &*self.0;
        if let Some(Note { change, number, name, .. }) = self.note() {
            out.push(if *change == Change::Joined { IN } else { OUT });
            out.extend_from_slice(&(*number as u64).to_le_bytes());
            out.extend_from_slice(name.as_deref().unwrap_or_default().as_bytes());
            return;
        }
        out.push(if self.is_of_backend() { OF_BACKEND } else { MESSAGE });
        let length = u32::try_from(plain.len()).expect("a frame is below 4 GiB");
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(plain);
        out.extend_from_slice(compressed.as_deref().unwrap_or_default());
    }

    /// A note has no frame until it is [framed](Broadcast::presence) here.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (kind, bytes) = bytes.split_first()?;
        let frames = match *kind {
            MESSAGE | OF_BACKEND => {
                let (length, frames) = bytes.split_first_chunk()?;
                let length = u32::from_le_bytes(*length) as usize;
                let (plain, compressed) = frames.split_at_checked(length)?;
                let compressed = (!compressed.is_empty()).then(|| compressed.into());
                let kind = if *kind == MESSAGE { Kind::Message } else { Kind::OfBackend };
                Frames { plain: plain.into(), compressed, kind, ..Frames::default() }
            }
            IN | OUT => {
                let (number, name) = bytes.split_first_chunk()?;
                let name = str::from_utf8(name).ok()?;
                let note = Note {
                    change: if *kind == IN { Change::Joined } else { Change::Left },
                    number: u64::from_le_bytes(*number) as usize,
                    name: (!name.is_empty()).then(|| name.into()),
                    info: None,
                };
                Frames { kind: Kind::Note(note), ..Frames::default() }
            }
            _ => return None,
        };
        Some(Broadcast(Arc::new(frames)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::history::Epoch;
    use regatta_proto::websocket::CloseCode;

    #[test]
    fn a_broadcast_crosses_processes_unchanged() {
        let long = serde_json::to_string(&"abc ".repeat(200)).unwrap();
        let memory = Arc::default();
        for (payload, compresses) in [("1", false), ("1", true), (&long, false), (&long, true)] {
            let sent = Broadcast::new(payload, compresses, &memory);
            assert_eq!(sent.0.compressed.is_some(), compresses && payload.len() > 1);
            let mut bytes = Vec::new();
            sent.write(&mut bytes);
            let came = Broadcast::read(&bytes).unwrap();
            assert_eq!(
                [true, false].map(|it| came.frame(it)),
                [true, false].map(|it| sent.frame(it))
            );
            assert!(came.note().is_none() && came.0.charge.bytes() == 0);
            // A truncated plain frame is rejected.
            let cut = &bytes[..5 + sent.0.plain.len() - 1];
            assert!(Broadcast::read(cut).is_none());
        }
        let mut bytes = Vec::new();
        Broadcast::of_backend("1", false, &memory).write(&mut bytes);
        let came = Broadcast::read(&bytes).unwrap();
        assert!(came.is_of_backend() && !Broadcast::new("1", false, &memory).is_of_backend());
        for bytes in [&b""[..], b"\0\0", b"\x01\0", b"\x03", b"\x04", b"\x01\0\0\0\0\0\0\0\0\xff"] {
            assert!(Broadcast::read(bytes).is_none(), "{bytes:?}");
        }
    }

    #[test]
    fn a_kept_message_has_its_offset_and_its_payload() {
        for payload in [
            "1".to_owned(),
            format!("\"{}\"", "x".repeat(200)),
            format!("[{}1]", " ".repeat(70_000)),
        ] {
            for offset in [1, 99, u64::MAX] {
                let position = Position { epoch: Epoch(7), offset };
                let kept = Broadcast::kept(&payload, position, true, false, &Arc::default());
                assert_eq!(kept.payload(), payload.as_bytes());
                assert!(kept.is_of_backend() && kept.position() == Some(position));
                let (at, text) = (kept.frame(false).len(), format!(",\"offset\":{offset}}}"));
                assert!(kept.frame(false)[..at].ends_with(text.as_bytes()));
            }
        }
        assert_eq!(Broadcast::new("1", false, &Arc::default()).payload(), b"1");
        let order = Dismissal {
            user: String::new(),
            number: None,
            spared: Vec::new(),
            code: CloseCode(3503),
            reason: String::new(),
            only_leaves: false,
        };
        assert_eq!(Broadcast::dismiss(Arc::new(order)).payload(), b"");
        let (long, position) =
            (format!("[{}]", " ".repeat(200)), Position { epoch: Epoch(7), offset: 1 });
        let kept = Broadcast::kept(&long, position, false, true, &Arc::default());
        assert!(kept.frame(true).len() < 100 && kept.payload() == long.as_bytes());
    }

    #[test]
    fn a_presence_note_crosses_processes_without_a_frame() {
        for (change, name) in [(Change::Joined, None), (Change::Left, Some("\u{fc}\"".into()))] {
            let note = Note { change, number: 70_000, name, info: None };
            let mut bytes = Vec::new();
            Broadcast::presence(note.clone(), 5, &Arc::default()).write(&mut bytes);
            let heard = Broadcast::read(&bytes).unwrap();
            assert_eq!((heard.note(), heard.frame(false)), (Some(&note), &b""[..]));
        }
    }

    #[test]
    fn a_broadcast_is_charged_once_in_each_process_until_nobody_has_it() {
        let here = Arc::new(Memory::default());
        let one = Broadcast::new("\"0123456789\"", false, &here);
        let held = here.held();
        assert!(held > one.size() && held < one.size() + 200, "{held}");
        let same = one.clone().charged(&here);
        assert_eq!(here.held(), held, "two members have it");
        let mut bytes = Vec::new();
        one.write(&mut bytes);
        let there = Arc::new(Memory::default());
        let came = Broadcast::read(&bytes).unwrap().charged(&there);
        assert_eq!(there.held(), held);
        drop((one, came));
        assert_eq!((here.held(), there.held()), (held, 0));
        drop(same);
        assert_eq!(here.held(), 0);
    }
}
