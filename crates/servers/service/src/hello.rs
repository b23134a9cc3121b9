//! `hello`: the smallest HTTP reply (workload 2).

use crate::{CallOutcome, Never, http, http::Resource};
use regatta_proto::http1::{Date, Prepared, Reply, Status, Terms};

/// The resource. It has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hello;

const GREETING: &[u8] = b"Hello. The time is ";

impl Resource for Hello {
    const PATH: &'static str = "/";
    type Job = Never;
    /// The last reply. It is valid for one second, for all requests with the same terms.
    type Local = Prepared;

    #[inline]
    fn get(
        &mut self,
        greeting: &mut Prepared,
        _: Option<&str>,
        terms: Terms,
        date: &Date,
        reply: &mut Vec<u8>,
    ) -> CallOutcome<Never> {
        if !greeting.is_for(terms, date) {
            prepare(greeting, terms, date);
        }
        greeting.append(reply);
        http::flow(terms).into()
    }
}

#[cold]
fn prepare(greeting: &mut Prepared, terms: Terms, date: &Date) {
    let mut seconds = itoa::Buffer::new();
    let seconds = seconds.format(date.unix_s()).as_bytes();
    let mut body = [0; GREETING.len() + 20];
    body[..GREETING.len()].copy_from_slice(GREETING);
    let end = GREETING.len() + seconds.len();
    body[GREETING.len()..end].copy_from_slice(seconds);
    greeting.prepare(&Reply::text(Status::Ok, &body[..end]), terms, date);
}
