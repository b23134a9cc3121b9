//! The tests of every change: everything deterministic, and a short form of what measures. `tests/full` has the
//! rest.

mod action;
mod agents;
mod capacity;
mod config_file;
mod conformance;
mod connections;
mod dashboards;
mod docs;
mod doctor;
mod drain;
mod grpc;
mod hash;
mod http;
mod http2;
mod http_requests;
mod hub;
mod import;
mod lies;
mod load;
mod machines;
#[cfg(feature = "nats")]
mod manifests;
mod misfortunes;
mod models;
mod null;
mod open_loop;
mod output;
mod package;
mod processes;
mod race;
mod service_manager;
mod shard;
mod slow;
#[cfg(feature = "nats")]
mod standing;
mod structure;
#[path = "../support/mod.rs"]
mod support;
mod transcripts;
