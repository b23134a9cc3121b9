//! Presence: which members are notified when a member joins or leaves.

use crate::support::{
    Server,
    hub::{Socket, closed, hear, member_of, on_hub_models, send},
};
use serde_json::{Value, json};
use socket2::SockRef;
use std::{net::Shutdown, time::Duration};

fn notice(socket: &mut Socket) -> (String, Value, u64) {
    let notice = hear(socket);
    assert_eq!(notice["type"], "presence", "{notice}");
    let event = notice["event"].as_str().unwrap().to_owned();
    let who = if event == "here" { &notice["members"] } else { &notice["member"] };
    (event, who.clone(), notice["count"].as_u64().unwrap())
}

on_hub_models!(the_members_of_a_room_are_notified_of_every_join_and_leave);

fn the_members_of_a_room_are_notified_of_every_join_and_leave(model: &str) {
    let server = Server::of("hub", model, &["--presence", "--cores", "2"]);
    let mut first = member_of(&server, "/ws/red?name=first");
    assert_eq!(notice(&mut first), ("here".into(), json!(["first"]), 1), "{model}");
    let mut elsewhere = member_of(&server, "/ws/blue?name=elsewhere");
    assert_eq!(notice(&mut elsewhere).2, 1, "{model}");
    let mut polite = member_of(&server, "/ws/red?name=%C3%BC%22");
    assert_eq!(notice(&mut polite), ("here".into(), json!(["first", "ü\""]), 2), "{model}");
    assert_eq!(notice(&mut first), ("join".into(), json!("ü\""), 2), "{model}");
    let mut rude = member_of(&server, "/ws/red");
    assert_eq!(notice(&mut rude).2, 3, "{model}");
    assert_eq!(notice(&mut first), ("join".into(), Value::Null, 3), "{model}");
    polite.close(None).unwrap();
    while closed(&mut polite).is_none() {}
    assert_eq!(notice(&mut first), ("leave".into(), json!("ü\""), 2), "{model}");
    // A reset.
    SockRef::from(&rude.get_ref().0).set_linger(Some(Duration::ZERO)).unwrap();
    drop(rude);
    assert_eq!(notice(&mut first), ("leave".into(), Value::Null, 1), "{model}");
    // A plain end of the stream, without a Close frame.
    let hasty = member_of(&server, "/ws/red?name=hasty");
    assert_eq!(notice(&mut first), ("join".into(), json!("hasty"), 2), "{model}");
    SockRef::from(&hasty.get_ref().0).shutdown(Shutdown::Write).unwrap();
    assert_eq!(notice(&mut first), ("leave".into(), json!("hasty"), 1), "{model}");
    // Neither another room nor the lobby gets notices.
    let mut lobby = member_of(&server, "/ws?name=lobby");
    assert_eq!(notice(&mut lobby).2, 1, "{model}");
    let hasty = member_of(&server, "/ws/red?name=hasty");
    assert_eq!(notice(&mut first), ("join".into(), json!("hasty"), 2), "{model}");
    drop(hasty);
    assert_eq!(notice(&mut first), ("leave".into(), json!("hasty"), 1), "{model}");
    send(&mut lobby, &json!({"type": "echo", "payload": 0}));
    assert_eq!(hear(&mut lobby)["type"], "echo", "{model}");
    send(&mut elsewhere, &json!({"type": "echo", "payload": 0}));
    assert_eq!(hear(&mut elsewhere)["type"], "echo", "{model}: another room gets no notices");
}

#[test]
fn names_may_repeat_and_a_name_that_is_too_long_is_ignored() {
    let server = Server::of("hub", "epoll", &["--presence"]);
    let named = |name: &str| member_of(&server, &format!("/ws?name={name}"));
    let mut first = named("same");
    assert_eq!(notice(&mut first).2, 1);
    let mut second = named("same");
    assert_eq!(notice(&mut second), ("here".into(), json!(["same", "same"]), 2));
    assert_eq!(notice(&mut first), ("join".into(), json!("same"), 2));
    let long = "x".repeat(128);
    let _third = named(&long);
    assert_eq!(notice(&mut first), ("join".into(), json!(long), 3));
    // 65 characters of two bytes each.
    let _fourth = named(&"%C3%BC".repeat(65));
    assert_eq!(notice(&mut first), ("join".into(), Value::Null, 4));
}
