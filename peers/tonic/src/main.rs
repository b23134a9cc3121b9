//! The service Greeter of ../helloworld.proto: greeter PORT CORES
//!
//! As the examples of tonic start a server, with all defaults of its builder (TCP_NODELAY is one): a task per
//! connection, polled by the worker threads of one Tokio runtime, of which there is one per core.

use helloworld::{
    HelloReply, HelloRequest,
    greeter_server::{Greeter, GreeterServer},
};
use std::{
    env,
    net::{Ipv4Addr, SocketAddr},
};
use tokio::runtime;
use tonic::{Request, Response, Result, codegen::BoxStream, transport::Server};

mod helloworld {
    tonic::include_proto!("helloworld");
}

struct Service;

#[tonic::async_trait]
impl Greeter for Service {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>> {
        let message = format!("Hello {}", request.into_inner().name);
        Ok(Response::new(HelloReply { message }))
    }

    type SayHelloStreamReplyStream = BoxStream<HelloReply>;

    async fn say_hello_stream_reply(
        &self,
        request: Request<HelloRequest>,
    ) -> Result<Response<BoxStream<HelloReply>>> {
        let HelloRequest { name, replies } = request.into_inner();
        let reply = move |n| Ok(HelloReply { message: format!("Hello {name} {n}") });
        Ok(Response::new(Box::pin(tokio_stream::iter((1..=replies).map(reply)))))
    }
}

fn main() {
    let mut numbers = env::args().skip(1).map(|text| text.parse::<u16>().expect("a number"));
    let (port, cores) = (numbers.next().expect("PORT"), numbers.next().expect("CORES"));
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut runtime = runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(cores.into()).enable_all().build().unwrap();
    let server = Server::builder().add_service(GreeterServer::new(Service)).serve(address);
    runtime.block_on(server).expect("a free port");
}
