//! The same `main` as in aster itself.

fn main() {
    libaster::run().unwrap();
}
