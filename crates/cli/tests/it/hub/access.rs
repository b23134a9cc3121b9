//! Access control: which clients may open a WebSocket.

use crate::support::{
    Server,
    hub::{Patient, member},
    refused, regatta,
};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read, Write},
    path::Path,
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};
use tempfile::TempDir;
use tungstenite::client::{IntoClientRequest, client};

/// Returns the status of the reply to a request with this query and these header fields.
fn status(server: &Server, query: &str, fields: &[(&'static str, &str)]) -> u16 {
    let url = format!("ws://{}/ws{query}", server.addr);
    let mut request = url.into_client_request().unwrap();
    for (name, value) in fields {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    match client(request, Patient(server.connect())) {
        Ok((_, reply)) => reply.status().as_u16(),
        Err(refused) => {
            let printed = refused.to_string();
            let refused =
                [401, 403, 503].into_iter().find(|code| printed.contains(&code.to_string()));
            refused.unwrap_or_else(|| panic!("{printed}"))
        }
    }
}

#[test]
fn pages_of_other_origins_are_refused_but_clients_without_an_origin_are_not() {
    let server = Server::of("hub", "epoll", &["--origin", "https://example.com"]);
    assert_eq!(status(&server, "", &[]), 101);
    assert_eq!(status(&server, "", &[("Origin", "https://example.com")]), 101);
    assert_eq!(status(&server, "", &[("Origin", "https://example.org")]), 403);
    assert_eq!(status(&server, "", &[("Origin", "null")]), 403);
}

#[test]
fn origins_are_compared_without_case_and_default_port() {
    let options = ["--origin", "HTTPS://Example.com:443", "--origin", "http://localhost:3000"];
    let server = Server::of("hub", "epoll", &options);
    assert_eq!(status(&server, "", &[("Origin", "https://example.com")]), 101);
    assert_eq!(status(&server, "", &[("Origin", "http://localhost:3000")]), 101);
    assert_eq!(status(&server, "", &[("Origin", "http://example.com")]), 403);
    assert_eq!(status(&server, "", &[("Origin", "http://localhost")]), 403);
}

#[test]
fn a_token_is_accepted_in_the_header_field_and_in_the_query() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("token");
    fs::write(&path, "s3cret-word\n").unwrap();
    let server = Server::of("hub", "async", &["--token-file", path.to_str().unwrap()]);
    assert_eq!(status(&server, "", &[("Authorization", "Bearer s3cret-word")]), 101);
    assert_eq!(status(&server, "", &[("Authorization", "bearer s3cret-word")]), 101);
    assert_eq!(status(&server, "?a=b&access_token=s3cret-word", &[]), 101);
    assert_eq!(status(&server, "", &[]), 401);
    for wrong in ["Bearer s3cret-wore", "Bearer s3cret-word-", "Bearer ", "Basic s3cret-word"] {
        assert_eq!(status(&server, "", &[("Authorization", wrong)]), 401, "{wrong}");
    }
    assert_eq!(status(&server, "?access_token=s3cret", &[]), 401);
}

fn claims(valid_s: i64, from_s: i64) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    json!({"sub": "somebody", "aud": "anything", "exp": now + valid_s, "nbf": now + from_s})
}

/// A token with a valid signature is accepted. A token that is expired, not yet valid, altered, or
/// signed with another key or algorithm is not.
fn checks_tokens(algorithm: Algorithm, key: &Path, private: &EncodingKey, other: &EncodingKey) {
    let name = format!("{algorithm:?}");
    let options = ["--jwt-key", key.to_str().unwrap(), "--jwt-algorithm", &name];
    let server = Server::of("hub", "epoll", &options);
    let sign =
        |claims: &Value, key: &EncodingKey| encode(&Header::new(algorithm), claims, key).unwrap();
    let enters =
        |token: &str| status(&server, "", &[("Authorization", &format!("Bearer {token}"))]);
    let good = sign(&claims(600, -600), private);
    assert_eq!(enters(&good), 101, "{name}");
    assert_eq!(enters(&sign(&json!({}), private)), 101, "{name}: no times");
    assert_eq!(enters(&sign(&claims(-600, -900), private)), 401, "{name}: expired");
    assert_eq!(enters(&sign(&claims(900, 600), private)), 401, "{name}: not yet");
    assert_eq!(enters(&sign(&claims(600, -600), other)), 401, "{name}: another key");
    let secret = EncodingKey::from_secret(&fs::read(key).unwrap());
    if algorithm != Algorithm::HS256 {
        // The public key as a secret (RFC 8725, 2.1).
        let forged = encode(&Header::new(Algorithm::HS256), &claims(600, -600), &secret).unwrap();
        assert_eq!(enters(&forged), 401, "{name}: another algorithm");
    }
    let (head, signature) = good.rsplit_once('.').unwrap();
    let unsigned = format!("{}.{}.", "eyJhbGciOiJub25lIn0", head.split_once('.').unwrap().1);
    assert_eq!(enters(&unsigned), 401, "{name}: alg none");
    assert_eq!(enters(&format!("{head}x.{signature}")), 401, "{name}: altered");
    assert_eq!(enters("nonsense"), 401, "{name}");
    assert_eq!(status(&server, "", &[]), 401, "{name}");
}

#[test]
fn tokens_signed_with_the_hs256_secret_are_accepted() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("secret");
    fs::write(&path, [7; 32]).unwrap();
    let [own, other] = [[7; 32], [8; 32]].map(|secret| EncodingKey::from_secret(&secret));
    checks_tokens(Algorithm::HS256, &path, &own, &other);
}

/// `echo secret > key` makes the same key as `printf %s secret > key`.
#[test]
fn a_trailing_newline_in_the_file_is_not_part_of_the_secret() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("secret");
    let secret = "a secret of thirty-two bytes or more";
    for (end, of_secret) in [("\n", ""), ("\r\n", ""), ("\n\n", "\n")] {
        fs::write(&path, format!("{secret}{end}")).unwrap();
        let options = ["--jwt-key", path.to_str().unwrap(), "--jwt-algorithm", "HS256"];
        let server = Server::of("hub", "epoll", &options);
        let key = EncodingKey::from_secret(format!("{secret}{of_secret}").as_bytes());
        let token = encode(&Header::default(), &claims(600, -600), &key).unwrap();
        assert_eq!(status(&server, &format!("?access_token={token}"), &[]), 101, "{end:?}");
    }
    // The newline does not count towards the minimum length either.
    fs::write(&path, format!("{}\n", "x".repeat(31))).unwrap();
    let printed = refused(regatta!("serve hub --jwt-algorithm HS256 --jwt-key").arg(&path));
    assert!(printed.contains("32 bytes"), "{printed}");
}

/// The reply says whether the token is missing or invalid.
#[test]
fn a_missing_token_and_an_invalid_one_get_different_replies() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("token");
    fs::write(&path, "s3cret-word-of-more-than-thirty-two-bytes\n").unwrap();
    let path = path.to_str().unwrap();
    for options in [&["--token-file", path][..], &["--jwt-key", path, "--jwt-algorithm", "HS256"]] {
        let server = Server::of("hub", "epoll", options);
        let reply = |query: &str| {
            let mut stream = server.connect();
            let request = format!(
                "GET /ws{query} HTTP/1.1\r\nHost: x\r\nConnection: close, Upgrade\r\n\
                 Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                 Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            );
            stream.write_all(request.as_bytes()).unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).unwrap();
            reply
        };
        let none = reply("");
        assert!(none.starts_with("HTTP/1.1 401 "), "{none}");
        assert!(none.contains("WWW-Authenticate: Bearer\r\n"), "{none}");
        assert!(none.contains("A token is needed"), "{none}");
        let wrong = reply("?access_token=wrong");
        assert!(wrong.starts_with("HTTP/1.1 401 "), "{wrong}");
        assert!(wrong.contains("WWW-Authenticate: Bearer error=\"invalid_token\"\r\n"), "{wrong}");
        let reason = if options.len() == 2 { "token_wrong" } else { "token_malformed" };
        assert!(wrong.contains(&format!("\r\n\r\n{reason}: ")), "{wrong}");
        assert!(none.contains("\r\n\r\nno_token: "), "{none}");
    }
}

#[test]
#[cfg_attr(not(has_openssl), ignore = "openssl is not installed")]
fn tokens_that_match_an_rs256_or_eddsa_public_key_are_accepted() {
    let folder = TempDir::new().unwrap();
    for (algorithm, asked) in [
        (Algorithm::RS256, &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"][..]),
        (Algorithm::EdDSA, &["-algorithm", "ed25519"]),
    ] {
        let [own, other] = ["own", "other"].map(|name| {
            let path = folder.path().join(name);
            let mut command = Command::new("openssl");
            command.arg("genpkey").args(asked).arg("-out").arg(&path);
            let made = command.output().unwrap();
            assert!(made.status.success(), "{made:?}");
            path
        });
        let public = folder.path().join("public");
        let mut command = Command::new("openssl");
        command.args(["pkey", "-pubout", "-in"]).arg(&own).arg("-out").arg(&public);
        assert!(command.status().unwrap().success());
        let [own, other] = [own, other].map(|path| {
            let pem = fs::read(path).unwrap();
            match algorithm {
                Algorithm::RS256 => EncodingKey::from_rsa_pem(&pem).unwrap(),
                _ => EncodingKey::from_ed_pem(&pem).unwrap(),
            }
        });
        checks_tokens(algorithm, &public, &own, &other);
    }
}

/// Options that are invalid, or could never admit a client, are refused at the start. The message says
/// what is expected.
#[test]
fn invalid_key_files_and_origins_are_refused_at_the_start() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("nonsense");
    fs::write(&path, "no key\nat all").unwrap();
    let path = path.to_str().unwrap();
    for (options, expected) in [
        (&["--jwt-key", path, "--jwt-algorithm", "RS256"][..], "PEM"),
        (&["--jwt-key", path, "--jwt-algorithm", "EdDSA"], "PEM"),
        (&["--jwt-key", path, "--jwt-algorithm", "HS256"], "32 bytes"),
        (&["--token-file", path], "one word"),
        (&["--token-file", "/nowhere/token"], "cannot read /nowhere/token"),
        (&["--api-key-file", path], "one word"),
        (&["--jwt-issuer", "me"], "--jwks or --jwt-key"),
        (&["--token-file", path, "--jwt-audience", "me"], "--jwks or --jwt-key"),
        (&["--jwt-key", path], "--jwt-algorithm"),
        (&["--jwt-key", path, "--jwt-algorithm", "none"], "HS256, RS256, EdDSA"),
        (&["--slow", "wait"], "close, skip, conflate"),
        (&["--origin", "example.com"], "write https://example.com"),
        (&["--origin", "https://example.com/"], "write https://example.com"),
        (&["--origin", "https://example.com/path"], "write https://example.com"),
        (&["--origin", "*"], "e.g. https://example.com"),
    ] {
        let printed = refused(regatta!("serve hub").args(options));
        assert!(printed.contains(expected), "{options:?}: {printed}");
    }
}

#[test]
fn options_that_contradict_each_other_or_have_no_effect_are_refused() {
    for (options, expected) in [
        (&["hello", "--slow", "skip"][..], "serve hub"),
        (&["double", "--by-hand", "--slow", "skip"], "serve hub"),
        (&["hub", "--by-hand", "--slow", "skip"], "leave --by-hand out"),
        (&["hub", "--file", "x"], "--file applies only to `serve hash`"),
        (&["hub", "--offload", "2"], "leave --offload out"),
        (&["hub", "--token-file", "x", "--jwt-key", "y"], "cannot be used with"),
        (&["hub", "--ping-after", "60s"], "--idle-timeout 1m"),
        (&["hub", "--ping-after", "3s", "--idle-timeout", "2s"], "--ping-after 0s"),
    ] {
        let printed = refused(regatta!("serve").args(options));
        assert!(printed.contains(expected), "{options:?}: {printed}");
    }
    let _without_pings = Server::of("hub", "epoll", &["--ping-after", "0s"]);
}

#[test]
fn a_hub_without_access_options_accepts_every_client() {
    let server = Server::of("hub", "green", &[]);
    drop(member(&server));
    assert_eq!(status(&server, "?access_token=x", &[("Authorization", "Bearer y")]), 101);
}
