//! Replies with the time over HTTP/1.1, or over HTTP/2 with prior knowledge.
//!
//! hyper at its fastest: a single-threaded Tokio runtime per core, each with its own listener on the
//! port, so that no connection ever wakes another thread. Replies to pipelined requests are flushed
//! together, which costs a sixth of flushing each. The drawback is that hyper delays them while the buffer
//! ends with part of another request. hyper gets no timer, so it has no header timeout to arm and disarm.

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::{
    convert::Infallible,
    env, io,
    net::{Ipv4Addr, SocketAddr},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{net::TcpSocket, runtime, time::sleep};

async fn hello(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::default();
    match (request.uri().path(), request.method()) {
        ("/", &Method::GET | &Method::HEAD) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
            *response.body_mut() = format!("Hello. The time is {now}").into();
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        }
        ("/", _) => *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED,
        _ => *response.status_mut() = StatusCode::NOT_FOUND,
    }
    Ok(response)
}

async fn serve(address: SocketAddr, speaks_http2: bool) -> io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    let listener = socket.listen(4096)?;
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // usually out of descriptors: some will be closed soon
                eprintln!("accept: {error}");
                sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        tokio::spawn(async move {
            stream.set_nodelay(true)?;
            let stream = TokioIo::new(stream);
            // The client caused the error: it sent invalid HTTP or closed the connection.
            let _ = match speaks_http2 {
                true => {
                    let http = http2::Builder::new(TokioExecutor::new());
                    http.serve_connection(stream, service_fn(hello)).await
                }
                false => {
                    let mut http = http1::Builder::new();
                    http.pipeline_flush(true);
                    http.serve_connection(stream, service_fn(hello)).await
                }
            };
            io::Result::Ok(())
        });
    }
}

/// `hello PORT CORES [http2]`
fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).map(|text| text.parse::<u16>().expect("a number"));
    let (port, cores) = (number(0).expect("PORT"), number(1).expect("CORES"));
    let speaks_http2 = arguments.get(2).is_some_and(|protocol| protocol == "http2");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let core = move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(serve(address, speaks_http2)).expect("a free port");
    };
    for _ in 1..cores {
        thread::spawn(core);
    }
    core();
}
