//! One contender under one load: start, warm-up, load, observation and stop; and the pilot pass that runs before
//! a race.

pub(crate) mod beside;
pub(crate) mod load_plan;
pub(crate) mod outcome;
pub(crate) mod pilot;
pub(crate) mod processes;
pub(crate) mod readings;
pub(crate) mod reply_seen;
pub(crate) mod round;
pub(crate) mod single;
pub(crate) mod split_loads;
pub(crate) mod start;
pub(crate) mod trial;
pub(crate) mod under_load;
pub(crate) mod warm;
pub(crate) mod warm_up_pass;
