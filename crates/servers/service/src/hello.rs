//! `hello`: the smallest HTTP reply (workload 2).

use crate::{
    CallOutcome, Never,
    http::{Form, Resource},
};
use regatta_proto::http1::{Date, Reply, Status};

/// The resource. It has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hello;

const GREETING: &[u8] = b"Hello. The time is ";

impl<F: Form> Resource<F> for Hello {
    const PATH: &'static str = "/";
    type Job = Never;
    /// The last reply. It is valid for one second, for all requests with the same form.
    type Local = F::Prepared;

    #[inline]
    fn get(
        &mut self,
        greeting: &mut F::Prepared,
        _: Option<&str>,
        form: F,
        date: &Date,
        reply: &mut Vec<u8>,
    ) -> CallOutcome<Never> {
        if !form.is_prepared(greeting, date) {
            prepare(greeting, form, date);
        }
        form.append(greeting, reply);
        form.flow().into()
    }
}

#[cold]
fn prepare<F: Form>(greeting: &mut F::Prepared, form: F, date: &Date) {
    let mut seconds = itoa::Buffer::new();
    let seconds = seconds.format(date.unix_s()).as_bytes();
    let mut body = [0; GREETING.len() + 20];
    body[..GREETING.len()].copy_from_slice(GREETING);
    let end = GREETING.len() + seconds.len();
    body[GREETING.len()..end].copy_from_slice(seconds);
    form.prepare(greeting, &Reply::text(Status::Ok, &body[..end]), date);
}
