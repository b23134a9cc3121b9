//! How long a blocking command may block.

use regatta_proto::resp::Command;
use std::time::{Duration, Instant};

/// A blocking command in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocking {
    /// When it was sent.
    pub(crate) since: Instant,
    pub(crate) limit: BlockingTime,
    /// When the node was first asked to end it, and when it is asked again.
    pub(crate) asked: Option<Instant>,
    pub(crate) again_at: Option<Instant>,
    /// The node cannot be asked: the command ends with its connection.
    pub(crate) is_left: bool,
}

impl Blocking {
    /// A command that is sent now.
    pub(crate) fn new(command: &Command<'_>, now: Instant) -> Self {
        let limit = BlockingTime::of(command);
        Blocking { since: now, limit, asked: None, again_at: None, is_left: false }
    }
}

/// How long a command may block, according to its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockingTime {
    For(Duration),
    Forever,
}

impl BlockingTime {
    /// Reads it from a blocking command. If the argument is invalid, the node replies at once.
    pub(crate) fn of(command: &Command<'_>) -> Self {
        let name = command.arg(0).unwrap_or_default().to_ascii_lowercase();
        let (argument, unit_s) = match &name[..] {
            b"blmpop" | b"bzmpop" => (command.arg(1), 1.0),
            b"xread" | b"xreadgroup" => (after_block(command), 1e-3),
            _ => (command.args().last(), 1.0),
        };
        let number = argument.and_then(|argument| std::str::from_utf8(argument).ok()?.parse().ok());
        match number {
            Some(0.0) => BlockingTime::Forever,
            Some(number) => {
                // Longer than an `Instant` can be ahead: in effect, forever.
                let ages = Duration::from_secs(u64::from(u32::MAX));
                let limit = if number < 0.0 { 0.0 } else { number * unit_s };
                BlockingTime::For(Duration::try_from_secs_f64(limit).unwrap_or(ages).min(ages))
            }
            None => BlockingTime::For(Duration::ZERO),
        }
    }
}

/// The argument of the option BLOCK, which comes before STREAMS.
fn after_block<'a>(command: &'a Command<'_>) -> Option<&'a [u8]> {
    let name = command.arg(0)?;
    // `GROUP group consumer` comes first, and any name is allowed.
    let first = if name.eq_ignore_ascii_case(b"xreadgroup") { 4 } else { 1 };
    let mut args = command.args().skip(first);
    args.find(|arg| arg.eq_ignore_ascii_case(b"block") || arg.eq_ignore_ascii_case(b"streams"))
        .filter(|arg| arg.eq_ignore_ascii_case(b"block"))?;
    args.next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_proto::resp::{CommandLimits, Commands};

    fn time(line: &str) -> BlockingTime {
        let bytes = format!("{line}\r\n").into_bytes();
        let mut commands = Commands::new(CommandLimits::default());
        let (_, command) = commands.next(&bytes).unwrap();
        BlockingTime::of(&command.unwrap())
    }

    #[test]
    fn the_timeout_is_read_from_the_arguments() {
        let milliseconds = |number| BlockingTime::For(Duration::from_millis(number));
        for (line, expected) in [
            ("BLPOP a b 0", BlockingTime::Forever),
            ("blpop a 1.5", milliseconds(1500)),
            ("brpoplpush a b 2", milliseconds(2000)),
            ("blmove a b left right 0.0", BlockingTime::Forever),
            ("BZPOPMIN a 3", milliseconds(3000)),
            ("blmpop 4 2 a b left count 9", milliseconds(4000)),
            ("bzmpop 0 1 a min", BlockingTime::Forever),
            ("xread count 5 block 70 streams a $", milliseconds(70)),
            ("xread block 0 streams block 9", BlockingTime::Forever),
            ("xreadgroup group block 8 BLOCK 90 streams a >", milliseconds(90)),
            ("xread streams block 7", milliseconds(0)),
            ("blpop a -1", milliseconds(0)),
            ("blpop a x", milliseconds(0)),
            ("blpop a nan", BlockingTime::For(Duration::from_secs(u32::MAX.into()))),
            ("blpop a 1e300", BlockingTime::For(Duration::from_secs(u32::MAX.into()))),
        ] {
            assert_eq!(time(line), expected, "{line}");
        }
    }
}
