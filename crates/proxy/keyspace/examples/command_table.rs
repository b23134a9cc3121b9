//! Prints `src/command/table.rs` from the data of the installed redis-server.

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../tests/it/live/mod.rs"]
mod live;

fn main() {
    let redis = live::Redis::start();
    print!("{}", live::table::render(&mut redis.connect()));
}
