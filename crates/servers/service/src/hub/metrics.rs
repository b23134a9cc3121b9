//! The Prometheus metrics of a hub.

use super::{census::Census, settings::Settings};
use crate::{CallOutcome, Never, http, http::Resource};
use regatta_proto::http1::{Date, Reply, Status, Terms};
use std::sync::Arc;

/// The page `/metrics` of a hub, served on a separate port.
#[derive(Clone, Debug)]
pub struct Metrics {
    pub(super) census: Arc<Census>,
    pub(super) settings: Arc<Settings>,
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
        let slow = &self.settings.backlog;
        let text = self.census.metrics(&slow.counts, &slow.memory);
        let content_type = "text/plain; version=0.0.4; charset=utf-8";
        let page = Reply { content_type, ..Reply::text(Status::Ok, text.as_bytes()) };
        page.write(terms, date, reply);
        http::flow(terms).into()
    }
}
