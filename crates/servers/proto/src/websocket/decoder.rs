//! Bytes → messages: frames are unmasked, inflated, assembled and checked.

use super::{
    CloseCode, MAX_CONTROL, Opcode, Role, Violation, close, deflate::Inflate, frame::Header, mask,
    utf8::Utf8,
};

/// Memory kept for the next message that must be assembled, in bytes.
const KEPT: usize = 1024;

/// A message or a control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A complete text message.
    Text(&'a str),
    /// A complete binary message.
    Binary(&'a [u8]),
    /// A ping. Answer it with a pong with the same payload (RFC 6455, 5.5.2).
    Ping(&'a [u8]),
    /// A pong, whether requested or not.
    Pong(&'a [u8]),
    /// The peer closes, with its code and reason, if any. Answer it with a Close frame, unless one
    /// was sent. Nothing after it is interpreted.
    Close(Option<(CloseCode, &'a str)>),
}

/// Decodes the messages of one connection, after its handshake.
#[derive(Debug)]
pub struct Decoder {
    role: Role,
    limit: usize,
    inflate: Option<Inflate>,
    /// The frame whose payload is incomplete.
    frame: Option<Part>,
    /// The message that is incomplete.
    message: Option<Message>,
    /// The part of that message received so far. Between calls, the last message that was returned.
    assembled: Vec<u8>,
    utf8: Utf8,
    closed: bool,
}

/// A frame with an incomplete payload.
#[derive(Clone, Copy, Debug)]
struct Part {
    header: Header,
    /// Bytes of the payload taken so far.
    taken: u64,
}

#[derive(Clone, Copy, Debug)]
struct Message {
    is_text: bool,
    compressed: bool,
}

impl Decoder {
    /// Creates a decoder for the bytes after a handshake. `limit`: maximum size of a message in
    /// bytes, after inflating.
    pub fn new(role: Role, limit: usize) -> Self {
        Decoder {
            role,
            limit,
            inflate: None,
            frame: None,
            message: None,
            assembled: Vec::new(),
            utf8: Utf8::default(),
            closed: false,
        }
    }

    /// Enables permessage-deflate with these negotiated settings.
    pub fn inflating(self, settings: super::DeflateSettings) -> Self {
        Decoder { inflate: Some(Inflate::new(self.role, settings)), ..self }
    }

    /// The memory held for a message, in bytes.
    pub fn held(&self) -> usize {
        self.assembled.capacity()
    }

    /// Frees most of the memory of the last message that was returned. The next call of
    /// [`Decoder::next`] does that, too.
    #[inline]
    pub fn release(&mut self) {
        if self.message.is_none() && self.frame.is_none() && !self.assembled.is_empty() {
            // The caller no longer uses the last message. An idle connection holds no long message.
            self.assembled.clear();
            self.assembled.shrink_to(KEPT);
        }
    }

    /// Returns whether part of a message or frame has been taken and the rest is missing. Bytes of
    /// a frame header that were not taken do not count.
    pub fn is_inside(&self) -> bool {
        !self.closed && (self.frame.is_some() || self.message.is_some())
    }

    /// Takes bytes off the front of `input`. Returns their number, and the event that they
    /// complete. The bytes taken may have been unmasked in place. If nothing is taken, more bytes
    /// must arrive behind the present ones: at most
    /// [`Frame::MAX_HEADER`](super::Frame::MAX_HEADER) + [`MAX_CONTROL`] bytes in total. After
    /// [`Event::Close`] and after a violation, all bytes are taken, and nothing is interpreted.
    #[inline]
    pub fn next<'a>(
        &'a mut self,
        input: &'a mut [u8],
    ) -> Result<(usize, Option<Event<'a>>), Violation> {
        if self.closed {
            return Ok((input.len(), None));
        }
        self.release();
        if let Some(part) = self.frame {
            return self.continue_frame(part, input);
        }
        let read = Header::read(input, self.role, self.inflate.is_some());
        let Some((header, at)) = read.inspect_err(|_| self.closed = true)? else {
            return Ok((0, None));
        };
        if header.opcode.is_control() {
            return self.control(header, at, input);
        }
        self.begin(header).inspect_err(|_| self.closed = true)?;
        let whole = usize::try_from(header.length).ok().and_then(|length| at.checked_add(length));
        match whole.filter(|end| *end <= input.len()) {
            // The usual case: a complete message in one frame.
            Some(end)
                if header.fin
                    && !header.compressed
                    && self.assembled.is_empty()
                    && header.opcode != Opcode::Continuation =>
            {
                self.message = None;
                let payload = &mut input[at..end];
                if let Some(mask) = header.mask {
                    mask::apply(mask, 0, payload);
                }
                if header.opcode == Opcode::Binary {
                    return Ok((end, Some(Event::Binary(payload))));
                }
                match std::str::from_utf8(payload) {
                    Ok(text) => Ok((end, Some(Event::Text(text)))),
                    Err(_) => {
                        self.closed = true;
                        Err(Violation::NOT_TEXT)
                    }
                }
            }
            _ => {
                let (_, payload) = input.split_at_mut(at);
                let (taken, event) = self.continue_frame(Part { header, taken: 0 }, payload)?;
                Ok((at + taken, event))
            }
        }
    }

    /// Checks the frame sequence and the length at the start of a data frame.
    fn begin(&mut self, header: Header) -> Result<(), Violation> {
        match (header.opcode, self.message) {
            (Opcode::Continuation, None) => {
                return Err(Violation::protocol("a continuation frame has no message to continue"));
            }
            (Opcode::Continuation, Some(_)) => {}
            (_, Some(_)) => {
                return Err(Violation::protocol("a message starts inside another one"));
            }
            (opcode, None) => {
                let (is_text, compressed) = (opcode == Opcode::Text, header.compressed);
                self.message = Some(Message { is_text, compressed });
            }
        }
        let compressed = self.message.is_some_and(|message| message.compressed);
        let length = header.length.saturating_add(self.assembled.len() as u64);
        // A compressed message is counted when inflated, and is never much longer.
        let most = if compressed { self.limit as u64 * 2 + 1024 } else { self.limit as u64 };
        if length > most { Err(Violation::TOO_BIG) } else { Ok(()) }
    }

    /// Takes the available bytes of a frame's payload.
    fn continue_frame<'a>(
        &'a mut self,
        mut part: Part,
        input: &'a mut [u8],
    ) -> Result<(usize, Option<Event<'a>>), Violation> {
        let left = part.header.length - part.taken;
        let taken = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
        let bytes = &mut input[..taken];
        if let Some(mask) = part.header.mask {
            mask::apply(mask, (part.taken % 4) as usize, bytes);
        }
        part.taken += taken as u64;
        let ends = part.taken == part.header.length;
        self.frame = (!ends).then_some(part);
        let Some(message) = self.message else { return Ok((taken, None)) };
        let result = self.append(message, bytes, ends && part.header.fin);
        result.inspect_err(|_| self.closed = true)?;
        if !(ends && part.header.fin) {
            return Ok((taken, None));
        }
        self.message = None;
        if !message.is_text {
            return Ok((taken, Some(Event::Binary(&self.assembled))));
        }
        // Cannot fail: the parts were checked.
        let text = std::str::from_utf8(&self.assembled).map_err(|_| Violation::NOT_TEXT)?;
        Ok((taken, Some(Event::Text(text))))
    }

    fn append(&mut self, message: Message, bytes: &[u8], last: bool) -> Result<(), Violation> {
        let start = self.assembled.len();
        match &mut self.inflate {
            Some(inflate) if message.compressed => {
                inflate.push(bytes, last, self.limit, &mut self.assembled)?;
            }
            _ => self.assembled.extend_from_slice(bytes),
        }
        let is_text = !message.is_text
            || self.utf8.push(&self.assembled[start..]) && (!last || self.utf8.end());
        if is_text { Ok(()) } else { Err(Violation::NOT_TEXT) }
    }

    /// Handles a control frame once it is complete; it is short.
    #[inline]
    fn control<'a>(
        &mut self,
        header: Header,
        at: usize,
        input: &'a mut [u8],
    ) -> Result<(usize, Option<Event<'a>>), Violation> {
        let end = at + (header.length as usize).min(MAX_CONTROL);
        let Some(payload) = input.get_mut(at..end) else { return Ok((0, None)) };
        if let Some(mask) = header.mask {
            mask::apply(mask, 0, payload);
        }
        let event = match header.opcode {
            Opcode::Ping => Event::Ping(payload),
            Opcode::Pong => Event::Pong(payload),
            _ => {
                self.closed = true;
                Event::Close(close::read(payload)?)
            }
        };
        Ok((end, Some(event)))
    }
}

#[cfg(test)]
mod tests;
