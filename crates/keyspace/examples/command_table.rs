//! Prints `src/command/table.rs` from the data of the installed redis-server.

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../tests/it/live/mod.rs"]
mod live;

fn main() {
    let Some(redis) = live::Redis::start() else {
        eprintln!("redis-server is not installed; run scripts/setup");
        std::process::exit(1);
    };
    print!("{}", live::table::render(&mut redis.connect()));
}
