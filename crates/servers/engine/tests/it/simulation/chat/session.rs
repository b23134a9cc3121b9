//! The sessions.

use super::BACKLOG;
use regatta_engine::{
    Context, Flow, Never, Now, OutputState, Post, Push, PushOutcome, RoomName, Session,
    SessionFactory, Wire,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// A message, as its recipients receive it.
#[derive(Clone)]
pub struct Said(pub Arc<[u8]>);

impl Push for Said {}

impl Wire for Said {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Said(bytes.into()))
    }
}

#[derive(Default)]
pub struct Chat {
    /// The first part of a command.
    held: Vec<u8>,
    /// Commands come in frames: a length, a mask, and that many masked bytes.
    framed: bool,
    /// Remaining bytes of a stream, and the sum of the bytes so far.
    stream: Option<(usize, u64)>,
    alarm: Option<Instant>,
    /// It takes no input until the alarm.
    pauses: bool,
    inside: Option<Instant>,
    /// Its output that the kernel has not accepted, at the last call, in bytes.
    pending: usize,
    /// It was a slow consumer.
    is_cut: bool,
}

impl Chat {
    /// Takes all complete input from the front of `bytes`. Returns its length.
    fn take(&mut self, context: &mut Context<'_, Self>, bytes: &mut [u8]) -> (usize, Flow) {
        let (mut taken, all) = (0, bytes.len());
        loop {
            let rest = &mut bytes[taken..];
            if let Some((left, sum)) = &mut self.stream {
                let some = rest.len().min(*left);
                *sum += rest[..some].iter().map(|byte| u64::from(*byte)).sum::<u64>();
                *left -= some;
                taken += some;
                if *left > 0 {
                    return (taken, Flow::Continue);
                }
                context.out.extend_from_slice(format!("sum {sum}\n").as_bytes());
                self.stream = None;
                continue;
            }
            let (command, whole) = if self.framed {
                let [length, mask, rest @ ..] = rest else { return (taken, Flow::Continue) };
                let length = usize::from(*length);
                let Some(payload) = rest.get_mut(..length) else { return (taken, Flow::Continue) };
                payload.iter_mut().for_each(|byte| *byte ^= *mask);
                (&*payload, length + 2)
            } else {
                let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                    return (taken, Flow::Continue);
                };
                (&rest[..end], end + 1)
            };
            taken += whole;
            let command = std::str::from_utf8(command).unwrap_or("");
            let (verb, argument) = command.split_once(' ').unwrap_or((command, ""));
            let number = argument.parse().unwrap_or(0);
            match verb {
                "join" => context.post(Post::Join(RoomName::LOBBY)),
                "leave" => context.post(Post::Leave),
                "say" => {
                    let said = format!("p {argument}\n").into_bytes();
                    context.post(Post::Others(Said(said.into())));
                }
                "count" => {
                    let said = format!("p {argument}\n").into_bytes();
                    context.post(Post::Counted(Said(said.into()), number as u64));
                }
                "blob" => context.out.resize(context.out.len() + number, b'b'),
                "alarm" | "pause" => {
                    let after = Duration::from_millis(number as u64);
                    self.pauses |= verb == "pause";
                    self.alarm = Some(context.now.instant + after);
                }
                "stream" => self.stream = Some((number, 0)),
                "upgrade" => self.framed = true,
                "part" if taken == all => return (taken, Flow::ClosedByClient),
                "bye" | "part" => {
                    context.out.extend_from_slice(b"bye\n");
                    return (taken, Flow::Close);
                }
                _ => {}
            }
            context.out.extend_from_slice(b"ok\n");
        }
    }
}

impl Session for Chat {
    type Job = Never;
    type Push = Said;
    type Local = ();

    fn on_bytes(&mut self, context: &mut Context<'_, Self>, bytes: &mut [u8]) -> Flow {
        let mut held = std::mem::take(&mut self.held);
        let (taken, flow) = if held.is_empty() {
            let (taken, flow) = self.take(context, bytes);
            self.held.extend_from_slice(&bytes[taken..]);
            (taken, flow)
        } else {
            held.extend_from_slice(bytes);
            let (taken, flow) = self.take(context, &mut held);
            held.drain(..taken);
            self.held = held;
            (taken, flow)
        };
        if taken > 0 || self.held.is_empty() {
            self.inside = None;
        }
        if !self.held.is_empty() {
            self.inside.get_or_insert(context.now.instant);
        }
        flow
    }

    fn on_end(&mut self, context: &mut Context<'_, Self>) -> Flow {
        context.out.extend_from_slice(b"over\n");
        Flow::Close
    }

    fn on_retire(&mut self, context: &mut Context<'_, Self>, _: u32) -> Flow {
        context.out.extend_from_slice(b"retired\n");
        Flow::Close
    }

    fn on_output(&mut self, output: OutputState) {
        self.pending = output.pending;
    }

    fn on_push(&mut self, _: Now, push: &Said, out: &mut Vec<u8>) -> PushOutcome {
        if self.pending > BACKLOG {
            self.is_cut = true;
            return PushOutcome::Close;
        }
        out.extend_from_slice(&push.0);
        if push.0.ends_with(b"!\n") { PushOutcome::Close } else { PushOutcome::Queued }
    }

    /// The output omits `members`: slow consumers are not counted, and the model does not know
    /// which clients are slow.
    fn on_queued(&mut self, context: &mut Context<'_, Self>, ticket: u64, members: u32) -> Flow {
        assert!(members <= 1 << 16, "{members}");
        context.out.extend_from_slice(format!("queued {ticket}\n").as_bytes());
        Flow::Continue
    }

    fn on_alarm(&mut self, context: &mut Context<'_, Self>) -> Flow {
        (self.alarm, self.pauses) = (None, false);
        context.out.extend_from_slice(b"alarm\n");
        Flow::Continue
    }

    fn is_cut(&self) -> bool {
        self.is_cut
    }

    fn wants_input(&self) -> bool {
        !self.pauses
    }

    fn inside(&self) -> Option<Instant> {
        self.inside
    }

    fn alarm(&self) -> Option<Instant> {
        self.alarm
    }
}

pub struct Chats;

impl SessionFactory for Chats {
    type Session = Chat;

    fn session(&self, _: Now) -> Chat {
        Chat::default()
    }
}
