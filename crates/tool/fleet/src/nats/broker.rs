//! The connection to the broker.

use super::{
    config::Config,
    packet::{Packet, SEGMENT},
    stream::Stream,
};
use crate::{error::Error, machine::now_ns};
use async_nats::{Client, ConnectOptions, Event, Subject, Subscriber, connection::State};
use bytes::Bytes;
use std::time::{Duration, Instant};
use tokio::{sync::mpsc, time::timeout};

/// Maximum time to connect to the broker.
const CONNECTS_WITHIN: Duration = Duration::from_millis(1_500);
/// Interval between two attempts to connect again. Agents must be back within 2 s of their leader.
const RECONNECTS_EVERY: Duration = Duration::from_millis(200);
/// Interval between two pings of the broker. A broker that does not answer two of them is gone.
const PINGS_EVERY: Duration = Duration::from_secs(2);

/// Most packets of a subscription, each of up to 1 MiB, that wait. Those that come then are lost, and sent again.
const MOST_WAITING: usize = 64;
/// Maximum time to write what a session ends with.
const FLUSHED_WITHIN: Duration = Duration::from_secs(1);

/// A connection to the broker, which connects again when it is lost.
pub(super) struct Broker {
    client: Client,
    events: mpsc::UnboundedReceiver<Event>,
    /// When it was first noticed that the connection is lost.
    lost: Option<Instant>,
}

/// What happened to the connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It is there again.
    Back,
    /// It was lost.
    Lost,
    /// The broker or the client reports an error.
    Error(String),
}

impl Broker {
    /// Connects, and logs in.
    ///
    /// # Errors
    /// [`Error::Nats`] if the broker cannot be reached, or refuses the key.
    pub async fn connect(config: &Config) -> Result<Broker, Error> {
        let (sender, events) = mpsc::unbounded_channel();
        let mut options = ConnectOptions::with_nkey(config.seed.clone())
            .name(format!("regatta {}", config.name))
            .ping_interval(PINGS_EVERY)
            .subscription_capacity(MOST_WAITING)
            .connection_timeout(CONNECTS_WITHIN)
            .max_reconnects(None)
            .reconnect_delay_callback(|_| RECONNECTS_EVERY)
            .ignore_discovered_servers()
            .event_callback(move |event| {
                let sender = sender.clone();
                async move { drop(sender.send(event)) }
            });
        if let Some(ca) = &config.ca {
            // Then the client does not trust the certificates of the system.
            options = options.require_tls(true).add_root_certificates(ca.clone());
        }
        let client = options.connect(&config.broker).await.map_err(|error| {
            let text = error.to_string();
            let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
            // Some errors name their source themselves.
            let source = source.filter(|source| !text.contains(&source[2..]));
            let text = format!("{text}{}", source.unwrap_or_default());
            let (broker, advice) = (&config.broker, advice(&text));
            Error::Nats(format!("cannot connect to the broker {broker}: {text}{advice}"))
        })?;
        Ok(Broker { client, events, lost: None })
    }

    /// Receives what is sent to this subject from now on.
    ///
    /// # Errors
    /// [`Error::Nats`] if the connection is closed.
    pub async fn subscribe(&self, subject: String) -> Result<Subscriber, Error> {
        let fail = |error: String| Error::Nats(format!("cannot subscribe: {error}"));
        let subscriber = self.client.subscribe(subject).await;
        let subscriber = subscriber.map_err(|error| fail(error.to_string()))?;
        // What is published after this was subscribed before.
        self.client.flush().await.map_err(|error| fail(error.to_string()))?;
        Ok(subscriber)
    }

    /// Whether it is connected.
    pub fn is_up(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// How long it has not been connected; `None` if it is.
    pub fn is_lost_for(&mut self) -> Option<Duration> {
        self.lost = match self.is_up() {
            true => None,
            false => self.lost.or_else(|| Some(Instant::now())),
        };
        self.lost.map(|at| at.elapsed())
    }

    /// Waits for the next change of the connection.
    pub async fn change(&mut self) -> Change {
        loop {
            let Some(event) = self.events.recv().await else {
                return std::future::pending().await;
            };
            match event {
                Event::Connected => return Change::Back,
                Event::Disconnected => return Change::Lost,
                Event::ServerError(error) => return Change::Error(error.to_string()),
                Event::ClientError(error) => return Change::Error(error.to_string()),
                _ => {}
            }
        }
    }

    /// Sends bytes, unless it is not connected.
    pub async fn publish(&self, subject: &Subject, bytes: Vec<u8>) {
        if self.is_up() {
            // An error means that the client has ended, which is noticed by the silence.
            // A broker that takes nothing must not keep the caller: what is lost is sent again.
            let publish = self.client.publish(subject.clone(), Bytes::from(bytes));
            let _ = timeout(FLUSHED_WITHIN, publish).await;
        }
    }

    /// Waits until all was written to the broker, for at most a second.
    pub async fn flush(&self) {
        if self.is_up() {
            let _ = timeout(FLUSHED_WITHIN, self.client.flush()).await;
        }
    }
}

/// What to do about an error of a connection, as the end of a sentence.
fn advice(error: &str) -> &'static str {
    const ADVICE: [(&str, &str); 4] = [
        (
            "authorization violation",
            ": the broker does not know this key; are NAME.nk and nats.conf of the same `regatta fleet init`?",
        ),
        // What a broker without TLS sends in answer to a handshake is none (rustls::InvalidMessage).
        ("InvalidContentType", ": the broker speaks no TLS, but NAME.toml has a `ca`"),
        ("timed out", "; is it a NATS server?"),
        ("Connection refused", "; is nats-server running there?"),
    ];
    let found = ADVICE.iter().find(|(part, _)| error.contains(part));
    found.map_or("", |(_, advice)| advice)
}

/// One end of a session: what it writes and reads, and where to.
pub(super) struct End {
    pub stream: Stream,
    /// Where the session is opened and closed.
    all: Subject,
    /// Where segments go, once that is known.
    one: Option<Subject>,
}

impl End {
    /// The agent's end, which sends to this subject.
    pub fn of_agent(subject: String) -> End {
        let all = Subject::from(subject);
        End { stream: Stream::new(SEGMENT), one: Some(all.clone()), all }
    }

    /// The leader's end, which sends to this subject. It sends no segments until it knows who takes them.
    pub fn of_leader(subject: String) -> End {
        End { stream: Stream::new(SEGMENT), all: subject.into(), one: None }
    }

    /// The process with this word has answered, and takes the segments.
    pub fn found(&mut self, word: &str) {
        self.one = Some(format!("{}.{word}", self.all).into());
    }

    /// Sends the segments that may be sent now.
    pub async fn send(&mut self, broker: &Broker) {
        let Some(one) = &self.one else { return };
        while broker.is_up()
            && let Some(segment) = self.stream.segment(now_ns())
        {
            broker.publish(one, Packet::Segment(segment).encode()).await;
        }
    }

    /// Opens the session.
    pub async fn open(&self, broker: &Broker) {
        broker.publish(&self.all, Packet::Open.encode()).await;
    }

    /// Refuses a session, without waiting until that is written.
    pub async fn refuse(&self, broker: &Broker, because: &str) {
        broker.publish(&self.all, Packet::Close(because.to_owned()).encode()).await;
    }

    /// Ends the session.
    pub async fn close(&self, broker: &Broker, because: &str) {
        self.refuse(broker, because).await;
        broker.flush().await;
    }

    /// How long to wait for something to happen, at most this long. While the broker is away nothing can be sent, and
    /// what is overdue then would leave no wait at all.
    pub fn wait(&self, broker: &Broker, most: Duration) -> Duration {
        let due = self.stream.due_ns().filter(|_| broker.is_up());
        due.map_or(most, |due| Duration::from_nanos(due.saturating_sub(now_ns())).min(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::{Read, Write},
        net::{SocketAddr, TcpListener},
        thread,
    };

    /// The error of a connection to this address, without the address, with a CA or without one.
    fn error(address: SocketAddr, tls: bool) -> String {
        let folder = tempfile::tempdir().unwrap();
        // A name that is not known to be this machine has TLS.
        let host = if tls { "LOCALHOST" } else { "127.0.0.1" };
        let broker = format!("{host}:{}", address.port());
        super::super::init(folder.path(), &broker, &["gen1".to_owned()]).unwrap();
        let config = Config::of_agent(&folder.path().join("gen1.toml")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let error = runtime.block_on(Broker::connect(&config)).err().unwrap().to_string();
        error.strip_prefix(&format!("cannot connect to the broker {broker}: ")).unwrap().to_owned()
    }

    /// A server that says this to each client, and then reads.
    fn server(says: &'static [u8], then: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                stream.write_all(says).unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(then);
                thread::spawn(move || stream.read_to_end(&mut Vec::new()));
            }
        });
        address
    }

    #[test]
    fn a_broker_that_is_not_there_is_named_once_with_what_to_do() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = error(free, false);
        assert!(error.ends_with("; is nats-server running there?"), "{error}");
        assert_eq!(error.matches("Connection refused").count(), 1, "{error}");
    }

    #[test]
    fn a_server_that_says_nothing_may_be_no_broker() {
        let error = error(server(b"", b""), false);
        assert!(error.ends_with("timed out; is it a NATS server?"), "{error}");
    }

    #[test]
    fn a_broker_without_tls_is_named() {
        let info =
            b"INFO {\"server_id\":\"x\",\"server_name\":\"x\",\"version\":\"2.9.0\",\"proto\":1,\
            \"host\":\"x\",\"port\":1,\"headers\":true,\"max_payload\":1048576}\r\n";
        let error = error(server(info, b"-ERR 'Unknown Protocol Operation'\r\n"), true);
        let expected = ": the broker speaks no TLS, but NAME.toml has a `ca`";
        assert!(error.ends_with(expected), "{error}");
    }

    #[test]
    fn a_key_that_the_broker_does_not_know_is_of_another_fleet() {
        let advice = advice("authorization violation: nats: authorization violation");
        assert!(advice.ends_with("of the same `regatta fleet init`?"), "{advice}");
        assert_eq!(super::advice("DNS error"), "");
    }
}
