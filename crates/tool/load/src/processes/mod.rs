//! Load processes: several processes carry out one load together, e.g. because one process may not
//! open enough files. A leader ([`run_in_processes`]) starts as many as needed ([`load_process`]), sends
//! each the load and its part of it, decides for all of them when a phase ends, and merges what they
//! counted. Only a window of a fixed length ends by the clock of each process.
//!
//! Load processes on other machines are led in the same way ([`run_by_crew`]): the leader needs only a
//! [`Crew`].
//!
//! The messages are lines of JSON ([`Ask`], [`Order`], [`regatta_record::ProcessMessage`]) over pipes. They
//! contain nothing that needs the same machine or the same clock, unless the connections of a workload must
//! know of each other, like the members of a hub: then the processes of a machine share memory, and `exact`
//! compares what those of several machines saw.

mod ask;
mod children;
mod crew;
mod exact;
mod follow;
mod lead;
mod memory;
mod split;
pub mod wire;

pub use ask::{Ask, Order};
pub use children::ChildProcesses;
pub use crew::{Crew, Heard};
pub use follow::{load_process, load_process_dialect};
pub use lead::{Division, Merged, Watch, run_by_crew, run_in_processes};
pub use split::LoadProcessConfig;
