//! `hello`: the smallest HTTP answer (workload 2).

use crate::{Called, Moment, Never, http, http::Resource};
use regatta_proto::http1::{Reply, Status, Terms};

/// The resource. It keeps no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hello;

const GREETING: &[u8] = b"Hello. The time is ";

impl Resource for Hello {
    const PATH: &'static str = "/";
    type Job = Never;

    #[inline]
    fn get(
        &mut self,
        _: Option<&str>,
        terms: Terms,
        moment: &Moment,
        reply: &mut Vec<u8>,
    ) -> Called<Never> {
        let mut seconds = itoa::Buffer::new();
        let seconds = seconds.format(moment.unix_s).as_bytes();
        let mut body = [0; GREETING.len() + 20];
        body[..GREETING.len()].copy_from_slice(GREETING);
        let end = GREETING.len() + seconds.len();
        body[GREETING.len()..end].copy_from_slice(seconds);
        Reply::text(Status::Ok, &body[..end]).write(terms, &moment.date, reply);
        http::flow(terms).into()
    }
}
