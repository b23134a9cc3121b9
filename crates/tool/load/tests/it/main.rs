//! The load against servers in threads, in processes, and from other projects.

mod burst;
mod common;
mod http;
mod http2;
mod hub;
mod idle;
mod in_flight;
mod lane;
mod lost;
mod memcached;
mod open;
mod operations;
mod processes;
mod redis;
mod right;
mod slow;
mod stages;
mod tls;
mod tls_http;
mod withheld;
mod workload_file;
mod wrong;
