//! Every session under the simulator, against models that compute what each client must see in the
//! plainest way.

mod http;
mod lines;
