//! Replies with the time over HTTP/1.1.
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
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
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

async fn serve(address: SocketAddr) -> io::Result<()> {
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
            let mut http = http1::Builder::new();
            http.pipeline_flush(true);
            // The client caused the error: it sent invalid HTTP or closed the connection.
            let _ = http.serve_connection(TokioIo::new(stream), service_fn(hello)).await;
            io::Result::Ok(())
        });
    }
}

/// `hello PORT CORES`
fn main() {
    let mut numbers = env::args().skip(1).map(|text| text.parse().expect("a number"));
    let (port, cores) = (numbers.next().expect("PORT"), numbers.next().expect("CORES"));
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let core = move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(serve(address)).expect("a free port");
    };
    for _ in 1..cores {
        thread::spawn(core);
    }
    core();
}
