//! Runs the line programs, `hello` and `hash`, over HTTP/1.1 and HTTP/2, under the simulator, against models that compute in
//! the simplest way what each client must see.

mod http;
mod http2;
mod lines;
