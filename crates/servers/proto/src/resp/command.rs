//! The server side: bytes → commands.

use super::{Malformed, line::number};
use std::{borrow::Cow, ops::Range};

/// Limits on commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandLimits {
    /// Maximum number of arguments, including the command's name. Redis before 7.0 allows 1,048,576,
    /// later releases 2³¹ − 1.
    pub args: usize,
    /// Maximum size of an argument in bytes. Redis allows 512 MB (`proto-max-bulk-len`).
    pub bulk: usize,
    /// Maximum size of an inline command in bytes, excluding its `\n`.
    pub inline: usize,
    /// Maximum number of bytes that wait for the end of a command, including framing. It does not
    /// apply to a command whose end has arrived.
    pub command: usize,
}

impl Default for CommandLimits {
    fn default() -> Self {
        CommandLimits { args: 1 << 20, bulk: 512 << 20, inline: 64 << 10, command: 1 << 30 }
    }
}

/// Why bytes are not a command. Later bytes cannot be trusted, so the connection must close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolError {
    what: &'static str,
    /// The byte that came instead of the expected one.
    got: Option<u8>,
}

impl ProtocolError {
    /// The text that follows `ERR Protocol error: ` in the reply, in the wording of Redis if Redis
    /// refuses these bytes, too.
    pub fn text(&self) -> Cow<'static, [u8]> {
        match self.got {
            None => Cow::Borrowed(self.what.as_bytes()),
            Some(byte) => [self.what.as_bytes(), b", got '", &[byte], b"'"].concat().into(),
        }
    }
}

impl From<Malformed> for ProtocolError {
    fn from(Malformed(what): Malformed) -> Self {
        ProtocolError { what, got: None }
    }
}

fn wrong<T>(what: &'static str) -> Result<T, ProtocolError> {
    Err(ProtocolError { what, got: None })
}

/// Finds the commands of one connection.
///
/// The caller passes all bytes not yet taken by a command. When nothing was taken, it passes them
/// again with more bytes behind them.
#[derive(Debug)]
pub struct Commands {
    limits: CommandLimits,
    state: State,
    /// The ranges of the arguments of the current command, or of the last one returned.
    args: Vec<Range<usize>>,
    closed: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// At the start of a command.
    Begin,
    /// Waits for `left` more arguments, the next of them at `at`.
    Args { left: usize, at: usize },
    /// Waits for the bytes of an argument, which start at `at`.
    Bulk { left: usize, at: usize, length: usize },
}

/// A command.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// Its bytes as sent, including framing.
    pub bytes: &'a [u8],
    args: &'a [Range<usize>],
    /// It was sent as a line of words, not as an array.
    pub inline: bool,
}

impl<'a> Command<'a> {
    /// The number of arguments, including the name. Never 0.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.args.len()
    }

    /// An argument; 0 is the command's name.
    #[inline]
    pub fn arg(&self, n: usize) -> Option<&'a [u8]> {
        Some(&self.bytes[self.args.get(n)?.clone()])
    }

    /// All arguments, in order.
    pub fn args(&self) -> Args<'a> {
        Args { bytes: self.bytes, args: self.args.iter() }
    }
}

/// The arguments of a command.
#[derive(Clone, Debug)]
pub struct Args<'a> {
    bytes: &'a [u8],
    args: std::slice::Iter<'a, Range<usize>>,
}

impl<'a> Iterator for Args<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        Some(&self.bytes[self.args.next()?.clone()])
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.args.size_hint()
    }
}

impl ExactSizeIterator for Args<'_> {}

/// Number of argument ranges whose memory is kept for the next command.
const KEPT: usize = 64;

impl Commands {
    /// Creates a decoder for a new connection.
    pub fn new(limits: CommandLimits) -> Self {
        Commands { limits, state: State::Begin, args: Vec::new(), closed: false }
    }

    /// Changes the limits from the next command on. They apply to what is read from now on of a
    /// command that is incomplete.
    #[inline]
    pub fn set_limits(&mut self, limits: CommandLimits) {
        self.limits = limits;
    }

    /// Returns the number of bytes to take off the front of `input`, and the command in them. Like
    /// in Redis, empty lines and empty arrays are skipped: bytes may be taken without a command;
    /// then call again. If nothing is taken, the command is incomplete. After an error, all bytes are
    /// taken and none is interpreted.
    #[inline]
    pub fn next<'a>(
        &'a mut self,
        input: &'a [u8],
    ) -> Result<(usize, Option<Command<'a>>), ProtocolError> {
        if self.closed {
            return Ok((input.len(), None));
        }
        let end = match self.end(input) {
            Ok(Some(end)) => end,
            Ok(None) if input.len() > self.limits.command => {
                self.closed = true;
                return wrong("a command is too long");
            }
            Ok(None) => return Ok((0, None)),
            Err(error) => {
                self.closed = true;
                return Err(error);
            }
        };
        self.state = State::Begin;
        let inline = input[0] != b'*';
        let command = Command { bytes: &input[..end], args: &self.args, inline };
        Ok((end, (!self.args.is_empty()).then_some(command)))
    }

    /// Returns where the command at the front of `input` ends.
    #[inline]
    fn end(&mut self, input: &[u8]) -> Result<Option<usize>, ProtocolError> {
        loop {
            match self.state {
                State::Begin => {
                    self.args.clear();
                    if self.args.capacity() > KEPT {
                        self.args.shrink_to(KEPT);
                    }
                    match input.first() {
                        None => return Ok(None),
                        Some(b'*') => {}
                        Some(_) => return self.inline(input),
                    }
                    let read = number(&input[1..], "invalid multibulk length")?;
                    let Some((count, taken)) = read else { return Ok(None) };
                    if count <= 0 {
                        return Ok(Some(1 + taken));
                    }
                    let left = usize::try_from(count).unwrap_or(usize::MAX);
                    if left > self.limits.args {
                        return wrong("invalid multibulk length");
                    }
                    self.state = State::Args { left, at: 1 + taken };
                }
                State::Args { left: 0, at } => return Ok(Some(at)),
                State::Args { left, at } => {
                    match input.get(at) {
                        None => return Ok(None),
                        Some(b'$') => {}
                        Some(&byte) => {
                            return Err(ProtocolError { what: "expected '$'", got: Some(byte) });
                        }
                    }
                    let read = number(&input[at + 1..], "invalid bulk length")?;
                    let Some((length, taken)) = read else { return Ok(None) };
                    let length = usize::try_from(length)
                        .ok()
                        .filter(|length| *length <= self.limits.bulk)
                        .ok_or(Malformed("invalid bulk length"))?;
                    self.state = State::Bulk { left: left - 1, at: at + 1 + taken, length };
                }
                State::Bulk { left, at, length } => {
                    let end = at + length;
                    match input.get(end..) {
                        Some([b'\r', b'\n', ..]) => {}
                        None | Some([] | [b'\r']) => return Ok(None),
                        Some(_) => return wrong("expected CR LF after a bulk string"),
                    }
                    self.args.push(at..end);
                    self.state = State::Args { left, at: end + 2 };
                }
            }
        }
    }

    /// Parses a command that is a line of words, separated as in Redis (`sdssplitargs` in its
    /// `sds.c`). Words may be quoted. Escapes are not interpreted; a quoted word with one is refused,
    /// because its bytes could not be forwarded unchanged.
    fn inline(&mut self, input: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let most = self.limits.inline;
        let window = &input[..input.len().min(most + 1)];
        let Some(end) = memchr::memchr(b'\n', window) else {
            let whole = input.len() <= most;
            return if whole { Ok(None) } else { wrong("too big inline request") };
        };
        let text = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
        // Redis would wait for more input.
        if memchr::memchr(0, text).is_some() {
            return wrong("a zero byte in an inline request");
        }
        let mut at = 0;
        while at < text.len() {
            let byte = text[at];
            if is_space(&byte) {
                at += 1;
                continue;
            }
            let start = at;
            if byte == b'"' || byte == b'\'' {
                let quoted = &text[at + 1..];
                let length = memchr::memchr(byte, quoted)
                    .filter(|length| quoted.get(length + 1).is_none_or(is_space))
                    .filter(|length| !quoted[..*length].contains(&b'\\'))
                    .ok_or(Malformed("unbalanced quotes in request"))?;
                self.args.push(start + 1..start + 1 + length);
                at += length + 2;
                continue;
            }
            let ends = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
            let length = text[at..].iter().take_while(|byte| !ends(byte)).count();
            if text[at..at + length].iter().any(|byte| matches!(byte, b'"' | b'\'')) {
                return wrong("unbalanced quotes in request");
            }
            self.args.push(start..start + length);
            at += length;
        }
        Ok(Some(end + 1))
    }
}

/// Returns whether a byte is white space in C. Only some of it ends a word.
fn is_space(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || *byte == b'\x0b'
}

/// Appends a command as clients send it.
pub fn write_command<'a>(
    args: impl IntoIterator<Item = &'a [u8], IntoIter: ExactSizeIterator>,
    out: &mut Vec<u8>,
) {
    let args = args.into_iter();
    out.push(b'*');
    out.extend_from_slice(itoa::Buffer::new().format(args.len()).as_bytes());
    out.extend_from_slice(b"\r\n");
    args.for_each(|arg| write_bulk(arg, out));
}

/// Appends a bulk string, which is an argument of a command, or a reply.
pub fn write_bulk(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'$');
    out.extend_from_slice(itoa::Buffer::new().format(bytes.len()).as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use regatta_testkit::pieces::pieces;

    const LIMITS: CommandLimits =
        CommandLimits { args: 9, bulk: 4000, inline: 100, command: 40_000 };

    /// Decodes bytes that arrive in these pieces. Returns the commands, and the error after them.
    fn commands(bytes: &[u8], cuts: &[usize]) -> (Vec<Vec<Vec<u8>>>, Option<String>) {
        let mut decoder = Commands::new(LIMITS);
        let (mut held, mut found): (Vec<u8>, _) = (Vec::new(), Vec::new());
        for piece in pieces(bytes, cuts) {
            held.extend_from_slice(piece);
            loop {
                let taken = match decoder.next(&held) {
                    Ok((0, None)) => break,
                    Ok((taken, command)) => {
                        if let Some(command) = command {
                            assert_eq!(command.bytes, &held[..taken]);
                            assert_eq!(command.args().len(), command.len());
                            assert_eq!(command.arg(0), command.args().next());
                            found.push(command.args().map(<[u8]>::to_vec).collect());
                        }
                        taken
                    }
                    Err(error) => {
                        let text = String::from_utf8_lossy(&error.text()).into_owned();
                        return (found, Some(text));
                    }
                };
                held.drain(..taken);
            }
        }
        (found, None)
    }

    fn whole(bytes: &[u8]) -> (Vec<Vec<Vec<u8>>>, Option<String>) {
        commands(bytes, &[usize::MAX])
    }

    fn words(words: &[&str]) -> Vec<Vec<u8>> {
        words.iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn decodes_arrays_and_lines() {
        let bytes = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n  set  k\t\"a b\" '' \n\r\n*0\r\n*-1\r\n*1\r\n$0\r\n\r\n\x0bget a\x0bb\x0c\n*-9223372036854775808\r\n";
        let expected = [
            words(&["GET", "k"]),
            words(&["PING"]),
            words(&["set", "k", "a b", ""]),
            words(&[""]),
            words(&["get", "a\x0bb\x0c"]),
        ];
        assert_eq!(whole(bytes), (expected.to_vec(), None));
    }

    #[test]
    fn an_array_without_elements_is_passed_over_with_its_line_end() {
        for bytes in [&b"*0\r\n"[..], b"*-1\r\n"] {
            let mut decoder = Commands::new(LIMITS);
            let (taken, command) = decoder.next(bytes).unwrap();
            assert_eq!((taken, command.is_none()), (bytes.len(), true));
        }
    }

    #[test]
    fn refuses_malformed_commands() {
        for (bytes, why) in [
            (&b"*x\r\n"[..], "invalid multibulk length"),
            (b"*10\r\n", "invalid multibulk length"),
            (b"*99999999999999999999999999999999999\r\n", "invalid multibulk length"),
            (b"*1\r\n:1\r\n", "expected '$', got ':'"),
            (b"*01\r\n", "invalid multibulk length"),
            (b"*+1\r\n", "invalid multibulk length"),
            (b"*-0\r\n", "invalid multibulk length"),
            (b"*1\r\n$04\r\nPING\r\n", "invalid bulk length"),
            (b"*1\r\n$+4\r\nPING\r\n", "invalid bulk length"),
            (b"*1\r\n$-0\r\n\r\n", "invalid bulk length"),
            (b"get a\0b\n", "a zero byte in an inline request"),
            (b"*1\r\n$-1\r\n", "invalid bulk length"),
            (b"*1\r\n$4001\r\n", "invalid bulk length"),
            (b"*1\r\n$1\r\nab\r\n", "expected CR LF after a bulk string"),
            (b"*1\r\n$1\r\na\rb", "expected CR LF after a bulk string"),
            (b"*1\rx", "invalid multibulk length"),
            (b"get \"a\n", "unbalanced quotes in request"),
            (b"get \"a\"b\n", "unbalanced quotes in request"),
            (b"get a\"b\"\n", "unbalanced quotes in request"),
            (b"get \"a\\n\"\n", "unbalanced quotes in request"),
        ] {
            assert_eq!(whole(bytes), (vec![], Some(why.into())), "{}", bytes.escape_ascii());
            assert_eq!(commands(bytes, &[1]).1, Some(why.into()), "{}", bytes.escape_ascii());
        }
        assert_eq!(whole(&[b'a'; 101]).1, Some("too big inline request".into()));
        let longest = [&[b'a'; 100][..], b"\n"].concat();
        assert_eq!(
            whole(&longest),
            (vec![vec![vec![b'a'; 100]]], None),
            "the line end is not counted"
        );
        assert_eq!(whole(&[b'a'; 100]).1, None);
    }

    #[test]
    fn an_incomplete_command_is_bounded() {
        let big = vec![b'x'; 4000];
        let mut bytes = Vec::new();
        write_command([&big[..]; 9], &mut bytes);
        let small = CommandLimits { command: 20_000, ..LIMITS };
        assert!(Commands::new(small).next(&bytes[..20_001]).is_err());
        assert_eq!(whole(&bytes).0.len(), 1);
    }

    #[test]
    fn nothing_is_interpreted_after_an_error() {
        let mut decoder = Commands::new(LIMITS);
        assert!(decoder.next(b"*x\r\n").is_err());
        assert!(matches!(decoder.next(b"PING\r\n"), Ok((6, None))));
    }

    proptest! {
        #[test]
        fn commands_are_decoded_as_they_were_written(
            all in proptest::collection::vec(
                proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..400), 1..10),
                1..6,
            ),
            cuts in proptest::collection::vec(1usize..300, 1..20),
        ) {
            let mut bytes = Vec::new();
            for command in &all {
                write_command(command.iter().map(|arg| &arg[..]), &mut bytes);
            }
            prop_assert_eq!(commands(&bytes, &cuts), (all.clone(), None));
            prop_assert_eq!(whole(&bytes), (all, None));
        }

        #[test]
        fn malformed_input_gives_the_same_error_however_it_is_split(
            bytes in proptest::collection::vec(prop::sample::select(&b"*$12-\r\n\n a\"'\\"[..]), 0..60),
            cuts in proptest::collection::vec(1usize..5, 1..9),
        ) {
            prop_assert_eq!(commands(&bytes, &cuts), whole(&bytes));
        }
    }
}
