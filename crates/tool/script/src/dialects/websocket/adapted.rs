//! Checks messages from a server that uses its own protocol on top of WebSocket.

use super::{
    adapters::{Adapter, Incoming, Next},
    message::Request,
    receive::Hub,
    talk::ConnectionState,
};
use crate::dialect::Heard;
use regatta_record::Exchange;
use std::mem;

impl Hub {
    /// Handles the payload of a frame from a server with its own protocol.
    #[expect(clippy::too_many_arguments, reason = "the state of a connection and its input")]
    pub(super) fn take_adapted(
        &self,
        adapter: Adapter,
        talk: &mut ConnectionState,
        payload: &[u8],
        heard: &mut impl Heard,
        replies: &mut u32,
    ) -> Result<(), Box<Exchange>> {
        if talk.held.is_empty() {
            let taken = self.take_incoming(adapter, talk, payload, heard, replies)?;
            talk.held.extend_from_slice(&payload[taken..]);
            return Ok(());
        }
        let mut held = mem::take(&mut talk.held);
        held.extend_from_slice(payload);
        let taken = self.take_incoming(adapter, talk, &held, heard, replies)?;
        held.drain(..taken);
        talk.held = held;
        Ok(())
    }

    /// Handles all complete messages. Returns the number of bytes consumed.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "the state of a connection and its input")]
    fn take_incoming(
        &self,
        adapter: Adapter,
        talk: &mut ConnectionState,
        bytes: &[u8],
        heard: &mut impl Heard,
        replies: &mut u32,
    ) -> Result<usize, Box<Exchange>> {
        let mut at = 0;
        loop {
            let (incoming, taken) = match adapter.next(&bytes[at..]) {
                Next::Incoming(incoming, taken) => (incoming, taken),
                Next::Part => return Ok(at),
                Next::Unknown => {
                    return Err(self.terms.wrong(talk, &self.terms.expected(talk), &bytes[at..]));
                }
            };
            let text = &bytes[at..at + taken];
            at += taken;
            let is_reply = match incoming {
                Incoming::Copy(payload) => {
                    self.take_copy(talk, payload, text, heard)?;
                    adapter.copy_is_result() && talk.waits_for(payload)
                }
                Incoming::Subscribed => match talk.asked.front() {
                    Some(Request::Echo(_)) => true,
                    _ => return Err(self.terms.wrong(talk, &self.terms.expected(talk), text)),
                },
                Incoming::Done(number) => {
                    if number.is_some_and(|number| number != talk.answered + 1) {
                        return Err(self.terms.wrong(talk, &self.terms.expected(talk), text));
                    }
                    match talk.asked.front() {
                        Some(Request::Broadcast(asked))
                            if adapter.copy_comes_first() && !talk.inbox.has(asked.id) =>
                        {
                            self.came_too_early(talk, text, heard)?;
                            true
                        }
                        Some(_) => true,
                        None => {
                            return Err(self.terms.wrong(talk, &self.terms.expected(talk), text));
                        }
                    }
                }
                Incoming::Ping => {
                    let mask = talk.mask();
                    adapter.frame(adapter.answer().as_bytes(), mask, &mut talk.asides);
                    false
                }
                Incoming::Greeting => {
                    talk.is_greeted = true;
                    false
                }
                Incoming::Ignored => false,
            };
            if is_reply {
                self.answered(talk);
                *replies += 1;
            }
            if at == bytes.len() {
                return Ok(at);
            }
        }
    }
}
