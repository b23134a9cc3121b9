//! Independent servers: the `h2` crate, nginx and node. Their responses are correct with several kinds of
//! load.

use super::{items, over_http2};
use crate::common::{
    assert_undisturbed, at, nginx, node, run,
    tls::{Authority, Shown},
};
use bytes::Bytes;
use h2::{RecvStream, server::SendResponse};
use http::{Request, Response};
use regatta_load::{Arrivals, Drive, Plan, Until};
use regatta_script::{Workload, dialects::http::HttpRequest};
use regatta_testkit::child::Killed;
use std::{fs, net::SocketAddr, path::Path, thread};
use tokio::{net::TcpListener, runtime::Builder, sync::oneshot, task::yield_now};

/// Requests with and without content. The response is the content, or the path.
const ECHOES: &str = r#"
protocol = "http"

[[request]]
path = "/{n=int:0..99999}"
status = 200
expect_headers = { server = "one", date = true }
exact = "/{n}"

[[request]]
method = "POST"
path = "/post"
headers = { x-number = "{n=int:0..99999}" }
body = "{n}, and FILL"
exact = "{n}, and FILL"

[[request]]
method = "HEAD"
path = "/head"
"#;

/// Runs the plan with one stream and with several, with a connection per request, and in an open loop.
fn in_all_ways(plan: &Plan) {
    for plan in [
        Plan { connections: 4, pipeline: 1, ..plan.clone() },
        Plan { connections: 2, pipeline: 9, threads: 2, ..plan.clone() },
        Plan { connections: 1, pipeline: 128, ..plan.clone() },
        Plan {
            connections: 4,
            pipeline: 1,
            drive: Drive::Churn,
            until: Until::Requests(200),
            ..plan.clone()
        },
        Plan { drive: at(500, Arrivals::Poisson), connections: 3, ..plan.clone() },
    ] {
        let tally = run(&plan).unwrap();
        assert_undisturbed(&tally);
    }
}

async fn answer(request: Request<RecvStream>, mut reply: SendResponse<Bytes>, nth: usize) {
    let is_head = request.method() == "HEAD";
    let mut content = request.uri().path().as_bytes().to_vec();
    let mut body = request.into_body();
    if !body.is_end_stream() {
        content.clear();
    }
    while let Some(Ok(piece)) = body.data().await {
        content.extend_from_slice(&piece);
        let _ = body.flow_control().release_capacity(piece.len());
    }
    // Responses are out of order.
    for _ in 0..(7 - nth % 7) {
        yield_now().await;
    }
    let mut response = Response::builder().header("server", "one").header("date", nth / 100);
    if nth.is_multiple_of(2) {
        response = response.header("content-length", content.len());
    }
    let response = response.body(()).unwrap();
    let Ok(mut stream) = reply.send_response(response, is_head) else { return };
    if !is_head {
        let (first, second) = content.split_at(content.len() / 2);
        let _ = stream.send_data(Bytes::copy_from_slice(first), false);
        let _ = stream.send_data(Bytes::copy_from_slice(second), true);
    }
}

/// Serves with the `h2` crate until the end of the test. It shuts each connection down gracefully after
/// `most` requests.
async fn serve(listener: TcpListener, most: usize) {
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let mut builder = h2::server::Builder::new();
            builder.initial_window_size(700).max_concurrent_streams(100);
            let Ok(mut server) = builder.handshake::<_, Bytes>(socket).await else { return };
            let mut served = 0;
            while let Some(Ok((request, reply))) = server.accept().await {
                served += 1;
                if served == most {
                    server.graceful_shutdown();
                }
                // A smaller window could stall streams: this server then sends no WINDOW_UPDATE for what
                // it had not yet returned.
                if served % 64 == 0 {
                    let _ = server.set_initial_window_size(700 + served as u32);
                }
                tokio::spawn(answer(request, reply, served));
            }
        });
    }
}

#[test]
fn the_h2_crate_serves_requests_with_content_and_closes_gracefully() {
    let (send, address) = oneshot::channel();
    let (end, ended) = oneshot::channel::<()>();
    let server = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            send.send(listener.local_addr().unwrap()).unwrap();
            tokio::select! {
                () = serve(listener, 1_000) => {}
                _ = ended => {}
            }
        });
    });
    let address = address.blocking_recv().unwrap();
    let workload = over_http2(&ECHOES.replace("FILL", &"x".repeat(3_000)));
    in_all_ways(&Plan { workload, ..items(address) });
    drop(end);
    server.join().unwrap();
}

const NODE: &str = r"
const server = require('http2').createServer((request, response) => {
    response.setHeader('server', 'one');
    if (request.method === 'HEAD') return response.end();
    if (request.method === 'POST') return request.pipe(response);
    response.write(request.url.slice(0, 2));
    setTimeout(() => response.end(request.url.slice(2)), request.url.length % 3);
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
";

#[test]
#[cfg_attr(not(has_node), ignore = "node is not installed (scripts/setup)")]
fn node_serves_requests_with_content() {
    let (_node, address) = node(NODE, &[]);
    let workload = over_http2(&ECHOES.replace("FILL", &"x".repeat(3_000)));
    in_all_ways(&Plan { workload, ..items(address) });
}

/// nginx with some texts and a file. `listen` is more of its configuration.
fn nginx_with(listen: &str, folder: &Path) -> (Killed, SocketAddr) {
    fs::write(folder.join("large"), vec![b'x'; 1 << 20]).unwrap();
    let server = "location / { return 200 \"item $uri\"; } location = /large { }";
    nginx(folder, listen, server)
}

const NGINX: &str = r#"
protocol = "http"

[[request]]
path = "/{n=int:0..99999}"
exact = "item /{n}"
"#;

#[test]
#[cfg_attr(not(has_nginx), ignore = "nginx is not installed (scripts/setup)")]
fn nginx_serves_texts_and_a_file_and_closes_after_100_requests() {
    let folder = tempfile::tempdir().unwrap();
    let (_nginx, address) = nginx_with("http2", folder.path());
    let plan = Plan { workload: over_http2(NGINX), ..items(address) };
    in_all_ways(&plan);
    for pipeline in [1, 32] {
        let until = Until::Requests(2_000);
        let tally = run(&Plan { pipeline, connections: 2, until, ..plan.clone() }).unwrap();
        assert_undisturbed(&tally);
        assert_eq!((tally.requests, tally.sent_again > 0), (2_000, pipeline > 1));
        assert!(tally.connections_opened >= 19, "{}", tally.connections_opened);
    }
    let large = crate::common::asks(HttpRequest::get("/large"));
    let workload = large.adopted("http2", false).unwrap();
    let tally = run(&Plan { workload, until: Until::Requests(60), ..plan }).unwrap();
    assert_undisturbed(&tally);
    assert!(tally.reply_bytes >= 60 << 20);
}

/// The configuration of a certificate for `localhost`.
fn certified(shown: &Shown, folder: &Path) -> String {
    let (certificate, key) = (folder.join("certificate"), folder.join("key"));
    fs::write(&certificate, &shown.certificate_pem).unwrap();
    fs::write(&key, &shown.key_pem).unwrap();
    format!("ssl_certificate {}; ssl_certificate_key {}", certificate.display(), key.display())
}

#[test]
#[cfg_attr(not(has_nginx), ignore = "nginx is not installed (scripts/setup)")]
fn nginx_is_loaded_over_tls_if_it_selects_h2() {
    for listen in ["ssl http2", "ssl"] {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new();
        let certificate = certified(&authority.certifies(&["localhost"], 2_999), folder.path());
        let (_nginx, address) = nginx_with(&format!("{listen}; {certificate}"), folder.path());
        let workload = Workload::from_text(NGINX, "items").unwrap().adopted("http2", true).unwrap();
        let tls = Some(authority.trusted("localhost"));
        let plan = Plan { workload, tls, host: "localhost".into(), ..items(address) };
        if listen == "ssl http2" {
            in_all_ways(&plan);
            continue;
        }
        match run(&plan) {
            Err(error) => assert!(error.to_string().contains("ALPN"), "{error}"),
            Ok(tally) => panic!("{:?}", tally.first_wrong),
        }
    }
}
