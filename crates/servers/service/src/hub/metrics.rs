//! The Prometheus metrics of a hub.

use super::{census::Census, live::Live};
use crate::{CallOutcome, Never, http::Resource, prometheus::write_page};
use regatta_proto::http1::{Date, Terms};
use std::sync::Arc;

/// The page `/metrics` of a hub, served on a separate port.
#[derive(Clone, Debug)]
pub struct Metrics {
    pub(super) census: Arc<Census>,
    pub(super) live: Arc<Live>,
}

impl Resource for Metrics {
    const PATH: &'static str = "/metrics";
    type Job = Never;
    type Local = ();

    fn get(
        &mut self,
        (): &mut (),
        _: Option<&str>,
        terms: Terms,
        date: &Date,
        reply: &mut Vec<u8>,
    ) -> CallOutcome<Never> {
        let settings = self.live.current();
        let slow = &settings.backlog;
        if let Some(clock) = settings.clock {
            self.census.tidy(clock());
        }
        let mut text = self.census.metrics(&slow.counts, &slow.memory);
        if let Some(broker) = &settings.broker {
            text += &broker.health.metrics();
            text += &broker.place.metrics();
        }
        write_page(&text, terms, date, reply)
    }
}
