//! A client's identity, and the commands that can be answered from it alone.

use crate::{
    reply::info::{self, Core},
    settings::{Auth, Credentials},
    shared::Shared,
    users::Login,
};
use regatta_keyspace::Arguments;
use regatta_proto::resp::{Command, write_bulk};

pub(crate) const NO_AUTH: &[u8] = b"NOAUTH Authentication required.";
const NO_AUTH_HELLO: &[u8] = b"NOAUTH HELLO must be called with the client already authenticated, \
    otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
    select the RESP protocol version at the same time";
const WRONG_PASSWORD: &[u8] = b"WRONGPASS invalid username-password pair or user is disabled.";
const NO_PASSWORD: &[u8] = b"ERR AUTH <password> called without any password configured for the \
    default user. Are you sure your configuration is correct?";
const WRONG_NAME: &[u8] =
    b"ERR Client names cannot contain spaces, newlines or special characters.";
const NO_INTEGER: &[u8] = b"ERR value is not an integer or out of range";
const NO_DATABASE: &[u8] = b"ERR DB index is out of range";

/// A reply, or the text of an error without the leading `-`.
pub(crate) type Answer = Result<Vec<u8>, Vec<u8>>;

/// A client's identity.
#[derive(Debug)]
pub(crate) struct Identity {
    /// The number that CLIENT ID returns. Unique among the clients of all cores.
    pub(crate) id: u64,
    /// The client uses RESP3: it receives pushes, and null as `_`.
    pub(crate) resp3: bool,
    /// The client has authenticated, or no password is set.
    pub(crate) is_trusted: bool,
    /// The nodes demand a password, and it has sent none.
    pub(crate) is_stranger: bool,
    /// The client asks for [handoffs](super::handoff).
    pub(crate) asks_for_handoffs: bool,
    /// The user of the nodes as which it has authenticated.
    pub(crate) user: Option<Login>,
    name: Vec<u8>,
}

/// What HELLO asks for.
pub(crate) struct Hello<'c> {
    resp3: bool,
    /// A user name and a password.
    pub(crate) auth: Option<(&'c [u8], &'c [u8])>,
    name: Option<&'c [u8]>,
    /// The error about the first option that is wrong. As in Redis, it comes only after the options before it were
    /// obeyed: a password was checked, and a name was set.
    pub(crate) wrong: Option<Vec<u8>>,
}

impl Identity {
    /// Creates the identity of a newly connected client.
    pub(crate) fn new(shared: &Shared, auth: &Auth) -> Self {
        let id = shared.counts.connections.add(1) as u64 + 1;
        let is_trusted = auth.clients.is_none();
        Identity::numbered(id, is_trusted)
    }

    /// The identity of a client with this number that has sent nothing yet.
    fn numbered(id: u64, is_trusted: bool) -> Self {
        Identity {
            id,
            resp3: false,
            is_trusted,
            is_stranger: false,
            asks_for_handoffs: false,
            user: None,
            name: Vec::new(),
        }
    }

    /// Resets everything except the number.
    pub(crate) fn reset(&mut self, own: Option<&Credentials>) {
        *self = Identity::numbered(self.id, own.is_none());
    }

    /// Returns whether it may send large requests.
    #[inline]
    pub(crate) fn may_send_much(&self) -> bool {
        self.is_trusted && !self.is_stranger
    }

    /// The name that it has set; empty if none.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// The name of its user.
    fn user_name(&self) -> &[u8] {
        self.user.as_ref().map_or(Credentials::DEFAULT_USER, |login| login.user().name())
    }

    /// Null, in the client's protocol version.
    pub(crate) fn null(&self) -> &'static [u8] {
        if self.resp3 { b"_\r\n" } else { b"$-1\r\n" }
    }

    /// Answers PING.
    pub(crate) fn ping(&self, command: &Command<'_>, is_subscribed: bool) -> Answer {
        if command.len() > 2 {
            return Err(b"ERR wrong number of arguments for 'ping' command".to_vec());
        }
        let text = command.arg(1);
        if is_subscribed && !self.resp3 {
            let mut out = b"*2\r\n$4\r\npong\r\n".to_vec();
            write_bulk(text.unwrap_or_default(), &mut out);
            return Ok(out);
        }
        Ok(text.map_or_else(|| b"+PONG\r\n".to_vec(), bulked))
    }

    /// Answers AUTH. `own`: the credentials that clients must send, if any.
    pub(crate) fn auth(&mut self, command: &Command<'_>, own: Option<&Credentials>) -> Answer {
        let (user, password) = match (command.arg(1), command.arg(2)) {
            (Some(_), Some(_)) if command.len() > 3 => return Err(b"ERR syntax error".to_vec()),
            (Some(user), Some(password)) => (user, password),
            (Some(_), None) if own.is_none() => return Err(NO_PASSWORD.to_vec()),
            (password, _) => (Credentials::DEFAULT_USER, password.unwrap_or_default()),
        };
        self.check(own, user, password)?;
        Ok(b"+OK\r\n".to_vec())
    }

    fn check(
        &mut self,
        own: Option<&Credentials>,
        user: &[u8],
        password: &[u8],
    ) -> Result<(), Vec<u8>> {
        match own {
            Some(own) if !own.matches(user, password) => Err(WRONG_PASSWORD.to_vec()),
            // If no password is set, the default user may send any.
            None if user != Credentials::DEFAULT_USER => Err(WRONG_PASSWORD.to_vec()),
            _ => {
                self.is_trusted = true;
                Ok(())
            }
        }
    }

    /// Answers HELLO, which may change the protocol version. `own`: the credentials that clients must send, if any;
    /// `redis`: the version of Redis that the client sees.
    pub(crate) fn hello(
        &mut self,
        command: &Command<'_>,
        own: Option<&Credentials>,
        redis: &str,
    ) -> Answer {
        let hello = self.read_hello(command)?;
        if let Some((user, password)) = hello.auth {
            self.check(own, user, password)?;
        }
        if !self.is_trusted && hello.wrong.is_none() {
            return Err(NO_AUTH_HELLO.to_vec());
        }
        self.greet(hello, redis)
    }

    /// Reads HELLO.
    pub(crate) fn read_hello<'c>(&self, command: &Command<'c>) -> Result<Hello<'c>, Vec<u8>> {
        let mut hello = Hello { resp3: self.resp3, auth: None, name: None, wrong: None };
        if let Some(version) = command.arg(1) {
            let version =
                std::str::from_utf8(version).ok().and_then(|text| text.parse::<i64>().ok());
            hello.resp3 = match version {
                Some(2) => false,
                Some(3) => true,
                Some(_) => return Err(b"NOPROTO unsupported protocol version".to_vec()),
                None => {
                    return Err(b"ERR Protocol version is not an integer or out of range".to_vec());
                }
            };
        }
        let mut at = 2;
        while let Some(option) = command.arg(at) {
            if command.is(at, "auth") && command.len() > at + 2 && hello.auth.is_none() {
                hello.auth = command.arg(at + 1).zip(command.arg(at + 2));
                at += 3;
            } else if command.is(at, "setname") && command.len() > at + 1 {
                if !command.arg(at + 1).is_some_and(is_name) {
                    hello.wrong = Some(WRONG_NAME.to_vec());
                    break;
                }
                hello.name = command.arg(at + 1);
                at += 2;
            } else {
                let option = printable(option);
                hello.wrong =
                    Some([b"ERR Syntax error in HELLO option '", &option[..], b"'"].concat());
                break;
            }
        }
        Ok(hello)
    }

    /// Answers HELLO of a client that may send commands.
    pub(crate) fn greet(&mut self, hello: Hello<'_>, redis: &str) -> Answer {
        let Hello { resp3, name, wrong, .. } = hello;
        if let Some(name) = name {
            self.set_name(name)?;
        }
        if let Some(error) = wrong {
            return Err(error);
        }
        self.resp3 = resp3;
        let mut out = if resp3 { b"%7\r\n".to_vec() } else { b"*14\r\n".to_vec() };
        let version = if resp3 { ":3\r\n" } else { ":2\r\n" };
        for (name, value) in [
            ("server", bulked(b"redis")),
            ("version", bulked(redis.as_bytes())),
            ("proto", version.as_bytes().to_vec()),
            ("id", format!(":{}\r\n", self.id).into_bytes()),
            ("mode", bulked(b"standalone")),
            ("role", bulked(b"master")),
            ("modules", b"*0\r\n".to_vec()),
        ] {
            write_bulk(name.as_bytes(), &mut out);
            out.extend_from_slice(&value);
        }
        Ok(out)
    }

    /// Answers a subcommand of CLIENT about the client's own connection, and ACL WHOAMI.
    pub(crate) fn client(&mut self, command: &Command<'_>) -> Answer {
        let name = command.arg(1).unwrap_or_default().to_ascii_lowercase();
        match &name[..] {
            b"whoami" => Ok(bulked(self.user_name())),
            b"id" => Ok(format!(":{}\r\n", self.id).into_bytes()),
            b"getredir" => Ok(b":-1\r\n".to_vec()),
            b"getname" if self.name.is_empty() => Ok(self.null().to_vec()),
            b"getname" => Ok(bulked(&self.name)),
            b"setname" => {
                self.set_name(command.arg(2).unwrap_or_default())?;
                Ok(b"+OK\r\n".to_vec())
            }
            _ => {
                let (resp, name) = (if self.resp3 { 3 } else { 2 }, self.name.escape_ascii());
                let (id, user) = (self.id, self.user_name().escape_ascii());
                Ok(self.text(&format!("id={id} name={name} user={user} resp={resp}\n")))
            }
        }
    }

    fn set_name(&mut self, name: &[u8]) -> Result<(), Vec<u8>> {
        if !is_name(name) {
            return Err(WRONG_NAME.to_vec());
        }
        self.name = name.to_vec();
        Ok(())
    }

    /// Answers INFO.
    pub(crate) fn info(&self, command: &Command<'_>, shared: &Shared, core: &Core<'_>) -> Vec<u8> {
        self.text(&info::info(command, shared, core))
    }

    /// Encodes text for people, in the client's protocol version.
    fn text(&self, text: &str) -> Vec<u8> {
        if self.resp3 {
            format!("={}\r\ntxt:{text}\r\n", text.len() + 4).into_bytes()
        } else {
            bulked(text.as_bytes())
        }
    }
}

/// Returns whether a client may have this name.
fn is_name(name: &[u8]) -> bool {
    name.iter().all(u8::is_ascii_graphic)
}

/// The database that SELECT names.
pub(crate) fn database(command: &Command<'_>) -> Result<u32, Vec<u8>> {
    let text = command.arg(1).and_then(|text| std::str::from_utf8(text).ok());
    let number = text.and_then(|text| text.parse::<i32>().ok()).ok_or(NO_INTEGER)?;
    Ok(u32::try_from(number).map_err(|_| NO_DATABASE)?)
}

/// Encodes a bulk string.
pub(crate) fn bulked(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 16);
    write_bulk(bytes, &mut out);
    out
}

/// Returns whether this is CLIENT SETINFO of Redis 7.2, with which client libraries identify
/// themselves. The table of commands is older.
pub(crate) fn is_set_info(command: &Command<'_>) -> bool {
    command.is(0, "client") && command.is(1, "setinfo") && command.len() == 4
}

/// The reply to it: its rules are those of `clientSetinfoCommand` of Redis 7.2. What it says is not kept.
pub(crate) fn set_info(command: &Command<'_>) -> Vec<u8> {
    let (option, value) = (command.arg(2).unwrap_or_default(), command.arg(3).unwrap_or_default());
    let why: &[u8] = if !command.is(2, "lib-name") && !command.is(2, "lib-ver") {
        return [b"-ERR Unrecognized option '", &printable(option)[..], b"'\r\n"].concat();
    } else if !value.iter().all(u8::is_ascii_graphic) {
        b" cannot contain spaces, newlines or special characters.\r\n"
    } else {
        return b"+OK\r\n".to_vec();
    };
    [b"-ERR ", option, why].concat()
}

/// An argument as Redis shows it in an error: like `%s` in C up to the first zero byte, with spaces for line breaks.
fn printable(text: &[u8]) -> Vec<u8> {
    let bytes = text.iter().take_while(|byte| **byte != 0);
    bytes.map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_proto::resp::{CommandLimits, Commands, write_command};

    #[test]
    fn a_client_learns_its_number_and_the_name_that_it_has_set() {
        let mut identity = Identity::numbered(7, true);
        let mut says = |line: &str, reply: &str| {
            let limits = CommandLimits { args: 9, bulk: 100, inline: 100, command: 100 };
            let mut commands = Commands::new(limits);
            let (_, command) = commands.next(line.as_bytes()).unwrap();
            assert_eq!(identity.client(&command.unwrap()).unwrap(), reply.as_bytes(), "{line}");
        };
        says("CLIENT ID\r\n", ":7\r\n");
        says("ACL WHOAMI\r\n", "$7\r\ndefault\r\n");
        says("CLIENT GETNAME\r\n", "$-1\r\n");
        says("CLIENT SETNAME me\r\n", "+OK\r\n");
        says("CLIENT GETNAME\r\n", "$2\r\nme\r\n");
    }

    #[test]
    fn hello_obeys_its_options_up_to_the_first_that_is_wrong() {
        let limits = CommandLimits { args: 9, bulk: 100, inline: 100, command: 100 };
        let name = "-ERR Client names cannot contain spaces, newlines or special characters.";
        let more = "-ERR Syntax error in HELLO option 'more'";
        let password = "-WRONGPASS invalid username-password pair or user is disabled.";
        for (words, error, named) in [
            (&["SETNAME", "a b", "more"][..], name, ""),
            (&["SETNAME", "me", "more"], more, "me"),
            (&["SETNAME", "me", "SETNAME", "a b"], name, "me"),
            (&["more", "SETNAME", "me"], more, ""),
            (&["SETNAME", "me", "more\0\r\n"], more, "me"),
            (&["a\r\nb"], "-ERR Syntax error in HELLO option 'a  b'", ""),
            (&["AUTH", "nobody", "x", "SETNAME", "a b"], password, ""),
            (&["SETNAME", "a b", "AUTH", "nobody", "x"], name, ""),
        ] {
            let mut identity = Identity::numbered(7, true);
            let mut commands = Commands::new(limits);
            let mut line = Vec::new();
            let all = [&["HELLO", "3"], words].concat();
            write_command(all.iter().map(|word| word.as_bytes()), &mut line);
            let (_, command) = commands.next(&line).unwrap();
            let answer = identity.hello(&command.unwrap(), None, "7.0.15");
            assert_eq!([b"-", &answer.unwrap_err()[..]].concat(), error.as_bytes(), "{words:?}");
            assert_eq!(identity.name(), named.as_bytes(), "{words:?}");
            assert!(!identity.resp3, "{words:?}");
        }
    }

    #[test]
    fn a_library_says_its_name_and_its_version() {
        for (request, reply) in [
            ("CLIENT SETINFO lib-name jedis", "+OK\r\n"),
            ("client setinfo LIB-VER 1.2(x;y)", "+OK\r\n"),
            ("CLIENT SETINFO lib x\\ny", "-ERR Unrecognized option 'lib'\r\n"),
            (
                "CLIENT SETINFO LIB-VER \"1 2\"",
                "-ERR LIB-VER cannot contain spaces, newlines or special characters.\r\n",
            ),
        ] {
            let limits = CommandLimits { args: 9, bulk: 100, inline: 100, command: 100 };
            let (mut commands, line) = (Commands::new(limits), format!("{request}\r\n"));
            let (_, command) = commands.next(line.as_bytes()).unwrap();
            let command = command.unwrap();
            assert!(is_set_info(&command), "{request}");
            assert_eq!(String::from_utf8(set_info(&command)).unwrap(), reply, "{request}");
        }
    }

    #[test]
    fn a_ping_is_answered_with_its_one_text() {
        let identity = Identity::numbered(7, true);
        let ping = |line: &str, is_subscribed| {
            let limits = CommandLimits { args: 9, bulk: 100, inline: 100, command: 100 };
            let mut commands = Commands::new(limits);
            let (_, command) = commands.next(line.as_bytes()).unwrap();
            let answer = identity.ping(&command.unwrap(), is_subscribed);
            answer.map_err(|_| ()).map(|answer| String::from_utf8(answer).unwrap())
        };
        assert_eq!(ping("PING\r\n", false).unwrap(), "+PONG\r\n");
        assert_eq!(ping("PING a\r\n", false).unwrap(), "$1\r\na\r\n");
        assert_eq!(ping("PING a\r\n", true).unwrap(), "*2\r\n$4\r\npong\r\n$1\r\na\r\n");
        assert!(ping("PING a b\r\n", false).is_err());
    }
}
