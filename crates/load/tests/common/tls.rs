//! TLS servers to load, with certificates made for each test.

use super::{Server, double};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use regatta_load::{Roots, Tls};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer},
    version,
};
use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};
use tempfile::NamedTempFile;

/// A server's end of one connection.
pub type Sealed = StreamOwned<ServerConnection, TcpStream>;

/// An authority of the test's own, and its certificate in a file.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    file: NamedTempFile,
}

/// What a server shows.
pub struct Shown {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    pub certificate_pem: String,
    pub key_pem: String,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        // Two authorities are two issuers by their names too.
        let key = KeyPair::generate().unwrap();
        let name = format!("authority {:02x?}", &key.public_key_raw()[..8]);
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, key).unwrap();
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(issuer.pem().as_bytes()).unwrap();
        Authority { issuer, file }
    }

    /// A certificate for these names, valid until the end of this year.
    pub fn certifies(&self, names: &[&str], until: i32) -> Shown {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(2_000, 1, 1);
        params.not_after = date_time_ymd(until, 12, 31);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Shown {
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        }
    }

    /// What the load is told: this authority alone is believed.
    pub fn believed(&self, host: &str) -> Tls {
        Tls::new(host, &Roots::File(self.file.path().to_owned())).unwrap()
    }
}

impl Shown {
    pub fn config(self, versions: &[&'static SupportedProtocolVersion]) -> Arc<ServerConfig> {
        let config = ServerConfig::builder_with_provider(ring::default_provider().into())
            .with_protocol_versions(versions)
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(self.chain, self.key);
        Arc::new(config.unwrap())
    }
}

/// Both versions.
pub const VERSIONS: &[&SupportedProtocolVersion] = &[&version::TLS12, &version::TLS13];

/// Each connection is handed to `serve`.
pub fn server(
    config: Arc<ServerConfig>,
    serve: impl Fn(Sealed, &AtomicU64) + Send + Sync + 'static,
) -> Server {
    Server::start(move |stream, requests| {
        let connection = ServerConnection::new(config.clone()).unwrap();
        serve(StreamOwned::new(connection, stream), requests);
    })
}

/// A right server for `double`.
pub fn double_server(config: Arc<ServerConfig>) -> Server {
    server(config, |sealed, requests| {
        let mut reader = BufReader::with_capacity(1 << 16, sealed);
        answer(&mut reader, requests, u64::MAX);
    })
}

/// Answers so many lines, those that are buffered with one write.
pub fn answer(reader: &mut BufReader<Sealed>, requests: &AtomicU64, most: u64) {
    let (mut line, mut replies) = (String::new(), String::new());
    for _ in 0..most {
        line.clear();
        match reader.read_line(&mut line) {
            Ok(n) if n > 0 && line.ends_with('\n') => {}
            _ => return,
        }
        requests.fetch_add(1, SeqCst);
        replies.push_str(&double(line.trim_end()));
        if !reader.buffer().contains(&b'\n') {
            if reader.get_mut().write_all(replies.as_bytes()).is_err() {
                return;
            }
            replies.clear();
        }
    }
}
