//! TLS servers for the tests, with certificates created for each test.

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

/// The server's side of a connection.
pub type Sealed = StreamOwned<ServerConnection, TcpStream>;

/// A CA of the test, and its certificate in a file.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    file: NamedTempFile,
}

/// The certificate and key of a server.
pub struct Shown {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    pub certificate_pem: String,
    pub key_pem: String,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        // Two CAs must also differ by the name of the issuer.
        let key = KeyPair::generate().unwrap();
        let name = format!("authority {:02x?}", &key.public_key_raw()[..8]);
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, key).unwrap();
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(issuer.pem().as_bytes()).unwrap();
        Authority { issuer, file }
    }

    /// A certificate for these names, valid until the end of the year `until`.
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

    /// The CA's own certificate as that of a server, as `openssl req -x509` creates it.
    pub fn self_signed(&self) -> Shown {
        Shown {
            chain: vec![self.issuer.der().clone()],
            key: PrivateKeyDer::try_from(self.issuer.key().serialize_der()).unwrap(),
            certificate_pem: self.issuer.pem(),
            key_pem: self.issuer.key().serialize_pem(),
        }
    }

    /// The TLS settings of a load that trusts only this CA.
    pub fn trusted(&self, host: &str) -> Tls {
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

/// Starts a server that calls `serve` with each connection.
pub fn server(
    config: Arc<ServerConfig>,
    serve: impl Fn(Sealed, &AtomicU64) + Send + Sync + 'static,
) -> Server {
    Server::start(move |stream, requests| {
        let connection = ServerConnection::new(config.clone()).unwrap();
        serve(StreamOwned::new(connection, stream), requests);
    })
}

/// A correct server for `double`.
pub fn double_server(config: Arc<ServerConfig>) -> Server {
    server(config, |sealed, requests| {
        let mut reader = BufReader::with_capacity(1 << 16, sealed);
        answer(&mut reader, requests, u64::MAX);
    })
}

/// Answers up to `most` lines, all buffered ones with one write.
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
