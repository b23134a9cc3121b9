//! One contender under one load: start, warm-up, load, observation and stop; and the pilot pass that runs before
//! a race.

pub(crate) mod background_load;
pub(crate) mod load_plan;
pub(crate) mod load_processes;
pub(crate) mod outcome;
pub(crate) mod pilot;
pub(crate) mod progress_events;
pub(crate) mod readings;
pub(crate) mod reply_seen;
pub(crate) mod round;
pub(crate) mod single;
pub(crate) mod trial;
pub(crate) mod warm;
pub(crate) mod warm_up_pass;
