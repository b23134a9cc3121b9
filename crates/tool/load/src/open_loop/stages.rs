//! Stages of a plan: parts of the window of an open loop, each with a rate of its own.

use crate::{Error, Plan, Until};
use regatta_record::{Arrivals, Drive, Stage};
use std::{num::NonZeroU32, time::Duration};

impl Plan {
    /// Maximum number of stages. Each takes up to a megabyte per load thread.
    pub const MAX_STAGES: usize = 50;
    /// Minimum length of a stage.
    pub const SHORTEST_STAGE: Duration = Duration::from_millis(100);

    /// The same plan as an open loop whose window consists of these stages, one after the other.
    /// Connections stay open, and requests that are still queued at the end of a stage are sent in the
    /// next one. The warm-up has the rate of the first stage.
    pub fn in_stages(self, stages: Vec<Stage>, arrivals: Arrivals) -> Plan {
        let length = Duration::from_nanos(stages.iter().map(|stage| stage.ns).sum());
        let drive = Drive::Open { rate: mean_rate(&stages), arrivals };
        Plan { drive, until: Until::Elapsed(length), stages, ..self }
    }

    /// The plan of one stage alone, counted from 0. The whole plan, if it has no such stage.
    pub fn stage(&self, number: usize) -> Plan {
        let one = Plan { stages: Vec::new(), ..self.clone() };
        match (self.stages.get(number), self.drive) {
            (Some(&Stage { ns, rate }), Drive::Open { arrivals, .. }) => Plan {
                drive: Drive::Open { rate, arrivals },
                until: Until::Elapsed(Duration::from_nanos(ns)),
                ..one
            },
            _ => one,
        }
    }

    /// The stages of the window; a window without stages is a single one. Empty without a rate.
    pub(crate) fn rates(&self) -> Vec<Stage> {
        match (self.drive, self.until) {
            (Drive::Open { rate, .. }, Until::Elapsed(length)) if self.stages.is_empty() => {
                vec![Stage { ns: length.as_nanos() as u64, rate }]
            }
            _ => self.stages.clone(),
        }
    }

    /// Checks the stages for contradictions.
    pub(crate) fn check_stages(&self) -> Result<(), Error> {
        let refuse = |what: String| Err(Error::Plan(what));
        let stages = &self.stages;
        if stages.is_empty() {
            return Ok(());
        }
        if stages.len() > Self::MAX_STAGES {
            let (n, most) = (stages.len(), Self::MAX_STAGES);
            return refuse(format!("{n} stages are more than {most}"));
        }
        let shortest = Self::SHORTEST_STAGE;
        if stages.iter().any(|stage| u128::from(stage.ns) < shortest.as_nanos()) {
            return refuse(format!("a stage must last at least {shortest:?}"));
        }
        if let Some(Stage { rate, .. }) = stages.iter().find(|s| s.rate.get() > Self::MAX_RATE) {
            let most = Self::MAX_RATE;
            return refuse(format!(
                "a rate of {rate} requests per second is too high; the maximum is {most}"
            ));
        }
        if !self.workload.cost_per().is_request() || self.passing > 0 {
            return refuse(format!(
                "stages need a workload in which each request has its reply; this load runs {}",
                self.workload.name()
            ));
        }
        let whole = self.clone().in_stages(stages.clone(), Arrivals::default());
        match self.drive {
            Drive::Open { .. } if self.until == whole.until => Ok(()),
            _ => refuse("stages need an open loop that lasts as long as they do together".into()),
        }
    }
}

/// The mean rate, rounded.
fn mean_rate(stages: &[Stage]) -> NonZeroU32 {
    let of = |weight: fn(&Stage) -> f64| stages.iter().map(weight).sum::<f64>();
    let mean = of(|s| s.ns as f64 * f64::from(s.rate.get())) / of(|s| s.ns as f64).max(1.0);
    NonZeroU32::new(mean.round() as u32).unwrap_or(NonZeroU32::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_script::Workload;

    fn plan(stages: &[(u64, u32)]) -> Plan {
        let stage = |&(ms, rate): &(u64, u32)| Stage {
            ns: ms * 1_000_000,
            rate: NonZeroU32::new(rate).unwrap(),
        };
        let workload = Workload::parse("double").unwrap();
        let plan = Plan::closed(([127, 0, 0, 1], 1).into(), workload);
        plan.in_stages(stages.iter().map(stage).collect(), Arrivals::Constant)
    }

    fn refused(plan: &Plan) -> String {
        match plan.check() {
            Err(Error::Plan(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_window_is_as_long_as_the_stages_and_has_their_mean_rate() {
        let plan = plan(&[(1_000, 1_000), (3_000, 5_000)]);
        plan.check().unwrap();
        assert_eq!(plan.until, Until::Elapsed(Duration::from_secs(4)));
        assert_eq!(plan.drive.rate().map(NonZeroU32::get), Some(4_000));
        let second = plan.stage(1);
        assert_eq!(second.until, Until::Elapsed(Duration::from_secs(3)));
        assert_eq!(second.drive.rate().map(NonZeroU32::get), Some(5_000));
        assert!(second.stages.is_empty() && plan.stage(2).drive == plan.drive);
        assert_eq!(plan.rates(), plan.stages);
        assert_eq!(second.rates().len(), 1);
    }

    #[test]
    fn stages_that_contradict_a_limit_or_the_plan_are_refused() {
        assert!(refused(&plan(&[(100, 1); 51])).contains("51 stages are more than 50"));
        plan(&[(100, 1); 50]).check().unwrap();
        assert!(refused(&plan(&[(1_000, 1), (99, 1)])).contains("at least 100ms"));
        let high = refused(&plan(&[(100, Plan::MAX_RATE + 1), (10_000, 1)]));
        assert!(high.contains("too high"), "{high}");
        let shorter = Plan { until: Until::Elapsed(Duration::from_secs(1)), ..plan(&[(900, 9)]) };
        assert!(refused(&shorter).contains("lasts as long"));
        let closed = Plan { drive: Drive::Closed, ..plan(&[(900, 9)]) };
        assert!(refused(&closed).contains("open loop"));
        let hub = Plan { workload: Workload::parse("hub").unwrap(), ..plan(&[(900, 9)]) };
        assert!(refused(&hub).contains("each request has its reply"));
    }
}
