//! Runs the line programs, `hello` and `hash` under the simulator, against models that compute in
//! the simplest way what each client must see.

mod http;
mod lines;
