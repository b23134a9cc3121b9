//! A server in the form of an entry of HttpArena, for the tests of `regatta import`: `arena_entry PORT [LIE]`. It
//! reads the dataset `/data/dataset.json`, or the file in `DATASET`. hyper reads its requests, so it is independent
//! of what writes them. On port 0 it prints the port that it got.
//!
//! Lies: `fixed` answers as if the numbers were HttpArena's; `deaf` ignores bodies; `short` leaves out an item of
//! JSON, `more` adds a member, `text` sends JSON as plain text; `shared` answers with the sum of another request
//! after the hundredth.

use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Response, body::Bytes, body::Incoming, server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    env, fs,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    },
};
use tokio::net::TcpListener;

/// What the server is.
struct Server {
    items: Vec<Value>,
    lie: String,
    answered: AtomicU64,
    last: AtomicI64,
}

#[tokio::main]
async fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let (port, lie) = match &args[..] {
        [port] => (port, String::new()),
        [port, lie] => (port, lie.clone()),
        _ => {
            eprintln!("usage: arena_entry PORT [LIE]");
            std::process::exit(2);
        }
    };
    let dataset = env::var("DATASET").unwrap_or_else(|_| "/data/dataset.json".into());
    let items =
        fs::read(dataset).ok().map(|data| serde_json::from_slice(&data).expect("a dataset"));
    let items = items.unwrap_or_default();
    let server = Arc::new(Server { items, lie, answered: 0.into(), last: 0.into() });
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await.expect("the port");
    println!("{}", listener.local_addr().expect("an address").port());
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(&server, request));
            let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // A client that closes its connection is no error.
            let _ = serving.await;
        });
    }
}

async fn answer(
    server: &Server,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let query = head.uri.query().unwrap_or_default().to_owned();
    let number = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let value = pairs.find(|(key, _)| *key == name).map(|(_, value)| value);
        value.and_then(|value| value.parse::<i64>().ok()).unwrap_or(0)
    };
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let body = std::str::from_utf8(&body).unwrap_or_default().trim().parse::<i64>().unwrap_or(0);
    let path = head.uri.path();
    let (kind, text) = match path.strip_prefix("/json/") {
        Some(count) => {
            let count = count.parse::<usize>().unwrap_or(0).min(server.items.len());
            let kind = if server.lie == "text" { "text/plain" } else { "application/json" };
            (kind, server.json(count, number("m")))
        }
        None if path == "/baseline11" => {
            let is_post = head.method == Method::POST;
            (
                "text/plain; charset=utf-8",
                server.sum(number("a") + number("b"), is_post, body).to_string(),
            )
        }
        None if path == "/pipeline" => ("text/plain", "ok".to_owned()),
        None => ("text/plain", "there is nothing here".to_owned()),
    };
    let reply = Response::builder().header("Content-Type", kind).header("Server", "arena-entry");
    Ok(reply.body(Full::from(text)).expect("a reply"))
}

impl Server {
    fn sum(&self, query: i64, is_post: bool, body: i64) -> i64 {
        let sum = match self.lie.as_str() {
            "fixed" => 55 + if is_post { 20 } else { 0 },
            "deaf" => query,
            _ => query + body,
        };
        let last = self.last.swap(sum, Relaxed);
        let is_late = self.answered.fetch_add(1, Relaxed) > 100;
        if self.lie == "shared" && is_late { last } else { sum }
    }

    fn json(&self, count: usize, multiplier: i64) -> String {
        let total = |item: &Value| {
            let number = |name: &str| item[name].as_i64().unwrap_or(0);
            let mut item = item.clone();
            item["total"] = json!(number("price") * number("quantity") * multiplier);
            item
        };
        let mut items: Vec<Value> = self.items[..count].iter().map(total).collect();
        match self.lie.as_str() {
            "short" if count > 40 => drop(items.pop()),
            "more" if count > 40 => items[count - 1]["more"] = json!(1),
            _ => {}
        }
        json!({ "items": items, "count": count }).to_string()
    }
}
