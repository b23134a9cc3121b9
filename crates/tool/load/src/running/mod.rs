//! The threads of a load: who leads them through the phases, and what each does.

pub(crate) mod director;
pub(crate) mod gatherer;
pub(crate) mod held;
pub(crate) mod leads;
pub(crate) mod observer;
pub(crate) mod orders;
pub(crate) mod passing;
pub(crate) mod pulse;
pub(crate) mod run;
pub(crate) mod shared;
pub(crate) mod source;
pub(crate) mod worker;
