//! Subscriptions, with messages in flight.

use crate::support::shard::{client, proxy_to};
use regatta_proto::resp::{CommandLimits, Commands, write_command};
use regatta_testkit::server::Server;
use std::{
    io::{Read, Write},
    net::TcpStream,
};

/// Starts a node with one message in flight at any time: it sends the message directly before it
/// confirms an UNSUBSCRIBE.
fn node_with_messages_in_flight() -> Server {
    Server::start(|_, stream| serve(stream))
}

fn serve(mut stream: TcpStream) {
    let mut commands = Commands::new(CommandLimits::default());
    let (mut input, mut buffer, mut resp3) = (Vec::new(), [0; 4096], false);
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        input.extend_from_slice(&buffer[..read]);
        let mut out = Vec::new();
        while let Ok((taken @ 1.., command)) = commands.next(&input) {
            let args: Vec<Vec<u8>> = command
                .iter()
                .flat_map(|command| command.args())
                .map(<[u8]>::to_ascii_lowercase)
                .collect();
            input.drain(..taken);
            let Some(name) = args.first() else { continue };
            let kind = String::from_utf8_lossy(name).into_owned();
            let mut push = |parts: &[&[u8]], count: &str| {
                let start = out.len();
                write_command(parts.iter().copied(), &mut out);
                out.extend_from_slice(count.as_bytes());
                out[start..start + 2].copy_from_slice(if resp3 { b">3" } else { b"*3" });
            };
            match kind.strip_suffix("subscribe") {
                Some(prefix) => {
                    if let Some(prefix) = prefix.strip_suffix("un") {
                        let message = format!("{prefix}message");
                        // The pattern of a `pmessage` is left out: the proxy does not read it.
                        push(&[message.as_bytes(), &args[1], b"text"], "");
                    }
                    push(&[name, &args[1]], ":0\r\n");
                }
                None if kind == "hello" => {
                    resp3 = args[1] == b"3";
                    out.extend_from_slice(b"%0\r\n");
                }
                None => out.extend_from_slice(b"$5\r\nvalue\r\n"),
            }
        }
        if stream.write_all(&out).is_err() {
            return;
        }
    }
}

#[test]
fn messages_in_flight_come_before_the_confirmation_of_an_unsubscribe() {
    let node = node_with_messages_in_flight();
    let proxy = proxy_to("epoll", std::iter::once(node.addr), &[]);
    for hello in ["HELLO 2", "HELLO 3"] {
        let mut client = client(&proxy);
        client.say(hello);
        for prefix in ["", "P", "S"] {
            for (names, many) in [("", false), (" channel", false), (" channel", true)] {
                client.say(&format!("{prefix}SUBSCRIBE channel"));
                if many {
                    // A subscription remains.
                    client.say(&format!("{prefix}SUBSCRIBE other"));
                }
                let message = client.say(&format!("{prefix}UNSUBSCRIBE{names}"));
                assert!(message.contains("message\r\n$7\r\nchannel"), "{hello}: {message}");
                let confirmation = String::from_utf8(client.next().unwrap()).unwrap();
                assert!(confirmation.contains("unsubscribe\r\n$7\r\nchannel"), "{confirmation}");
                if many {
                    client.say(&format!("{prefix}UNSUBSCRIBE other"));
                    client.next();
                }
                assert_eq!(client.say("GET key"), "$5\r\nvalue\r\n", "{hello}, {prefix}");
            }
        }
    }
}
