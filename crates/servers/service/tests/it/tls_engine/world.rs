//! A driver and its sockets, in which everything happens in random pieces.

use super::{peer::Peer, relay::Relay};
use regatta_engine::{Conn, Core, Limits, Next, Now, simulator::Random};
use regatta_service::tls_engine::{Servers, Tls, TlsEngine};
use rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection,
    SupportedProtocolVersion,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
    server::WebPkiClientVerifier,
    version::TLS13,
};
use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// The most bytes that may be encrypted and not written: those of one chunk, and a handshake.
const MOST_SEALED: usize = 64 * 1024 + 8 * 1024;

/// A certificate and its key; it is its own CA.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Identity {
    pub fn new() -> Identity {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        Identity { certificate: made.cert.der().clone(), key: made.signing_key.serialize_der() }
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::try_from(self.key.clone()).unwrap()
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        roots
    }

    /// A server with this identity. `requires`: its clients need a certificate.
    pub fn server(&self, requires: bool) -> Arc<ServerConfig> {
        let builder = ServerConfig::builder();
        let builder = match requires {
            true => {
                let verifier = WebPkiClientVerifier::builder(Arc::new(self.roots())).build();
                builder.with_client_cert_verifier(verifier.unwrap())
            }
            false => builder.with_no_client_auth(),
        };
        let chain = vec![self.certificate.clone()];
        Arc::new(builder.with_single_cert(chain, self.key()).unwrap())
    }

    /// A client that trusts this identity.
    pub fn client(&self, version: &'static SupportedProtocolVersion) -> Arc<ClientConfig> {
        let builder = ClientConfig::builder_with_protocol_versions(&[version]);
        Arc::new(builder.with_root_certificates(self.roots()).with_no_client_auth())
    }
}

/// What TLS there is.
#[derive(Clone)]
pub struct Configs {
    /// Of the engine, for clients.
    pub clients: Option<Arc<ServerConfig>>,
    /// Of the engine, for servers.
    pub servers: Option<Arc<ClientConfig>>,
    /// Of the clients.
    pub client: Arc<ClientConfig>,
    /// Of the servers.
    pub server: Arc<ServerConfig>,
    /// Of the engine.
    pub alarm_after: Option<Duration>,
    pub evicts: bool,
}

impl Configs {
    pub fn new(identity: &Identity) -> Configs {
        let (client, server) = (identity.client(&TLS13), identity.server(false));
        Configs {
            clients: Some(Arc::clone(&server)),
            servers: Some(Arc::clone(&client)),
            client,
            server,
            alarm_after: None,
            evicts: false,
        }
    }
}

pub struct World {
    pub core: Core<TlsEngine<Relay>>,
    pub random: Random,
    pub peers: Vec<Peer>,
    configs: Configs,
    /// The driver takes output, and reports later that it is written.
    completes: bool,
    pub now: Now,
    /// Failures that were reported.
    pub reports: Arc<Mutex<Vec<String>>>,
    /// Servers do not answer in the handshake.
    pub are_silent: bool,
}

pub fn name() -> ServerName<'static> {
    ServerName::try_from("localhost").unwrap()
}

impl World {
    pub fn new(seed: u64, configs: Configs) -> World {
        let mut random = Random::new(seed);
        let reports = Arc::new(Mutex::new(Vec::new()));
        let reported = Arc::clone(&reports);
        let clients = configs.clients.clone();
        let servers = configs.servers.clone();
        let tls = Tls {
            clients: clients.map(|config| Box::new(move || Arc::clone(&config)) as _),
            refused: None,
            servers: servers.map(|config| Servers {
                config: Box::new(move || Arc::clone(&config)),
                names: vec![name()],
                report: Box::new(move |server, failure| {
                    assert_eq!(server, 0);
                    reported.lock().unwrap().extend(failure.map(str::to_owned));
                }),
            }),
        };
        let now = Now { instant: Instant::now(), unix_s: 1_000_000_000 };
        let mut relay = Relay::default();
        relay.alarm_after = configs.alarm_after;
        relay.evicts = configs.evicts.then(Vec::new);
        let engine = TlsEngine::new(relay, Arc::new(tls), now);
        let core = Core::new(engine, Limits::default(), now);
        let completes = random.chance(500);
        let (peers, are_silent) = (Vec::new(), false);
        World { core, random, peers, configs, completes, now, reports, are_silent }
    }

    pub fn engine(&self) -> &Relay {
        self.core.engine().engine()
    }

    /// A client connects. Returns its place.
    pub fn client(&mut self) -> usize {
        let conn = self.core.accept();
        let tls = self.configs.clients.as_ref().map(|_| {
            let config = Arc::clone(&self.configs.client);
            Connection::from(ClientConnection::new(config, name()).unwrap())
        });
        self.peers.push(Peer::new(conn, false, tls));
        let place = self.peers.len() - 1;
        self.peers[place].flush();
        self.write(place);
        self.settle();
        place
    }

    /// Time passes.
    pub fn wait(&mut self, time: Duration) {
        self.now.instant += time;
        self.core.turn(self.now);
        self.core.tick(&());
        self.settle();
    }

    /// Serves what others have changed, as at the end of a turn.
    fn settle(&mut self) {
        loop {
            while let Some((conn, _)) = self.core.next_connect() {
                let tls = self.configs.servers.as_ref().map(|_| {
                    let config = Arc::clone(&self.configs.server);
                    Connection::from(ServerConnection::new(config).unwrap())
                });
                self.peers.push(Peer::new(conn, true, tls));
            }
            let Some(conn) = self.core.next_changed() else { return };
            match self.peers.iter().position(|peer| peer.conn == conn) {
                Some(place) => self.write(place),
                None => panic!("an unknown connection"),
            }
        }
    }

    /// Writes to a peer, which may read only some of it.
    fn write(&mut self, place: usize) {
        let World { core, peers, random, .. } = self;
        let peer = &mut peers[place];
        let conn = peer.conn;
        while !peer.is_gone {
            match core.next(conn, &()) {
                Next::Write { .. } => {
                    let output = core.output(conn);
                    assert!(output.len() < MOST_SEALED, "{} bytes are encrypted", output.len());
                    if self.completes {
                        peer.taken = core.take_output(conn);
                        break;
                    }
                    let some = random.magnitude(1, output.len() as u64) as usize;
                    let some = if random.chance(500) { output.len() } else { some };
                    let (read, all) = (output[..some].to_vec(), some == output.len());
                    core.wrote(conn, some);
                    receive(peer, &read, self.are_silent);
                    if !all {
                        break;
                    }
                }
                Next::ShutdownWrite => {
                    peer.is_closed = true;
                    core.shutdown_completed(conn, true);
                }
                Next::Close => {
                    peer.is_closed = true;
                    peer.is_gone = true;
                    core.closed(conn);
                }
                Next::Wait => break,
            }
        }
        core.settle(conn);
    }

    /// Lets a peer receive some of what is written to it.
    pub fn read(&mut self, place: usize) {
        let World { core, peers, random, .. } = self;
        let peer = &mut peers[place];
        if !peer.taken.is_empty() {
            let some = random.magnitude(1, peer.taken.len() as u64) as usize;
            let read: Vec<u8> = peer.taken.drain(..some).collect();
            receive(peer, &read, self.are_silent);
            let memory = peer.taken.is_empty().then(Vec::new);
            core.completed(peer.conn, some, memory);
        }
        if peer.taken.is_empty() {
            self.write(place);
        }
        self.settle();
    }

    /// Delivers some of what a peer has sent, or that it has ended its side.
    pub fn deliver(&mut self, place: usize, most: usize) {
        let World { core, peers, .. } = self;
        let peer = &mut peers[place];
        if peer.is_gone {
            return;
        }
        if !peer.is_open {
            peer.is_open = true;
            core.connected(peer.conn);
        } else if !peer.sent.is_empty() && (core.wants_read(peer.conn) || peer.is_closed) {
            let rest = peer.sent.split_off(most.min(peer.sent.len()));
            let mut piece = std::mem::replace(&mut peer.sent, rest);
            core.received(peer.conn, &mut piece);
        } else if peer.sent.is_empty() && (peer.has_ended || peer.is_closed) {
            core.ended(peer.conn);
        }
        if self.peers[place].taken.is_empty() {
            self.write(place);
        }
        self.settle();
    }

    /// One random event.
    pub fn step(&mut self) {
        let place = self.random.below(self.peers.len());
        if self.random.chance(500) {
            self.read(place);
        } else {
            let most = self.random.magnitude(1, 64 * 1024) as usize;
            self.deliver(place, most);
        }
    }

    pub fn is_gone(&self, conn: Conn) -> bool {
        !self.core.has(conn)
    }
}

/// A silent peer receives, but does not answer.
fn receive(peer: &mut Peer, bytes: &[u8], is_silent: bool) {
    if !(is_silent && peer.is_server) {
        peer.receive(bytes);
    }
}
