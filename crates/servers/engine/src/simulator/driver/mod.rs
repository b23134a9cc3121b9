//! What drives a simulated core: readiness, as with epoll, or completions, as with io_uring.

mod readiness;
mod ring;
mod turn;
