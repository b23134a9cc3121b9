//! The `h2` crate as client, over a pipe in memory: 500 requests with content on 128 streams, with small
//! windows, and a graceful end.

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use http::Request;
use regatta_http2::server::{Config, Event, Response, Server};
use std::{collections::HashMap, time::Duration};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

const REQUESTS: usize = 500;

fn content(nth: usize) -> Vec<u8> {
    let length = if nth.is_multiple_of(5) { 0 } else { nth * 37 % 5000 + 1 };
    (0..length).map(|at| (at * 31 + nth * 7) as u8).collect()
}

/// Returns the content of each request reversed, until the client closes.
async fn serve(pipe: DuplexStream, config: Config, piece: usize) -> Server {
    let (mut reader, mut writer) = tokio::io::split(pipe);
    let mut server = Server::new(config).expect("a valid config");
    let (mut held, mut out, mut requests) = (Vec::new(), Vec::new(), HashMap::new());
    let mut buffer = vec![0; piece];
    loop {
        tokio::select! {
            written = writer.write(&out), if !out.is_empty() => {
                let Ok(written) = written else { return server };
                out.drain(..written);
            }
            read = reader.read(&mut buffer) => {
                let read = read.unwrap_or(0);
                if read == 0 {
                    return server;
                }
                held.extend_from_slice(&buffer[..read]);
                let taken = answer(&mut server, &held, &mut requests, &mut out);
                held.drain(..taken);
            }
        }
    }
}

type Requests = HashMap<u32, Vec<u8>>;

fn answer(server: &mut Server, input: &[u8], requests: &mut Requests, out: &mut Vec<u8>) -> usize {
    let mut rest = input;
    while let Some(event) = server.next(&mut rest, out).expect("a valid client") {
        let (stream, ends) = match event {
            Event::Request { stream, request } => {
                assert_eq!(request.authority(), Some(&b"a.test"[..]));
                requests.insert(stream, Vec::new());
                (stream, request.ends)
            }
            Event::Content { stream, bytes, ends } => {
                requests.get_mut(&stream).expect("a head").extend_from_slice(bytes);
                (stream, ends)
            }
            other => panic!("{other:?}"),
        };
        if ends {
            let mut content = requests.remove(&stream).expect("a head");
            content.reverse();
            server.respond(stream, Response { block: &[0x88], content: &content }, out);
        }
    }
    input.len() - rest.len()
}

async fn ask(client: SendRequest<Bytes>, nth: usize) {
    let mut client = client.ready().await.expect("room");
    let request = Request::post("http://a.test/x").body(()).expect("a request");
    let sent = content(nth);
    let (response, mut stream) = client.send_request(request, sent.is_empty()).expect("sent");
    if !sent.is_empty() {
        stream.send_data(Bytes::from(sent.clone()), true).expect("sent");
    }
    let response = response.await.expect("a response");
    assert_eq!(response.status(), 200);
    let (mut body, mut all) = (response.into_body(), Vec::new());
    while let Some(piece) = body.data().await {
        let piece = piece.expect("content");
        all.extend_from_slice(&piece);
        body.flow_control().release_capacity(piece.len()).expect("capacity");
    }
    all.reverse();
    assert_eq!(all, sent, "request {nth}");
}

async fn run(config: Config, piece: usize, table: u32) {
    let (ours, theirs) = duplex(8 * 1024);
    let server = tokio::spawn(serve(theirs, config, piece));
    let mut builder = Builder::new();
    builder.initial_window_size(3000).header_table_size(table);
    let (client, connection) = builder.handshake::<_, Bytes>(ours).await.expect("a handshake");
    let connection = tokio::spawn(connection);
    let asks: Vec<_> = (0..REQUESTS).map(|nth| tokio::spawn(ask(client.clone(), nth))).collect();
    for ask in asks {
        ask.await.expect("answered");
    }
    drop(client);
    connection.await.expect("it ends").expect("without an error");
    let server = server.await.expect("it ends");
    assert_eq!(server.open_streams(), 0);
}

fn run_within_a_minute(config: Config, piece: usize, table: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let run =
        async { tokio::time::timeout(Duration::from_secs(60), run(config, piece, table)).await };
    runtime.block_on(run).expect("all requests are answered within a minute");
}

#[test]
fn requests_with_content_are_answered_on_128_streams() {
    let config = Config { max_streams: 128, ..Config::SERVER };
    run_within_a_minute(config, 16 * 1024, 4096);
}

#[test]
fn requests_are_answered_in_tiny_pieces_with_tiny_windows_and_without_tables() {
    let config = Config {
        max_streams: 7,
        stream_window: 500,
        connection_window: 65_535,
        header_table: 0,
        header_list: 4096,
    };
    run_within_a_minute(config, 7, 0);
}
