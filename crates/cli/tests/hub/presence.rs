//! Who is told that somebody comes or goes.

use crate::{Socket, closed, hear, member_of, models, send, support::Server};
use serde_json::{Value, json};
use socket2::SockRef;
use std::time::Duration;

fn told(socket: &mut Socket) -> (String, Value, u64) {
    let told = hear(socket);
    assert_eq!(told["type"], "presence", "{told}");
    let event = told["event"].as_str().unwrap().to_owned();
    let who = if event == "here" { &told["members"] } else { &told["member"] };
    (event, who.clone(), told["count"].as_u64().unwrap())
}

#[test]
fn the_members_of_a_room_hear_who_comes_and_who_goes_in_whatever_way() {
    for model in models() {
        let server = Server::of("hub", model, &["--presence", "--cores", "2"]);
        let mut first = member_of(&server, "/ws/red?name=first");
        assert_eq!(told(&mut first), ("here".into(), json!(["first"]), 1), "{model}");
        let mut elsewhere = member_of(&server, "/ws/blue?name=elsewhere");
        assert_eq!(told(&mut elsewhere).2, 1, "{model}");
        let mut polite = member_of(&server, "/ws/red?name=%C3%BC%22");
        assert_eq!(told(&mut polite), ("here".into(), json!(["first", "ü\""]), 2), "{model}");
        assert_eq!(told(&mut first), ("join".into(), json!("ü\""), 2), "{model}");
        let mut rude = member_of(&server, "/ws/red");
        assert_eq!(told(&mut rude).2, 3, "{model}");
        assert_eq!(told(&mut first), ("join".into(), Value::Null, 3), "{model}");
        polite.close(None).unwrap();
        while closed(&mut polite).is_none() {}
        assert_eq!(told(&mut first), ("leave".into(), json!("ü\""), 2), "{model}");
        // A reset.
        SockRef::from(&rude.get_ref().0).set_linger(Some(Duration::ZERO)).unwrap();
        drop(rude);
        assert_eq!(told(&mut first), ("leave".into(), Value::Null, 1), "{model}");
        send(&mut elsewhere, &json!({"type": "echo", "payload": 0}));
        assert_eq!(hear(&mut elsewhere)["type"], "echo", "{model}: another room hears none of it");
    }
}
