//! The options that say which server is loaded: its address and nodes, TLS, the protocol of a hub, and one HTTP
//! request or gRPC call.

pub mod adapter;
pub mod connect;
pub mod grpc;
pub mod http;
pub mod nodes;
pub mod tls;
pub mod url;
