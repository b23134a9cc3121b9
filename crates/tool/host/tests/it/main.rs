//! Contenders, supervisors and what the host reads of the machine.

mod processes;
mod running_url;
mod spoken;
mod topology;
