//! Independent servers: their replies are correct with several kinds of load.

use crate::{
    common::{Server, asks, assert_undisturbed, at, nginx, node, run, workload},
    http::get,
};
use regatta_load::{Arrivals, Drive, Plan, Until};
use regatta_script::{
    dialects::http::{Content, HttpRequest},
    hash_file,
};
use std::{
    fs,
    io::{Read, Write},
    net::Shutdown,
    sync::atomic::Ordering::SeqCst,
    time::{SystemTime, UNIX_EPOCH},
};
use ureq_proto::{
    http::Response,
    server::{RecvRequestResult, Reply, SendResponseResult},
};

/// Runs the plan with and without pipelining, with a connection per request, and in an open loop.
fn in_all_ways(plan: &Plan) {
    for plan in [
        Plan { connections: 4, ..plan.clone() },
        Plan { connections: 2, pipeline: 9, threads: 2, ..plan.clone() },
        Plan { connections: 4, drive: Drive::Churn, until: Until::Requests(200), ..plan.clone() },
        Plan { drive: at(500, Arrivals::Poisson), connections: 3, ..plan.clone() },
    ] {
        assert_undisturbed(&run(&plan).unwrap());
    }
}

const NODE: &str = r#"
const file = require('fs').readFileSync(process.argv[1]);
const sha256 = (last) => require('crypto').createHash('sha256').update(last).update(file).digest();
const server = require('http').createServer((request, response) => {
    const url = new URL(request.url, 'http://x');
    if (url.pathname === '/hash') {
        let last = url.searchParams.get('salt');
        for (let i = 0; i < +url.searchParams.get('n'); i++) last = sha256(last);
        const digest = last.toString('hex');
        // In two chunks.
        response.write(digest.slice(0, 5));
        response.end(digest.slice(5));
    } else {
        response.end('Hello. The time is ' + Date.now() / 1000);
    }
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
"#;

#[test]
#[cfg_attr(not(has_node), ignore = "node is not installed (scripts/setup)")]
fn node_serves_hello_and_hash() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    hash_file::write(&file).unwrap();
    let (_node, address) = node(NODE, &[file.as_os_str()]);
    for workload in [workload("hello"), workload("hash").with_n(3).unwrap()] {
        in_all_ways(&Plan { workload, ..get(address) });
    }
}

/// nginx announces the close of every connection after 100 requests.
#[test]
#[cfg_attr(not(has_nginx), ignore = "nginx is not installed (scripts/setup)")]
fn nginx_serves_hello_a_text_and_a_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("large"), vec![b'x'; 1 << 20]).unwrap();
    let server = format!(
        "default_type text/plain;
         location = / {{ return 200 \"Hello. The time is $msec\"; }}
         location = /hash {{ return 200 \"{}\"; }}",
        hash_file::DIGEST
    );
    let (_nginx, address) = nginx(folder.path(), "", &server);
    let mut digest = HttpRequest::get("/hash");
    digest.expected.content = Content::Text;
    digest.text = hash_file::DIGEST.into();
    for workload in [workload("hello"), asks(digest)] {
        let plan = Plan { workload, ..get(address) };
        let counted = Plan { connections: 2, until: Until::Requests(1_000), ..plan.clone() };
        let tally = run(&counted).unwrap();
        assert_undisturbed(&tally);
        assert!(tally.connections_opened >= 10, "{}", tally.connections_opened);
        let churned = Plan { drive: Drive::Churn, connections: 4, ..counted.clone() };
        assert_undisturbed(&run(&churned).unwrap());
        assert_undisturbed(&run(&Plan { pipeline: 9, ..counted }).unwrap());
    }
    let workload = asks(HttpRequest::get("/large"));
    let plan = Plan { workload, connections: 4, until: Until::Requests(60), ..get(address) };
    assert_undisturbed(&run(&plan).unwrap());
}

/// The server side of another crate, ureq-proto. It shares `httparse` with our client side.
#[test]
fn another_crate_serves_hello() {
    let server = Server::start(|mut stream, requests| {
        let (mut input, mut piece) = (Vec::new(), [0; 4096]);
        loop {
            let mut reply = Reply::new().unwrap();
            let taken = loop {
                match reply.try_request(&input).unwrap() {
                    (taken, Some(_)) => break taken,
                    _ => match stream.read(&mut piece) {
                        Ok(n @ 1..) => input.extend_from_slice(&piece[..n]),
                        _ => return,
                    },
                }
            };
            input.drain(..taken);
            requests.fetch_add(1, SeqCst);
            let Some(RecvRequestResult::ProvideResponse(reply)) = reply.proceed() else {
                panic!("it waits for a request body");
            };
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
            let content = format!("Hello. The time is {now}");
            let response = Response::builder().header("content-length", content.len().to_string());
            let mut reply = reply.provide(response.body(()).unwrap()).unwrap();
            let mut out = vec![0; 4096];
            let mut length = reply.write(&mut out).unwrap();
            let closes = match reply.proceed() {
                SendResponseResult::SendBody(mut reply) => {
                    length += reply.write(content.as_bytes(), &mut out[length..]).unwrap().1;
                    reply.proceed().must_close_connection()
                }
                SendResponseResult::Cleanup(reply) => reply.must_close_connection(),
            };
            if stream.write_all(&out[..length]).is_err() || closes {
                let _ = stream.shutdown(Shutdown::Write);
                return;
            }
        }
    });
    in_all_ways(&Plan { workload: workload("hello"), ..get(server.address) });
    assert!(server.requests() > 0);
}
