//! HTTP services over HTTP/2, without TLS and without an upgrade: the client starts with the preface.
//!
//! [`Frames`] finds the frames of the input, so HTTP/2 is a [`Service`](crate::Service) like others and runs
//! in all styles: [`Site`] answers each frame, which may be the last one of a request. The replies are those
//! of [`http::Site`](crate::http::Site), in another [`Form`].

mod codec;
mod connection;
mod form;
mod job;
mod requests;
mod site;
#[cfg(test)]
mod tests;

pub use codec::Frames;
pub use form::Form;
pub use job::StreamJob;
pub use site::Site;
