//! Prints `src/command/table.rs` from what the redis-server on the machine says of its commands.

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../tests/live/mod.rs"]
mod live;

fn main() {
    let Some(redis) = live::Redis::start() else {
        eprintln!("redis-server is not installed; scripts/setup gets it");
        std::process::exit(1);
    };
    print!("{}", live::table::render(&mut redis.connect()));
}
