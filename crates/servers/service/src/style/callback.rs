//! Callback style: the connection is a state machine that the driver calls. For select, poll,
//! epoll, cluster, percore and io_uring.

use crate::{Codec, Flow, Halt, Job, Never, REPLY_FULL, Service, answer};
use regatta_engine::{Context, Session, Slots};
use std::{mem, time::Instant};

/// Capacity in bytes from which on a mostly unused buffer is shrunk. So a connection with an
/// incomplete request holds little more than that request.
const SPACIOUS: usize = 16 * 1024;

/// A [`Service`] in the callback style.
pub struct Connection<S: Service> {
    service: S,
    codec: S::Codec,
    /// Input not yet answered: an incomplete request, or input received while the output was full.
    /// Empty once the service has closed the connection, because later input is ignored.
    held: Vec<u8>,
    /// When the current incomplete request started.
    inside: Option<Instant>,
    /// The held input may contain complete requests.
    full: bool,
    /// The input has ended.
    ended: bool,
    /// The pending replies, starting with the first one that waits for a job.
    slots: Option<Box<Slots<S::Job>>>,
}

impl<S: Service> Connection<S> {
    /// Creates a new connection.
    pub fn new(service: S) -> Self {
        let (codec, held, slots) = (S::Codec::default(), Vec::new(), None);
        Connection { service, codec, held, inside: None, full: false, ended: false, slots }
    }

    /// The pending replies, if any.
    #[inline]
    fn waiting(&self) -> Option<&Slots<S::Job>> {
        if !S::Job::EVER {
            return None;
        }
        self.slots.as_deref().filter(|slots| !slots.is_empty())
    }

    /// Like [`answer`], but does not stop for a job: the reply gets a slot instead.
    #[inline]
    fn work(&mut self, context: &mut Context<'_, Self>, input: &[u8]) -> (usize, Halt<Never>) {
        let mut consumed = 0;
        loop {
            let reply = match &mut self.slots {
                Some(slots) if S::Job::EVER && slots.holds_back() => match slots.room() {
                    Some(reply) => reply,
                    None => return (consumed, Halt::Full),
                },
                _ => &mut *context.out,
            };
            let Self { service, codec, .. } = self;
            let (local, now) = (&mut *context.local, context.now);
            let (bytes, halt) = answer(service, codec, local, now, &input[consumed..], reply);
            consumed += bytes;
            let halt = match halt {
                Halt::Needs(job) => {
                    self.slots.get_or_insert_default().defer(job);
                    continue;
                }
                Halt::NeedsInput => Halt::NeedsInput,
                Halt::Full => Halt::Full,
                Halt::Closing => Halt::Closing,
                Halt::ClosingByClient => Halt::ClosingByClient,
            };
            return (consumed, halt);
        }
    }

    fn answer_held(&mut self, context: &mut Context<'_, Self>) -> Flow {
        let mut held = mem::take(&mut self.held);
        let (consumed, halt) = self.work(context, &held);
        if consumed < held.len() && halt != Halt::Closing {
            held.drain(..consumed);
            if held.capacity() > SPACIOUS && held.len() < held.capacity() / 4 {
                held.shrink_to_fit();
            }
            self.held = held;
        }
        self.after(context, consumed, halt)
    }

    #[inline]
    fn after(
        &mut self,
        context: &mut Context<'_, Self>,
        consumed: usize,
        halt: Halt<Never>,
    ) -> Flow {
        self.full = halt == Halt::Full;
        let partial = !self.held.is_empty();
        if consumed > 0 || !partial {
            self.inside = None;
        }
        if partial {
            self.inside.get_or_insert(context.now.instant);
        }
        if self.waiting().is_some() {
            match (halt, &mut self.slots) {
                (Halt::Closing, Some(slots)) => slots.close(Flow::Close),
                (Halt::ClosingByClient, Some(slots)) => slots.close(Flow::ClosedByClient),
                _ => {}
            }
            return Flow::Continue;
        }
        match halt {
            Halt::ClosingByClient => Flow::ClosedByClient,
            Halt::Closing => Flow::Close,
            _ if self.ended && !self.full => self.end(context),
            _ => Flow::Continue,
        }
    }

    /// Closes the connection after the end of its input.
    fn end(&mut self, context: &mut Context<'_, Self>) -> Flow {
        self.service.end(context.out);
        Flow::Close
    }
}

impl<S: Service> Session for Connection<S> {
    type Job = S::Job;
    type Push = Never;
    type Local = S::Local;

    #[inline]
    fn on_bytes(&mut self, context: &mut Context<'_, Self>, bytes: &mut [u8]) -> Flow {
        if self.waiting().is_some_and(Slots::is_closed) {
            // Ignored: the connection closes after a pending reply. If the client asked for that, it
            // sent more anyway.
            self.slots.iter_mut().for_each(|slots| slots.close(Flow::Close));
            return Flow::Continue;
        }
        if !self.held.is_empty() {
            self.held.extend_from_slice(bytes);
            return self.answer_held(context);
        }
        let (consumed, halt) = self.work(context, bytes);
        if halt != Halt::Closing {
            self.held.extend_from_slice(&bytes[consumed..]);
        }
        self.after(context, consumed, halt)
    }

    fn on_drained(&mut self, context: &mut Context<'_, Self>) -> Flow {
        if S::Job::EVER
            && let Some(slots) = &mut self.slots
        {
            match slots.flush(context.out) {
                Flow::Continue => {}
                Flow::ClosedByClient if self.held.is_empty() => return Flow::ClosedByClient,
                Flow::Close | Flow::ClosedByClient => return Flow::Close,
            }
        }
        match self.full {
            true => self.answer_held(context),
            false if S::Job::EVER && self.ended && self.waiting().is_none() => self.end(context),
            false => Flow::Continue,
        }
    }

    fn on_end(&mut self, context: &mut Context<'_, Self>) -> Flow {
        self.ended = true;
        match self.full {
            // The held input is answered once there is room.
            true if context.out.len() >= REPLY_FULL => Flow::Continue,
            true => self.answer_held(context),
            false if self.waiting().is_some() => Flow::Continue,
            false => self.end(context),
        }
    }

    #[inline]
    fn slots(&mut self) -> Option<&mut Slots<S::Job>> {
        if S::Job::EVER { self.slots.as_deref_mut() } else { None }
    }

    #[inline]
    fn wants_input(&self) -> bool {
        // Also bounds the input of a codec that takes no more requests.
        let held = self.held.len() < S::Codec::MAX_FRAME;
        !self.full && self.waiting().is_none_or(|slots| held && !slots.is_full())
    }

    #[inline]
    fn wants_drained(&self) -> bool {
        self.full || self.waiting().is_some()
    }

    #[inline]
    fn is_working(&self) -> bool {
        self.full || self.waiting().is_some()
    }

    #[inline]
    fn inside(&self) -> Option<Instant> {
        self.inside.into_iter().chain(self.service.inside()).min()
    }
}
