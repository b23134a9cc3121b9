//! SLOWLOG GET, LEN and RESET, as `slowlogCommand` of Redis answers them. SLOWLOG HELP is answered by a node.

use crate::observe::slow_log::SlowLog;
use regatta_proto::resp::{Command, write_bulk};

/// The number of entries that GET returns if no other is requested.
const DEFAULT: usize = 10;

/// Answers SLOWLOG: with a reply, or with an error without the leading `-`.
pub(crate) fn answer(command: &Command<'_>, log: &SlowLog) -> Result<Vec<u8>, Vec<u8>> {
    let name = command.arg(1).unwrap_or_default();
    match &name.to_ascii_lowercase()[..] {
        b"len" => Ok(format!(":{}\r\n", log.len()).into_bytes()),
        b"reset" => {
            log.reset();
            Ok(b"+OK\r\n".to_vec())
        }
        b"get" if command.len() <= 3 => Ok(list(log, most(command.arg(2))?)),
        _ => {
            let shown = &name[..name.len().min(128)];
            let what = b"ERR unknown subcommand or wrong number of arguments for '";
            Err([&what[..], shown, b"'. Try SLOWLOG HELP."].concat())
        }
    }
}

/// Reads the number of entries that are requested; -1 requests all.
fn most(argument: Option<&[u8]>) -> Result<usize, Vec<u8>> {
    let Some(argument) = argument else { return Ok(DEFAULT) };
    let number = std::str::from_utf8(argument).ok().and_then(|text| text.parse::<i64>().ok());
    // Redis accepts only one form of a number.
    match number.filter(|number| number.to_string().as_bytes() == argument) {
        Some(-1) => Ok(usize::MAX),
        Some(number @ 0..) => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
        _ => Err(b"ERR count should be greater than or equal to -1".to_vec()),
    }
}

/// The newest entries, in the six fields of Redis: some clients cannot read more. So the third one is the whole time, and
/// its parts are beside the number of the client, in place of its address, which the proxy does not know.
fn list(log: &SlowLog, most: usize) -> Vec<u8> {
    let entries = log.newest(most);
    let mut out = format!("*{}\r\n", entries.len()).into_bytes();
    for entry in entries {
        let (id, unix_s) = (entry.id, entry.unix_s);
        let (node_us, proxy_us) = (entry.duration_us, entry.proxy_us);
        let duration_us = node_us + proxy_us;
        let count = entry.arguments.len();
        let head = format!("*6\r\n:{id}\r\n:{unix_s}\r\n:{duration_us}\r\n*{count}\r\n");
        out.extend_from_slice(head.as_bytes());
        entry.arguments.iter().for_each(|argument| write_bulk(argument, &mut out));
        let client = format!("id={} node_us={node_us} proxy_us={proxy_us}", entry.client);
        write_bulk(client.as_bytes(), &mut out);
        write_bulk(&entry.client_name, &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::slow_log::SlowEntry;
    use regatta_proto::resp::{CommandLimits, Commands};

    fn says(log: &SlowLog, line: &str) -> String {
        let bytes = format!("{line}\r\n").into_bytes();
        let mut commands = Commands::new(CommandLimits::default());
        let (_, command) = commands.next(&bytes).unwrap();
        let reply = answer(&command.unwrap(), log).unwrap_or_else(|error| error);
        String::from_utf8(reply).unwrap()
    }

    #[test]
    fn entries_have_the_form_of_redis() {
        let log = SlowLog::new(128);
        assert_eq!(says(&log, "SLOWLOG GET"), "*0\r\n");
        log.add(SlowEntry {
            id: 0,
            unix_s: 1_700_000_000,
            duration_us: 12_345,
            proxy_us: 655,
            arguments: vec![b"GET".to_vec(), b"key".to_vec()],
            client: 7,
            client_name: b"me".to_vec(),
        });
        assert_eq!(
            says(&log, "slowlog get 5"),
            "*1\r\n*6\r\n:0\r\n:1700000000\r\n:13000\r\n*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n\
             $31\r\nid=7 node_us=12345 proxy_us=655\r\n$2\r\nme\r\n"
        );
        assert_eq!(says(&log, "SLOWLOG LEN"), ":1\r\n");
        assert_eq!(says(&log, "SLOWLOG RESET"), "+OK\r\n");
        assert_eq!(says(&log, "SLOWLOG LEN"), ":0\r\n");
    }

    #[test]
    fn as_many_entries_are_returned_as_requested() {
        let log = SlowLog::new(128);
        (0..20).for_each(|id| assert_eq!(log.add(SlowEntry::default()), id));
        for (request, count) in [
            ("SLOWLOG GET", 10),
            ("SLOWLOG GET 3", 3),
            ("SLOWLOG GET 0", 0),
            ("SLOWLOG GET 100", 20),
            ("SLOWLOG GET -1", 20),
        ] {
            let reply = says(&log, request);
            assert!(reply.starts_with(&format!("*{count}\r\n")), "{request}: {reply}");
        }
        for wrong in ["-2", "x", "1.5", "+1", "01", "99999999999999999999"] {
            let reply = says(&log, &format!("SLOWLOG GET {wrong}"));
            assert_eq!(reply, "ERR count should be greater than or equal to -1", "{wrong}");
        }
        let expected =
            "ERR unknown subcommand or wrong number of arguments for 'Get'. Try SLOWLOG HELP.";
        assert_eq!(says(&log, "slowlog Get 1 2"), expected);
    }
}
