//! HTTP/2 without reading requests: of each frame only its header, 9 bytes, is looked at (RFC 9113, 4.1).
//!
//! Whatever a request asks for, when its last frame has arrived the same frames are sent on its stream. Field blocks
//! are skipped, so the null server needs no HPACK. What it owes otherwise, because a client would close the
//! connection without it: its settings, acknowledgments of SETTINGS and PING frames, and a window that does not
//! shrink. It ignores the windows of the client.

/// Length of what a client sends first (RFC 9113, 3.4).
const PREFACE: usize = 24;
/// Length of a frame header.
const HEADER: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;

/// END_STREAM of HEADERS and DATA; ACK of SETTINGS and PING.
const END_STREAM_OR_ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// SETTINGS with an INITIAL_WINDOW_SIZE (4) of 2³¹ − 1, and a WINDOW_UPDATE that raises the window of the connection
/// to the same.
const GREETING: &[u8] = &[
    0, 0, 6, SETTINGS, 0, 0, 0, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff, //
    0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7f, 0xff, 0, 0,
];
const SETTINGS_ACK: &[u8] = &[0, 0, 0, SETTINGS, END_STREAM_OR_ACK, 0, 0, 0, 0];
const PING_ACK: &[u8] = &[0, 0, 8, PING, END_STREAM_OR_ACK, 0, 0, 0, 0];
const WINDOW_UPDATE: &[u8] = &[0, 0, 4, 8, 0, 0, 0, 0, 0];

/// Content that was received before the window of the connection is raised again, in bytes.
const RAISED_EVERY: u32 = 1 << 20;

/// The reply to every request.
pub(super) struct Streams {
    /// Whole frames.
    reply: Vec<u8>,
    /// Where the stream is in each of them.
    places: Vec<usize>,
}

/// What is known of the input of a connection.
#[derive(Default)]
pub(super) struct Input {
    /// Bytes of the preface that have arrived.
    preface: usize,
    /// The header of the current frame, and how much of it has arrived.
    header: [u8; HEADER],
    arrived: usize,
    /// Bytes of its payload that have not arrived.
    payload: usize,
    /// The payload of a PING frame.
    ping: [u8; 8],
    /// Whether the header block in progress ends its stream.
    ends: bool,
    /// Content received since the window was raised.
    content: u32,
}

impl Streams {
    /// For a reply of whole frames; `None` if it is not.
    pub fn new(reply: Vec<u8>) -> Option<Self> {
        let (mut places, mut at) = (Vec::new(), 0);
        while at < reply.len() {
            let length = reply.get(at..at + HEADER).map(length)?;
            places.push(at + 5);
            at += HEADER + length;
        }
        (at == reply.len()).then_some(Streams { reply, places })
    }

    /// Takes input, and appends to `out` what is due.
    pub fn take(&self, input: &mut Input, mut bytes: &[u8], out: &mut Vec<u8>) {
        if input.preface < PREFACE {
            if input.preface == 0 && !bytes.is_empty() {
                out.extend_from_slice(GREETING);
            }
            let n = bytes.len().min(PREFACE - input.preface);
            input.preface += n;
            bytes = &bytes[n..];
        }
        while !bytes.is_empty() {
            if input.arrived < HEADER {
                let n = bytes.len().min(HEADER - input.arrived);
                input.header[input.arrived..input.arrived + n].copy_from_slice(&bytes[..n]);
                input.arrived += n;
                bytes = &bytes[n..];
                if input.arrived < HEADER {
                    return;
                }
                input.payload = length(&input.header);
            }
            let n = bytes.len().min(input.payload);
            if input.header[3] == PING && input.payload <= 8 {
                let at = 8 - input.payload;
                input.ping[at..at + n].copy_from_slice(&bytes[..n]);
            }
            input.payload -= n;
            bytes = &bytes[n..];
            if input.payload > 0 {
                return;
            }
            input.arrived = 0;
            self.frame(input, out);
        }
    }

    /// A whole frame has arrived.
    fn frame(&self, input: &mut Input, out: &mut Vec<u8>) {
        let [.., kind, flags, a, b, c, d] = input.header;
        let is_set = |flag| flags & flag != 0;
        match kind {
            SETTINGS if !is_set(END_STREAM_OR_ACK) => out.extend_from_slice(SETTINGS_ACK),
            PING if !is_set(END_STREAM_OR_ACK) => {
                out.extend_from_slice(PING_ACK);
                out.extend_from_slice(&input.ping);
            }
            HEADERS | CONTINUATION => {
                input.ends = if kind == HEADERS { is_set(END_STREAM_OR_ACK) } else { input.ends };
                if input.ends && is_set(END_HEADERS) {
                    self.reply([a, b, c, d], out);
                }
            }
            DATA => {
                input.content += length(&input.header) as u32;
                if input.content >= RAISED_EVERY {
                    out.extend_from_slice(WINDOW_UPDATE);
                    out.extend_from_slice(&input.content.to_be_bytes());
                    input.content = 0;
                }
                if is_set(END_STREAM_OR_ACK) {
                    self.reply([a, b, c, d], out);
                }
            }
            _ => {}
        }
    }

    fn reply(&self, stream: [u8; 4], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.reply);
        for place in &self.places {
            out[start + place..start + place + 4].copy_from_slice(&stream);
        }
    }
}

/// Length of the payload of the frame with this header.
fn length(header: &[u8]) -> usize {
    usize::from(header[0]) << 16 | usize::from(header[1]) << 8 | usize::from(header[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DATA "hi" with END_STREAM, on stream 0.
    const REPLY: &[u8] = &[0, 0, 2, DATA, 1, 0, 0, 0, 0, b'h', b'i'];

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let header = [0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream];
        [&header[..], payload].concat()
    }

    fn reply(stream: u8) -> Vec<u8> {
        frame(DATA, 1, stream, b"hi")
    }

    /// What is sent for `input`, in pieces of `size` bytes.
    fn sent_for(input: &[u8], size: usize) -> Vec<u8> {
        let streams = Streams::new(REPLY.to_vec()).unwrap();
        let (mut state, mut out) = (Input::default(), Vec::new());
        for piece in input.chunks(size) {
            streams.take(&mut state, piece, &mut out);
        }
        out
    }

    #[test]
    fn each_request_gets_the_reply_on_its_stream_however_the_input_is_split() {
        let input = [
            vec![0; PREFACE],
            frame(SETTINGS, 0, 0, &[]),
            frame(HEADERS, END_HEADERS | 1, 1, b"abc"),
            frame(SETTINGS, 1, 0, &[]),
            frame(HEADERS, 1, 3, b"a"),
            frame(CONTINUATION, END_HEADERS, 3, b"b"),
            frame(PING, 0, 0, b"12345678"),
            frame(HEADERS, END_HEADERS, 5, b"a"),
            frame(DATA, 0, 5, b"content"),
            frame(8, 0, 0, &[0, 0, 0, 9]),
            frame(DATA, 1, 5, &[]),
            frame(PING, 1, 0, b"12345678"),
        ]
        .concat();
        let expected = [
            GREETING.to_vec(),
            SETTINGS_ACK.to_vec(),
            reply(1),
            reply(3),
            PING_ACK.to_vec(),
            b"12345678".to_vec(),
            reply(5),
        ]
        .concat();
        for size in 1..=input.len() {
            assert_eq!(sent_for(&input, size), expected, "pieces of {size}");
        }
    }

    #[test]
    fn content_does_not_use_up_the_window_of_the_connection() {
        let data = [&[0, 0x40, 0, DATA, 0, 0, 0, 0, 1][..], &[0; 0x4000]].concat();
        let input = [vec![0; PREFACE], data.repeat(64)].concat();
        let update = [WINDOW_UPDATE, &(1_u32 << 20).to_be_bytes()].concat();
        assert_eq!(sent_for(&input, 1 << 16), [GREETING, &update].concat());
    }

    #[test]
    fn a_reply_that_is_not_whole_frames_is_refused() {
        assert!(Streams::new(REPLY[..10].to_vec()).is_none());
        assert!(Streams::new(REPLY[..5].to_vec()).is_none());
    }
}
