//! Looks for the programs that tests need.

fn main() {
    regatta_testkit::prerequisite::programs(&["nats-server"]);
}
