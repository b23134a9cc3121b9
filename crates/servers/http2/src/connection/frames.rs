//! The reader of frames.

use super::{
    content,
    endpoint::{Endpoint, Received},
    limits::{MAX_BLOCK, MAX_CONTINUATIONS, MAX_FRAME},
    reader::{Reader, Step, take},
};
use crate::{
    code::ErrorCode,
    frame::{self, Header, Kind, flag, write},
    rule::Rule,
};

/// Takes bytes off the front of `input` until there is an event, or more must arrive. After an error, the connection
/// is closed.
#[inline]
pub(crate) fn next<'a, E: Endpoint>(
    end: &mut E,
    input: &mut &'a [u8],
    out: &mut Vec<u8>,
) -> Result<Option<E::Notice<'a>>, Rule> {
    let mut next = end.begin(input, out);
    while let Ok(Step::Continue) = next {
        next = step(end, input, out);
    }
    match next {
        Ok(Step::Report(notice)) => Ok(Some(notice)),
        Ok(_) => Ok(None),
        Err(rule) => {
            end.fail(rule.code(), out);
            Err(rule)
        }
    }
}

/// Takes the bytes of the next step off the front of `input`.
#[inline]
fn step<'a, E: Endpoint>(end: &mut E, input: &mut &'a [u8], out: &mut Vec<u8>) -> Received<'a, E> {
    match end.connection().reader {
        Reader::Header => {
            let Some((bytes, rest)) = input.split_first_chunk() else { return Ok(Step::Wait) };
            *input = rest;
            let header = Header::read(bytes);
            end.connection().last_frame = Some(header);
            check(end, header)?;
            begin(end, header, out)
        }
        Reader::Whole(header) => {
            let length = header.length as usize;
            let Some((payload, rest)) = input.split_at_checked(length) else {
                return Ok(Step::Wait);
            };
            *input = rest;
            end.connection().reader = Reader::Header;
            whole(end, header, payload, out)
        }
        Reader::Padding(header, usage) => {
            let Some((&padding, rest)) = input.split_first() else { return Ok(Step::Wait) };
            *input = rest;
            let length = frame::split_padding(header.length as usize - 1, padding)? as u32;
            content::start(end, header, (length, u32::from(padding)), usage, out)
        }
        Reader::Data(data) => Ok(content::proceed(end, data, input, out)),
        Reader::Skip(mut left) => {
            take(input, &mut left);
            end.connection().reader = if left == 0 { Reader::Header } else { Reader::Skip(left) };
            Ok(if left == 0 { Step::Continue } else { Step::Wait })
        }
        Reader::Closed => {
            *input = &[];
            Ok(Step::Wait)
        }
    }
}

/// Checks what a header alone shows.
#[inline]
fn check<E: Endpoint>(end: &mut E, header: Header) -> Result<(), Rule> {
    let Header { length, kind, stream, .. } = header;
    let is_ack = header.has(flag::ACK);
    let is_on_stream = stream != 0;
    let connection = end.connection();
    if !connection.is_settled && (kind != Kind::SETTINGS || is_ack) {
        return Err(Rule::SettingsMissing);
    }
    if length > MAX_FRAME as u32 {
        return Err(Rule::FrameTooLarge);
    }
    let begun = connection.block.stream;
    if begun != 0 && (kind, stream) != (Kind::CONTINUATION, begun) {
        return Err(Rule::BlockInterrupted);
    }
    match kind {
        Kind::DATA if !is_on_stream => return Err(Rule::DataOnConnection),
        Kind::HEADERS if !is_on_stream => return Err(Rule::HeadersOnConnection),
        Kind::DATA | Kind::HEADERS => return end.check_open(header),
        Kind::CONTINUATION if begun == 0 => return Err(Rule::ContinuationWithoutBlock),
        Kind::CONTINUATION => return Ok(()),
        Kind::PRIORITY if !is_on_stream => return Err(Rule::PriorityOnConnection),
        Kind::RST_STREAM if !is_on_stream => return Err(Rule::ResetOnConnection),
        Kind::RST_STREAM if length != 4 => return Err(Rule::ResetLength),
        Kind::SETTINGS if is_on_stream => return Err(Rule::SettingsOnStream),
        Kind::SETTINGS if is_ack && length != 0 => return Err(Rule::SettingsAckLength),
        Kind::SETTINGS if !length.is_multiple_of(6) => return Err(Rule::SettingsLength),
        Kind::PUSH_PROMISE => return Err(Rule::Pushed),
        Kind::PING if is_on_stream => return Err(Rule::PingOnStream),
        Kind::PING if length != 8 => return Err(Rule::PingLength),
        Kind::GOAWAY if is_on_stream => return Err(Rule::GoAwayOnStream),
        Kind::GOAWAY if length < 8 => return Err(Rule::FrameTooShort),
        Kind::WINDOW_UPDATE if length != 4 => return Err(Rule::WindowUpdateLength),
        Kind::RST_STREAM | Kind::WINDOW_UPDATE if is_on_stream && end.is_idle(stream) => {
            return Err(Rule::IdleStream);
        }
        _ => {}
    }
    end.connection().count_idle_frame()
}

/// Starts to read the payload of a frame.
#[inline]
fn begin<'a, E: Endpoint>(end: &mut E, header: Header, out: &mut Vec<u8>) -> Received<'a, E> {
    let reader = match header.kind {
        Kind::DATA => return content::begin(end, header, out),
        Kind::PRIORITY if header.length != 5 => {
            // An endpoint may treat an error of a stream as one of the connection (RFC 9113, 5.4), which is
            // the only way to report it for a stream that is not open.
            if end.connection().streams.get(header.stream).is_none() {
                return Err(Rule::PriorityLength);
            }
            end.connection().reader = Reader::Skip(header.length);
            return end.wrong(header.stream, Rule::PriorityLength, out);
        }
        Kind::HEADERS
        | Kind::RST_STREAM
        | Kind::SETTINGS
        | Kind::PING
        | Kind::GOAWAY
        | Kind::WINDOW_UPDATE
        | Kind::CONTINUATION => Reader::Whole(header),
        _ => Reader::Skip(header.length),
    };
    end.connection().reader = reader;
    Ok(Step::Continue)
}

/// Handles a frame that was read as a whole.
#[inline]
fn whole<'a, E: Endpoint>(
    end: &mut E,
    header: Header,
    payload: &'a [u8],
    out: &mut Vec<u8>,
) -> Received<'a, E> {
    match header.kind {
        Kind::HEADERS => headers(end, header, payload, out),
        Kind::CONTINUATION => continue_block(end, header, payload, out),
        Kind::RST_STREAM => end.reset_by_peer(header.stream, ErrorCode(frame::word(payload, 0))),
        Kind::SETTINGS => end.settings(header, payload, out),
        Kind::PING => {
            if let Some(payload) = payload.first_chunk().filter(|_| !header.has(flag::ACK)) {
                write::ping_ack(out, payload);
            }
            Ok(Step::Continue)
        }
        Kind::WINDOW_UPDATE => raise(end, header.stream, frame::word(payload, 0), out),
        _ => end.go_away(payload),
    }
}

#[inline]
fn headers<'a, E: Endpoint>(
    end: &mut E,
    header: Header,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Received<'a, E> {
    let fragment = frame::fragment(header, payload)?;
    let (stream, ends) = (header.stream, header.has(flag::END_STREAM));
    if header.has(flag::END_HEADERS) {
        return end.fields(stream, ends, fragment, out);
    }
    let block = &mut end.connection().block;
    (block.stream, block.ends, block.continuations) = (stream, ends, 0);
    block.bytes.clear();
    block.bytes.extend_from_slice(fragment);
    Ok(Step::Continue)
}

fn continue_block<'a, E: Endpoint>(
    end: &mut E,
    header: Header,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Received<'a, E> {
    let block = &mut end.connection().block;
    block.continuations += 1;
    if block.continuations > MAX_CONTINUATIONS {
        return Err(Rule::TooManyContinuations);
    }
    if block.bytes.len() + payload.len() > MAX_BLOCK {
        return Err(Rule::BlockTooLarge);
    }
    block.bytes.extend_from_slice(payload);
    if !header.has(flag::END_HEADERS) {
        return Ok(Step::Continue);
    }
    block.stream = 0;
    let (ends, bytes) = (block.ends, std::mem::take(&mut block.bytes));
    let step = end.fields(header.stream, ends, &bytes, out);
    end.connection().block.bytes = bytes;
    step
}

/// Raises a window for content that is sent (RFC 9113, 6.9).
fn raise<'a, E: Endpoint>(
    end: &mut E,
    stream: u32,
    increment: u32,
    out: &mut Vec<u8>,
) -> Received<'a, E> {
    let increment = i64::from(increment & 0x7fff_ffff);
    let connection = end.connection();
    if stream == 0 {
        if increment == 0 {
            return Err(Rule::ZeroIncrement);
        }
        if !connection.send_window.adjust(increment) {
            return Err(Rule::WindowOverflow);
        }
        return Ok(end.raised(0, out));
    }
    let Some(slot) = connection.streams.get_mut(stream) else { return Ok(Step::Continue) };
    if increment == 0 {
        return end.wrong(stream, Rule::ZeroStreamIncrement, out);
    }
    if !slot.send_window.adjust(increment) {
        return end.wrong(stream, Rule::StreamWindowOverflow, out);
    }
    Ok(end.raised(stream, out))
}
