//! aster's own program, which is these lines too.

fn main() {
    libaster::run().unwrap();
}
