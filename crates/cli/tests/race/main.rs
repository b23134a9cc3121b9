//! `regatta race`, as it is built, against contenders that behave badly, and against those who
//! kill it, interrupt it or ask for what cannot be.

mod answers;
mod arguments;
mod axes;
mod backends;
mod container;
mod course;
mod drawn;
mod dry_run;
mod events;
#[path = "../support/example.rs"]
mod example;
mod gate;
mod handed_over;
mod hash;
mod heads;
mod interrupted;
mod killed;
mod manifests;
mod many;
mod null;
mod output;
mod processes;
mod replay;
mod results;
mod resumed;
mod soak;
mod started;
mod starts;
mod terminal;
mod warm_ups;
mod workload;
