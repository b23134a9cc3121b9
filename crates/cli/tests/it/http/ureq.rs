//! The `ureq` crate as the client, on every model.

use crate::support::{DEADLINE, Server, on_every_shared};
use ureq::Agent;

#[test]
fn ureq_is_answered_on_every_model() {
    on_every_shared(|model| {
        let server = Server::of("hello", model, &[]);
        let url = &format!("http://{}/", server.addr);
        let config = Agent::config_builder().http_status_as_error(false).proxy(None);
        let agent: Agent = config.timeout_global(Some(DEADLINE)).build().into();
        for _ in 0..3 {
            let mut reply = agent.get(url).call().unwrap();
            assert_eq!(reply.status(), 200);
            assert_eq!(reply.headers()["content-type"], "text/plain");
            let body = reply.body_mut().read_to_string().unwrap();
            assert!(body.starts_with("Hello. The time is "), "{body}");
        }
        let mut reply = agent.head(url).call().unwrap();
        assert_eq!(reply.headers()["content-length"], "29");
        assert_eq!(reply.body_mut().read_to_string().unwrap(), "");
        let reply = agent.options(url).call().unwrap();
        assert_eq!(reply.status(), 204);
        assert_eq!(reply.headers()["allow"], "GET, HEAD, OPTIONS");
        // A reader has no length, so it is sent in chunks.
        let content = vec![b'c'; 50_000];
        let mut reader = &content[..];
        let in_chunks = ureq::SendBody::from_reader(&mut reader);
        assert_eq!(agent.post(url).send(in_chunks).unwrap().status(), 405);
        let request = agent.post(url).header("expect", "100-continue");
        assert_eq!(request.send(&content[..]).unwrap().status(), 405);
        assert_eq!(agent.get(format!("{url}x")).call().unwrap().status(), 404);
        // Refused, and the next request gets a new connection.
        let refused = agent.post(url).send(&vec![b'c'; 70_000][..]).unwrap();
        assert_eq!(refused.status(), 413);
        assert_eq!(agent.get(url).call().unwrap().status(), 200);
    });
}
