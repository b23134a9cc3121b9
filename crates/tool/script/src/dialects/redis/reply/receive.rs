//! The dialect of a client: writes the bytes of its requests, and checks its replies.

use super::{
    doubt,
    log::Recorder,
    opening::Steps,
    private, shared,
    talk::{ConnectionState, Progress},
    wrong::Wrong,
};
use crate::dialects::redis::{
    commands::Command,
    exchanges::{Ask, Exchanges},
    mix::Mix,
};
use crate::{
    cursor::Cursor,
    dialect::{At, Dialect, Heard},
    script::Script,
    text::{line, printable, unsolicited},
    time::Nanos,
};
use rand::Rng;
use regatta_record::{Exchange, Verified};

/// Number of written request bytes that are kept before they are dropped.
const WRITTEN: usize = 64 << 10;

/// State of a load thread.
#[derive(Debug, Default)]
pub struct ThreadState {
    /// Whether errors are counted and the connection continues.
    tolerates: bool,
}

/// Exchanges with a key-value store.
#[derive(Debug)]
pub struct Redis {
    exchanges: Exchanges,
    steps: Steps,
    /// Present if all clients share their keys.
    recorder: Option<Box<Recorder>>,
}

impl Redis {
    /// Creates the dialect of exchanges whose script is closed. `path` is the path of the URL, which
    /// names the database.
    pub(in crate::dialects::redis) fn new(
        exchanges: Exchanges,
        mix: &Mix,
        path: Option<&str>,
        shares_keys: bool,
    ) -> Redis {
        let keys_if = |is: bool| if is && !shares_keys { exchanges.keys_each } else { 0 };
        let depends =
            |command: Command| matches!(command, Command::Get | Command::Mget | Command::Del);
        let database =
            path.map(|path| path.trim_start_matches('/')).filter(|path| !path.is_empty());
        let steps = Steps {
            database: database.map(str::to_owned),
            values: keys_if(mix.commands().any(depends)),
            counters: keys_if(mix.commands().any(|command| command == Command::Incr)),
        };
        let recorder = shares_keys.then(|| Box::new(Recorder::new(rand::rng().random())));
        Redis { exchanges, steps, recorder }
    }

    /// Writes out requests that were issued. `unsent` is the number of unsent request bytes, including
    /// theirs.
    fn write_out(&self, cursor: &Cursor, talk: &mut ConnectionState, unsent: usize, now: Nanos) {
        let script = &self.exchanges.script;
        let (first, end) = (cursor.answered(), cursor.answered() + cursor.owed());
        let from = first + (talk.asked - talk.answered) as u32;
        let more = script.begin(end).request - script.begin(from).request;
        let before = unsent - more as usize;
        let written = talk.out.len() - before;
        if before == 0 {
            talk.out.clear();
        } else if written >= WRITTEN {
            talk.out.drain(..written);
        }
        for exchange in from..end {
            talk.asked += 1;
            self.write(exchange, talk.asked, talk, now);
        }
    }

    fn write(&self, exchange: u32, version: u64, talk: &mut ConnectionState, now: Nanos) {
        let ConnectionState { owner, author, out, log, .. } = talk;
        match self.exchanges.ask(exchange) {
            Ask::Bytes(_) => out.extend_from_slice(self.exchanges.script.request(exchange)),
            Ask::Keys { command, first } => {
                let (framed, keys) = self.exchanges.command(command, first);
                framed.write(&self.exchanges.names, (&*owner, &*author), keys, version, out);
                if let (Some(recorder), Some(log)) = (&self.recorder, log) {
                    let log = &mut log.lock().expect("no thread panicked");
                    recorder.log_call(log, framed, keys, version, now);
                }
            }
        }
    }

    /// Consumes the bytes of the reply to an exchange from the front of `input`. Returns whether the
    /// reply is complete.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "as the trait has it")]
    fn take(
        &self,
        exchange: u32,
        version: u64,
        (talk, desk): (&mut ConnectionState, &ThreadState),
        now: Nanos,
        input: &mut &[u8],
    ) -> Result<bool, Box<Wrong>> {
        let exchanges = &self.exchanges;
        let ask = exchanges.ask(exchange);
        if desk.tolerates && doubt::is_error(ask, talk, input) {
            return doubt::take_error(exchanges, ask, version, talk, input);
        }
        if let Ask::Keys { command, first } = ask
            && (self.recorder.is_some() || talk.has_doubts)
        {
            let command = exchanges.command(command, first);
            if self.recorder.is_some() {
                return shared::take(exchanges, command, version, talk, now, input);
            }
            if doubt::concerns(talk, command) {
                return doubt::take(exchanges, command, version, talk, input);
            }
        }
        private::take(exchanges, exchange, version, talk, input)
    }

    /// Formats a request as it was sent.
    fn sent(&self, exchange: u32, version: u64, talk: &ConnectionState) -> String {
        let ConnectionState { owner, author, .. } = talk;
        match self.exchanges.ask(exchange) {
            Ask::Bytes(_) => printable(self.exchanges.script.request(exchange)),
            Ask::Keys { command, first } => {
                let (framed, keys) = self.exchanges.command(command, first);
                let mut request = Vec::new();
                framed.write(&self.exchanges.names, (owner, author), keys, version, &mut request);
                printable(&request)
            }
        }
    }
}

impl Dialect for Redis {
    type ThreadState = ThreadState;
    type ConnectionState = ConnectionState;

    const OPENS: bool = true;

    #[inline]
    fn script(&self) -> &Script {
        &self.exchanges.script
    }

    fn serves_one_run(&self) -> bool {
        self.recorder.is_some()
    }

    fn desk(&self, _: fn() -> Nanos) -> ThreadState {
        if let Some(recorder) = &self.recorder {
            recorder.thread_started();
        }
        ThreadState::default()
    }

    fn tolerate(&self, desk: &mut ThreadState) {
        desk.tolerates = true;
    }

    fn talk(&self, number: u32) -> ConnectionState {
        ConnectionState::new(number, self.recorder.as_ref().map(|recorder| recorder.log(number)))
    }

    fn renew(&self, talk: &mut ConnectionState, _: u32) {
        talk.renew();
    }

    fn open(
        &self,
        talk: &mut ConnectionState,
        data: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Box<Exchange>> {
        self.steps.advance(&self.exchanges, talk, data, out)
    }

    #[inline]
    fn unsent<'b>(
        &'b self,
        cursor: &Cursor,
        talk: &'b mut ConnectionState,
        now: Nanos,
    ) -> &'b [u8] {
        let unsent = cursor.unsent(&self.exchanges.script).len();
        if talk.asked - talk.answered < u64::from(cursor.owed()) {
            self.write_out(cursor, talk, unsent, now);
        }
        &talk.out[talk.out.len() - unsent..]
    }

    fn receive(
        &self,
        At { cursor, talk, desk }: At<'_, Self>,
        data: &[u8],
        now: Nanos,
        _: &mut impl Heard,
    ) -> Result<u32, Box<Exchange>> {
        let script = &self.exchanges.script;
        let owed_to = cursor.owed_to(script);
        let before = cursor.answered();
        let (mut at, mut rest) = (before, data);
        while !rest.is_empty() {
            let reply_index = at - before;
            if at >= owed_to {
                let last = cursor.last_request(script);
                let mut extra = unsolicited(last, printable(line(rest)), reply_index);
                if last.is_some() {
                    // Uses the digits of this client.
                    let before = (at + script.count() - 1) % script.count();
                    extra.sent = self.sent(before, talk.answered + u64::from(reply_index), talk);
                }
                return Err(Box::new(extra));
            }
            let version = talk.answered + u64::from(reply_index) + 1;
            match self.take(at, version, (&mut *talk, &*desk), now, &mut rest) {
                Ok(true) => at += 1,
                Ok(false) => {}
                Err(wrong) => {
                    let Wrong { expected, received } = *wrong;
                    let sent = self.sent(at, version, talk);
                    if let Some(used) = &mut talk.resumes {
                        *used = data.len() - rest.len();
                        cursor.answer(reply_index + 1, script);
                        talk.answered = version;
                    }
                    let reply_index = reply_index.into();
                    return Err(Box::new(Exchange { sent, expected, received, reply_index }));
                }
            }
        }
        let complete = at - before;
        if complete > 0 {
            cursor.answer(complete, script);
            talk.answered += u64::from(complete);
        }
        Ok(complete)
    }

    fn resume(&self, talk: &mut ConnectionState) -> Option<usize> {
        talk.resumes.take()
    }

    fn unfinished(&self, cursor: &Cursor, talk: &ConnectionState) -> Option<Exchange> {
        let received = match talk.framing.partial() {
            [] if talk.progress == Progress::default() => return None,
            [] => "a correct start of the reply".into(),
            partial => printable(partial),
        };
        let sent = self.sent(cursor.answered(), talk.answered + 1, talk);
        let expected = "a complete reply".into();
        Some(Exchange { sent, expected, received, reply_index: 0 })
    }

    fn verify(&self, _: &mut ThreadState, _: &dyn Fn() -> bool, wrong: &mut dyn FnMut(Exchange)) {
        if let Some(recorder) = &self.recorder {
            recorder.thread_ended(&self.exchanges.names, wrong);
        }
    }

    fn verified(&self) -> Option<Verified> {
        self.recorder.as_ref().and_then(|recorder| recorder.verified())
    }
}
