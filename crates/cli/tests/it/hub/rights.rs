//! What a token allows: in which rooms its member may be, whether it may send there, and until when; and the keys
//! that sign tokens.

use crate::support::{
    Server,
    hub::{self, Patient, Socket, closed, hear, metric, on_hub_models, send},
    refused, regatta, until,
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use std::{
    fs,
    path::Path,
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};
use tempfile::TempDir;
use tungstenite::{client::client, protocol::frame::coding::CloseCode};

const SECRET: [u8; 32] = [7; 32];

/// Starts a hub with a secret for tokens in a file.
fn hub(model: &str, options: &[&str]) -> (TempDir, Server) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("secret");
    fs::write(&path, SECRET).unwrap();
    let key = ["--jwt-key", path.to_str().unwrap(), "--jwt-algorithm", "HS256"];
    let server = Server::of("hub", model, &[&key, options].concat());
    (folder, server)
}

/// Opens a WebSocket with this token, or returns the message with the status of the refusal.
fn with_token(server: &Server, path: &str, token: &str) -> Result<Socket, String> {
    let url = format!("ws://{}{path}?access_token={token}", server.addr);
    let opened = client(url, Patient(server.connect()));
    opened.map(|(socket, _)| socket).map_err(|refused| refused.to_string())
}

fn enter(server: &Server, path: &str, claims: &Value) -> Result<Socket, String> {
    let key = EncodingKey::from_secret(&SECRET);
    with_token(server, path, &encode(&Header::default(), claims, &key).unwrap())
}

fn is_refused(entered: Result<Socket, String>, status: &str) -> bool {
    entered.is_err_and(|why| why.contains(status))
}

on_hub_models!(a_token_for_two_rooms_admits_to_no_third_and_sends_only_where_it_may);

fn a_token_for_two_rooms_admits_to_no_third_and_sends_only_where_it_may(model: &str) {
    let (_folder, server) = hub(model, &["--cores", "2"]);
    let claims = json!({"sub": "ann", "channels": ["own"], "caps": [
        {"channels": ["news:*"], "match": "wildcard", "allow": ["sub"]},
    ]});
    let mut own = enter(&server, "/ws/own", &claims).unwrap();
    let mut news = enter(&server, "/ws/news:1", &claims).unwrap();
    for path in ["/ws/other", "/ws", "/ws/news"] {
        assert!(is_refused(enter(&server, path, &claims), "403"), "{model}: {path}");
    }
    let broadcast = json!({"type": "broadcast", "payload": 1});
    send(&mut own, &broadcast);
    assert_eq!(hear(&mut own), broadcast, "{model}");
    assert_eq!(hear(&mut own)["listenerCount"], 1, "{model}");
    send(&mut news, &broadcast);
    let error = hear(&mut news);
    assert_eq!(error["type"], "error", "{model}: {error}");
    assert!(error["error"].as_str().unwrap().contains("does not allow"), "{model}: {error}");
    send(&mut news, &json!({"type": "echo", "payload": 2}));
    assert_eq!(hear(&mut news)["payload"], 2, "{model}: nothing was sent to the room");
}

on_hub_models!(a_member_is_disconnected_when_its_token_expires);

/// Also one whose silence is never checked.
fn a_member_is_disconnected_when_its_token_expires(model: &str) {
    let (_folder, server) = hub(model, &["--ping-after", "0s"]);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    // With the leeway of 30 s, in a second or two.
    let mut ends = enter(&server, "/ws", &json!({"exp": now - 28})).unwrap();
    let mut stays = enter(&server, "/ws", &json!({"exp": now + 600})).unwrap();
    let mut forever = enter(&server, "/ws", &json!({"exp": 1e300})).unwrap();
    assert_eq!(closed(&mut ends), Some(CloseCode::from(3005)), "{model}");
    for socket in [&mut stays, &mut forever] {
        send(socket, &json!({"type": "echo", "payload": 1}));
        assert_eq!(hear(socket)["payload"], 1, "{model}");
    }
}

#[test]
fn clients_without_the_right_token_are_counted() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("secret");
    fs::write(&path, SECRET).unwrap();
    let key = ["--jwt-key", path.to_str().unwrap(), "--jwt-algorithm", "HS256"];
    let (server, page) = hub::hub("epoll", &key);
    assert!(is_refused(enter(&server, "/ws/b", &json!({"channels": ["a"]})), "403"));
    assert!(is_refused(enter(&server, "/ws", &json!({"exp": 1})), "401"));
    assert!(is_refused(with_token(&server, "/ws", "nonsense"), "401"));
    for (because, expected) in [("other_room", 1), ("token_not_valid", 2), ("origin", 0)] {
        let name = format!("regatta_hub_denied_total{{because=\"{because}\"}}");
        assert_eq!(metric(page, &name), expected, "{because}");
    }
}

#[test]
fn the_audience_and_the_issuer_are_required_if_they_are_named() {
    let options = ["--jwt-audience", "hub", "--jwt-issuer", "me"];
    let (_folder, server) = hub("epoll", &options);
    for (claims, is_valid) in [
        (json!({"aud": "hub", "iss": "me"}), true),
        (json!({"aud": ["other", "hub"], "iss": "me"}), true),
        (json!({"aud": "other", "iss": "me"}), false),
        (json!({"aud": "hub", "iss": "you"}), false),
        (json!({"aud": "hub"}), false),
        (json!({"iss": "me"}), false),
    ] {
        let entered = enter(&server, "/ws", &claims);
        match is_valid {
            true => drop(entered.unwrap()),
            false => assert!(is_refused(entered, "401"), "{claims}"),
        }
    }
}

/// Writes a new key of Ed25519 to a file, and returns it with its public part, in base64url.
fn made(folder: &Path, name: &str) -> (EncodingKey, String) {
    let path = folder.join(name);
    let openssl = |arguments: &[&str]| {
        let ran = Command::new("openssl").args(arguments).arg(&path).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        ran.stdout
    };
    openssl(&["genpkey", "-algorithm", "ed25519", "-out"]);
    let der = openssl(&["pkey", "-pubout", "-outform", "DER", "-in"]);
    // The key is the end of its SubjectPublicKeyInfo (RFC 8410, 4).
    let public = BASE64_URL_SAFE_NO_PAD.encode(&der[der.len() - 32..]);
    (EncodingKey::from_ed_pem(&fs::read(&path).unwrap()).unwrap(), public)
}

fn key_set(keys: &[(&str, &str)]) -> String {
    let key = |(id, public): &(&str, &str)| json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": public});
    json!({"keys": keys.iter().map(key).collect::<Vec<_>>()}).to_string()
}

#[test]
#[cfg_attr(not(has_openssl), ignore = "openssl is not installed")]
fn keys_are_rotated_without_a_restart() {
    let folder = TempDir::new().unwrap();
    let (old, old_public) = made(folder.path(), "old");
    let (new, new_public) = made(folder.path(), "new");
    let path = folder.path().join("keys.json");
    fs::write(&path, key_set(&[("old", &old_public)])).unwrap();
    let server = Server::of("hub", "epoll", &["--jwks", path.to_str().unwrap()]);
    let enters = |key: &EncodingKey, id: Option<&str>| {
        let header = Header { kid: id.map(str::to_owned), ..Header::new(Algorithm::EdDSA) };
        let token = encode(&header, &json!({}), key).unwrap();
        with_token(&server, "/ws", &token).is_ok()
    };
    assert!(enters(&old, Some("old")) && enters(&old, None));
    assert!(!enters(&new, Some("new")) && !enters(&new, None) && !enters(&old, Some("new")));
    fs::write(&path, key_set(&[("old", &old_public), ("new", &new_public)])).unwrap();
    until("the new key is used", || enters(&new, Some("new")));
    assert!(enters(&old, Some("old")) && enters(&new, None));
    assert!(!enters(&new, Some("old")), "signed with another key than the one that it names");
    // A file that is wrong changes nothing, and the old key ends with its entry.
    fs::write(&path, "{").unwrap();
    assert!(enters(&old, Some("old")));
    fs::write(&path, key_set(&[("new", &new_public)])).unwrap();
    until("the old key is not used", || !enters(&old, Some("old")));
    assert!(enters(&new, Some("new")));
}

#[test]
fn a_key_set_that_cannot_be_used_is_refused_at_the_start() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("keys.json");
    for (set, expected) in [
        ("[]", "JSON Web Key Set"),
        (r#"{"keys":[]}"#, "no public key"),
        (r#"{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}"#, "key 1 of the set is a secret"),
        (r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AA","alg":"RS256"}]}"#, "no public key"),
    ] {
        fs::write(&path, set).unwrap();
        let printed = refused(regatta!("hub --check --jwks").arg(&path));
        assert!(printed.contains(expected), "{set}: {printed}");
    }
}
