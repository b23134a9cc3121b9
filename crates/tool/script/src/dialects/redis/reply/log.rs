//! Logs what clients see of shared keys while the load runs, and checks it after the load has ended.

use crate::dialects::redis::{
    commands::Framed,
    names::{Identity, Kind, Names, Owner},
};
use crate::{
    history::{
        Span,
        counter::{self, Increment},
        register::{self, Event},
    },
    time::Nanos,
};
use regatta_record::{Exchange, Verified};
use std::{
    collections::BTreeMap,
    mem,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering::*},
    },
};

/// Maximum number of logged operations on keys; they take about 200 MB.
const MOST: usize = 4 << 20;
/// Bit position of the client in a [`Write`], above the number of its request.
const CLIENT: u32 = 40;

/// The kind and result of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Did {
    /// It set the key.
    Wrote(Write),
    /// It read the key, and has no reply yet.
    ReadPending,
    /// It found a value.
    Read(Write),
    /// The key was absent.
    ReadNothing,
    /// It deleted the key.
    Deleted,
    /// It incremented the key; the number in the reply, if it has one.
    Counted(Option<u64>),
}

/// Identifies the write of a value: a request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Write(u64);

impl Write {
    /// Returns the write that a value names as its origin.
    pub fn of(identity: Identity) -> Write {
        Write(identity.author.slot() << CLIENT | identity.version)
    }

    fn in_words(self) -> String {
        let Write(number) = self;
        format!("request {} of client {}", number & ((1 << CLIENT) - 1), number >> CLIENT)
    }
}

/// An operation on one key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub span: Span,
    pub key: u16,
    pub did: Did,
}

/// The operations of one client, in order.
#[derive(Debug)]
pub(super) struct Log {
    client: u32,
    entries: Vec<Entry>,
    /// Index of the first operation without a reply that may still arrive.
    next: usize,
    /// Requests from this number on are not logged.
    until: u64,
}

impl Log {
    /// Returns the operations of the client's `version`-th request, after its reply arrived. Replies
    /// arrive in the order of requests. Returns no operations if the request was not logged.
    pub fn replies(&mut self, version: u64, keys: usize) -> &mut [Entry] {
        if version >= self.until {
            return &mut [];
        }
        self.next += keys;
        &mut self.entries[self.next - keys..self.next]
    }

    /// Gives up on pending replies: they will not arrive.
    pub fn abandon_pending(&mut self) {
        self.next = self.entries.len();
    }
}

/// The logs of all clients.
#[derive(Debug)]
pub(super) struct Recorder {
    /// The owner of the keys. They are new in each run, so no other client knows them.
    owner: Owner,
    logs: Mutex<Vec<Arc<Mutex<Log>>>>,
    /// Maximum number of logged operations.
    most: usize,
    /// Number of operations so far, logged or not.
    written: AtomicUsize,
    /// All operations called before this time are logged.
    complete_until: AtomicU64,
    /// Number of load threads that have not ended.
    threads: AtomicUsize,
    /// What was verified, after the last thread has ended.
    verified: OnceLock<Verified>,
}

impl Recorder {
    /// Creates a recorder for keys of the owner with this number.
    pub fn new(keys: u64) -> Recorder {
        Recorder {
            owner: Owner::numbered(keys),
            logs: Mutex::default(),
            most: MOST,
            written: AtomicUsize::new(0),
            complete_until: AtomicU64::new(Span::NEVER),
            threads: AtomicUsize::new(0),
            verified: OnceLock::new(),
        }
    }

    /// Creates the log of a client. Returns the owner of the keys, and the log.
    pub fn log(&self, client: u32) -> (Owner, Arc<Mutex<Log>>) {
        let log = Log { client, entries: Vec::new(), next: 0, until: u64::MAX };
        let log = Arc::new(Mutex::new(log));
        self.logs.lock().expect("no thread panicked").push(log.clone());
        (self.owner, log)
    }

    /// Counts a load thread that starts.
    pub fn thread_started(&self) {
        self.threads.fetch_add(1, AcqRel);
    }

    /// Logs that a client sends its `version`-th request, at `now` or later.
    #[expect(clippy::too_many_arguments, reason = "the parts of a call")]
    pub fn log_call(&self, log: &mut Log, framed: &Framed, keys: &[u16], version: u64, now: Nanos) {
        let before = self.written.fetch_add(keys.len(), Relaxed);
        if version >= log.until || before + keys.len() > self.most {
            log.until = log.until.min(version);
            self.complete_until.fetch_min(now, Relaxed);
            return;
        }
        let did = match framed.command {
            command if command.stores() => {
                Did::Wrote(Write(u64::from(log.client) << CLIENT | version))
            }
            command if command.kind() == Kind::Counter => Did::Counted(None),
            command if command.deletes() => Did::Deleted,
            _ => Did::ReadPending,
        };
        let span = Span { call: now, end: Span::NEVER };
        log.entries.extend(keys.iter().map(|key| Entry { span, key: *key, did }));
    }

    /// Counts a load thread that has ended. The last one checks the logs of all clients, and calls
    /// `wrong` for the first inexplicable reply of each key.
    pub fn thread_ended(&self, names: &Names, wrong: &mut dyn FnMut(Exchange)) {
        if self.threads.fetch_sub(1, AcqRel) == 1 {
            self.check(names, wrong);
        }
    }

    /// What was verified, available after all load threads have ended.
    pub fn verified(&self) -> Option<Verified> {
        self.verified.get().copied()
    }

    fn check(&self, names: &Names, wrong: &mut dyn FnMut(Exchange)) {
        let mut operations = 0;
        let until = self.complete_until.load(Acquire);
        let mut values: BTreeMap<u16, Vec<(u32, Event, Did)>> = BTreeMap::new();
        let mut counters: BTreeMap<u16, Vec<(u32, Increment)>> = BTreeMap::new();
        for log in mem::take(&mut *self.logs.lock().expect("no thread panicked")) {
            let mut log = log.lock().expect("no thread panicked");
            let client = log.client;
            for Entry { span, key, did } in mem::take(&mut log.entries) {
                if span.call >= until {
                    continue;
                }
                operations += 1;
                // An operation that ended later may have seen operations that were not logged.
                let is_known = span.end < until;
                let event = match did {
                    Did::Counted(count) => {
                        let count = count.filter(|_| is_known);
                        counters.entry(key).or_default().push((client, Increment { span, count }));
                        continue;
                    }
                    Did::Wrote(Write(write)) => register::Did::Wrote(write),
                    Did::Deleted => register::Did::Deleted,
                    Did::Read(Write(write)) if is_known => register::Did::Read(write),
                    Did::ReadNothing if is_known => register::Did::ReadNothing,
                    Did::Read(_) | Did::ReadNothing | Did::ReadPending => continue,
                };
                values.entry(key).or_default().push((client, Event { span, did: event }, did));
            }
        }
        let keys = (values.len() + counters.len()) as u64;
        let beyond = self.written.load(Acquire) as u64 - operations;
        let _ = self.verified.set(Verified { operations, keys, beyond });
        for (key, history) in values {
            let events: Vec<Event> = history.iter().map(|(_, event, _)| *event).collect();
            if let Err(unexplained) = register::check(&events) {
                wrong(self.of_value(names, key, &history, unexplained));
            }
        }
        for (key, history) in counters {
            let increments: Vec<Increment> = history.iter().map(|(_, one)| *one).collect();
            if let Err(unexplained) = counter::check(&increments) {
                wrong(self.of_counter(names, key, &history, unexplained));
            }
        }
    }

    fn of_value(
        &self,
        names: &Names,
        key: u16,
        history: &[(u32, Event, Did)],
        unexplained: register::Unexplained,
    ) -> Exchange {
        let key = names.key(Kind::Value, &self.owner, key);
        let register::Unexplained { why, event, other } = unexplained;
        let (client, event, did) = history[event];
        let other = other.map(|other| {
            let (client, event, did) = history[other];
            let what = match did {
                Did::Wrote(write) => format!("the write of {}", write.in_words()),
                Did::Read(write) => {
                    format!("the value of {}, which client {client} read", write.in_words())
                }
                Did::Deleted => format!("the deletion by client {client}"),
                _ => format!("the read by client {client}"),
            };
            format!("{what} ({})", in_words(event.span))
        });
        let other = other.unwrap_or_default();
        let expected = match why {
            register::Why::NeverWritten => "a value that a client has written to this key".into(),
            register::Why::NotWrittenYet => format!("no value of a later write: {other}"),
            register::Why::Stale => format!("no value older than {other}"),
            register::Why::Lost => format!("a value, because of {other}"),
        };
        let received = match did {
            Did::Read(write) => format!("the value of {}", write.in_words()),
            _ => "nothing: the key is absent".into(),
        };
        let sent = format!("{key}, read by client {client} ({})", in_words(event.span));
        Exchange { sent, expected, received, reply_index: 0 }
    }

    fn of_counter(
        &self,
        names: &Names,
        key: u16,
        history: &[(u32, Increment)],
        unexplained: counter::Unexplained,
    ) -> Exchange {
        let key = names.key(Kind::Counter, &self.owner, key);
        let counter::Unexplained { why, event } = unexplained;
        let (client, increment) = history[event];
        let of = |other: usize| {
            let (client, increment) = history[other];
            format!("client {client} ({})", in_words(increment.span))
        };
        let expected = match why {
            counter::Why::Twice { other } => format!("a count other than that of {}", of(other)),
            counter::Why::TooHigh { most } => {
                format!("at most {most}, the number of increments started so far")
            }
            counter::Why::TooLow { least } => {
                format!("at least {least}, the number of increments completed, including this one")
            }
            counter::Why::Backwards { other } => {
                format!("more than the earlier count of {}", of(other))
            }
        };
        let received = increment.count.map_or_else(String::new, |count| count.to_string());
        let sent = format!("INCR {key} by client {client} ({})", in_words(increment.span));
        Exchange { sent, expected, received, reply_index: 0 }
    }
}

/// Formats an interval, by the load's clock.
fn in_words(Span { call, end }: Span) -> String {
    let ms = |at: Nanos| at as f64 / 1e6;
    match end {
        Span::NEVER => format!("from {:.3} ms on, without a reply", ms(call)),
        end => format!("{:.3} to {:.3} ms", ms(call), ms(end)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::redis::commands::Command;

    /// Operations that were not logged do not make logged replies wrong.
    #[test]
    fn logs_up_to_the_limit_and_does_not_judge_later_replies() {
        let names = Names::new(1, 40);
        for (most, expected) in [(2, (2, 1)), (3, (3, 0))] {
            let recorder = Recorder { most, ..Recorder::new(1) };
            recorder.thread_started();
            let [first, second] = [0, 1].map(|client| recorder.log(client).1);
            let call = |log: &Arc<Mutex<Log>>, command, version, now| {
                let framed = Framed::new(command, 1);
                recorder.log_call(&mut log.lock().unwrap(), &framed, &[0], version, now);
            };
            call(&first, Command::Set, 1, 10);
            call(&first, Command::Get, 2, 20);
            call(&second, Command::Set, 1, 30);
            let ends = |log: &Arc<Mutex<Log>>, version, now, did: Option<Did>| {
                for entry in log.lock().unwrap().replies(version, 1) {
                    entry.span.end = now;
                    entry.did = did.unwrap_or(entry.did);
                }
            };
            ends(&first, 1, 15, None);
            ends(&second, 1, 35, None);
            let author = Owner::new(1, 0);
            let found = Write::of(Identity { author, key: 0, version: 1 });
            ends(&first, 2, 40, Some(Did::Read(found)));
            recorder.thread_ended(&names, &mut |exchange| panic!("{exchange:?}"));
            let Verified { operations, keys, beyond } = recorder.verified().unwrap();
            assert_eq!(((operations, beyond), keys), (expected, 1));
        }
    }
}
