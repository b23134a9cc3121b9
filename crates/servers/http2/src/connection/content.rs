//! DATA frames: the content of requests and responses.

use super::{
    endpoint::{Endpoint, Received},
    reader::{Data, Reader, Step, Use, take},
};
use crate::{
    frame::{Header, flag},
    rule::Rule,
};

/// Starts to read a DATA frame. Its padding counts for flow control, too (RFC 9113, 6.9.1).
#[inline]
pub(crate) fn begin<'a, E: Endpoint>(
    end: &mut E,
    header: Header,
    out: &mut Vec<u8>,
) -> Received<'a, E> {
    let Header { length, stream, .. } = header;
    let is_padded = header.has(flag::PADDED);
    if is_padded && length == 0 {
        return Err(Rule::FrameTooShort);
    }
    end.connection().uncredited += length;
    let (usage, wrong) = match end.admit(header, out) {
        Ok(usage) => (usage, None),
        Err(rule) => (Use::Discard, Some(end.wrong(stream, rule, out)?)),
    };
    let next = if is_padded {
        end.connection().reader = Reader::Padding(header, usage);
        Step::Continue
    } else {
        start(end, header, (length, 0), usage, out)?
    };
    Ok(wrong.unwrap_or(next))
}

/// Starts to read the content of a DATA frame: its length, and that of the padding behind it.
#[inline]
pub(crate) fn start<'a, E: Endpoint>(
    end: &mut E,
    header: Header,
    (content, padding): (u32, u32),
    mut usage: Use,
    out: &mut Vec<u8>,
) -> Received<'a, E> {
    let (stream, ends) = (header.stream, header.has(flag::END_STREAM));
    let connection = end.connection();
    if content > 0 && usage == Use::Report {
        connection.idle_frames = 0;
    } else if usage == Use::Discard || !ends {
        connection.count_idle_frame()?;
    }
    // The caller may have reset it meanwhile.
    let slot = connection.streams.get_mut(stream).filter(|_| usage == Use::Report);
    let received = slot.map_or(Ok(()), |slot| slot.receive(content, ends));
    if received.is_err() {
        usage = Use::Discard;
    }
    connection.reader = Reader::Data(Data { stream, content, padding, ends, usage });
    match received {
        Ok(()) => Ok(Step::Continue),
        Err(rule) => end.wrong(stream, rule, out),
    }
}

/// Reads more of a DATA frame.
#[inline]
pub(crate) fn proceed<'a, E: Endpoint>(
    end: &mut E,
    mut data: Data,
    input: &mut &'a [u8],
    out: &mut Vec<u8>,
) -> Step<E::Notice<'a>> {
    let bytes = take(input, &mut data.content);
    take(input, &mut data.padding);
    let is_whole = data.content == 0 && data.padding == 0;
    let (stream, ends) = (data.stream, is_whole && data.ends);
    let connection = end.connection();
    connection.reader = if is_whole { Reader::Header } else { Reader::Data(data) };
    if is_whole {
        connection.credit(out);
        if !ends {
            connection.credit_stream(stream, out);
        }
    }
    if data.usage == Use::Report
        && (ends || !bytes.is_empty())
        && let Some(notice) = end.content(stream, bytes, ends, out)
    {
        return Step::Report(notice);
    }
    if is_whole { Step::Continue } else { Step::Wait }
}
