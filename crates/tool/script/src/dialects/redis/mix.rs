//! A weighted mix of commands with generated keys and commands written in a workload file, and its
//! compilation into the exchanges of a run.

use super::{
    commands::{Command, Framed},
    exchanges::{Ask, Exchanges, Expectation},
    keys::{Distribution, Keys},
    names::{Names, Owner},
};
use crate::{
    script::Script,
    workload::{
        compose::{converse, lengths},
        conversation::Conversation,
        draw::{Drawer, Value},
        template::Template,
    },
};
use rand::{SeedableRng, rngs::StdRng};
use regatta_proto::resp::write_command;

/// Maximum number of exchanges in a script.
const EXCHANGES: usize = 1 << 16;

/// Keys, values and the commands on them.
#[derive(Debug)]
pub(super) struct Mix {
    /// Number of keys of each client, or of all clients together if they share their keys.
    pub keys: usize,
    pub value_bytes: usize,
    pub distribution: Distribution,
    pub conversations: Vec<Conversation<Step>>,
}

/// A command.
#[derive(Debug)]
pub(super) enum Step {
    /// A command with this number of generated keys.
    Keys(Command, usize),
    /// A command with these arguments; the first is its name.
    Sends(Vec<Template>, Reply),
}

/// The expected reply.
#[derive(Debug)]
pub(super) enum Reply {
    /// A simple string.
    Status(Template),
    Integer(Template),
    Bulk(Template),
    Nil,
    /// An error that starts with this text.
    Error(String),
    /// Anything but an error.
    Any,
}

impl Mix {
    /// Returns the commands with generated keys.
    pub fn commands(&self) -> impl Iterator<Item = Command> {
        let steps = self.conversations.iter().flat_map(|one| &one.steps);
        steps.filter_map(|step| match step {
            Step::Keys(command, _) => Some(*command),
            Step::Sends(..) => None,
        })
    }

    /// Returns seeded exchanges in whole conversations. The script is not closed. `lists` are those of
    /// the workload file.
    pub fn compose(&self, seed: u64, lists: &[Vec<Vec<u8>>]) -> Exchanges {
        let mut drawer = Drawer::new(StdRng::seed_from_u64(seed), lists);
        // A separate generator: the keys of a mix do not depend on what its templates draw.
        let mut random = StdRng::seed_from_u64(seed ^ 0x6b65_7973);
        let mut numbers = Keys::new(self.distribution, self.keys);
        let names = Names::new(seed, self.value_bytes);
        let nobody = Owner::new(0, 0);
        let (mut asks, mut commands, mut keys) = (Vec::new(), Vec::<Framed>::new(), Vec::new());
        let mut script = Script::new(lengths(&self.conversations));
        converse(
            &self.conversations,
            EXCHANGES,
            &mut script,
            &mut drawer,
            |step, script, captures, drawer| {
                let (mut request, mut reply) = (Vec::new(), Vec::new());
                asks.push(match step {
                    Step::Keys(command, count) => {
                        let is_it = |one: &Framed| (one.command, one.keys) == (*command, *count);
                        let nth = commands.iter().position(is_it).unwrap_or_else(|| {
                            commands.push(Framed::new(*command, *count));
                            commands.len() - 1
                        });
                        let first = keys.len();
                        numbers.draw(*count, &mut random, &mut keys);
                        let by = (&nobody, &nobody);
                        commands[nth].write(&names, by, &keys[first..], 1, &mut request);
                        Ask::Keys { command: nth as u32, first: first as u32 }
                    }
                    Step::Sends(args, due) => {
                        write_args(args, &mut request, captures, drawer);
                        Ask::Bytes(due.write(&request, &mut reply, captures, drawer))
                    }
                });
                script.push(&request, &reply);
            },
        );
        Exchanges { script, asks, commands, keys, names, keys_each: self.keys }
    }
}

fn write_args(
    args: &[Template],
    out: &mut Vec<u8>,
    captures: &mut Vec<Value>,
    drawer: &mut Drawer<'_>,
) {
    let mut filled: Vec<Vec<u8>> = Vec::new();
    for arg in args {
        let mut text = Vec::new();
        arg.fill(&mut text, &[], captures, drawer);
        filled.push(text);
    }
    write_command(filled.iter().map(Vec::as_slice), out);
}

impl Reply {
    /// Appends the bytes that a reply is compared with.
    fn write(
        &self,
        request: &[u8],
        out: &mut Vec<u8>,
        captures: &mut Vec<Value>,
        drawer: &mut Drawer<'_>,
    ) -> Expectation {
        let mut fill = |template: &Template| {
            let mut text = Vec::new();
            template.fill(&mut text, request, captures, drawer);
            text
        };
        let mut line = |parts: &[&[u8]]| out.extend_from_slice(&parts.concat());
        match self {
            Reply::Status(text) => line(&[b"+", &fill(text), b"\r\n"]),
            Reply::Integer(text) => line(&[b":", &fill(text), b"\r\n"]),
            Reply::Bulk(text) => {
                let text = fill(text);
                line(&[format!("${}\r\n", text.len()).as_bytes(), &text, b"\r\n"]);
            }
            Reply::Nil => line(&[b"$-1\r\n"]),
            Reply::Error(text) => {
                line(&[b"-", text.as_bytes()]);
                return Expectation::Error;
            }
            Reply::Any => return Expectation::Any,
        }
        Expectation::Exact
    }
}
