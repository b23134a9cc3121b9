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
    type Local = Greeting;

    #[inline]
    fn get(
        &mut self,
        greeting: &mut Greeting,
        _: Option<&str>,
        terms: Terms,
        moment: &Moment,
        reply: &mut Vec<u8>,
    ) -> Called<Never> {
        if (greeting.unix_s, greeting.terms) != (moment.unix_s, Some(terms)) {
            greeting.write(terms, moment);
        }
        reply.extend_from_slice(&greeting.reply);
        http::flow(terms).into()
    }
}

/// The last reply. It is the same for a second, for all who ask on the same terms.
#[derive(Debug, Default)]
pub struct Greeting {
    unix_s: u64,
    terms: Option<Terms>,
    reply: Vec<u8>,
}

impl Greeting {
    #[cold]
    fn write(&mut self, terms: Terms, moment: &Moment) {
        let mut seconds = itoa::Buffer::new();
        let seconds = seconds.format(moment.unix_s).as_bytes();
        let mut body = [0; GREETING.len() + 20];
        body[..GREETING.len()].copy_from_slice(GREETING);
        let end = GREETING.len() + seconds.len();
        body[GREETING.len()..end].copy_from_slice(seconds);
        (self.unix_s, self.terms) = (moment.unix_s, Some(terms));
        self.reply.clear();
        Reply::text(Status::Ok, &body[..end]).write(terms, &moment.date, &mut self.reply);
    }
}
