//! Questions to servers that know where the broker is: Sentinels, or the nodes of a cluster.

use super::{login::Login, url::Server};
use regatta_host::{UntilDeadline, time_left};
use regatta_proto::resp::{Replies, write_command};
use regatta_serve::HubBrokerTls;
use regatta_service::tls_engine::failure_words;
use rustls::ClientConnection;
use std::{
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream, ToSocketAddrs},
    time::{Duration, Instant},
};

/// How long a connection to an address may take, and all of an answer.
const CONNECT: Duration = Duration::from_secs(1);
pub const ANSWER: Duration = Duration::from_secs(2);

/// How servers are asked.
pub struct Asker {
    pub login: Login,
    pub tls: Option<HubBrokerTls>,
    /// The longest answer, in bytes.
    pub longest: usize,
    /// The options for the login, without `-user` and `-password-file`, for messages.
    pub options: &'static str,
}

impl Asker {
    /// Connects to an address. `until`: when the answer must be there.
    pub fn connect(address: &SocketAddr, until: Instant) -> Result<TcpStream, String> {
        let left = time_left(until).map_err(|error| failed(&error))?;
        TcpStream::connect_timeout(address, left.min(CONNECT)).map_err(|error| error.to_string())
    }

    /// Sends commands, and returns a reply to each.
    ///
    /// # Errors
    /// Says why there are none, for people.
    pub fn ask<'a, C>(
        &self,
        stream: &TcpStream,
        deadline: Instant,
        commands: &[C],
    ) -> Result<Vec<Vec<u8>>, String>
    where
        C: AsRef<[&'a [u8]]>,
    {
        let mut request = Vec::new();
        let is_authenticated = self.login.write(&mut request);
        for command in commands {
            write_command(command.as_ref().iter().copied(), &mut request);
        }
        let count = commands.len() + usize::from(is_authenticated);
        let mut stream = UntilDeadline { stream, deadline };
        let mut replies = match &self.tls {
            None => exchange(&mut stream, &request, count, self.longest),
            Some(HubBrokerTls { config, name }) => {
                let tls = ClientConnection::new(config(), name.clone());
                let mut tls = tls.map_err(|error| failure_words(&error, true))?;
                let mut stream = rustls::Stream::new(&mut tls, &mut stream);
                exchange(&mut stream, &request, count, self.longest)
            }
        }?;
        if is_authenticated {
            let login = replies.remove(0);
            if !login.starts_with(b"+") {
                return Err(self.refused(&login));
            }
        }
        Ok(replies)
    }

    /// Why a password is refused. Only texts that do not repeat it are shown.
    fn refused(&self, reply: &[u8]) -> String {
        let text = String::from_utf8_lossy(reply);
        let options = self.options;
        match text.split([' ', '\r']).next().unwrap_or_default() {
            "-WRONGPASS" => format!("it refuses the password ({options}-password-file)"),
            "-ERR" if text.starts_with("-ERR AUTH ") => {
                format!("it has no password; leave out {options}-password-file")
            }
            "-NOPERM" => format!("it permits the user nothing ({options}-user)"),
            _ => "it does not accept a password: expected Redis or Valkey, or their Sentinel"
                .to_owned(),
        }
    }
}

/// The addresses of a server; none if its name cannot be resolved.
pub fn look_up(Server { host, port }: &Server) -> Vec<SocketAddr> {
    (host.as_str(), *port).to_socket_addrs().into_iter().flatten().collect()
}

/// Sends requests, and reads this many replies.
fn exchange(
    stream: &mut (impl Read + Write),
    request: &[u8],
    count: usize,
    longest: usize,
) -> Result<Vec<Vec<u8>>, String> {
    stream.write_all(request).map_err(|error| failed(&error))?;
    let (mut input, mut buffer) = (Vec::new(), [0; 1024]);
    let (mut ends, mut replies) = (vec![0], Replies::default());
    let mut scanned = 0;
    while ends.len() <= count {
        let found = replies.next(&input[scanned..]).map_err(|why| format!("not RESP: {why}"))?;
        scanned += found.bytes;
        if found.whole {
            ends.push(scanned);
            continue;
        }
        if input.len() > longest {
            return Err("its answer is too long".to_owned());
        }
        match stream.read(&mut buffer) {
            Ok(0) => return Err("it has closed the connection".to_owned()),
            Ok(read) => input.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(&error)),
        }
    }
    Ok(ends.windows(2).map(|ends| input[ends[0]..ends[1]].to_vec()).collect())
}

/// Why nothing can be read or written, for people.
fn failed(error: &io::Error) -> String {
    let tls = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    match (error.kind(), tls) {
        (_, Some(error)) => failure_words(error, true),
        (ErrorKind::WouldBlock | ErrorKind::TimedOut, None) => {
            "it did not answer in time".to_owned()
        }
        (ErrorKind::UnexpectedEof, None) => "it has closed the connection".to_owned(),
        (_, None) => error.to_string(),
    }
}
