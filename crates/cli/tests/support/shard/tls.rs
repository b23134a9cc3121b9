//! Certificates, nodes and clients with TLS.

use super::nodes::Node;
use crate::support::{DEADLINE, Server, hub::Patient};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use regatta_proto::resp::{Replies, write_command};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use std::{
    fs,
    io::{self, ErrorKind, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    sync::Arc,
};
use tempfile::TempDir;

/// A CA whose certificate is in a file.
pub struct Ca {
    issuer: Issuer<'static, KeyPair>,
    folder: TempDir,
}

impl Ca {
    pub fn new(name: &str) -> Ca {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let folder = TempDir::new().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        fs::write(folder.path().join("ca"), certificate.pem()).unwrap();
        Ca { issuer: Issuer::new(params, key), folder }
    }

    /// The file with its certificate.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("ca")
    }

    /// Signs a certificate for localhost and 127.0.0.1. Its files are `NAME` and `NAME.key`.
    pub fn sign(&self, name: &str) -> Signed {
        self.sign_until(name, 2100)
    }

    /// The same, for a certificate that is valid until this year.
    pub fn sign_until(&self, name: &str, year: i32) -> Signed {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let path = self.folder.path().join(name);
        let signed = Signed { key: path.with_extension("key"), certificate: path };
        fs::write(&signed.certificate, certificate.pem()).unwrap();
        fs::write(&signed.key, key.serialize_pem()).unwrap();
        signed
    }

    /// A client that trusts this CA. `own`: its certificate.
    pub fn client(&self, own: Option<&Signed>) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.file()).unwrap()).unwrap();
        let builder = ClientConfig::builder().with_root_certificates(roots);
        let Some(own) = own else { return Arc::new(builder.with_no_client_auth()) };
        let chain = vec![CertificateDer::from_pem_file(&own.certificate).unwrap()];
        let key = PrivateKeyDer::from_pem_file(&own.key).unwrap();
        Arc::new(builder.with_client_auth_cert(chain, key).unwrap())
    }

    /// Starts a node over TLS. `requires`: its clients need a certificate of this CA.
    pub fn node(&self, own: &Signed, requires: bool) -> Node {
        Node::start_tls(&self.node_options(own, requires))
    }

    pub fn node_options(&self, own: &Signed, requires: bool) -> Vec<String> {
        let ca = self.file();
        let options = [
            ["--tls-cert-file", text(&own.certificate)],
            ["--tls-key-file", text(&own.key)],
            ["--tls-ca-cert-file", text(&ca)],
            ["--tls-auth-clients", if requires { "yes" } else { "no" }],
        ];
        options.as_flattened().iter().map(ToString::to_string).collect()
    }
}

/// The files of a certificate and its key.
pub struct Signed {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Signed {
    /// The options of a server with this certificate, `--tls-cert` or `--node-tls-cert`.
    pub fn options(&self, prefix: &str) -> [String; 4] {
        let option = |name: &str, path: &Path| [format!("--{prefix}{name}"), text(path).to_owned()];
        let ([a, b], [c, d]) =
            (option("tls-cert", &self.certificate), option("tls-key", &self.key));
        [a, b, c, d]
    }
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// A client over TLS.
pub struct TlsClient {
    pub stream: StreamOwned<ClientConnection, Patient>,
    replies: Replies,
    bytes: Vec<u8>,
}

impl TlsClient {
    /// Connects; the handshake follows.
    pub fn connect(server: &Server, config: &Arc<ClientConfig>) -> TlsClient {
        TlsClient::over(server.connect(), config)
    }

    pub fn over(stream: TcpStream, config: &Arc<ClientConfig>) -> TlsClient {
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let tls = ClientConnection::new(Arc::clone(config), name).unwrap();
        let stream = StreamOwned::new(tls, Patient(stream));
        TlsClient { stream, replies: Replies::default(), bytes: Vec::new() }
    }

    pub fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Returns the next reply; `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut taken = 0;
        let mut buffer = [0; 65536];
        loop {
            let found = self.replies.next(&self.bytes[taken..]);
            let found = found.map_err(|error| io::Error::other(format!("{error:?}")))?;
            taken += found.bytes;
            if found.whole {
                return Ok(Some(self.bytes.drain(..taken).collect()));
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(None),
                Ok(read) => self.bytes.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a command and returns its reply.
    pub fn try_ask<T: AsRef<[u8]>>(&mut self, args: &[T]) -> io::Result<Vec<u8>> {
        let mut request = Vec::new();
        write_command(args.iter().map(AsRef::as_ref).collect::<Vec<&[u8]>>(), &mut request);
        self.raw(&request)?;
        self.next()?.ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }

    /// Sends a line of words as a command and returns its reply as text.
    pub fn say(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        let reply = self.try_ask(&words).unwrap_or_else(|error| panic!("{line}: {error}"));
        String::from_utf8_lossy(&reply).into_owned()
    }
}
