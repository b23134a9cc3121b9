//! Members that vanish during broadcasts.

use crate::support::{
    Server,
    hub::{Socket, hear, member, on_hub_models, send},
};
use regatta_testkit::is_full;
use serde_json::json;
use socket2::SockRef;
use std::time::Duration;

on_hub_models!(when_half_of_the_members_vanish_the_others_get_every_message);

/// Half of the members close with a reset during the broadcasts.
fn when_half_of_the_members_vanish_the_others_get_every_message(model: &str) {
    const MESSAGES: u64 = 60;
    // With `select`, all must fit into its 1,024 descriptors.
    let count = if is_full() && model != "select" { 1_000 } else { 200 };
    let server = Server::of("hub", model, &["--cores", "2"]);
    let mut sender = member(&server);
    let mut stay: Vec<Socket> = (0..count / 2).map(|_| member(&server)).collect();
    let mut vanishing: Vec<Socket> = (0..count / 2).map(|_| member(&server)).collect();
    for socket in stay.iter_mut().chain(&mut vanishing) {
        send(socket, &json!({"type": "echo", "payload": "here"}));
        assert_eq!(hear(socket)["type"], "echo", "{model}");
    }
    let mut asked = 0;
    let mut ask = |sender: &mut Socket, until: u64| {
        while asked < until {
            send(sender, &json!({"type": "broadcast", "payload": asked}));
            asked += 1;
        }
    };
    // Some broadcasts are in flight when members vanish that have read none of them.
    ask(&mut sender, MESSAGES / 3);
    for socket in vanishing {
        SockRef::from(&socket.get_ref().0).set_linger(Some(Duration::ZERO)).unwrap();
    }
    ask(&mut sender, MESSAGES);
    let (least, most) = (count / 2 + 1, count + 1);
    let (mut copies, mut results) = (0, 0);
    while results < MESSAGES {
        let heard = hear(&mut sender);
        if heard["type"] == "broadcast" {
            assert_eq!(heard["payload"], copies, "{model}");
            copies += 1;
            continue;
        }
        assert_eq!(heard["payload"], results, "{model}: {heard}");
        results += 1;
        assert!(results <= copies, "{model}: its own copy comes first");
        let listeners = heard["listenerCount"].as_u64().unwrap() as usize;
        assert!((least..=most).contains(&listeners), "{model}: {heard}");
    }
    assert_eq!(copies, MESSAGES, "{model}");
    for socket in &mut stay {
        for n in 0..MESSAGES {
            assert_eq!(hear(socket), json!({"type": "broadcast", "payload": n}), "{model}");
        }
    }
}
