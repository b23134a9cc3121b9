//! The ways in which a TLS connection ends, and the certificates that are trusted.

use crate::lies::{
    load,
    server::{Server, double, reset},
};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};
use rustls::{ServerConfig, ServerConnection, StreamOwned, crypto::ring, pki_types::PrivateKeyDer};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpStream},
    sync::Arc,
};

type Sealed = StreamOwned<ServerConnection, TcpStream>;
/// Ends the connection instead of answering a request.
type End = fn(&mut Sealed);

/// A certificate like one of `openssl req -x509`: self-signed, a certificate authority, with its host
/// name only in the subject.
struct Own {
    config: Arc<ServerConfig>,
    file: tempfile::NamedTempFile,
}

impl Own {
    fn new() -> Own {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "localhost");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(made.pem().as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![made.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            );
        Own { config: Arc::new(config.unwrap()), file }
    }

    fn path(&self) -> &str {
        self.file.path().to_str().unwrap()
    }
}

/// Answers `most` GETs on each connection, and calls `end` for the next one.
fn server(config: Arc<ServerConfig>, most: u32, end: End) -> Server {
    Server::start(move |_, stream| {
        let connection = ServerConnection::new(config.clone()).unwrap();
        let mut reader = BufReader::new(StreamOwned::new(connection, stream));
        for i in 0.. {
            if crate::lies::server::read_head(&mut reader).is_none() {
                return;
            }
            let sealed = reader.get_mut();
            if i == most {
                return end(sealed);
            }
            let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
            if sealed.write_all(reply).and_then(|()| sealed.flush()).is_err() {
                return;
            }
        }
    })
}

/// Reads until the client closes.
fn await_end(stream: &mut TcpStream) {
    while matches!(stream.read(&mut [0; 1024]), Ok(1..)) {}
}

fn url(server: &Server) -> String {
    format!("https://localhost:{}/", server.addr.port())
}

#[test]
fn each_way_to_end_tls_has_its_own_message() {
    let ends: [(End, &str); 4] = [
        (
            |sealed| {
                sealed.conn.send_close_notify();
                let _ = sealed.flush();
                await_end(&mut sealed.sock);
            },
            "the server ended TLS with close_notify",
        ),
        (
            |sealed| {
                let _ = sealed.sock.shutdown(Shutdown::Write);
                await_end(&mut sealed.sock);
            },
            "the server closed the connection without the close_notify that ends TLS",
        ),
        (|sealed| reset(&sealed.sock), "Connection reset by peer"),
        (
            |sealed| {
                let _ = sealed.sock.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
                await_end(&mut sealed.sock);
            },
            "does not seem to speak it",
        ),
    ];
    let own = Own::new();
    for (end, said) in ends {
        let server = server(own.config.clone(), 20, end);
        let more = ["-n", "63", "-c", "1", "--insecure"];
        let ended = load(&url(&server), &more).with_status(1);
        assert!(ended.line("requests").starts_with("60 in "), "{}", ended.stdout);
        let cause = ended.line("cause");
        assert!(cause.starts_with("3 × ") && cause.contains(said), "{cause}");
        let json = load(&url(&server), &[&more[..], &["--json", "-"]].concat()).json();
        let causes = json["causes"].as_object().unwrap();
        assert_eq!(causes.len(), 1, "{json}");
        assert!(causes.iter().all(|(cause, n)| cause.contains(said) && *n == 3), "{json}");
    }
}

#[test]
fn an_unfinished_handshake_is_reported_in_a_counted_run() {
    let server = Server::start(|_, mut stream| {
        let _ = stream.read(&mut [0; 64]);
        let _ = stream.shutdown(Shutdown::Write);
        await_end(&mut stream);
    });
    let ended = load(&url(&server), &["-n", "10", "-c", "2", "--insecure"]).with_status(2);
    assert!(ended.stderr.contains("during the TLS handshake"), "{}", ended.stderr);
}

#[test]
fn a_self_signed_certificate_given_to_cacert_is_pinned() {
    let (own, other) = (Own::new(), Own::new());
    let server = server(own.config.clone(), 1_000, |_| ());
    let more = ["-n", "20", "-c", "2", "--cacert"];
    let ended = load(&url(&server), &[&more[..], &[own.path()]].concat()).with_status(0);
    assert!(ended.line("TLS").ends_with("certificate checked"), "{}", ended.stdout);
    let ended = load(&url(&server), &[&more[..], &[other.path()]].concat()).with_status(2);
    assert!(ended.stderr.contains("certificate"), "{}", ended.stderr);
}

#[test]
fn a_close_without_tls_is_reported() {
    let server = Server::start(|_, stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        for _ in 0..20 {
            line.clear();
            if !matches!(reader.read_line(&mut line), Ok(1..)) {
                return;
            }
            let _ = (&stream).write_all(double(line.trim_end()).as_bytes());
        }
        let _ = reader.read_line(&mut line);
    });
    let ended = load(&server.line_url(), &["-n", "63", "-c", "1"]).with_status(1);
    assert_eq!(ended.line("cause"), "3 × the server closed the connection");
}
