//! The requests whose keys are sampled for the page with hot keys.

use crate::{
    clients::next::Next,
    proxy::state::{Fx, Proxy},
    tally::Kind,
};
use regatta_keyspace::route::Decision;
use regatta_proto::resp::Command;

impl Proxy {
    /// Samples one of each 64 requests that go to nodes, if this is requested. `next`: what happens to the request: one
    /// that waits counts only once it was sent.
    #[inline]
    pub(crate) fn sample(
        &mut self,
        command: &Command<'_>,
        decision: &Decision,
        next: Next,
        effects: &Fx,
    ) {
        if let Some(sampler) = &mut self.hot_keys
            && !matches!(next, Next::Again | Next::Full)
            && !matches!(self.kind, Kind::Local | Kind::Refused)
            && sampler.is_next()
        {
            // Malformed requests have no keys.
            let keys = decision.command.and_then(|one| one.keys(command).ok()).unwrap_or_default();
            let keys = keys.filter_map(|place| command.arg(place));
            sampler.sample(keys, effects.now().instant);
        }
    }
}
