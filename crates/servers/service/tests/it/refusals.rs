//! What a client is refused for: the reply says why, and so does a line for those who operate the hub.

use crate::hub::OPENING;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use regatta_engine::{Core, Limits, Next, Now, Sessions};
use regatta_service::hub::{Access, Api, Hub, Jwt, Settings};
use serde_json::{Value, json};
use std::{
    cell::RefCell,
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

const SECRET: &[u8] = &[7; 32];
/// The time at the hub, in seconds since 1970.
const UNIX_S: u64 = 1_000_000_000;

thread_local! {
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn log(line: &str) {
    LINES.with_borrow_mut(|lines| lines.push(line.to_owned()));
}

/// A hub that requires tokens with the audience `hub`, of the issuer `me`.
fn core() -> Core<Sessions<Hub>> {
    let keys = Arc::new(Jwt::hs256(SECRET).requiring(Some("hub".into()), Some("me".into())));
    let access = Access::Jwt(Arc::new(move || Arc::clone(&keys)));
    let api = Some(Arc::new(Api::new("a-key-of-a-backend")));
    let hub = Hub::new(Settings { access, api, log, ..Settings::default() });
    Core::new(
        Sessions::new(hub),
        Limits::default(),
        Now { instant: Instant::now(), unix_s: UNIX_S },
    )
}

/// The status of the reply to a request on a new connection, and its text.
fn ask(core: &mut Core<Sessions<Hub>>, request: &str) -> (String, String) {
    let conn = core.accept();
    core.received(conn, &mut request.as_bytes().to_vec());
    assert!(matches!(core.next(conn, &()), Next::Write { .. }));
    let reply = String::from_utf8(core.output(conn).to_vec()).unwrap();
    let (head, text) = reply.split_once("\r\n\r\n").unwrap();
    (head[9..12].to_owned(), text.to_owned())
}

fn opening(query: &str) -> String {
    String::from_utf8(OPENING.to_vec()).unwrap().replace("/ws ", &format!("/ws/red{query} "))
}

fn token(claims: &Value, secret: &[u8]) -> String {
    encode(&Header::default(), claims, &EncodingKey::from_secret(secret)).unwrap()
}

#[test]
fn a_reply_names_the_reason_and_nothing_about_a_token_with_a_wrong_signature() {
    let good = json!({"aud": "hub", "iss": "me", "exp": UNIX_S + 60});
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        claims
    };
    let expired = with("exp", json!(UNIX_S - 31));
    let other_algorithm = Header::new(Algorithm::HS512);
    let other_algorithm =
        encode(&other_algorithm, &good, &EncodingKey::from_secret(SECRET)).unwrap();
    let mut core = core();
    for (token, expected) in [
        (token(&expired, SECRET), "token_expired: The token has expired."),
        (token(&with("nbf", json!(UNIX_S + 31)), SECRET), "token_not_yet_valid: "),
        (token(&with("aud", json!("other")), SECRET), "token_audience: "),
        (token(&json!({"iss": "me"}), SECRET), "token_audience: "),
        (token(&with("iss", json!("you")), SECRET), "token_issuer: "),
        (token(&with("channels", json!(1)), SECRET), "token_claims: "),
        (token(&expired, &[8; 32]), "token_signature: "),
        (token(&with("aud", json!("other")), &[8; 32]), "token_signature: "),
        (other_algorithm, "token_key: "),
        ("nonsense".to_owned(), "token_malformed: "),
        ("e30.e30.e30".to_owned(), "token_malformed: "),
        (String::new(), "token_malformed: "),
    ] {
        let (status, text) = ask(&mut core, &opening(&format!("?access_token={token}")));
        assert!(status == "401" && text.starts_with(expected), "{token}: {status} {text}");
    }
    let (status, text) = ask(&mut core, &opening(""));
    assert!(status == "401" && text.starts_with("no_token: "), "{text}");
    let other = token(&with("channels", json!(["blue"])), SECRET);
    let (status, text) = ask(&mut core, &opening(&format!("?access_token={other}")));
    assert!(status == "403" && text.starts_with("other_room: "), "{text}");
    let (status, _) = ask(&mut core, &opening(&format!("?access_token={}", token(&good, SECRET))));
    assert_eq!(status, "101");
    for (key, expected) in [("X: y", "api_key_missing: "), ("X-API-Key: y", "api_key_wrong: ")] {
        let request =
            format!("POST /api/info HTTP/1.1\r\nHost: x\r\n{key}\r\nContent-Length: 0\r\n\r\n");
        let (status, text) = ask(&mut core, &request);
        assert!(status == "401" && text.starts_with(expected), "{text}");
    }
}

#[test]
fn each_reason_has_one_line_per_second_without_the_token() {
    let (mut core, lines) = (core(), || LINES.with_borrow_mut(mem::take));
    lines();
    let bad = token(&json!({}), &[8; 32]);
    let refuse = |core: &mut Core<Sessions<Hub>>| {
        ask(core, &opening(&format!("?access_token={bad}")));
        ask(core, &opening(""));
    };
    (0..5).for_each(|_| refuse(&mut core));
    let expected = |suppressed: u64| {
        ["token_signature", "no_token"].map(|reason| {
            format!("regatta: join refused: reason={reason} of=\"/ws/red\" suppressed={suppressed}")
        })
    };
    assert_eq!(lines(), expected(0));
    let later = core.now().instant + Duration::from_secs(1);
    core.turn(Now { instant: later, unix_s: UNIX_S });
    refuse(&mut core);
    assert_eq!(lines(), expected(4));
}
