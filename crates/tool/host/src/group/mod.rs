//! Control groups.

pub(crate) mod cgroup;
pub(crate) mod cgroup_limit;
